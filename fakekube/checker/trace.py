"""The requests of a client: calls in their order, grouped into streams.

A stream has the requests of one reflector: the lists and watches with the same path, label selector and field selector.

Invariant: a trace only reads the recorded requests of the cluster.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from fakekube.powers.exchange import REVISION_DIGITS, decode_event

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fakekube.cluster import Cluster
    from fakekube.powers.exchange import Exchange

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
LEASES = "leases.coordination.k8s.io"
#: How a watch ended whose connection the client has closed.
CLOSED = "closed by the client"
#: The status codes of watches that deliver events: over HTTP, and over a WebSocket.
_STREAMS = frozenset({200, 101})
#: Query parameters that evidence does not show.
_NOT_SHOWN = frozenset({"watch", "timeoutSeconds", "allowWatchBookmarks", "pretty"})
#: The views of an object that a client may ask for; `PartialObjectMetadataList` for lists.
_VIEWS = ("PartialObjectMetadata", "Table")
_TRUE = frozenset({"true", "1", "t", "T", "TRUE", "True"})


def read_number(text: str) -> int:
    """Returns a revision, or a number of seconds, that a client or a server has sent; 0 for what is no such number."""
    return int(text) if text.isdecimal() and len(text) <= REVISION_DIGITS else 0


@dataclass(slots=True, frozen=True)
class StreamKey:
    """The path, the selectors and the view that identify a stream."""

    path: str
    label_selector: str
    field_selector: str
    view: str = ""
    """PartialObjectMetadata or Table, if the client asks for it."""

    def __str__(self) -> str:
        shown = (("labelSelector", self.label_selector), ("fieldSelector", self.field_selector))
        query = "&".join(f"{name}={value}" for name, value in shown if value)
        path = f"{self.path}?{query}" if query else self.path
        return f"{path} as {self.view}" if self.view else path


@dataclass(slots=True, frozen=True)
class Event:
    """An event that a watch has delivered to the client."""

    type: str
    """ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; "" if its format cannot be read."""
    revision: int
    """0 if it has none."""
    name: str
    namespace: str
    at: float
    """When it was sent, in seconds of the trial."""


def mentions(exchange: Exchange, text: str) -> bool:
    """Reports whether the path or the body of a request contains a text."""
    return text in exchange.path or text.encode() in exchange.raw_body


class Call:
    """A request of the client, with its answer as far as it was sent.

    Args:
        exchange: the record of the request.
        zero: when the trial began, by `time.monotonic()`.
        offset: the number of the last call of an earlier server.
    """

    def __init__(self, exchange: Exchange, zero: float, offset: int = 0) -> None:
        self.exchange = exchange
        self._offset = offset
        self._zero = zero
        self._events: list[Event] = []
        self._revision: int | None = None

    @property
    def revision(self) -> int | None:
        """The resourceVersion of the answer; None if it is unknown, or if the answer was too large to be recorded."""
        if self._revision is None and self.status is not None:
            self._revision = self.exchange.revision or 0
        return self._revision or None

    @property
    def number(self) -> int:
        return self._offset + self.exchange.number

    @property
    def at(self) -> float:
        """When the request began, in seconds of the trial."""
        return self.exchange.began - self._zero

    @property
    def end(self) -> float | None:
        """When the answer was complete, in seconds of the trial; None while it is not."""
        if self.is_watch and self.exchange.events is not None:
            return None if self.exchange.ended_at is None else self.exchange.ended_at - self._zero
        return None if self.exchange.seconds is None else self.at + self.exchange.seconds

    @cached_property
    def verb(self) -> str:
        return self.exchange.verb

    @cached_property
    def resource(self) -> str:
        """Such as `pods`, `deployments.apps` or `pods/status`; "" for a non-resource request."""
        one = self.exchange
        group = f".{one.group}" if one.group else ""
        return f"{one.resource}{group}" + (f"/{one.subresource}" if one.subresource else "")

    @cached_property
    def collection(self) -> str:
        """The resource without its subresource."""
        return self.resource.partition("/")[0]

    @cached_property
    def query(self) -> dict[str, str]:
        return self.exchange.query

    @cached_property
    def headers(self) -> dict[str, str]:
        return self.exchange.headers

    @property
    def path(self) -> str:
        return self.exchange.path

    @property
    def name(self) -> str:
        return self.exchange.name

    @property
    def namespace(self) -> str:
        return self.exchange.namespace

    @property
    def status(self) -> int | None:
        return self.exchange.status

    @property
    def body(self) -> Any:
        return self.exchange.body

    @property
    def answer(self) -> Any:
        return self.exchange.answer

    @property
    def retry_after(self) -> int:
        """The Retry-After of the answer, in seconds; 0 if there is none, or a date."""
        return read_number(dict(self.exchange.answer_headers).get("Retry-After", ""))

    @property
    def answer_is_lost(self) -> bool:
        """Was the answer too large to be kept?"""
        return self.exchange.raw_answer is None and not self.is_watch

    @property
    def ended(self) -> str | None:
        """Why a watch ended."""
        return self.exchange.ended

    @property
    def is_watch(self) -> bool:
        return self.verb == "watch"

    @property
    def is_list(self) -> bool:
        return self.verb == "list"

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES

    @property
    def succeeded(self) -> bool:
        return self.status is not None and self.status < 400

    @property
    def dropped(self) -> bool:
        """Whether the connection ended without an answer."""
        return self.status is None and self.exchange.seconds is not None

    @property
    def may_be_unread(self) -> bool:
        """Whether this is a watch whose connection broke, so that the client need not have read the last events."""
        return self.ended in (CLOSED, "cut by a fault")

    @property
    def ended_normally(self) -> bool:
        """Whether this is a watch that the server has ended without an error."""
        return self.ended is not None and not self.may_be_unread and not self.ended.startswith("error")

    @property
    def is_open(self) -> bool:
        """Whether this is a watch that is open."""
        return self.is_watch and self.status in _STREAMS and self.exchange.ended is None

    @cached_property
    def stream(self) -> StreamKey:
        accept = self.headers.get("accept", "")
        view = next((one for one in _VIEWS if f"as={one}" in accept), "")
        return StreamKey(self.path, self.query.get("labelSelector", ""), self.query.get("fieldSelector", ""), view)

    @cached_property
    def asked_revision(self) -> str:
        """The resourceVersion of the query; "" if there is none."""
        return self.query.get("resourceVersion", "")

    @property
    def resumes(self) -> bool:
        """Whether this is a watch from a given revision, and not one that starts with the present state."""
        return self.is_watch and self.asked_revision not in ("", "0") and not self.sends_initial_events

    @cached_property
    def sends_initial_events(self) -> bool:
        return self.query.get("sendInitialEvents", "") in _TRUE

    @cached_property
    def wants_bookmarks(self) -> bool:
        return self.query.get("allowWatchBookmarks", "") in _TRUE

    @property
    def events(self) -> Sequence[Event]:
        """The events that a watch has delivered."""
        frames = self.exchange.frames or ()
        times = self.exchange.frame_times or ()
        while len(self._events) < min(len(frames), len(times)):
            number = len(self._events)
            self._events.append(_event(frames[number], self.exchange.answer_type, times[number] - self._zero))
        return self._events

    def newest_delivered(self, *, bookmarks: bool = True) -> int:
        """Returns the highest revision that a watch has delivered; 0 if none."""
        found = (one.revision for one in self.events if one.type != "ERROR" and (bookmarks or one.type != "BOOKMARK"))
        return max(found, default=0)

    def mentions(self, text: str) -> bool:
        """Reports whether the path or the body of the request contains a text."""
        return mentions(self.exchange, text)

    def has_delivered(self, text: str) -> bool:
        """Reports whether the answer of a read, or the name of an object in an event, contains a text."""
        if self.is_watch:
            return any(text in event.name for event in self.events)
        answer = self.exchange.raw_answer or b""
        return not self.is_write and text.encode() in (answer if isinstance(answer, bytes) else b"".join(answer))

    @property
    def code(self) -> str:
        """The result, in a few words."""
        if self.is_watch and self.status in _STREAMS:
            return f"{self.status}, {self.exchange.events or 0} events, {self.ended or 'open'}"
        return "dropped" if self.dropped else "in flight" if self.status is None else str(self.status)

    def __str__(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.query.items() if name not in _NOT_SHOWN)
        fault = f" [{self.exchange.fault}]" if self.exchange.fault else ""
        return f"{self.at:7.2f} s  {self.verb} {self.path}{'?' + query if query else ''}: {self.code}{fault}"


def _event(frame: bytes, content_type: str, at: float) -> Event:
    type_, obj = decode_event(frame, content_type)
    metadata = (obj.get("metadata") or {}) if isinstance(obj, dict) else {}
    revision = read_number(str(metadata.get("resourceVersion") or ""))
    return Event(type_, revision, metadata.get("name") or "", metadata.get("namespace") or "", at)


@dataclass(slots=True, frozen=True)
class Stream:
    """The lists and watches of one stream in their order."""

    key: StreamKey
    calls: Sequence[Call]

    @property
    def watches(self) -> list[Call]:
        return [call for call in self.calls if call.is_watch]

    @property
    def lists(self) -> list[Call]:
        return [call for call in self.calls if call.is_list]

    @property
    def collection(self) -> str:
        return self.calls[0].collection

    def next_call(self, call: Call) -> Call | None:
        """Returns the call that follows another one."""
        return next((one for one in self.calls if one.number > call.number), None)

    def next_watch(self, call: Call) -> Call | None:
        """Returns the watch that follows a call."""
        return next((one for one in self.watches if one.number > call.number), None)

    def is_watched_at(self, at: float) -> bool:
        """Reports whether a watch was open at a time, in seconds of the trial."""
        return any(one.at <= at and (one.end is None or one.end > at) for one in self.watches)

    def pauses(self) -> list[float]:
        """Returns the periods without an active request of the stream, in seconds; not those after a write that succeeded."""
        return [
            max(following.at - one.end, 0.0)
            for one, following in pairwise(self.calls)
            if one.end is not None and not (one.is_write and one.succeeded)
        ]

    def time_connected(self, pause: float) -> float:
        """Returns when the newest call began, in seconds of the trial; if it has ended, when the next one begins after a
        pause."""
        last = self.calls[-1]
        if last.end is None or (last.is_write and last.succeeded):
            return last.at
        return last.end + pause

    def keeps_failing(self, since: float) -> bool:
        """Reports whether the newest calls have all failed and began after a time."""
        newest = self.calls[-_AGAIN:]
        if len(newest) < _AGAIN or newest[0].at <= since:
            return False
        return all(map(is_failure, newest)) or bool(self.watches and all(map(_is_rejected, newest)))

    def knows(self, revision: int, before: Call) -> bool:
        """Reports whether the client had received this revision on this stream before a call."""
        for one in self.calls:
            if one.number >= before.number:
                return False
            if one.is_list and one.revision == revision:
                return True
            if one.is_watch and any(event.revision == revision for event in one.events):
                return True
        return False


def _is_rejected(call: Call) -> bool:
    """Reports whether the client could not use an answer: it lists and does not watch then, or closes the watch at once."""
    if call.is_list:
        return call.succeeded and "continue" not in call.query
    return call.ended == CLOSED and call.end is not None and call.end - call.at < _REJECTED_WITHIN


#: Seconds within which a client closes a watch that it cannot use; for a silent one it waits longer.
_REJECTED_WITHIN = 3.0
#: After so many failures in a row, which nothing provokes any more, the client will not recover.
_AGAIN = 5


def is_failure(call: Call) -> bool:
    """Reports whether an attempt failed: refused, dropped, or a watch that ended at once without an event other than ERROR and
    BOOKMARK."""
    if call.dropped or (call.status is not None and call.status >= 400):
        return True
    end = call.end
    if not call.is_watch or end is None or call.ended == CLOSED:
        return False
    has_events = any(event.type not in ("ERROR", "BOOKMARK") for event in call.events)
    return bool((call.ended or "").startswith("error")) or (end - call.at < 1.0 and not has_events)


class Trace:
    """The calls of the client of a cluster, from when the trace was made.

    Args:
        cluster: a running one.
        zero: the start of time, as a value of `time.monotonic()`.
    """

    def __init__(self, cluster: Cluster, zero: float) -> None:
        self._servers = [(0, cluster.requests)]
        """The recorded requests of the servers of one address, one after the other, each with the last number before."""
        cluster.requests.keep_frames()
        self._zero = zero
        self._calls: dict[int, Call] = {}

    def follow(self, cluster: Cluster) -> None:
        """Goes on with another cluster, which serves from now on."""
        cluster.requests.keep_frames()
        self._servers.append((self.mark(), cluster.requests))

    def mark(self) -> int:
        """Returns a mark after the newest call, for `since`."""
        offset, requests = self._servers[-1]
        return offset + requests.mark()

    def since(self, mark: int = -1) -> list[Call]:
        """Returns the calls that began after a mark; without one, all calls. Requests that are not parsed yet are left out."""
        known = self._calls
        return [
            known.get(offset + one.number) or known.setdefault(offset + one.number, Call(one, self._zero, offset))
            for offset, requests in self._servers
            for one in requests.since(mark - offset)
            if one.info is not None or one.status is not None or one.seconds is not None
        ]

    def __iter__(self) -> Iterator[Call]:
        return iter(self.since())

    def streams(self, mark: int = -1) -> dict[StreamKey, Stream]:
        """Returns the streams with their calls after a mark."""
        found: dict[StreamKey, list[Call]] = {}
        for call in self.since(mark):
            if call.is_watch or (call.is_list and call.resource):
                found.setdefault(call.stream, []).append(call)
        return {key: Stream(key, calls) for key, calls in found.items()}

    def refused_writes(self, mark: int = -1) -> list[Stream]:
        """Returns the writes that failed at least once after a mark, as streams: one for each verb and path."""
        found: dict[tuple[str, str], list[Call]] = {}
        for call in self.since(mark):
            if call.is_write:
                found.setdefault((call.verb, call.path), []).append(call)
        return [Stream(StreamKey(path, "", ""), calls) for (_, path), calls in found.items() if any(map(is_failure, calls))]

    def open_watches(self) -> list[Call]:
        """Returns the watches that are open."""
        return [call for call in self if call.is_open]

    def count_since(self, mark: int) -> int:
        """Returns how many calls began after a mark."""
        return sum(len(requests.since(mark - offset)) for offset, requests in self._servers)


def describe_hot_loop(calls: Sequence[Call], baseline_requests: int) -> str:
    """Returns a description of a hot loop; "" if there is none.

    Args:
        calls: the calls of the last `LOOP_SECONDS`.
        baseline_requests: how many requests the client sent for the copies of the baseline run.
    """
    limit = max(_LOOP_CALLS, 4 * baseline_requests)
    done = sum(call.is_write and call.succeeded for call in calls)
    if len(calls) - (1 + _READS_FOR_A_WRITE) * done <= limit:
        return ""
    (verb, path), _ = Counter((call.verb, call.path) for call in calls).most_common(1)[0]
    return f"{len(calls)} requests in {LOOP_SECONDS:.0f} s, most of them {verb} {path}"


#: A hot loop has more than `_LOOP_CALLS` calls within `LOOP_SECONDS`. Successful writes, and so many reads for each of them, do
#: not count.
_LOOP_CALLS = 240
LOOP_SECONDS = 2.0
_READS_FOR_A_WRITE = 3


#: The largest number of lines in an excerpt.
_EXCERPT = 12


def excerpt(calls: Sequence[Call], begins: int | None = None) -> list[str]:
    """Returns lines of evidence for calls: the first and the last ones; equal calls in a row share a line.

    Args:
        calls: the calls.
        begins: the mark at which the provocation began; a line shows where this is.
    """
    lines = []
    for (after, _), group in groupby(
        calls, lambda call: (begins is not None and call.number > begins, str(call).partition(" s  ")[2])
    ):
        same = list(group)
        if after and _BEGINS not in lines:
            lines.append(_BEGINS)
        lines.append(f"{same[0]} ({len(same)} times until {same[-1].at:.2f} s)" if len(same) > 1 else str(same[0]))
    if len(lines) > _EXCERPT:
        half = _EXCERPT // 2
        return [*lines[:half], f"          … {len(lines) - 2 * half} more …", *lines[-half:]]
    return lines


def lines_of(calls: Sequence[Call], begins: int | None = None) -> list[str]:
    """Returns a line for each call, and one where the provocation began."""
    lines = []
    for call in calls:
        if begins is not None and call.number > begins and _BEGINS not in lines:
            lines.append(_BEGINS)
        lines.append(str(call))
    return lines


#: The line of evidence that shows where the provocation began.
_BEGINS = "          ---- the provocation begins ----"

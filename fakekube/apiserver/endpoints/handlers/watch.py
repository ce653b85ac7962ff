"""Streams watch events: the initial state, if requested, then every change that selectors match, in the order of revisions.

A `WatchStream` is a cursor into the history of a bucket: it holds no queue, so a slow client costs no memory. A client whose
position is no longer in the history gets an error event with code 410, and the stream is closed. `take` encodes the events
since its position as frames. A frame is made once per event and representation and shared by all watchers (`Event.encodings`).

Selectors decide the type of an event: an object that matches before and after is MODIFIED, one that matches only after is
ADDED, one that matches only before is DELETED. A DELETED event has the last state with the revision of the change.

Bookmarks are sent after the initial state (annotation k8s.io/initial-events-end) if it was requested, then periodically and
shortly before the end of the stream, if the resource has changed since the stream began.

Over WebSocket each event is one message: the encoded event, without the length prefix that Protobuf has in a plain body. Text
formats use text messages. `net/` performs the handshake and writes the frames of the protocol.

Specified by: "Efficient detection of changes", "Streaming lists" and "Watch bookmarks" in Kubernetes API Concepts;
k8s.io/apiserver/pkg/storage/cacher, pkg/endpoints/handlers/watch.go, pkg/util/httpstream/wsstream.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fakekube.apimachinery.errors import status
from fakekube.apiserver.endpoints.negotiation import MediaType
from fakekube.apiserver.endpoints.request import Request
from fakekube.apiserver.endpoints.response_writers import EventEncoder, UnencodableError, encoding_key
from fakekube.apiserver.registry.generic import conversion
from fakekube.apiserver.registry.generic.conversion import ConvertedCursor, conversions_of
from fakekube.apiserver.registry.generic.reads import candidates, matcher, stale_revision, wait_for_revision
from fakekube.apiserver.registry.request_options import ListOptions, parse_resource_version
from fakekube.apiserver.registry.scope import Scope
from fakekube.net.streams import Source, Stream, StreamDecorator, frames_of
from fakekube.store import Compacted, Cursor, Event, Record

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document


#: The maximum number of frames per `take`, so that one client cannot occupy the sending thread.
MAX_EVENTS_PER_TAKE = 500
#: The bytes after which `take` returns: each watcher that does not read keeps as many.
MAX_BYTES_PER_TAKE = 250_000
#: The seconds after which `take` returns what it has found; the deadline of the stream makes the next one due at once.
MAX_SECONDS_PER_TAKE = 0.001
#: The number of events between two looks at the time and the size: first few, then more if they are small.
_FIRST_BATCH, _BATCH = 8, 50
_SMALL_BYTES = MAX_BYTES_PER_TAKE // 8

#: Seconds before the end of a watch at which it gets its last bookmark, as in the watch cache.
_BOOKMARK_BEFORE_END = 2.0


class Bookmarks:
    """When a watch gets bookmarks: one every period and one shortly before its end, and others that are requested.

    Attributes:
        at: the time of the next one, in seconds of the cluster's monotonic clock, or None if there is none.
        often: whether one follows every batch of changes.
        requested: "now" or "first" if one more is due, else "".
    """

    __slots__ = ("_ends_at", "_is_allowed", "_period", "at", "often", "requested")

    def __init__(self, is_allowed: bool, period: float, ends_at: float, now: float) -> None:
        self._is_allowed = is_allowed
        self._period = period
        self._ends_at = ends_at
        self.often = False
        self.requested = ""
        self.at = self._next_time(now)

    @property
    def is_first(self) -> bool:
        """Whether one is due before all events."""
        return self.requested == "first"

    def set(self, when: str, now: float) -> None:
        """Sets when bookmarks are sent: "never", "often" (after every batch of changes), "at end"; or requests one more: "now",
        or "first", before all events. Without effect if the client does not allow bookmarks.

        The one that is sent now has the newest revision of all resources, as after etcd has notified the watch cache of its
        progress. The first one has the revision of the initial events, or the revision from which the watch starts.
        """
        if when in ("now", "first"):
            self.requested = when if self._is_allowed else ""
            return
        self._is_allowed = self._is_allowed and when != "never"
        self.often = self._is_allowed and when == "often"
        self._period = math.inf if when == "at end" else self._period
        self.at = self._next_time(now)

    def pass_due(self, now: float) -> bool:
        """Reports whether the time of a bookmark has come; then determines the next one."""
        if self.at is None or now < self.at:
            return False
        self.at = self._next_time(now)
        return True

    def _next_time(self, now: float) -> float | None:
        if not self._is_allowed:
            return None
        before_end = self._ends_at - _BOOKMARK_BEFORE_END
        due = now + self._period
        if now < before_end <= due:
            return before_end
        return due if due < self._ends_at else None


class Batch(NamedTuple):
    """Consecutive events as frames. Watches that send the same frames share it; it must not be changed."""

    frames: list[bytes]
    revisions: Sequence[int]
    """The revisions of the objects in the first frames."""
    events: int = 0
    """The number of events, also of those without a frame."""
    last: int = 0
    """The revision of the last event."""


class WatchStream:
    """The body of a watch response; implements `streams.Stream`."""

    def __init__(self, scope: Scope, options: ListOptions, encoder: EventEncoder) -> None:
        clock, settings = scope.backend.clock, scope.backend.settings
        self._scope = scope
        self._clock = clock
        self._encoder = encoder
        self._matches = matcher(scope.resource, options)
        self._candidates = candidates(scope, options)
        self._prefix = scope.prefix
        self._name_key = scope.resource.key(scope.namespace, scope.name) if scope.name and self._has_full_key(scope) else ""
        seconds = options.timeout_seconds or settings.min_request_timeout * random.uniform(1.0, 2.0)
        now = clock.monotonic()
        self._ends_at = now + seconds
        self._bookmarks = Bookmarks(options.allow_bookmarks, settings.bookmark_period, self._ends_at, now)
        self._initial: Iterator[Record[Document]] | None = None
        self._initial_revision = 0
        self._began_at = 0
        self._marks_initial_end = False
        self._cursor: Cursor[Document] | ConvertedCursor | None = None
        self._error: bytes | None = None
        self._interruptions = 0
        self._is_interrupted = False
        self._bucket = scope.bucket
        shares = self._matches is None and encoder.key is not None and not scope.resource.converts_by_call
        self._batch_key = encoding_key(self._prefix, self._name_key, encoder.key) if shares else None
        """What watches have in common that send the same frames for the same events."""
        self._conversions = conversions_of(scope.backend, scope.resource) if scope.resource.converts_by_call else None
        self.source: Source = self._conversions or scope.bucket
        self.ended = False
        self.delivered: Sequence[int] = ()
        """The revisions of the objects in the first frames of the latest `take`."""
        self.is_drained = False
        """See `streams.Stream`."""

    @staticmethod
    def _has_full_key(scope: Scope) -> bool:
        return bool(scope.namespace) or not scope.resource.namespaced

    # --- Setting up ---------------------------------------------------------------------------------------------------

    def start_from(self, revision: int) -> None:
        """Starts after a revision, which may be in the future. A compacted revision ends the stream with an error."""
        self._began_at = max(revision, self._scope.backend.store.revision)
        try:
            self._follow(self._bucket.cursor(revision, cached=self._scope.resource.strategy.cached))
        except Compacted as lost:
            too_old = status.too_old_resource_version(revision, lost.revision)
            self.fail(too_old if self._scope.resource.strategy.cached else status.expired(status.TOO_OLD_WATCH))

    def start_with_state(self, *, mark_end: bool, not_older_than: int | None = None) -> None:
        """Starts with the current objects as ADDED events, a bookmark if `mark_end`, then the changes after that.

        The bookmark has the revision of the store or, if `not_older_than` is given, that of the watch cache.
        Raises StatusError 500 if a webhook fails to convert the objects.
        """
        as_of = stale_revision(self._scope, not_older_than or 0)
        page = self._bucket.page(self._name_key, revision=as_of) if self._name_key else self._candidates(revision=as_of)
        if self._conversions is not None:
            for record in page.records:
                conversion.to_version(self._scope.resource, record.value)
        self._initial = iter(page.records)
        self._initial_revision = self._began_at = page.revision
        if not_older_than is not None and self._scope.resource.strategy.cached:
            self._initial_revision = min(page.revision, max(self._bucket.newest, not_older_than))
        self._marks_initial_end = mark_end
        self._follow(self._bucket.cursor(page.revision))

    def _follow(self, cursor: Cursor[Document]) -> None:
        self._cursor = cursor if self._conversions is None else ConvertedCursor(cursor, self._conversions)

    def set_bookmarks(self, when: str) -> None:
        """Sets when bookmarks are sent; see `Bookmarks.set`."""
        self._bookmarks.set(when, self._clock.monotonic())

    def fail(self, error: status.StatusError) -> None:
        """Ends the stream with an error event."""
        self._error = self._encoder.error(error)

    # --- streams.Stream -----------------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        if self.ended:
            return None
        if self._is_interrupted:
            return -float(self._interruptions)
        return self._ends_at if self._bookmarks.at is None else min(self._ends_at, self._bookmarks.at)

    def take(self) -> list[bytes]:
        self.is_drained = self._is_interrupted = False
        self.delivered = ()
        if self.ended:
            return []
        if self._error is not None:
            self.ended = True
            return [self._error]
        if self._bookmarks.is_first:
            self._bookmarks.requested = ""
            return [self._first_bookmark()]
        try:
            if self._initial is not None:
                return self._take_initial()
            frames = self._take_changes()
            if not frames and not self._is_interrupted and not self.ended:
                frames = self._take_requested_bookmark() if self._bookmarks.requested else self._take_timed()
        except UnencodableError:
            self.ended = True
            return []
        return frames

    def close(self) -> None:
        self.ended = True
        self._cursor = None

    def __iter__(self) -> Iterator[bytes]:
        return frames_of(self, self._clock)

    # --- Making frames ------------------------------------------------------------------------------------------------

    def _take_initial(self) -> list[bytes]:
        assert self._initial is not None
        frames: list[bytes] = []
        self.delivered = delivered = list[int]()
        size = 0
        end = time.monotonic() + MAX_SECONDS_PER_TAKE
        for number, record in enumerate(self._initial, 1):
            if self._shows(record.key, record.value):
                frames.append(self._encoder.encode_added(record))
                size += len(frames[-1])
                delivered.append(record.revision)
            if (
                size >= MAX_BYTES_PER_TAKE
                or len(frames) >= MAX_EVENTS_PER_TAKE
                or (not number % _BATCH and time.monotonic() >= end)
            ):
                self._interrupt()
                return frames
        self._initial = None
        if self._marks_initial_end:
            frames.append(self._encoder.bookmark(self._initial_revision, initial_end=True))
        return frames

    def _take_changes(self) -> list[bytes]:
        cursor = self._cursor
        assert cursor is not None
        try:
            batch = self._collect(cursor) if isinstance(cursor, ConvertedCursor) else self._next_batch(cursor)
        except Compacted:
            self.ended = True
            return [self._encoder.error(status.expired(status.TOO_OLD_WATCH))]
        if batch is None:
            return []
        frames, self.delivered = batch.frames, batch.revisions
        if not frames:
            if cursor.pending:
                self._interrupt()
            return frames
        if self._bookmarks.often:
            frames = [*frames, self._encoder.bookmark(cursor.position)]
        self.is_drained = not (cursor.pending or self._bookmarks.requested or self._is_due())
        return frames

    def _next_batch(self, cursor: Cursor[Document]) -> Batch | None:
        """Returns the next events, as another watch has found them if there is one like this; None if there are none.

        A batch is kept with its first event once a second watch asks for it. Raises Compacted.
        """
        first = cursor.peek()
        if first is None:
            return None
        kept, key = first.encodings, self._batch_key
        known: Batch | None = kept.get(key)
        if known is not None:
            cursor.skip(known.events, known.last)
            return known
        has_other_readers = bool(kept)
        batch = self._collect(cursor)
        if has_other_readers and key is not None and batch is not None:
            kept[key] = batch
        return batch

    def _collect(self, cursor: Cursor[Document] | ConvertedCursor) -> Batch | None:
        """Takes events until there are no more, or they are too many, too large or take too long. Raises Compacted."""
        frames: list[bytes] = []
        revisions: list[int] = []
        count, last, size, step, end = 0, 0, 0, _FIRST_BATCH, 0.0
        while len(frames) < MAX_EVENTS_PER_TAKE:
            try:
                events = cursor.take(step)
            except Compacted:
                if frames:  # the next call raises it again
                    break
                raise
            for event in events:
                frame = self._frame(event)
                if frame is not None:
                    frames.append(frame)
                    revisions.append(event.revision)
                    size += len(frame)
            if events:
                count, last = count + len(events), events[-1].revision
            if len(events) < step:
                break
            now = time.monotonic()
            end = end or now + MAX_SECONDS_PER_TAKE
            if now >= end or size >= MAX_BYTES_PER_TAKE:
                break
            step = _BATCH if size < _SMALL_BYTES else _FIRST_BATCH
        return Batch(frames, revisions, count, last) if count else None

    def _is_due(self) -> bool:
        """Reports whether the time of the next bookmark, or of the end, has come."""
        deadline = self.deadline
        return deadline is not None and self._clock.monotonic() >= deadline

    def _interrupt(self) -> None:
        """Makes the next `take` due at once."""
        self._is_interrupted = True
        self._interruptions += 1

    def _frame(self, event: Event[Document]) -> bytes | None:
        if not self._is_ours(event.key):
            return None
        matches, record, previous = self._matches, event.record, event.previous
        is_in = record is not None and (matches is None or matches(record.value))
        was_in = previous is not None and (matches is None or matches(previous.value))
        if is_in:
            return self._encoder.event("MODIFIED" if was_in else "ADDED", event)
        return self._encoder.event("DELETED", event) if was_in else None

    def _shows(self, key: str, document: Document) -> bool:
        return self._is_ours(key) and (self._matches is None or self._matches(document))

    def _is_ours(self, key: str) -> bool:
        return key == self._name_key if self._name_key else key.startswith(self._prefix)

    def _first_bookmark(self) -> bytes:
        assert self._cursor is not None
        return self._encoder.bookmark(self._cursor.position if self._initial is None else self._initial_revision)

    def _take_requested_bookmark(self) -> list[bytes]:
        assert self._cursor is not None
        self._bookmarks.requested = ""
        return [self._encoder.bookmark(self._cursor.position)]

    def _take_timed(self) -> list[bytes]:
        """Returns the bookmark that is due; ends the stream at its time, but not before a bookmark that was due earlier."""
        now = self._clock.monotonic()
        if self._bookmarks.pass_due(now):
            assert self._cursor is not None
            reached = min(self._cursor.position, self._bucket.newest)  # writes to other resources cause no bookmark here
            if reached > self._began_at:
                return [self._encoder.bookmark(reached)]
        self.ended = now >= self._ends_at
        return []


def open_watch(scope: Scope, options: ListOptions, encoder: EventEncoder) -> WatchStream:
    """Opens a stream for the options of a watch.

    Raises StatusError 500 for a revision that is not a number; other errors are sent as an event of the stream.
    """
    try:
        wanted = parse_resource_version(options.resource_version, scope.backend.store.revision)
    except ValueError as problem:
        raise status.generic(500, "", str(problem)) from None
    stream = WatchStream(scope, options, encoder)
    if options.send_initial_events:
        _start_streaming_list(scope, stream, options, wanted)
    elif wanted == 0:
        _start_without_revision(scope, stream, options)
    else:
        stream.start_from(wanted)
    return stream


def _start_streaming_list(scope: Scope, stream: WatchStream, options: ListOptions, wanted: int) -> None:
    try:
        wait_for_revision(scope, wanted, cached=scope.resource.strategy.cached)
    except status.StatusError as error:
        stream.fail(error)
        return
    stream.start_with_state(mark_end=options.allow_bookmarks, not_older_than=wanted if options.resource_version else None)


def _start_without_revision(scope: Scope, stream: WatchStream, options: ListOptions) -> None:
    """Starts at the current revision, without initial events (sendInitialEvents=false)."""
    if options.send_initial_events is None:
        stream.start_with_state(mark_end=False)
    else:
        stream.start_from(scope.backend.store.revision)


_TEXTS = ("json", "yaml")
_LENGTH_PREFIXES = {"protobuf": 4}


def is_web_socket(request: Request) -> bool:
    """Reports whether the client asks for a WebSocket upgrade."""
    headers = request.headers
    return headers.get("upgrade", "").lower() == "websocket" and "upgrade" in headers.get("connection", "").lower()


class Messages(StreamDecorator):
    """A watch whose frames are messages."""

    def __init__(self, stream: Stream, chosen: MediaType) -> None:
        super().__init__(stream)
        self._skipped = _LENGTH_PREFIXES.get(chosen.format, 0)
        self.binary = chosen.format not in _TEXTS

    def take(self) -> list[bytes]:
        frames = self._stream.take()
        return [frame[self._skipped :] for frame in frames] if self._skipped else frames

    def __iter__(self) -> Iterator[bytes]:
        for frame in self._stream:
            yield frame[self._skipped :]

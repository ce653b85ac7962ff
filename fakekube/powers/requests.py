"""The recorded requests of a cluster: the ring of the latest exchanges, and the sequence that a test can filter and wait for.

    cluster.requests.where(verb="patch", resource="pods/status", agent="my-operator").wait(1)

Invariants: keeping an exchange takes no lock, notifying costs one comparison while no test waits, and no request waits for a
reader or while exchanges are packed. A view keeps no exchanges; every access reads the ring again.
"""

from __future__ import annotations

import itertools
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

from fakekube.apimachinery.codecs.document import Chunks, compress_texts
from fakekube.base.private_files import write_private
from fakekube.net.wsgi import SHARED_VARIABLES
from fakekube.powers.exchange import Exchange
from fakekube.powers.fault import Criteria, ResourceName, verbs_of

if TYPE_CHECKING:
    from fakekube.powers.packs import Pack

#: The bytes of bodies that are kept for each exchange in the mean, so 15 MiB of 10,000, and at least in all: those of the oldest
#: exchanges are dropped.
BYTES_EACH: Final = 1_600
LEAST_BYTES: Final = 8 << 20
#: The variables of a WSGI environment that differ from request to request; exchanges have them, but for the input.
_OF_ONE_REQUEST: Final = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "REQUEST_URI", "RAW_URI", "wsgi.input")
#: The number of environments that new exchanges may share.
_SHARED_ENVIRONS: Final = 64
#: The bytes of a response from which on it is packed.
_LEAST_PACKED: Final = 256
#: The part of all kept bytes that one round of exchanges has.
_ROUND: Final = 1 / 8

_number: Final = attrgetter("number")


class Recorder:
    """The ring of exchanges of one cluster.

    Args:
        keep: the maximum number of exchanges; 0 keeps none.
        resolve: returns the plural of a resource for a name that kubectl accepts.
    """

    def __init__(self, keep: int, resolve: Callable[[str], str]) -> None:
        self.resolve = resolve
        self._keep = keep
        self.keep_frames = False
        """Whether exchanges of watches keep all frames. Off by default, because watches may be long."""
        self.ring: deque[Exchange] = deque(maxlen=keep)
        """The exchanges, oldest first, without the oldest ones that were packed; it always has the newest one."""
        self._packs: Sequence[Pack[Exchange]] = ()
        """The exchanges that were packed, as long as nobody has read them."""
        self._past: Sequence[Exchange] = ()
        """The exchanges that were packed, after somebody has read them."""
        self._packed = 0
        """The number of both."""
        self.keep = self.ring.append
        """Adds an exchange to the ring."""
        self.next_number = itertools.count().__next__
        """Returns the number for the next exchange."""
        self._cleared_at = -1
        """The number of the newest exchange when the ring was cleared."""
        self._reading = threading.RLock()
        """Held by readers, and while exchanges are packed: for tenths of a second."""
        self._changed = threading.Condition()
        """Its lock is also held by whoever removes exchanges or bodies."""
        self.waiting_views = 0
        """The number of threads in `waiting`."""
        self.changes = 0
        """Counts responses and opened watches while there are threads in `waiting`."""
        self._kept_bytes = max(keep * BYTES_EACH, LEAST_BYTES)
        """The bytes of bodies that are kept."""
        self._fresh_bytes = 0
        """The bytes of bodies in the round that has not ended."""
        self._rounds: deque[tuple[int, int]] = deque()
        """The rounds whose bodies are kept, the oldest first: the number of the newest exchange, and the bytes."""
        self._dropped = -1
        """The number of the newest exchange of the rounds whose bodies were dropped."""
        self._environs: dict[tuple[object, ...], dict[str, Any]] = {}

    def notify(self) -> None:
        """Wakes waiting threads: a request has got its response, or a watch is open."""
        if self.waiting_views:
            with self._changed:
                self.changes += 1
                self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        """Whether exchanges may have been dropped."""
        return self._packed + len(self.ring) >= self._keep

    @property
    def newest(self) -> int:
        """The number of the newest exchange; -1 before the first."""
        try:
            return self.ring[-1].number
        except IndexError:
            return self._cleared_at

    def list_exchanges(self) -> list[Exchange]:
        """Returns the exchanges, oldest first."""
        with self._reading:
            found = [*self._unpack(), *self._copy_ring()]
        return found[-self._keep :]

    def _copy_ring(self) -> list[Exchange]:
        while True:
            try:
                return list(self.ring)
            except RuntimeError:  # another thread has added one
                continue

    def share_environ(self, environ: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what an exchange keeps of the environment of its request: the same for equal requests of one connection."""
        shared: Mapping[str, Any] | None = environ.get(SHARED_VARIABLES)
        if shared is not None:
            return shared
        kept = dict(environ)
        for name in _OF_ONE_REQUEST:
            kept.pop(name, None)
        known, key = self._environs, (kept.get("REMOTE_PORT"), kept.get("CONTENT_TYPE"), kept.get("CONTENT_LENGTH"))
        found = known.get(key)
        if found == kept:
            return found
        if len(known) >= _SHARED_ENVIRONS:
            self._environs = known = {}
        known[key] = kept
        return kept

    def note_bodies(self, size: int) -> None:
        """Counts the bodies of an exchange; at the end of a round those of the oldest one are dropped, see `BYTES_EACH`."""
        self._fresh_bytes += size
        if self._fresh_bytes > self._kept_bytes * _ROUND:
            self._end_round()

    def _end_round(self) -> None:
        with self._changed:
            rounds, before = self._rounds, self._dropped
            rounds.append((self.newest, self._fresh_bytes))
            self._fresh_bytes = 0
            kept = sum(size for _, size in rounds)
            while kept > self._kept_bytes:
                self._dropped, size = rounds.popleft()
                kept -= size
            ring = self._copy_ring()
            if len(ring) == self._keep:
                self._forget_past()
        self._drop_bodies([*self._past, *ring], before)

    def _drop_bodies(self, exchanges: Sequence[Exchange], before: int = -1) -> None:
        """Drops the bodies of the rounds that are not kept, of exchanges after a number."""
        first, end = (bisect_right(exchanges, number, key=_number) for number in (before, self._dropped))
        for one in exchanges[first:end]:
            if one.status is not None:
                one.raw_body, one.raw_answer = b"", None

    def pack(self) -> None:
        """Packs the exchanges but the newest one: they take a part of their memory until somebody reads them."""
        from fakekube.powers.packs import make_packs

        with self._reading:
            found = self.list_exchanges()[:-1]
            answers = [
                (one, answer if isinstance(answer, bytes) else b"".join(answer))
                for one in found
                if isinstance(answer := one.raw_answer, (bytes, Chunks)) and len(answer) > _LEAST_PACKED and one.is_over
            ]
            for (one, _), text in zip(answers, compress_texts([text for _, text in answers]), strict=True):
                one.raw_answer = text
            packs = make_packs(found)
            with self._changed:
                self._packs, self._past, self._packed = packs, (), len(found)
                for one in found:
                    if self.ring[0] is one:
                        self.ring.popleft()

    def _unpack(self) -> Sequence[Exchange]:
        """Returns the exchanges that were packed."""
        if self._packs:
            self._past = [one for pack in self._packs for one in pack.unpack()]
            self._packs = ()
            self._drop_bodies(self._past)
        return self._past

    def _forget_past(self) -> None:
        self._packs, self._past, self._packed = (), (), 0

    def clear(self) -> None:
        """Removes all exchanges."""
        with self._reading, self._changed:
            self._cleared_at = self.newest
            self._forget_past()
            self.ring.clear()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Counts changes within the block."""
        with self._changed:
            self.waiting_views += 1
        try:
            yield
        finally:
            with self._changed:
                self.waiting_views -= 1

    def wait_for_change(self, seen: int, timeout: float) -> bool:
        """Waits, within `waiting`, until `changes` differs from `seen`; returns False after `timeout` real seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.changes != seen, max(timeout, 0.0))


#: Exchanges that an error message shows.
_SHOWN = 10


class Requests(Sequence[Exchange]):
    """A view of the exchanges of a cluster, in the order in which they began, including those in flight."""

    def __init__(self, recorder: Recorder, criteria: tuple[Criteria, ...] = (), *, own: bool = False, after: int = -1) -> None:
        self._recorder = recorder
        self._criteria = criteria
        self._own = own
        self._after = after

    # --- Narrowing ----------------------------------------------------------------------------------------------------

    def where(
        self,
        *,
        verb: str | Iterable[str] | None = None,
        resource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        status: int | None = None,
        own: bool = False,
    ) -> Requests:
        """Returns the exchanges of this view that meet all criteria; None matches any value.

        Args:
            verb: one or more verbs, such as "patch" or "get,list".
            resource: in the syntax of `faults.on`, such as "pods/status" or "deployments.apps".
            namespace, name, user: exact values.
            agent: a prefix of the User-Agent.
            status: the status code of the response.
            own: also return requests of the cluster's own controllers and of clients in the same process.

        Raises ValueError for a verb that does not exist, and for a list of resources.
        """
        criteria = Criteria(
            None if verb is None else verbs_of(verb),
            None if resource is None else ResourceName.parse(resource, self._recorder.resolve),
            namespace,
            name,
            user,
            agent,
            status,
        )
        return Requests(self._recorder, (*self._criteria, criteria), own=own or self._own, after=self._after)

    def mark(self) -> int:
        """Returns a mark after the newest exchange, for `since`."""
        return self._recorder.newest

    def since(self, mark: int) -> Requests:
        """Returns the exchanges of this view that began after a mark."""
        return Requests(self._recorder, self._criteria, own=self._own, after=max(mark, self._after))

    # --- Looking ------------------------------------------------------------------------------------------------------

    def _found(self) -> list[Exchange]:
        return [one for one in self._candidates() if all(criteria.matches(one) for criteria in self._criteria)]

    def _candidates(self) -> list[Exchange]:
        return [one for one in self._recorder.list_exchanges() if one.number > self._after and (self._own or not one.own)]

    def __len__(self) -> int:
        return len(self._found())

    @overload
    def __getitem__(self, index: int) -> Exchange: ...

    @overload
    def __getitem__(self, index: slice) -> list[Exchange]: ...

    def __getitem__(self, index: int | slice) -> Exchange | list[Exchange]:
        return self._found()[index]

    def __iter__(self) -> Iterator[Exchange]:
        return iter(self._found())

    @property
    def one(self) -> Exchange:
        """The only exchange. Raises AssertionError, with the most similar requests, if there is none or more than one."""
        found = self._found()
        if len(found) != 1:
            raise AssertionError(f"{len(found)} requests with {self}, not one{self._name_nearest(found)}")
        return found[0]

    @property
    def last(self) -> Exchange:
        """The newest exchange. Raises AssertionError, with the most similar requests, if there is none."""
        found = self._found()
        if not found:
            raise AssertionError(f"no request with {self}{self._name_nearest(found)}")
        return found[-1]

    def none(self) -> None:
        """Raises AssertionError, with the requests, if there are any."""
        found = self._found()
        if found:
            raise AssertionError(f"{len(found)} requests with {self}:{_lines(found)}")

    def in_order(self, *verbs: str) -> None:
        """Raises AssertionError, with the requests, unless there are requests with these verbs in this order, possibly
        with others between them."""
        left = iter(verbs)
        wanted = next(left, None)
        found = self._found()
        for one in found:
            if one.verb == wanted:
                wanted = next(left, None)
        if wanted is not None:
            missing = ", ".join((wanted, *left))
            raise AssertionError(f"no {missing} after the others of {', '.join(verbs)} with {self}:{_lines(found)}")

    def save(self, path: Path | str, *, redact: bool = True) -> None:
        """Writes the exchanges to a file as lines of JSON, with the members of `GET /fakekube/v1/requests`.

        Args:
            path: of the file, which only its owner may read.
            redact: leave out Authorization, cookies, tokens and the data of Secrets.

        Raises OSError.
        """
        from fakekube.powers.exchange import exchange_data, json_line
        from fakekube.powers.redaction import redact_exchange

        found = map(exchange_data, self._found())
        write_private(path, b"".join(map(json_line, map(redact_exchange, found) if redact else found)))

    # --- Waiting ------------------------------------------------------------------------------------------------------

    def wait(self, count: int = 1, timeout: float = 5.0) -> Requests:
        """Waits until `count` of the requests have a response, or are open watches; returns this view.

        `timeout` is in real seconds. Raises TimeoutError, with the most similar requests.
        """
        end = time.monotonic() + timeout
        with self._recorder.waiting():
            while True:
                seen = self._recorder.changes
                found = [one for one in self._found() if one.status is not None]
                if len(found) >= count:
                    return self
                if not self._recorder.wait_for_change(seen, end - time.monotonic()):
                    raise TimeoutError(
                        f"{len(found)} of {count} requests with {self} after {timeout} s{self._name_nearest(found)}"
                    )

    def keep_frames(self) -> None:
        """Makes watches that begin from now on keep all events that they deliver (`Exchange.frames`)."""
        self._recorder.keep_frames = True

    def clear(self) -> None:
        """Removes all recorded exchanges of the cluster."""
        self._recorder.clear()

    # --- Texts --------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return "; ".join(map(str, self._criteria)) or "no criteria"

    def _name_nearest(self, found: list[Exchange]) -> str:
        return f":{_lines(found)}" if found else self.nearest(*self._criteria)

    def __repr__(self) -> str:
        return f"<Requests {self}:{_lines(self._found())}>"

    def nearest(self, *criteria: Criteria) -> str:
        """Describes the exchanges that meet most of the criteria, for error messages."""
        missing = [([miss for one in criteria for miss in one.misses(exchange)], exchange) for exchange in self._candidates()]
        if not missing:
            return "; nothing was asked"
        least = min(len(misses) for misses, _ in missing)
        nearest = [f"{one} (other {', '.join(misses)})" for misses, one in missing if len(misses) == least]
        return "; the nearest are:" + "".join(f"\n  {line}" for line in nearest[-_SHOWN:])


def _lines(found: list[Exchange]) -> str:
    return "".join(f"\n  {one}" for one in found[-_SHOWN:])

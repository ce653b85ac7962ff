"""What happens in a cluster, as a stream of JSON lines: for the page, while it is open.

    {"requests": rows}   new requests, and known ones that have ended or got events
    {"changes": rows}    {"marks": rows}    {"faults": […]}    {"clock": {…}}    {"findings": 2}
    {"scenario": {…}}    the scenario that is played, when a task has another result
    {"reset": REV}       the state was replaced: read it again
    {"gap": {"requests": [FIRST, LAST]}}    rows that were dropped before this reader got them
    {}                   nothing, every 15 seconds

One thread looks for news ten times a second, as long as there is a reader; without one, there is no thread and nothing is asked.

Invariant: a slow reader costs no memory, since every call of `take` makes the rows since the last one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakekube.net.streams import Notifier
from fakekube.powers.exchange import json_line

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.observation import Observer
    from fakekube.powers.rows import Rows


#: Real seconds between two looks for news.
_PERIOD: Final = 0.1
#: Real seconds after which open watches are looked at.
_WATCHES: Final = 1.0
#: Real seconds after which the findings are counted again.
_FINDINGS: Final = 2.0
#: Real seconds after which a line without members is sent.
_HEARTBEAT: Final = 15.0
#: The maximum number of rows in a line.
_ROWS: Final = 1_000
#: How far the numbers of requests that begin at the same time may be out of order.
_DISORDER: Final = 256


class Shown(NamedTuple):
    """Functions that return what readers are told besides rows."""

    clock: Callable[[], dict[str, Any]]
    faults: Callable[[], list[dict[str, Any]]]
    findings: Callable[[], int]
    """Returns their number."""
    scenario: Callable[[], dict[str, Any] | None]


class LiveSource(Notifier):
    """Wakes the readers of one cluster.

    Args:
        observer, rows: of the cluster.
        shown: what readers are told besides rows.
    """

    __slots__ = ("_found_of", "_running", "_starting", "found", "observer", "replaced", "rows", "shown")

    def __init__(self, observer: Observer, rows: Rows, shown: Shown) -> None:
        super().__init__()
        self.observer, self.rows, self.shown = observer, rows, shown
        self.found = 0
        """The number of findings."""
        self.replaced = 0
        """Counts replacements of the state."""
        self._found_of: tuple[int, int, int] | None = None
        self._running = False
        self._starting = threading.Lock()

    def subscribe(self, wake: Callable[[], None]) -> None:
        super().subscribe(wake)
        with self._starting:
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="fakekube-live", daemon=True).start()

    def _run(self) -> None:
        known: object = None
        last = time.monotonic()
        with self.observer.recorder.waiting():
            while True:
                with self._starting:
                    if not self._wakes:
                        self._running = False
                        return
                now, found = time.monotonic(), self._news()
                self._look_for_findings(now)
                if found != known or now - last >= _WATCHES:
                    known, last = found, now
                    self.notify()
                time.sleep(_PERIOD)

    def _look_for_findings(self, now: float) -> None:
        """Counts the findings anew every two seconds, if there were requests or changes."""
        seen = self.observer.recorder.newest, self.observer.journal.written, int(now / _FINDINGS)
        known = self._found_of
        if known is None or (seen[:2] != known[:2] and seen[2] != known[2]):
            self._found_of = seen
            self.found = self.shown.findings()

    def _news(self) -> object:
        """Returns a value that differs if there may be something new."""
        observer = self.observer
        hits = sum(fault.hits for fault in observer.faults), len(observer.faults)
        return (
            observer.recorder.newest,
            observer.recorder.changes,
            observer.journal.written,
            observer.marks.newest,
            self.replaced,
            self.found,
            hits,
            observer.clock.reading,
            self.shown.scenario(),
        )


class Live:
    """One reader; implements `streams.Stream`.

    Args:
        source: of the cluster.
        hello: the first line.
        requests: the number of the newest request that the reader has.
        changes: the revision of the newest change that it has.
        marks: the number of the newest mark that it has.
    """

    deadline: float | None = None

    def __init__(self, source: LiveSource, hello: dict[str, Any], *, requests: int, changes: int, marks: int) -> None:
        self.source = source
        self.ended = False
        self._hello: dict[str, Any] | None = {"hello": hello}
        self._newest = requests
        self._sent = set(range(requests - _DISORDER, requests + 1))
        """Which of the latest numbers were sent."""
        self._pending: dict[int, tuple[Exchange, object]] = {}
        """Requests that were sent before they had ended, and what was sent of them."""
        self._revision, self._mark, self._replaced = changes, marks, source.replaced
        self._told: dict[str, object] = {}
        self._quiet_since = time.monotonic()
        self._watched_at = 0.0

    def take(self) -> list[bytes]:
        """Returns the lines since the last call."""
        if self.ended:
            return []
        lines = [*self._lines()]
        now = time.monotonic()
        if not lines and now - self._quiet_since >= _HEARTBEAT:
            lines = [{}]
        if lines:
            self._quiet_since = now
        return [json_line(line) for line in lines]

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self._hello is not None:
            yield self._hello
            self._hello = None
        source = self.source
        if source.replaced != self._replaced:
            self._replaced = source.replaced
            yield {"reset": source.rows.revision}
        yield from self._requests()
        yield from self._changes()
        if source.observer.marks.newest > self._mark:
            yield {"marks": source.observer.marks.rows(self._mark, source.observer.began)}
            self._mark = source.observer.marks.newest
        faults = source.shown.faults()
        yield from self._if_new("faults", [(one["id"], one["hits"], one["exhausted"]) for one in faults], lambda: faults)
        yield from self._if_new("clock", source.observer.clock.reading, source.shown.clock)
        yield from self._if_new("findings", source.found, lambda: source.found)
        scenario = source.shown.scenario()
        if scenario is not None:
            yield from self._if_new("scenario", scenario, lambda: scenario)

    def _if_new(self, name: str, state: object, value: Callable[[], Any]) -> Iterator[dict[str, Any]]:
        if name not in self._told or self._told[name] != state:
            self._told[name] = state
            yield {name: value()}

    # --- Requests -----------------------------------------------------------------------------------------------------

    def _requests(self) -> Iterator[dict[str, Any]]:
        ring = self.source.observer.recorder
        new = self._new(ring.list_exchanges())
        if new and new[0].number > self._newest + 1 and ring.is_full:
            yield {"gap": {"requests": [self._newest + 1, new[0].number - 1]}}
        new = new[:_ROWS]
        changed = [one for one, state in self._pending.values() if self._is_due(one) and _state(one) != state][:_ROWS]
        self._watched_at = max(self._watched_at, time.monotonic() if self._watches_due() else 0.0)
        if not new and not changed:
            return
        yield {"requests": self.source.rows.request_table([*changed, *new]).data()}
        for one in (*changed, *new):
            self._note(one)
        self._sent = {number for number in self._sent if number > self._newest - _DISORDER}

    def _new(self, kept: list[Exchange]) -> list[Exchange]:
        found = []
        for one in reversed(kept):
            if one.number <= self._newest - _DISORDER:
                break
            if one.number not in self._sent:
                found.append(one)
        return sorted(found, key=lambda one: one.number)

    def _watches_due(self) -> bool:
        return time.monotonic() - self._watched_at >= _WATCHES

    def _is_due(self, one: Exchange) -> bool:
        """Reports whether a row may be sent again: that of an open watch once a second."""
        return one.events is None or one.ended is not None or self._watches_due()

    def _note(self, one: Exchange) -> None:
        """Remembers that a request was sent, and what of it may still change."""
        self._newest = max(self._newest, one.number)
        self._sent.add(one.number)
        if one.status is None or (one.events is not None and one.ended is None):
            self._pending[one.number] = one, _state(one)
        else:
            self._pending.pop(one.number, None)

    # --- Changes ------------------------------------------------------------------------------------------------------

    def _changes(self) -> Iterator[dict[str, Any]]:
        rows = self.source.rows
        found = self.source.observer.journal.since(self._revision, _ROWS)
        if found:
            self._revision = found[-1].revision
            yield {"changes": rows.change_table(found, with_states=True).data()}

    def close(self) -> None:
        """See `Stream`."""
        self.ended = True
        self._pending.clear()

    def __iter__(self) -> Iterator[bytes]:
        changed = threading.Event()
        self.source.subscribe(changed.set)
        try:
            while not self.ended:
                changed.clear()
                frames = self.take()
                yield from frames
                if not frames:
                    changed.wait(_HEARTBEAT)
        finally:
            self.source.unsubscribe(changed.set)
            self.close()


def _state(one: Exchange) -> object:
    return one.status, one.events, one.ended, one.fault, len(one.wrote)

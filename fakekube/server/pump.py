"""Sends all streaming responses of a server in one thread.

A stream (see `fakekube.streams`) is taken from when its source has changed, when its deadline has passed, or
when it had more to give; what it gives is framed and sent as far as the client's socket takes it.
Invariants:

* A stream is taken from only when all it gave before is on its way: a slow client costs no memory, only lag,
  and lag is the stream's business.
* A round takes once from every stream that is due, so that no stream holds up the others.
* Frames that many streams give in one round are framed once.
* A source is subscribed to once, however many streams it has, from the first stream's coming to the last
  one's going.
* Every stream is closed exactly once.

Everything but `Pump.add`, `Pump.close_unused` and a group's `wake` runs in the loop's thread.
"""

from __future__ import annotations

import enum
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from fakekube.server.framing import Framing
from fakekube.server.loop import READ, WRITE, Loop
from fakekube.server.transport import Disconnected, Transport
from fakekube.streams import BrokenStreamError, Source, Stream

__all__ = ["Clock", "Delivery", "FrameCache", "Progress", "Pump"]

_logger = logging.getLogger(__name__)

_MAX_ANSWERS = 65536
_CACHE_BYTES = 8 << 20
_DEADLINES_BOUND = 1000


class Clock(Protocol):
    """What the server needs of the cluster's clock."""

    def now(self) -> datetime:
        """In UTC."""

    def monotonic(self) -> float:
        """Seconds; may stand still or jump ahead."""

    def subscribe(self, callback: Callable[[], None]) -> object:
        """Call `callback`, from any thread, after a jump."""

    def unsubscribe(self, callback: Callable[[], None]) -> object:
        """End a subscription."""


class FrameCache:
    """Framed bytes of one round, by the identity of the frames; it keeps them alive: identities hold."""

    __slots__ = ("_framed", "_size")

    def __init__(self) -> None:
        self._framed: dict[tuple[object, ...], tuple[list[bytes], bytes]] = {}
        self._size = 0

    def frame(self, framing: Framing, frames: list[bytes]) -> bytes:
        """`framing.frame(frames)`, made once for equal arguments."""
        identity = (framing.key, id(frames[0])) if len(frames) == 1 else (framing.key, *map(id, frames))
        found = self._framed.get(identity)
        if found is not None:
            return found[1]
        payload = framing.frame(frames)
        self._size += len(payload)
        if self._size > _CACHE_BYTES:
            self.clear()
        self._framed[identity] = (frames, payload)
        return payload

    def clear(self) -> None:
        """Let go of everything."""
        self._framed.clear()
        self._size = 0


class Progress(enum.Enum):
    """How a delivery stands."""

    WAITING = enum.auto()
    """The stream has nothing."""
    MORE = enum.auto()
    """The stream may have more."""
    BLOCKED = enum.auto()
    """The client does not take what is there."""
    ENDED = enum.auto()
    """All is sent."""


# Enum members are slow to look up before Python 3.12.
_WAITING, _MORE, _BLOCKED, _ENDED = Progress


class Delivery:
    """One stream on its way to one client. Belongs to one thread at a time."""

    __slots__ = (
        "answers",
        "deaf",
        "due",
        "finishing",
        "framing",
        "output",
        "progress",
        "queued",
        "released",
        "stream",
        "transport",
    )

    def __init__(self, stream: Stream, framing: Framing, transport: Transport, released: Callable[[bool], None]) -> None:
        """`released` gets the connection back, with whether another request may follow on it."""
        self.stream = stream
        self.framing = framing
        self.transport = transport
        self.released = released
        self.output: bytes | memoryview = b""
        self.answers = b""
        self.finishing = False
        self.deaf = False
        """The loop does not listen to the client for now."""
        self.queued = False
        self.progress = _MORE
        self.due: float | None = None

    def begin(self, head: bytes) -> Progress:
        """Send the answer's head, and with it what the stream has and the client takes without waiting.

        Raises:
            Disconnected: the client is gone
        """
        self._take(None)
        self.output = head + bytes(self.output)
        while self.advance() is _MORE:
            pass
        return self.progress

    def advance(self, cache: FrameCache | None = None) -> Progress:
        """Send what is left from before; if that is all gone, take once from the stream, and send that.

        Raises:
            Disconnected: the client is gone
        """
        if (self.output or self.answers) and not self._flush():
            self.progress = _BLOCKED
            return _BLOCKED
        if not self.finishing:
            self._take(cache)
        if not self.output:
            self.progress = _ENDED if self.finishing else _WAITING
        elif not self._flush():
            self.progress = _BLOCKED
        else:
            self.progress = _ENDED if self.finishing else _MORE
        return self.progress

    def conclude(self) -> None:
        """End the answer early, in good order unless the client is in the middle of something."""
        with suppress(Disconnected):
            if not self.output and not self.finishing:
                self.transport.finish(self.framing.last)

    def hear(self) -> bool:
        """Receive what the client sends; false if it is gone.

        Raises:
            Disconnected: the client is gone
        """
        data = self.transport.receive_ready()
        if data is None:
            return True
        self.answers += self.framing.receive(data)
        return bool(data) and len(self.answers) <= _MAX_ANSWERS

    def _take(self, cache: FrameCache | None) -> None:
        stream, framing = self.stream, self.framing
        if not framing.hung_up and (frames := stream.take()):
            self.output = cache.frame(framing, frames) if cache else framing.frame(frames)
        if stream.ended or framing.hung_up:
            self.output = bytes(self.output) + framing.last
            self.finishing = True

    def _flush(self) -> bool:
        """Send; true when nothing is left."""
        while output := self.output or self.answers:
            if output is self.answers:
                self.answers = b""
            sent = self.transport.send_ready(output)
            if sent == len(output):
                self.output = b""
                continue
            # What is left is offered again unchanged, as TLS demands.
            self.output = memoryview(output)[sent:] if sent else output
            if not sent:
                return False
        return True


class _Group:
    """The deliveries of one source."""

    __slots__ = ("_pump", "changed", "members", "source")

    def __init__(self, source: Source, pump: Pump) -> None:
        self.source = source
        self.members: dict[Delivery, None] = {}
        self.changed = False
        self._pump = pump

    def wake(self) -> None:
        """The source has changed. From any thread."""
        if not self.changed:
            self.changed = True
            self._pump.changed.append(self)
            self._pump.loop.wake()


class Pump:
    """Serves deliveries until they end."""

    def __init__(self, loop: Loop, clock: Clock) -> None:
        self.loop = loop
        self.changed: deque[_Group] = deque()
        self._clock = clock
        self._groups: dict[int, _Group] = {}
        self._queue: deque[Delivery] = deque()
        self._cache = FrameCache()
        self._deadlines: list[tuple[float, int, Delivery]] = []
        self._order = itertools.count()
        self._deadlines_bound = _DEADLINES_BOUND
        self._last_look = 0.0
        self._closed = False
        self._used = False

    def add(self, delivery: Delivery) -> bool:
        """Take over a delivery that has begun; false if the end has begun, and it stays the caller's."""
        self._used = True
        return not self._closed and self.loop.call(lambda: self._adopt(delivery))

    def run(self) -> float | None:
        """One round; how long there will be nothing to do (seconds; None: until something happens)."""
        while self.changed:
            group = self.changed.popleft()
            group.changed = False
            for delivery in group.members:
                if delivery.progress is not _BLOCKED:
                    self._enqueue(delivery)
        wait = self._enqueue_due()
        for _ in range(len(self._queue)):
            delivery = self._queue.popleft()
            if delivery.queued:
                delivery.queued = False
                self._advance(delivery)
        self._cache.clear()
        return 0.0 if self._queue or self.changed else wait

    def close_unused(self) -> bool:
        """Refuse all deliveries from now on; false if there was one before, and `close` must be called. From any thread."""
        self._closed = True
        return not self._used

    def close(self) -> None:
        """End all deliveries now, and those that come later."""
        self._closed = True
        self.drop()

    def drop(self) -> None:
        """End all deliveries now."""
        for group in list(self._groups.values()):
            for delivery in list(group.members):
                delivery.conclude()
                self._remove(delivery, reusable=False)

    def _adopt(self, delivery: Delivery) -> None:
        if self._closed:
            delivery.conclude()
            delivery.stream.close()
            delivery.released(False)
            return
        source = delivery.stream.source
        group = self._groups.get(id(source))
        if group is None:
            group = self._groups[id(source)] = _Group(source, self)
            source.subscribe(group.wake)
        group.members[delivery] = None
        self._attend(delivery)
        self._schedule(delivery)
        if delivery.progress is not _BLOCKED:
            # What changed before the source knew of us.
            self._enqueue(delivery)

    def _enqueue(self, delivery: Delivery) -> None:
        if not delivery.queued:
            delivery.queued = True
            self._queue.append(delivery)

    def _advance(self, delivery: Delivery) -> None:
        was_blocked = delivery.progress is _BLOCKED
        try:
            progress = delivery.advance(self._cache)
        except (Disconnected, BrokenStreamError) as error:
            if isinstance(error, BrokenStreamError):
                delivery.transport.reset()
            self._remove(delivery, reusable=False)
            return
        except Exception:
            _logger.exception("A stream failed")
            self._remove(delivery, reusable=False)
            return
        if progress is _ENDED:
            self._remove(delivery, reusable=delivery.framing.reusable)
            return
        if progress is _MORE:
            self._enqueue(delivery)
        if was_blocked is not (progress is _BLOCKED) or delivery.deaf:
            self._attend(delivery)
        self._schedule(delivery)

    def _attend(self, delivery: Delivery) -> None:
        """Have the loop watch for what can happen next to the delivery's socket."""
        delivery.deaf = delivery.framing.deaf
        events = 0 if delivery.deaf else READ
        if delivery.progress is _BLOCKED:
            events |= WRITE
        delivery.transport.attend(self.loop, events, lambda events: self._happened(delivery, events))

    def _happened(self, delivery: Delivery, events: int) -> None:
        try:
            if events & READ:
                if not delivery.hear():
                    self._remove(delivery, reusable=False)
                    return
                if delivery.framing.deaf:
                    self._attend(delivery)
        except Disconnected:
            self._remove(delivery, reusable=False)
            return
        if events & WRITE or delivery.answers or delivery.framing.hung_up:
            self._enqueue(delivery)

    def _remove(self, delivery: Delivery, *, reusable: bool) -> None:
        source = delivery.stream.source
        group = self._groups[id(source)]
        del group.members[delivery]
        delivery.queued = False
        delivery.due = None
        delivery.transport.attend(self.loop, 0, lambda events: None)
        if not group.members:
            del self._groups[id(source)]
            source.unsubscribe(group.wake)
        try:
            delivery.stream.close()
        except Exception:
            _logger.exception("A stream failed to close")
        delivery.released(reusable)

    def _schedule(self, delivery: Delivery) -> None:
        """Have the stream looked at when its deadline passes, once."""
        deadline = delivery.stream.deadline
        if deadline != delivery.due:
            delivery.due = deadline
            if deadline is not None:
                heapq.heappush(self._deadlines, (deadline, next(self._order), delivery))
                self._forget_outdated()

    def _forget_outdated(self) -> None:
        """Let go of deliveries that have ended, which may be long before their deadlines."""
        if len(self._deadlines) > self._deadlines_bound:
            self._deadlines = [entry for entry in self._deadlines if entry[0] == entry[2].due]
            heapq.heapify(self._deadlines)
            self._deadlines_bound = max(_DEADLINES_BOUND, 2 * len(self._deadlines))

    def _enqueue_due(self) -> float | None:
        """Have streams looked at whose time has come; the seconds to the next one's."""
        while self._deadlines:
            deadline, _, delivery = self._deadlines[0]
            if deadline == delivery.due:
                now = self._clock.monotonic()
                if now < deadline:
                    # A clock that stands still says when it moves: it must not be asked again and again.
                    least = 0.05 if now == self._last_look else 0.001
                    self._last_look = now
                    return max(deadline - now, least)
                if delivery.progress is not _BLOCKED:
                    self._enqueue(delivery)
            heapq.heappop(self._deadlines)
        return None

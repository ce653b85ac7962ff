"""Sends all streaming responses of a server in one thread, in the framing of each connection.

The pump calls `take` of a stream (see `fakekube.net.streams`) when its source has changed, its deadline has passed, or it may
have more frames. It encodes the frames and sends as many bytes as the socket accepts. Invariants:

* `take` is called only after all earlier frames are sent, so that a slow client costs no memory; its stream falls behind.
* A turn calls `take` once for every stream that is due, so that no stream delays the others. It is divided into rounds of at most
  `_ROUND_SECONDS` (and one `take`), between which the loop accepts connections and receives.
* Frames that many streams return in one turn are encoded once.
* If sources change during a turn, the next one begins after a pause twice as long as the turn, at most `_MAX_PAUSE_SECONDS`:
  writers get the interpreter meanwhile, and a stream sends several events at once. A single change is sent without a pause.
* The pump subscribes to a source once, while there is at least one stream with this source.
* Every stream is closed exactly once.

All methods run in the loop's thread, except `Pump.add`, `Pump.close_unused` and `_Group.wake`.

A framing implements the protocol of a streaming response, in both directions: it encodes frames as chunks, unchanged, as
WebSocket messages, or as data of another protocol; the pump only transfers its bytes.
"""

from __future__ import annotations

import enum
import heapq
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from fakekube.net import websocket
from fakekube.net.http1 import RequestParser
from fakekube.net.loop import READ, WRITE, Loop
from fakekube.net.streams import BrokenStreamError, Fragment, Source, Stream, Tunnel
from fakekube.net.transport import Disconnected, Transport
from fakekube.net.wsgi import Application

_log = logging.getLogger(__name__)


class Framing(Protocol):
    """The encoding of a streaming response on one connection."""

    key: str
    """Framings with the same key encode the same frames as the same bytes."""
    last: bytes
    """The bytes after the last frame."""
    reusable: bool
    """Whether another request may follow on the connection."""

    def frame(self, frames: list[bytes]) -> bytes:
        """Encodes frames."""

    def receive(self, data: bytes) -> bytes:
        """Processes data from the client; returns the bytes to reply with."""

    @property
    def client_closed(self) -> bool:
        """Whether the client has closed the stream; then only `last` is sent."""

    @property
    def paused(self) -> bool:
        """Whether no data should be received for now."""


_MAX_PIPELINED = 65536


class Chunked:
    """Chunks of HTTP/1.1. Pipelined requests of the client are kept in the parser of the connection."""

    key = "chunked"
    last = b"0\r\n\r\n"
    client_closed = False

    def __init__(self, parser: RequestParser, reusable: bool) -> None:
        self._parser = parser
        self.reusable = reusable

    def frame(self, frames: list[bytes]) -> bytes:
        # An empty chunk would end the response.
        return b"".join([b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames if frame])

    def receive(self, data: bytes) -> bytes:
        self._parser.feed(data)
        return b""

    @property
    def paused(self) -> bool:
        return len(self._parser.buffer) > _MAX_PIPELINED


class Bare(Chunked):
    """HTTP/1.0: the response ends with the connection."""

    key = "bare"
    last = b""

    def __init__(self, parser: RequestParser) -> None:
        super().__init__(parser, reusable=False)

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)


class WebSocketMessages:
    """WebSocket: every frame is one message, a `Fragment` a part of one."""

    last = websocket.close()
    reusable = False
    paused = False

    def __init__(self, is_binary: bool) -> None:
        self.key = "binary" if is_binary else "text"
        self._message: Callable[[bytes], bytes] = websocket.binary if is_binary else websocket.text
        self._reader = websocket.FrameReader()

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join([self._encode(frame) for frame in frames])

    def _encode(self, frame: bytes) -> bytes:
        if not isinstance(frame, Fragment):
            return self._message(frame)
        return websocket.fragment(frame, is_binary=self.key == "binary", begins=frame.begins, ends=frame.ends)

    def receive(self, data: bytes) -> bytes:
        return self._reader.feed(data)

    @property
    def client_closed(self) -> bool:
        return self._reader.closed


class Raw:
    """Another protocol, of a `Tunnel`: bytes are transferred unchanged in both directions."""

    key = "bare"
    last = b""
    reusable = False
    client_closed = False

    def __init__(self, tunnel: Tunnel, parser: RequestParser) -> None:
        self._tunnel = tunnel
        if parser.buffer:  # data that the client sent after its request
            tunnel.receive(bytes(parser.buffer))
            parser.buffer.clear()

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)

    def receive(self, data: bytes) -> bytes:
        if data:
            self._tunnel.receive(data)
        return b""

    @property
    def paused(self) -> bool:
        return self._tunnel.full


_MAX_REPLY_BYTES = 65536
_ROUND_SECONDS = 0.002
"""The time after which a round ends, so that new connections and requests do not wait for the streams."""
_PAUSE = 2
"""The length of a pause after a turn, in turns: with one, 500 watchers cost a fifth more CPU an event."""
_MAX_PAUSE_SECONDS = 0.02
"""The longest time that a turn waits because sources changed during the one before."""
_CACHE_BYTES = 8 << 20
_DEADLINES_BOUND = 1000


class Clock(Protocol):
    """The part of the cluster's clock that the server uses."""

    def now(self) -> datetime:
        """Returns the time in UTC."""

    @property
    def factor(self) -> float:
        """How fast the clock runs, relative to real time."""

    def monotonic(self) -> float:
        """Returns seconds, which may stand still or jump ahead."""

    def subscribe(self, callback: Callable[[], None]) -> object:
        """Calls `callback`, in any thread, after a jump."""

    def unsubscribe(self, callback: Callable[[], None]) -> object:
        """Ends a subscription."""


class FrameCache:
    """The encoded frames of one turn, by the identities of the frames, which it keeps alive."""

    __slots__ = ("_framed", "_size")

    def __init__(self) -> None:
        self._framed: dict[tuple[object, ...], tuple[list[bytes], bytes]] = {}
        self._size = 0

    def frame(self, framing: Framing, frames: list[bytes]) -> bytes:
        """Returns `framing.frame(frames)`, computed once for the same frames and key."""
        whole = (framing.key, id(frames))  # streams may share the list
        found = self._framed.get(whole)
        if found is not None:
            return found[1]
        identity = (framing.key, "", *map(id, frames))
        found = self._framed.get(identity)
        if found is not None:
            return found[1]
        payload = framing.frame(frames)
        self._size += len(payload)
        if self._size > _CACHE_BYTES:
            self.clear()
        self._framed[identity] = self._framed[whole] = (frames, payload)
        return payload

    def clear(self) -> None:
        """Removes all entries."""
        self._framed.clear()
        self._size = 0


class Progress(enum.Enum):
    """The state of a delivery."""

    WAITING = enum.auto()
    """The stream has no frames."""
    MORE = enum.auto()
    """The stream may have more frames."""
    BLOCKED = enum.auto()
    """The socket does not accept more bytes."""
    ENDED = enum.auto()
    """Everything is sent."""


# Enum members are slow to look up before Python 3.12.
_WAITING, _MORE, _BLOCKED, _ENDED = Progress


class Delivery:
    """The sending of one stream to one client. One thread at a time uses it."""

    __slots__ = (
        "due",
        "finishing",
        "framing",
        "output",
        "paused",
        "progress",
        "queued",
        "released",
        "replies",
        "stream",
        "transport",
    )

    def __init__(self, stream: Stream, framing: Framing, transport: Transport, released: Callable[[bool], None]) -> None:
        """`released` is called at the end, with whether another request may follow on the connection."""
        self.stream = stream
        self.framing = framing
        self.transport = transport
        self.released = released
        self.output: bytes | memoryview = b""
        self.replies = b""
        self.finishing = False
        self.paused = False
        """Whether the loop does not read from the client for now."""
        self.queued = False
        self.progress = _MORE
        self.due: float | None = None

    def begin(self, head: bytes) -> Progress:
        """Sends the header of the response, and the frames that are available as far as the socket accepts them.

        Raises Disconnected.
        """
        self._take(None)
        self.output = head + bytes(self.output)
        while self.advance() is _MORE:
            pass
        return self.progress

    def advance(self, cache: FrameCache | None = None) -> Progress:
        """Sends pending bytes; if all are sent, calls `take` once, and sends the result. Raises Disconnected."""
        if (self.output or self.replies) and not self._flush():
            self.progress = _BLOCKED
            return _BLOCKED
        if not self.finishing:
            self._take(cache)
        if not self.output:
            self.progress = _ENDED if self.finishing else _WAITING
        elif not self._flush():
            self.progress = _BLOCKED
        elif self.finishing:
            self.progress = _ENDED
        else:
            self.progress = _WAITING if getattr(self.stream, "is_drained", False) else _MORE
        return self.progress

    def conclude(self) -> None:
        """Ends the response early: properly, unless a frame is partly sent."""
        with suppress(Disconnected):
            if not self.output and not self.finishing:
                self.transport.finish(self.framing.last)

    def receive(self) -> bool:
        """Receives data from the client; returns False at the end of the connection. Raises Disconnected."""
        data = self.transport.receive_ready()
        if data is None:
            return True
        self.replies += self.framing.receive(data)
        return bool(data) and len(self.replies) <= _MAX_REPLY_BYTES

    def _take(self, cache: FrameCache | None) -> None:
        stream, framing = self.stream, self.framing
        if not framing.client_closed and (frames := stream.take()):
            self.output = cache.frame(framing, frames) if cache else framing.frame(frames)
        if stream.ended or framing.client_closed:
            self.output = bytes(self.output) + framing.last
            self.finishing = True

    def _flush(self) -> bool:
        """Sends pending bytes; returns True if all are sent."""
        while output := self.output or self.replies:
            if output is self.replies:
                self.replies = b""
            sent = self.transport.send_ready(output)
            if sent == len(output):
                self.output = b""
                continue
            # The rest is sent again unchanged, as TLS requires.
            self.output = memoryview(output)[sent:] if sent else output
            if not sent:
                return False
        return True


class _Group:
    """The deliveries whose streams have the same source."""

    __slots__ = ("_pump", "changed", "members", "source")

    def __init__(self, source: Source, pump: Pump) -> None:
        self.source = source
        self.members: dict[Delivery, None] = {}
        self.changed = False
        self._pump = pump

    def wake(self) -> None:
        """Called when the source has changed. From any thread."""
        if not self.changed:
            self.changed = True
            self._pump.changed.append(self)
            self._pump.loop.wake()


class Pump:
    """Advances deliveries until they end."""

    def __init__(self, loop: Loop, clock: Clock) -> None:
        self.loop = loop
        self.changed: deque[_Group] = deque()
        self._clock = clock
        self._groups: dict[int, _Group] = {}
        self._queue: deque[Delivery] = deque()
        self._left = 0
        """The number of deliveries at the head of the queue that belong to the current turn."""
        self._turn_began = 0.0
        self._pause_until = 0.0
        self._cache = FrameCache()
        self._deadlines: list[tuple[float, int, Delivery]] = []
        self._order = itertools.count()
        self._deadlines_bound = _DEADLINES_BOUND
        self._last_look = 0.0
        self._closed = False
        self._used = False

    def add(self, delivery: Delivery) -> bool:
        """Takes over a delivery that has begun; returns False if the pump is closed, and the caller keeps it."""
        self._used = True
        return not self._closed and self.loop.call(lambda: self._adopt(delivery))

    def run(self) -> float | None:
        """Runs one round: a part of a turn. Returns the seconds until the next one is due; None if it is not before an event."""
        if not self._left:
            now = time.monotonic()
            if self.changed and now < self._pause_until:
                return self._pause_until - now
            self._begin_turn(now)
        if self._left:
            self._run_round()
        wait = self._enqueue_due()
        if not self._left and self.changed:
            return max(self._pause_until - time.monotonic(), 0.0)
        return 0.0 if self._queue else wait

    def _begin_turn(self, now: float) -> None:
        """Makes the deliveries that are due now the next turn."""
        while self.changed:
            group = self.changed.popleft()
            group.changed = False
            for delivery in group.members:
                if delivery.progress is not _BLOCKED:
                    self._enqueue(delivery)
        self._enqueue_due()
        self._left = len(self._queue)
        self._turn_began = now

    def _run_round(self) -> None:
        """Advances deliveries of the turn until its end, or the end of the round."""
        queue, end = self._queue, time.monotonic() + _ROUND_SECONDS
        while self._left:
            self._left -= 1
            delivery = queue.popleft()
            if delivery.queued:
                delivery.queued = False
                self._advance(delivery)
                if time.monotonic() >= end:
                    break
        if not self._left:
            self._cache.clear()
            now = time.monotonic()
            self._pause_until = now + min(_PAUSE * (now - self._turn_began), _MAX_PAUSE_SECONDS) if self.changed else 0.0

    def close_unused(self) -> bool:
        """Refuses all deliveries from now on; returns False if there was one before: then `close` must be called. Thread-safe."""
        self._closed = True
        return not self._used

    def close(self) -> None:
        """Ends all deliveries, and those that are added later."""
        self._closed = True
        self.drop()

    def drop(self) -> None:
        """Ends all deliveries."""
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
        self._update_watch(delivery)
        self._schedule(delivery)
        if delivery.progress is not _BLOCKED:
            # The source may have changed before the subscription.
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
            _log.exception("A stream failed")
            self._remove(delivery, reusable=False)
            return
        if progress is _ENDED:
            self._remove(delivery, reusable=delivery.framing.reusable)
            return
        if progress is _MORE:
            self._enqueue(delivery)
        if was_blocked is not (progress is _BLOCKED) or delivery.paused:
            self._update_watch(delivery)
        self._schedule(delivery)

    def _update_watch(self, delivery: Delivery) -> None:
        """Makes the loop watch the events that the delivery waits for."""
        delivery.paused = delivery.framing.paused
        events = 0 if delivery.paused else READ
        if delivery.progress is _BLOCKED:
            events |= WRITE
        delivery.transport.watch(self.loop, events, lambda events: self._on_events(delivery, events))

    def _on_events(self, delivery: Delivery, events: int) -> None:
        try:
            if events & READ:
                if not delivery.receive():
                    self._remove(delivery, reusable=False)
                    return
                if delivery.framing.paused:
                    self._update_watch(delivery)
        except Disconnected:
            self._remove(delivery, reusable=False)
            return
        except Exception:
            _log.exception("A stream failed")
            self._remove(delivery, reusable=False)
            return
        if events & WRITE or delivery.replies or delivery.framing.client_closed:
            self._enqueue(delivery)

    def _remove(self, delivery: Delivery, *, reusable: bool) -> None:
        source = delivery.stream.source
        group = self._groups[id(source)]
        del group.members[delivery]
        delivery.queued = False
        delivery.due = None
        delivery.transport.watch(self.loop, 0, lambda events: None)
        if not group.members:
            del self._groups[id(source)]
            source.unsubscribe(group.wake)
        try:
            delivery.stream.close()
        except Exception:
            _log.exception("A stream failed to close")
        delivery.released(reusable)

    def _schedule(self, delivery: Delivery) -> None:
        """Adds the deadline of the stream to the heap, if it has changed."""
        deadline = delivery.stream.deadline
        if deadline != delivery.due:
            delivery.due = deadline
            if deadline is not None:
                heapq.heappush(self._deadlines, (deadline, next(self._order), delivery))
                self._forget_outdated()

    def _forget_outdated(self) -> None:
        """Removes deadlines that have changed and those of ended deliveries, which may be far in the future."""
        if len(self._deadlines) > self._deadlines_bound:
            self._deadlines = [entry for entry in self._deadlines if entry[0] == entry[2].due]
            heapq.heapify(self._deadlines)
            self._deadlines_bound = max(_DEADLINES_BOUND, 2 * len(self._deadlines))

    def _enqueue_due(self) -> float | None:
        """Queues the deliveries whose deadlines have passed; returns the real seconds until the next deadline."""
        while self._deadlines:
            deadline, _, delivery = self._deadlines[0]
            if deadline == delivery.due:
                now = self._clock.monotonic()
                if now < deadline:
                    # A held clock calls its subscribers when it moves, and need not be polled often.
                    least = 0.05 if now == self._last_look else 0.001
                    self._last_look = now
                    return max((deadline - now) / self._clock.factor, least)
                if delivery.progress is not _BLOCKED:
                    self._enqueue(delivery)
            heapq.heappop(self._deadlines)
        return None


class RequestService(Protocol):
    """What every connection needs of its server to serve requests: the application, and the pump for its streams."""

    application: Application
    pump: Pump
    max_streams: int
    """The maximum number of concurrent requests on a connection with HTTP/2."""
    goaway_chance: float
    """The probability with which such a request is the last one of its connection."""

    def date(self) -> str:
        """Returns the value of Date for a response now."""

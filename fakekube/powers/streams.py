"""Wraps the stream of a watch: counts its events for the recorder, and applies faults.

An `ObservedStream` counts. A `FaultFilter` between it and the server exists only from the first fault on that happens to the
watch; until then a `take` costs one test.

Invariant: without faults the frames pass unchanged and in the same portions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apiserver.endpoints.handlers.watch import WatchStream
from fakekube.net.streams import BrokenStreamError, Fragment, Source, Stream, frames_of
from fakekube.powers.exchange import Deliveries, Exchange

if TYPE_CHECKING:
    from fakekube.base.clock import Clock

#: What a client hears of a connection that a fault cuts.
CUT = "the connection is cut"


class ObservedStream:
    """The stream of a watch between the handler and the server; implements `streams.Stream`."""

    def __init__(
        self, stream: Stream, exchange: Exchange, source: SharedSource, clock: Clock, closed: Callable[[ObservedStream], None]
    ) -> None:
        self.inner = stream
        """The stream of the handler."""
        self._watch = stream if isinstance(stream, WatchStream) else None
        """The same, if it is a watch that is not framed as messages of a WebSocket."""
        self.clock = clock
        self._closed = closed
        self.exchange = exchange
        self.source: Source = source
        self._wake = source.wake
        self.binary = bool(getattr(stream, "binary", False))
        self._ended = False
        self.begun = False
        """Whether `take` was called: the header of the response has been sent."""
        self._faults: FaultFilter | None = None
        self._when_silent: Callable[[], None] | None = None
        exchange.events = 0
        if not exchange.own and self._watch is not None:
            exchange.deliveries = Deliveries()

    # --- For faults ---------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> FaultFilter:
        """What faults do to the frames of the stream; made when it is first asked for."""
        if self._faults is None:
            self._faults = FaultFilter(self)
        return self._faults

    def wake(self) -> None:
        """Makes the server call `take`."""
        self._wake()

    def when_silent(self, call: Callable[[], None]) -> None:
        """Sets the function to call, in the thread that serves the stream, when a fault silences the whole connection."""
        self._when_silent = call

    def silence_connection(self) -> None:
        """Silences the connection, if the server has said how."""
        if self._when_silent is not None:
            self._when_silent()

    def expire(self) -> None:
        """Ends the stream with the 410 of a watch whose revision is compacted."""
        self.fail(status.expired(status.TOO_OLD_WATCH))

    def fail(self, error: StatusError) -> None:
        """Ends the stream with an ERROR event, unless it has ended: what was recorded as its end is what the client receives."""
        if self._watch is not None and self.exchange.ended is None:
            self.exchange.record_end(f"error {error.code}")
            self._watch.fail(error)

    def set_bookmarks(self, when: str) -> None:
        """Changes when the watch gets bookmarks; see `actions.Bookmarks`."""
        if self._watch is not None:
            self._watch.set_bookmarks(when)

    def finish(self, why: str) -> None:
        """Ends the stream towards the client."""
        self._ended = True
        self.exchange.record_end(why)
        self._closed(self)

    # --- streams.Stream -----------------------------------------------------------------------------------------------

    @property
    def is_drained(self) -> bool:
        return self._faults is None and getattr(self.inner, "is_drained", False)

    @property
    def ended(self) -> bool:
        return self._ended or (self.inner.ended and (self._faults is None or not self._faults.pending))

    @property
    def deadline(self) -> float | None:
        if self._ended:
            return None
        return self.inner.deadline if self._faults is None else self._faults.deadline

    @property
    def delivered(self) -> Sequence[int]:
        """The revisions of the objects in the first frames of the latest `take` of the handler's stream."""
        return () if self._watch is None else self._watch.delivered

    def take(self) -> list[bytes]:
        if self._ended:
            return []
        if self._faults is not None:
            return self._faults.take()
        self.begun = True
        stream = self.inner
        frames = stream.take()
        if frames:
            self.count(frames, () if self._watch is None else self._watch.delivered)
        if stream.ended:
            self.exchange.record_end("ended by the server")
        return frames

    def count(self, frames: list[bytes], revisions: Sequence[int]) -> None:
        """Counts delivered frames; `revisions` are those of the objects in the first of them."""
        exchange = self.exchange
        exchange.events = (exchange.events or 0) + len(frames)
        exchange.last_frame = frames[-1]
        if revisions and exchange.deliveries is not None:
            exchange.deliveries.add(revisions, self.clock.monotonic())
        if exchange.frames is not None:
            exchange.frames.extend(frames)
            exchange.frame_times = [*(exchange.frame_times or ()), *[time.monotonic()] * len(frames)]

    def close(self) -> None:
        self.exchange.record_end("ended by the server" if self.inner.ended else "closed by the client")
        self._ended = True
        self.inner.close()
        self._closed(self)

    def __iter__(self) -> Iterator[bytes]:
        return frames_of(self, self.clock)


class FaultFilter:
    """What the faults of a watch do to its frames. Of several limits the first one that is reached counts."""

    def __init__(self, watch: ObservedStream) -> None:
        self._watch = watch
        self._end_after: int | None = None
        self._silent_after: int | None = None
        self._silences_connection = False
        self._cut_after_events: int | None = None
        self._cut_after_bytes: int | None = None
        self._size: int | None = None
        self._joins = False
        self._halves = False
        self.pending: list[bytes] = []
        """Frames that are still to be sent in pieces; the first from `_piece_start` on."""
        self._piece_start = 0
        self._sent_bytes = 0
        self._delivered: list[int] = []
        """The revisions in the first frames that were taken, but are not counted yet because a fault holds them back."""

    # --- What a fault asks for ----------------------------------------------------------------------------------------

    def end_after(self, events: int) -> None:
        """Ends the stream cleanly after this number of further events."""
        self._end_after = _sooner(self._end_after, events + self._events)

    def silence_after(self, events: int, *, connection: bool = False) -> None:
        """Sends nothing after this number of further events; if `connection` is set, nor does an HTTP/2 connection."""
        self._silences_connection |= connection
        self._silent_after = _sooner(self._silent_after, events + self._events)

    def cut_after_events(self, events: int) -> None:
        """Breaks the connection after this number of further events."""
        self._cut_after_events = _sooner(self._cut_after_events, events + self._events)

    def cut_after_bytes(self, size: int) -> None:
        """Breaks the connection after this number of further bytes."""
        self._cut_after_bytes = _sooner(self._cut_after_bytes, size + self._sent_bytes)

    def slice(self, size: int) -> None:
        """Sends at most this number of bytes at once."""
        self._size = size if self._size is None else min(self._size, size)

    def join(self) -> None:
        """Sends all frames that are available at once as one."""
        self._joins = True

    def halve(self) -> None:
        """Sends half of the next event, and ends the stream."""
        self._halves = True

    # --- The stream ---------------------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When `take` is to be called though nothing has changed; see `streams.Stream`."""
        if self._is_past(self._silent_after):
            return None
        return self._watch.clock.monotonic() if self._is_due_to_break() else self._watch.inner.deadline

    def take(self) -> list[bytes]:
        """Returns the frames, or a piece of one, that the client gets. Raises BrokenStreamError for a cut."""
        watch = self._watch
        if self.pending:
            return [self._next_piece()]
        begun, watch.begun = watch.begun, True
        if self._is_due_to_break():
            if begun:
                raise self._connection_error()
            return []  # the header of the response is sent first
        if self._is_past(self._end_after):
            watch.finish("ended by a fault")
            return []
        if self._is_past(self._silent_after):
            if self._silences_connection:
                watch.silence_connection()
            return []
        frames = self._within_limits(self._take_all() if self._joins else self._take_inner())
        if watch.inner.ended:
            watch.exchange.record_end("ended by the server")
        if not frames:
            return frames
        if self._halves:
            watch.finish("malformed by a fault")
            return [frames[0][: len(frames[0]) // 2]]
        if self._size is None and self._cut_after_bytes is None:
            self._count(frames)
            return [b"".join(frames)] if self._joins else frames
        self.pending = list(frames)
        return [self._next_piece()]

    @property
    def _events(self) -> int:
        return self._watch.exchange.events or 0

    def _take_all(self) -> list[bytes]:
        """Takes all frames that are available now."""
        frames: list[bytes] = []
        while more := self._take_inner():
            frames += more
        return frames

    def _take_inner(self) -> list[bytes]:
        inner = self._watch.inner
        frames = inner.take()
        self._delivered += self._watch.delivered
        return frames

    def _count(self, frames: list[bytes]) -> None:
        count = len(frames)
        self._watch.count(frames, self._delivered[:count])
        del self._delivered[:count]

    def _within_limits(self, frames: list[bytes]) -> list[bytes]:
        limits = [limit for limit in (self._end_after, self._silent_after, self._cut_after_events) if limit is not None]
        return frames[: max(min(limits) - self._events, 0)] if limits else frames

    def _next_piece(self) -> bytes:
        """Returns the next piece of the pending frames."""
        frame, start = self.pending[0], self._piece_start
        size = len(frame) - start if self._size is None else min(self._size, len(frame) - start)
        if self._cut_after_bytes is not None:
            size = min(size, self._cut_after_bytes - self._sent_bytes)
            if size <= 0:
                raise self._connection_error()
        self._sent_bytes += size
        self._piece_start += size
        piece = Fragment.part_of(frame[start : start + size], begins=not start, ends=self._piece_start == len(frame))
        if piece.ends:
            del self.pending[0]
            self._piece_start = 0
            self._count([frame])
        return piece

    def _is_past(self, limit: int | None) -> bool:
        return limit is not None and self._events >= limit

    def _is_due_to_break(self) -> bool:
        has_sent_all = self._cut_after_bytes is not None and self._sent_bytes >= self._cut_after_bytes
        return has_sent_all or self._is_past(self._cut_after_events)

    def _connection_error(self) -> BrokenStreamError:
        self._watch.finish("cut by a fault")
        return BrokenStreamError(CUT)


class SharedSource:
    """The source of all observed streams of one collection; faults can wake its subscribers."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._wakes: tuple[Callable[[], None], ...] = ()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """See `streams.Source`."""
        self._wakes += (wake,)
        self.source.subscribe(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """See `streams.Source`."""
        self._wakes = tuple(other for other in self._wakes if other != wake)
        self.source.unsubscribe(wake)

    def wake(self) -> None:
        """Makes the server call `take` of the streams."""
        for wake in self._wakes:
            wake()


def _sooner(known: int | None, new: int) -> int:
    return new if known is None else min(known, new)

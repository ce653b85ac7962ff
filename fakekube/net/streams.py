"""The interface between watches and servers: a stream returns frames as they become available.

`endpoints/handlers/watch` creates streams, servers send them: the bundled server serves all streams in ONE thread
with `take`, any other WSGI server iterates and blocks. Neither side depends on the other.

Protocol of the non-blocking side: the owner registers `wake` once per `source` (not once per stream: a thousand
watchers of one collection are one call when it changes); when woken, or when `deadline` has passed on the cluster's
clock, it calls `take` of each stream of that source until it returns nothing, and closes the stream when `ended`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


Subscriber = TypeVar("Subscriber")


class Source(Protocol):
    """A source of changes: the history of one collection."""

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` (cheap, from any thread, never blocking) after every change, until unsubscribed."""

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Ends a subscription; unknown ones are ignored."""


def subscribe_weakly(subscriber: Subscriber, wake: Callable[[Subscriber], None], sources: Iterable[Source]) -> None:
    """Calls `wake(subscriber)` after every change of the sources, which do not keep the subscriber alive."""
    reference = weakref.ref(subscriber)

    def wake_if_alive() -> None:
        found = reference()
        if found is not None:
            wake(found)

    for source in sources:
        source.subscribe(wake_if_alive)


_subscribing = threading.Lock()


class Notifier:
    """A `Source` whose owner calls `notify`. Every method may be called from any thread."""

    __slots__ = ("_wakes",)

    def __init__(self) -> None:
        self._wakes: tuple[Callable[[], None], ...] = ()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """See `Source`."""
        with _subscribing:
            self._wakes = (*self._wakes, wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """See `Source`."""
        with _subscribing:
            self._wakes = tuple(one for one in self._wakes if one != wake)

    def notify(self) -> None:
        """Wakes all subscribers. From any thread."""
        for wake in self._wakes:
            wake()


class Stream(Protocol):
    """The body of a streaming response. Not thread-safe: one owner at a time.

    A stream of binary frames has the attribute `binary` with the value true, which sets the type of WebSocket
    messages. A stream whose connection a fault may silence has a method `when_silent(call)`, for servers whose
    connections serve several streams: `call` is called when nothing more may be sent on the connection.

    While an attribute `is_drained` is true, the latest `take` has left nothing until the source changes or the deadline passes;
    `take` of a stream without it is called until it returns nothing.
    """

    @property
    def source(self) -> Source:
        """The source that notifies when there may be more frames; always the same object."""

    @property
    def ended(self) -> bool:
        """True when `take` will return no more frames."""

    @property
    def deadline(self) -> float | None:
        """The time, in seconds of the cluster's monotonic clock, at which `take` is due even without a wake.

        A new value in the past makes `take` due at once: a stream returns one if `take` stopped before the end of a long search.
        """

    def take(self) -> list[bytes]:
        """Returns the frames that are ready, possibly none; never blocks. Other streams may return the same list, which must not
        be changed.
        """

    def close(self) -> None:
        """Called when the client disconnects or the server stops. May be called twice."""

    def __iter__(self) -> Iterator[bytes]:
        """Iterates over the frames and blocks in between: for servers without support for streams."""


def is_stream(result: object) -> TypeGuard[Stream]:
    """Reports whether a result of the application is a `Stream`."""
    return not isinstance(result, (list, tuple)) and hasattr(result, "take") and hasattr(result, "source")


class Fragment(bytes):
    """A part of a frame, which `Stream.take` may return in place of a frame.

    Protocols that delimit frames, as WebSocket does, must not send it as if it were a whole one.
    """

    begins: bool = True
    """Whether it is the first part of its frame."""
    ends: bool = True
    """Whether it is the last part of its frame."""

    @classmethod
    def part_of(cls, data: bytes, *, begins: bool, ends: bool) -> Fragment:
        """Returns a part of a frame."""
        fragment = cls(data)
        fragment.begins, fragment.ends = begins, ends
        return fragment


class WholeStream:
    """A `Stream` that is complete from the beginning; the server sends it without a length, as every stream."""

    deadline: float | None = None

    def __init__(self, data: bytes) -> None:
        self.source = Notifier()
        self._data = data

    @property
    def ended(self) -> bool:
        return not self._data

    def take(self) -> list[bytes]:
        data, self._data = self._data, b""
        return [data] if data else []

    def close(self) -> None:
        self._data = b""

    def __iter__(self) -> Iterator[bytes]:
        yield from self.take()


class StreamDecorator:
    """A stream that is made of another one: what a subclass does not define, and optional attributes, are those of the other.

    Subclasses define `take` and `__iter__`.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.source: Source = stream.source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        self._stream.close()


def frames_of(stream: Stream, clock: Clock, others: Iterable[Source] = ()) -> Iterator[bytes]:
    """Iterates over the frames of a stream; blocks in between, and closes it at the end.

    Args:
        stream: has a deadline on `clock`.
        others: further sources whose changes may have closed the stream.
    """
    changed = threading.Event()
    sources = (stream.source, *others)
    for source in sources:
        source.subscribe(changed.set)
    clock.subscribe(changed.set)
    try:
        while not stream.ended:
            changed.clear()
            frames = stream.take()
            yield from frames
            if not frames and not stream.ended:
                deadline = stream.deadline
                changed.wait(None if deadline is None else max((deadline - clock.monotonic()) / clock.factor, 0.001))
    finally:
        clock.unsubscribe(changed.set)
        for source in sources:
            source.unsubscribe(changed.set)
        stream.close()


class BrokenStreamError(Exception):
    """A body ends with an error: raised by its iterator, or by `take`; the server closes the connection without further data."""


class TruncatedStreamError(BrokenStreamError):
    """A body ends too early: what has been sent arrives, because the server closes the connection and does not reset it."""


class Tunnel(Stream, Protocol):
    """The stream of a 101 response with another protocol: headers and frames are sent unchanged, and the stream receives the data
    that the client sends.
    """

    @property
    def source(self) -> Notifier:
        """The source, which the stream itself notifies, too."""

    def receive(self, data: bytes) -> None:
        """Receives data from the client; never blocks."""

    @property
    def full(self) -> bool:
        """True when no more data should be received for now; its source wakes when that changes."""

"""Pipes between the connection of a client and a process in a container: bytes in one direction, with a bounded buffer.

One side writes and closes, the other reads and may abandon the pipe. `write` and `read` never block; callers subscribe to know
when to try again. Handlers with a thread of their own use the blocking methods `write_all`, `read_blocking`, `readline` and
iteration. An inlet keeps the data of a client for a pipe that may be full.

Invariants: written data is read once and in order, up to `close`; after `abandon` nothing is kept. An inlet loses no data while
the pipe has a reader, and is bounded by the size of one receive, because a connection whose inlet is `blocked` is not read.

Specified by: io.Pipe and its uses in k8s.io/streaming/pkg/httpstream (also wsstream), here with a buffer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from fakekube.net.streams import Notifier

#: Bytes that a pipe holds by default.
CAPACITY = 64 * 1024


class Pipe:
    """A pipe. Every method may be called from any thread.

    Args:
        capacity: the maximum number of bytes that are written and not read.
    """

    __slots__ = ("_abandoned", "_buffer", "_capacity", "_changed", "_closed", "_notifier")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._buffer = bytearray()
        self._closed = False
        self._abandoned = False
        self._changed = threading.Condition(threading.Lock())
        self._notifier = Notifier()

    @property
    def closed(self) -> bool:
        """Whether the writer has closed the pipe; there may be bytes left to read."""
        return self._closed

    @property
    def abandoned(self) -> bool:
        """Whether the reader has abandoned the pipe."""
        return self._abandoned

    @property
    def pending(self) -> int:
        """The number of bytes that can be read."""
        return len(self._buffer)

    @property
    def free(self) -> int:
        """The number of bytes that `write` would accept."""
        return self._capacity - len(self._buffer)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` (cheap, from any thread, never blocking) after every change, until unsubscribed."""
        self._notifier.subscribe(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Ends a subscription; unknown ones are ignored."""
        self._notifier.unsubscribe(wake)

    # --- The writer's side --------------------------------------------------------------------------------------------

    def write(self, data: bytes | memoryview) -> int:
        """Writes the beginning of `data` that fits; returns its length, 0 if the pipe is full.

        Raises BrokenPipeError if the pipe is abandoned or closed.
        """
        with self._changed:
            if self._abandoned or self._closed:
                raise BrokenPipeError("write on closed pipe")
            accepted = min(len(data), self._capacity - len(self._buffer))
            if accepted <= 0:
                return 0
            self._buffer += data if accepted == len(data) else data[:accepted]
            self._changed.notify_all()
        self._notifier.notify()
        return accepted

    def write_all(self, data: bytes) -> None:
        """Writes all of `data`; blocks while the pipe is full. Raises BrokenPipeError as `write` does."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.write(rest) :]
            if rest:
                with self._changed:
                    self._changed.wait_for(lambda: self.free > 0 or self._abandoned or self._closed)

    def close(self) -> None:
        """Ends the data; written data can still be read. May be called twice."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        self._notifier.notify()

    # --- The reader's side --------------------------------------------------------------------------------------------

    def read(self, size: int = CAPACITY) -> bytes | None:
        """Returns up to `size` bytes; None if there are none yet, b"" at the end of the data."""
        with self._changed:
            buffer = self._buffer
            if not buffer:
                return b"" if self._closed or self._abandoned else None
            data = bytes(buffer[:size])
            del buffer[:size]
            self._changed.notify_all()
        self._notifier.notify()
        return data

    def read_blocking(self, size: int = CAPACITY, timeout: float | None = None) -> bytes:
        """Returns up to `size` bytes, b"" at the end of the data; blocks until there are some.

        Raises TimeoutError if there is no data for `timeout` real seconds.
        """
        while (data := self.read(size)) is None:
            self._wait(lambda: bool(self._buffer) or self._closed or self._abandoned, timeout)
        return data

    def readline(self, timeout: float | None = None) -> bytes:
        """Returns the next line with its line end, or the rest at the end of the data; blocks until it is available.

        A line longer than the capacity is returned in pieces. Raises TimeoutError as `read_blocking` does.
        """
        self._wait(
            lambda: b"\n" in self._buffer or self._closed or self._abandoned or len(self._buffer) >= self._capacity, timeout
        )
        return self.read(self._buffer.find(b"\n") + 1 or self._capacity) or b""

    def __iter__(self) -> Iterator[bytes]:
        """Iterates over the lines; blocks in between."""
        while line := self.readline():
            yield line

    def abandon(self) -> None:
        """Drops the data in the pipe; its writer gets BrokenPipeError from now on. May be called twice."""
        with self._changed:
            if self._abandoned:
                return
            self._abandoned = True
            self._buffer.clear()
            self._changed.notify_all()
        self._notifier.notify()

    def _wait(self, ready: Callable[[], bool], timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not ready():
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"no data for {timeout} s")
                self._changed.wait(left)


class TerminalSize(NamedTuple):
    """The size of a terminal, in characters."""

    width: int
    height: int


class TerminalSizeQueue:
    """The sizes of a client's terminal, in order. Every method may be called from any thread."""

    #: The maximum number of sizes; older ones are dropped.
    _KEPT = 64

    def __init__(self) -> None:
        self._sizes: deque[TerminalSize] = deque(maxlen=self._KEPT)
        self._notifier = Notifier()
        self.latest: TerminalSize | None = None
        """The last size, whether it has been taken or not; None before the first."""

    def put(self, size: TerminalSize) -> None:
        """Adds a size."""
        self.latest = size
        self._sizes.append(size)
        self._notifier.notify()

    def next(self) -> TerminalSize | None:
        """Takes the next size; None if there is none."""
        try:
            return self._sizes.popleft()
        except IndexError:
            return None

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` after every new size, until unsubscribed."""
        self._notifier.subscribe(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Ends a subscription; unknown ones are ignored."""
        self._notifier.unsubscribe(wake)


class Inlet:
    """The writing end of a pipe. Used by one thread at a time."""

    __slots__ = ("_closing", "_pending", "pipe")

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._pending = bytearray()
        self._closing = False

    @property
    def blocked(self) -> bool:
        """Whether there is buffered data."""
        return bool(self._pending)

    @property
    def waiting(self) -> int:
        """The number of buffered bytes."""
        return len(self._pending)

    def put(self, data: bytes) -> None:
        """Writes data to the pipe, or buffers it; drops it if the inlet is closed or the pipe has no reader."""
        if not self._closing:
            self._pending += data
            self.flush()

    def flush(self) -> None:
        """Writes buffered data to the pipe, as far as there is space."""
        if self.pipe.abandoned:
            self._pending.clear()
        while self._pending and (free := self.pipe.free) > 0:
            with suppress(BrokenPipeError):
                self.pipe.write(bytes(self._pending[:free]))
            del self._pending[:free]
        if self._closing and not self._pending:
            self.pipe.close()

    def close(self) -> None:
        """Ends the data: the pipe is closed when all buffered data is written."""
        self._closing = True
        self.flush()

    def abandon(self) -> None:
        """Drops buffered data and closes the pipe. Called when the client has disconnected."""
        self._pending.clear()
        self._closing = True
        self.pipe.close()

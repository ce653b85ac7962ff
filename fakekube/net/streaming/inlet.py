"""Buffers the data of a client for a pipe that may be full.

Invariant: no data is lost while the pipe has a reader. The buffer is bounded by the size of one receive, because a connection
whose inlet is `blocked` is not read.

Specified by: io.Pipe between the read loop of k8s.io/streaming/pkg/httpstream/wsstream and the container.
"""

from __future__ import annotations

from contextlib import suppress

from fakekube.net.pipes import Pipe


class Inlet:
    """The writing end of a pipe. Used by one thread at a time."""

    __slots__ = ("_closing", "_pending", "pipe")

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._pending = bytearray()
        self._closing = False

    @property
    def blocked(self) -> bool:
        """Reports whether there is buffered data."""
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

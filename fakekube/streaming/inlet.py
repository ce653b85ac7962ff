"""Data on its way from a client into a pipe that may be full.

Invariant: data is never lost while its reader is there, and what waits is bounded by what the server receives at once,
for a connection whose inlet is `blocked` is not read.

Specified by: io.Pipe between the read loop of k8s.io/streaming/pkg/httpstream/wsstream and the container.
"""

from __future__ import annotations

from contextlib import suppress

from fakekube.pipes import Pipe

__all__ = ["Inlet"]


class Inlet:
    """The writing end of a pipe. Belongs to one thread at a time."""

    __slots__ = ("_closing", "_pending", "pipe")

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._pending = bytearray()
        self._closing = False

    @property
    def blocked(self) -> bool:
        """Reports whether data waits for the reader."""
        return bool(self._pending)

    @property
    def waiting(self) -> int:
        """The number of bytes that wait for the reader."""
        return len(self._pending)

    def put(self, data: bytes) -> None:
        """Passes data on; it is dropped if the inlet has been closed or the reader has gone away."""
        if not self._closing:
            self._pending += data
            self.flush()

    def flush(self) -> None:
        """Passes on what waits, as far as there is room."""
        if self.pipe.abandoned:
            self._pending.clear()
        while self._pending and (free := self.pipe.free) > 0:
            with suppress(BrokenPipeError):
                self.pipe.write(bytes(self._pending[:free]))
            del self._pending[:free]
        if self._closing and not self._pending:
            self.pipe.close()

    def close(self) -> None:
        """Ends the data: the pipe is closed when all that waits has been passed on."""
        self._closing = True
        self.flush()

    def abandon(self) -> None:
        """Drops what waits and closes the pipe: the client has gone away."""
        self._pending.clear()
        self._closing = True
        self.pipe.close()

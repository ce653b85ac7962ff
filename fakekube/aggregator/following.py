"""An answer that may take any time, such as a watch: a thread reads it, and the server takes what has come.

Invariant: the thread reads no further than a bound ahead of the client, so that a slow client costs no memory; it ends when
the answer does, or when the client goes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from fakekube.aggregator.backends import BackendBody, BackendError
from fakekube.streams import BrokenStreamError, Source
from fakekube.threads import WORKERS

__all__ = ["Arrivals", "Following"]

_AHEAD = 256 * 1024


class Arrivals:
    """A source that tells its subscribers when something has come (`streams.Source`)."""

    def __init__(self) -> None:
        self._wakes: tuple[Callable[[], None], ...] = ()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """See `streams.Source`."""
        self._wakes = (*self._wakes, wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """See `streams.Source`."""
        self._wakes = tuple(one for one in self._wakes if one is not wake)

    def tell(self) -> None:
        """Something has come."""
        for wake in self._wakes:
            wake()


class Following:
    """The body of such an answer: a `streams.Stream`."""

    deadline: float | None = None

    def __init__(self, body: BackendBody) -> None:
        self._arrivals = Arrivals()
        self.source: Source = self._arrivals
        self._body = body
        self._changed = threading.Condition()
        self._frames: list[bytes] = []
        self._size = 0
        self._finished = False
        self._broken = False
        self._closed = False
        WORKERS.run(self._read)

    @property
    def ended(self) -> bool:
        return self._finished and not self._frames and not self._broken

    def take(self) -> list[bytes]:
        with self._changed:
            frames, self._frames, self._size = self._frames, [], 0
            self._changed.notify_all()
        if self._broken and not frames:
            raise BrokenStreamError
        return frames

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._body.close()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._frames or self._finished or self._closed)
            frames = self.take()
            if not frames:
                return
            yield from frames

    def _read(self) -> None:
        try:
            for piece in self._body:
                with self._changed:
                    self._changed.wait_for(lambda: self._size < _AHEAD or self._closed)
                    if self._closed:
                        return
                    self._frames.append(piece)
                    self._size += len(piece)
                    self._changed.notify_all()
                self._arrivals.tell()
        except BackendError:
            self._broken = not self._closed
        finally:
            with self._changed:
                self._finished = True
                self._changed.notify_all()
            self._body.close()
            self._arrivals.tell()

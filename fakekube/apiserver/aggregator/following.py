"""A streaming response, such as a watch: a thread reads it, and the server takes the received bytes.

Invariant: the number of bytes that the thread reads ahead of the client is limited, so a slow client costs no memory. The
thread ends with the response, or when the client disconnects.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from fakekube.apiserver.aggregator.backends import BackendBody, BackendError
from fakekube.base.threads import WORKERS
from fakekube.net.streams import BrokenStreamError, Notifier

_AHEAD = 256 * 1024


class Following:
    """The body of a streaming response: a `streams.Stream`."""

    deadline: float | None = None

    def __init__(self, body: BackendBody) -> None:
        self.source = Notifier()
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
                self.source.notify()
        except BackendError:
            self._broken = not self._closed
        finally:
            with self._changed:
                self._finished = True
                self._changed.notify_all()
            self._body.close()
            self.source.notify()

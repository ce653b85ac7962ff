"""Tells floods from use: frames that ask for nothing, and requests that are taken back at once, are free, but not in any number.

Specified by: nothing that Go's server does, which bounds only what waits; the bounds of cancelled requests are nghttp2's
(--max-reset-stream-rate).
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.server.http2.frames import ConnectionFailure, ErrorCode

__all__ = ["Limits"]

_MAX_IDLE_FRAMES = 10_000
_IDLE_FRAME_SECONDS = 30.0
"""In which time a client may send so many frames that ask for nothing, between two that do."""
_MAX_CANCELLED = 1000
_CANCELLED_PER_SECOND = 33
"""How many requests a client may take back unanswered at once, and in the long run."""


class Limits:
    """What one client has sent lately. Its methods raise ConnectionFailure."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._idle_frames = 0
        self._idle_since = 0.0
        self._cancelled = 0.0
        self._cancelled_at = 0.0

    def useful_frame(self) -> None:
        """A frame that asks for something."""
        self._idle_frames = 0

    def idle_frame(self) -> None:
        """A frame that asks for nothing."""
        self._idle_frames += 1
        if self._idle_frames == 1:
            self._idle_since = self._monotonic()
        elif self._idle_frames > _MAX_IDLE_FRAMES:
            if self._monotonic() - self._idle_since < _IDLE_FRAME_SECONDS:
                raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)
            self._idle_frames = 0

    def cancelled_request(self) -> None:
        """A request that is taken back before it is answered."""
        now = self._monotonic()
        self._cancelled = max(0.0, self._cancelled - (now - self._cancelled_at) * _CANCELLED_PER_SECOND) + 1
        self._cancelled_at = now
        if self._cancelled > _MAX_CANCELLED:
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)

"""Limits the rates of frames without effect and of cancelled requests, and ends connections that exceed them.

Specified by: nghttp2 for the limits of cancelled requests (--max-reset-stream-rate). Go's server only limits queued frames.
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.net.http2.frames import ConnectionFailure, ErrorCode

_MAX_IDLE_FRAMES = 10_000
_IDLE_FRAME_SECONDS = 30.0
"""A client may send `_MAX_IDLE_FRAMES` frames without effect in this time, between two with an effect."""
_MAX_CANCELLED = 1000
_CANCELLED_PER_SECOND = 33
"""The limits of requests that are cancelled before their responses: at once, and per second in the long run."""


class Limits:
    """The counters of one connection. The methods raise ConnectionFailure if a limit is exceeded."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._idle_frames = 0
        self._idle_since = 0.0
        self._cancelled = 0.0
        self._cancelled_at = 0.0

    def useful_frame(self) -> None:
        """Counts a frame with an effect: data, or a request."""
        self._idle_frames = 0

    def idle_frame(self) -> None:
        """Counts a frame without an effect on a request."""
        self._idle_frames += 1
        if self._idle_frames == 1:
            self._idle_since = self._monotonic()
        elif self._idle_frames > _MAX_IDLE_FRAMES:
            if self._monotonic() - self._idle_since < _IDLE_FRAME_SECONDS:
                raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)
            self._idle_frames = 0

    def cancelled_request(self) -> None:
        """Counts a request that the client cancels before its response."""
        now = self._monotonic()
        self._cancelled = max(0.0, self._cancelled - (now - self._cancelled_at) * _CANCELLED_PER_SECOND) + 1
        self._cancelled_at = now
        if self._cancelled > _MAX_CANCELLED:
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)

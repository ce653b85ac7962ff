"""The part of SPDY/3.1 that Kubernetes uses: streams with headers, data, half-close and reset; pings; no flow control.

Specified by: the SPDY protocol, draft 3.1; github.com/moby/spdystream.
"""

from __future__ import annotations

from fakekube.net.spdy.connection import Connection, Stream
from fakekube.net.spdy.frames import FrameError

__all__ = ["Connection", "FrameError", "Stream"]

"""One stream of a connection: its state, its windows, and what waits in it in either direction.

Invariant: bytes of a request's body that the application has not read are held against both windows, so that they are never more
than the stream's window.

Specified by: golang.org/x/net/http2 (server.go: stream, flow.go: inflow).
"""

from __future__ import annotations

from fakekube.server.http1 import Request

__all__ = ["Inflow", "RequestStream"]

_LEAST_REFRESH = 4096


class Inflow:
    """What a client may send: a window that is refreshed in portions worth a frame."""

    __slots__ = ("available", "unsent")

    def __init__(self, size: int) -> None:
        self.available = size
        self.unsent = 0
        """Bytes that may be granted, and have not been."""

    def take(self, count: int) -> bool:
        """Use up a part of the window; false if there is not as much."""
        if count > self.available:
            return False
        self.available -= count
        return True

    def grant(self, count: int) -> int:
        """Give back bytes; the increment to tell the client of now."""
        self.unsent += count
        if not self.unsent or (self.unsent < _LEAST_REFRESH and self.unsent < self.available):
            return 0
        increment, self.unsent = self.unsent, 0
        self.available += increment
        return increment


class RequestStream:
    """A request with its answer. Guarded by the lock of its connection."""

    __slots__ = (
        "body",
        "body_error",
        "closed",
        "continued",
        "got_trailers",
        "inflow",
        "is_answered",
        "is_last",
        "outbox",
        "received",
        "remote_ended",
        "request",
        "stream_id",
        "window",
    )

    def __init__(self, stream_id: int, request: Request, window: int, receive_window: int, remote_ended: bool) -> None:
        self.stream_id = stream_id
        self.request = request
        self.window = window
        """Bytes that the client takes."""
        self.inflow = Inflow(receive_window)
        self.body = bytearray()
        """What came of the request's body and has not been read."""
        self.received = 0
        self.body_error = ""
        self.got_trailers = False
        self.remote_ended = remote_ended
        self.is_answered = False
        """The head of the answer was sent."""
        self.is_last = False
        """The connection takes no new streams behind this answer, or its head if the body comes in pieces."""
        self.continued = False
        """`100 Continue` was sent."""
        self.closed = False
        """Both sides have ended, one has reset the stream, or the connection is gone."""
        self.outbox = memoryview(b"")
        """What waits for the windows of a body that is all there; the answer ends with it."""

    @property
    def body_is_complete(self) -> bool:
        """No more of the request's body will come."""
        return self.remote_ended or self.closed or bool(self.body_error)

"""One stream of a connection: its state, its windows, and the data that waits in either direction.

Invariant: bytes of a request's body that the application has not read count against both windows, so that they never exceed the
window of the stream.

Specified by: golang.org/x/net/http2 (server.go: stream, flow.go: inflow).
"""

from __future__ import annotations

from fakekube.net.http1 import Request

_LEAST_REFRESH = 4096


class Inflow:
    """The window for data of the client. Small increments are combined into one WINDOW_UPDATE."""

    __slots__ = ("available", "unsent")

    def __init__(self, size: int) -> None:
        self.available = size
        self.unsent = 0
        """Bytes by which the window can be enlarged, and has not been yet."""

    def take(self, count: int) -> bool:
        """Reduces the window; returns False if it is too small."""
        if count > self.available:
            return False
        self.available -= count
        return True

    def grant(self, count: int) -> int:
        """Gives back bytes; returns the increment to send now, which may be 0."""
        self.unsent += count
        if not self.unsent or (self.unsent < _LEAST_REFRESH and self.unsent < self.available):
            return 0
        increment, self.unsent = self.unsent, 0
        self.available += increment
        return increment


class RequestStream:
    """A request and its response. Guarded by the lock of its connection."""

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
        """The client's window for the stream, in bytes."""
        self.inflow = Inflow(receive_window)
        self.body = bytearray()
        """The received bytes of the request's body that have not been read."""
        self.received = 0
        self.body_error = ""
        self.got_trailers = False
        self.remote_ended = remote_ended
        self.is_answered = False
        """Whether the header of the response was sent."""
        self.is_last = False
        """Whether the connection accepts no new streams after this response, or after its header if its body comes in pieces."""
        self.continued = False
        """Whether `100 Continue` was sent."""
        self.closed = False
        """Whether both sides have ended the stream, one has reset it, or the connection has ended."""
        self.outbox = memoryview(b"")
        """The rest of a complete body that waits for the windows; the response ends with it."""

    @property
    def body_is_complete(self) -> bool:
        """Reports whether no more of the request's body will arrive."""
        return self.remote_ended or self.closed or bool(self.body_error)

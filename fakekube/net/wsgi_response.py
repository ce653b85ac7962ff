"""`start_response` and the iteration over the body of a response, for all versions of HTTP.

Invariant: the header is sent once, before the first piece of the body.

Specified by: PEP 3333.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

Fields = Sequence[tuple[str, str]]
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType]


class WSGIResponse(ABC):
    """The response of the application to one request."""

    __slots__ = ("_fields", "status")

    def __init__(self) -> None:
        self._fields: Fields = ()
        self.status = ""
        """The status of the application; "" until it has called `start_response`."""

    @property
    @abstractmethod
    def head_sent(self) -> bool:
        """Reports whether the header is sent or being sent."""

    def start_response(self, status: str, fields: Fields, exc_info: _ExcInfo | None = None) -> Callable[[bytes], object]:
        """The callable of PEP 3333."""
        if exc_info is not None and self.head_sent:
            raise exc_info[1].with_traceback(exc_info[2])
        if exc_info is None and self.status:
            raise RuntimeError("start_response was called before, and there is no exc_info")
        self.status = status
        self._fields = fields
        return self.write

    def send_result(self, result: Iterable[bytes]) -> None:
        """Sends the iterable that the application returned. Raises Disconnected if the client has disconnected."""
        if isinstance(result, (list, tuple)) and not self.head_sent:
            self._send_whole(result[0] if len(result) == 1 else b"".join(result))
            return
        for piece in result:
            if piece:
                self.write(piece)
        if self.head_sent:
            self._send_end()
        else:
            self._send_whole(b"")

    @abstractmethod
    def write(self, piece: bytes) -> None:
        """Sends a piece of the body, preceded by the header if it is the first one."""

    @abstractmethod
    def _send_whole(self, body: bytes) -> None:
        """Sends the header and the whole body."""

    @abstractmethod
    def _send_end(self) -> None:
        """Ends a body that was sent in pieces."""

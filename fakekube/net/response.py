"""Response headers in the format of net/http, and `start_response` with the iteration over the body.

The fields of the application come first, unchanged; then Date, Content-Length, Connection and Transfer-Encoding if needed.
Nothing here sends.

`start_response` and the iteration over the body of a response, for all versions of HTTP.

Invariant: the header is sent once, before the first piece of the body.

Specified by: PEP 3333.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType

from fakekube.net.http1 import Request

_BODILESS = frozenset({"204", "304"})


@dataclass(slots=True)
class Head:
    """An encoded header, and what it declares."""

    data: bytes
    has_body: bool
    """False for a response to HEAD, and for statuses without a body."""
    length: int | None
    """The declared Content-Length; None if there is none."""
    chunked: bool
    keep_alive: bool
    """Whether another request may follow on the connection."""


def encode_head(
    request: Request, status: str, fields: Sequence[tuple[str, str]], *, date: str, length: int | None, keep_alive: bool
) -> Head:
    """Encodes the header of a response.

    Args:
        request: the request.
        status, fields: those of the application.
        date: the value of Date.
        length: the length of the whole body, if it is known and the application has not declared it.
        keep_alive: whether the server keeps the connection open, if the client does.
    """
    code = status[:3]
    is_bodiless = code in _BODILESS or code[0] == "1"
    has_body = not is_bodiless and request.method != "HEAD"
    is_1_1 = request.version >= (1, 1)
    declared = length if has_body or (length and not is_bodiless) else None
    says_connection = False
    lines = ["HTTP/1.1 " + status if is_1_1 else "HTTP/1.0 " + status]
    for name, value in fields:
        match name.lower():
            case "connection":
                if value.lower() != "close":
                    continue
                keep_alive, says_connection = False, True
            case "content-length":
                declared = None if is_bodiless else int(value)
                continue
            case "date":
                date = value
                continue
            case "transfer-encoding":
                continue
            case "content-type":
                if code == "304":
                    continue
        lines.append(f"{name}: {value}")
    lines.append("Date: " + date)
    if declared is not None:
        lines.append(f"Content-Length: {declared}")
    chunked = has_body and declared is None and is_1_1
    keep_alive = keep_alive and request.fields.keep_alive and (not has_body or declared is not None or chunked)
    if keep_alive is not is_1_1 and not says_connection:
        lines.append("Connection: keep-alive" if keep_alive else "Connection: close")
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    text = "\r\n".join(lines)
    breaks = len(lines) - 1
    if text.count("\n") != breaks or text.count("\r") != breaks:
        text = "\r\n".join([line.replace("\r", " ").replace("\n", " ") for line in lines])
    return Head((text + "\r\n\r\n").encode("latin-1"), has_body, declared, chunked, keep_alive)


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

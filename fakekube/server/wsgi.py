"""The application's side of a response: `start_response`, and the iteration over the body, for every version of HTTP.

Invariant: the head is sent before the first piece of the body, and once.

Specified by: PEP 3333.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

__all__ = ["Fields", "WSGIResponse"]

Fields = Sequence[tuple[str, str]]
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType]


class WSGIResponse(ABC):
    """The response to one request, as the application gives it."""

    __slots__ = ("_fields", "status")

    def __init__(self) -> None:
        self._fields: Fields = ()
        self.status = ""
        """The application's; empty until it called `start_response`."""

    @property
    @abstractmethod
    def head_sent(self) -> bool:
        """Whether the head is sent, or is being sent."""

    def start_response(self, status: str, fields: Fields, exc_info: _ExcInfo | None = None) -> Callable[[bytes], object]:
        """As PEP 3333 has it."""
        if exc_info is not None and self.head_sent:
            raise exc_info[1].with_traceback(exc_info[2])
        if exc_info is None and self.status:
            raise RuntimeError("start_response was called before, and there is no exc_info")
        self.status = status
        self._fields = fields
        return self.write

    def give(self, result: Iterable[bytes]) -> None:
        """Send what the application returned.

        Raises:
            Disconnected: the client is gone
        """
        if isinstance(result, (list, tuple)) and not self.head_sent:
            self._give_whole(result[0] if len(result) == 1 else b"".join(result))
            return
        for piece in result:
            if piece:
                self.write(piece)
        if self.head_sent:
            self._end()
        else:
            self._give_whole(b"")

    @abstractmethod
    def write(self, piece: bytes) -> None:
        """Send a piece of the body, and the head before the first one."""

    @abstractmethod
    def _give_whole(self, body: bytes) -> None:
        """Send head and body."""

    @abstractmethod
    def _end(self) -> None:
        """End a body that was sent in pieces."""

"""The interface of extension API servers: a backend takes a request and returns the response head with its body as a stream.

Invariant: the caller closes every response. A backend never waits beyond its deadline.

Specified by: net/http (RoundTripper).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from fakekube.net.streams import BrokenStreamError

Headers = list[tuple[str, str]]


class BackendError(Exception):
    """There is no response; has the error message of net/http."""


class BackendTimeoutError(BackendError):
    """The deadline has passed."""


@dataclass(slots=True)
class BackendRequest:
    """A request."""

    method: str
    path: str
    """The encoded path of the request line, without the query."""
    query: str
    """The encoded query of the request line, or ""."""
    headers: Headers
    body: Iterable[bytes] = ()
    length: int | None = 0
    """The length of the body in bytes; None if it is sent in chunks."""

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path


class BackendBody(Protocol):
    """The body of a response."""

    def __iter__(self) -> Iterator[bytes]:
        """Yields the body as it is received. Raises BackendError if the connection breaks."""

    def close(self) -> None:
        """Closes the connection. May be called from any thread, and twice."""


@dataclass(slots=True)
class BackendResponse:
    """A response."""

    status: int
    headers: Headers
    """The headers as received, including hop-by-hop headers."""
    body: BackendBody
    length: int | None = None
    """The length of the body in bytes; None if it is unknown."""


class Backend(Protocol):
    """A server."""

    def send(self, request: BackendRequest, deadline: float | None) -> BackendResponse:
        """Sends a request and reads the head of the response.

        Args:
            request: its headers are complete, except for Content-Length and Transfer-Encoding.
            deadline: the deadline of the request and its response, by `time.monotonic()`; None for none.

        Raises:
            BackendError: there is no response.
            BackendTimeoutError: the deadline has passed.
        """
        ...


class ForwardedBody:
    """A body that is forwarded while it is received; the WSGI server closes it."""

    def __init__(self, body: BackendBody) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except BackendError as error:
            raise BrokenStreamError(str(error)) from None
        finally:
            self._body.close()

    def close(self) -> None:
        self._body.close()


def header(headers: Headers, name: str) -> str:
    """Returns the first header with a name, which is in lower case; "" if there is none."""
    return next((value for key, value in headers if key.lower() == name), "")

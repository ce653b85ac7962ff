"""The interface of extension API servers: a backend takes a request and returns the response head with its body as a stream.

Invariant: the caller closes every response. A backend never waits beyond its deadline.

Specified by: net/http (RoundTripper).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Backend", "BackendAnswer", "BackendBody", "BackendError", "BackendRequest", "BackendTimeoutError", "header"]

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
    """Bytes of the body; None: it is sent in chunks."""

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path


class BackendBody(Protocol):
    """The body of an answer."""

    def __iter__(self) -> Iterator[bytes]:
        """Its pieces as they come. Raises BackendError if it breaks off."""

    def close(self) -> None:
        """End the exchange, from any thread; may be called twice."""


@dataclass(slots=True)
class BackendAnswer:
    """A response."""

    status: int
    headers: Headers
    """The headers as received, including hop-by-hop headers."""
    body: BackendBody
    length: int | None = None
    """Bytes of the body, if that is known."""


class Backend(Protocol):
    """A server."""

    def send(self, request: BackendRequest, deadline: float | None) -> BackendAnswer:
        """Ask it.

        Args:
            request: with all headers but those that frame the body.
            deadline: of `time.monotonic()`, for the whole exchange; None for as long as it takes.

        Raises:
            BackendError: there is no answer.
            BackendTimeoutError: not in time.
        """
        ...


def header(headers: Headers, name: str) -> str:
    """The first header of a name (in lower case); "" if there is none."""
    return next((value for key, value in headers if key.lower() == name), "")

"""What a watch hands to a server: frames that become ready over time.

Shared furniture between `endpoints/handlers/watch` (which makes streams) and whatever sends them: the bundled server lets ONE
thread serve all streams by `take`, any other WSGI server iterates and blocks. Neither side knows the other.

Protocol of the non-blocking side: the owner registers `wake` once per `source` (not once per stream: a thousand
watchers of one collection are one call when it changes); when woken, or when `deadline` has passed on the cluster's
clock, it calls `take` of each stream of that source until it returns nothing, and closes the stream when `ended`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

__all__ = ["BrokenStreamError", "Source", "Stream", "Tunnel"]


class Source(Protocol):
    """Something that changes: one collection's history."""

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Call `wake` (cheap, from any thread, never blocking) after every change, until unsubscribed."""

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """End a subscription; unknown ones are ignored."""


class Stream(Protocol):
    """The body of a streaming answer. Not thread-safe: one owner at a time.

    One whose frames are no text has an attribute `binary`, which is true: it matters for WebSocket messages.
    """

    source: Source
    @property
    def ended(self) -> bool:
        """True once nothing more will come after what `take` has returned."""

    @property
    def deadline(self) -> float | None:
        """When, on the cluster's monotonic clock (seconds), `take` is due even without a wake."""

    def take(self) -> list[bytes]:
        """The frames that are ready, possibly none; never blocks. Bytes may be shared with other streams."""

    def close(self) -> None:
        """The client is gone, or the server stops. May be called twice."""

    def __iter__(self) -> Iterator[bytes]:
        """The frames as they come, blocking in between: for servers that know nothing of streams."""


class BrokenStreamError(Exception):
    """A body broke off: raised by its iterator, or by `take`; the server ends the connection without a word."""


class Tunnel(Stream, Protocol):
    """A stream of an answer 101 that speaks another protocol: its frames are sent as they are, after the headers as they are,
    and it is given what the client sends.
    """

    def receive(self, data: bytes) -> None:
        """The client has sent this; never blocks."""

    @property
    def full(self) -> bool:
        """No more should be received for now; its source tells when that changes."""

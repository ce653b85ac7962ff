"""What a call of a webhook is to those who need one; who makes it is given to them (`webhooks.Caller`).

A call takes time, may fail, and leaves the process: it is never made under a lock, nor by a thread that others wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

__all__ = ["Call", "CallError", "CallTimeoutError"]


class CallError(Exception):
    """A call failed; the text is what the real server says of it."""


class CallTimeoutError(CallError):
    """The webhook took too long."""


class Call(Protocol):
    """Sends a review to a webhook and gives back the one that it answers with."""

    def __call__(self, client_config: Mapping[str, Any], review: dict[str, Any], *, timeout: float = 30.0) -> dict[str, Any]:
        """The answer, decoded by the type of the kind that was sent; `kind` and `apiVersion` are what it says of itself.

        Args:
            client_config: the clientConfig of a webhook: url or service, caBundle.
            review: what is sent, with `kind` and `apiVersion`, members in the order in which they are to be written.
            timeout: seconds that the whole call may take, at most 30.

        Raises:
            CallError: the webhook could not be called, or its answer is none.
        """
        ...

    def begin(
        self, client_config: Mapping[str, Any], review: dict[str, Any], *, timeout: float = 30.0
    ) -> Callable[[], dict[str, Any]]:
        """Begin a call, so that others can begin before it ends. Returns what waits for the answer, and must be called: it
        gives or raises what a call does."""
        ...

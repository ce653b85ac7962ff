"""The interface for calling webhooks; `apiserver.webhooks.caller.Caller` implements it.

Invariant: a call, which takes time and may fail, is never made while a lock is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

__all__ = ["Call", "CallError", "CallTimeoutError"]


class CallError(Exception):
    """A call failed; has the error message of the real server."""


class CallTimeoutError(CallError):
    """The call timed out."""


class Call(Protocol):
    """Sends a review to a webhook and returns the review in its response."""

    def __call__(self, client_config: Mapping[str, Any], review: dict[str, Any], *, timeout: float = 30.0) -> dict[str, Any]:
        """Returns the response, decoded by the type of the sent kind, with its own `kind` and `apiVersion`.

        Args:
            client_config: the clientConfig of a webhook: url or service, caBundle.
            review: the request, with `kind` and `apiVersion`; members are encoded in the order of the dict.
            timeout: seconds for the whole call, at most 30.

        Raises:
            CallError: the webhook could not be called, or its response is invalid.
        """
        ...

    def begin(
        self, client_config: Mapping[str, Any], review: dict[str, Any], *, timeout: float = 30.0
    ) -> Callable[[], dict[str, Any]]:
        """Begins a call, so that several calls can run at the same time. Returns a function that waits for the response
        and returns or raises like `__call__`; it must be called."""
        ...

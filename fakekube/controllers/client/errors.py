"""The errors of the client."""

from __future__ import annotations

from typing import Any

__all__ = ["ApiError"]


class ApiError(Exception):
    """The API server responded with an error. `status` is the Status object, the text is its message."""

    def __init__(self, status: dict[str, Any]) -> None:
        super().__init__(status.get("message", ""))
        self.status = status

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return int(self.status.get("code", 0))

    @property
    def reason(self) -> str:
        """The machine-readable reason, such as NotFound."""
        return str(self.status.get("reason", ""))

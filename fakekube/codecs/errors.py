"""What a codec raises, and nothing else, whatever bytes it is given."""

from __future__ import annotations

__all__ = ["ContentError", "DecodeError", "EncodeError"]


class DecodeError(ValueError):
    """These bytes are no document of the format; the text is the real server's."""


class ContentError(DecodeError):
    """The document tells its kind, but what is in it cannot be read."""

    def __init__(self, message: str, api_version: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.api_version = api_version
        self.kind = kind


class EncodeError(ValueError):
    """This object has no form in the format."""

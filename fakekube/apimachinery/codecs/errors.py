"""The errors of codecs. A codec raises no other exceptions for any input."""

from __future__ import annotations


class DecodeError(ValueError):
    """The bytes are not a valid document of the format. The message is the real server's."""


class ContentError(DecodeError):
    """The kind of the document can be decoded, but not its content."""

    def __init__(self, message: str, api_version: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.api_version = api_version
        self.kind = kind


class EncodeError(ValueError):
    """The object cannot be encoded in the format."""

"""Serializers: JSON, YAML, CBOR and Protobuf, and the framing of watch streams.

Each format has a package that encodes and decodes one document. `formats` encodes objects, lists and watch events from cached
parts and separates the events of a stream, and `document` caches the encodings of an object. Content negotiation belongs to
`endpoints`.

Invariant: a codec raises no other exceptions than those below, for any input.
"""

from __future__ import annotations

# --- Errors ------------------------------------------------------------------------------------------------------------


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

"""What a codec raises, and nothing else, whatever bytes it is given."""

from __future__ import annotations

__all__ = ["DecodeError", "EncodeError"]


class DecodeError(ValueError):
    """These bytes are no document of the format; the text is the real server's."""


class EncodeError(ValueError):
    """This object has no form in the format."""

"""Decodes base64 like Go's encoding/base64, with the same error messages.

The decoder skips line breaks and nothing else. An error contains the byte offset at which Go's decoder stops, which is
not always the offset of the invalid byte.

Specified by: Go's encoding/base64 (StdEncoding, decodeQuantum).
"""

from __future__ import annotations

import binascii
from typing import Final

_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LINE_BREAKS: Final = b"\r\n"


class Base64Error(ValueError):
    """A string is not valid base64. The message is Go's."""


def canonical(text: str) -> str:
    """Returns the form in which the real server prints these base64 data.

    Raises:
        Base64Error: the string is not valid base64.
    """
    try:
        if encode(binascii.a2b_base64(text, strict_mode=True)) == text:
            return text
    except ValueError:
        pass
    return _read(text.encode("utf-8", "surrogatepass"))


def encode(data: bytes) -> str:
    """Encodes bytes as base64."""
    return binascii.b2a_base64(data, newline=False).decode()


def _read(source: bytes) -> str:
    """Decodes quantum by quantum, to find the offset of an error."""
    position = 0
    while position < len(source):
        position = _quantum(source, position)
    kept = source.translate(None, _LINE_BREAKS)
    return encode(binascii.a2b_base64(kept))


def _quantum(source: bytes, position: int) -> int:
    """Checks the four characters at a position, ignoring line breaks. Returns the position after them."""
    count = 0
    while count < 4:
        if position == len(source):
            if count == 0:
                return position
            raise _illegal(position - count)
        byte = source[position]
        position += 1
        if byte in _ALPHABET:
            count += 1
        elif byte not in _LINE_BREAKS:
            if byte != ord("="):
                raise _illegal(position - 1)
            return _padding(source, position, count)
    return position


def _padding(source: bytes, position: int, count: int) -> int:
    """Checks what follows the first `=` of a quantum; `count` characters precede it."""
    if count < 2:
        raise _illegal(position - 1)
    if count == 2:
        position = _skip_line_breaks(source, position)
        if position == len(source):
            raise _illegal(len(source))
        if source[position] != ord("="):
            raise _illegal(position - 1)
        position += 1
    position = _skip_line_breaks(source, position)
    if position < len(source):
        raise _illegal(position)
    return position


def _skip_line_breaks(source: bytes, position: int) -> int:
    while position < len(source) and source[position] in _LINE_BREAKS:
        position += 1
    return position


def _illegal(position: int) -> Base64Error:
    return Base64Error(corrupt_input_error(position))


def corrupt_input_error(position: int) -> str:
    """Returns the text of base64.CorruptInputError."""
    return f"illegal base64 data at input byte {position}"

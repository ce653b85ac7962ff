"""Bytes in JSON: base64 as Go's encoding/base64 reads it, with its words for what is wrong.

Line breaks are skipped, nothing else; a message tells at which byte the reader gave up, which is not always
where a reader would point.

Specified by: Go's encoding/base64 (StdEncoding, decodeQuantum).
"""

from __future__ import annotations

import binascii
from typing import Final

__all__ = ["Base64Error", "canonical", "encoded"]

_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LINE_BREAKS: Final = b"\r\n"


class Base64Error(ValueError):
    """A text is no base64; the words are Go's."""


def canonical(text: str) -> str:
    """What the real server prints for bytes that were written so.

    Raises:
        Base64Error: in Go's words.
    """
    try:
        if encoded(binascii.a2b_base64(text, strict_mode=True)) == text:
            return text
    except ValueError:
        pass
    return _read(text.encode("utf-8", "surrogatepass"))


def encoded(data: bytes) -> str:
    """Bytes as the real server prints them."""
    return binascii.b2a_base64(data, newline=False).decode()


def _read(source: bytes) -> str:
    """The slow and exact way: quantum by quantum."""
    position = 0
    while position < len(source):
        position = _quantum(source, position)
    kept = source.translate(None, _LINE_BREAKS)
    return encoded(binascii.a2b_base64(kept))


def _quantum(source: bytes, position: int) -> int:
    """Check four characters (line breaks do not count) from a position; the position after them."""
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
    """Check what follows the first `=`, which came after `count` characters."""
    if count < 2:
        raise _illegal(position - 1)
    if count == 2:
        position = _skipped(source, position)
        if position == len(source):
            raise _illegal(len(source))
        if source[position] != ord("="):
            raise _illegal(position - 1)
        position += 1
    position = _skipped(source, position)
    if position < len(source):
        raise _illegal(position)
    return position


def _skipped(source: bytes, position: int) -> int:
    while position < len(source) and source[position] in _LINE_BREAKS:
        position += 1
    return position


def _illegal(position: int) -> Base64Error:
    return Base64Error(f"illegal base64 data at input byte {position}")

"""Formats CBOR in diagnostic notation, for errors that contain the body: `{'kind': "x", 1: [_ 2.0]}`.

Specified by: RFC 8949, section 8; github.com/fxamacker/cbor/v2 (diagnose.go), with byte strings as text where
they are UTF-8.
"""

from __future__ import annotations

import struct
from typing import Final

from fakekube.apimachinery.codecs.cbor.items import FLOATS, SIZES
from fakekube.apimachinery.codecs.json import float_text


def diagnosis(body: bytes) -> str:
    """Returns the notation of a well-formed document; hexadecimal digits if it contains invalid UTF-8."""
    try:
        return _Writer(body).item()
    except UnicodeDecodeError:
        return body.hex()


#: Primitives by their first byte.
_WORDS: Final = {0xF4: "false", 0xF5: "true", 0xF6: "null", 0xF7: "undefined"}
_ESCAPED: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}


class _Writer:
    """Formats items in sequence; `at` is the offset of the next one."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def item(self) -> str:
        first = self._body[self._at]
        major, low = first >> 5, first & 31
        if low == 31:
            self._at += 1
            return self._indefinite(major)
        argument = self._head(low)
        if major == 0:
            return str(argument)
        if major == 1:
            return str(-1 - argument)
        if major in (2, 3):
            self._at += argument
            return _string(self._body[self._at - argument : self._at], is_text=major == 3)
        if major == 4:
            return f"[{', '.join(self.item() for _ in range(argument))}]"
        if major == 5:
            return f"{{{', '.join(self._member() for _ in range(argument))}}}"
        if major == 6:
            return f"{argument}({self.item()})"
        return _primitive(first, argument)

    def _head(self, low: int) -> int:
        """Consumes the head and returns its argument."""
        begin = self._at + 1
        self._at = begin + SIZES.get(low, 0)
        return int.from_bytes(self._body[begin : self._at], "big") if low in SIZES else low

    def _member(self) -> str:
        key = self.item()
        return f"{key}: {self.item()}"

    def _indefinite(self, major: int) -> str:
        parts = []
        while self._body[self._at] != 0xFF:
            parts.append(self._member() if major == 5 else self.item())
        self._at += 1
        text = ", ".join(parts)
        if major in (2, 3):
            empty = "''_" if major == 2 else '""_'
            return f"(_ {text})" if parts else empty
        return f"[_ {text}]" if major == 4 else f"{{_ {text}}}"


def _string(data: bytes, *, is_text: bool) -> str:
    if is_text:
        return _quoted(data.decode(), '"')
    try:
        return _quoted(data.decode(), "'") if data else "h''"
    except UnicodeDecodeError:
        return f"h'{data.hex()}'"


def _quoted(text: str, quote: str) -> str:
    return quote + "".join(_character(character, quote) for character in text) + quote


def _character(character: str, quote: str) -> str:
    if character == quote:
        return "\\" + quote
    if " " <= character <= "~" and character != "\\":
        return character
    known = _ESCAPED.get(character)
    if known is not None:
        return known
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _primitive(first: int, argument: int) -> str:
    form = FLOATS.get(first)
    if form is None:
        return _WORDS.get(first, f"simple({argument})")
    size = struct.calcsize(form)
    text = float_text(struct.unpack(form, argument.to_bytes(size, "big"))[0])
    if "." in text:
        return text
    mantissa, exponent, rest = text.partition("e")
    return f"{mantissa}.0{exponent}{rest}"

"""Parses decimal integers like Go's strconv, with the same error messages.

A text of any length is parsed in bounded time: the first twenty significant digits decide whether a number fits.

Specified by: strconv (ParseInt, ParseUint and Atoi, base 10).
"""

from __future__ import annotations

import re
from typing import Final

from fakekube.base.golang.quoting import go_quote

INT64: Final = range(-(1 << 63), 1 << 63)
UINT64: Final = range(1 << 64)
_NUMBER: Final = re.compile(r"([0-9]+)(.*)", re.DOTALL)
_UINT16: Final = range(1 << 16)
_TWENTY_DIGITS: Final = 20


def parse_int(text: str, function: str = "ParseInt") -> int:
    """Parses a signed integer of 64 bits.

    Args:
        text: the number.
        function: the name of the Go function in the error message.

    Raises:
        ValueError: the text is not such a number; with Go's message.
    """
    signed = text[:1] in ("+", "-")
    number = _magnitude(text, text[1:] if signed else text, function)
    if signed and text[0] == "-":
        number = -number
    if number not in INT64:
        raise _out_of_range(text, function)
    return number


def parse_uint(text: str) -> int:
    """Parses an unsigned integer of 64 bits. Raises ValueError with Go's message."""
    return _magnitude(text, text, "ParseUint")


def parse_uint16(text: str) -> int:
    """Parses an unsigned integer of 16 bits, such as a port. Raises ValueError with Go's message."""
    number = parse_uint(text)
    if number not in _UINT16:
        raise _out_of_range(text, "ParseUint")
    return number


def go_integer(value: float) -> int:
    """Converts a float to int64 like Go on amd64: a number that does not fit becomes the minimum."""
    found = int(value)
    return found if found in INT64 else INT64.start


def _magnitude(text: str, digits: str, function: str) -> int:
    """Parses the digits after the sign. Go reports an overflow before an invalid character that follows it."""
    match = _NUMBER.fullmatch(digits)
    if match is None:
        raise _invalid_syntax(text, function)
    counting = match[1].lstrip("0")
    number = int(counting[: _TWENTY_DIGITS + 1] or "0")
    if number not in UINT64:
        raise _out_of_range(text, function)
    if match[2]:
        raise _invalid_syntax(text, function)
    return number


def _invalid_syntax(text: str, function: str) -> ValueError:
    return ValueError(f"strconv.{function}: parsing {go_quote(text)}: invalid syntax")


def _out_of_range(text: str, function: str) -> ValueError:
    return ValueError(f"strconv.{function}: parsing {go_quote(text)}: value out of range")

"""Decimal numbers in texts of clients, as Go's strconv reads them, and its words for what is none.

A text of any length is read in bounded time: whether a number fits shows in its first twenty digits that count.

Specified by: strconv (ParseInt, ParseUint and Atoi, base 10).
"""

from __future__ import annotations

import re
from typing import Final

from fakekube.golang.quoting import go_quote

__all__ = ["INT64", "UINT64", "go_integer", "parse_int", "parse_uint"]

INT64: Final = range(-(1 << 63), 1 << 63)
UINT64: Final = range(1 << 64)
_NUMBER: Final = re.compile(r"([0-9]+)(.*)", re.DOTALL)
_TWENTY_DIGITS: Final = 20


def parse_int(text: str, function: str = "ParseInt") -> int:
    """A number of 64 bits with or without a sign.

    Args:
        function: the one of Go that complains.

    Raises ValueError in Go's words.
    """
    signed = text[:1] in ("+", "-")
    number = _magnitude(text, text[1:] if signed else text, function)
    if signed and text[0] == "-":
        number = -number
    if number not in INT64:
        raise _out_of_range(text, function)
    return number


def parse_uint(text: str) -> int:
    """A number of 64 bits without a sign. Raises ValueError in Go's words."""
    return _magnitude(text, text, "ParseUint")


def go_integer(value: float) -> int:
    """A number as an integer of 64 bits, as Go converts floats on most machines: one that is too large has no place."""
    found = int(value)
    return found if found in INT64 else INT64.start


def _magnitude(text: str, digits: str, function: str) -> int:
    """What comes after the sign. Digits that are too many are seen before a letter behind them is."""
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

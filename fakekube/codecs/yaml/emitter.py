"""Writes YAML as go-yaml v2 lays it out: block style, compact sequences, long lines folded at 80 columns.

A block begins where its parent put it (behind a dash, or on a new line), and ends without a line break: each of its
lines is begun by who writes it. Where the text of a scalar has ended its line already, a mark says so (`_ENDED`).

The style of a scalar follows from what is in it: plain where nobody could take it for something else,
literal where it has lines, else in the least quotes that hold it. Keys are sorted as go-yaml sorts them
(letters after the rest, runs of digits by their value).

Specified by: go.yaml.in/yaml/v2 (encode.go, emitterc.go, sorter.go).
"""

from __future__ import annotations

import math
import re
from enum import Enum
from functools import cmp_to_key, lru_cache
from typing import Any, Final

from fakekube.caches import BoundedCache
from fakekube.codecs import json
from fakekube.codecs.errors import EncodeError
from fakekube.codecs.yaml import scalars
from fakekube.golang.json_writer import LONGEST
from fakekube.golang.strings import bytes_of, readable

__all__ = ["emit", "emit_item"]

_WIDTH: Final = 80
_INDENT: Final = 2
_MANY: Final = 10_000
"""So many parts are not too long, however deep they stand."""
_SIMPLE_KEY: Final = 128
"""A key of more bytes, or of several lines, is written after a question mark."""
_ENDED: Final = "\0"
"""The line is at its end, and the break that follows is not to be written. No text has such a character."""


def emit(value: Any) -> str:
    """One document, with a newline at the end.

    Raises:
        EncodeError: it is no number, or the text would be longer than any document is.
    """
    parts: list[str] = []
    if isinstance(value, dict) and value:
        _mapping(value, 0, "", parts)
    elif isinstance(value, list) and value:
        _sequence(value, 0, "", parts)
    else:
        parts.append(_scalar(value, 0, _INDENT))
    return _ended(parts)


def emit_item(value: dict[str, Any]) -> str:
    """An object as it stands in a list that is a member of a document, with its dash and a newline at the end.

    Raises:
        EncodeError: as `emit`.
    """
    parts: list[str] = []
    _sequence([value], 0, "", parts)
    return _ended(parts)


def _ended(parts: list[str]) -> str:
    """The text of the parts, which share their indentation: it may be a thousand times longer than they are."""
    if len(parts) > _MANY and sum(map(len, parts)) > LONGEST:
        raise EncodeError("yaml: the document is too long")
    parts.append("\n")
    return "".join(parts).replace(_ENDED + "\n", "")


# ---------------------------------------------------------------- blocks


def _mapping(value: dict[str, Any], indent: int, first: str, parts: list[str]) -> None:
    """A mapping with members; `first` stands before the first key, a new line before the others."""
    line = _line(indent)
    for key, shown in _keys(tuple(value)):
        parts.append(first)
        first = line
        member = value[key]
        if shown:
            parts.append(shown)
            _member(member, indent, len(shown), parts)
        else:
            parts += ("?", _following(key, indent + 1, indent + _INDENT), line, ":")
            _item(member, indent, parts)


def _member(value: Any, indent: int, width: int, parts: list[str]) -> None:
    """The value of a key of so many characters."""
    if isinstance(value, str):
        parts.append(_FIXED.get(value) or _following(value, indent + width, indent + _INDENT))
    elif isinstance(value, dict) and value:
        _mapping(value, indent + _INDENT, _line(indent + _INDENT), parts)
    elif isinstance(value, list) and value:
        _sequence(value, indent, _line(indent), parts)
    else:
        parts.append(_following(value, indent + width, indent + _INDENT))


def _sequence(value: list[Any], indent: int, first: str, parts: list[str]) -> None:
    """A list with items; `first` stands before the first dash, a new line before the others."""
    line = _line(indent)
    for item in value:
        parts += (first, "-")
        first = line
        _item(item, indent, parts)


def _item(value: Any, indent: int, parts: list[str]) -> None:
    """What follows a dash, or the colon after a question mark: blocks begin on the same line."""
    if isinstance(value, dict) and value:
        _mapping(value, indent + _INDENT, " ", parts)
    elif isinstance(value, list) and value:
        _sequence(value, indent + _INDENT, " ", parts)
    else:
        parts.append(_following(value, indent + 1, indent + _INDENT))


@lru_cache(maxsize=256)
def _line(indent: int) -> str:
    return "\n" + " " * indent


# ---------------------------------------------------------------- scalars


class _Style(Enum):
    PLAIN = 0
    SINGLE = 1
    DOUBLE = 2
    LITERAL = 3


_FIXED: Final[BoundedCache[str, str]] = BoundedCache(4096)
"""What follows the keys of texts that are short and look the same everywhere."""
_FIXED_LENGTH: Final = 64


def _following(value: Any, column: int, indent: int) -> str:
    """A scalar or something empty, and a space before it. The space is at the column; further lines are indented."""
    shown = " " + _scalar(value, column + 1, indent)
    if isinstance(value, str) and len(value) <= _FIXED_LENGTH and _LAID_OUT(value) is None:
        _FIXED.add(value, shown)
    return shown


def _scalar(value: Any, column: int, indent: int) -> str:
    if not isinstance(value, str):
        return _scalar_text(value)
    text = readable(value)
    style = _style(text, False)
    if style is _Style.PLAIN:
        return _flow(text, column, indent, 0, len(text))
    if style is _Style.SINGLE:
        doubled = text.replace("'", "''")
        return f"'{_flow(doubled, column + 1, indent, 1, len(doubled) - 1)}'"
    if style is _Style.DOUBLE:
        return f'"{_double(text, column + 1, indent)}"'
    return _literal(text, indent)


def _flow(text: str, column: int, indent: int, first: int, last: int) -> str:
    """Text in which long lines are broken at single spaces between the positions `first` and `last`."""
    if column + len(text) <= _WIDTH and _BREAK(text) is None:
        return text
    parts: list[str] = []
    start = 0
    for found in _TURNS(text):
        at, end = found.span()
        if text[at] != " ":
            parts.append(text[start:end] + " " * (indent if end < len(text) else 0))
        elif column + at - start > _WIDTH and first <= at < last:
            parts.append(text[start:at] + _line(indent))
        else:
            continue
        start, column = end, indent
    parts.append(text[start:])
    return "".join(parts)


def _double(text: str, column: int, indent: int) -> str:
    """The same of text with escapes; the first of several spaces is one to break at, too."""
    if text.startswith(_BYTE_ORDER_MARK):
        return _escaped(text)
    parts: list[str] = []
    start = 0
    for found in _SPACES(text):
        at = found.start()
        part = _TO_ESCAPE(_escape, text[start:at])
        column += len(part)
        parts.append(part)
        start = at
        if column > _WIDTH and 0 < at < len(text) - 1:
            start, column = at + 1, indent
            parts.append(_line(indent))
            if text[start] == " ":
                parts.append("\\")
                column += 1
    parts.append(_TO_ESCAPE(_escape, text[start:]))
    return "".join(parts)


def _literal(text: str, indent: int) -> str:
    hint = str(_INDENT) if text[0] == " " or text[0] in _BREAKS else ""
    chomping = "-" if text[-1] not in _BREAKS else "+" if len(text) == 1 or text[-2] in _BREAKS else ""
    margin = " " * indent
    lines = [f"{margin}{line}{line_break}" if line else line_break for line, line_break in _LINES(text)]
    return f"|{hint}{chomping}\n{''.join(lines)}{_ENDED if text[-1] in _BREAKS else ''}"


_BREAKS: Final = "\r\n\x85\u2028\u2029"
_BREAK: Final = re.compile(f"[{_BREAKS}]").search
_LAID_OUT: Final = re.compile(f"[ {_BREAKS}]").search
_TURNS: Final = re.compile(f"(?<! ) (?! )|[{_BREAKS}]+").finditer
_SPACES: Final = re.compile("(?<! ) ").finditer
_LINES: Final = re.compile(f"([^{_BREAKS}]*)([{_BREAKS}]|$)").findall
_SPECIAL: Final = re.compile("[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]").search
_INDICATORS: Final = re.compile(
    f"---|\\.\\.\\.|[#,\\[\\]{{}}&*!|>'\"%@`]|[?:-](?=[ \t]|\\Z)"
    f"|.*?(?::(?=[ \t]|\\Z)|(?<=[ \t\0{_BREAKS}])#)",
    re.DOTALL,
).match
_AT_EDGES: Final = re.compile(f"[ {_BREAKS}]|.*[ {_BREAKS}]\\Z", re.DOTALL).match
_BREAK_SPACE: Final = re.compile(f"[{_BREAKS}] ").search
_SPACE_BREAK: Final = re.compile(f" [{_BREAKS}]").search
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?").fullmatch


@lru_cache(maxsize=4096)
def _style(text: str, is_key: bool) -> _Style:
    special = _SPECIAL(text) is not None or _SPACE_BREAK(text) is not None
    if "\n" in text:
        return _Style.DOUBLE if special or is_key or text[-1] == " " else _Style.LITERAL
    if scalars.resolve("", text)[0] != scalars.STRING or _BASE_60(text) or special:
        return _Style.DOUBLE
    has_break = _BREAK(text) is not None
    if not has_break and not _AT_EDGES(text) and not _INDICATORS(text):
        return _Style.PLAIN
    if (is_key and has_break) or _BREAK_SPACE(text):
        return _Style.DOUBLE
    return _Style.SINGLE


def _scalar_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value) if type(value) is int and value in _INTEGERS else _float_text(float(value))


#: What JSON says of them is read as an integer; other whole numbers are floats.
_INTEGERS: Final = range(-(2**63), 2**64)


def _float_text(number: float) -> str:
    if not math.isfinite(number):
        raise EncodeError(f"json: unsupported value: {number}")
    if number.is_integer() and abs(number) < 1e21:
        whole = int(json.float_text(number))
        if whole in _INTEGERS:
            return str(whole)
    return scalars.float_text(number)


_ESCAPES: Final = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
    "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip


def _escaped(text: str) -> str:
    """go-yaml takes every character for the mark, if the first one is."""
    return (_ANY if text.startswith(_BYTE_ORDER_MARK) else _TO_ESCAPE)(_escape, text)


_BYTE_ORDER_MARK: Final = "\ufeff"
_ANY: Final = re.compile(".", re.S).sub


#: What has an escape, or is special.
_TO_ESCAPE: Final = re.compile("[^ !#-\\[\\]-~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]").sub


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    code = ord(character)
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


# ---------------------------------------------------------------- the order of keys

@lru_cache(maxsize=1024)
def _keys(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    """Keys in their order, each with its text and a colon; none if it is written after a question mark."""
    simple = all(_PLAIN_KEY(key) for key in keys)
    return [(key, _key(key)) for key in sorted(keys, key=None if simple else _KEY_ORDER)]


def _key(key: str) -> str:
    if len(bytes_of(key)) > _SIMPLE_KEY or _BREAK(key) is not None:
        return ""
    text = readable(key)
    style = _style(text, True)
    if style is _Style.PLAIN:
        return f"{text}:"
    quoted = f'"{_escaped(text)}"' if style is _Style.DOUBLE else "'" + text.replace("'", "''") + "'"
    return f"{quoted}:"


#: Among keys of nothing but ASCII letters, the order is that of their characters.
_PLAIN_KEY: Final = re.compile("[A-Za-z]*").fullmatch


def _compare(one: str, other: str) -> int:
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a == b:
            continue
        letter, other_letter = a.isalpha(), b.isalpha()
        if letter and other_letter:
            return -1 if a < b else 1
        if letter or other_letter:
            return -1 if other_letter else 1
        return _compare_digits(one, other, at)
    return len(one) - len(other)


def _compare_digits(one: str, other: str, at: int) -> int:
    """Two keys that differ at a place where neither has a letter: runs of digits count by their value."""
    start = 0
    if one[at] == "0" or other[at] == "0":
        before = at - 1
        while before >= 0 and one[before].isdigit():
            if one[before] != "0":
                start = 1
                break
            before -= 1
    number, end = _run(one, at, start)
    other_number, other_end = _run(other, at, start)
    if number != other_number:
        return -1 if number < other_number else 1
    if end != other_end:
        return end - other_end
    return -1 if one[at] < other[at] else 1


def _run(text: str, at: int, number: int) -> tuple[int, int]:
    """The value of the digits from `at` on (int64, wrapping around as Go's does), and where they end."""
    while at < len(text) and text[at].isdigit():
        number = (number * 10 + ord(text[at]) - ord("0") + 2**63) % 2**64 - 2**63
        at += 1
    return number, at


_KEY_ORDER: Final = cmp_to_key(_compare)

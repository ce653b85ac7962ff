"""Emits YAML with the layout of go-yaml v2: block style, compact sequences, long lines folded at 80 columns.

A block begins at the current position (after a dash, or on a new line) and ends without a line break: each function
begins its own lines. If the text of a scalar already ended its line, it is followed by the mark `_ENDED`.

The style of a scalar depends on its content: plain if it is unambiguous, literal if it has several lines, else
single or double quotes. Keys are sorted like in go-yaml (letters after other characters, digits by value).

Specified by: go.yaml.in/yaml/v2 (encode.go, emitterc.go, sorter.go).
"""

from __future__ import annotations

import math
import re
from enum import Enum
from functools import cmp_to_key, lru_cache
from typing import Any, Final

from fakekube.apimachinery.codecs import EncodeError, json
from fakekube.apimachinery.codecs.yaml import reader
from fakekube.base.caches import LONGEST_TEXT, BoundedCache, cache_if, forgettable
from fakekube.base.golang.json_writer import LONGEST
from fakekube.base.golang.strings import bytes_of, readable
from fakekube.base.objects import StoredObject

_WIDTH: Final = 80
_INDENT: Final = 2
_MANY: Final = 10_000
"""The number of parts up to which the length needs no check, at any depth."""
_SIMPLE_KEY: Final = 128
"""A key with more bytes, or with several lines, is emitted after a question mark."""
_ENDED: Final = "\0"
"""Marks that the line has ended, so that the next line break is omitted. No text contains this character."""


def emit(value: Any) -> str:
    """Emits one document, with a trailing newline.

    Raises:
        EncodeError: the value contains NaN, or the text exceeds the maximum length.
    """
    parts: list[str] = []
    if isinstance(value, dict) and value:
        _mapping(value, 0, "", parts)
    elif isinstance(value, list) and value:
        _sequence(value, 0, "", parts)
    else:
        parts.append(_scalar(value, 0, _INDENT))
    return _finish(parts)


def emit_item(value: StoredObject) -> str:
    """Emits an object as an item of a list within a document, with its dash and a trailing newline.

    Raises:
        EncodeError: like `emit`.
    """
    parts: list[str] = []
    _sequence([value], 0, "", parts)
    return _finish(parts)


def _finish(parts: list[str]) -> str:
    """Joins the parts after a check of the total length, which may be a thousand times that of the value."""
    if len(parts) > _MANY and sum(map(len, parts)) > LONGEST:
        raise EncodeError("yaml: the document is too long")
    parts.append("\n")
    return "".join(parts).replace(_ENDED + "\n", "")


# --- Blocks -----------------------------------------------------------------------------------------------------------


def _mapping(value: dict[str, Any], indent: int, first: str, parts: list[str]) -> None:
    """Emits a non-empty mapping; `first` precedes the first key, a new line the others."""
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
    """Emits the value of a key of `width` characters."""
    if isinstance(value, str):
        parts.append(_FIXED.get(value) or _following(value, indent + width, indent + _INDENT))
    elif isinstance(value, dict) and value:
        _mapping(value, indent + _INDENT, _line(indent + _INDENT), parts)
    elif isinstance(value, list) and value:
        _sequence(value, indent, _line(indent), parts)
    else:
        parts.append(_following(value, indent + width, indent + _INDENT))


def _sequence(value: list[Any], indent: int, first: str, parts: list[str]) -> None:
    """Emits a non-empty list; `first` precedes the first dash, a new line the others."""
    line = _line(indent)
    for item in value:
        parts += (first, "-")
        first = line
        _item(item, indent, parts)


def _item(value: Any, indent: int, parts: list[str]) -> None:
    """Emits the value after a dash, or after the colon of a complex key: blocks begin on the same line."""
    if isinstance(value, dict) and value:
        _mapping(value, indent + _INDENT, " ", parts)
    elif isinstance(value, list) and value:
        _sequence(value, indent + _INDENT, " ", parts)
    else:
        parts.append(_following(value, indent + 1, indent + _INDENT))


@lru_cache(maxsize=256)
def _line(indent: int) -> str:
    return "\n" + " " * indent


# --- Scalars ----------------------------------------------------------------------------------------------------------


class _Style(Enum):
    PLAIN = 0
    SINGLE = 1
    DOUBLE = 2
    LITERAL = 3


_FIXED: Final[BoundedCache[str, str]] = BoundedCache(4096)
"""A cache of emitted short texts that do not depend on the position."""
_FIXED_LENGTH: Final = 64


def _following(value: Any, column: int, indent: int) -> str:
    """Emits a space, at `column`, and a scalar or an empty container. Further lines are indented."""
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
    """Folds long lines at single spaces between the positions `first` and `last`."""
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
    """Folds a text with escapes; lines may also break at the first of several spaces."""
    if text.startswith(_BYTE_ORDER_MARK):
        return _escape_text(text)
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
    f"---|\\.\\.\\.|[#,\\[\\]{{}}&*!|>'\"%@`]|[?:-](?=[ \t]|\\Z)|.*?(?::(?=[ \t]|\\Z)|(?<=[ \t\0{_BREAKS}])#)", re.DOTALL
).match
_AT_EDGES: Final = re.compile(f"[ {_BREAKS}]|.*[ {_BREAKS}]\\Z", re.DOTALL).match
_BREAK_SPACE: Final = re.compile(f"[{_BREAKS}] ").search
_SPACE_BREAK: Final = re.compile(f" [{_BREAKS}]").search
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?").fullmatch


@cache_if(lambda text, _is_key: len(text) <= LONGEST_TEXT, 4096)
def _style(text: str, is_key: bool) -> _Style:
    special = _SPECIAL(text) is not None or _SPACE_BREAK(text) is not None
    if "\n" in text:
        return _Style.DOUBLE if special or is_key or text[-1] == " " else _Style.LITERAL
    if reader.resolve("", text)[0] != reader.STRING or _BASE_60(text) or special:
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


#: Whole floats whose JSON form is decoded as an integer; other whole numbers are floats.
_INTEGERS: Final = range(-(2**63), 2**64)


def _float_text(number: float) -> str:
    if not math.isfinite(number):
        raise EncodeError(f"json: unsupported value: {number}")
    if number.is_integer() and abs(number) < 1e21:
        whole = int(json.float_text(number))
        if whole in _INTEGERS:
            return str(whole)
    return reader.float_text(number)


_ESCAPES: Final = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
    "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip


def _escape_text(text: str) -> str:
    """Escapes a text. If the first character is a byte order mark, go-yaml treats every character as one."""
    return (_ANY if text.startswith(_BYTE_ORDER_MARK) else _TO_ESCAPE)(_escape, text)


_BYTE_ORDER_MARK: Final = "\ufeff"
_ANY: Final = re.compile(".", re.S).sub


#: Characters that have an escape or are special.
_TO_ESCAPE: Final = re.compile("[^ !#-\\[\\]-~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]").sub


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    code = ord(character)
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


# --- The order of keys ------------------------------------------------------------------------------------------------


@forgettable
@lru_cache(maxsize=1024)
def _keys(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    """Sorts keys; returns each with its text and a colon; "" if it is emitted after a question mark."""
    simple = all(_PLAIN_KEY(key) for key in keys)
    return [(key, _key(key)) for key in sorted(keys, key=None if simple else _KEY_ORDER)]


def _key(key: str) -> str:
    if len(bytes_of(key)) > _SIMPLE_KEY or _BREAK(key) is not None:
        return ""
    text = readable(key)
    style = _style(text, True)
    if style is _Style.PLAIN:
        return f"{text}:"
    quoted = f'"{_escape_text(text)}"' if style is _Style.DOUBLE else "'" + text.replace("'", "''") + "'"
    return f"{quoted}:"


#: Keys that contain only ASCII letters sort by their characters.
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
    """Compares two keys that differ at a position where neither has a letter: runs of digits compare by value."""
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
    """Returns the value of the digits from `at` (an int64 that wraps around, as in Go) and their end."""
    while at < len(text) and text[at].isdigit():
        number = (number * 10 + ord(text[at]) - ord("0") + 2**63) % 2**64 - 2**63
        at += 1
    return number, at


_KEY_ORDER: Final = cmp_to_key(_compare)

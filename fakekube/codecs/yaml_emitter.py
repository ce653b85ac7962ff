"""Writes YAML as go-yaml v2 lays it out: block style, compact sequences, long lines folded at 80 columns.

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

from fakekube.codecs import json, yaml_scalars
from fakekube.codecs.errors import EncodeError
from fakekube.schema.strings import bytes_of, readable

__all__ = ["emit"]

_WIDTH: Final = 80
_INDENT: Final = 2
_SIMPLE_KEY: Final = 128
"""A key of more bytes, or of several lines, is written after a question mark."""


def emit(value: Any) -> str:
    """One document, with a newline at the end.

    Raises:
        EncodeError: it is no number.
    """
    emitter = _Emitter()
    emitter.node(value, in_mapping=False)
    emitter.end()
    return emitter.text()


class _Style(Enum):
    PLAIN = 0
    SINGLE = 1
    DOUBLE = 2
    LITERAL = 3


class _Emitter:
    """Where on the page the next character goes, and what stands before it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._column = 0
        self._indent = -1
        self._after_space = True
        """Whitespace, or the beginning of a line, is before the next character."""
        self._in_indent = True
        """Nothing but indentation and dashes is on this line yet."""

    def text(self) -> str:
        return "".join(self._parts)

    def end(self) -> None:
        self._new_line()

    def node(self, value: Any, *, in_mapping: bool) -> None:
        """Any value; `in_mapping`: it is the value of a key."""
        if isinstance(value, dict) and value:
            self._mapping(value)
        elif isinstance(value, list) and value:
            self._sequence(value, in_mapping)
        elif isinstance(value, dict | list):
            self._indicator("{}" if isinstance(value, dict) else "[]")
        else:
            self._scalar(value, is_key=False)

    def _mapping(self, value: dict[str, Any]) -> None:
        before = self._indent
        self._indent = 0 if before < 0 else before + _INDENT
        for key in _sorted_keys(value):
            self._new_line()
            if _is_simple(key):
                self._scalar(key, is_key=True)
                self._write(":")
                self._after_space = self._in_indent = False
            else:
                self._indicator("?", keeps_indent=True)
                self._scalar(key, is_key=False)
                self._new_line()
                self._indicator(":", keeps_indent=True)
            self.node(value[key], in_mapping=True)
        self._indent = before

    def _sequence(self, value: list[Any], in_mapping: bool) -> None:
        before = self._indent
        if before < 0:
            self._indent = 0
        elif not in_mapping or self._in_indent:
            self._indent = before + _INDENT
        for item in value:
            self._new_line()
            self._indicator("-", keeps_indent=True)
            self.node(item, in_mapping=False)
        self._indent = before

    def _indicator(self, text: str, *, keeps_indent: bool = False) -> None:
        if not self._after_space:
            self._write(" ")
        self._write(text)
        self._after_space = False
        self._in_indent = self._in_indent and keeps_indent

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._column += len(text)

    def _break(self, character: str = "\n") -> None:
        self._parts.append(character)
        self._column = 0

    def _new_line(self) -> None:
        """Go to the indentation, on a new line unless nothing but indentation is on this one."""
        indent = max(self._indent, 0)
        if not self._in_indent or self._column > indent or (self._column == indent and not self._after_space):
            self._break()
        if self._column < indent:
            self._write(" " * (indent - self._column))
        self._after_space = self._in_indent = True

    # ------------------------------------------------------------ scalars

    def _scalar(self, value: Any, *, is_key: bool) -> None:
        text = readable(value) if isinstance(value, str) else _scalar_text(value)
        style = _style(text, is_key) if isinstance(value, str) else _Style.PLAIN
        before = self._indent
        self._indent = _INDENT if before < 0 else before + _INDENT
        _WRITERS[style](self, text, not is_key)
        self._indent = before

    def _plain(self, text: str, folds: bool) -> None:
        if not self._after_space:
            self._write(" ")
        self._flow(text, folds, 0, len(text))
        self._after_space = self._in_indent = False

    def _single(self, text: str, folds: bool) -> None:
        self._indicator("'")
        doubled = text.replace("'", "''")
        self._flow(doubled, folds, 1, len(doubled) - 1)
        self._indicator_at_end("'")

    def _indicator_at_end(self, text: str) -> None:
        self._write(text)
        self._after_space = self._in_indent = False

    def _flow(self, text: str, folds: bool, first: int, last: int) -> None:
        """Text in which long lines are broken at single spaces between the positions `first` and `last`."""
        if _BREAK(text) is None and (not folds or self._column + len(text) <= _WIDTH):
            self._write(text)
            return
        in_spaces = after_break = False
        for at, character in enumerate(text):
            if character == " ":
                single = not in_spaces and text[at + 1 : at + 2] != " "
                if folds and single and self._column > _WIDTH and first <= at < last:
                    self._in_indent = False
                    self._new_line()
                else:
                    self._write(character)
                in_spaces = True
            elif character in _BREAKS:
                if not after_break and character == "\n":
                    self._break()
                self._break(character)
                self._in_indent = after_break = True
            else:
                if after_break:
                    self._new_line()
                self._write(character)
                self._in_indent = in_spaces = after_break = False

    def _double(self, text: str, folds: bool) -> None:
        self._indicator('"')
        in_spaces = False
        last = len(text) - 1
        for at, character in enumerate(text):
            if character == " ":
                if folds and not in_spaces and self._column > _WIDTH and 0 < at < last:
                    self._in_indent = False
                    self._new_line()
                    if text[at + 1] == " ":
                        self._write("\\")
                else:
                    self._write(character)
                in_spaces = True
            else:
                self._write(_escaped(character))
                in_spaces = False
        self._indicator_at_end('"')

    def _literal(self, text: str, _folds: bool) -> None:
        hint = str(_INDENT) if text[0] == " " or text[0] in _BREAKS else ""
        chomping = "-" if text[-1] not in _BREAKS else "+" if len(text) == 1 or text[-2] in _BREAKS else ""
        self._indicator(f"|{hint}{chomping}")
        self._break()
        self._after_space = self._in_indent = True
        for line, line_break in _LINES(text):
            if line:
                self._new_line()
                self._write(line)
                self._after_space = self._in_indent = False
            if line_break:
                self._break(line_break)
                self._after_space = self._in_indent = True


_WRITERS: Final = {
    _Style.PLAIN: _Emitter._plain,
    _Style.SINGLE: _Emitter._single,
    _Style.DOUBLE: _Emitter._double,
    _Style.LITERAL: _Emitter._literal,
}

_BREAKS: Final = "\r\n\x85\u2028\u2029"
_BREAK: Final = re.compile(f"[{_BREAKS}]").search
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
    if yaml_scalars.resolve("", text)[0] != yaml_scalars.STRING or _BASE_60(text) or special:
        return _Style.DOUBLE
    has_break = _BREAK(text) is not None
    if not has_break and not _AT_EDGES(text) and not _INDICATORS(text):
        return _Style.PLAIN
    if (is_key and has_break) or _BREAK_SPACE(text):
        return _Style.DOUBLE
    return _Style.SINGLE


def _is_simple(key: str) -> bool:
    return len(bytes_of(key)) <= _SIMPLE_KEY and _BREAK(key) is None


def _scalar_text(value: Any) -> str:
    if value is None:
        return "null"
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
    return yaml_scalars.float_text(number)


_ESCAPES: Final = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
    "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if _SPECIAL(character) is None:
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


# ---------------------------------------------------------------- the order of keys

def _sorted_keys(mapping: dict[str, Any]) -> list[str]:
    keys = list(mapping)
    return sorted(keys) if all(_PLAIN_KEY(key) for key in keys) else sorted(keys, key=_KEY_ORDER)


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

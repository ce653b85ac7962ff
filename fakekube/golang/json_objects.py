"""Texts within objects that should be JSON: read, and told wrong in the words of Go's encoding/json.

Bodies of requests are read elsewhere (`codecs`).

Specified by: encoding/json (scanner.go, decode.go) of Go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from fakekube.golang.quoting import go_quote, json_kind

__all__ = ["Fraction", "JSONProblem", "object_problem", "parsed"]

_space = re.compile(rb"[ \t\r\n]*").match
_plain = re.compile(rb'[^"\\\x00-\x1f]*').match
_number = re.compile(rb"-?(?:0|[1-9][0-9]*)?").match
_digits = re.compile(rb"[0-9]*").match
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}

VALUE = "looking for beginning of value"


class JSONProblem(ValueError):
    """A text is no JSON, or not the JSON that it should be; the words are Go's."""


class Fraction(str):
    """A number that was not written as an integer."""

    __slots__ = ()


def parsed(text: bytes) -> Any:
    """The value of a text; numbers with a fraction or an exponent are `Fraction`s.

    Raises:
        JSONProblem: it is no JSON.
        RecursionError: it is too deep.
    """
    try:
        return json.loads(text.decode("utf-8", "replace"), parse_constant=_refuse, parse_float=Fraction)
    except ValueError:
        raise JSONProblem(_syntax_problem(text)) from None


def object_problem(text: bytes) -> str:
    """What Go says when it is to read an object from this text; "" if it can."""
    try:
        value = parsed(text)
    except RecursionError:
        return ""
    except JSONProblem as problem:
        return str(problem)
    if value is None or isinstance(value, dict):
        return ""
    return f"json: cannot unmarshal {json_kind(value)} into Go value of type map[string]interface {{}}"


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _syntax_problem(text: bytes) -> str:
    reader = _Reader(text)
    try:
        reader.value()
        reader.skip()
        reader.end()
    except _SyntaxProblem as problem:
        return str(problem)
    return ""


class _SyntaxProblem(Exception):
    """A text that is no JSON."""


class _Reader:
    """Goes through a text to where it is wrong."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0

    def end(self) -> None:
        if self._at < len(self._text):
            raise self._unexpected("after top-level value")

    def skip(self) -> None:
        self._pass(_space)

    def _pass(self, match: Callable[[bytes, int], re.Match[bytes] | None]) -> None:
        found = match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _next(self) -> bytes:
        return self._text[self._at : self._at + 1]

    def _unexpected(self, context: str) -> _SyntaxProblem:
        character = self._next()
        if not character:
            return _SyntaxProblem("unexpected end of JSON input")
        quoted = {b"'": r"'\''", b'"': "'\"'"}.get(character) or f"'{go_quote(chr(character[0]))[1:-1]}'"
        return _SyntaxProblem(f"invalid character {quoted} {context}")

    def _expect(self, characters: bytes, context: str) -> bytes:
        found = self._next()
        if not found or found not in characters:
            raise self._unexpected(context)
        self._at += 1
        return found

    def value(self, context: str = VALUE) -> None:
        self.skip()
        first = self._next()
        if first == b"{":
            self._members(b"}", self._member, "after object key:value pair")
        elif first == b"[":
            self._members(b"]", self.value, "after array element")
        elif first == b'"':
            self._string()
        elif first in _LITERALS:
            self._literal(_LITERALS[first])
        elif first and first in b"-0123456789":
            self._numeral()
        else:
            raise self._unexpected(context)

    def _members(self, closing: bytes, member: Callable[[], None], context: str) -> None:
        self._at += 1
        self.skip()
        if self._next() == closing:
            self._at += 1
            return
        separator = b","
        while separator == b",":
            member()
            self.skip()
            separator = self._expect(b"," + closing, context)

    def _member(self) -> None:
        self.skip()
        if self._next() != b'"':
            raise self._unexpected("looking for beginning of object key string")
        self._string()
        self.skip()
        self._expect(b":", "after object key")
        self.value()

    def _string(self) -> None:
        self._at += 1
        while True:
            self._pass(_plain)
            if self._expect(b'"\\', "in string literal") == b'"':
                return
            if self._expect(b'"\\/bfnrtu', "in string escape code") == b"u":
                for _ in range(4):
                    self._expect(b"0123456789abcdefABCDEF", r"in \u hexadecimal character escape")

    def _literal(self, word: bytes) -> None:
        for index, expected in enumerate(word.decode()):
            context = f"in literal {word.decode()} (expecting '{expected}')"
            self._expect(word[index : index + 1], context)

    def _numeral(self) -> None:
        self._pass(_number)
        if self._text[self._at - 1 : self._at] == b"-":
            raise self._unexpected("in numeric literal")
        if self._next() == b".":
            self._at += 1
            self._some_digits("after decimal point in numeric literal")
        if self._next() in (b"e", b"E"):
            self._at += 1
            if self._next() in (b"+", b"-"):
                self._at += 1
            self._some_digits("in exponent of numeric literal")

    def _some_digits(self, context: str) -> None:
        self._expect(b"0123456789", context)
        self._pass(_digits)

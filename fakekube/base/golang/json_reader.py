"""Parses JSON with the rules and the error messages of Go, for documents that orjson rejects.

Go is more lenient than orjson: invalid UTF-8 and lone surrogates become U+FFFD, numbers beyond float64 are
accepted in fields that are not decoded, and the nesting limit is 10,000. The reader also reports the paths of
duplicate members.

Specified by: Go's encoding/json (scanner.go, decode.go), sigs.k8s.io/json (duplicate fields).
"""

from __future__ import annotations

import codecs
import json
import re
from math import isfinite
from typing import Any, Final

from fakekube.base.golang.strconv import UNTYPED_OBJECT, go_quote, json_kind, unmarshal_error

#: The maximum nesting depth of objects and arrays.
MAXIMUM_DEPTH: Final = 10_000

_MAXIMUM_DUPLICATES: Final = 100
UNEXPECTED_END: Final = "unexpected end of JSON input"


class JSONSyntaxError(ValueError):
    """A text is not valid JSON. The message is that of Go's scanner."""


class Overflow(float):
    """A number beyond float64, such as 1e999: an infinity that keeps its literal.

    Go accepts it in a field that is not decoded; else it fails with `json: cannot unmarshal number 1e999 into …`.
    """

    __slots__ = ("literal",)
    literal: str

    def __new__(cls, literal: str) -> Overflow:
        number = super().__new__(cls, literal)
        number.literal = literal
        return number


def _one_replacement_a_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("fakekube.go", _one_replacement_a_byte)


def utf8(data: bytes) -> str:
    """Decodes UTF-8; each invalid byte becomes U+FFFD, as in Go."""
    return data.decode("utf-8", "fakekube.go")


_SPACE: Final = re.compile(rb"[ \t\r\n]*").match
_STRING: Final = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*').match
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?").match
_ESCAPE: Final = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))").sub
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS: Final = {b"t": (b"true", True), b"f": (b"false", False), b"n": (b"null", None)}


def _unescape(match: re.Match[str]) -> str:
    high, low, code, character = match.groups()
    if character:
        return _ESCAPES.get(character, character)
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    return "\ufffd" if 0xD800 <= int(code, 16) < 0xE000 else chr(int(code, 16))


class _Frame:
    """An object or array whose members are being parsed."""

    __slots__ = ("container", "empty", "key", "seen")

    def __init__(self, container: Any) -> None:
        self.container = container
        self.seen: set[str] = set()
        self.key = ""
        self.empty = True


class Reader:
    """Parses a document with the rules and messages of Go. It does not recurse, so that nesting uses no stack."""

    def __init__(self, body: bytes, merge: bool, *, keep_first: bool = False) -> None:
        self._body = body
        self._merge = merge
        self._keep_first = keep_first
        self._at = 0
        self._frames: list[_Frame] = []
        self._duplicates: dict[str, None] = {}

    def read(self) -> tuple[Any, list[str]]:
        """Returns the value and the paths of duplicate members. Raises JSONSyntaxError."""
        value = self._value(None)
        while self._frames:
            frame = self._frames[-1]
            if type(frame.container) is dict:
                self._member(frame)
            else:
                self._element(frame)
        self._at = self._skip_space()
        if self._at < len(self._body):
            raise self._unexpected_byte("after top-level value")
        return value, list(self._duplicates)

    def _value(self, existing: Any) -> Any:
        """Parses a scalar, or the start of an object or array. `existing` is the object that a duplicate merges into."""
        first = self._next()
        if first == b'"':
            return self._string()
        if first in b"{[":
            return self._begin({} if first == b"{" else [], existing)
        if first in b"-0123456789":
            return self._number()
        if first in _LITERALS:
            return self._literal(*_LITERALS[first])
        raise self._unexpected_byte("looking for beginning of value")

    def _begin(self, container: Any, existing: Any) -> Any:
        if len(self._frames) >= MAXIMUM_DEPTH:
            raise self._unexpected_byte("exceeded max depth")
        if self._merge and type(container) is dict and type(existing) is dict:
            container = existing
        self._at += 1
        self._frames.append(_Frame(container))
        return container

    def _member(self, frame: _Frame) -> None:
        if self._at_end(frame, b"}", "after object key:value pair"):
            return
        if self._next() != b'"':
            raise self._unexpected_byte("looking for beginning of object key string")
        frame.key = key = self._string()
        if self._next() != b":":
            raise self._unexpected_byte("after object key")
        self._at += 1
        if key in frame.seen:
            self._report_duplicate()
        frame.seen.add(key)
        kept = self._keep_first and key in frame.container
        value = self._value(frame.container.get(key))
        if not kept:
            frame.container[key] = value

    def _element(self, frame: _Frame) -> None:
        if not self._at_end(frame, b"]", "after array element"):
            frame.container.append(None)
            frame.container[-1] = self._value(None)

    def _at_end(self, frame: _Frame, bracket: bytes, context: str) -> bool:
        """Reports whether the container ends here; if it does not, consumes the comma before the next member."""
        found = self._next()
        if found == bracket:
            self._at += 1
            self._frames.pop()
            return True
        if frame.empty:
            frame.empty = False
        elif found == b",":
            self._at += 1
        else:
            raise self._unexpected_byte(context)
        return False

    def _string(self) -> str:
        match = _STRING(self._body, self._at)
        assert match is not None
        end = match.end()
        if self._body[end : end + 1] != b'"':
            raise self._broken_string(end)
        text = utf8(self._body[self._at + 1 : end])
        self._at = end + 1
        if "\\" not in text:
            return text
        return _ESCAPE(_unescape, text)

    def _broken_string(self, at: int) -> JSONSyntaxError:
        self._at = at
        if at >= len(self._body):
            return JSONSyntaxError(UNEXPECTED_END)
        if self._body[at : at + 1] != b"\\":
            return self._unexpected_byte("in string literal")
        self._at += 1
        if self._body[at + 1 : at + 2] != b"u":
            return self._unexpected_byte("in string escape code")
        self._at += 1
        while self._body[self._at : self._at + 1] in _HEXADECIMAL:
            self._at += 1
        return self._unexpected_byte("in \\u hexadecimal character escape")

    def _number(self) -> int | float:
        match = _NUMBER(self._body, self._at)
        if match is None:
            self._at += 1
            raise self._unexpected_byte("in numeric literal")
        end = match.end()
        following = self._body[end : end + 1]
        if following == b"." and not match[1] and not match[2]:
            self._at = end + 1
            raise self._unexpected_byte("after decimal point in numeric literal")
        if following in (b"e", b"E") and not match[2]:
            self._at = end + (2 if self._body[end + 1 : end + 2] in (b"+", b"-") else 1)
            raise self._unexpected_byte("in exponent of numeric literal")
        self._at = end
        literal = match[0].decode()
        if not match[1] and not match[2]:
            return _integer(literal)
        number = float(literal)
        return number if isfinite(number) else Overflow(literal)

    def _literal(self, word: bytes, value: Any) -> Any:
        for expected in word:
            if self._body[self._at : self._at + 1] != bytes((expected,)):
                raise self._unexpected_byte(f"in literal {word.decode()} (expecting {chr(expected)!r})")
            self._at += 1
        return value

    def _skip_space(self) -> int:
        match = _SPACE(self._body, self._at)
        assert match is not None
        return match.end()

    def _next(self) -> bytes:
        self._at = self._skip_space()
        if self._at >= len(self._body):
            raise JSONSyntaxError(UNEXPECTED_END)
        return self._body[self._at : self._at + 1]

    def _unexpected_byte(self, context: str) -> JSONSyntaxError:
        """Returns the error for the byte at the current position; at the end of the input Go scans a space."""
        found = self._body[self._at] if self._at < len(self._body) else ord(" ")
        return JSONSyntaxError(f"invalid character {_quoted_byte(found)} {context}")

    def _report_duplicate(self) -> None:
        if len(self._duplicates) >= _MAXIMUM_DUPLICATES:
            return
        path = ""
        for frame in self._frames:
            if type(frame.container) is list:
                path += f"[{len(frame.container) - 1}]"
            else:
                path += f".{frame.key}" if path else frame.key
        self._duplicates[path] = None


_HEXADECIMAL: Final = frozenset(bytes((code,)) for code in b"0123456789abcdefABCDEF")


def _integer(literal: str) -> int | float:
    """Parses an integer of any length; one beyond float64 becomes an Overflow."""
    return int(literal) if isfinite(float(literal)) else Overflow(literal)


def _quoted_byte(code: int) -> str:
    """Quotes a byte like Go's scanner: the character with that code point, in single quotes."""
    if code == ord("'"):
        return r"'\''"
    if code == ord('"'):
        return "'\"'"
    return f"'{go_quote(chr(code))[1:-1]}'"


# --- Strings within objects that must contain JSON, with the error messages of encoding/json -------------------------
# Package `codecs` decodes the bodies of requests.
#
# Specified by: encoding/json (scanner.go, decode.go) of Go.


class JSONError(ValueError):
    """A text is not valid JSON, or is JSON of another type than expected. The message is Go's."""


class Fraction(str):
    """The text of a number with a fraction or an exponent."""

    __slots__ = ()


def parse(text: bytes) -> Any:
    """Parses a JSON text; numbers with a fraction or an exponent become `Fraction`s.

    Raises:
        JSONError: the text is not valid JSON.
        RecursionError: the nesting is too deep.
    """
    try:
        return json.loads(text.decode("utf-8", "replace"), parse_constant=_refuse, parse_float=Fraction)
    except ValueError:
        raise JSONError(_syntax_error(text)) from None


def object_error(text: bytes) -> str:
    """Returns Go's error for decoding this text into a map[string]interface{}; "" if there is none."""
    try:
        value = parse(text)
    except RecursionError:
        return ""
    except JSONError as problem:
        return str(problem)
    if value is None or isinstance(value, dict):
        return ""
    return unmarshal_error(json_kind(value), UNTYPED_OBJECT)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _syntax_error(text: bytes) -> str:
    try:
        Reader(text, merge=False).read()
    except JSONSyntaxError as error:
        return str(error)
    return ""

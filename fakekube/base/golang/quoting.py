"""Formats single values like Go: %q, %v and %T of fmt, and the numbers of encoding/json.

Specified by: strconv.Quote, strconv.FormatFloat, fmt, encoding/json (floatEncoder, HTML escaping).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from fakekube.base.golang.raw_json import RawObject
from fakekube.base.golang.strings import byte_of, json_text

_GO_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def go_quote(text: str) -> str:
    """Formats `text` with %q."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_go_escape(character) for character in text) + '"'


def _go_escape(character: str) -> str:
    known = _GO_ESCAPES.get(character)
    if known is not None:
        return known
    if character.isprintable():
        return character
    byte = byte_of(character)
    code = ord(character) if byte is None else byte
    if code < 0x80 or byte is not None:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_float(value: float) -> str:
    """Formats a float with %v: the shortest digits that round-trip, with an exponent below 1e-4 and from 1e6."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    magnitude = exponent + len(digits) - 1
    if -5 < magnitude < 6:
        return f"{Decimal(repr(value)).normalize():f}"
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    return f"{'-' if sign else ''}{first}{fraction}e{magnitude:+03d}"


_PRINTED_WITH_EXPONENT: Final = 1e21

_GO_TYPES: Final[dict[type, str]] = {
    dict: "map[string]interface {}",
    RawObject: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def go_type(value: Any) -> str:
    """Formats the Go type of a JSON value with %T."""
    return _GO_TYPES.get(type(value), "<nil>")


_JSON_KINDS: Final[dict[type, str]] = {dict: "object", list: "array", str: "string", bool: "bool"}


def json_kind(value: Any) -> str:
    """Returns the name of a value's JSON type in encoding/json's UnmarshalTypeError; not for null."""
    return _JSON_KINDS.get(type(value), "number")


_JSON_ESCAPED: Final = frozenset("<>&\u2028\u2029")
_JSON_ESCAPES: Final = {ord(character): f"\\u{ord(character):04x}" for character in _JSON_ESCAPED}


def go_json(value: Any) -> str:
    """Encodes a value like encoding/json, with <, >, & and the line separators of Unicode escaped."""
    text = json_text(_whole(value))
    return text if _JSON_ESCAPED.isdisjoint(text) else text.translate(_JSON_ESCAPES)


def _whole(value: Any) -> Any:
    """Converts whole floats to integers: Go prints no fraction of zero."""
    if isinstance(value, RawObject):
        return value
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return json_number(value) if isinstance(value, float) else value


def json_number(value: float) -> float:
    """Returns the number that results from encoding a float as JSON and decoding it: a whole float becomes an integer."""
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < _PRINTED_WITH_EXPONENT else value

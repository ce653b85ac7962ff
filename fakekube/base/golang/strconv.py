"""Formats values like Go: %q, %v, %T, %s and %#v of fmt, and the numbers of encoding/json. Messages of the real server contain
them.

Specified by: strconv.Quote, strconv.FormatFloat, encoding/json (floatEncoder, HTML escaping); the documentation of Go's package
fmt, for the types that decoding into `any` produces: map[string]interface {}, []interface {}, string, bool, int64, float64, nil.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from fakekube.base.golang.json_writer import RawObject
from fakekube.base.golang.strings import byte_of, json_text

#: What strconv.ParseBool takes for true.
TRUE_TEXTS: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})

#: The greatest numbers of int32 and int64 (math.MaxInt32, math.MaxInt64).
MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1

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
    """Formats the Go type of a JSON value, or of a `GoValue`, with %T."""
    return value.type if isinstance(value, GoValue) else _GO_TYPES.get(type(value), "<nil>")


_JSON_KINDS: Final[dict[type, str]] = {dict: "object", list: "array", str: "string", bool: "bool"}


def unmarshal_error(kind: str, wanted: str, field: str | None = None) -> str:
    """Returns the error of encoding/json for a value that does not fit a Go type (UnmarshalTypeError).

    Args:
        kind: the JSON type of the value (`json_kind`), with the number itself where Go shows it.
        wanted: the Go type.
        field: the struct and the path in it; None if the value is no field.
    """
    place = "value" if field is None else f"struct field {field}"
    return f"json: cannot unmarshal {kind} into Go {place} of type {wanted}"


#: Go's type of an object without a type of its own.
UNTYPED_OBJECT: Final = "map[string]interface {}"


def json_kind(value: Any) -> str:
    """Returns the name of a value's JSON type in encoding/json's UnmarshalTypeError; not for null."""
    return _JSON_KINDS.get(type(value)) or ("object" if isinstance(value, dict) else "number")


_JSON_ESCAPED: Final = frozenset("<>&\u2028\u2029")
_JSON_ESCAPES: Final = {ord(character): f"\\u{ord(character):04x}" for character in _JSON_ESCAPED}


#: A string, or a number of the size for which orjson begins to print exponents; encoding/json does so for smaller ones.
_STRING_OR_SMALL: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?[\d.]+e-6(?!\d)')


def go_json(value: Any) -> str:
    """Encodes a value like encoding/json, with <, >, & and the line separators of Unicode escaped."""
    text = json_text(_to_integers(value))
    if "e-6" in text:
        text = _STRING_OR_SMALL.sub(lambda found: found[0] if found[0][0] == '"' else json_float(float(found[0])), text)
    return text if _JSON_ESCAPED.isdisjoint(text) else text.translate(_JSON_ESCAPES)


def _to_integers(value: Any) -> Any:
    """Converts whole floats to integers: Go prints no fraction of zero."""
    if isinstance(value, RawObject):
        return value
    if isinstance(value, dict):
        return {name: _to_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_to_integers(item) for item in value]
    return json_number(value) if isinstance(value, float) else value


def json_float(value: float) -> str:
    """Prints a finite number like encoding/json: the shortest digits, with an exponent only below 1e-6 and from 1e21."""
    if value == 0 or 1e-6 <= abs(value) < _PRINTED_WITH_EXPONENT:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return repr(value).replace("e-0", "e-")


def json_number(value: float) -> float:
    """Returns the number that results from encoding a float as JSON and decoding it: a whole float becomes an integer."""
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < _PRINTED_WITH_EXPONENT else value


# --- Decimal integers, with the error messages of strconv ------------------------------------------------------------
# A text of any length is parsed in bounded time: the first twenty significant digits decide whether a number fits.
#
# Specified by: strconv (ParseInt, ParseUint and Atoi, base 10).


INT32: Final = range(-(1 << 31), 1 << 31)
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
    if len(text) < _TWENTY_DIGITS - 1 and text.isascii() and text.isdigit():
        return int(text)
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


# --- JSON values as Go's fmt prints them -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GoValue:
    """A Go value without a JSON equivalent, which the real server stores among JSON values."""

    type: str
    """The output of %T."""
    text: str
    """The output of %v."""
    syntax: str
    """The output of %#v."""
    value: Any = None
    """The equivalent JSON value."""


def go_type_or_nil(value: Any) -> str:
    """Formats the reflect.Type of a value, which may be nil, with %s."""
    return "%!s(<nil>)" if value is None else go_type(value)


def plain(value: Any) -> str:
    """Formats a value with %v."""
    if isinstance(value, dict):
        return f"map[{' '.join([f'{key}:{plain(value[key])}' for key in sorted(value)])}]"
    if isinstance(value, list):
        return f"[{' '.join([plain(item) for item in value])}]"
    if isinstance(value, GoValue):
        return value.text
    return value if isinstance(value, str) else _scalar(value)


def string_verb(value: Any) -> str:
    """Formats a value with %s; values that are not strings are marked as errors (`%!s(int64=1)`)."""
    if isinstance(value, dict):
        return f"map[{' '.join([f'{key}:{string_verb(value[key])}' for key in sorted(value)])}]"
    if isinstance(value, list):
        return f"[{' '.join([string_verb(item) for item in value])}]"
    if isinstance(value, str):
        return value
    return "%!s(<nil>)" if value is None else f"%!s({go_type(value)}={_scalar(value)})"


def go_syntax(value: Any) -> str:
    """Formats a value with %#v."""
    if isinstance(value, dict):
        members = ", ".join(f"{go_quote(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(go_syntax, value))}}}"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, GoValue):
        return value.syntax
    return "interface {}(nil)" if value is None else _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "<nil>"
    return go_float(value) if isinstance(value, float) else str(value)

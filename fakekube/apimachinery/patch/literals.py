"""Scalars with their JSON text.

The real server compares some values by their JSON text: `"é"` and `"\\u00e9"` are different. Bodies for which this
could matter (rare: `has_ambiguous_literals`) are parsed into `Literal`s instead of plain scalars.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

from fakekube.base.golang.json_writer import write_json
from fakekube.base.golang.strings import json_text

#: Escapes, characters that Go escapes, and numbers with several forms. The pattern begins with a set of bytes, for which
#: the search is ten times as fast as for alternatives.
_AMBIGUOUS = re.compile(rb"[\\<>&\xe2.eE-](?:(?<=[\\<>&])|(?<=\xe2)\x80[\xa8\xa9]|(?<=\d[.eE])|(?<=-)0)")
#: The number of digits from which on an integer may be beyond float64.
_MANY_DIGITS = 300
#: Finds such an integer; it begins with a set, too.
_HUGE = re.compile(rb"[0-9]\d{%d}" % (_MANY_DIGITS - 1))

_GO_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_GO_ESCAPED = re.compile("[<>&\u2028\u2029]")


@dataclass(slots=True, frozen=True)
class Literal:
    """A scalar and its JSON text."""

    value: Any
    text: str


def has_ambiguous_literals(body: bytes) -> bool:
    """Reports whether this JSON text may contain scalars in another form than Go's."""
    return _AMBIGUOUS.search(body) is not None or (len(body) >= _MANY_DIGITS and _HUGE.search(body) is not None)


def literal_text(value: Any) -> str:
    """Returns the JSON text of a scalar: the literal, or Go's form."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = json_text(value)
    return _GO_ESCAPED.sub(lambda match: _GO_ESCAPES[match[0]], text)


def as_written(value: Any) -> str:
    """Encodes as JSON without spaces; literals keep their text, but <, > and & are escaped (like a json.RawMessage)."""
    return write_json(value, lambda scalar: _escape(scalar).encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _escape(value: Any) -> str:
    return _GO_ESCAPED.sub(lambda match: _GO_ESCAPES[match[0]], literal_text(value))


def go_json(value: Any) -> str:
    """Encodes as JSON like Go's map[string]interface{}: keys sorted, whole floats as integers, <, > and & escaped."""
    text = json_text(_with_whole_numbers(value), sort_keys=True)
    return _GO_ESCAPED.sub(lambda match: _GO_ESCAPES[match[0]], text)


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_with_whole_numbers, value))
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


#: The tokens of JSON: strings, punctuation, and everything else.
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


def loads_with_literals(body: bytes) -> Any:
    """Parses JSON that is known to be well formed; strings and numbers become literals."""
    return _read_value(_TOKENS.findall(body.decode(errors="replace"))[::-1])


def _read_value(tokens: list[str]) -> Any:
    """Reads a value from the end of the reversed tokens."""
    token = tokens.pop()
    if token == "{":
        return _read_object(tokens)
    if token == "[":
        return _read_list(tokens)
    value = _scalar(token)
    return value if value is None or isinstance(value, bool) else Literal(value, token)


def _scalar(token: str) -> Any:
    try:
        return orjson.loads(token)
    except orjson.JSONDecodeError:  # a number beyond float64, or a lone surrogate, in place of which Go reads U+FFFD
        value = json.loads(token)
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if isinstance(value, str) else value


def _read_object(tokens: list[str]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    while (token := tokens.pop()) != "}":
        if token != ",":
            tokens.pop()  # the colon
            members[_scalar(token)] = _read_value(tokens)
    return members


def _read_list(tokens: list[str]) -> list[Any]:
    items: list[Any] = []
    while (token := tokens.pop()) != "]":
        if token != ",":
            tokens.append(token)
            items.append(_read_value(tokens))
    return items


def without_literals(value: Any) -> Any:
    """Returns the plain value; parts without literals are shared."""
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, dict):
        plain = {key: without_literals(item) for key, item in value.items()}
        return plain if any(plain[key] is not item for key, item in value.items()) else value
    if isinstance(value, list):
        items = [without_literals(item) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value

"""JSON values as Go's fmt prints them: several of the real server's messages show them so.

Specified by: the documentation of Go's package fmt (verbs %v, %s, %#v), for the types that encoding into
`any` makes: map[string]interface {}, []interface {}, string, bool, int64, float64 and nil.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fakekube.golang.quoting import go_float, go_quote
from fakekube.golang.quoting import go_type as _type_of_json

__all__ = ["GoValue", "go_syntax", "go_type", "go_type_or_nil", "plain", "string_verb"]


@dataclass(frozen=True, slots=True)
class GoValue:
    """A value that JSON does not have, where the real server holds one among JSON values."""

    type: str
    """As %T prints it."""
    text: str
    """As %v prints it."""
    syntax: str
    """As %#v prints it."""
    value: Any = None
    """What it stands for."""


def go_type(value: Any) -> str:
    """%T"""
    return value.type if isinstance(value, GoValue) else _type_of_json(value)


def go_type_or_nil(value: Any) -> str:
    """The Go type of a value, as %s prints a reflect.Type that may be nil."""
    return "%!s(<nil>)" if value is None else go_type(value)


def plain(value: Any) -> str:
    """%v"""
    if isinstance(value, dict):
        return f"map[{' '.join([f'{key}:{plain(value[key])}' for key in sorted(value)])}]"
    if isinstance(value, list):
        return f"[{' '.join([plain(item) for item in value])}]"
    if isinstance(value, GoValue):
        return value.text
    return value if isinstance(value, str) else _scalar(value)


def string_verb(value: Any) -> str:
    """%s: what is no string is marked as a mistake."""
    if isinstance(value, dict):
        return f"map[{' '.join([f'{key}:{string_verb(value[key])}' for key in sorted(value)])}]"
    if isinstance(value, list):
        return f"[{' '.join([string_verb(item) for item in value])}]"
    if isinstance(value, str):
        return value
    return "%!s(<nil>)" if value is None else f"%!s({go_type(value)}={_scalar(value)})"


def go_syntax(value: Any) -> str:
    """%#v"""
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


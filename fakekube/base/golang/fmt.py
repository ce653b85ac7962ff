"""Formats JSON values like Go's fmt. Several messages of the real server contain values in this form.

Specified by: the documentation of Go's package fmt (verbs %v, %s, %#v), for the types that decoding into
`any` produces: map[string]interface {}, []interface {}, string, bool, int64, float64 and nil.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fakekube.base.golang.strconv import go_float, go_quote
from fakekube.base.golang.strconv import go_type as _type_of_json


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


def go_type(value: Any) -> str:
    """Formats the type of a value with %T."""
    return value.type if isinstance(value, GoValue) else _type_of_json(value)


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

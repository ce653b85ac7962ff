"""Resolves field paths in a schema (`.spec.a`, `['key']`): of selectable fields, and the fieldPath of validation rules.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (ValidFieldPath).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: An openAPIV3Schema as JSON.
Schema = Mapping[str, Any]

#: A delimiter, a quoted string (which may contain delimiters and may be unterminated), or the text between delimiters.
_TOKENS = re.compile(r"[.\[\]]|'.*?(?<!\\)'|'.*|[^.\[\]]+", re.DOTALL)
_ESCAPE = re.compile(r"\\.")
_ESCAPED = {"\\a": "\a", "\\b": "\b", "\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v", "\\'": "'", "\\\\": "\\"}


class SchemaPathError(ValueError):
    """A path is not valid. The message is the real server's."""


@dataclass(slots=True, frozen=True)
class Place:
    """The target of a path."""

    path: str
    """The path in the form of field errors."""
    root: str
    """The first name."""
    schema: Schema | None
    """The schema of the value; None for a value of an untyped map."""


def place_at(path: str, schema: Schema, *, brackets: bool = True) -> Place:
    """Resolves a path in a schema; `brackets` allows the array notation. Raises SchemaPathError."""
    tokens, names = _tokens(path), list[tuple[str, bool]]()
    below: Schema | None = schema
    for token in tokens:
        if token == "[":
            if not brackets:
                raise SchemaPathError("array notation is not allowed")
            name = _unquote(_next(tokens))
            below, is_field = _step(below, name)
            if (end := _next(tokens)) != "]":
                raise SchemaPathError(f"expected ] but got {end}")
        elif token == ".":
            name = _next(tokens)
            below, is_field = _step(below, name)
        else:
            raise SchemaPathError(f"expected [ or . but got: {token}")
        names.append((name, is_field))
    shown = "".join(f".{name}" if is_field else f"[{name}]" for name, is_field in names)
    return Place(shown.removeprefix("."), names[0][0] if names else "", below)


def _tokens(path: str) -> Iterator[str]:
    return (match.group() for match in _TOKENS.finditer(path))


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise SchemaPathError("unexpected end of JSON path")
    return token


def _unquote(token: str) -> str:
    if len(token) < 2 or not (token.startswith("'") and token.endswith("'")):
        raise SchemaPathError(f"expected single quoted string but got {token}")
    bad = [escape for escape in _ESCAPE.findall(token[1:-1]) if escape not in _ESCAPED]
    if bad:
        raise SchemaPathError(f"invalid string literal: invalid escape char {bad[-1]}")
    return _ESCAPE.sub(lambda match: _ESCAPED[match.group()], token[1:-1])


def _step(schema: Schema | None, name: str) -> tuple[Schema | None, bool]:
    """Returns the schema of a member, and whether the name is a field (else it is a map key)."""
    schema = schema or {}
    if schema.get("properties"):
        if name in schema["properties"]:
            return schema["properties"][name], True
    elif schema.get("additionalProperties") is not None:
        values = schema["additionalProperties"]
        return None if isinstance(values, bool) else values, False
    raise SchemaPathError("does not refer to a valid field")

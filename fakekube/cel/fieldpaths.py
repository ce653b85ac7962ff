"""The `fieldPath` of a rule: `.spec['odd-name'].key`, against a schema.

Specified by: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (ValidFieldPath).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["FieldPathError", "field_path", "valid_field_path"]

Schema = Mapping[str, Any]

_TOKEN = re.compile(r"[.\[\]]|'(?:[^'\\]|\\.)*'|[^.\[\]]+", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """The path is none, or leads nowhere; in the real server's words."""


def field_path(text: str, schema: Schema) -> str:
    """The path as errors print it; empty if it is not valid."""
    try:
        return valid_field_path(text, schema)
    except FieldPathError:
        return ""


def valid_field_path(text: str, schema: Schema) -> str:
    """The path as errors print it. Raises FieldPathError."""
    tokens = iter(_TOKEN.findall(text))
    path, here = "", schema
    for token in tokens:
        if token == "[":
            name = _unquoted(_following(tokens))
        elif token == ".":
            name = _following(tokens)
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
        path, here = _step(path, here, name)
        if token == "[" and (closing := _following(tokens)) != "]":
            raise FieldPathError(f"expected ] but got {closing}")
    return path


def _following(tokens: Any) -> str:
    token = next(tokens, None)
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    return str(token)


def _step(path: str, schema: Schema, name: str) -> tuple[str, Schema]:
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    if properties is not None:
        if name not in properties:
            raise FieldPathError("does not refer to a valid field")
        return (f"{path}.{name}" if path else name), properties[name]
    if isinstance(additional, Mapping):
        return f"{path}[{name}]", additional
    raise FieldPathError("does not refer to a valid field")


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")

    def character(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", character, token[1:-1], flags=re.DOTALL)

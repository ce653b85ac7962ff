"""Types of expressions, and how they fit each other.

Specified by: cel-go/common/types/types.go, cel-go/checker/types.go; types of schemas:
k8s.io/apiserver/pkg/cel/common/schemas.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.cel.names import escape
from fakekube.cel.views import with_object_meta

__all__ = [
    "ANY", "BOOL", "DYN", "INT", "STRING", "Type", "fits", "join", "list_of", "map_of", "optional_of", "read", "schema_type",
    "substituted",
]

Schema = Mapping[str, Any]
Bindings = dict[str, "Type"]


@dataclass(frozen=True, slots=True)
class Type:
    """A type: `int`, `list(A)` … Those of objects have fields; names of one capital letter are variables."""

    name: str
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name

    @property
    def is_unknown(self) -> bool:
        """Will only the value tell?"""
        return self.name in ("dyn", "any")

    @property
    def is_variable(self) -> bool:
        return self.name[0] == "_" or (len(self.name) == 1 and self.name.isupper())


DYN: Final = Type("dyn")
ANY: Final = Type("any")
BOOL: Final = Type("bool")
INT: Final = Type("int")
STRING: Final = Type("string")
_NULL_FITS: Final = frozenset({"timestamp", "duration", "optional_type"})


def list_of(items: Type) -> Type:
    return Type("list", (items,))


def map_of(keys: Type, values: Type) -> Type:
    return Type("map", (keys, values))


def optional_of(content: Type) -> Type:
    return Type("optional_type", (content,))


def read(text: str) -> Type:
    """A type from its text."""
    match = re.fullmatch(r"\s*([\w.]+)(?:\((.*)\))?\s*", text)
    assert match is not None, text
    return Type(match[1], tuple(map(read, _split(match[2]))) if match[2] else ())


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    return re.findall(r"(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+", text)


def substituted(wanted: Type, bindings: Bindings) -> Type:
    """With variables replaced by what they stand for; unbound ones are dyn."""
    if wanted.is_variable:
        bound = bindings.get(wanted.name)
        return substituted(bound, bindings) if bound is not None else DYN
    if not wanted.parameters:
        return wanted
    return Type(wanted.name, tuple(substituted(part, bindings) for part in wanted.parameters), wanted.fields)


def fits(wanted: Type, given: Type, bindings: Bindings) -> bool:
    """Can a value of `given` stand where `wanted` is asked for? Binds the variables of `wanted`."""
    if wanted.is_variable:
        bound = bindings.get(wanted.name)
        if bound is None or bound.is_unknown:
            bindings[wanted.name] = given
            return True
        if not fits(bound, given, bindings):
            return False
        if given.is_unknown:
            bindings[wanted.name] = given
        return True
    if wanted.is_unknown or given.is_unknown:
        return True
    if given.name == "null" and (wanted.name in _NULL_FITS or wanted.fields is not None):
        return True
    if wanted.name != given.name or len(wanted.parameters) != len(given.parameters):
        return False
    return all(fits(one, other, bindings) for one, other in zip(wanted.parameters, given.parameters, strict=True))


def join(types: list[Type]) -> Type:
    """The type of elements that stand side by side; dyn if they have none in common."""
    joined: Type | None = None
    for each in types:
        if joined is None or fits(joined, each, {}):
            joined = each if joined is None else joined if not each.is_unknown else DYN
        else:
            return DYN
    return joined or DYN


_FORMATS: Final = {
    "byte": Type("bytes"), "duration": Type("duration"), "date": Type("timestamp"), "date-time": Type("timestamp"),
}
_SCALARS: Final = {"boolean": BOOL, "number": Type("double"), "integer": INT}


def schema_type(schema: Schema, root: bool = False) -> Type | None:
    """The type of the values of a schema; None if expressions cannot see them."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    kind = schema.get("type")
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind == "string":
        return _FORMATS.get(schema.get("format", ""), STRING)
    if kind == "array":
        items = schema_type(schema.get("items") or {})
        return list_of(items) if items else None
    if kind != "object":
        return None
    if isinstance(schema.get("additionalProperties"), Mapping):
        values = schema_type(schema["additionalProperties"])
        return map_of(STRING, values) if values else None
    known = with_object_meta(schema) if root or schema.get("x-kubernetes-embedded-resource") else schema
    types = {
        name: seen
        for name, part in (known.get("properties") or {}).items()
        if (seen := schema_type(part)) is not None
    }
    return Type("object", (), {escaped: seen for name, seen in types.items() if (escaped := escape(name)) is not None})

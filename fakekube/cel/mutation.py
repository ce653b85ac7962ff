"""What expressions of mutating policies make: parts of an apply configuration, and operations of a JSON patch.

`Object{…}`, `Object.spec{…}` … are objects of any fields, named after their place; `JSONPatch{…}` is one operation.
`native` is the JSON that a value stands for.

Specified by: k8s.io/apiserver/pkg/cel/mutation (dynamic/objects.go, jsonpatch.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.cel import values
from fakekube.cel.errors import EvaluationError
from fakekube.cel.values import Opaque, kind_of
from fakekube.golang.quoting import go_quote, go_type

__all__ = ["MAKERS", "JSONPatch", "ObjectValue", "maker_of", "native", "type_mismatches"]


@dataclass(frozen=True, slots=True)
class ObjectValue(Opaque):
    """An object that an expression has made, without a schema."""

    type_name = "Object"
    name: str
    """Of its type: `Object`, or `Object.spec.template` …"""
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JSONPatch(Opaque):
    """One operation; `value` is ABSENT where there is none."""

    type_name = "JSONPatch"
    op: str = ""
    path: str = ""
    source: str = ""
    value: Any = values.ABSENT


Maker = Callable[[Mapping[str, Any]], Opaque]

_TEXTS: Final[Mapping[str, str]] = {"op": "op", "path": "path", "from": "source"}


def _json_patch(fields: Mapping[str, Any]) -> JSONPatch:
    arguments: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "value":
            arguments["value"] = value
        elif name not in _TEXTS:
            raise EvaluationError(f"unexpected JSONPatchType field: {name}")
        elif isinstance(value, str):
            arguments[_TEXTS[name]] = value
        else:
            raise EvaluationError(f"unexpected type {go_type(value)} for JSONPatchType '{name}' field")
    return JSONPatch(**arguments)


MAKERS: Final[Mapping[str, Maker]] = {"JSONPatch": _json_patch}


def maker_of(name: str) -> Maker:
    """What makes a value of a type of messages from its fields."""
    return MAKERS.get(name) or (lambda fields: ObjectValue(name, fields))


def native(value: Any) -> Any:
    """The JSON of a value. Raises EvaluationError for a key that is no text."""
    if isinstance(value, ObjectValue):
        return {name: native(part) for name, part in value.fields.items()}
    kind = kind_of(value)
    if kind is list:
        return [native(item) for item in value]
    if kind is values.Mapping:
        return {_key(key): native(value.find(key)) for key in value}
    if kind is values.UInt:
        return int(value)
    return value


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise EvaluationError(f'map key "{key}" is of type {values.go_name_of(key)}, not string')


def type_mismatches(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Where the types of objects are not named after the fields that they stand in."""
    if isinstance(value, ObjectValue):
        place = path or (value.name,)
        expected = ".".join(place)
        if value.name != expected:
            yield (
                f"unexpected type name {go_quote(value.name)}, expected {go_quote(expected)}, which matches field name path "
                "from root Object type"
            )
        for name, part in value.fields.items():
            yield from type_mismatches(part, (*place, name))
        return
    kind = kind_of(value)
    if kind is list:
        for item in value:
            yield from type_mismatches(item, path)
    elif kind is values.Mapping:
        for key in value:
            yield from type_mismatches(value.find(key), path)

"""Conversion to the internal types of the real server, for messages that print a Go value of an internal type.

Internal types have no JSON names, so the output has Go's names in Go's order, and no field is omitted: `{"Name":"c",
"Image":"i","Command":null,…}`. The names are data of the minor (`internal.json`).

`semantic_deep_equal` is the semantic equality of two trees: absent, null and empty values are equal. What a pointer of Go leads
to is an exception: an absent struct differs from an empty one. `semantic_deep_equal_as` knows the type.

Specified by: pkg/apis/core/types.go; k8s.io/apimachinery/pkg/util/diff; k8s.io/apimachinery/pkg/api/equality
(Semantic.DeepEqual).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.data import Facts, InternalField
from fakekube.apimachinery.schema.model import Field, Shape, Type

_ZERO: Mapping[str, Any] = {"": "", "#": 0, "!": False, '"': "0", "?": None, "*": None, ".": {}, "{": None}

#: The number of a minor → struct → fields that it does not have; internal structs of 1.33 were not collected, these are of 1.34.
_UNKNOWN: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    33: {
        "Container": ("RestartPolicyRules",),
        "EphemeralContainerCommon": ("RestartPolicyRules",),
        "EnvVarSource": ("FileKeyRef",),
        "PodSpec": ("HostnameOverride",),
        "VolumeProjection": ("PodCertificate",),
    }
}

#: Fields of a v1 PodSpec that the internal PodSpec has in its security context.
_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


def to_internal(struct: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON of the internal struct of that name (`Container`) for a v1 object."""
    return dict(_members(struct, as_held(struct, value)))


def without_empty_fields(value: Any) -> Any:
    """Returns the JSON of a v1 struct, without empty fields; before 1.34, whose messages show them in Go's syntax, with them."""
    return value if shows_empty_fields() else _without_empty_fields(value)


def shows_empty_fields() -> bool:
    """Reports whether messages show bad values in Go's syntax, as those before 1.34 do, with the fields that are empty."""
    return features.current().minor < 34


def _without_empty_fields(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_empty_fields(member) for name, member in value.items()}
        return {name: member for name, member in kept.items() if member not in ({}, [], None)}
    return [_without_empty_fields(item) for item in value] if isinstance(value, list) else value


def as_held(struct: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the fields of a v1 object as the internal struct holds them."""
    if struct != "PodSpec":
        return value
    host = {name: value[name] for name in _HOST_FIELDS if name in value}
    return {**value, "securityContext": {**value.get("securityContext", {}), **host}}


def _members(struct: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    lowered = {name.lower(): member for name, member in value.items()}
    for field in internal_fields(struct):
        if field.struct == "ObjectMeta":
            metadata = value.get("metadata") or {}
            if shows_empty_fields():
                yield "ObjectMeta", metadata
            else:
                yield from _without_empty_fields(metadata).items()
        elif field.kind == "+":
            yield from _members(field.struct, value)
        else:
            yield field.name, _convert_field(field, lowered.get(field.json_name, _ZERO[field.kind]))


def _convert_field(field: InternalField, value: Any) -> Any:
    if field.kind == "{":
        return value
    if field.kind == "*" and isinstance(value, dict):
        return dict(sorted(value.items()))
    if not field.struct or value is None:
        return without_empty_fields(value) if isinstance(value, dict) else value
    if isinstance(value, list):
        return [to_internal(field.struct, item) for item in value]
    return to_internal(field.struct, value)


def internal_fields(struct: str) -> tuple[InternalField, ...]:
    """Returns the fields of an internal struct."""
    emulation = features.current()
    return _fields_in(emulation.facts, emulation.minor, struct)


@cache
def _fields_in(facts: Facts, minor: int, struct: str) -> tuple[InternalField, ...]:
    return tuple(field for field in facts.internal[struct] if field.name not in _UNKNOWN.get(minor, {}).get(struct, ()))


def semantic_deep_equal(left: Any, right: Any) -> bool:
    """Reports whether the values are equal, where absent, null, {} and [] are equal."""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(semantic_deep_equal(left.get(key), right.get(key)) for key in {**left, **right})
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return all(map(semantic_deep_equal, left, right))
    return _is_empty(left) and _is_empty(right)


def semantic_deep_equal_as(type_: Type, left: Any, right: Any) -> bool:
    """Reports whether the values of a type are equal, where absent, empty and zero are equal except behind a pointer."""
    if type_.shape is Shape.STRUCT:
        left, right = left or {}, right or {}
        fields = type_.fields
        return all(_is_same_field(fields[name], left.get(name), right.get(name)) for name in {**left, **right} if name in fields)
    if type_.items is not None:
        return _are_same_items(type_.items, left, right)
    return bool(left == right) or (not left and not right)


def _is_same_field(field: Field, left: Any, right: Any) -> bool:
    if field.pointer and (left is None or right is None):
        return left is right
    return semantic_deep_equal_as(field.type, left, right)


def _are_same_items(type_: Type, left: Any, right: Any) -> bool:
    if not left or not right:
        return not left and not right
    if isinstance(left, dict):
        return bool(left.keys() == right.keys()) and all(
            semantic_deep_equal_as(type_, item, right[key]) for key, item in left.items()
        )
    return len(left) == len(right) and all(map(partial(semantic_deep_equal_as, type_), left, right))


def contains_empty(type_: Type, value: Any) -> bool:
    """Reports whether this tree contains a list or map that is empty, but not null.

    Go's reflect.DeepEqual sees that as a change, as the stored object has null in its place.
    """
    if type_.items is not None and isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return not value or any(contains_empty(type_.items, item) for item in items)
    if type_.shape is Shape.STRUCT and isinstance(value, dict):
        fields = type_.fields
        return any(contains_empty(fields[name].type, member) for name, member in value.items() if name in fields)
    return False


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)

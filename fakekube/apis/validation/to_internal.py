"""Conversion to the internal types of the real server, for messages that print a Go value of an internal type.

Internal types have no JSON names, so the output has Go's names in Go's order, and no field is omitted: `{"Name":"c",
"Image":"i","Command":null,…}`. The names are data of the minor (`internal.json`), by struct: `Name` is a string, `Name#` a
number, `Name!` a boolean, `Name"` a quantity, `Name?` a pointer, `Name*` a list or map, `Name.` a struct (each with the name
of the struct, if any), `Name{` any JSON, `+Name` an embedded struct; `@name` follows where the JSON name differs by more than
case.

`same` is the semantic equality of two trees: absent, null and empty values are equal. What a pointer of Go leads to is an
exception: an absent struct differs from an empty one. `same_as` knows the type.

Specified by: pkg/apis/core/types.go; k8s.io/apimachinery/pkg/util/diff; k8s.io/apimachinery/pkg/api/equality
(Semantic.DeepEqual).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

from fakekube.apimachinery import features
from fakekube.apimachinery.data import Facts
from fakekube.apimachinery.schema.model import Field, Shape, Type

_MARK = re.compile(r'[#!"?*.{]')
_ZERO: Mapping[str, Any] = {"": "", "#": 0, "!": False, '"': "0", "?": None, "*": None, ".": {}, "{": None}

#: Fields of a v1 PodSpec that the internal PodSpec has in its security context.
_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


class _Field(NamedTuple):
    name: str
    json_name: str
    """The name of the struct, in lower case."""
    kind: str
    struct: str


def to_internal(struct: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON of the internal struct of that name (`Container`) for a v1 object."""
    return dict(_members(struct, _as_held(struct, value)))


def without_empty_fields(value: Any) -> Any:
    """Returns the JSON of a v1 struct, without empty fields."""
    if isinstance(value, dict):
        kept = {name: without_empty_fields(member) for name, member in value.items()}
        return {name: member for name, member in kept.items() if member not in ({}, [], None)}
    return [without_empty_fields(item) for item in value] if isinstance(value, list) else value


def diff(struct: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Returns the difference between two v1 objects, line by line, of their internal forms."""
    import difflib

    before, after = _lines(to_internal(struct, old)), _lines(to_internal(struct, new))
    header, body = 2, list(difflib.unified_diff(before, after))
    return "".join(body[header:])


def _as_held(struct: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    if struct != "PodSpec":
        return value
    host = {name: value[name] for name in _HOST_FIELDS if name in value}
    return {**value, "securityContext": {**value.get("securityContext", {}), **host}}


def _members(struct: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    lowered = {name.lower(): member for name, member in value.items()}
    for field in _fields(struct):
        if field.struct == "ObjectMeta":
            yield from without_empty_fields(value.get("metadata") or {}).items()
        elif field.kind == "+":
            yield from _members(field.struct, value)
        else:
            yield field.name, _convert_field(field, lowered.get(field.json_name, _ZERO[field.kind]))


def _convert_field(field: _Field, value: Any) -> Any:
    if field.kind == "{":
        return value
    if field.kind == "*" and isinstance(value, dict):
        return dict(sorted(value.items()))
    if not field.struct or value is None:
        return without_empty_fields(value) if isinstance(value, dict) else value
    if isinstance(value, list):
        return [to_internal(field.struct, item) for item in value]
    return to_internal(field.struct, value)


def _fields(struct: str) -> tuple[_Field, ...]:
    return _fields_in(features.current().facts, struct)


@cache
def _fields_in(facts: Facts, struct: str) -> tuple[_Field, ...]:
    return tuple(_field(word) for word in facts.internal[struct].split())


def _field(word: str) -> _Field:
    if word.startswith("+"):
        return _Field("", "", "+", word[1:])
    word, _, json_name = word.partition("@")
    mark = _MARK.search(word)
    if mark is None:
        return _Field(word, (json_name or word).lower(), "", "")
    name = word[: mark.start()]
    return _Field(name, (json_name or name).lower(), mark[0], word[mark.end() :])


def _lines(value: dict[str, Any]) -> list[str]:
    """Returns indented JSON as Go writes it."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return [f"{line}\n" for line in text.split("\n")]


def same(left: Any, right: Any) -> bool:
    """Reports whether the values are equal, where absent, null, {} and [] are equal."""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(left.get(key), right.get(key)) for key in {**left, **right})
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return all(map(same, left, right))
    return _is_empty(left) and _is_empty(right)


def same_as(type_: Type, left: Any, right: Any) -> bool:
    """Reports whether the values of a type are equal, where absent, empty and zero are equal except behind a pointer."""
    if type_.shape is Shape.STRUCT:
        left, right = left or {}, right or {}
        fields = type_.fields
        return all(_is_same_field(fields[name], left.get(name), right.get(name)) for name in {**left, **right} if name in fields)
    if type_.shape in (Shape.LIST, Shape.MAP) and type_.items is not None:
        return _are_same_items(type_.items, left, right)
    return bool(left == right) or (not left and not right)


def _is_same_field(field: Field, left: Any, right: Any) -> bool:
    if field.pointer and (left is None or right is None):
        return left is right
    return same_as(field.type, left, right)


def _are_same_items(type_: Type, left: Any, right: Any) -> bool:
    if not left or not right:
        return not left and not right
    if isinstance(left, dict):
        return bool(left.keys() == right.keys()) and all(same_as(type_, item, right[key]) for key, item in left.items())
    return len(left) == len(right) and all(map(partial(same_as, type_), left, right))


def contains_empty(type_: Type, value: Any) -> bool:
    """Reports whether this tree contains a list or map that is empty, but not null.

    Go's reflect.DeepEqual sees that as a change, as the stored object has null in its place.
    """
    if type_.shape in (Shape.LIST, Shape.MAP) and type_.items is not None and isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return not value or any(contains_empty(type_.items, item) for item in items)
    if type_.shape is Shape.STRUCT and isinstance(value, dict):
        fields = type_.fields
        return any(contains_empty(fields[name].type, member) for name, member in value.items() if name in fields)
    return False


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)

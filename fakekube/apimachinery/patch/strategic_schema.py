"""Looks up the patch metadata of a type for strategic merges: the field of a key, and its merge strategy.

Specified by: k8s.io/apimachinery/pkg/util/strategicpatch/meta.go and
third_party/forked/golang/json/fields.go, whose error messages for unknown fields are returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fakekube.apimachinery.schema.model import Field, Shape, Type

#: The reflect.Kind of types that are not structs.
_KINDS: dict[Shape, str] = {
    Shape.LIST: "slice",
    Shape.MAP: "map",
    Shape.STRING: "string",
    Shape.BOOLEAN: "bool",
    Shape.BYTES: "slice",
    Shape.NUMBER: "float64",
}


@dataclass(slots=True, frozen=True)
class Lookup:
    """The patch metadata of a field."""

    type: Type
    """The type of the object, or of the items of the list."""
    strategy: str
    """"merge", "replace" or ""; without `retainKeys`, since its directive works with every strategy."""
    merge_key: str

    @property
    def kind(self) -> str:
        return go_kind_of(self.type)


def go_kind_of(type: Type) -> str:
    """Returns the reflect.Kind of a type."""
    if type.shape is Shape.INTEGER:
        return type.format or "int64"
    return _KINDS.get(type.shape, "struct")


@lru_cache(maxsize=4096)
def look_up_object(type: Type, key: str) -> Lookup | str:
    """Returns the patch metadata of a field that is an object, or an error message if the type has no such field."""
    found = _field(type, key)
    return found if isinstance(found, str) else _lookup(found, found.type)


@lru_cache(maxsize=4096)
def look_up_list(type: Type, key: str) -> Lookup | str:
    """Returns the patch metadata of a field that is a list, or an error message."""
    found = _field(type, key)
    if isinstance(found, str):
        return found
    if found.type.shape is not Shape.LIST or found.type.items is None:
        if found.pointer:
            return _lookup(found, found.type)
        return f"expected slice or array type, but got: {go_kind_of(type)}"
    if found.type.items.shape in (Shape.LIST, Shape.BYTES):
        return "unexpected slice of slice"
    return _lookup(found, found.type.items)


def _lookup(field: Field, type: Type) -> Lookup:
    strategies = [strategy for strategy in field.patch_strategy if strategy != "retainKeys"]
    return Lookup(type, strategies[0] if strategies else "", field.patch_merge_key)


def _field(type: Type, key: str) -> Field | str:
    kind = go_kind_of(type)
    if kind != "struct":
        return f"merging an object in json but data type is not struct, instead is: {kind}"
    field = type.fields.get(key)
    if field is None:
        folded = key.lower()
        field = next((field for name, field in type.fields.items() if name.lower() == folded), None)
    if field is None:
        name = type.go.rpartition(".")[2]
        return f'unable to find api field in struct {name} for the json field "{key}"'
    return field

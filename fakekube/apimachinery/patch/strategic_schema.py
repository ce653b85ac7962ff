"""Looks up the patch metadata of a type for strategic merges: the field of a key, and its merge strategy.

Specified by: k8s.io/apimachinery/pkg/util/strategicpatch/meta.go and
third_party/forked/golang/json/fields.go, whose error messages for unknown fields are returned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fakekube.apimachinery.patch.errors import uninterpreted, unprocessable
from fakekube.apimachinery.schema.model import Field, Shape, Type
from fakekube.base.golang.fmt import go_type, go_type_or_nil, plain

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


# Strategic merge: identifies equal list items, and orders merged lists.
#
# Objects in a list are identified by the value of their merge key, scalars by their value. The order of the patch (by a
# directive or by its items) takes precedence over the order of the object; items that the patch does not contain keep
# their position relative to their neighbours in the object.
#
# Specified by: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go (normalizeElementOrder and what it calls).


DIRECTIVE = "$patch"


def is_directive(item: Any) -> bool:
    """Reports whether an item (or object) is a directive."""
    return isinstance(item, dict) and DIRECTIVE in item


def is_in_order(items: list[Any], order: list[Any], merge_key: str) -> bool:
    position = 0
    for item in items:
        if position == len(order):
            return False
        if is_directive(item):
            continue
        while not _is_same(item, order[position], merge_key):
            position += 1
            if position == len(order):
                return False
        position += 1
    return True


def _is_same(item: Any, other: Any, merge_key: str) -> bool:
    """Reports whether two items are the same: by merge key, scalars by value, and containers by kind, as in Go."""
    if merge_key:
        item, other = _key_of(item, merge_key), _key_of(other, merge_key)
    if type(item) is not type(other):
        return go_type(item) == go_type(other) and bool(item == other)
    return bool(identity(item, "") == identity(other, ""))


def partition(items: list[Any], order: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Splits items into those that the order contains, and the others."""
    if merge_key and items:
        for position, entry in enumerate(order):
            if not isinstance(entry, dict):
                raise uninterpreted(f"value for key {position} is not a map")
    mentioned = {found_identity(entry, merge_key) for entry in order}
    wanted: list[Any] = []
    others: list[Any] = []
    for item in items:
        (wanted if identity(item, merge_key) in mentioned else others).append(item)
    return wanted, others


def in_order(wanted: list[Any], others: list[Any], order: list[Any], original: list[Any], merge_key: str) -> list[Any]:
    """Returns the wanted items in their order; others before the first wanted item that follows them in the original."""
    in_original = _positions(original, merge_key)
    wanted = _sort(wanted, _positions(order, merge_key), merge_key)
    others = _sort(others, in_original, merge_key)
    merged: list[Any] = []
    rest = iter(others)
    other = next(rest, None)
    for item in wanted:
        limit = in_original.get(identity(item, merge_key), -1)
        while other is not None and 0 <= in_original.get(identity(other, merge_key), -1) < limit:
            merged.append(other)
            other = next(rest, None)
        merged.append(item)
    if other is not None:
        merged += [other, *rest]
    return merged


def _sort(items: list[Any], positions: dict[Any, int], merge_key: str) -> list[Any]:
    """Sorts items by position; as in the real server, those without one come first, in reverse order."""
    placed: list[tuple[int, Any]] = []
    for item in items:
        position = positions.get(identity(item, merge_key), -1)
        index = len(placed)
        while index and (position < 0 or placed[index - 1][0] < 0 or position < placed[index - 1][0]):
            index -= 1
        placed.insert(index, (position, item))
    return [item for _, item in placed]


def _positions(items: Iterable[Any], merge_key: str) -> dict[Any, int]:
    positions: dict[Any, int] = {}
    for position, item in enumerate(items):
        positions.setdefault(identity(item, merge_key), position)
    return positions


def identity(item: Any, merge_key: str) -> Any:
    """Returns the identity of an item: the value of its merge key, or the scalar, with its type; hashable."""
    if merge_key:
        item = _key_of(item, merge_key)
    if isinstance(item, dict | list):
        raise unprocessable()
    return go_type(item), item


def _key_of(item: Any, merge_key: str) -> Any:
    require_type(item, dict)
    if merge_key not in item:
        raise uninterpreted(f"map: {plain(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def require_merge_keys(merge_key: str, *lists: list[Any]) -> None:
    """Raises StatusError 500 for the first item that has no merge key."""
    for items in lists:
        for item in items:
            _key_of(item, merge_key)


def found_identity(item: Any, merge_key: str) -> Any:
    """Like `identity`, for an item that may lack the merge key; then it equals no other item."""
    if merge_key and isinstance(item, dict) and merge_key not in item:
        return None
    return identity(item, merge_key)


def element_type(*lists: list[Any]) -> type:
    """Returns the common type of all items."""
    types = {go_type(item): type(item) for items in lists for item in items}
    if not types:
        raise uninterpreted("no elements in any of the given slices")
    first = next(iter(types.values()))
    if first is list:
        raise unprocessable()
    if len(types) > 1:
        raise uninterpreted(f"list element types are not identical: {plain(list(lists))}")
    return first


def require_type(value: Any, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise uninterpreted(f"expected a {go_type(wanted())}, but received a {go_type_or_nil(value)}")

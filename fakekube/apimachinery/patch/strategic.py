"""Strategic merge patch: merge patch with lists that merge, for built-in kinds.

A patch is merged into an object along the object's type: the field's `patch_strategy` and `patch_merge_key` determine
how lists merge. Members that begin with `$` are directives, not data:

* `$patch: delete | replace` in an object empties or replaces it; in an item of a merging list it removes the
  item, or everything else;
* `$retainKeys: […]` in an object drops all members that are not listed;
* `$deleteFromPrimitiveList/name: […]` removes scalars from the list `name`;
* `$setElementOrder/name: […]` says the order of the list `name`; items that it does not mention keep their
  places relative to their neighbours in the object.

Invariant: the object is never changed, the result shares with it what the patch does not touch. The patch is
used up (the real server's messages show what is left of it), so callers pass a tree of their own: see
`apply`.

Specified by: k8s.io/apimachinery/pkg/util/strategicpatch (patch.go, meta.go), util/mergepatch/errors.go and
k8s.io/apiserver/pkg/endpoints/handlers/patch.go (which error is which code).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.errors import StatusError, field
from fakekube.apimachinery.errors.status import bad_request, invalid
from fakekube.apimachinery.patch import uninterpreted_error, unprocessable
from fakekube.apimachinery.schema.defaults import Defaulter
from fakekube.apimachinery.schema.model import Field, Shape, Type
from fakekube.apimachinery.schema.trees import deep_copy
from fakekube.apimachinery.schema.unstructured import from_unstructured
from fakekube.apimachinery.schema.walk import DecodeError
from fakekube.base.caches import LONGEST_TEXT, cache_if
from fakekube.base.golang.strconv import UNTYPED_OBJECT, go_type, go_type_or_nil, json_kind, plain, string_verb, unmarshal_error
from fakekube.base.objects import Object

# --- The patch metadata of a type: the field of a key, and its merge strategy ----------------------------------------
# Specified by: k8s.io/apimachinery/pkg/util/strategicpatch/meta.go and
# third_party/forked/golang/json/fields.go, whose error messages for unknown fields are returned.


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
        return _go_kind_of(self.type)


def _go_kind_of(type: Type) -> str:
    """Returns the reflect.Kind of a type."""
    if type.shape is Shape.INTEGER:
        return type.format or "int64"
    return _KINDS.get(type.shape, "struct")


_cache_by_key = cache_if(lambda _type, key: len(key) <= LONGEST_TEXT, 4096)


@_cache_by_key
def _look_up_object(type: Type, key: str) -> Lookup | str:
    """Returns the patch metadata of a field that is an object, or an error message if the type has no such field."""
    found = _field(type, key)
    return found if isinstance(found, str) else _lookup(found, found.type)


@_cache_by_key
def _look_up_list(type: Type, key: str) -> Lookup | str:
    """Returns the patch metadata of a field that is a list, or an error message."""
    found = _field(type, key)
    if isinstance(found, str):
        return found
    if found.type.shape is not Shape.LIST or found.type.items is None:
        if found.pointer:
            return _lookup(found, found.type)
        return f"expected slice or array type, but got: {_go_kind_of(type)}"
    if found.type.items.shape in (Shape.LIST, Shape.BYTES):
        return "unexpected slice of slice"
    return _lookup(found, found.type.items)


def _lookup(field: Field, type: Type) -> Lookup:
    strategies = [strategy for strategy in field.patch_strategy if strategy != "retainKeys"]
    return Lookup(type, strategies[0] if strategies else "", field.patch_merge_key)


def _field(type: Type, key: str) -> Field | str:
    kind = _go_kind_of(type)
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


# --- The identity and the order of list items ------------------------------------------------------------------------
# Objects in a list are identified by the value of their merge key, scalars by their value. The order of the patch (by a
# directive or by its items) takes precedence over the order of the object; items that the patch does not contain keep
# their position relative to their neighbours in the object.
#
# Specified by: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go (normalizeElementOrder and what it calls).


_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM_LIST = "$deleteFromPrimitiveList"
_ELEMENT_ORDER = "$setElementOrder"


def is_directive(item: Any) -> bool:
    """Reports whether an item (or object) is a directive."""
    return isinstance(item, dict) and _DIRECTIVE in item


def _is_in_order(items: list[Any], order: list[Any], merge_key: str) -> bool:
    """Reports whether the order contains the items, but for directives, and in this order."""
    position = 0
    for item in items:
        if position == len(order):
            return False
        if is_directive(item):
            continue
        while not _is_same_item(item, order[position], merge_key):
            position += 1
            if position == len(order):
                return False
        position += 1
    return True


def _is_same_item(item: Any, other: Any, merge_key: str) -> bool:
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
                raise uninterpreted_error(f"value for key {position} is not a map")
    mentioned = {identity_or_none(entry, merge_key) for entry in order}
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
    """Sorts items by position, by the insertions of the real server.

    An item goes behind the last one with a position that is not larger. One without a position, or with the smallest one, goes to
    the front.
    """
    following: list[int | None] = []
    first: int | None = None
    sorted_positions: list[int] = []
    placed: list[int] = []  # the indices of the items with these positions
    for index, item in enumerate(items):
        position = positions.get(identity(item, merge_key), -1)
        place = bisect_right(sorted_positions, position) if position >= 0 else 0
        if place:
            before = placed[place - 1]
            following.append(following[before])
            following[before] = index
        else:
            following.append(first)
            first = index
        if position >= 0:
            sorted_positions.insert(place, position)
            placed.insert(place, index)
    result = []
    while first is not None:
        result.append(items[first])
        first = following[first]
    return result


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
    if item.__class__ is not dict:
        _require_type(item, dict)
    if merge_key not in item:
        raise uninterpreted_error(f"map: {plain(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _require_merge_keys(merge_key: str, *lists: list[Any]) -> None:
    """Raises StatusError 500 for the first item that has no merge key."""
    for items in lists:
        for item in items:
            _key_of(item, merge_key)


def identity_or_none(item: Any, merge_key: str) -> Any:
    """Like `identity`, for an item that may lack the merge key; then it equals no other item."""
    if merge_key and isinstance(item, dict) and merge_key not in item:
        return None
    return identity(item, merge_key)


def _element_type(*lists: list[Any]) -> type:
    """Returns the common type of all items."""
    types = {go_type(item): type(item) for items in lists for item in items}
    if not types:
        raise uninterpreted_error("no elements in any of the given slices")
    first = next(iter(types.values()))
    if first is list:
        raise unprocessable()
    if len(types) > 1:
        raise uninterpreted_error(f"list element types are not identical: {plain(list(lists))}")
    return first


def _require_type(value: Any, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise uninterpreted_error(f"expected a {go_type(wanted())}, but received a {go_type_or_nil(value)}")


def decode(patch: Any) -> Object:
    """Checks that a parsed body is a strategic merge patch; null is an empty one.

    Raises:
        StatusError: 400 if it is not an object.
    """
    if patch is None:
        return {}
    if not isinstance(patch, dict):
        raise bad_request(unmarshal_error(json_kind(patch), UNTYPED_OBJECT))
    return patch


def apply(
    type: Type, document: Object, patch: Object, unknown: list[str] | None = None, default: Defaulter | None = None
) -> Object:
    """Applies the patch to `document` and decodes the result; returns a new tree.

    Args:
        type: the type of the kind in the version of the document, which is decoded.
        patch: from `decode`; it is used up.
        unknown: collects the messages about unknown fields.
        default: sets the constant defaults of the kind; None: they are not set.

    Raises:
        StatusError: 400, 422 or 500 for invalid directives and values, as in the real server.
    """
    merged = _merge_objects(document, patch, type)
    try:
        fitted: Object = from_unstructured(type, merged, unknown, decoded=document, default=default)
    except DecodeError as error:
        raise _no_merge_error(patch, str(error)) from None
    return fitted


def merge(type: Type, document: Object, patch: Object) -> Object:
    """Merges without decoding. The patch is not changed, the result shares parts with the document. Raises StatusError."""
    return _merge_objects(document, deep_copy(patch), type)


def refusal_error(type: Type, document: Object, patch: Object, problem: str) -> StatusError:
    """Returns a 422 for a patch that Strict validation rejects for this reason; the patch is used up.

    Raises the StatusError of a patch that cannot be merged, which comes first.
    """
    _merge_objects(document, patch, type)
    return _no_merge_error(patch, problem)


def _no_merge_error(rest: Object, problem: str) -> StatusError:
    """Returns the error; its message contains the rest of the patch after the merge."""
    return invalid("", "", "", [field.invalid("patch", plain(rest), problem)])


# --- Objects ----------------------------------------------------------------------------------------------------------


def _merge_objects(original: Object, patch: Object, type: Type) -> Object:
    if _DIRECTIVE in patch:
        return _apply_directive(patch)
    merged = dict(original)
    if _RETAIN_KEYS in patch:
        _retain_keys(merged, patch)
    for key in [key for key in patch if key.startswith(_ELEMENT_ORDER)]:
        _order_list(merged, patch, key, type)
    for key, value in patch.items():
        _merge_member(merged, key, value, type)
    return merged


def _apply_directive(patch: Object) -> Object:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        del patch[_DIRECTIVE]
        return patch
    if directive == "delete":
        return {}
    raise uninterpreted_error(_unknown_directive(directive, patch))


def _retain_keys(merged: Object, patch: Object) -> None:
    """Drops the members that the `$retainKeys` directive does not name; removes it from the patch."""
    retained = patch.pop(_RETAIN_KEYS)
    if not isinstance(retained, list):
        raise _bad_format("retainKeys")
    keys = {key for key in retained if isinstance(key, str)}
    for key, value in patch.items():
        is_directive = key.startswith((_DELETE_FROM_LIST, _ELEMENT_ORDER))
        if value is not None and not is_directive and key not in keys:
            raise _bad_format("retainKeys")
    for key in merged.keys() - keys:
        del merged[key]


def _merge_member(merged: Object, key: str, value: Any, type: Type) -> None:
    deletes = key.startswith(_DELETE_FROM_LIST)
    if deletes:
        key = _list_name(key, _DELETE_FROM_LIST, "primitive list")
    if value is None:
        merged.pop(key, None)
        return
    current = merged.get(key)
    if key not in merged or (current.__class__ is not value.__class__ and go_type(current) != go_type(value)):
        if not deletes:
            _drop_nulls(value)
            _set(merged, key, value)
    elif isinstance(current, dict):
        lookup = _expect_lookup(_look_up_object(type, key))
        merged[key] = value if lookup.strategy == "replace" else _merge_objects(current, value, lookup.type)
    elif isinstance(current, list):
        merged[key] = _merge_lists(current, value, _expect_lookup(_look_up_list(type, key)), deletes)
    else:
        merged[key] = value


def _set(merged: Object, key: str, value: Any) -> None:
    if is_directive(value):
        merged.pop(key, None)
    else:
        merged[key] = _without_directives(value)


def _without_directives(value: Any) -> Any:
    """Returns the value without objects that have a `$patch` directive; an object is changed in place."""
    if isinstance(value, dict):
        for key, item in list(value.items()):
            _set(value, key, item)
    elif isinstance(value, list):
        return [_without_directives(item) for item in value if not is_directive(item)]
    return value


def _drop_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            _drop_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item)


# --- Lists ------------------------------------------------------------------------------------------------------------


def _order_list(merged: Object, patch: Object, directive: str, type: Type) -> None:
    """Merges and orders the list of a `$setElementOrder` directive; removes both from the patch."""
    order = patch.pop(directive)
    _require_type(order, list)
    name = _list_name(directive, _ELEMENT_ORDER, "setElementOrder list")
    current, changes = merged.get(name, []), patch.get(name, [])
    _require_type(current, list)
    _require_type(changes, list)
    lookup = _expect_lookup(_look_up_list(type, name))
    _check_order(changes, order, lookup.merge_key)
    if name not in merged and name not in patch:
        return
    if name not in patch:
        items = current
    elif name not in merged:
        items = _without_directives(changes)
    else:
        items = _merge_lists(current, changes, lookup, deletes=False)
    wanted, others = partition(items, order, lookup.merge_key)
    if _element_type(current, changes) is dict:
        _require_merge_keys(lookup.merge_key, wanted, order, others, current)
    merged[name] = in_order(wanted, others, order, current, lookup.merge_key)
    patch.pop(name, None)


def _check_order(changes: list[Any], order: list[Any], merge_key: str) -> None:
    """Checks that the items of a patch are in the order of its `$setElementOrder` directive."""
    if not order or not changes:
        return
    kept = changes
    if merge_key:
        for item in changes:
            _require_type(item, dict)
        kept = [item for item in changes if item.get(_DIRECTIVE) != "delete"]
    if not _is_in_order(kept, order, merge_key):
        found = f"The order in patch list:\n{plain(changes)}\n"
        raise uninterpreted_error(f"{found} doesn't match {_ELEMENT_ORDER} list:\n{plain(order)}\n")


def _merge_lists(original: list[Any], patch: list[Any], lookup: Lookup, deletes: bool) -> list[Any]:
    if lookup.strategy != "merge" and not deletes:
        return patch
    if not original and not patch:
        return original
    if _element_type(original, patch) is not dict:
        if deletes:
            unwanted = {identity(item, "") for item in patch}
            return [item for item in original if identity(item, "") not in unwanted]
        merged = list({identity(item, ""): item for item in [*original, *patch]}.values())
    elif not lookup.merge_key:
        raise uninterpreted_error(f"cannot merge lists without merge key for {lookup.kind}")
    else:
        original, patch = _apply_item_directives(original, patch, lookup.merge_key)
        merged, is_ordered = _merge_items(original, patch, lookup)
        if is_ordered:
            return merged
    wanted, others = partition(merged, patch, lookup.merge_key)
    return in_order(wanted, others, patch, original, lookup.merge_key)


def _apply_item_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Returns the original without the items that the patch deletes, and the patch without directives."""
    changes: list[Any] = []
    unwanted: set[Any] = set()
    replaces = False
    for item in patch:
        if _DIRECTIVE not in item:
            changes.append(item)
            continue
        directive = item[_DIRECTIVE]
        if directive == "delete":
            unwanted.add(identity(item, merge_key))
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise uninterpreted_error("merging lists cannot yet be specified in the patch")
        else:
            raise uninterpreted_error(_unknown_directive(directive, item))
    if replaces:
        return changes, []
    return [entry for entry in original if identity_or_none(entry, merge_key) not in unwanted] if unwanted else original, changes


def _merge_items(original: list[Any], patch: list[Any], lookup: Lookup) -> tuple[list[Any], bool]:
    """Merges each item of the patch into the first item with the same key, or appends it.

    Returns the items, and whether they are in their final order: if the original has all items of the patch once and in
    the same order.
    """
    merged = list(original)
    positions: dict[Any, int] = {}
    for position, item in enumerate(merged):
        positions.setdefault(identity_or_none(item, lookup.merge_key), position)
    is_ordered, last = len(positions) == len(merged) and None not in positions, -1
    for item in patch:
        key = identity(item, lookup.merge_key)
        known = positions.get(key)
        if known is None:
            is_ordered = False
            positions[key] = len(merged)
            merged.append(item)
        else:
            is_ordered, last = is_ordered and known > last, known
            merged[known] = _merge_objects(merged[known], item, lookup.type)
    return merged, is_ordered


# --- Errors -----------------------------------------------------------------------------------------------------------


def _list_name(key: str, directive: str, words: str) -> str:
    prefix, slash, name = key.partition("/")
    if not slash or prefix != directive:
        raise _bad_format(words)
    return name


def _expect_lookup(found: Lookup | str) -> Lookup:
    if isinstance(found, str):
        raise uninterpreted_error(found)
    return found


def _unknown_directive(directive: Any, item: Object) -> str:
    return f"unknown patch type: {string_verb(directive)} in map: {plain(item)}"


def _bad_format(words: str) -> StatusError:
    return bad_request(f"invalid patch format of {words}")


# --- Creates the patch that turns one object into another ------------------------------------------------------------
# Lists that merge get an item for each one that changed, `$patch: delete` for those that are gone, and a `$setElementOrder`
# directive; where keys are missing or appear twice, the patch replaces the list. Without a type (custom resources) the
# patch is a JSON merge patch.
#
# Invariant: `strategic.merge(type, old, create(type, old, new))` is `new`, except that empty lists and nulls in new
# members may be left out.
#
# Specified by: k8s.io/apimachinery/pkg/util/strategicpatch (CreateTwoWayMergePatch, diffMaps, diffLists).


def create(type: Type | None, old: Object, new: Object) -> Object:
    """Returns the patch; empty if the objects are equal.

    Args:
        type: of the objects; None makes a JSON merge patch.
        old, new: not changed; the patch shares parts with `new`.
    """
    patch: Object = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if name in old and _is_same(before, value):
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            patch[name] = create(_type_of(type, name), before, value)
        elif isinstance(value, list) and isinstance(before, list) and type is not None:
            _diff_list(_look_up_list(type, name), name, before, value, patch)
        else:
            patch[name] = value
    return patch


def _is_same(old: Any, new: Any) -> bool:
    return old == new and isinstance(old, bool) == isinstance(new, bool)


def _type_of(type: Type | None, name: str) -> Type | None:
    """Returns the type of a nested object; None for the values of maps, which all have the same."""
    if type is None:
        return None
    found = _look_up_object(type, name)
    return None if isinstance(found, str) else found.type


def _diff_list(lookup: Lookup | str, name: str, old: list[Any], new: list[Any], patch: Object) -> None:
    """Adds the change of a list to the patch."""
    if isinstance(lookup, str) or lookup.strategy != "merge":
        patch[name] = new
    elif lookup.merge_key and all(isinstance(item, dict) for item in (*old, *new)):
        _diff_items(lookup, name, old, new, patch)
    elif not any(isinstance(item, dict | list) for item in (*old, *new)):
        _diff_scalars(name, old, new, patch)
    else:
        patch[name] = new


def _diff_items(lookup: Lookup, name: str, old: list[Object], new: list[Object], patch: Object) -> None:
    key = lookup.merge_key
    before, after = ({item.get(key): item for item in items} for items in (old, new))
    if len(before) < len(old) or len(after) < len(new) or None in before or None in after:
        patch[name] = [{_DIRECTIVE: "replace"}, *new]
        return
    changes: list[Object] = []
    for value, item in after.items():
        known = before.get(value)
        if known is None:
            changes.append(item)
        elif known != item:
            changes.append({**create(lookup.type, known, item), key: value})
    changes += [{_DIRECTIVE: "delete", key: value} for value in before if value not in after]
    patch[f"{_ELEMENT_ORDER}/{name}"] = [{key: value} for value in after]
    if changes:
        patch[name] = changes


def _diff_scalars(name: str, old: list[Any], new: list[Any], patch: Object) -> None:
    gone = [item for item in old if item not in new]
    added = [item for item in new if item not in old]
    patch[f"{_ELEMENT_ORDER}/{name}"] = new
    if gone:
        patch[f"{_DELETE_FROM_LIST}/{name}"] = gone
    if added:
        patch[name] = added

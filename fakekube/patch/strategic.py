"""Strategic merge patch: merge patch with lists that merge, for built-in kinds.

A patch is merged into an object along the object's type: what a list does with its items is a matter of the
field's `patch_strategy` and `patch_merge_key`. Members that begin with `$` are directives, not data:

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

from collections.abc import Iterable
from typing import Any

from fakekube.errors import StatusError, field
from fakekube.errors.status import bad_request, generic, invalid
from fakekube.patch.conversion import ConversionError, convert
from fakekube.patch.errors import type_mismatch, unprocessable
from fakekube.patch.go_format import go_type, go_type_or_nil, plain, string_verb
from fakekube.patch.strategic_schema import Lookup, look_up_list, look_up_object
from fakekube.schema.model import Type

__all__ = ["apply", "decode", "misfit"]

_Object = dict[str, Any]

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM_LIST = "$deleteFromPrimitiveList"
_ELEMENT_ORDER = "$setElementOrder"


def decode(patch: Any) -> _Object:
    """Checks that a parsed body can be a strategic merge patch; null is an empty one.

    :raises StatusError: 400 if it is not an object.
    """
    if patch is None:
        return {}
    if not isinstance(patch, dict):
        raise bad_request(type_mismatch(patch, "Go value of type map[string]interface {}"))
    return patch


def apply(type: Type, document: _Object, patch: _Object) -> _Object:
    """The object that the patch makes of `document`; it fits its type but for unknown fields and formats
    of strings.

    :param type: of the kind, in the version of the document.
    :param patch: from `decode`; not changed.
    :raises StatusError: 400, 422 or 500, as the real server answers bad directives and values.
    """
    rest = _own(patch)
    merged = _merge_objects(document, rest, type)
    try:
        return dict(convert(type, merged, patch))
    except ConversionError as error:
        raise _misfit(rest, str(error)) from None


def misfit(type: Type, document: _Object, patch: _Object, problem: str) -> StatusError:
    """422 for a patch whose result does not decode (`problem` in the decoder's words), or must not in Strict.
    """
    rest = _own(patch)
    _merge_objects(document, rest, type)
    return _misfit(rest, problem)


def _misfit(rest: _Object, problem: str) -> StatusError:
    """The message shows what the merge has left of the patch."""
    return invalid("", "", "", [field.invalid("patch", plain(rest), problem)])


def _own(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _own(item) for key, item in value.items()}
    return [_own(item) for item in value] if isinstance(value, list) else value


# ---------------------------------------------------------------- objects


def _merge_objects(original: _Object, patch: _Object, type: Type) -> _Object:
    if _DIRECTIVE in patch:
        return _replaced_object(patch)
    merged = dict(original)
    _retain_keys(merged, patch)
    _order_lists(merged, patch, type)
    for key, value in patch.items():
        _merge_member(merged, key, value, type)
    return merged


def _replaced_object(patch: _Object) -> _Object:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        del patch[_DIRECTIVE]
        return patch
    if directive == "delete":
        return {}
    raise _failure(_unknown_directive(directive, patch))


def _retain_keys(merged: _Object, patch: _Object) -> None:
    if _RETAIN_KEYS not in patch:
        return
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


def _merge_member(merged: _Object, key: str, value: Any, type: Type) -> None:
    deletes = key.startswith(_DELETE_FROM_LIST)
    if deletes:
        key = _list_name(key, _DELETE_FROM_LIST, "primitive list")
    if value is None:
        merged.pop(key, None)
        return
    current = merged.get(key)
    if key not in merged or go_type(current) != go_type(value):
        if not deletes:
            _drop_nulls(value)
            _set(merged, key, value)
    elif isinstance(current, dict):
        lookup = _looked_up(look_up_object(type, key))
        merged[key] = value if lookup.strategy == "replace" else _merge_objects(current, value, lookup.type)
    elif isinstance(current, list):
        merged[key] = _merge_lists(current, value, _looked_up(look_up_list(type, key)), deletes)
    else:
        merged[key] = value


def _set(merged: _Object, key: str, value: Any) -> None:
    if _is_directive(value):
        merged.pop(key, None)
    else:
        merged[key] = _without_directives(value)


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _without_directives(value: Any) -> Any:
    """The value (changed in place if it is an object) without the objects that hold a `$patch`."""
    if isinstance(value, dict):
        for key, item in list(value.items()):
            _set(value, key, item)
    elif isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directive(item)]
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


# ---------------------------------------------------------------- lists


def _order_lists(merged: _Object, patch: _Object, type: Type) -> None:
    """Merges and orders the lists for which the patch says an order; takes both out of the patch."""
    for key in [key for key in patch if key.startswith(_ELEMENT_ORDER)]:
        order = patch.pop(key)
        _require_type(order, list)
        name = _list_name(key, _ELEMENT_ORDER, "setElementOrder list")
        current, changes = merged.get(name, []), patch.get(name, [])
        _require_type(current, list)
        _require_type(changes, list)
        lookup = _looked_up(look_up_list(type, name))
        _check_order(changes, order, lookup.merge_key)
        if name not in merged and name not in patch:
            continue
        if name not in patch:
            items = current
        elif name not in merged:
            items = _without_directives(changes)
        else:
            items = _merge_lists(current, changes, lookup, deletes=False)
        wanted, others = _partition(items, order, lookup.merge_key)
        _element_type(current, changes)
        merged[name] = _in_order(wanted, others, order, current, lookup.merge_key)
        patch.pop(name, None)


def _check_order(changes: list[Any], order: list[Any], merge_key: str) -> None:
    """The items of a patch must stand in the order that the same patch demands."""
    if not order or not changes:
        return
    kept = changes
    if merge_key:
        for item in changes:
            _require_type(item, dict)
        kept = [item for item in changes if item.get(_DIRECTIVE) != "delete"]
    if not _is_in_order(kept, order, merge_key):
        found = f"The order in patch list:\n{plain(changes)}\n"
        raise _failure(f"{found} doesn't match {_ELEMENT_ORDER} list:\n{plain(order)}\n")


def _is_in_order(items: list[Any], order: list[Any], merge_key: str) -> bool:
    position = 0
    for item in items:
        if position == len(order):
            return False
        if _is_directive(item):
            continue
        while _identity(item, merge_key) != _identity(order[position], merge_key):
            position += 1
            if position == len(order):
                return False
        position += 1
    return True


def _merge_lists(original: list[Any], patch: list[Any], lookup: Lookup, deletes: bool) -> list[Any]:
    if lookup.strategy != "merge" and not deletes:
        return patch
    if not original and not patch:
        return original
    if _element_type(original, patch) is not dict:
        if deletes:
            unwanted = {_identity(item, "") for item in patch}
            return [item for item in original if _identity(item, "") not in unwanted]
        merged = list({_identity(item, ""): item for item in [*original, *patch]}.values())
    elif not lookup.merge_key:
        raise _failure(f"cannot merge lists without merge key for {lookup.kind}")
    else:
        original, patch = _special_items(original, patch, lookup.merge_key)
        merged = _merge_items(original, patch, lookup)
    wanted, others = _partition(merged, patch, lookup.merge_key)
    return _in_order(wanted, others, patch, original, lookup.merge_key)


def _special_items(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The original without the items that the patch deletes, and the patch without directives."""
    changes: list[Any] = []
    replaces = False
    for item in patch:
        if _DIRECTIVE not in item:
            changes.append(item)
            continue
        directive = item[_DIRECTIVE]
        if directive == "delete":
            unwanted = _identity(item, merge_key)
            original = [entry for entry in original if _found_identity(entry, merge_key) != unwanted]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise _failure("merging lists cannot yet be specified in the patch")
        else:
            raise _failure(_unknown_directive(directive, item))
    return (changes, []) if replaces else (original, changes)


def _merge_items(original: list[Any], patch: list[Any], lookup: Lookup) -> list[Any]:
    """Items of the patch are merged into the first with the same key, or appended."""
    merged = list(original)
    positions: dict[Any, int] = {}
    for position, item in enumerate(merged):
        positions.setdefault(_found_identity(item, lookup.merge_key), position)
    for item in patch:
        identity = _identity(item, lookup.merge_key)
        known = positions.get(identity)
        if known is None:
            positions[identity] = len(merged)
            merged.append(item)
        else:
            merged[known] = _merge_objects(merged[known], item, lookup.type)
    return merged


def _partition(items: list[Any], order: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The items that the order mentions, and the others."""
    if merge_key and items:
        for position, entry in enumerate(order):
            if not isinstance(entry, dict):
                raise _failure(f"value for key {position} is not a map")
    mentioned = {_found_identity(entry, merge_key) for entry in order}
    wanted: list[Any] = []
    others: list[Any] = []
    for item in items:
        (wanted if _identity(item, merge_key) in mentioned else others).append(item)
    return wanted, others


def _in_order(
    wanted: list[Any], others: list[Any], order: list[Any], original: list[Any], merge_key: str
) -> list[Any]:
    """The wanted items as the order has them; others stand before the first wanted one that they precede in
    the original.
    """
    in_original = _positions(original, merge_key)
    wanted = _sorted(wanted, _positions(order, merge_key), merge_key)
    others = _sorted(others, in_original, merge_key)
    merged: list[Any] = []
    rest = iter(others)
    other = next(rest, None)
    for item in wanted:
        limit = in_original.get(_identity(item, merge_key), -1)
        while other is not None and 0 <= in_original.get(_identity(other, merge_key), -1) < limit:
            merged.append(other)
            other = next(rest, None)
        merged.append(item)
    if other is not None:
        merged += [other, *rest]
    return merged


def _sorted(items: list[Any], positions: dict[Any, int], merge_key: str) -> list[Any]:
    """By position; those without one come first, the last of them foremost (the real server's sort does so).
    """
    placed: list[tuple[int, Any]] = []
    for item in items:
        position = positions.get(_identity(item, merge_key), -1)
        index = len(placed)
        while index and (position < 0 or placed[index - 1][0] < 0 or position < placed[index - 1][0]):
            index -= 1
        placed.insert(index, (position, item))
    return [item for _, item in placed]


def _positions(items: Iterable[Any], merge_key: str) -> dict[Any, int]:
    positions: dict[Any, int] = {}
    for position, item in enumerate(items):
        positions.setdefault(_identity(item, merge_key), position)
    return positions


def _identity(item: Any, merge_key: str) -> Any:
    """What makes an item the same as another: the value of its merge key, or a scalar itself; hashable, with
    its type.
    """
    if merge_key:
        _require_type(item, dict)
        if merge_key not in item:
            raise _failure(f"map: {plain(item)} does not contain declared merge key: {merge_key}")
        item = item[merge_key]
    if isinstance(item, dict | list):
        raise unprocessable()
    return go_type(item), item


def _found_identity(item: Any, merge_key: str) -> Any:
    """The same of an item that need not have a merge key; such an item is found by nothing."""
    if merge_key and isinstance(item, dict) and merge_key not in item:
        return None
    return _identity(item, merge_key)


def _element_type(*lists: list[Any]) -> type:
    """The one type of all items."""
    types = {go_type(item): type(item) for items in lists for item in items}
    if not types:
        raise _failure("no elements in any of the given slices")
    first = next(iter(types.values()))
    if first is list:
        raise unprocessable()
    if len(types) > 1:
        raise _failure(f"list element types are not identical: {plain(list(lists))}")
    return first


# ---------------------------------------------------------------- errors


def _list_name(key: str, directive: str, words: str) -> str:
    prefix, slash, name = key.partition("/")
    if not slash or prefix != directive:
        raise _bad_format(words)
    return name


def _require_type(value: Any, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise _failure(f"expected a {go_type(wanted())}, but received a {go_type_or_nil(value)}")


def _looked_up(found: Lookup | str) -> Lookup:
    if isinstance(found, str):
        raise _failure(found)
    return found


def _unknown_directive(directive: Any, item: _Object) -> str:
    return f"unknown patch type: {string_verb(directive)} in map: {plain(item)}"


def _bad_format(words: str) -> StatusError:
    return bad_request(f"invalid patch format of {words}")


def _failure(message: str) -> StatusError:
    """Errors that the real server does not interpret."""
    return generic(500, "", message)

"""Creates the strategic merge patch that turns one object into another.

Lists that merge get an item for each one that changed, `$patch: delete` for those that are gone, and a `$setElementOrder`
directive; where keys are missing or appear twice, the patch replaces the list. Without a type (custom resources) the
patch is a JSON merge patch.

Invariant: `strategic.merge(type, old, create(type, old, new))` is `new`, except that empty lists and nulls in new
members may be left out.

Specified by: k8s.io/apimachinery/pkg/util/strategicpatch (CreateTwoWayMergePatch, diffMaps, diffLists).
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.patch.strategic_schema import DIRECTIVE, Lookup, look_up_list, look_up_object
from fakekube.apimachinery.schema.model import Type

_Object = dict[str, Any]

_ELEMENT_ORDER = "$setElementOrder/"
_DELETE_FROM_LIST = "$deleteFromPrimitiveList/"


def create(type: Type | None, old: _Object, new: _Object) -> _Object:
    """Returns the patch; empty if the objects are equal.

    Args:
        type: of the objects; None makes a JSON merge patch.
        old, new: not changed; the patch shares parts with `new`.
    """
    patch: _Object = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if name in old and _is_same(before, value):
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            patch[name] = create(_type_of(type, name), before, value)
        elif isinstance(value, list) and isinstance(before, list) and type is not None:
            _diff_list(look_up_list(type, name), name, before, value, patch)
        else:
            patch[name] = value
    return patch


def _is_same(old: Any, new: Any) -> bool:
    return old == new and isinstance(old, bool) == isinstance(new, bool)


def _type_of(type: Type | None, name: str) -> Type | None:
    """Returns the type of a nested object; None for the values of maps, which all have the same."""
    if type is None:
        return None
    found = look_up_object(type, name)
    return None if isinstance(found, str) else found.type


def _diff_list(lookup: Lookup | str, name: str, old: list[Any], new: list[Any], patch: _Object) -> None:
    """Adds the change of a list to the patch."""
    if isinstance(lookup, str) or lookup.strategy != "merge":
        patch[name] = new
    elif lookup.merge_key and all(isinstance(item, dict) for item in (*old, *new)):
        _diff_items(lookup, name, old, new, patch)
    elif not any(isinstance(item, dict | list) for item in (*old, *new)):
        _diff_scalars(name, old, new, patch)
    else:
        patch[name] = new


def _diff_items(lookup: Lookup, name: str, old: list[_Object], new: list[_Object], patch: _Object) -> None:
    key = lookup.merge_key
    before, after = ({item.get(key): item for item in items} for items in (old, new))
    if len(before) < len(old) or len(after) < len(new) or None in before or None in after:
        patch[name] = [{DIRECTIVE: "replace"}, *new]
        return
    changes: list[_Object] = []
    for value, item in after.items():
        known = before.get(value)
        if known is None:
            changes.append(item)
        elif known != item:
            changes.append({**create(lookup.type, known, item), key: value})
    changes += [{DIRECTIVE: "delete", key: value} for value in before if value not in after]
    patch[_ELEMENT_ORDER + name] = [{key: value} for value in after]
    if changes:
        patch[name] = changes


def _diff_scalars(name: str, old: list[Any], new: list[Any], patch: _Object) -> None:
    gone = [item for item in old if item not in new]
    added = [item for item in new if item not in old]
    patch[_ELEMENT_ORDER + name] = new
    if gone:
        patch[_DELETE_FROM_LIST + name] = gone
    if added:
        patch[name] = added

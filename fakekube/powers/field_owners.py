"""Which manager owns which field of an object: `metadata.managedFields` as a map from paths (`field_paths`) to owners.

Each entry is walked together with the object: `f:NAME` is a member, `k:{…}` the item of a list whose members equal the key, `v:…`
the item with that value, `i:N` the item at a position, and `.` the value itself. The page computes the same
(page/static/owners.js).

Invariant: fields that the object does not have any more have no owner.

Specified by: sigs.k8s.io/structured-merge-diff/fieldpath/serialize-pe.go (PathElement).
"""

from __future__ import annotations

import json
from typing import Any, Final

from fakekube.base.objects import StoredObject
from fakekube.powers.differences import ABSENT, item_names, member

Owners = dict[str, list[dict[str, str]]]

_MEMBERS: Final = ("manager", "operation", "subresource", "time")
#: Members of keys that the API defaults.
_DEFAULTS: Final = {"protocol": "TCP"}


def field_owners(obj: StoredObject) -> Owners:
    """Returns the owners of the fields of an object by path, in the order of managedFields."""
    found: Owners = {}
    entries = (obj.get("metadata") or {}).get("managedFields")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("fieldsV1"), dict):
            _walk(entry["fieldsV1"], obj, "", {name: str(entry.get(name) or "") for name in _MEMBERS}, found)
    return found


def _walk(fields: StoredObject, value: Any, path: str, owner: dict[str, str], found: Owners) -> None:
    if not fields or "." in fields:
        found.setdefault(path, []).append(owner)
    names = item_names(value) if isinstance(value, list) else []
    for element, inner in fields.items():
        place = None if element == "." else _place(element, value)
        if place is None:
            continue
        below = member(path, place) if isinstance(place, str) else path + names[place]
        _walk(inner if isinstance(inner, dict) else {}, value[place], below, owner, found)


def _place(element: str, value: Any) -> str | int | None:
    """Returns the member or position that an element means; None if the value has none."""
    kind, _, text = element.partition(":")
    if kind == "f":
        return text if isinstance(value, dict) and text in value else None
    if not isinstance(value, list):
        return None
    try:
        wanted = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if kind == "i":
        return wanted if isinstance(wanted, int) and 0 <= wanted < len(value) else None
    fits = {"k": _has_key, "v": _equals}.get(kind)
    return None if fits is None else next((place for place, item in enumerate(value) if fits(item, wanted)), None)


def _has_key(item: Any, key: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(key, dict):
        return False
    return all(_equals(item.get(name, _DEFAULTS.get(name, ABSENT)), value) for name, value in key.items())


def _equals(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)

"""Decodes and encodes metadata.managedFields.

The encoded form is a list of entries; the decoded form is a `Managed`, a map from managers to their field sets. A
manager is identified by its name (`fieldManager`), operation (Apply or Update), subresource and, for updates only,
version. Each manager has a time in whole seconds.

Specified by: k8s.io/apimachinery/pkg/util/managedfields/internal (managedfields.go, buildmanagerinfo.go,
capmanagers.go, conflict.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.patch.apply.fieldpath import FieldSet, FieldSetError, Tree
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apimachinery.schema.unstructured import from_unstructured
from fakekube.apimachinery.schema.walk import DecodeError
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import json_text

APPLY: Final = "Apply"
UPDATE: Final = "Update"

#: The maximum number of update managers of an object; the oldest ones are merged into `_ANCIENT`.
MAX_UPDATE_MANAGERS: Final = 10
_ANCIENT: Final = "ancient-changes"

_ENTRY: Final = "k8s.io/apimachinery/pkg/apis/meta/v1.ManagedFieldsEntry"


class EntryError(ValueError):
    """managedFields entries are not valid. The message is the real server's."""


class Manager(NamedTuple):
    """A field manager. `api_version` is empty for appliers, which are the same manager in all versions."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @classmethod
    def for_write(cls, name: str, operation: str, api_version: str, subresource: str) -> Manager:
        """Returns the manager of a write; an empty name becomes "unknown"."""
        return cls(name or "unknown", operation, "" if operation == APPLY else api_version, subresource)

    @property
    def identifier(self) -> str:
        """The manager identifier: JSON, by which the real server sorts."""
        parts = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return json_text({key: value for key, value in parts.items() if value})

    @property
    def printed(self) -> str:
        """The manager as printed in conflict messages."""
        text = go_quote(self.name)
        if self.subresource:
            text = f"{text} with subresource {go_quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Owned(NamedTuple):
    """The field set of a manager, and the version of its paths."""

    fields: FieldSet
    api_version: str

    def with_fields(self, fields: FieldSet) -> Owned:
        return self if fields is self.fields else Owned(fields, self.api_version)


@dataclass(slots=True)
class Managed:
    """The managers of one object and the times of their last changes (RFC 3339; absent for never)."""

    owners: dict[Manager, Owned] = field(default_factory=dict)
    times: dict[Manager, str] = field(default_factory=dict)

    def cap_update_managers(self) -> Managed:
        """Returns a copy with at most ten update managers; the oldest ones of each version are merged (capManagersManager)."""
        if len(self.owners) <= MAX_UPDATE_MANAGERS:
            return self
        updaters = [manager for manager in self.owners if manager.operation == UPDATE]
        if len(updaters) <= MAX_UPDATE_MANAGERS:
            return self
        updaters.sort(key=lambda manager: (self.times.get(manager, ""), manager.identifier))
        owners, times = dict(self.owners), dict(self.times)
        surplus = len(updaters) - MAX_UPDATE_MANAGERS
        first_of: dict[str, Manager] = {}
        for manager in updaters:
            if surplus == 0:
                break
            owned = owners[manager]
            bucket = Manager(_ANCIENT, UPDATE, owned.api_version)
            first = first_of.setdefault(owned.api_version, manager)
            if first is manager:
                continue
            if bucket not in owners:
                owners[bucket] = owners.pop(first)
            owners[bucket] = owned.with_fields(owned.fields | owners[bucket].fields)
            if manager in times:
                times[bucket] = times[manager]
            else:
                times.pop(bucket, None)
            del owners[manager]
            surplus -= 1
        return Managed(owners, times)


def is_reset(entries: Any) -> bool:
    """Reports whether a request resets managedFields: by an empty list, or a list of one empty entry."""
    return isinstance(entries, list) and entries in ([], [{}])


def are_readable(entries: Any) -> bool:
    """Reports whether a value of metadata.managedFields can be read as a list of entries, whatever they say."""
    if not isinstance(entries, list):
        return False
    try:
        for entry in entries:
            if not isinstance(entry, dict):
                return False
            from_unstructured(type_of(_ENTRY), entry)
    except DecodeError:
        return False
    return True


def decode(entries: Any) -> Managed:
    """Reads the entries of an object. Raises EntryError if one of them cannot be read."""
    managed = Managed()
    for index, entry in enumerate(entries or ()):
        operation = entry.get("operation", "")
        api_version = entry.get("apiVersion", "")
        if operation not in (APPLY, UPDATE):
            raise EntryError("operation must be `Apply` or `Update`")
        if not api_version:
            raise EntryError("apiVersion must not be empty")
        fields_type = entry.get("fieldsType", "")
        if fields_type != "FieldsV1":
            problem = f"invalid fieldsType {go_quote(fields_type)}" if fields_type else "missing fieldsType"
            raise EntryError(f"{problem} in managed fields entry {index}")
        known_version = "" if operation == APPLY else api_version
        manager = Manager(entry.get("manager", ""), operation, known_version, entry.get("subresource", ""))
        managed.owners[manager] = Owned(_decode_fields(entry.get("fieldsV1")), api_version)
        time = entry.get("time")
        if time is not None:
            managed.times[manager] = time
        else:
            managed.times.pop(manager, None)
    return managed


def _decode_fields(fields: Any) -> FieldSet:
    shared = _by_identity.get(id(fields)) or _by_text.get(json_text(fields))
    if shared is not None:
        return shared.fields
    try:
        return FieldSet.from_json(fields)
    except FieldSetError as error:
        raise EntryError(f"error decoding set: {error}") from None


def encode(managed: Managed, *, sorted_keys: bool = False, sorted_fields: bool = False) -> list[dict[str, Any]]:
    """Encodes the managers of an object, sorted by operation, time, name, version and subresource.

    Args:
        sorted_keys: sort all members recursively, as in custom resources.
        sorted_fields: sort the path elements as strings (`10` before `9`), but not the other members.
    """
    entries = [entry for _, entry in encode_each(managed, sorted_keys=sorted_keys, sorted_fields=sorted_fields)]
    if len(entries) > 1:
        entries.sort(key=entry_order)
    return entries


def encode_each(
    managed: Managed, *, sorted_keys: bool = False, sorted_fields: bool = False
) -> Iterator[tuple[Manager, dict[str, Any]]]:
    """Encodes the managers of an object one by one, in no order; see `encode`."""
    for manager, owned in managed.owners.items():
        yield manager, _encode(manager, owned, managed.times.get(manager), sorted_keys, sorted_fields or sorted_keys)


def _encode(manager: Manager, owned: Owned, time: str | None, sorted_keys: bool, sorted_fields: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"manager": manager.name} if manager.name else {}
    entry["operation"] = manager.operation
    entry["apiVersion"] = owned.api_version
    if time:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = _write_tree(owned.fields, sorted_fields)
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return {name: entry[name] for name in sorted(entry)} if sorted_keys else entry


def entry_order(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns what entries are sorted by: operation, time, name, version and subresource."""
    get = entry.get
    return get("operation", ""), get("time", ""), get("manager", ""), get("apiVersion", ""), get("subresource", "")


def _sorted_tree(tree: Tree) -> Tree:
    return {element: _sorted_tree(tree[element]) for element in sorted(tree)}


class _Shared(NamedTuple):
    """An encoded set: objects with equal sets share it, and it need not be decoded again."""

    written: Tree
    fields: FieldSet
    size: int
    """The approximate number of bytes of the tree."""


#: The bytes of a tree for each character of its JSON, approximately.
TREE_SIZE: Final = 5
_MAX_SHARED: Final = 4096
#: By the identity of the encoded tree (which the entry keeps alive), and by its JSON.
_by_identity: BoundedCache[int, _Shared] = BoundedCache(_MAX_SHARED)
_by_text: BoundedCache[str, _Shared] = BoundedCache(_MAX_SHARED)
_sorted: BoundedCache[int, tuple[Tree, Tree]] = BoundedCache(_MAX_SHARED)
"""Shared trees, by their identity, and what is written of them with sorted elements."""


def are_same(entries: list[Any], others: list[Any]) -> bool:
    """Reports whether entries are equal, including the order of their fields."""
    if entries != others:
        return False
    for entry, other in zip(entries, others, strict=True):
        fields, known = entry.get("fieldsV1"), other.get("fieldsV1")
        if fields is not known and json_text(fields) != json_text(known):
            return False
    return True


def intern(fields: FieldSet) -> FieldSet:
    """Returns the shared instance of equal sets."""
    return _share(fields.tree, fields).fields


def are_shared(entries: list[Any]) -> bool:
    """Reports whether the sets of all entries are those that equal ones share."""
    return all(id(entry.get("fieldsV1")) in _by_identity for entry in entries)


def is_interned(fields: FieldSet) -> bool:
    """Reports whether the tree of a set is that of the shared instance."""
    return id(fields.tree) in _by_identity


def _write_tree(fields: FieldSet, sorted_fields: bool) -> Tree:
    """Returns the encoded tree of a set, shared with equal ones that were encoded before."""
    tree = fields.tree
    if not sorted_fields:
        return _share(tree, fields).written
    known = _sorted.get(id(tree))
    if known is not None:
        return known[1]
    shared = _share(_sorted_tree(tree), fields)
    if id(tree) in _by_identity:
        _sorted.add(id(tree), (tree, shared.written), shared.size)
    return shared.written


def _share(written: Tree, fields: FieldSet) -> _Shared:
    found = _by_identity.get(id(written))
    if found is not None:
        return found
    text = json_text(written)
    found = _by_text.get(text)
    if found is None:
        size = TREE_SIZE * len(text)
        found = _by_text.add(text, _Shared(written, fields, size), size)
        _by_identity.add(id(written), found, size)
    return found

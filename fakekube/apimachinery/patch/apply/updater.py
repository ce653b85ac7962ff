"""The algorithm of apply: the owners after a change, the fields that an applier removes, and conflicts.

An object is held together with its version and atom (`Typed`), since every manager reads its paths in the
version that it has used. Objects of other versions come from a `Convert`, which a field manager is given.

* `update`: the manager of a change becomes the only owner of the changed fields.
* `apply`: merges a configuration into the live object, removes what the applier had named before and names no
  more unless somebody else owns it, and gives the applier what it names. A change of a field that another
  manager owns is a conflict, unless forced: then the field changes hands. Naming the value that is there is
  no change: it is shared.

Nothing given is changed; what did not change is the same object.

Specified by: sigs.k8s.io/structured-merge-diff/merge (update.go), whose order of steps shows in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from fakekube.apimachinery.patch.apply import managed_fields
from fakekube.apimachinery.patch.apply.atoms import Atom, Difference, Misfit, Typing, TypingError, is_same
from fakekube.apimachinery.patch.apply.fieldpath import EMPTY, LEAF, FieldSet, Path, Tree, field, union
from fakekube.apimachinery.patch.apply.managed_fields import TREE_SIZE, Managed, Manager, Owned
from fakekube.apimachinery.patch.apply.schema import atom_of, custom_atom_of
from fakekube.apimachinery.patch.literals import go_json
from fakekube.apimachinery.schema.known_specs import SPEC
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.trees import text_of
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.strings import bytes_of
from fakekube.base.objects import Object

# --- The merge into an object without managedFields, for mutating admission policies ---------------------------------
# Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go (ApplyStructuredMergeDiff).


class ConfigurationError(Exception):
    """A configuration cannot be applied; the message is the real server's."""


def merge(type: Type, live: Object, configuration: Object, *, custom: bool) -> Object:
    """Merges the configuration into the object; the result shares parts with both.

    Args:
        type: the type of both. With `custom` it is that of a custom resource, where kind and apiVersion are ordinary fields.
        live: the object, which need not conform to its type.
        configuration: must not set atomic lists, maps or structs.

    Raises ConfigurationError.
    """
    atom = _atom(type, custom=custom)
    applied = _check_typed(atom, configuration, "patch object")
    atomics = list(atom.atomics(applied.value, ""))
    if atomics:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise ConfigurationError(f"invalid ApplyConfiguration: {text}")
    _check_typed(atom, without_managed_fields(live), "original object", duplicates=True)  # managedFields need no validation
    found: Object = atom.merge(live, applied.value)
    return found


def without_managed_fields(obj: Object) -> Object:
    """Returns the object without managedFields; itself if it has none."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    left = dict(metadata)
    del left["managedFields"]
    return {**obj, "metadata": left}


def _check_typed(atom: Atom, value: Object, what: str, *, duplicates: bool = False) -> Typed:
    try:
        return Typed(value, "", atom).check(duplicates=duplicates)
    except TypingError as error:
        raise ConfigurationError(f"failed to convert {what} to typed object: {error}") from None


def _atom(type: Type, *, custom: bool) -> Atom:
    if not custom:
        return atom_of(type)
    known: Atom | None = type.compiled.get("apply configuration")
    if known is None:
        known = type.compiled["apply configuration"] = custom_atom_of(type)
    return known


_MAXIMUM_RECONCILED: Final = 1024
#: The maximum number of merged specs that are kept.
_MAX_MERGED: Final = 500
_UNSEEN: Final = object()

Owners = Mapping[Manager, Owned]
Filter = Callable[[FieldSet], FieldSet]
"""Removes the fields that no manager may own (the reset fields)."""


class UnknownVersion(Exception):
    """A version to which an object cannot be converted because there is no such version."""


class Conflicts(Exception):
    """An apply would change fields of other managers. The fields are sorted by manager."""

    def __init__(self, paths: Mapping[Manager, FieldSet]) -> None:
        super().__init__()
        self.paths = dict(sorted(paths.items(), key=lambda item: item[0].identifier))

    def __iter__(self) -> Iterator[tuple[Manager, Path]]:
        return ((manager, path) for manager, fields in self.paths.items() for path in fields)

    def drop_allowed(self, allowed: FieldSet) -> Conflicts:
        """Returns the conflicts without those about these fields."""
        left = {manager: fields - allowed for manager, fields in self.paths.items()}
        return Conflicts({manager: fields for manager, fields in left.items() if fields})


class Typed(NamedTuple):
    """An object with its version and the atom of its type."""

    value: Any
    api_version: str
    atom: Atom

    def check(self, *, duplicates: bool = False) -> Typed:
        """Validates the object and returns it. Raises TypingError."""
        typing = Typing(duplicates=duplicates)
        self.atom.check(self.value, None, typing)
        typing.raise_if_any()
        return self

    def read_fields(self) -> FieldSet:
        """Validates the object and returns its field set. Raises TypingError."""
        try:
            return FieldSet(self.atom.read_fields(self.value) or LEAF)
        except Misfit:
            return self.check().field_set()

    def field_set(self) -> FieldSet:
        return FieldSet(self.atom.field_set(self.value) or LEAF)

    def named_field_set(self) -> FieldSet:
        return self.with_named_fields(self.field_set())

    def with_named_fields(self, fields: FieldSet) -> FieldSet:
        return FieldSet(self.atom.with_named_fields(fields.tree))

    def merge(self, applied: Typed) -> Typed:
        return self._replace_value(self.atom.merge(self.value, applied.value))

    def remove(self, fields: FieldSet) -> Typed:
        return self._replace_value(self.atom.remove(self.value, fields.tree)) if fields else self

    def extract(self, fields: FieldSet) -> Typed:
        return self._replace_value(self.atom.extract(self.value, fields.tree))

    def compare(self, new: Typed) -> Comparison:
        return Comparison.from_difference(self.atom.compare(self.value, new.value))

    def _replace_value(self, value: Any) -> Typed:
        return self if value is self.value else Typed(value, self.api_version, self.atom)


Convert = Callable[[Typed, str], Typed]
"""Converts an object to another version. Raises UnknownVersion, or TypingError if it does not conform to its type there."""


class Comparison(NamedTuple):
    """The fields that a change removed, and those that it modified or added."""

    removed: FieldSet
    changed: FieldSet

    @classmethod
    def from_difference(cls, difference: Difference) -> Comparison:
        removed, modified, added = difference
        changed = union(modified, added) if modified and added else modified or added
        return cls(FieldSet(removed) if removed else EMPTY, FieldSet(changed) if changed else EMPTY)

    def filter(self, keep: Filter | None) -> Comparison:
        return self if keep is None else Comparison(keep(self.removed), keep(self.changed))


def _may_be_same(a: Any, b: Any) -> bool:
    """Compares like `is_same`, but much faster: Python's 1 and True are equal, and what nests too deeply to compare may be so."""
    try:
        return bool(a == b)
    except RecursionError:
        return True


class Updater:
    """Computes the owners of fields after updates and applies."""

    def __init__(self, convert: Convert, filters: Mapping[str, Filter]) -> None:
        """
        Args:
            filters: the filters of the reset fields by version.
        """
        self._convert = convert
        self._filters = filters
        self._reconciled_trees: BoundedCache[tuple[str, int], Tree] = BoundedCache(_MAXIMUM_RECONCILED)
        """Trees that need no reconciliation by version and identity; the cache keeps them alive, so identities stay unique."""
        self._merged_specs: BoundedCache[tuple[bytes, bytes], Any] = BoundedCache(_MAX_MERGED)
        """The texts of a live spec and of an applied one → the merged spec, which nothing changes; None if it is the live one."""

    def update(
        self, live: Typed, new: Typed, owners: Owners, manager: Manager, comparison: Comparison | None = None
    ) -> dict[Manager, Owned]:
        """Returns the owners after `manager` changed the object from `live` to `new`; `comparison` is theirs, if known."""
        owners = self._reconcile(live, owners)
        if comparison is None:
            comparison = self.compare(live, new)
        result = self._transfer(live, new, owners, manager, comparison, force=True)
        fields = comparison.changed
        known = result.pop(manager, None)
        if known is not None:
            fields = self._filter(known.fields - comparison.removed | fields, new.api_version)
        if fields:
            result[manager] = Owned(fields, new.api_version)
        return result

    def apply(
        self, live: Typed, applied: Typed, owners: Owners, manager: Manager, *, force: bool, fields: FieldSet | None = None
    ) -> tuple[Typed, dict[Manager, Owned]]:
        """Applies a configuration. Returns the object (`live` itself if nothing changes) and its owners.

        `live` is without texts (RawObject): values are applied. `fields` are those of the configuration, if known.

        Raises:
            Conflicts: other managers own fields that would change, and `force` is not set.
        """
        owners = self._reconcile(live, owners)
        merged = self._merge(live, applied)
        last = owners.get(manager)
        fields = self._filter(applied.field_set() if fields is None else fields, applied.api_version)
        owners = {**owners, manager: Owned(fields, applied.api_version)}
        try:
            new = self._prune(merged, owners, manager, last)
        except TypingError as error:
            raise TypingError(f"failed to prune fields: {error}") from None
        if new is not live and _may_be_same(live.value, new.value) and is_same(live.value, new.value):
            new = live
        if new is live or owners.keys() == {manager}:  # no other manager loses fields
            return new, {owner: owned for owner, owned in owners.items() if owned.fields}
        return new, self._transfer(live, new, owners, manager, self.compare(live, new), force=force)

    def _merge(self, live: Typed, applied: Typed) -> Typed:
        """Merges a configuration into the live object; what becomes of a spec is known if equal ones were merged before."""
        old, new = live.value.get(SPEC), applied.value.get(SPEC)
        if not new:
            return live.merge(applied)
        text, change = text_of(old), text_of(new)
        if text is None or change is None:
            return live.merge(applied)
        spec = self._merged_specs.get((text, change), _UNSEEN)
        if spec is _UNSEEN:
            merged = live.merge(applied)
            spec = merged.value[SPEC]
            self._merged_specs.add((text, change), None if spec is old else spec, TREE_SIZE * (len(text) + len(change)))
            return merged
        rest = {name: item for name, item in applied.value.items() if name != SPEC}
        merged = live.merge(Typed(rest, applied.api_version, applied.atom))
        return merged if spec is None else Typed({**merged.value, SPEC: spec}, live.api_version, live.atom)

    def _transfer(
        self, live: Typed, new: Typed, owners: Owners, manager: Manager, comparison: Comparison, *, force: bool
    ) -> dict[Manager, Owned]:
        """Removes the changed fields from other owners. `comparison` is the change in its own version. Raises Conflicts."""
        if not owners:
            return {}
        comparisons: dict[str, Comparison | None] = {new.api_version: comparison}
        result: dict[Manager, Owned] = {}
        conflicts: dict[Manager, FieldSet] = {}
        for owner, owned in owners.items():
            if owner == manager:
                result[owner] = owned
                continue
            if owned.api_version not in comparisons:
                comparisons[owned.api_version] = self._compare_in(owned.api_version, live, new)
            seen = comparisons[owned.api_version]
            if seen is None:
                continue
            taken = owned.fields & seen.changed
            if taken:
                conflicts[owner] = taken
            result[owner] = owned.with_fields(owned.fields - taken - seen.removed)
        if conflicts and not force:
            raise Conflicts(conflicts)
        return {owner: owned for owner, owned in result.items() if owned.fields}

    def _filter(self, fields: FieldSet, version: str) -> FieldSet:
        keep = self._filters.get(version)
        return fields if keep is None else keep(fields)

    def compare(self, live: Typed, new: Typed) -> Comparison:
        """Compares two objects of one version, without the reset fields."""
        return self.without_reset_fields(live.compare(new), new.api_version)

    def without_reset_fields(self, comparison: Comparison, version: str) -> Comparison:
        """Returns a comparison of two objects of a version without the fields that no manager may own."""
        return comparison.filter(self._filters.get(version))

    def _compare_in(self, version: str, live: Typed, new: Typed) -> Comparison | None:
        """Compares the objects in another version; None if there is no such version."""
        try:
            before = self._convert_or_explain(live, version, "failed to convert old object")
            after = self._convert_or_explain(new, version, "failed to convert new object")
        except UnknownVersion:
            return None
        return self.compare(before, after)

    def _convert_to(self, version: str, typed: Typed) -> Typed:
        return typed if typed.api_version == version else self._convert(typed, version)

    def _convert_or_explain(self, typed: Typed, version: str, problem: str) -> Typed:
        try:
            return self._convert_to(version, typed)
        except TypingError as error:
            raise TypingError(f"{problem}: {error}") from None

    def _reconcile(self, live: Typed, owners: Owners) -> dict[Manager, Owned]:
        """Reconciles the owners with the current types: without unknown versions, and with atomic values owned as a whole."""
        result: dict[Manager, Owned] = {}
        for manager, owned in owners.items():
            try:
                typed = self._convert_to(owned.api_version, live)
            except UnknownVersion:
                continue
            result[manager] = owned.with_fields(self._reconciled_fields(owned.fields, typed))
        return result

    def _reconciled_fields(self, fields: FieldSet, typed: Typed) -> FieldSet:
        """Reconciles a set; caches sets that are already reconciled, which recur as the same trees."""
        key = (typed.api_version, id(fields.tree))
        if key in self._reconciled_trees:
            return fields
        tree = typed.atom.reconcile(fields.tree)
        if tree is not fields.tree:
            return FieldSet(tree)
        self._reconciled_trees.add(key, tree)
        return fields

    def _prune(self, merged: Typed, owners: Owners, manager: Manager, last: Owned | None) -> Typed:
        """Removes from the merged object the fields that the applier no longer applies and that have no other owner."""
        if last is None or not last.fields:
            return merged
        given_up = last.fields - owners[manager].fields
        if not given_up and all(owned.api_version == merged.api_version for owned in (last, *owners.values())):
            return merged  # else a conversion may fail
        problem = "failed to convert merged object to last applied version"
        try:
            before = self._convert_or_explain(merged, last.api_version, problem)
        except UnknownVersion:
            return merged
        removed = before.remove(before.with_named_fields(last.fields))
        try:
            removed = self._with_owned_items(before, removed, last.api_version, owners)
        except TypingError as error:
            raise TypingError(f"failed add back owned items: {error}") from None
        try:
            removed = self._with_dangling_items(before, removed, last)
        except TypingError as error:
            raise TypingError(f"failed add back dangling items: {error}") from None
        return self._convert_to(owners[manager].api_version, removed)

    def _with_owned_items(self, merged: Typed, pruned: Typed, first: str, owners: Owners) -> Typed:
        """Adds the owned items back to the pruned object, first those owned in its version."""
        owned_in: dict[str, FieldSet] = {first: FieldSet()}
        for owned in owners.values():
            owned_in[owned.api_version] = owned_in.get(owned.api_version, FieldSet()) | owned.fields
        for version, fields in owned_in.items():
            if not fields and version == first:
                continue
            problem, where = "failed to convert", f"object at version {version}"
            try:
                merged = self._convert_or_explain(merged, version, f"{problem} merged {where}")
                pruned = self._convert_or_explain(pruned, version, f"{problem} pruned {where}")
            except UnknownVersion:
                continue
            kept = pruned.named_field_set() | merged.with_named_fields(fields)
            pruned = merged.remove(merged.named_field_set() - kept)
        return pruned

    def _with_dangling_items(self, merged: Typed, pruned: Typed, last: Owned) -> Typed:
        """Adds back the items that were not owned by the applier but were removed with a parent."""
        problem = "failed to convert pruned object to last applied version"
        try:
            pruned = self._convert_or_explain(pruned, last.api_version, problem)
        except UnknownVersion:
            return merged
        gone = merged.named_field_set() - pruned.named_field_set()
        return merged.remove(gone & merged.with_named_fields(last.fields))


# --- The migration from client-side apply to server-side apply -------------------------------------------------------
# Client-side `kubectl apply` stores the last configuration in an annotation. When the manager `kubectl` applies on the
# server, it takes over the unchanged fields of that configuration without a conflict, and the annotation is updated if
# it exists.
#
# Specified by: k8s.io/apimachinery/pkg/util/managedfields/internal (lastappliedmanager.go,
# lastappliedupdater.go, lastapplied.go).


#: The only manager that is migrated.
KUBECTL: Final = "kubectl"

_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"

#: The maximum size of the annotations of an object in bytes.
_MAX_ANNOTATIONS: Final = 256 * 1024


def annotation(obj: Any) -> str:
    """Returns the last-applied-configuration annotation of an object, or ""."""
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    value = annotations.get(_ANNOTATION, "")
    return value if isinstance(value, str) else ""


def fields_taken_over(live: Typed, kind: str) -> FieldSet | None:
    """Returns the fields of the last applied configuration that are unchanged in the object; None without a valid annotation."""
    text = annotation(live.value)
    try:
        last = orjson.loads(text) if text else None
    except ValueError:
        return None
    if not isinstance(last, dict) or last.get("kind") != kind or last.get("apiVersion") != live.api_version:
        return None
    if "kind" not in live.value:
        last = {key: value for key, value in last.items() if key not in ("kind", "apiVersion")}
    configuration = Typed(last, live.api_version, live.atom)
    try:
        live.check()
        difference = configuration.check().compare(live)
    except TypingError:
        return None
    return configuration.field_set() - difference.changed - difference.removed


def with_annotation(obj: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    """Returns the object with an updated annotation, if it has one."""
    if not annotation(obj):
        return obj
    text = _configuration(applied)
    annotations = {**obj["metadata"]["annotations"], _ANNOTATION: text}
    if sum(len(bytes_of(key)) + len(bytes_of(value)) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[_ANNOTATION]
    if annotations == obj["metadata"]["annotations"]:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _configuration(applied: dict[str, Any]) -> str:
    """Returns the applied configuration as JSON without the annotation."""
    metadata = applied.get("metadata") or {}
    if "annotations" in metadata:
        metadata = dict(metadata)
        annotations = metadata.pop("annotations")
        if annotations is not None:
            metadata["annotations"] = {key: value for key, value in annotations.items() if key != _ANNOTATION}
        applied = {**applied, "metadata": metadata}
    return go_json(applied) + "\n"


# --- The managedFields of a scale, from those of the object and back -------------------------------------------------
# A scale has one field with owners, `spec.replicas`; each kind has a path for it. The managers of the scale are the
# owners of that path in the object; after a change of the scale, the object's owners of the path are updated.
#
# Specified by: k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go. As there, managers that come from a
# scale have no time.


_SCALE: Final = "autoscaling/v1"
_REPLICAS: Final[Path] = (field("spec"), field("replicas"))


@dataclass(slots=True, frozen=True)
class ScaleMapping:
    """The location of spec.replicas of a scale in its parent.

    Args:
        api_version: the apiVersion of the request path of the scale.
        paths: by apiVersion, the path of the replicas; None for a version without a scale.
        custom: whether the parent is a custom resource, whose entries have sorted members.
    """

    api_version: str
    paths: Mapping[str, tuple[str, ...] | None]
    custom: bool = False

    def to_scale(self, parent_entries: Any) -> list[dict[str, Any]]:
        """Converts the managedFields of the parent to those of its scale."""
        parent = managed_fields.decode(parent_entries)
        scale = Managed()
        for manager, owned in parent.owners.items():
            path = self._path(owned.api_version)
            if path is not None and path in owned.fields:
                scale.owners[manager] = Owned(FieldSet.from_paths(_REPLICAS), _SCALE)
                if manager in parent.times:
                    scale.times[manager] = parent.times[manager]
        return managed_fields.encode(scale)

    def to_parent(self, parent_entries: Any, scale_entries: Any) -> list[dict[str, Any]]:
        """Returns the managedFields of the parent after a change of its scale, given those of the scale."""
        parent, scale = managed_fields.decode(parent_entries), managed_fields.decode(scale_entries)
        result = Managed()
        taken = dict(scale.owners)
        for manager, owned in parent.owners.items():
            if owned.api_version not in self.paths:
                continue
            path = self._path(owned.api_version)
            kept = owned
            if path is not None and path in owned.fields:
                if manager not in taken:
                    kept = owned.with_fields(owned.fields - FieldSet.from_paths(path))
                taken.pop(manager, None)
            if kept.fields or kept is owned:
                result.owners[manager] = kept
        own_path = self._path(self.api_version)
        for manager, owned in taken.items():
            if _REPLICAS in owned.fields and own_path is not None:
                result.owners[manager] = Owned(FieldSet.from_paths(own_path), self.api_version)
        result.times = {manager: time for manager, time in parent.times.items() if manager in result.owners}
        # The real server sorts these path elements as strings; the next write restores the canonical order.
        return managed_fields.encode(result, sorted_keys=self.custom, sorted_fields=True)

    def _path(self, api_version: str) -> Path | None:
        names = self.paths.get(api_version)
        return tuple(map(field, names)) if names is not None else None

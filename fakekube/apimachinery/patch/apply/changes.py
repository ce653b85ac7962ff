"""Caches the effect of changes on managedFields, since objects of one workload change in the same way.

The owners after a change depend on the fields that the change removes, modifies or adds, on the owners before, and on
the manager. They do not depend on the object, if all owners have used its version.

Invariant: the cache key identifies owned sets by the identity of their trees, which never change; the cache holds
references to them, so that no other tree gets the same identity.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from fakekube.apimachinery.patch.apply import entries
from fakekube.apimachinery.patch.apply.atoms import TypingError
from fakekube.apimachinery.patch.apply.entries import Managed, Manager, Owned
from fakekube.apimachinery.patch.apply.fieldpath import FieldSet, Path, field
from fakekube.apimachinery.patch.apply.updater import Comparison, Owners, Typed
from fakekube.apimachinery.patch.literals import go_json
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.strings import bytes_of

_MAX_CHANGES: Final = 1024
#: The maximum length in bytes of configurations that are recognized.
_MAX_CONFIGURATION: Final = 5000


def text_of_configuration(applied: Any) -> bytes | None:
    """Returns what identifies an applied configuration; None for one that is too large or cannot be encoded."""
    try:
        text = orjson.dumps(applied)
    except orjson.JSONEncodeError:
        return None
    return text if len(text) <= _MAX_CONFIGURATION else None


class Change(NamedTuple):
    """The outcome of a change."""

    owners: dict[Manager, Owned]
    """Must not be changed."""
    maker: Manager | None
    """The manager of the change; None if the change gives it no fields."""


class _Remembered(NamedTuple):
    before: Owners
    change: Change


class Changes:
    """The cached changes of the objects of one kind in one version."""

    def __init__(self, api_version: str) -> None:
        self._api_version = api_version
        self._known: BoundedCache[Hashable, _Remembered] = BoundedCache(_MAX_CHANGES)

    def signature(self, comparison: Comparison, before: Owners, manager: str) -> Hashable | None:
        """Returns the cache key of a change; None if it cannot be cached."""
        if before and any(owned.api_version != self._api_version for owned in before.values()):
            return None
        try:
            text = orjson.dumps((comparison.removed.tree, comparison.changed.tree))
        except orjson.JSONEncodeError:  # elements that are not valid UTF-8
            return None
        if not before:
            return manager, text
        return manager, text, *((owner, id(owned.fields.tree)) for owner, owned in before.items())

    def find(self, signature: Hashable | None) -> Change | None:
        """Returns the cached outcome of a change."""
        found = self._known.get(signature)
        return found.change if found is not None else None

    def keep(self, signature: Hashable | None, before: Owners, change: Change) -> None:
        """Caches the outcome of a change."""
        if signature is not None:
            self._known.add(signature, _Remembered(before, change))


# Migrates objects from client-side apply to server-side apply.
#
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


# Converts the managedFields of an object to those of its scale, and back.
#
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
        parent = entries.decode(parent_entries)
        scale = Managed()
        for manager, owned in parent.owners.items():
            path = self._path(owned.api_version)
            if path is not None and path in owned.fields:
                scale.owners[manager] = Owned(FieldSet.of(_REPLICAS), _SCALE)
                if manager in parent.times:
                    scale.times[manager] = parent.times[manager]
        return entries.encode(scale)

    def to_parent(self, parent_entries: Any, scale_entries: Any) -> list[dict[str, Any]]:
        """Returns the managedFields of the parent after a change of its scale, given those of the scale."""
        parent, scale = entries.decode(parent_entries), entries.decode(scale_entries)
        result = Managed()
        taken = dict(scale.owners)
        for manager, owned in parent.owners.items():
            if owned.api_version not in self.paths:
                continue
            path = self._path(owned.api_version)
            kept = owned
            if path is not None and path in owned.fields:
                if manager not in taken:
                    kept = owned.with_fields(owned.fields - FieldSet.of(path))
                taken.pop(manager, None)
            if kept.fields or kept is owned:
                result.owners[manager] = kept
        own_path = self._path(self.api_version)
        for manager, owned in taken.items():
            if _REPLICAS in owned.fields and own_path is not None:
                result.owners[manager] = Owned(FieldSet.of(own_path), self.api_version)
        result.times = {manager: time for manager, time in parent.times.items() if manager in result.owners}
        # The real server sorts these path elements as strings; the next write restores the canonical order.
        return entries.encode(result, sorted_keys=self.custom, sorted_fields=True)

    def _path(self, api_version: str) -> Path | None:
        names = self.paths.get(api_version)
        return tuple(map(field, names)) if names is not None else None

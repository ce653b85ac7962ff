"""Converts the managedFields of an object to those of its scale, and back.

A scale has one field with owners, `spec.replicas`; each kind has a path for it. The managers of the scale are the
owners of that path in the object; after a change of the scale, the object's owners of the path are updated.

Specified by: k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go. As there, managers that come from a
scale have no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.patch.apply import entries
from fakekube.apimachinery.patch.apply.elements import Path, field
from fakekube.apimachinery.patch.apply.entries import Managed, Owned
from fakekube.apimachinery.patch.apply.fields import FieldSet

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

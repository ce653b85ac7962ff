"""The state of a scheduling cycle: the pod, the nodes, and a lister of other objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fakekube.controllers.objects import StoredObject
from fakekube.controllers.scheduler.nodeinfo import NodeInfo, PodInfo, Snapshot

__all__ = ["Cycle", "Lister"]


class Lister(Protocol):
    """Reads other objects of the cluster, from the caches of the scheduler's informers."""

    def get(self, resource: str, namespace: str, name: str) -> StoredObject | None:
        """Returns one object, or None."""

    def list(self, resource: str, namespace: str = "") -> Iterable[StoredObject]:
        """Returns the objects of one namespace, or of all for ""."""


@dataclass(slots=True)
class Cycle:
    """What plugins can read."""

    pod: PodInfo
    snapshot: Snapshot
    lister: Lister
    _namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def spec(self) -> StoredObject:
        """The spec of the pod."""
        spec: StoredObject = self.pod.obj["spec"]
        return spec

    @property
    def nodes(self) -> Iterable[NodeInfo]:
        """All nodes."""
        return self.snapshot.nodes.values()

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Returns the labels of a namespace; none if it does not exist."""
        if namespace not in self._namespaces:
            found = self.lister.get("namespaces", "", namespace)
            self._namespaces[namespace] = (found["metadata"].get("labels") or {}) if found else {}
        return self._namespaces[namespace]

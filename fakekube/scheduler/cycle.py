"""One scheduling cycle: the pod, the nodes, and what else plugins may ask of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fakekube.scheduler.nodeinfo import NodeInfo, PodInfo, Snapshot

__all__ = ["Catalog", "Cycle"]

Object = Mapping[str, Any]


class Catalog(Protocol):
    """The other objects of the cluster, as the scheduler's watches have shown them."""

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """One object, or None."""

    def list(self, resource: str, namespace: str = "") -> Iterable[Object]:
        """The objects of a namespace, or (without one) of all."""


@dataclass(slots=True)
class Cycle:
    """What plugins look at."""

    pod: PodInfo
    snapshot: Snapshot
    catalog: Catalog
    _namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def spec(self) -> Object:
        """The pod's spec."""
        spec: Object = self.pod.obj["spec"]
        return spec

    @property
    def nodes(self) -> Iterable[NodeInfo]:
        """All nodes."""
        return self.snapshot.nodes.values()

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; none if it is not known."""
        if namespace not in self._namespaces:
            found = self.catalog.get("namespaces", "", namespace)
            self._namespaces[namespace] = (found["metadata"].get("labels") or {}) if found else {}
        return self._namespaces[namespace]

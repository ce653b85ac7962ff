"""What the scheduler knows of nodes and of the pods on them.

A `PodInfo` holds what plugins ask of a pod, reckoned once for each version of it. A `NodeInfo` sums up the pods of a node.
The `Snapshot` holds all nodes, and counts, for selectors that are asked again and again, the pods they match on each node.

Invariant: `NodeInfo.requested` and `non_zero` are the sums over `pods`, and each count that is kept in the snapshot is what
counting anew would give.

Specified by: pkg/scheduler/framework/types.go (NodeInfo, PodInfo), pkg/scheduler/backend/cache/{cache,snapshot}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fakekube.scheduler.requests import Amounts, allocatable, effective_requests, non_zero_requests
from fakekube.scheduler.terms import AffinityTerms, affinity_terms
from fakekube.selectors import LabelSelector

__all__ = ["NodeInfo", "PodInfo", "Snapshot"]

Object = Mapping[str, Any]
HostPort = tuple[str, str, int]

#: How many selectors' counts are kept.
KEPT_COUNTS = 64


class PodInfo:
    """What plugins ask of one version of a pod."""

    __slots__ = (
        "host_ports",
        "labels",
        "name",
        "namespace",
        "non_zero",
        "obj",
        "priority",
        "requests",
        "terminating",
        "terms",
        "uid",
    )

    def __init__(self, obj: Object) -> None:
        metadata, spec = obj["metadata"], obj["spec"]
        self.obj = obj
        self.uid: str = metadata["uid"]
        self.namespace: str = metadata["namespace"]
        self.name: str = metadata["name"]
        self.labels: Mapping[str, str] = metadata.get("labels") or {}
        self.terminating = "deletionTimestamp" in metadata
        self.priority: int = spec.get("priority") or 0
        self.requests: Amounts = effective_requests(obj)
        self.non_zero: Amounts = non_zero_requests(obj)
        self.host_ports: tuple[HostPort, ...] = tuple(_host_ports(spec))
        self.terms: AffinityTerms = affinity_terms(obj)


def _host_ports(spec: Object) -> Iterator[HostPort]:
    """(address, protocol, port) of the containers, and of the init containers that keep running."""
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*spec["containers"], *sidecars):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"]


@dataclass(slots=True)
class NodeInfo:
    """A node, and the pods on it. `node` is None while only pods are known."""

    name: str
    node: Object | None = None
    allocatable: Amounts = field(default_factory=dict)
    pods: dict[str, PodInfo] = field(default_factory=dict)
    requested: Amounts = field(default_factory=dict)
    non_zero: Amounts = field(default_factory=dict)
    with_affinity: dict[str, PodInfo] = field(default_factory=dict)
    with_anti_affinity: dict[str, PodInfo] = field(default_factory=dict)
    """Pods with required anti-affinity."""
    host_ports: dict[str, tuple[HostPort, ...]] = field(default_factory=dict)

    @property
    def obj(self) -> Object:
        """The node, where it is known to be there."""
        assert self.node is not None
        return self.node

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the node."""
        labels: Mapping[str, str] = self.obj["metadata"].get("labels") or {}
        return labels

    @property
    def taints(self) -> Iterable[Mapping[str, Any]]:
        """The taints of the node."""
        taints: Iterable[Mapping[str, Any]] = (self.obj.get("spec") or {}).get("taints") or ()
        return taints

    def set_node(self, node: Object | None) -> None:
        """The node has come, changed, or gone (None)."""
        self.node = node
        self.allocatable = {} if node is None else allocatable(node)

    def add(self, pod: PodInfo) -> None:
        """A pod has come to this node."""
        self.pods[pod.uid] = pod
        _add(self.requested, pod.requests, 1)
        _add(self.non_zero, pod.non_zero, 1)
        if pod.terms:
            self.with_affinity[pod.uid] = pod
        if pod.terms.required_anti:
            self.with_anti_affinity[pod.uid] = pod
        if pod.host_ports:
            self.host_ports[pod.uid] = pod.host_ports

    def remove(self, uid: str) -> PodInfo | None:
        """A pod has gone."""
        pod = self.pods.pop(uid, None)
        if pod is not None:
            _add(self.requested, pod.requests, -1)
            _add(self.non_zero, pod.non_zero, -1)
            self.with_affinity.pop(uid, None)
            self.with_anti_affinity.pop(uid, None)
            self.host_ports.pop(uid, None)
        return pod

    def clone(self) -> NodeInfo:
        """A copy whose pods can be changed."""
        return NodeInfo(
            self.name,
            self.node,
            self.allocatable,
            dict(self.pods),
            dict(self.requested),
            dict(self.non_zero),
            dict(self.with_affinity),
            dict(self.with_anti_affinity),
            dict(self.host_ports),
        )


def _add(sums: Amounts, amounts: Amounts, sign: int) -> None:
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + sign * amount


_CountKey = tuple[str, LabelSelector]


class Snapshot:
    """All nodes, with their pods."""

    def __init__(self) -> None:
        self._infos: dict[str, NodeInfo] = {}
        self._places: dict[str, tuple[str, PodInfo]] = {}
        self._counts: dict[_CountKey, dict[str, int]] = {}
        self.nodes: dict[str, NodeInfo] = {}
        """The nodes that exist, by name."""

    # ---- nodes

    def set_node(self, name: str, node: Object | None) -> None:
        """A node has come, changed, or gone (None)."""
        info = self._info(name)
        info.set_node(node)
        if node is not None:
            self.nodes[name] = info
        else:
            self.nodes.pop(name, None)
            self._tidy(info)

    def _info(self, name: str) -> NodeInfo:
        if name not in self._infos:
            self._infos[name] = NodeInfo(name)
        return self._infos[name]

    def _tidy(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods:
            self._infos.pop(info.name, None)

    # ---- pods

    def set_pod(self, pod: PodInfo, node: str) -> None:
        """A pod is on a node, or is about to be."""
        self.remove_pod(pod.uid)
        self._info(node).add(pod)
        self._places[pod.uid] = (node, pod)
        self._count(pod, node, 1)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """A pod is on no node any more; returns it, if it was on one."""
        node, pod = self._places.pop(uid, ("", None))
        if pod is not None:
            info = self._info(node)
            info.remove(uid)
            self._count(pod, node, -1)
            self._tidy(info)
        return pod

    def place(self, uid: str) -> str:
        """The node of a pod, or ""."""
        return self._places.get(uid, ("",))[0]

    # ---- counts

    def matching(self, namespace: str, selector: LabelSelector) -> Mapping[str, int]:
        """How many pods of a namespace, not being deleted, the selector matches on each node; nodes without any are left out."""
        key = (namespace, selector)
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= KEPT_COUNTS:
                del self._counts[next(iter(self._counts))]
            counts = self._counts[key] = {}
            for node, pod in self._places.values():
                if _counted(key, pod):
                    counts[node] = counts.get(node, 0) + 1
        return counts

    def _count(self, pod: PodInfo, node: str, delta: int) -> None:
        for key, counts in self._counts.items():
            if _counted(key, pod):
                counts[node] = counts.get(node, 0) + delta
                if not counts[node]:
                    del counts[node]


def _counted(key: _CountKey, pod: PodInfo) -> bool:
    namespace, selector = key
    return pod.namespace == namespace and not pod.terminating and selector.matches(pod.labels)

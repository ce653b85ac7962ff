"""The scheduling framework: the view of nodes and their pods, the state of a scheduling cycle, statuses, and the interfaces of
plugins.

A `PodInfo` holds what plugins read of a pod, computed once for each version of it. A `NodeInfo` holds the sums of the pods on a
node. The `Snapshot` holds all nodes; for selectors that are used repeatedly, it counts the matching pods on each node. Resources
are whole numbers: CPU is in thousandths, everything else in whole units, rounded up.

A filter or score plugin is a class whose instances live for one scheduling cycle. `pre_filter` and `pre_score` return an instance
with the state of the cycle, or None if the plugin does not apply to the pod. Its `filter` or `score` is called for each node.
Preemption clones the instances of a cycle, and updates them with the pods that it removes and adds.

Invariant: `NodeInfo.requested` and `non_zero` are the sums over `pods`, and the counts of the snapshot are always up to date.
Resources are shared between pods with the same resources, and never changed.

Specified by: k8s.io/kube-scheduler/framework/{interface,cycle_state}.go, pkg/scheduler/framework/types.go (NodeInfo, PodInfo,
Resource, calculateResource, AffinityTerm, getAffinityTerms, newAffinityTerm, FitError),
pkg/scheduler/backend/cache/{cache,snapshot}.go, pkg/scheduler/util/pod_resources.go,
k8s.io/component-helpers/resource/helpers.go (PodRequests).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol

from fakekube.apimachinery.features import DEFAULT
from fakekube.apimachinery.selectors import LabelSelector, from_label_selector
from fakekube.apis.core.pods.resources import pod_requests
from fakekube.apis.validation.resource_lists import quantity
from fakekube.base.caches import forgettable
from fakekube.base.objects import StoredObject

# --- NodeInfo ---------------------------------------------------------------------------------------------------------


Amounts = dict[str, int]

#: Requests that score plugins assume for a container without requests (DefaultMilliCPURequest, DefaultMemoryRequest).
DEFAULT_REQUESTS: Final = {"cpu": "100m", "memory": "209715200"}


@forgettable
@lru_cache(maxsize=4096)
def _parse_amount(name: str, text: str) -> int:
    return quantity(text).milli_value() if name == "cpu" else quantity(text).value()


def allocatable(node: Mapping[str, Any]) -> Amounts:
    """Returns the allocatable resources of a node."""
    status = node.get("status") or {}
    return {name: _parse_amount(name, text) for name, text in (status.get("allocatable") or {}).items()}


def effective_requests(pod: Mapping[str, Any]) -> Amounts:
    """Returns the requests of a pod: the sum of its containers or its largest init container, plus overhead."""
    return _sum_requests(pod, False)


def non_zero_requests(pod: Mapping[str, Any]) -> Amounts:
    """Returns the requests of a pod, with defaults for containers that request no CPU or memory."""
    return _sum_requests(pod, True)


def _sum_requests(pod: Mapping[str, Any], defaulted: bool) -> Amounts:
    spec = pod["spec"]
    key = repr(
        (
            [(c.get("resources") or {}).get("requests") for c in spec.get("containers") or ()],
            [((c.get("resources") or {}).get("requests"), c.get("restartPolicy")) for c in spec.get("initContainers") or ()],
            spec.get("overhead"),
            (spec.get("resources") or {}).get("requests"),
            defaulted,
        )
    )
    found = _cached.get(key)
    if found is None:
        if len(_cached) > 4096:
            _cached.clear()
        found = _cached[key] = _calculate_requests({**spec, **_with_default_requests(spec)} if defaulted else spec)
    return found


_cached: dict[str, Amounts] = {}


def _calculate_requests(spec: Mapping[str, Any]) -> Amounts:
    amounts = pod_requests({"spec": dict(spec)}, overhead=True)
    return {name: amount.milli_value() if name == "cpu" else amount.value() for name, amount in amounts.items()}


def _with_default_requests(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {field: _set_default_requests(spec.get(field) or ()) for field in ("containers", "initContainers")}


def _set_default_requests(containers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    result = []
    for container in containers:
        resources = container.get("resources") or {}
        requests = {**DEFAULT_REQUESTS, **(resources.get("requests") or {})}
        result.append({**container, "resources": {**resources, "requests": requests}})
    return result


Labels = Mapping[str, str]


@dataclass(slots=True, frozen=True)
class AffinityTerm:
    """Selects pods by labels and namespaces, and the topology that they are compared in."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: Callable[[], Labels]) -> bool:
        """Reports whether the term matches a pod with these labels in this namespace."""
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not self.namespace_selector.matches(namespace_labels())
        ):
            return False
        return self.selector.matches(labels)


@dataclass(slots=True, frozen=True)
class AffinityTerms:
    """The affinity terms of a pod."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()
    preferred_anti: tuple[AffinityTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.required_anti or self.preferred or self.preferred_anti)


NO_TERMS: Final = AffinityTerms()


def affinity_terms(pod: Mapping[str, Any]) -> AffinityTerms:
    """Returns the terms of a pod's affinity and anti-affinity. Raises SelectorError for invalid selectors."""
    affinity = pod["spec"].get("affinity")
    if not affinity:
        return NO_TERMS
    near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if not near and not far:
        return NO_TERMS
    namespace = pod["metadata"]["namespace"]
    return AffinityTerms(
        _required_terms(near, namespace),
        _required_terms(far, namespace),
        _preferred_terms(near, namespace),
        _preferred_terms(far, namespace),
    )


def _required_terms(affinity: Mapping[str, Any], namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Sequence[Mapping[str, Any]] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_new_affinity_term(term, namespace, 0) for term in terms)


def _preferred_terms(affinity: Mapping[str, Any], namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Sequence[Mapping[str, Any]] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_new_affinity_term(term["podAffinityTerm"], namespace, term.get("weight", 0)) for term in terms)


def _new_affinity_term(term: Mapping[str, Any], namespace: str, weight: int) -> AffinityTerm:
    namespaces = frozenset(term.get("namespaces") or ())
    selector = term.get("namespaceSelector")
    if not namespaces and selector is None:
        namespaces = frozenset({namespace})
    return AffinityTerm(
        term["topologyKey"],
        from_label_selector(term.get("labelSelector")),
        namespaces,
        None if selector is None else from_label_selector(selector),
        weight,
    )


HostPort = tuple[str, str, int]

#: The number of selectors whose counts are kept.
KEPT_COUNTS: Final = 64


class PodInfo:
    """What plugins read of one version of a pod."""

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

    def __init__(self, obj: StoredObject) -> None:
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


def _host_ports(spec: StoredObject) -> Iterator[HostPort]:
    """Yields (address, protocol, port) of the host ports of containers and sidecars."""
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*spec["containers"], *sidecars):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"]


@dataclass(slots=True)
class NodeInfo:
    """A node and the pods on it. `node` is None while pods refer to a node that does not exist."""

    name: str
    node: StoredObject | None = None
    allocatable: Amounts = field(default_factory=dict)
    pods: dict[str, PodInfo] = field(default_factory=dict)
    requested: Amounts = field(default_factory=dict)
    non_zero: Amounts = field(default_factory=dict)
    with_affinity: dict[str, PodInfo] = field(default_factory=dict)
    with_anti_affinity: dict[str, PodInfo] = field(default_factory=dict)
    """The pods with required anti-affinity."""
    host_ports: dict[str, tuple[HostPort, ...]] = field(default_factory=dict)

    @property
    def obj(self) -> StoredObject:
        """The node, which must exist."""
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

    def set_node(self, node: StoredObject | None) -> None:
        """Sets the node; None if it was deleted."""
        self.node = node
        self.allocatable = {} if node is None else allocatable(node)

    def add(self, pod: PodInfo) -> None:
        """Adds a pod."""
        self.pods[pod.uid] = pod
        _add_amounts(self.requested, pod.requests, 1)
        _add_amounts(self.non_zero, pod.non_zero, 1)
        if pod.terms:
            self.with_affinity[pod.uid] = pod
        if pod.terms.required_anti:
            self.with_anti_affinity[pod.uid] = pod
        if pod.host_ports:
            self.host_ports[pod.uid] = pod.host_ports

    def remove(self, uid: str) -> PodInfo | None:
        """Removes a pod."""
        pod = self.pods.pop(uid, None)
        if pod is not None:
            _add_amounts(self.requested, pod.requests, -1)
            _add_amounts(self.non_zero, pod.non_zero, -1)
            self.with_affinity.pop(uid, None)
            self.with_anti_affinity.pop(uid, None)
            self.host_ports.pop(uid, None)
        return pod

    def clone(self) -> NodeInfo:
        """Returns a copy whose pods can be changed."""
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


def _add_amounts(sums: Amounts, amounts: Amounts, sign: int) -> None:
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + sign * amount


_CountKey = tuple[str, LabelSelector]


class Snapshot:
    """All nodes with their pods."""

    def __init__(self) -> None:
        self._infos: dict[str, NodeInfo] = {}
        self._places: dict[str, tuple[str, PodInfo]] = {}
        self._counts: dict[_CountKey, dict[str, int]] = {}
        self.nodes: dict[str, NodeInfo] = {}
        """The nodes that exist, by name."""

    # --- Nodes --------------------------------------------------------------------------------------------------------

    def set_node(self, name: str, node: StoredObject | None) -> None:
        """Adds, updates or (None) removes a node."""
        info = self._node_info(name)
        info.set_node(node)
        if node is not None:
            self.nodes[name] = info
        else:
            self.nodes.pop(name, None)
            self._remove_if_empty(info)

    def _node_info(self, name: str) -> NodeInfo:
        if name not in self._infos:
            self._infos[name] = NodeInfo(name)
        return self._infos[name]

    def _remove_if_empty(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods:
            self._infos.pop(info.name, None)

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def set_pod(self, pod: PodInfo, node: str) -> None:
        """Adds a pod to the node to which it is bound or assumed to be bound."""
        self.remove_pod(pod.uid)
        self._node_info(node).add(pod)
        self._places[pod.uid] = (node, pod)
        self._count_pod(pod, node, 1)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Removes a pod. Returns it, if it was on a node."""
        node, pod = self._places.pop(uid, ("", None))
        if pod is not None:
            info = self._node_info(node)
            info.remove(uid)
            self._count_pod(pod, node, -1)
            self._remove_if_empty(info)
        return pod

    # --- Counts -------------------------------------------------------------------------------------------------------

    def count_matching(self, namespace: str, selector: LabelSelector) -> Mapping[str, int]:
        """Returns for each node the number of pods of a namespace that the selector matches, without terminating ones.

        Nodes without such pods are left out.
        """
        key = (namespace, selector)
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= KEPT_COUNTS:
                del self._counts[next(iter(self._counts))]
            counts = self._counts[key] = {}
            for node, pod in self._places.values():
                if _is_counted(key, pod):
                    counts[node] = counts.get(node, 0) + 1
        return counts

    def _count_pod(self, pod: PodInfo, node: str, delta: int) -> None:
        for key, counts in self._counts.items():
            if _is_counted(key, pod):
                counts[node] = counts.get(node, 0) + delta
                if not counts[node]:
                    del counts[node]


def _is_counted(key: _CountKey, pod: PodInfo) -> bool:
    namespace, selector = key
    return pod.namespace == namespace and not pod.terminating and selector.matches(pod.labels)


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
    minor: int = DEFAULT.minor
    """The minor of the scheduler, whose messages it has."""
    node_declared_features: bool = False
    """Whether the gate NodeDeclaredFeatures is on."""
    has_claims: bool = False
    """Whether the pod has ResourceClaims, whose devices the scheduler allocates."""
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


MAX_NODE_SCORE: Final = 100


class Code(Enum):
    """The code of a rejection."""

    UNSCHEDULABLE = "Unschedulable"
    """Preemption may resolve it."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Preemption cannot resolve it."""


@dataclass(slots=True, frozen=True)
class Status:
    """A rejection by a plugin; plugins return None for success."""

    code: Code
    reasons: tuple[str, ...]
    plugin: str = ""


class PreFilterRejection(Exception):
    """A plugin rejects the pod on all nodes."""

    def __init__(self, status: Status) -> None:
        super().__init__(", ".join(status.reasons))
        self.status = status


class SchedulingError(Exception):
    """A plugin has failed: the pod is neither scheduled nor unschedulable, and tried again."""


class FilterPlugin:
    """A filter plugin, for one pod."""

    name: ClassVar[str] = ""
    node_names: frozenset[str] | None = None
    """The only nodes to consider; None for all (PreFilterResult)."""

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        """Returns an instance for this cycle; None if the plugin does not apply. Raises PreFilterRejection."""
        raise NotImplementedError

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns why the pod cannot run on this node; None if it can."""
        raise NotImplementedError

    def clone(self) -> FilterPlugin:
        """Returns an instance that can be updated without a change of this one."""
        return self

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        """A pod was added to (1) or removed from (-1) a node."""


class ScorePlugin:
    """A score plugin, for one pod. Scores are from 0 to MAX_NODE_SCORE after `normalize`."""

    name: ClassVar[str] = ""
    weight: ClassVar[int] = 1

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        """Returns an instance for this cycle; None if all nodes get the same score."""
        raise NotImplementedError

    def score(self, node: NodeInfo) -> int:
        """Returns the score of a node."""
        raise NotImplementedError

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Returns the scores of all nodes in the range from 0 to MAX_NODE_SCORE."""
        return scores


@dataclass(slots=True)
class Diagnosis:
    """The reasons for which no node fits."""

    nodes: dict[str, Status] = field(default_factory=dict)
    """The rejections of the nodes for which filters ran, by name."""
    absent: Status | None = None
    """The rejection of all other nodes."""
    pre_filter_message: str = ""
    post_filter_message: str = ""
    plugins: set[str] = field(default_factory=set)
    """The names of the plugins that rejected a node."""

    def status_of(self, name: str) -> Status | None:
        """Returns the rejection of a node."""
        return self.nodes.get(name, self.absent)


@dataclass(slots=True)
class FitError(Exception):
    """No node fits. `str` returns the message of events and conditions."""

    node_count: int
    diagnosis: Diagnosis

    def __str__(self) -> str:
        parts = [f"0/{self.node_count} nodes are available:"]
        diagnosis = self.diagnosis
        if diagnosis.pre_filter_message:
            parts.append(f"{diagnosis.pre_filter_message}.")
        elif reasons := self._reason_histogram():
            parts.append(f"{', '.join(reasons)}.")
        if diagnosis.post_filter_message:
            parts.append(diagnosis.post_filter_message)
        return " ".join(parts)

    def _reason_histogram(self) -> Iterable[str]:
        counts: Counter[str] = Counter()
        for status in self.diagnosis.nodes.values():
            counts.update(status.reasons)
        others = self.node_count - len(self.diagnosis.nodes)
        if others > 0 and self.diagnosis.absent is not None:
            for reason in self.diagnosis.absent.reasons:
                counts[reason] += others
        return sorted(f"{count} {reason}" for reason, count in counts.items())

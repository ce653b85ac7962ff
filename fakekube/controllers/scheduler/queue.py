"""The scheduling queue: pods to schedule now, by priority, and unschedulable pods, with the events that retry them.

An unschedulable pod is retried as soon as an event may have made it schedulable. There is no back-off. Pods with scheduling
gates are not in the queue.

Each plugin that rejected a pod decides whether an event may change that (queueing hints). A pod that was not rejected by a plugin
(because there were no nodes, or after an error) is retried after any event.

Invariant: a pod is either active or unschedulable.

Specified by: pkg/scheduler/backend/queue/{scheduling_queue,active_queue,nominator}.go,
pkg/scheduler/framework/plugins/queuesort/priority_sort.go, pkg/scheduler/eventhandlers.go; the functions EventsToRegister and
isSchedulableAfter… in pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apimachinery.selectors.nodes import find_untolerated_taint, required_node_affinity
from fakekube.base.objects import StoredObject
from fakekube.controllers.scheduler.framework import AffinityTerm, PodInfo, allocatable
from fakekube.controllers.scheduler.plugins.dynamic_resources import CLAIMS, CLASSES, SLICES, allocation_of
from fakekube.controllers.scheduler.plugins.node_resources import insufficient_resources


@dataclass(slots=True, frozen=True)
class ClusterEvent:
    """A change of an object other than the pending pod."""

    resource: str
    """The resource, named as in `Reconciler.watches`. For pods only those with a node are reported."""
    obj: StoredObject | None
    """The object; None after a deletion."""
    old: StoredObject | None
    """The object before the change; None after a creation."""

    @property
    def either(self) -> StoredObject:
        """The object, or its last state."""
        found = self.obj if self.obj is not None else self.old
        assert found is not None
        return found

    def has_changed(self, *path: str) -> bool:
        """Reports whether the object is new, deleted, or different in this field."""
        return self.obj is None or self.old is None or _value_at(self.obj, path) != _value_at(self.old, path)


def _value_at(obj: StoredObject, path: tuple[str, ...]) -> Any:
    value: Any = obj
    for name in path:
        value = (value or {}).get(name)
    return value


def is_pod_worth_requeuing(pod: PodInfo, plugins: Collection[str], event: ClusterEvent) -> bool:
    """Reports whether the event may make the pod, which these plugins rejected, schedulable (isPodWorthRequeuing)."""
    if not plugins:
        return True
    return any(_HINTS[plugin](pod, event) for plugin in plugins if plugin in _HINTS)


def _node_unschedulable(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.resource != "nodes" or event.obj is None or (event.obj.get("spec") or {}).get("unschedulable"):
        return False
    return event.old is None or bool((event.old.get("spec") or {}).get("unschedulable"))


def _node_name(pod: PodInfo, event: ClusterEvent) -> bool:
    return event.resource == "nodes" and event.old is None


def _taint_toleration(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.resource != "nodes" or event.obj is None:
        return False
    tolerations = pod.obj["spec"].get("tolerations") or ()

    def is_untolerated(node: StoredObject) -> bool:
        return find_untolerated_taint((node.get("spec") or {}).get("taints") or (), tolerations) is not None

    return not is_untolerated(event.obj) and (event.old is None or is_untolerated(event.old))


def _node_affinity(pod: PodInfo, event: ClusterEvent) -> bool:
    matches = required_node_affinity(pod.obj["spec"])
    if event.resource != "nodes" or event.obj is None or (matches is not None and not matches(event.obj)):
        return False
    return event.old is None or (matches is not None and not matches(event.old))


def _node_declared_features(pod: PodInfo, event: ClusterEvent) -> bool:
    return event.resource == "nodes" and event.obj is not None and event.has_changed("status", "declaredFeatures")


def _node_ports(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.resource == "nodes":
        return event.old is None
    if event.resource != "pods" or event.obj is not None:
        return False
    ports = {port[1:] for port in PodInfo(event.either).host_ports}
    return any(port[1:] in ports for port in pod.host_ports)


def _hint_fit(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.resource == "pods":
        return event.obj is None or _is_scaled_down(pod, event)
    if event.resource != "nodes" or event.obj is None:
        return False
    available = allocatable(event.obj)
    if any(insufficient_resources(pod.requests, available, {}, 0)):
        return False
    if event.old is None:
        return True
    before = allocatable(event.old)
    names = ["pods", *(name for name, amount in pod.requests.items() if amount > 0)]
    return any(available.get(name, 0) > before.get(name, 0) for name in names)


def _is_scaled_down(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.old is None or not event.has_changed("spec", "containers"):
        return False
    before, now = PodInfo(event.old).requests, PodInfo(event.either).requests
    return any(amount and before.get(name, 0) > now.get(name, 0) for name, amount in pod.requests.items())


def _hint_volumes(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.resource in ("persistentvolumes", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io"):
        return event.obj is not None
    if event.resource == "persistentvolumeclaims":
        return event.obj is not None and event.obj["metadata"]["namespace"] == pod.namespace
    return event.resource == "nodes" and event.obj is not None and event.has_changed("metadata", "labels")


def _volume_users(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.resource == "pods":
        return event.obj is None
    return _hint_volumes(pod, event)


def _topology_spread(pod: PodInfo, event: ClusterEvent) -> bool:
    constraints = pod.obj["spec"].get("topologySpreadConstraints") or ()
    wanted = [one for one in constraints if one["whenUnsatisfiable"] == "DoNotSchedule"]
    if event.resource == "nodes":
        keys = [one["topologyKey"] for one in wanted]
        before, now = (_topology_values(node, keys) for node in (event.old, event.obj))
        return before != now or (now is not None and event.has_changed("spec", "taints"))
    if event.resource != "pods" or event.either["metadata"]["namespace"] != pod.namespace:
        return False
    selectors = [from_label_selector(one.get("labelSelector")) for one in wanted]

    def matching_selectors(obj: StoredObject | None) -> list[bool]:
        labels = None if obj is None else obj["metadata"].get("labels") or {}
        return [labels is not None and selector.matches(labels) for selector in selectors]

    return matching_selectors(event.obj) != matching_selectors(event.old)


def _topology_values(node: StoredObject | None, keys: list[str]) -> list[str] | None:
    """Returns the values of these labels; None if the node does not exist, or lacks one of them."""
    labels = {} if node is None else node["metadata"].get("labels") or {}
    return [labels[key] for key in keys] if all(key in labels for key in keys) and node is not None else None


def _inter_pod_affinity(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.resource == "nodes":
        return event.obj is not None and event.has_changed("metadata", "labels")
    if event.resource != "pods" or not (event.obj is None or event.old is None or event.has_changed("metadata", "labels")):
        return False
    other = PodInfo(event.either)
    if event.obj is not None and _may_match(pod.terms.required, other):
        return True
    repelled = _may_match(pod.terms.required_anti, other) or _may_match(other.terms.required_anti, pod)
    return repelled and (event.obj is None or event.old is not None)


def _may_match(terms: tuple[AffinityTerm, ...], pod: PodInfo) -> bool:
    """Reports whether a term matches the pod, provided that its namespace selector does."""
    return any(
        (pod.namespace in term.namespaces or term.namespace_selector is not None) and term.selector.matches(pod.labels)
        for term in terms
    )


def _hint_devices(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.resource in (SLICES, CLASSES):
        return event.obj is not None
    if event.resource == CLAIMS:
        was_allocated = event.old is not None and allocation_of(event.old) is not None
        is_freed = was_allocated and (event.obj is None or allocation_of(event.obj) is None)
        return is_freed or (event.obj is not None and event.obj["metadata"]["name"] in _claim_names(pod, event.obj))
    is_changed = event.has_changed("metadata", "labels") or event.has_changed("spec", "taints")
    return event.resource == "nodes" and event.obj is not None and is_changed


def _claim_names(pod: PodInfo, claim: StoredObject) -> set[str | None]:
    """Returns the names of a pod's claims in the namespace of a claim."""
    from fakekube.controllers.resource_claim import claim_name

    if claim["metadata"]["namespace"] != pod.namespace:
        return set()
    return {claim_name(pod.obj, one) for one in pod.obj["spec"].get("resourceClaims") or ()}


_HINTS: Final[Mapping[str, Callable[[PodInfo, ClusterEvent], bool]]] = {
    "NodeUnschedulable": _node_unschedulable,
    "NodeName": _node_name,
    "TaintToleration": _taint_toleration,
    "NodeAffinity": _node_affinity,
    "NodeDeclaredFeatures": _node_declared_features,
    "NodePorts": _node_ports,
    "NodeResourcesFit": _hint_fit,
    "VolumeRestrictions": _volume_users,
    "NodeVolumeLimits": _volume_users,
    "VolumeBinding": _hint_volumes,
    "VolumeZone": _hint_volumes,
    "PodTopologySpread": _topology_spread,
    "InterPodAffinity": _inter_pod_affinity,
    "DynamicResources": _hint_devices,
}


class SchedulingQueue:
    """The pending pods of the scheduler."""

    def __init__(self) -> None:
        self._active: dict[str, PodInfo] = {}
        self._heap: list[tuple[int, int, str]] = []
        self._places: dict[str, int] = {}
        self._order = itertools.count()
        self._unschedulable: dict[str, tuple[PodInfo, frozenset[str]]] = {}
        self._nominated: dict[str, tuple[str, PodInfo]] = {}

    def __len__(self) -> int:
        """Returns the number of active pods."""
        return len(self._active)

    def __contains__(self, uid: str) -> bool:
        """Reports whether a pod is active or unschedulable."""
        return uid in self._active or uid in self._unschedulable

    def add(self, pod: PodInfo) -> None:
        """Makes a pod active. A pod that was in the queue before keeps its position among pods of its priority."""
        self._unschedulable.pop(pod.uid, None)
        self._active[pod.uid] = pod
        place = self._places.setdefault(pod.uid, next(self._order))
        heapq.heappush(self._heap, (-pod.priority, place, pod.uid))

    def activate(self, uid: str) -> None:
        """Makes an unschedulable pod active; does nothing if it is none."""
        if uid in self._unschedulable:
            self.add(self._unschedulable[uid][0])

    def pop(self) -> PodInfo | None:
        """Removes and returns the active pod with the highest priority; None if there is none."""
        while self._heap:
            priority, place, uid = heapq.heappop(self._heap)
            pod = self._active.get(uid)
            if pod is not None and -pod.priority == priority and self._places.get(uid) == place:
                del self._active[uid]
                return pod
        return None

    def add_unschedulable(self, pod: PodInfo, plugins: Collection[str]) -> None:
        """Makes a pod unschedulable, with the plugins that rejected it."""
        self._active.pop(pod.uid, None)
        self._unschedulable[pod.uid] = (pod, frozenset(plugins))

    def update(self, pod: PodInfo) -> bool:
        """Replaces a pod by a newer version, without a retry. Returns False if it is not in the queue."""
        if pod.uid in self._active:
            self.add(pod)
        elif pod.uid in self._unschedulable:
            self._unschedulable[pod.uid] = (pod, self._unschedulable[pod.uid][1])
        else:
            return False
        if pod.uid in self._nominated:
            self._nominated[pod.uid] = (self._nominated[pod.uid][0], pod)
        return True

    def remove(self, uid: str) -> None:
        """Removes a pod that was bound or deleted."""
        self._active.pop(uid, None)
        self._unschedulable.pop(uid, None)
        self._places.pop(uid, None)
        self._nominated.pop(uid, None)

    def move_all_to_active(self, event: ClusterEvent) -> None:
        """Makes the unschedulable pods active that the event may have made schedulable (MoveAllToActiveOrBackoffQueue)."""
        for pod, plugins in list(self._unschedulable.values()):
            if is_pod_worth_requeuing(pod, plugins, event):
                self.add(pod)

    # --- Nominations --------------------------------------------------------------------------------------------------

    def add_nominated_pod(self, pod: PodInfo, node: str) -> None:
        """Nominates a pod for a node on which preemption makes room; "" removes the nomination."""
        if node:
            self._nominated[pod.uid] = (node, pod)
        else:
            self._nominated.pop(pod.uid, None)

    def nominated_pods_for_node(self, node: str) -> Iterable[PodInfo]:
        """Returns the pods that are nominated for a node."""
        return [pod for name, pod in self._nominated.values() if name == node]

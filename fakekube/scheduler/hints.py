"""Which changes of the cluster make a pod that did not fit worth another try.

Each plugin that refused a pod says which changes may undo its refusal. A pod that no plugin refused (there were no nodes, or
an error) is tried again after any change.

Specified by: the EventsToRegister and isSchedulableAfter… functions of pkg/scheduler/framework/plugins, and
pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.scheduler.nodeinfo import PodInfo
from fakekube.scheduler.plugins.node_resources import insufficient
from fakekube.scheduler.requests import allocatable
from fakekube.scheduler.terms import AffinityTerm
from fakekube.selectors import from_label_selector
from fakekube.selectors.nodes import required_node_affinity
from fakekube.selectors.taints import untolerated

__all__ = ["Change", "worth_a_try"]

Object = Mapping[str, Any]


@dataclass(slots=True, frozen=True)
class Change:
    """Something has happened to an object other than the pod itself."""

    resource: str
    """As controllers name it; pods are those that are on a node."""
    obj: Object | None
    """None after a deletion."""
    old: Object | None
    """None after a creation."""

    @property
    def either(self) -> Object:
        """The object, or what it was."""
        found = self.obj if self.obj is not None else self.old
        assert found is not None
        return found

    def has_changed(self, *path: str) -> bool:
        """Is it new, gone, or different in this field?"""
        return self.obj is None or self.old is None or _at(self.obj, path) != _at(self.old, path)


def _at(obj: Object, path: tuple[str, ...]) -> Any:
    value: Any = obj
    for name in path:
        value = (value or {}).get(name)
    return value


def worth_a_try(pod: PodInfo, plugins: Collection[str], change: Change) -> bool:
    """May the change let the pod, which these plugins refused, fit?"""
    if not plugins:
        return True
    return any(_HINTS[plugin](pod, change) for plugin in plugins if plugin in _HINTS)


# ---------------------------------------------------------------- what plugins say


def _node_unschedulable(pod: PodInfo, change: Change) -> bool:
    if change.resource != "nodes" or change.obj is None or (change.obj.get("spec") or {}).get("unschedulable"):
        return False
    return change.old is None or bool((change.old.get("spec") or {}).get("unschedulable"))


def _node_name(pod: PodInfo, change: Change) -> bool:
    return change.resource == "nodes" and change.old is None


def _taint_toleration(pod: PodInfo, change: Change) -> bool:
    if change.resource != "nodes" or change.obj is None:
        return False
    tolerations = pod.obj["spec"].get("tolerations") or ()

    def refused(node: Object) -> bool:
        return untolerated((node.get("spec") or {}).get("taints") or (), tolerations) is not None

    return not refused(change.obj) and (change.old is None or refused(change.old))


def _node_affinity(pod: PodInfo, change: Change) -> bool:
    matches = required_node_affinity(pod.obj["spec"])
    if change.resource != "nodes" or change.obj is None or (matches is not None and not matches(change.obj)):
        return False
    return change.old is None or (matches is not None and not matches(change.old))


def _node_ports(pod: PodInfo, change: Change) -> bool:
    if change.resource == "nodes":
        return change.old is None
    if change.resource != "pods" or change.obj is not None:
        return False
    ports = {port[1:] for port in PodInfo(change.either).host_ports}
    return any(port[1:] in ports for port in pod.host_ports)


def _fit(pod: PodInfo, change: Change) -> bool:
    if change.resource == "pods":
        return change.obj is None or _is_scaled_down(pod, change)
    if change.resource != "nodes" or change.obj is None:
        return False
    there = allocatable(change.obj)
    if insufficient(pod.requests, there, {}, 0)[0]:
        return False
    if change.old is None:
        return True
    before = allocatable(change.old)
    names = ["pods", *(name for name, amount in pod.requests.items() if amount > 0)]
    return any(there.get(name, 0) > before.get(name, 0) for name in names)


def _is_scaled_down(pod: PodInfo, change: Change) -> bool:
    if change.old is None or not change.has_changed("spec", "containers"):
        return False
    before, now = PodInfo(change.old).requests, PodInfo(change.either).requests
    return any(amount and before.get(name, 0) > now.get(name, 0) for name, amount in pod.requests.items())


def _volumes(pod: PodInfo, change: Change) -> bool:
    if change.resource in ("persistentvolumes", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io"):
        return change.obj is not None
    if change.resource == "persistentvolumeclaims":
        return change.obj is not None and change.obj["metadata"]["namespace"] == pod.namespace
    return change.resource == "nodes" and change.obj is not None and change.has_changed("metadata", "labels")


def _volume_users(pod: PodInfo, change: Change) -> bool:
    if change.resource == "pods":
        return change.obj is None
    return _volumes(pod, change)


def _topology_spread(pod: PodInfo, change: Change) -> bool:
    constraints = pod.obj["spec"].get("topologySpreadConstraints") or ()
    wanted = [one for one in constraints if one["whenUnsatisfiable"] == "DoNotSchedule"]
    if change.resource == "nodes":
        keys = [one["topologyKey"] for one in wanted]
        before, now = (_topologies(node, keys) for node in (change.old, change.obj))
        return before != now or (now is not None and change.has_changed("spec", "taints"))
    if change.resource != "pods" or change.either["metadata"]["namespace"] != pod.namespace:
        return False
    selectors = [from_label_selector(one.get("labelSelector")) for one in wanted]

    def counted(obj: Object | None) -> list[bool]:
        labels = None if obj is None else obj["metadata"].get("labels") or {}
        return [labels is not None and selector.matches(labels) for selector in selectors]

    return counted(change.obj) != counted(change.old)


def _topologies(node: Object | None, keys: list[str]) -> list[str] | None:
    """The values of the labels that count; None if the node is not there, or has not all of them."""
    labels = {} if node is None else node["metadata"].get("labels") or {}
    return [labels[key] for key in keys] if all(key in labels for key in keys) and node is not None else None


def _inter_pod_affinity(pod: PodInfo, change: Change) -> bool:
    if change.resource == "nodes":
        return change.obj is not None and change.has_changed("metadata", "labels")
    if change.resource != "pods" or not (change.obj is None or change.old is None or change.has_changed("metadata", "labels")):
        return False
    other = PodInfo(change.either)
    if change.obj is not None and _may_match(pod.terms.required, other):
        return True
    repelled = _may_match(pod.terms.required_anti, other) or _may_match(other.terms.required_anti, pod)
    return repelled and (change.obj is None or change.old is not None)


def _may_match(terms: tuple[AffinityTerm, ...], pod: PodInfo) -> bool:
    """Does a term mean the pod, if its namespace selector does?"""
    return any(
        (pod.namespace in term.namespaces or term.namespace_selector is not None) and term.selector.matches(pod.labels)
        for term in terms
    )


_HINTS: Final[Mapping[str, Callable[[PodInfo, Change], bool]]] = {
    "NodeUnschedulable": _node_unschedulable,
    "NodeName": _node_name,
    "TaintToleration": _taint_toleration,
    "NodeAffinity": _node_affinity,
    "NodePorts": _node_ports,
    "NodeResourcesFit": _fit,
    "VolumeRestrictions": _volume_users,
    "NodeVolumeLimits": _volume_users,
    "VolumeBinding": _volumes,
    "VolumeZone": _volumes,
    "PodTopologySpread": _topology_spread,
    "InterPodAffinity": _inter_pod_affinity,
}

"""The admission of pods by a kubelet: pods that were created with a nodeName are rejected if they do not fit the node.

A scheduler makes the same checks before it binds a pod, so that pods which it has bound are not checked again.

Invariant: pods that the kubelet has not admitted yet do not count.

Specified by: pkg/kubelet/lifecycle/predicate.go (Admit, generalFilter), pkg/scheduler/eventhandlers.go (AdmissionCheck),
pkg/kubelet/kubelet.go (rejectPod).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fakekube.apimachinery.selectors.nodes import required_node_affinity, untolerated
from fakekube.controllers.objects import Object
from fakekube.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from fakekube.controllers.scheduler.plugins.node import NodeAffinity, NodePorts, TaintToleration
from fakekube.controllers.scheduler.plugins.node_resources import insufficient_resources
from fakekube.nodes.pod_status import TERMINAL

__all__ = ["Rejection", "rejected_status", "rejection"]


class Rejection(NamedTuple):
    """Why a kubelet rejects a pod: the reason, and the message of the event."""

    reason: str
    message: str


def rejection(pod: Object, node: Object, others: Iterable[Object]) -> Rejection | None:
    """Returns why a node's kubelet rejects a pod; None if it admits it.

    Args:
        pod: The pod.
        node: The node.
        others: The other pods that are bound to the node.
    """
    info = NodeInfo(node["metadata"]["name"])
    info.set_node(node)
    for other in others:
        status = other.get("status") or {}
        if status.get("startTime") and status.get("phase") not in TERMINAL:
            info.add(PodInfo(other))
    return next(_rejections(PodInfo(pod), info), None)


def _rejections(pod: PodInfo, node: NodeInfo) -> Iterator[Rejection]:
    requests = {name: amount for name, amount in pod.requests.items() if "/" not in name or name in node.allocatable}
    for lacking in insufficient_resources(requests, node.allocatable, node.requested, len(node.pods)):
        amounts = f"requested: {lacking.requested}, used: {lacking.used}, capacity: {lacking.capacity}"
        yield Rejection(f"OutOf{lacking.resource}", f"Node didn't have enough resource: {lacking.resource}, {amounts}")
    matches = required_node_affinity(pod.obj["spec"])
    if matches is not None and not matches(node.obj):
        yield _predicate(NodeAffinity)
    if NodePorts(pod.host_ports).filter(node) is not None:
        yield _predicate(NodePorts)
    if untolerated(node.taints, pod.obj["spec"].get("tolerations") or (), ("NoExecute",)):
        yield _predicate(TaintToleration)


def _predicate(plugin: type[NodeAffinity | NodePorts | TaintToleration]) -> Rejection:
    return Rejection(plugin.name, f"Predicate {plugin.name} failed: {plugin.refusal.reasons[0]}")


def rejected_status(pod: Object, found: Rejection, now: str) -> dict[str, Any]:
    """Returns the fields to set in the status of a rejected pod."""
    return {
        "observedGeneration": pod["metadata"].get("generation", 0),
        "phase": "Failed",
        "reason": found.reason,
        "message": f"Pod was rejected: {found.message}",
        "startTime": now,
    }

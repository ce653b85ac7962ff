"""In-place resize of pods: checks whether the node has enough resources, and builds conditions and messages.

A resize that fits is applied at once. Others are deferred until pods have left the node.

Invariant: a resize never makes the allocated resources of the pods on a node exceed its allocatable ones.

Specified by: pkg/kubelet/allocation/allocation_manager.go (handlePodResourcesResize), pkg/kubelet/lifecycle/predicate.go,
pkg/kubelet/events/resize.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.core.pods.resource_requests import pod_requests
from fakekube.nodes.pod_status import resources_of

__all__ = ["PENDING", "is_resized", "pending_condition", "resize_message", "why_deferred", "with_allocated"]

Object = Mapping[str, Any]

PENDING: Final = "PodResizePending"
_RESOURCES: Final = ("cpu", "memory")
_STATUSES: Final = {"containers": "containerStatuses", "initContainers": "initContainerStatuses"}


def is_resized(pod: Object) -> bool:
    """Whether the spec of a running pod requests other resources than are allocated."""
    status = pod.get("status") or {}
    for kind, statuses in _STATUSES.items():
        requested = {one["name"]: resources_of(one) for one in pod["spec"].get(kind) or ()}
        for one in status.get(statuses) or ():
            allocated = {name: one[name] for name in ("allocatedResources", "resources") if one.get(name)}
            running = "running" in (one.get("state") or {})
            if running and one["name"] in requested and allocated != requested[one["name"]]:
                return True
    return False


def with_allocated(pod: Object) -> Object:
    """Returns the pod with its allocated resources instead of the requested ones."""
    statuses = {
        one["name"]: one
        for field in _STATUSES.values()
        for one in (pod.get("status") or {}).get(field) or ()
        if "resources" in one
    }

    def changed(container: Object) -> Object:
        known = statuses.get(container["name"])
        return container if known is None else {**container, "resources": known["resources"]}

    spec = {kind: [changed(one) for one in pod["spec"][kind]] for kind in _STATUSES if pod["spec"].get(kind)}
    return {**pod, "spec": {**pod["spec"], **spec}}


def why_deferred(pod: Object, node: Object, others: Iterable[Object]) -> str:
    """Returns why a node has not enough resources for a resized pod; "" if it has.

    Args:
        pod: The resized pod.
        node: The node of the pod.
        others: The other pods on the node that have not terminated.
    """
    wanted = pod_requests(dict(pod))
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    used = [pod_requests(dict(with_allocated(one))) for one in others]
    for resource in _RESOURCES:
        if resource not in wanted or resource not in allocatable:
            continue
        requested, taken, capacity = (
            sum(one.milli_value() if resource == "cpu" else one.value() for one in amounts)
            for amounts in (
                [wanted[resource]],
                [one[resource] for one in used if resource in one],
                [parse(str(allocatable[resource]))],
            )
        )
        if requested > capacity - taken:
            return f"Node didn't have enough resource: {resource}, requested: {requested}, used: {taken}, capacity: {capacity}"
    return ""


def pending_condition(pod: Object, message: str, now: str) -> dict[str, Any]:
    """Returns the condition of a deferred resize."""
    return {
        "type": PENDING,
        "status": "True",
        "observedGeneration": pod["metadata"].get("generation", 0),
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": "Deferred",
        "message": message,
    }


def resize_message(pod: Object, prefix: str, error: str = "") -> str:
    """Returns the message of an event about a resize."""
    summary: dict[str, Any] = {}
    for kind in ("initContainers", "containers"):
        found = [{"name": one["name"], "resources": one.get("resources") or {}} for one in pod["spec"].get(kind) or ()]
        if found:
            summary[kind] = found
    summary["generation"] = pod["metadata"].get("generation", 0)
    if error:
        summary["error"] = error
    return f"{prefix}: {json.dumps(summary).decode()}"

"""The resources of a pod as a whole, as its kubelet computes them: those of its cgroup and in its status, and OOM scores.

Specified by: pkg/kubelet/cm/helpers_linux.go (ResourceConfigForPod), pkg/kubelet/kubelet_pods.go
(convertToAPIPodLevelResourcesStatus), pkg/kubelet/util/util.go (GetLimits), pkg/kubelet/qos/policy.go
(GetContainerOOMScoreAdjust), pkg/kubelet/types/pod_update.go (IsNodeCriticalPod).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.core.pods.resize import RESIZABLE
from fakekube.apis.core.pods.resources import Amounts, container_sums, pod_limits, pod_requests
from fakekube.apis.core.pods.visitor import is_sidecar
from fakekube.base.objects import StoredObject

#: The feature with which the status of a pod has its resources as a whole, and they can be resized.
POD_LEVEL_RESIZE: Final = "InPlacePodLevelResourcesVerticalScaling"

Resources = dict[str, dict[str, str]]
"""requests and limits: the name of a resource → its amount."""


def _containers_of(spec: StoredObject) -> Iterable[StoredObject]:
    """Returns the containers and init containers of a pod's spec."""
    return chain(spec.get("initContainers") or (), spec["containers"])


def actuated_resources(pod: StoredObject) -> StoredObject | None:
    """Returns the resources of a pod as a whole that are actuated: those in its status, if there are some."""
    whole: StoredObject | None = pod["spec"].get("resources")
    return ((pod.get("status") or {}).get("resources") or whole) if whole else None


def effective_limits(of_pod: StoredObject | None, own: StoredObject | None) -> dict[str, Any]:
    """Returns the limits that a container has: those in its own resources, and else those in the resources of its pod."""
    return {**((of_pod or {}).get("limits") or {}), **((own or {}).get("limits") or {})}


def cgroup_resources(spec: StoredObject) -> Resources:
    """Returns the resources of the cgroup of a pod; a limit is that of the pod, or the sum if each container has one."""
    own = (spec.get("resources") or {}).get("limits") or {}
    each = [(one.get("resources") or {}).get("limits") or {} for one in _containers_of(spec)]
    limits = pod_limits({"spec": spec})
    return {
        "requests": _print(pod_requests({"spec": spec})),
        "limits": _print({name: limits[name] for name in limits if name in own or all(name in one for one in each)}),
    }


def _print(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def resources_in_status(spec: StoredObject, phase: str) -> dict[str, Any]:
    """Returns the fields `resources` and `allocatedResources` of the status of a pod that has resources as a whole.

    Kubelets write the sums of the containers into the status of other pods; here these keep the status that kwok gives them.

    Args:
        spec: the spec of the pod, with the resources that are allocated.
        phase: its phase. While it runs, the resources are those of its cgroup, otherwise the sums of its containers.
    """
    whole = spec.get("resources")
    if not whole:
        return {}
    of_cgroup = cgroup_resources(spec)
    requests = of_cgroup["requests"]
    if phase == "Running":
        found = {
            side: {**(whole.get(side) or {}), **{name: amounts[name] for name in RESIZABLE if name in amounts}}
            for side, amounts in of_cgroup.items()
        }
    else:
        found = {"requests": requests, "limits": _print(pod_limits({"spec": spec}))}
    fields: dict[str, Any] = {"resources": {side: amounts for side, amounts in found.items() if amounts}}
    return fields | ({"allocatedResources": requests} if requests else {})


#: The score adjustments of processes of Guaranteed and of BestEffort pods; those of Burstable ones are between them.
_GUARANTEED: Final = -997
_BEST_EFFORT: Final = 1000
_NODE_CRITICAL: Final = "system-node-critical"


def oom_score_adjustment(pod: StoredObject, container: StoredObject, capacity: int) -> int:
    """Returns the number in /proc/1/oom_score_adj of a container.

    Args:
        pod: the pod.
        container: the container's item in the spec of the pod.
        capacity: the bytes of memory of the node.
    """
    spec, quality = pod["spec"], (pod.get("status") or {}).get("qosClass")
    if spec.get("priorityClassName") == _NODE_CRITICAL or quality == "Guaranteed":
        return _GUARANTEED
    if quality == "BestEffort":
        return _BEST_EFFORT
    requested = _memory_request(container)
    if any(is_sidecar(one) and one["name"] == container["name"] for one in spec.get("initContainers") or ()):
        requested = max(requested, min(map(_memory_request, spec["containers"])))
    found = 1000 - 1000 * (requested + _unassigned_memory(spec)) // capacity
    return min(max(found, 1000 + _GUARANTEED), _BEST_EFFORT - 1)


def _memory_request(container: Mapping[str, Any]) -> int:
    return parse(str(((container.get("resources") or {}).get("requests") or {}).get("memory", 0))).value()


def _unassigned_memory(spec: StoredObject) -> int:
    """Returns the share of each container in the memory that the pod as a whole requests beyond its containers."""
    whole = (spec.get("resources") or {}).get("requests") or {}
    if "memory" not in whole:
        return 0
    assigned = container_sums(spec, "requests").get("memory")
    left = parse(str(whole["memory"])).value() - (assigned.value() if assigned is not None else 0)
    return max(left, 0) // sum(1 for _ in _containers_of(spec))

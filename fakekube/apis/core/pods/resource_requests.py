"""The total requests and limits of a pod.

Specified by: plugin/pkg/admission/limitranger/admission.go (podRequests, podLimits) and
k8s.io/component-helpers/resource/helpers.go (PodRequests, PodLimits).
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.core.pods.pod_resources import container_sums
from fakekube.apis.core.pods.visitor import is_sidecar
from fakekube.apis.rest.strategy import Object
from fakekube.apis.validation.resource_lists import quantity

__all__ = ["Amounts", "amounts", "pod_limits", "pod_requests", "with_allocated_resources"]

Amounts = dict[str, Quantity]

POD_LEVEL = ("cpu", "memory")
_NONE = quantity("0")


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    """Parses the quantities of a resource list."""
    return {name: quantity(amount) for name, amount in (resources or {}).items()}


def pod_requests(pod: Object, *, overhead: bool = False) -> Amounts:
    """Returns the requests of the whole pod; with `overhead`, that of the runtime class is added."""
    sums = _total(pod, "requests", overhead=overhead)
    return _add(sums, amounts(pod["spec"].get("overhead"))) if overhead else sums


def pod_limits(pod: Object, *, overhead: bool = False) -> Amounts:
    """Returns the limits of the whole pod; with `overhead`, that of the runtime class is added to existing limits."""
    sums = _total(pod, "limits", overhead=overhead)
    if overhead:
        extra = amounts(pod["spec"].get("overhead"))
        sums = _add(sums, {name: amount for name, amount in extra.items() if sums.get(name, _NONE).sign})
    return sums


def with_allocated_resources(pod: Object) -> Object:
    """Returns a copy of the pod, for usage only, whose requests include the allocated resources of a resize in
    progress.
    """
    status = pod.get("status") or {}
    statuses = {
        item["name"]: item
        for field in ("containerStatuses", "initContainerStatuses")
        for item in status.get(field) or ()
        if "resources" in item
    }
    if not statuses:
        return pod
    refused = any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )
    spec = dict(pod["spec"])
    for field in ("containers", "initContainers"):
        spec[field] = [
            _with_allocated(container, statuses[container["name"]], refused)
            if container["name"] in statuses and (field == "containers" or is_sidecar(container))
            else container
            for container in spec.get(field) or ()
        ]
    return {**pod, "spec": spec}


def _with_allocated(container: Object, status: Object, refused: bool) -> Object:
    """Returns the maximum of desired (unless the resize is infeasible), actual and allocated resources."""
    resources = {side: _most({} if refused else _of(container, side), _of(status, side)) for side in ("requests", "limits")}
    resources["requests"] = _most(resources["requests"], amounts(status.get("allocatedResources")))
    return {**container, "resources": {side: {k: str(v) for k, v in sums.items()} for side, sums in resources.items()}}


def _total(pod: Object, side: str, *, overhead: bool) -> Amounts:
    whole = _of(pod["spec"], side)
    return {
        **container_sums(pod["spec"], side),
        **{name: amount for name, amount in whole.items() if _is_pod_level(name, overhead)},
    }


def _is_pod_level(name: str, huge_pages: bool) -> bool:
    return name in POD_LEVEL or (huge_pages and name.startswith("hugepages-"))


def _of(container: Object, side: str) -> Amounts:
    return amounts((container.get("resources") or {}).get(side))


def _add(left: Amounts, right: Amounts) -> Amounts:
    return {**left, **{name: left[name] + amount if name in left else amount for name, amount in right.items()}}


def _most(left: Amounts, right: Amounts) -> Amounts:
    return {**left, **{n: amount for n, amount in right.items() if n not in left or amount > left[n]}}

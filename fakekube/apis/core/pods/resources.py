"""The resources of a pod: those of the pod level beside those of its containers, its total requests and limits, its QoS class.

Specified by: plugin/pkg/admission/limitranger/admission.go (podRequests, podLimits) and
k8s.io/component-helpers/resource/helpers.go (PodRequests, PodLimits); pkg/apis/core/helper/qos.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid
from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.core.pods.containers import PodContext
from fakekube.apis.core.pods.visitor import is_sidecar
from fakekube.apis.validation.resource_lists import COMPUTE, is_huge_page, is_pod_level, pod_resource_name, quantity, requirements
from fakekube.base.objects import Object, StoredObject

Amounts = dict[str, Quantity]
"""Quantities by the name of their resource."""
_NONE = quantity("0")


def container_sums(spec: Mapping[str, Any], side: str) -> Amounts:
    """Returns the total of the containers: the sum of all regular containers, or the maximum of the init containers (each with
    the sidecars started before it), whichever is larger (AggregateContainerRequests, AggregateContainerLimits).

    Args:
        spec: the spec of the pod.
        side: "requests" or "limits".
    """
    sums: Amounts = {}
    for container in spec.get("containers") or ():
        _add(sums, _amounts_of(container, side))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts_of(container, side)
        if is_sidecar(container):
            _add(sums, amounts)
            _add(sidecars, amounts)
            needed = sidecars
        else:
            needed = {}
            _add(needed, amounts)
            _add(needed, sidecars)
        _take_larger(largest, needed)
    _take_larger(sums, largest)
    return sums


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    """Parses the quantities of a resource list."""
    return {name: quantity(amount) for name, amount in (resources or {}).items()}


def _amounts_of(container: Mapping[str, Any], side: str) -> Amounts:
    """Returns the requests or limits (`side`) of a container, or those at the level of the pod if given a spec."""
    return amounts((container.get("resources") or {}).get(side))


def _add(sums: Amounts, amounts: Amounts) -> None:
    """Adds the amounts to the sums."""
    for name, amount in amounts.items():
        sums[name] = sums[name] + amount if name in sums else amount


def _take_larger(sums: Amounts, amounts: Amounts) -> None:
    """Replaces sums by the amounts that are larger."""
    for name, amount in amounts.items():
        if name not in sums or amount > sums[name]:
            sums[name] = amount


def validate_pod_resources(spec: Mapping[str, Any], path: str, pod: PodContext) -> list[FieldError]:
    """Validates the resources at pod level (validatePodResources); `path` is their path."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if "claims" in resources:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += requirements(resources, path, pod_resource_name, pod.claims, pod.options.huge_pages)
    return errors + _validate_container_totals(spec, resources, path)


def _validate_container_totals(spec: Mapping[str, Any], resources: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates that pod-level resources are not less than the total of the containers (validatePodResourceConsistency)."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    errors: list[FieldError] = []
    for name, amount in container_sums(spec, "requests").items():
        if name in requests and amount > quantity(requests[name]):
            text = f"must be greater than or equal to aggregate container requests of {amount}"
            errors.append(invalid(f"{path}.requests[{name}]", requests[name], text))
    for name, amount in container_sums(spec, "limits").items():
        if is_huge_page(name) and name in limits and amount > quantity(limits[name]):
            text = f"must be greater than or equal to aggregate container limits of {amount}"
            errors.append(invalid(f"{path}.limits[{name}]", limits[name], text))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and quantity(limit) > quantity(limits[name]):
                text = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(f"{path}.containers[{index}][{name}].limits", limit, text))
    return errors


Sums = Callable[[Object, str], Amounts]
"""(pod, "requests" or "limits") → the total of its containers."""


def sums_of_spec(pod: Object, side: str) -> Amounts:
    """Returns the total that the spec of a pod has."""
    return container_sums(pod["spec"], side)


def pod_requests(pod: Object, *, overhead: bool = False, sums: Sums = sums_of_spec) -> Amounts:
    """Returns the requests of the whole pod; with `overhead`, that of the runtime class is added."""
    total = _total(pod, "requests", sums, overhead=overhead)
    if overhead:
        _add(total, amounts(pod["spec"].get("overhead")))
    return total


def pod_limits(pod: Object, *, overhead: bool = False, sums: Sums = sums_of_spec) -> Amounts:
    """Returns the limits of the whole pod; with `overhead`, that of the runtime class is added to existing limits."""
    total = _total(pod, "limits", sums, overhead=overhead)
    if overhead:
        extra = amounts(pod["spec"].get("overhead"))
        _add(total, {name: amount for name, amount in extra.items() if total.get(name, _NONE).sign})
    return total


#: Fields of the spec with containers that can be resized → their statuses.
STATUSES: Final = {"containers": "containerStatuses", "initContainers": "initContainerStatuses"}


def with_status_resources(pod: StoredObject) -> StoredObject:
    """Returns the pod with the resources of its containers in its status, instead of the requested ones."""
    statuses = _statuses_with_resources(pod)

    def with_resources(container: StoredObject) -> StoredObject:
        known = statuses.get(container["name"])
        return container if known is None else {**container, "resources": known["resources"]}

    spec = {kind: [with_resources(one) for one in pod["spec"][kind]] for kind in STATUSES if pod["spec"].get(kind)}
    return {**pod, "spec": {**pod["spec"], **spec}}


def with_allocated_resources(pod: Object) -> Object:
    """Returns a copy of the pod, for usage only, whose requests include the allocated resources of a resize in progress, as
    minors before 1.37 count them: container by container.
    """
    statuses = _statuses_with_resources(pod)
    if not statuses:
        return pod
    refused = _is_infeasible(pod)
    spec = dict(pod["spec"])
    for field in STATUSES:
        spec[field] = [
            _with_allocated(container, statuses[container["name"]], refused)
            if container["name"] in statuses and (field == "containers" or is_sidecar(container))
            else container
            for container in spec.get(field) or ()
        ]
    return {**pod, "spec": spec}


def _is_infeasible(pod: Object) -> bool:
    """Reports whether the node has refused a resize of the pod for good (IsPodResizeInfeasible)."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible" for one in conditions)


def sums_of_resize(pod: Object, side: str) -> Amounts:
    """Returns the largest total, while a resize is in progress: of what the spec has (unless the resize is infeasible), what is
    allocated to the containers, and what is in effect.
    """
    statuses = _statuses(pod)
    if not statuses:
        return sums_of_spec(pod, side)
    refused = _is_infeasible(pod)
    total = {} if refused else sums_of_spec(pod, side)
    for in_effect in (True, False) if side == "requests" else (True,):
        view: Object = {kind: [] for kind in STATUSES}
        for kind in STATUSES:
            for container in pod["spec"].get(kind) or ():
                amount = _amount_in_status(statuses.get(container["name"], {}), side, in_effect=in_effect)
                if amount is None and not refused:
                    amount = (container.get("resources") or {}).get(side)
                view[kind].append({**container, "resources": {side: amount}})
        _take_larger(total, container_sums(view, side))
    return total


def _amount_in_status(status: StoredObject, side: str, *, in_effect: bool) -> Mapping[str, str] | None:
    """Returns what is in effect, or what is allocated to a container, if its status says so."""
    found: Mapping[str, str] | None = (status.get("resources") or {}).get(side) if in_effect else None
    return status.get("allocatedResources") if found is None and side == "requests" else found


def _statuses(pod: StoredObject) -> Mapping[str, StoredObject]:
    """Returns the statuses of containers, by the name of the container."""
    status = pod.get("status") or {}
    return {one["name"]: one for field in STATUSES.values() for one in status.get(field) or ()}


def _statuses_with_resources(pod: StoredObject) -> Mapping[str, StoredObject]:
    """Returns the statuses that have resources."""
    return {name: one for name, one in _statuses(pod).items() if "resources" in one}


def _with_allocated(container: Object, status: StoredObject, refused: bool) -> Object:
    """Returns the maximum of desired (unless the resize is infeasible), actual and allocated resources."""
    resources = {side: {} if refused else _amounts_of(container, side) for side in ("requests", "limits")}
    for side, sums in resources.items():
        _take_larger(sums, _amounts_of(status, side))
    _take_larger(resources["requests"], amounts(status.get("allocatedResources")))
    return {**container, "resources": {side: {k: str(v) for k, v in sums.items()} for side, sums in resources.items()}}


def _total(pod: Object, side: str, sums: Sums, *, overhead: bool) -> Amounts:
    whole = _amounts_of(pod["spec"], side)
    return {
        **sums(pod, side),
        **{name: amount for name, amount in whole.items() if name in COMPUTE or (overhead and is_huge_page(name))},
    }


def qos_class(spec: Mapping[str, Any]) -> str:
    """Returns BestEffort, Burstable or Guaranteed (ComputePodQOS)."""
    emulation = features.CURRENT.get()
    of_pod = spec.get("resources") if emulation.enabled("PodLevelResources") else None
    if (
        of_pod is not None
        and emulation.enabled("PodLevelResourcesFixKubeletQOSClass")
        and not any(is_pod_level(name) for side in ("requests", "limits") for name in of_pod.get(side) or ())
    ):
        of_pod = None
    parts: Sequence[Mapping[str, Any]]
    if of_pod is not None:
        parts = [of_pod]
        limited = not of_pod.get("limits") or _is_limited(of_pod)
    else:
        fields = ("containers", "initContainers")
        parts = [item.get("resources") or {} for field in fields for item in spec.get(field) or ()]
        limited = all(map(_is_limited, parts))
    requests, limits = _sums(parts, "requests"), _sums(parts, "limits")
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if limited and requests == limits else "Burstable"


def _positive_amounts(part: Mapping[str, Any], side: str) -> Amounts:
    amounts = part.get(side) or {}
    return {name: found for name in amounts if name in COMPUTE and (found := quantity(amounts[name])).sign > 0}


def _is_limited(part: Mapping[str, Any]) -> bool:
    return len(_positive_amounts(part, "limits")) == len(COMPUTE)


def _sums(parts: Sequence[Mapping[str, Any]], side: str) -> Amounts:
    sums: Amounts = {}
    for part in parts:
        _add(sums, _positive_amounts(part, side))
    return sums

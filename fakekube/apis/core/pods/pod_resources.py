"""Validation of pod-level resources against those of the containers, and the sums over containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid
from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.core.pods.containers import PodContext
from fakekube.apis.core.pods.visitor import is_sidecar
from fakekube.apis.validation.resource_lists import is_huge_page, pod_resource_name, quantity, requirements

Sums = dict[str, Quantity]


def container_sums(spec: Mapping[str, Any], side: str) -> Sums:
    """Returns the total of the containers (`side`: "requests" or "limits"): the sum of all regular containers, or the
    maximum of the init containers (each with the sidecars started before it), whichever is larger.

    Specified by: k8s.io/component-helpers/resource (AggregateContainerRequests, AggregateContainerLimits).
    """
    sums: Sums = {}
    for container in spec.get("containers") or ():
        _add(sums, _amounts(container, side))
    sidecars: Sums = {}
    largest: Sums = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, side)
        if is_sidecar(container):
            _add(sums, amounts)
            _add(sidecars, amounts)
            needed = sidecars
        else:
            needed = {}
            _add(needed, amounts)
            _add(needed, sidecars)
        _raise(largest, needed)
    _raise(sums, largest)
    return sums


def _amounts(container: Mapping[str, Any], side: str) -> Sums:
    amounts = (container.get("resources") or {}).get(side) or {}
    return {name: quantity(amount) for name, amount in amounts.items()}


def _add(sums: Sums, amounts: Sums) -> None:
    for name, amount in amounts.items():
        sums[name] = sums[name] + amount if name in sums else amount


def _raise(sums: Sums, amounts: Sums) -> None:
    for name, amount in amounts.items():
        if name not in sums or amount > sums[name]:
            sums[name] = amount


def pod_resources(spec: Mapping[str, Any], path: str, pod: PodContext) -> list[FieldError]:
    """Validates the resources at pod level (validatePodResources); `path` is their path."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if "claims" in resources:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += requirements(resources, path, pod_resource_name, pod.claims, pod.options.huge_pages)
    return errors + _consistent(spec, resources, path)


def _consistent(spec: Mapping[str, Any], resources: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates that pod-level resources are not less than the total of the containers
    (validatePodResourceConsistency).
    """
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

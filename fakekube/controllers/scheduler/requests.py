"""Resource requests of pods and allocatable resources of nodes, as whole numbers.

CPU is in thousandths, everything else in whole units, rounded up.

Invariant: returned values are shared between pods with the same resources, and never changed.

Specified by: pkg/scheduler/framework/types.go (Resource, calculateResource), pkg/scheduler/util/pod_resources.go,
k8s.io/component-helpers/resource/helpers.go (PodRequests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from fakekube.apis.core.pods.resource_requests import pod_requests
from fakekube.apis.validation.resource_lists import quantity

__all__ = ["Amounts", "allocatable", "effective_requests", "non_zero_requests"]

Amounts = dict[str, int]

#: Requests that score plugins assume for a container without requests (DefaultMilliCPURequest, DefaultMemoryRequest).
DEFAULT_REQUESTS: Final = {"cpu": "100m", "memory": "209715200"}

_Resources = tuple[tuple[bool, str, str], ...]


@lru_cache(maxsize=4096)
def _amount(name: str, text: str) -> int:
    return quantity(text).milli_value() if name == "cpu" else quantity(text).value()


def allocatable(node: Mapping[str, Any]) -> Amounts:
    """Returns the allocatable resources of a node."""
    status = node.get("status") or {}
    return {name: _amount(name, text) for name, text in (status.get("allocatable") or {}).items()}


def effective_requests(pod: Mapping[str, Any]) -> Amounts:
    """Returns the requests of a pod: the sum of its containers or its largest init container, plus overhead."""
    return _requests(pod, False)


def non_zero_requests(pod: Mapping[str, Any]) -> Amounts:
    """Returns the requests of a pod, with defaults for containers that request no CPU or memory."""
    return _requests(pod, True)


def _requests(pod: Mapping[str, Any], defaulted: bool) -> Amounts:
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
        found = _cached[key] = _calculate({**spec, **_with_default_requests(spec)} if defaulted else spec)
    return found


_cached: dict[str, Amounts] = {}


def _calculate(spec: Mapping[str, Any]) -> Amounts:
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

"""What pods ask of a node, in the whole numbers in which the scheduler reckons.

CPU counts in thousandths, everything else in whole units, rounded up.

Invariant: what is returned is shared between pods of the same resources, and never changed.

Specified by: pkg/scheduler/framework/types.go (Resource, calculateResource), pkg/scheduler/util/pod_resources.go,
k8s.io/component-helpers/resource/helpers.go (PodRequests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from fakekube.apis.core.pods.resource_requests import pod_requests
from fakekube.validation.resource_lists import quantity

__all__ = ["Amounts", "allocatable", "effective_requests", "non_zero_requests"]

Amounts = dict[str, int]

#: What the scheduler's scores take for a container that asks for nothing: a tenth of a CPU, 200 MiB.
DEFAULT_REQUESTS: Final = {"cpu": "100m", "memory": "209715200"}

_Resources = tuple[tuple[bool, str, str], ...]


@lru_cache(maxsize=4096)
def _amount(name: str, text: str) -> int:
    return quantity(text).milli_value() if name == "cpu" else quantity(text).value()


def allocatable(node: Mapping[str, Any]) -> Amounts:
    """What a node has for pods."""
    status = node.get("status") or {}
    return {name: _amount(name, text) for name, text in (status.get("allocatable") or {}).items()}


def effective_requests(pod: Mapping[str, Any]) -> Amounts:
    """What a pod asks for: its containers together or its largest init container, and the overhead."""
    return _requests(pod, False)


def non_zero_requests(pod: Mapping[str, Any]) -> Amounts:
    """The same, where a container that asks for no CPU or memory counts with a default."""
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
    found = _known.get(key)
    if found is None:
        if len(_known) > 4096:
            _known.clear()
        found = _known[key] = _reckoned({**spec, **_with_defaults(spec)} if defaulted else spec)
    return found


_known: dict[str, Amounts] = {}


def _reckoned(spec: Mapping[str, Any]) -> Amounts:
    amounts = pod_requests({"spec": dict(spec)}, overhead=True)
    return {name: amount.milli_value() if name == "cpu" else amount.value() for name, amount in amounts.items()}


def _with_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {field: _defaulted(spec.get(field) or ()) for field in ("containers", "initContainers")}


def _defaulted(containers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    made = []
    for container in containers:
        resources = container.get("resources") or {}
        requests = {**DEFAULT_REQUESTS, **(resources.get("requests") or {})}
        made.append({**container, "resources": {**resources, "requests": requests}})
    return made

"""The quality of service class of a pod.

Specified by: pkg/apis/core/helper/qos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.validation.resource_lists import COMPUTE, quantity


def qos_class(spec: Mapping[str, Any]) -> str:
    """Returns BestEffort, Burstable or Guaranteed (ComputePodQOS)."""
    of_pod = spec.get("resources")
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


def _positive(part: Mapping[str, Any], side: str) -> dict[str, Quantity]:
    amounts = part.get(side) or {}
    return {name: found for name in amounts if name in COMPUTE and (found := quantity(amounts[name])).sign > 0}


def _is_limited(part: Mapping[str, Any]) -> bool:
    return len(_positive(part, "limits")) == len(COMPUTE)


def _sums(parts: Sequence[Mapping[str, Any]], side: str) -> dict[str, Quantity]:
    sums: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in _positive(part, side).items():
            sums[name] = sums[name] + amount if name in sums else amount
    return sums

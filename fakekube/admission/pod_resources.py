"""What a Pod asks for as a whole.

Init containers run one after the other before the containers: the pod needs the most that is needed at a
time. Restartable ones (sidecars) go on running beside everything that starts after them.

Specified by: plugin/pkg/admission/limitranger/admission.go (podRequests, podLimits) and
k8s.io/component-helpers/resource/helpers.go (PodRequests, PodLimits).
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.resources.resource_lists import quantity
from fakekube.resources.strategy import Object
from fakekube.schema.quantity import Quantity

__all__ = ["Amounts", "pod_limits", "pod_requests"]

Amounts = dict[str, Quantity]

POD_LEVEL = ("cpu", "memory")


def pod_requests(pod: Object, *, overhead: bool = False) -> Amounts:
    """The requests of all containers together; `overhead` adds that of the runtime class."""
    amounts = _together(pod, "requests", overhead=overhead)
    return _add(amounts, _amounts(pod["spec"].get("overhead"))) if overhead else amounts


def pod_limits(pod: Object, *, overhead: bool = False) -> Amounts:
    """The limits of all containers together; `overhead` adds that of the runtime class to what is limited."""
    amounts = _together(pod, "limits", overhead=overhead)
    if overhead:
        extra = _amounts(pod["spec"].get("overhead"))
        amounts = _add(
            amounts, {name: amount for name, amount in extra.items() if amounts.get(name, _NONE).sign}
        )
    return amounts


_NONE = quantity("0")


def _together(pod: Object, side: str, *, overhead: bool) -> Amounts:
    spec = pod["spec"]
    running: Amounts = {}
    for container in spec.get("containers") or ():
        running = _add(running, _of(container, side))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = _of(container, side)
        if container.get("restartPolicy") == "Always":
            running, sidecars = _add(running, asked), _add(sidecars, asked)
            at_a_time = sidecars
        else:
            at_a_time = _add(asked, sidecars)
        peak = _most(peak, at_a_time)
    amounts = _most(running, peak)
    whole = _amounts((spec.get("resources") or {}).get(side))
    return {**amounts, **{name: amount for name, amount in whole.items() if _is_pod_level(name, overhead)}}


def _is_pod_level(name: str, huge_pages: bool) -> bool:
    return name in POD_LEVEL or (huge_pages and name.startswith("hugepages-"))


def _of(container: Object, side: str) -> Amounts:
    return _amounts((container.get("resources") or {}).get(side))


def _amounts(resources: Mapping[str, str] | None) -> Amounts:
    return {name: quantity(amount) for name, amount in (resources or {}).items()}


def _add(left: Amounts, right: Amounts) -> Amounts:
    return {
        **left,
        **{name: left[name] + amount if name in left else amount for name, amount in right.items()},
    }


def _most(left: Amounts, right: Amounts) -> Amounts:
    more = {name: amount for name, amount in right.items() if name not in left or amount > left[name]}
    return {**left, **more}

"""The resource usage of containers: from rules of tests, annotations, or defaults.

`cluster.pods.on(…).uses(cpu=…, memory=…)` takes precedence over kwok's annotations `kwok.x-k8s.io/usage-cpu` and
`kwok.x-k8s.io/usage-memory` of the pod, which apply to each of its containers.

Specified by: kwok's preset usage-from-annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.schema.quantity import parse

if TYPE_CHECKING:
    from fakekube.nodes.runtime.runtime import Runtime

__all__ = ["Used", "container_usage", "has_usage", "running_containers"]

Object = Mapping[str, Any]
Used = dict[str, int]
"""cpu in millicores, memory in bytes."""

_ANNOTATIONS: Final = {"cpu": "kwok.x-k8s.io/usage-cpu", "memory": "kwok.x-k8s.io/usage-memory"}
_DEFAULTS: Final = {"cpu": "1m", "memory": "1Mi"}


def container_usage(runtime: Runtime, pod: Object, container: Object) -> Used:
    """Returns the current usage of a container."""
    rule = runtime.behaviour_of(pod, container).usage
    annotations = pod["metadata"].get("annotations") or {}
    made: Used = {}
    for resource, annotation in _ANNOTATIONS.items():
        value = None if rule is None else getattr(rule, resource)
        value = value(pod) if callable(value) else value
        made[resource] = _amount(resource, annotations.get(annotation) if value is None else value)
    return made


def has_usage(runtime: Runtime, pod: Object) -> bool:
    """Reports whether a rule or an annotation sets the usage of a pod."""
    annotations = pod["metadata"].get("annotations") or {}
    if not annotations.keys().isdisjoint(_ANNOTATIONS.values()):
        return True
    return any(runtime.behaviour_of(pod, container).usage is not None for container in running_containers(pod))


def _amount(resource: str, value: Any) -> int:
    try:
        quantity = parse(str(_DEFAULTS[resource] if value is None else value))
    except ValueError:
        quantity = parse(_DEFAULTS[resource])
    return max(quantity.milli_value() if resource == "cpu" else quantity.value(), 0)


def running_containers(pod: Object) -> Iterable[Object]:
    """Yields the running containers of a pod: items of its spec."""
    status = pod.get("status") or {}
    running = {
        one["name"]
        for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for one in status.get(kind) or ()
        if (one.get("state") or {}).get("running")
    }
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        yield from (one for one in pod["spec"].get(kind) or () if one["name"] in running)

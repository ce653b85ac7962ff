"""Decides which pods are endpoints of a Service, with which ports, and since when.

Specified by: k8s.io/endpointslice/{utils.go,util/controller_utils.go,util/endpointslice_tracker.go,util/trigger_time_tracker.go}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apis.validation.conditions import find_condition
from fakekube.controllers.controller_utils import is_pod_ready
from fakekube.controllers.objects import StoredObject

__all__ = [
    "LAST_CHANGE",
    "TriggerTimeTracker",
    "endpoint_fields",
    "get_endpoint_ports",
    "is_headless",
    "selects",
    "should_pod_be_in_endpoints",
    "should_set_hostname",
]


LAST_CHANGE: Final = "endpoints.kubernetes.io/last-change-trigger-time"
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})


def selects(service: StoredObject, labels: Mapping[str, str] | None) -> bool:
    """Whether the Service selects pods with these labels. A Service without a selector selects none."""
    selector = service["spec"].get("selector")
    if selector is None or service["spec"].get("type") == "ExternalName":
        return False
    return bool(selector.items() <= (labels or {}).items())


def should_pod_be_in_endpoints(pod: StoredObject, *, include_terminating: bool) -> bool:
    """Whether the pod has an address and has not terminated (ShouldPodBeInEndpoints)."""
    status = pod.get("status") or {}
    if status.get("phase") in _TERMINAL or not (status.get("podIP") or status.get("podIPs")):
        return False
    return include_terminating or "deletionTimestamp" not in pod["metadata"]


def should_set_hostname(pod: StoredObject, service: StoredObject) -> bool:
    """Whether the endpoint has the pod's hostname (ShouldSetHostname)."""
    return bool(pod["spec"].get("hostname")) and pod["spec"].get("subdomain") == service["metadata"]["name"]


def is_headless(service: StoredObject) -> bool:
    """Whether the Service has no cluster IP."""
    return service["spec"].get("clusterIP") in (None, "", "None") and service["spec"].get("type") != "ExternalName"


def get_endpoint_ports(service: StoredObject, pod: StoredObject) -> list[dict[str, Any]]:
    """Returns the Service's ports with the numbers on the pod, without ports that the pod does not have (getEndpointPorts)."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = _find_port(port, pod)
        if number is not None:
            endpoint_port = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            if "appProtocol" in port:
                endpoint_port["appProtocol"] = port["appProtocol"]
            found.append(endpoint_port)
    return found


def _find_port(port: StoredObject, pod: StoredObject) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target or int(port["port"])
    sidecars = [one for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*pod["spec"]["containers"], *sidecars):
        for one in container.get("ports") or ():
            if one.get("name") == target and one.get("protocol", "TCP") == port.get("protocol", "TCP"):
                return int(one["containerPort"])
    return None


def endpoint_fields(pod: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the fields of a pod, beside its labels, that endpoints depend on (podEndpointsChanged)."""
    status, spec = pod.get("status") or {}, pod["spec"]
    return (
        status.get("podIPs"),
        status.get("phase") in _TERMINAL,
        is_pod_ready(pod),
        "deletionTimestamp" in pod["metadata"],
        spec.get("nodeName"),
        spec.get("hostname"),
        spec.get("subdomain"),
    )


@dataclass(slots=True)
class TriggerTimeTracker:
    """Computes the time of the earliest change of a Service or its pods since the last sync.

    A pod changes when its condition Ready does, a Service when it is created.
    """

    _pods: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    _services: dict[tuple[str, str], str] = field(default_factory=dict)

    def compute(self, service: StoredObject, pods: Iterable[StoredObject]) -> str | None:
        """Returns the time for a Service and all of its pods; None if nothing has changed."""
        key = (service["metadata"]["namespace"], service["metadata"]["name"])
        before = self._pods.get(key, {})
        now = {pod["metadata"]["name"]: _ready_since(pod) for pod in pods}
        changed = [time for name, time in now.items() if time and time > before.get(name, "")]
        created = service["metadata"].get("creationTimestamp") or ""
        if created > self._services.get(key, ""):
            changed.append(created)
        self._pods[key], self._services[key] = now, created
        return min(changed, default=None)

    def delete_service(self, namespace: str, name: str) -> None:
        """Removes a deleted Service."""
        self._pods.pop((namespace, name), None)
        self._services.pop((namespace, name), None)


def _ready_since(pod: StoredObject) -> str:
    condition = find_condition(pod.get("status") or {}, "Ready") or {}
    return condition.get("lastTransitionTime") or ""

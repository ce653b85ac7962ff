"""Which pods are endpoints of which services, with which ports, and since when.

Specified by: k8s.io/endpointslice/{utils.go,util/controller_utils.go,util/endpointslice_tracker.go,util/trigger_time_tracker.go}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "LAST_CHANGE",
    "TriggerTimes",
    "endpoint_ports",
    "fingerprint",
    "has_hostname",
    "is_endpoint",
    "is_headless",
    "is_ready",
    "selects",
]

Object = Mapping[str, Any]

LAST_CHANGE: Final = "endpoints.kubernetes.io/last-change-trigger-time"
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})


def selects(service: Object, labels: Mapping[str, str] | None) -> bool:
    """Does the service select pods with these labels? One without a selector selects none."""
    selector = service["spec"].get("selector")
    if selector is None or service["spec"].get("type") == "ExternalName":
        return False
    return bool(selector.items() <= (labels or {}).items())


def is_ready(pod: Object) -> bool:
    """Is the condition Ready of the pod True?"""
    return any(
        one.get("type") == "Ready" and one.get("status") == "True" for one in (pod.get("status") or {}).get("conditions") or ()
    )


def is_endpoint(pod: Object, *, terminating: bool) -> bool:
    """Does the pod have an address that may be used? `terminating`: even if it is being deleted."""
    status = pod.get("status") or {}
    if status.get("phase") in _TERMINAL or not (status.get("podIP") or status.get("podIPs")):
        return False
    return terminating or "deletionTimestamp" not in pod["metadata"]


def has_hostname(pod: Object, service: Object) -> bool:
    """Is the pod known by its hostname in the service?"""
    return bool(pod["spec"].get("hostname")) and pod["spec"].get("subdomain") == service["metadata"]["name"]


def is_headless(service: Object) -> bool:
    """Has the service no cluster IP?"""
    return service["spec"].get("clusterIP") in (None, "", "None") and service["spec"].get("type") != "ExternalName"


def endpoint_ports(service: Object, pod: Object) -> list[dict[str, Any]]:
    """The ports of a service on a pod; those that the pod does not have are left out."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = _number(port, pod)
        if number is not None:
            made = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            if "appProtocol" in port:
                made["appProtocol"] = port["appProtocol"]
            found.append(made)
    return found


def _number(port: Object, pod: Object) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target or int(port["port"])
    sidecars = [one for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*pod["spec"]["containers"], *sidecars):
        for one in container.get("ports") or ():
            if one.get("name") == target and one.get("protocol", "TCP") == port.get("protocol", "TCP"):
                return int(one["containerPort"])
    return None


def fingerprint(pod: Object) -> tuple[Any, ...]:
    """What of a pod, beside its labels, matters for endpoints."""
    status, spec = pod.get("status") or {}, pod["spec"]
    return (
        status.get("podIPs"),
        status.get("phase") in _TERMINAL,
        is_ready(pod),
        "deletionTimestamp" in pod["metadata"],
        spec.get("nodeName"),
        spec.get("hostname"),
        spec.get("subdomain"),
    )


@dataclass(slots=True)
class TriggerTimes:
    """When what is behind a service changed: the earliest of the changes since the last look.

    Pods change when they become ready or not, a service when it is created.
    """

    _pods: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    _services: dict[tuple[str, str], str] = field(default_factory=dict)

    def observe(self, service: Object, pods: Iterable[Object]) -> str | None:
        """Look at a service and all of its pods."""
        key = (service["metadata"]["namespace"], service["metadata"]["name"])
        before = self._pods.get(key, {})
        now = {pod["metadata"]["name"]: _ready_since(pod) for pod in pods}
        changed = [time for name, time in now.items() if time and time > before.get(name, "")]
        created = service["metadata"].get("creationTimestamp") or ""
        if created > self._services.get(key, ""):
            changed.append(created)
        self._pods[key], self._services[key] = now, created
        return min(changed, default=None)

    def forget(self, namespace: str, name: str) -> None:
        """The service is gone."""
        self._pods.pop((namespace, name), None)
        self._services.pop((namespace, name), None)


def _ready_since(pod: Object) -> str:
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one.get("type") == "Ready":
            return one.get("lastTransitionTime") or ""
    return ""

"""What the controllers of endpoints share: the endpoints of a Service, and the canonical form of Endpoints.

`ServiceReconciler` is the base class of the controllers that write endpoints of Services: it finds the pods that are endpoints of
a Service, with their ports, and since when. `repack_subsets` puts addresses with the same ports into the same subset; the real
controller sorts ports and subsets by a hash of their Go structs, here they are sorted by their content.

Specified by: pkg/api/v1/endpoints/util.go (RepackSubsets, SortSubsets),
k8s.io/endpointslice/{utils.go,util/controller_utils.go,util/endpointslice_tracker.go,util/trigger_time_tracker.go}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import TERMINAL_POD_PHASES
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.controller_utils import is_pod_ready
from fakekube.controllers.reconciler import Key, Reconciler

_AddressKey = tuple[str, str]


def repack_subsets(subsets: Iterable[Mapping[str, Any]]) -> list[Object]:
    """Returns subsets in their canonical form. An address that is both ready and not ready for a port is not ready."""
    addresses: dict[_AddressKey, Object] = {}
    ready_by_port: dict[str, dict[_AddressKey, bool]] = {}
    for subset in subsets:
        for port in subset.get("ports") or (None,):
            ready = ready_by_port.setdefault(_canonical_text(port), {})
            for member, is_ready in (("addresses", True), ("notReadyAddresses", False)):
                for address in subset.get(member) or ():
                    key = (address["ip"], (address.get("targetRef") or {}).get("uid", ""))
                    addresses.setdefault(key, dict(address))
                    ready[key] = ready.get(key, True) and is_ready
    ports_by_addresses: dict[tuple[tuple[_AddressKey, bool], ...], list[Object]] = {}
    for port_text, states in ready_by_port.items():
        ports = ports_by_addresses.setdefault(tuple(sorted(states.items())), [])
        if port_text != _canonical_text(None):
            ports.append(json.loads(port_text))
    made = [_new_subset(members, sorted(ports, key=_canonical_text), addresses) for members, ports in ports_by_addresses.items()]
    return sorted(made, key=_canonical_text)


def _canonical_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _new_subset(
    members: Iterable[tuple[_AddressKey, bool]], ports: list[Object], addresses: Mapping[_AddressKey, Object]
) -> Object:
    made: Object = {}
    for member, wanted in (("addresses", True), ("notReadyAddresses", False)):
        found = [addresses[key] for key, ready in members if ready is wanted]
        if found:
            made[member] = found
    if ports:
        made["ports"] = ports
    return made


def selects(service: StoredObject, labels: Mapping[str, str] | None) -> bool:
    """Reports whether the Service selects pods with these labels. A Service without a selector selects none."""
    selector = service["spec"].get("selector")
    if selector is None or service["spec"].get("type") == "ExternalName":
        return False
    return bool(selector.items() <= (labels or {}).items())


def should_pod_be_in_endpoints(pod: StoredObject, *, include_terminating: bool) -> bool:
    """Reports whether the pod has an address and has not terminated (ShouldPodBeInEndpoints)."""
    status = pod.get("status") or {}
    if status.get("phase") in TERMINAL_POD_PHASES or not (status.get("podIP") or status.get("podIPs")):
        return False
    return include_terminating or "deletionTimestamp" not in pod["metadata"]


def should_set_hostname(pod: StoredObject, service: StoredObject) -> bool:
    """Reports whether the endpoint has the pod's hostname (ShouldSetHostname)."""
    return bool(pod["spec"].get("hostname")) and pod["spec"].get("subdomain") == service["metadata"]["name"]


def is_headless(service: StoredObject) -> bool:
    """Reports whether the Service has no cluster IP."""
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


def endpoint_fields(pod: StoredObject) -> tuple[Any, ...]:
    """Returns the fields of a pod, beside its labels, that endpoints depend on (podEndpointsChanged)."""
    status, spec = pod.get("status") or {}, pod["spec"]
    return (
        status.get("podIPs"),
        status.get("phase") in TERMINAL_POD_PHASES,
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


class ServiceReconciler(Reconciler):
    """A controller whose keys are Services.

    A key is synced when all keys have been processed that were queued before it, because pods often change together.
    """

    managed: ClassVar[str] = ""
    """The resource that the controller writes."""

    def on_start(self) -> None:
        self._deferred: set[Key] = set()
        for service in self.cache.list("services"):
            if service["spec"].get("selector") is not None:
                self.enqueue(_service_key(service))

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource != "pods" or old is None:
            return True
        if obj is old:
            return True
        return obj["metadata"].get("labels") != old["metadata"].get("labels") or endpoint_fields(obj) != endpoint_fields(old)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == "services":
            return (_service_key(obj),)
        if resource == self.managed:
            return self.keys_of_managed(event_type, obj)
        if resource == "nodes":
            return self.keys_of_node(event_type, obj, old)
        return self.keys_of_pod(obj, old)

    def keys_of_pod(self, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        """Returns the keys of the Services that select the pod, or selected it before."""
        metadata = obj["metadata"]
        labels = [metadata.get("labels")]
        if old is not None:
            if old["metadata"].get("labels") == labels[0]:
                if endpoint_fields(old) == endpoint_fields(obj):
                    return ()
            else:
                labels.append(old["metadata"].get("labels"))
        return [
            _service_key(service)
            for service in self.cache.list("services", metadata["namespace"])
            if any(selects(service, one) for one in labels)
        ]

    def keys_of_managed(self, event_type: str, obj: StoredObject) -> Iterable[Key]:
        """Returns the keys of the Services that a change of a managed object concerns."""
        raise NotImplementedError

    def keys_of_node(self, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        """Returns the keys of the Services that a change of a node concerns."""
        return ()

    def reconcile(self, key: Key) -> None:
        if key not in self._deferred:
            self._deferred.add(key)
            self.enqueue(key)
            return
        self._deferred.discard(key)
        self.sync(key, self.cache.get("services", key.namespace, key.name))

    def sync(self, key: Key, service: Object | None) -> None:
        """Writes the endpoints of a Service; `service` is None if it was deleted."""
        raise NotImplementedError

    def pods_of(self, service: Object) -> list[Object]:
        """Returns the pods that the Service selects."""
        pods = self.cache.list("pods", service["metadata"]["namespace"])
        return [pod for pod in pods if selects(service, pod["metadata"].get("labels"))]


def _service_key(service: StoredObject) -> Key:
    return Key(service["metadata"]["namespace"], service["metadata"]["name"])

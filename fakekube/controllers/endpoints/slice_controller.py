"""The EndpointSlices of services with a selector.

Specified by: pkg/controller/endpointslice/endpointslice_controller.go, k8s.io/endpointslice/{reconciler,utils}.go,
k8s.io/endpointslice/trafficdist/trafficdist.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any, ClassVar, Final

from fakekube.client import ApiError
from fakekube.controllers.endpoints.membership import (
    LAST_CHANGE,
    TriggerTimes,
    endpoint_ports,
    has_hostname,
    is_endpoint,
    is_headless,
    is_ready,
)
from fakekube.controllers.endpoints.services import ServiceReconciler
from fakekube.controllers.endpoints.slices import Group, Plan, new_slice, plan, port_key
from fakekube.controllers.reconciler import Key, Object

__all__ = ["EndpointSliceController", "endpoint_of"]

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"
HEADLESS: Final = "service.kubernetes.io/headless"
RESERVED: Final = frozenset({SERVICE_NAME, MANAGED_BY, HEADLESS})
ZONE: Final = "topology.kubernetes.io/zone"
SLICES: Final = "endpointslices.discovery.k8s.io"
LIMIT: Final = 100
CLOSE: Final = frozenset({"PreferClose", "PreferSameZone", "PreferSameNode"})


class EndpointSliceController(ServiceReconciler):
    """Keys are services."""

    name: ClassVar[str] = "endpointslice-controller"
    component: ClassVar[str] = "endpoint-slice-controller"
    watches: ClassVar[tuple[str, ...]] = ("services", "pods", "nodes", SLICES)
    own: ClassVar[str] = SLICES

    def started(self) -> None:
        super().started()
        self._times = TriggerTimes()
        self._missing: dict[Key, set[str]] = {}

    def keys_of_own(self, event_type: str, obj: Object) -> Iterable[Key]:
        """Only what others do to a slice needs a look."""
        labels = obj["metadata"].get("labels") or {}
        if labels.get(MANAGED_BY) != MANAGER or not labels.get(SERVICE_NAME):
            return ()
        return (Key(obj["metadata"]["namespace"], labels[SERVICE_NAME]),)

    def keys_of_node(self, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        """A node that pods waited for has come, or one has moved to another zone."""
        name = obj["metadata"]["name"]
        if event_type == "ADDED":
            return [key for key, names in self._missing.items() if name in names]
        if old is not None and _zone(old) != _zone(obj):
            pods = [pod for pod in self.cache.list("pods") if pod["spec"].get("nodeName") == name]
            return [key for pod in pods for key in self._of_pod(pod, None)]
        return ()

    def sync(self, key: Key, service: Object | None) -> None:
        self._missing.pop(key, None)
        if service is None:
            self._times.forget(*key)
            return
        if service["spec"].get("type") == "ExternalName" or service["spec"].get("selector") is None:
            return
        slices = [
            one
            for one in self.cache.list(SLICES, key.namespace, {SERVICE_NAME: key.name, MANAGED_BY: MANAGER})
            if "deletionTimestamp" not in one["metadata"]
        ]
        pods = self.pods_of(service)
        since = self._times.observe(service, pods)
        families = [f"IPv{family.removeprefix('IPv')}" for family in service["spec"].get("ipFamilies") or ("IPv4",)]
        errors: list[str] = []
        for family in families:
            of_family = [one for one in slices if one["addressType"] == family]
            self._carry_out(service, self._plan(service, pods, of_family, family, errors), since)
        for one in slices:
            if one["addressType"] not in families:
                self.client.delete(SLICES, one["metadata"]["name"], namespace=key.namespace)
        if errors:
            message = errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"
            about = f"Error updating Endpoint Slices for Service {key.namespace}/{key.name}: {message}"
            self.recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", about)

    # ------------------------------------------------------------ planning

    def _plan(self, service: Object, pods: Iterable[Object], slices: list[Object], family: str, errors: list[str]) -> Plan:
        existing: dict[str, list[Object]] = {}
        made = Plan()
        for slice_ in slices:
            if _owned(slice_, service):
                existing.setdefault(port_key(slice_.get("ports")), []).append(slice_)
            else:
                made.delete.append(slice_)
        groups = self._groups(service, pods, family, errors)
        for key, group in groups.items():
            found = plan(
                existing.pop(key, []),
                group,
                lambda endpoints, group=group: _new(service, family, group.ports, endpoints),  # type: ignore[misc]
                lambda slice_: _relabelled(slice_, service),
                LIMIT,
            )
            made.create += found.create
            made.update += found.update
            made.delete += found.delete
        made.delete += [slice_ for others in existing.values() for slice_ in others]
        if len(made.delete) == len(slices) and not made.create:
            self._add_placeholder(made, service, family)
        made.recycle(lambda old, new: _owned(old, service))
        return made

    def _groups(self, service: Object, pods: Iterable[Object], family: str, errors: list[str]) -> dict[str, Group]:
        groups: dict[str, Group] = {}
        publish = service["spec"].get("publishNotReadyAddresses")
        for pod in pods:
            if not is_endpoint(pod, terminating=True):
                continue
            headless_without_ports = not service["spec"].get("ports") and service["spec"].get("clusterIP") == "None"
            ports = [] if headless_without_ports else endpoint_ports(service, pod)
            group = groups.setdefault(port_key(ports), Group(ports))
            node_name = pod["spec"].get("nodeName") or ""
            node = self.cache.get("nodes", "", node_name)
            if node is None and not publish:
                where = f"{service['metadata']['namespace']}/{service['metadata']['name']}"
                errors.append(f"skipping Pod {pod['metadata']['name']} for Service {where}: Node {node_name} Not Found")
                self._missing.setdefault(Key(service["metadata"]["namespace"], service["metadata"]["name"]), set()).add(node_name)
                continue
            endpoint = endpoint_of(pod, node, service, family)
            if endpoint is not None:
                group.add(endpoint)
        return groups

    @staticmethod
    def _add_placeholder(made: Plan, service: Object, family: str) -> None:
        """A service without endpoints has one empty slice."""
        placeholder = _new(service, family, [], [])
        if len(made.delete) == 1:
            known = made.delete[0]
            same = not known.get("endpoints") and not known.get("ports") and _owned(known, service)
            if same and _relabelled(known, service) is None:
                made.delete.clear()
                return
        made.create.append(placeholder)

    # ------------------------------------------------------------ writing

    def _carry_out(self, service: Object, made: Plan, since: str | None) -> None:
        namespace = service["metadata"]["namespace"]
        if "deletionTimestamp" not in service["metadata"]:
            for slice_ in made.create:
                try:
                    self.client.create(_stamped(slice_, since))
                except ApiError as error:
                    causes = (error.status.get("details") or {}).get("causes") or ()
                    if any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
                        return
                    raise
        for slice_ in made.update:
            self.client.update(_stamped(slice_, since))
        for slice_ in made.delete:
            self.client.delete(SLICES, slice_["metadata"]["name"], namespace=namespace)


def endpoint_of(pod: Object, node: Mapping[str, Any] | None, service: Object, family: str) -> Object | None:
    """A pod as an endpoint; None if it has no address of that family."""
    version = 6 if family == "IPv6" else 4
    ips = [ip_address(one["ip"]) for one in pod["status"].get("podIPs") or ()]
    addresses = [str(ip) for ip in ips if ip.version == version]
    if not addresses:
        return None
    serving, terminating = is_ready(pod), "deletionTimestamp" in pod["metadata"]
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
    metadata = pod["metadata"]
    made: Object = {"addresses": addresses, "conditions": {"ready": ready, "serving": serving, "terminating": terminating}}
    if has_hostname(pod, service):
        made["hostname"] = pod["spec"]["hostname"]
    made["targetRef"] = {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
    if pod["spec"].get("nodeName"):
        made["nodeName"] = pod["spec"]["nodeName"]
    zone = _zone(node) if node is not None else None
    if zone:
        made["zone"] = zone
    hints = _hints(service["spec"].get("trafficDistribution"), made) if ready else None
    return made | ({"hints": hints} if hints else {})


def _hints(distribution: str | None, endpoint: Object) -> Object | None:
    if distribution not in CLOSE:
        return None
    hints: Object = {}
    if "zone" in endpoint:
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if distribution == "PreferSameNode" and "nodeName" in endpoint:
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return hints or None


def _zone(node: Mapping[str, Any]) -> str | None:
    return (node["metadata"].get("labels") or {}).get(ZONE)


def _owned(slice_: Object, service: Object) -> bool:
    uid = service["metadata"]["uid"]
    return any(
        one.get("uid") == uid and one.get("kind") == "Service" and one.get("apiVersion") == "v1"
        for one in slice_["metadata"].get("ownerReferences") or ()
    )


def _labels(service: Object) -> dict[str, str]:
    labels = {key: value for key, value in (service["metadata"].get("labels") or {}).items() if key not in RESERVED}
    if is_headless(service):
        labels[HEADLESS] = ""
    return labels | {SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: MANAGER}


def _relabelled(slice_: Object, service: Object) -> Object | None:
    labels, wanted = slice_["metadata"].get("labels") or {}, _labels(service)
    own = {key: value for key, value in labels.items() if key not in RESERVED}
    if own == {key: value for key, value in wanted.items() if key not in RESERVED}:
        return None
    return {**slice_, "metadata": {**slice_["metadata"], "labels": wanted}}


def _new(service: Object, family: str, ports: list[Object], endpoints: list[Object]) -> Object:
    return new_slice(service, {"labels": _labels(service)}, family, ports, endpoints)


def _stamped(slice_: Object, since: str | None) -> Object:
    """The slice as it is written: with the time of the change, and empty lists as nil ones."""
    metadata = slice_["metadata"]
    annotations = {name: value for name, value in (metadata.get("annotations") or {}).items() if name != LAST_CHANGE}
    if since is not None:
        annotations[LAST_CHANGE] = since
    made: dict[str, Any] = {
        **slice_,
        "metadata": {**metadata, "annotations": annotations},
        "endpoints": slice_["endpoints"] or None,
        "ports": slice_["ports"] or None,
    }
    return made

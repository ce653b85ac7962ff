"""The EndpointSlice controller: writes the EndpointSlices of Services that have a selector.

It distributes endpoints over EndpointSlices with as few writes as possible.

Endpoints with the same ports are in the same slices. A slice keeps its endpoints that are still desired. New ones are added to
slices that are written anyway, then to the fullest slice that can take all remaining ones, then to new slices.

Invariants: no slice exceeds the limit, but for the existing endpoints that it keeps. After the changes each desired endpoint is
in exactly one slice with its ports.

Specified by: pkg/controller/endpointslice/endpointslice_controller.go, k8s.io/endpointslice/{reconciler,utils}.go,
k8s.io/endpointslice/trafficdist/trafficdist.go; k8s.io/endpointslice/reconciler.go (reconcileByPortMapping), utils.go
(getSliceToFill), util/endpointset.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Any, ClassVar, Final

from fakekube.apis.well_known import (
    ENDPOINTS_LAST_CHANGE_TRIGGER_TIME,
    IS_HEADLESS_SERVICE,
    LABEL_SERVICE_NAME,
    LABEL_TOPOLOGY_ZONE,
)
from fakekube.base.golang.strings import aggregate_errors
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_namespace_terminating, is_pod_ready
from fakekube.controllers.endpoints.service_reconciler import (
    ServiceReconciler,
    TriggerTimeTracker,
    get_endpoint_ports,
    is_headless,
    should_pod_be_in_endpoints,
    should_set_hostname,
)
from fakekube.controllers.informers import new_controller_ref
from fakekube.controllers.reconciler import Key

EndpointKey = tuple[tuple[str, ...], str, str, str]

SLICES: Final = "endpointslices.discovery.k8s.io"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"


def port_key(ports: Iterable[Mapping[str, Any]] | None) -> str:
    """Returns a key that is equal for equal sets of ports (NewPortMapKey)."""
    return json.dumps(sorted(json.dumps(port, sort_keys=True) for port in ports or ()))


def endpoint_key(endpoint: Mapping[str, Any]) -> EndpointKey:
    """Returns a key that identifies an endpoint (hashEndpoint)."""
    reference = endpoint.get("targetRef") or {}
    return (
        tuple(sorted(endpoint.get("addresses") or ())),
        endpoint.get("hostname", ""),
        reference.get("namespace", ""),
        reference.get("name", ""),
    )


def new_slice(
    owner: Object, metadata: Mapping[str, Any], family: str, ports: Sequence[Object], endpoints: Sequence[Object]
) -> Object:
    """Returns an EndpointSlice for a creation, with a generated name that begins with that of its owner.

    Args:
        owner: the Service or the Endpoints that the slice belongs to.
        metadata: the labels, and the annotations if there are any.
        family: the addressType, IPv4 or IPv6.
        ports: the ports of the slice.
        endpoints: the endpoints of the slice.
    """
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "generateName": f"{owner['metadata']['name']}-",
            "namespace": owner["metadata"]["namespace"],
            **metadata,
            "ownerReferences": [new_controller_ref(owner)],
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": ports,
    }


def with_nil_lists(slice_: Object) -> Object:
    """Returns the slice as it is written: empty lists are null, as nil slices of Go are."""
    return {**slice_, "endpoints": slice_["endpoints"] or None, "ports": slice_["ports"] or None}


@dataclass(slots=True)
class DesiredEndpoints:
    """The desired endpoints with the same ports."""

    ports: list[Object]
    endpoints: dict[EndpointKey, Object] = field(default_factory=dict)

    def add(self, endpoint: Object) -> None:
        """Adds an endpoint."""
        self.endpoints[endpoint_key(endpoint)] = endpoint


@dataclass(slots=True)
class SliceChanges:
    """The slices to write, and those that stay as they are."""

    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    unchanged: list[Object] = field(default_factory=list)

    def add(self, other: SliceChanges) -> None:
        """Adds the writes of other changes."""
        self.create += other.create
        self.update += other.update
        self.delete += other.delete

    def recycle(self, usable: Callable[[Object, Object], bool]) -> None:
        """Replaces pairs of a deletion and a creation by updates (recycleSlices).

        Args:
            usable: whether the slice to delete, the first argument, can become the new one, the second argument.
        """
        for slice_ in list(self.delete):
            if self.create and usable(slice_, self.create[-1]):
                self.delete.remove(slice_)
                new = self.create.pop()
                metadata = {**new["metadata"], "name": slice_["metadata"]["name"]}
                self.update.append({**new, "metadata": metadata})


def reconcile_by_port_mapping(
    existing: Sequence[Object],
    desired: DesiredEndpoints,
    new: Callable[[list[Object]], Object],
    with_metadata: Callable[[Object], Object | None],
    limit: int,
) -> SliceChanges:
    """Returns the changes for the endpoints with one set of ports.

    Args:
        existing: the slices with these ports.
        desired: the desired endpoints.
        new: returns a new slice with endpoints.
        with_metadata: returns a slice with its desired labels and annotations; None if it has them.
        limit: the maximum number of endpoints in a slice.
    """
    wanted = dict(desired.endpoints)
    made = SliceChanges()
    for slice_ in existing:
        kept = [wanted.pop(key) for key in map(endpoint_key, slice_.get("endpoints") or ()) if key in wanted]
        updated = with_metadata(slice_)
        if not kept:
            made.delete.append(slice_)
        elif kept != (slice_.get("endpoints") or []) or updated is not None:
            made.update.append({**(updated or slice_), "endpoints": kept})
        else:
            made.unchanged.append(slice_)
    left = list(wanted.values())
    for slice_ in sorted(made.update, key=lambda one: -len(one["endpoints"])):
        room = limit - len(slice_["endpoints"])
        slice_["endpoints"] = slice_["endpoints"] + left[:room]
        left = left[room:]
    while left:
        filled = _get_slice_to_fill(made.unchanged, len(left), limit) if len(left) < limit else None
        if filled is not None:
            made.unchanged.remove(filled)
            made.update.append({**filled, "endpoints": filled["endpoints"] + left})
            left = []
        elif made.delete:
            slice_ = made.delete.pop(0)
            made.update.append({**(with_metadata(slice_) or slice_), "endpoints": left[:limit]})
            left = left[limit:]
        else:
            made.create.append(new(left[:limit]))
            left = left[limit:]
    return made


def _get_slice_to_fill(slices: Iterable[Object], count: int, limit: int) -> Object | None:
    """Returns the fullest slice to which so many endpoints can be added; None if there is none."""
    fitting = [one for one in slices if len(one["endpoints"]) + count <= limit]
    return max(fitting, key=lambda one: len(one["endpoints"]), default=None)


MANAGER: Final = "endpointslice-controller.k8s.io"
RESERVED: Final = frozenset({LABEL_SERVICE_NAME, MANAGED_BY, IS_HEADLESS_SERVICE})
#: The maximum number of endpoints in a slice (--max-endpoints-per-slice).
LIMIT: Final = 100
#: Values of trafficDistribution that give hints.
CLOSE: Final = frozenset({"PreferClose", "PreferSameZone", "PreferSameNode"})


class EndpointSliceController(ServiceReconciler):
    """Writes EndpointSlices; keys are Services."""

    name: ClassVar[str] = "endpointslice-controller"
    component: ClassVar[str] = "endpoint-slice-controller"
    watches: ClassVar[tuple[str, ...]] = ("services", "pods", "nodes", SLICES)
    managed: ClassVar[str] = SLICES

    def on_start(self) -> None:
        super().on_start()
        self._times = TriggerTimeTracker()
        self._missing_nodes: dict[Key, set[str]] = {}
        """Service → the nodes of its pods that do not exist."""

    def keys_of_managed(self, event_type: str, obj: StoredObject) -> Iterable[Key]:
        labels = obj["metadata"].get("labels") or {}
        if labels.get(MANAGED_BY) != MANAGER or not labels.get(LABEL_SERVICE_NAME):
            return ()
        return (Key(obj["metadata"]["namespace"], labels[LABEL_SERVICE_NAME]),)

    def keys_of_node(self, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        """Returns the keys of Services whose pods are on a node that was created, or whose zone has changed."""
        name = obj["metadata"]["name"]
        if event_type == "ADDED":
            return [key for key, names in self._missing_nodes.items() if name in names]
        if old is not None and _zone_of_node(old) != _zone_of_node(obj):
            pods = [pod for pod in self.cache.list("pods") if pod["spec"].get("nodeName") == name]
            return [key for pod in pods for key in self.keys_of_pod(pod, None)]
        return ()

    def sync(self, key: Key, service: Object | None) -> None:
        self._missing_nodes.pop(key, None)
        if service is None:
            self._times.delete_service(*key)
            return
        if service["spec"].get("type") == "ExternalName" or service["spec"].get("selector") is None:
            return
        slices = [
            one
            for one in self.cache.list(SLICES, key.namespace, {LABEL_SERVICE_NAME: key.name, MANAGED_BY: MANAGER})
            if "deletionTimestamp" not in one["metadata"]
        ]
        pods = self.pods_of(service)
        trigger_time = self._times.compute(service, pods)
        families = [f"IPv{family.removeprefix('IPv')}" for family in service["spec"].get("ipFamilies") or ("IPv4",)]
        errors: list[str] = []
        for family in families:
            of_family = [one for one in slices if one["addressType"] == family]
            self._apply_changes(service, self._compute_changes(service, pods, of_family, family, errors), trigger_time)
        for one in slices:
            if one["addressType"] not in families:
                self.client.delete(SLICES, one["metadata"]["name"], namespace=key.namespace)
        if errors:
            about = f"Error updating Endpoint Slices for Service {key.namespace}/{key.name}: {aggregate_errors(errors)}"
            self.recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", about)

    # --- Changes ------------------------------------------------------------------------------------------------------

    def _compute_changes(
        self, service: Object, pods: Iterable[Object], slices: list[Object], family: str, errors: list[str]
    ) -> SliceChanges:
        existing: dict[str, list[Object]] = {}
        changes = SliceChanges()
        for slice_ in slices:
            if _is_owned_by(slice_, service):
                existing.setdefault(port_key(slice_.get("ports")), []).append(slice_)
            else:
                changes.delete.append(slice_)
        for key, desired in self._desired_endpoints(service, pods, family, errors).items():
            changes.add(
                reconcile_by_port_mapping(
                    existing.pop(key, []),
                    desired,
                    partial(_new_endpoint_slice, service, family, desired.ports),
                    partial(_update_labels, service),
                    LIMIT,
                )
            )
        changes.delete += [slice_ for others in existing.values() for slice_ in others]
        if len(changes.delete) == len(slices) and not changes.create:
            self._add_placeholder(changes, service, family)
        changes.recycle(lambda old, new: _is_owned_by(old, service))
        return changes

    def _desired_endpoints(
        self, service: Object, pods: Iterable[Object], family: str, errors: list[str]
    ) -> dict[str, DesiredEndpoints]:
        groups: dict[str, DesiredEndpoints] = {}
        publish = service["spec"].get("publishNotReadyAddresses")
        for pod in pods:
            if not should_pod_be_in_endpoints(pod, include_terminating=True):
                continue
            headless_without_ports = not service["spec"].get("ports") and service["spec"].get("clusterIP") == "None"
            ports = [] if headless_without_ports else get_endpoint_ports(service, pod)
            group = groups.setdefault(port_key(ports), DesiredEndpoints(ports))
            node_name = pod["spec"].get("nodeName") or ""
            node = self.cache.get("nodes", "", node_name)
            if node is None and not publish:
                where = f"{service['metadata']['namespace']}/{service['metadata']['name']}"
                errors.append(f"skipping Pod {pod['metadata']['name']} for Service {where}: Node {node_name} Not Found")
                key = Key(service["metadata"]["namespace"], service["metadata"]["name"])
                self._missing_nodes.setdefault(key, set()).add(node_name)
                continue
            endpoint = pod_to_endpoint(pod, node, service, family)
            if endpoint is not None:
                group.add(endpoint)
        return groups

    @staticmethod
    def _add_placeholder(changes: SliceChanges, service: Object, family: str) -> None:
        """Keeps or creates the empty slice of a Service without endpoints (newEndpointSlice placeholder)."""
        placeholder = _new_endpoint_slice(service, family, [], [])
        if len(changes.delete) == 1:
            known = changes.delete[0]
            same = not known.get("endpoints") and not known.get("ports") and _is_owned_by(known, service)
            if same and _update_labels(service, known) is None:
                changes.delete.clear()
                return
        changes.create.append(placeholder)

    # --- Writes -------------------------------------------------------------------------------------------------------

    def _apply_changes(self, service: Object, changes: SliceChanges, trigger_time: str | None) -> None:
        if "deletionTimestamp" not in service["metadata"]:
            for slice_ in changes.create:
                try:
                    self.client.create(_with_trigger_time(slice_, trigger_time))
                except ApiError as error:
                    if is_namespace_terminating(error):
                        return
                    raise
        for slice_ in changes.update:
            self.client.update(_with_trigger_time(slice_, trigger_time))
        for slice_ in changes.delete:
            self.client.delete(SLICES, slice_["metadata"]["name"], namespace=service["metadata"]["namespace"])


def pod_to_endpoint(pod: Object, node: Mapping[str, Any] | None, service: Object, family: str) -> Object | None:
    """Returns the endpoint of a pod; None if it has no address of that family (podToEndpoint)."""
    version = 6 if family == "IPv6" else 4
    ips = [ip_address(one["ip"]) for one in pod["status"].get("podIPs") or ()]
    addresses = [str(ip) for ip in ips if ip.version == version]
    if not addresses:
        return None
    serving, terminating = is_pod_ready(pod), "deletionTimestamp" in pod["metadata"]
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
    metadata = pod["metadata"]
    endpoint: Object = {"addresses": addresses, "conditions": {"ready": ready, "serving": serving, "terminating": terminating}}
    if should_set_hostname(pod, service):
        endpoint["hostname"] = pod["spec"]["hostname"]
    endpoint["targetRef"] = {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
    if pod["spec"].get("nodeName"):
        endpoint["nodeName"] = pod["spec"]["nodeName"]
    zone = _zone_of_node(node) if node is not None else None
    if zone:
        endpoint["zone"] = zone
    hints = _zone_hints(service["spec"].get("trafficDistribution"), endpoint) if ready else None
    return endpoint | ({"hints": hints} if hints else {})


def _zone_hints(distribution: str | None, endpoint: Object) -> Object | None:
    if distribution not in CLOSE:
        return None
    hints: Object = {}
    if "zone" in endpoint:
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if distribution == "PreferSameNode" and "nodeName" in endpoint:
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return hints or None


def _zone_of_node(node: Mapping[str, Any]) -> str | None:
    return (node["metadata"].get("labels") or {}).get(LABEL_TOPOLOGY_ZONE)


def _is_owned_by(slice_: Object, service: Object) -> bool:
    uid = service["metadata"]["uid"]
    return any(
        one.get("uid") == uid and one.get("kind") == "Service" and one.get("apiVersion") == "v1"
        for one in slice_["metadata"].get("ownerReferences") or ()
    )


def _slice_labels(service: Object) -> dict[str, str]:
    labels = {key: value for key, value in (service["metadata"].get("labels") or {}).items() if key not in RESERVED}
    if is_headless(service):
        labels[IS_HEADLESS_SERVICE] = ""
    return labels | {LABEL_SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: MANAGER}


def _update_labels(service: Object, slice_: Object) -> Object | None:
    """Returns the slice with its labels; None if it has them."""
    labels, expected = slice_["metadata"].get("labels") or {}, _slice_labels(service)
    own = {key: value for key, value in labels.items() if key not in RESERVED}
    if own == {key: value for key, value in expected.items() if key not in RESERVED}:
        return None
    return {**slice_, "metadata": {**slice_["metadata"], "labels": expected}}


def _new_endpoint_slice(service: Object, family: str, ports: list[Object], endpoints: list[Object]) -> Object:
    return new_slice(service, {"labels": _slice_labels(service)}, family, ports, endpoints)


def _with_trigger_time(slice_: Object, trigger_time: str | None) -> Object:
    """Returns the slice as it is written, with the annotation for the time of the change."""
    metadata = slice_["metadata"]
    annotations = {
        name: value for name, value in (metadata.get("annotations") or {}).items() if name != ENDPOINTS_LAST_CHANGE_TRIGGER_TIME
    }
    if trigger_time is not None:
        annotations[ENDPOINTS_LAST_CHANGE_TRIGGER_TIME] = trigger_time
    return with_nil_lists({**slice_, "metadata": {**metadata, "annotations": annotations}})

"""The objects that the API server itself maintains: restores those that belong to it.

kube-apiserver restores in loops: every ten seconds the Service `kubernetes` with its Endpoints, EndpointSlice and IPAddress, the
default ServiceCIDR and the Lease of its identity, every minute FlowSchemas, PriorityLevelConfigurations and the namespace
kube-node-lease. Here a timer exists only while an object differs from what it should be; it is due when the loop of a server that
started with the cluster would run, by the cluster's clock. Of a Service that is changed nothing is restored, nor the holder of
the Lease; of Endpoints the addresses, not the ports.

Invariant: while nobody has touched the objects there is no timer, and nothing was written.

Specified by: pkg/controlplane/controller/{kubernetesservice,defaultservicecidr,systemnamespaces}, pkg/controlplane/reconcilers,
k8s.io/component-helpers/apimachinery/lease, k8s.io/apiserver/pkg/util/flowcontrol/…/ensurer
(pkg/registry/flowcontrol/ensurer/strategy.go).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import Any, Final, Protocol

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.data import FLOW_CONTROL
from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.patch.apply.schema import OBJECT_META
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apis.flowcontrol import MANDATORY
from fakekube.apis.rest.cluster_access import ClusterAccess, Recorded, ServiceRanges
from fakekube.apis.rest.resource import Registry
from fakekube.apis.well_known import LABEL_IP_ADDRESS_FAMILY
from fakekube.base.chance import random_uuid
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_micro_time, print_time
from fakekube.base.objects import Object, StoredObject, group_version_path
from fakekube.net.streams import subscribe_weakly
from fakekube.store import Store

_AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"


class Repair(Protocol):
    """Returns an object as it should be, from the present and the first one; the present one if nothing is wrong."""

    def __call__(self, present: Object, first: Object) -> Object: ...


def _repair_lease(present: Object, first: Object) -> Object:
    labels = {**(present["metadata"].get("labels") or {}), **first["metadata"]["labels"]}
    if labels == present["metadata"].get("labels"):
        return present
    return {**present, "metadata": {**present["metadata"], "labels": labels}}


def _repair_flow_control(present: Object, first: Object) -> Object:
    """Restores the spec, unless the annotation, or without it a later generation, says that the object is the user's."""
    metadata = present["metadata"]
    annotations = metadata.get("annotations") or {}
    is_user_s = annotations.get(_AUTO_UPDATE, "true" if metadata.get("generation") == 1 else "false") != "true"
    if first["metadata"]["name"] in MANDATORY:
        is_user_s = False
    spec = present["spec"] if is_user_s else first["spec"]
    if "exempt" in spec:  # its shares are the user's
        spec = {**spec, "exempt": present["spec"].get("exempt") or spec["exempt"]}
    annotations = {**annotations, _AUTO_UPDATE: "false" if is_user_s else "true"}
    if spec == present["spec"] and annotations == metadata.get("annotations"):
        return present
    generation = metadata.get("generation", 0) + (spec != present["spec"])
    return {**present, "metadata": {**metadata, "annotations": annotations, "generation": generation}, "spec": spec}


def _repair_endpoints(present: Object, first: Object) -> Object:
    """Restores the addresses; ports are left, if there is one subset."""
    subsets, (wanted,) = present.get("subsets") or [], first["subsets"]
    ports = subsets[0]["ports"] if len(subsets) == 1 and subsets[0].get("ports") else wanted["ports"]
    labels = {**(present["metadata"].get("labels") or {}), **first["metadata"]["labels"]}
    desired = [{"addresses": wanted["addresses"], "ports": ports}]
    if subsets == desired and labels == present["metadata"].get("labels"):
        return present
    return {**present, "metadata": {**present["metadata"], "labels": labels}, "subsets": desired}


def _repair_slice(present: Object, first: Object) -> Object:
    metadata = {**present["metadata"], "labels": first["metadata"]["labels"]}
    if metadata == present["metadata"] and all(present.get(name) == first[name] for name in ("endpoints", "ports")):
        return present
    metadata["generation"] = metadata.get("generation", 0) + 1
    return {**present, "metadata": metadata, "endpoints": first["endpoints"], "ports": first["ports"]}


@dataclass(slots=True, frozen=True)
class _Kind:
    """The objects of one resource that belong to the API server."""

    group: str
    version: str
    plural: str
    period: float
    """Seconds between two runs of the loop of the real server."""
    repair: Repair | None = None
    """None: only missing objects are restored."""
    names: frozenset[str] | None = None
    """Only objects with these names; None for all of a fresh server."""

    @property
    def path(self) -> str:
        """The path under which the objects of a fresh server are known."""
        return f"{group_version_path(self.group, self.version)}/{self.plural}"


#: In the order in which they are restored: the address of a Service before the Service.
_KINDS: Final = (
    _Kind("networking.k8s.io", "v1", "servicecidrs", 10.0),
    _Kind("networking.k8s.io", "v1", "ipaddresses", 10.0),
    _Kind("", "v1", "services", 10.0),
    _Kind("", "v1", "endpoints", 10.0, _repair_endpoints),
    _Kind("discovery.k8s.io", "v1", "endpointslices", 10.0, _repair_slice),
    _Kind("coordination.k8s.io", "v1", "leases", 10.0, _repair_lease),
    _Kind(FLOW_CONTROL, "v1", "prioritylevelconfigurations", 60.0, _repair_flow_control),
    _Kind(FLOW_CONTROL, "v1", "flowschemas", 60.0, _repair_flow_control),
    _Kind("", "v1", "namespaces", 60.0, names=frozenset({"kube-node-lease"})),
)


class DefaultObjectsController:
    """Restores the objects of the API server.

    Args:
        store, registry, services, clock: of the cluster.
    """

    def __init__(self, store: Store[Document], registry: Registry, services: ClusterAccess, clock: Clock) -> None:
        self._services, self._clock = services, clock
        self._started = clock.monotonic()
        self._added: dict[str, tuple[Object, ...]] = {}
        """Path → further objects, which only clusters with nodes have."""
        self._due: set[float] = set()
        """The periods for which there is a timer."""
        for kind in _KINDS:
            resource = registry.any_version(kind.group, kind.plural)
            if resource is not None:
                subscribe_weakly(self, partial(DefaultObjectsController._check, kind=kind), (store.bucket(resource.bucket),))

    def add(self, obj: Object) -> None:
        """Adds an object of one of these resources that is there from the start: it is restored as well."""
        version = obj["apiVersion"]
        path = f"/{'apis' if '/' in version else 'api'}/{version}/{obj['kind'].lower().removesuffix('s')}s"
        self._added[path] = (*self._added.get(path, ()), obj)

    def _first_objects(self, kind: _Kind) -> Iterator[Object]:
        known = self._services.emulation.facts.bootstrap.get(kind.path, ())
        for obj in (*known, *self._added.get(kind.path, ())):
            if kind.names is None or obj["metadata"]["name"] in kind.names:
                yield {**with_service_ranges(kind.path, obj, self._services.service_ranges)}

    def _check(self, *, kind: _Kind) -> None:
        """Sets the timer of the kind's loop if one of its objects is not as it should be."""
        if kind.period not in self._due and (any(self._find_wrong(kind)) or any(self._find_unwanted(kind))):
            self._set_timer(kind.period)

    def _present(self, kind: _Kind, first: Object) -> Object | None:
        metadata = first["metadata"]
        return self._services.get(kind.group, kind.plural, metadata.get("namespace", ""), metadata["name"])

    def _find_wrong(self, kind: _Kind) -> Iterator[Object]:
        """Yields the first objects of which the present ones are missing or differ."""
        for first in self._first_objects(kind):
            present = self._present(kind, first)
            if present is None or (kind.repair is not None and kind.repair(present, first) is not present):
                yield first

    def _find_unwanted(self, kind: _Kind) -> Iterator[str]:
        """Yields the names of objects that claim to be the API server's, and are not."""
        if kind.group != FLOW_CONTROL:
            return
        names = {first["metadata"]["name"] for first in self._first_objects(kind)}
        for obj in self._services.list(kind.group, kind.plural):
            metadata = obj["metadata"]
            if metadata["name"] not in names and (metadata.get("annotations") or {}).get(_AUTO_UPDATE) == "true":
                yield metadata["name"]

    def _set_timer(self, period: float) -> None:
        self._due.add(period)
        passed = floor((self._clock.monotonic() - self._started) / period)
        due = self._started + (passed + 1) * period
        self._clock.call_at(due, partial(_run_loop, weakref.ref(self), period), what="restoring objects of the API server")

    def run_loop(self, period: float) -> None:
        """Restores what is missing or wrong in all kinds with this period, and tries again a period later where that fails."""
        kinds = [kind for kind in _KINDS if kind.period == period]
        for kind in kinds:
            for name in list(self._find_unwanted(kind)):
                self._services.remove(kind.group, kind.plural, "", name)
            for first in list(self._find_wrong(kind)):
                with suppress(StatusError):  # it has been created or deleted meanwhile
                    self._restore(kind, first)
        self._due.discard(period)
        for kind in kinds:
            self._check(kind=kind)

    def _restore(self, kind: _Kind, first: Object) -> None:
        metadata, now = first["metadata"], self._clock.now()
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if self._present(kind, first) is None:
            if kind.plural == "leases":
                first = {**first, "spec": {**first["spec"], "renewTime": print_micro_time(now)}}
            if kind.plural == "services" and not self._has_address(first):
                return
            self._services.create(kind.group, kind.plural, namespace, as_created_now(first, print_time(now)))
            return
        assert kind.repair is not None
        repair = partial(kind.repair, first=first)
        self._services.update(kind.group, kind.plural, namespace, name, repair, recorded=Recorded("", now))

    def _has_address(self, service: Object) -> bool:
        """Reports whether the address of a Service is its own: another one may have taken it meanwhile."""
        address = self._services.get("networking.k8s.io", "ipaddresses", "", service["spec"]["clusterIP"])
        parent = {} if address is None else address["spec"]["parentRef"]
        return (parent.get("namespace"), parent.get("name")) == (service["metadata"]["namespace"], service["metadata"]["name"])


def _run_loop(reference: weakref.ref[DefaultObjectsController], period: float) -> None:
    """Runs a loop if the cluster still exists: its clock must not keep it."""
    controller = reference()
    if controller is not None:
        controller.run_loop(period)


# --- The objects of a fresh server that depend on its service ranges ---------------------------------------------------
#
# Invariant: the Service `kubernetes` has the first address of the first network.
#
# Specified by: pkg/controlplane/controller/kubernetesservice and …/defaultservicecidr.


def with_service_ranges(path: str, obj: StoredObject, ranges: ServiceRanges) -> StoredObject:
    """Returns a recorded object of a collection, by its path, as a server with these ranges has it."""
    change = _CHANGES.get(path)
    return obj if change is None else change(obj, ranges)


def _service_cidr(obj: StoredObject, ranges: ServiceRanges) -> StoredObject:
    return {**obj, "spec": {"cidrs": list(ranges.networks)}}


def _ip_address(obj: StoredObject, ranges: ServiceRanges) -> StoredObject:
    labels = {**obj["metadata"]["labels"], LABEL_IP_ADDRESS_FAMILY: ranges.families[0]}
    return {**obj, "metadata": {**obj["metadata"], "name": ranges.first_address, "labels": labels}}


def _service(obj: StoredObject, ranges: ServiceRanges) -> StoredObject:
    address = ranges.first_address
    changed = {"clusterIP": address, "clusterIPs": [address], "ipFamilies": [ranges.families[0]]}
    return {**obj, "spec": {**obj["spec"], **changed}}


_CHANGES: Mapping[str, Callable[[StoredObject, ServiceRanges], StoredObject]] = {
    "/api/v1/services": _service,
    "/apis/networking.k8s.io/v1/ipaddresses": _ip_address,
    "/apis/networking.k8s.io/v1/servicecidrs": _service_cidr,
}


def as_created_now(obj: StoredObject, now: str) -> dict[str, Any]:
    """Returns a recorded object in storage form with the current time as its creation time."""
    meta = {**obj["metadata"], "uid": random_uuid(), "creationTimestamp": now, "resourceVersion": "0"}
    if "managedFields" in meta:
        meta["managedFields"] = [{**entry, "time": now} for entry in meta["managedFields"]]
    status = dict(obj.get("status") or {})
    if "conditions" in status:
        status["conditions"] = [{**condition, "lastTransitionTime": now} for condition in status["conditions"]]
    meta = printing.normalise(type_of(OBJECT_META), meta)  # sorts the fields
    return {**obj, "metadata": meta, **({"status": status} if status else {})}

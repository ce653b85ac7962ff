"""The EndpointSlice mirroring controller: mirrors Endpoints of Services without a selector, which users write.

Specified by: pkg/controller/endpointslicemirroring/{endpointslicemirroring_controller,reconciler,utils}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from ipaddress import ip_address
from typing import Any, ClassVar, Final

from fakekube.apis.well_known import (
    ENDPOINTS_LAST_CHANGE_TRIGGER_TIME,
    LABEL_SERVICE_NAME,
    LABEL_SKIP_MIRROR,
    LAST_APPLIED_CONFIG_ANNOTATION,
)
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.endpoints.service_reconciler import repack_subsets
from fakekube.controllers.endpoints.slice_controller import (
    MANAGED_BY,
    SLICES,
    DesiredEndpoints,
    SliceChanges,
    new_slice,
    port_key,
    reconcile_by_port_mapping,
    with_nil_lists,
)
from fakekube.controllers.reconciler import Key, Reconciler

MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
#: Addresses of a subset that are mirrored, and endpoints in a slice.
LIMIT: Final = 1000


class EndpointSliceMirroringController(Reconciler):
    """Writes mirrored EndpointSlices; keys are Endpoints and Services, which have the same name."""

    name: ClassVar[str] = "endpointslice-mirroring-controller"
    component: ClassVar[str] = "endpoint-slice-mirroring-controller"
    watches: ClassVar[tuple[str, ...]] = ("endpoints", "services", SLICES)

    def on_start(self) -> None:
        for endpoints in self.cache.list("endpoints"):
            self.enqueue(Key(endpoints["metadata"]["namespace"], endpoints["metadata"]["name"]))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource != SLICES:
            return (Key(metadata["namespace"], metadata["name"]),)
        labels = metadata.get("labels") or {}
        mine = labels.get(MANAGED_BY) == MANAGER and labels.get(LABEL_SERVICE_NAME)
        return (Key(metadata["namespace"], labels[LABEL_SERVICE_NAME]),) if mine else ()

    def reconcile(self, key: Key) -> None:
        endpoints = self.cache.get("endpoints", key.namespace, key.name)
        service = self.cache.get("services", key.namespace, key.name)
        slices = list(self.cache.list(SLICES, key.namespace, {LABEL_SERVICE_NAME: key.name, MANAGED_BY: MANAGER}))
        if endpoints is None or service is None or service["spec"].get("selector") is not None or not _is_mirrored(endpoints):
            for slice_ in slices:
                self.client.delete(SLICES, slice_["metadata"]["name"], namespace=key.namespace)
            return
        if "deletionTimestamp" not in endpoints["metadata"]:
            self._apply_changes(self._compute_changes(endpoints, slices))

    def _compute_changes(self, endpoints: Object, slices: Iterable[Object]) -> SliceChanges:
        existing: dict[tuple[str, str], list[Object]] = {}
        for slice_ in slices:
            existing.setdefault((slice_["addressType"], port_key(slice_.get("ports"))), []).append(slice_)
        changes = SliceChanges()
        for (family, key), desired in self._desired_endpoints(endpoints).items():
            changes.add(
                reconcile_by_port_mapping(
                    existing.pop((family, key), []),
                    desired,
                    partial(_new_endpoint_slice, endpoints, family, desired.ports),
                    partial(_update_metadata, endpoints),
                    LIMIT,
                )
            )
        changes.delete += [slice_ for others in existing.values() for slice_ in others]
        changes.recycle(lambda old, new: old["addressType"] == new["addressType"])
        return changes

    def _desired_endpoints(self, endpoints: Object) -> dict[tuple[str, str], DesiredEndpoints]:
        groups: dict[tuple[str, str], DesiredEndpoints] = {}
        skipped = 0
        for subset in repack_subsets(endpoints.get("subsets") or ()):
            ports = [{"name": "", **port} for port in subset.get("ports") or ()]
            addresses = [(one, True) for one in subset.get("addresses") or ()]
            addresses += [(one, False) for one in subset.get("notReadyAddresses") or ()]
            skipped += max(len(addresses) - LIMIT, 0)
            for address, ready in addresses[:LIMIT]:
                ip = ip_address(address["ip"])
                group = groups.setdefault((f"IPv{ip.version}", port_key(ports)), DesiredEndpoints(ports))
                group.add(_address_to_endpoint(address, str(ip), ready))
        if skipped:
            message = (
                f"A max of {LIMIT} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped} addresses were skipped"
            )
            self.recorder.event(endpoints, "Warning", "TooManyAddressesToMirror", message)
        return groups

    def _apply_changes(self, changes: SliceChanges) -> None:
        for slice_ in changes.create:
            self.client.create(with_nil_lists(slice_))
        for slice_ in changes.update:
            self.client.update(with_nil_lists(slice_))
        for slice_ in changes.delete:
            self.client.delete(SLICES, slice_["metadata"]["name"], namespace=slice_["metadata"]["namespace"])


def _is_mirrored(endpoints: Object) -> bool:
    metadata = endpoints["metadata"]
    return (metadata.get("labels") or {}).get(LABEL_SKIP_MIRROR) != "true" and LEADER not in (metadata.get("annotations") or {})


def _address_to_endpoint(address: Mapping[str, Any], ip: str, ready: bool) -> Object:
    endpoint: Object = {"addresses": [ip], "conditions": {"ready": ready}}
    if address.get("hostname"):
        endpoint["hostname"] = address["hostname"]
    for name in ("targetRef", "nodeName"):
        if address.get(name):
            endpoint[name] = address[name]
    return endpoint


def _slice_metadata(endpoints: Object) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the labels and annotations of the slices."""
    metadata = endpoints["metadata"]
    labels = {**(metadata.get("labels") or {}), LABEL_SERVICE_NAME: metadata["name"], MANAGED_BY: MANAGER}
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name not in (ENDPOINTS_LAST_CHANGE_TRIGGER_TIME, LAST_APPLIED_CONFIG_ANNOTATION)
    }
    return labels, annotations


def _update_metadata(endpoints: Object, slice_: Object) -> Object | None:
    """Returns the slice with its labels and annotations; None if it has them."""
    labels, annotations = _slice_metadata(endpoints)
    metadata = slice_["metadata"]
    if metadata.get("labels") == labels and (metadata.get("annotations") or {}) == annotations:
        return None
    return {**slice_, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def _new_endpoint_slice(endpoints: Object, family: str, ports: list[Object], found: list[Object]) -> Object:
    labels, annotations = _slice_metadata(endpoints)
    return new_slice(endpoints, {"labels": labels, "annotations": annotations}, family, ports, found)

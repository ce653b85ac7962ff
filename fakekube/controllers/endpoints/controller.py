"""The Endpoints controller: writes the Endpoints of Services that have a selector.

Specified by: pkg/controller/endpoint/endpoints_controller.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any, ClassVar, Final

from fakekube.apis.well_known import ENDPOINTS_LAST_CHANGE_TRIGGER_TIME, IS_HEADLESS_SERVICE
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_namespace_terminating, is_pod_ready
from fakekube.controllers.endpoints.service_reconciler import (
    ServiceReconciler,
    TriggerTimeTracker,
    get_endpoint_ports,
    is_headless,
    repack_subsets,
    should_pod_be_in_endpoints,
    should_set_hostname,
)
from fakekube.controllers.reconciler import Key

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
#: The maximum number of addresses (maxCapacity).
MAX_CAPACITY: Final = 1000


class EndpointsController(ServiceReconciler):
    """Writes Endpoints; keys are Services."""

    name: ClassVar[str] = "endpoints-controller"
    client_name: ClassVar[str] = "endpoint-controller"
    component: ClassVar[str] = MANAGER
    watches: ClassVar[tuple[str, ...]] = ("services", "pods", "endpoints")
    managed: ClassVar[str] = "endpoints"

    def on_start(self) -> None:
        super().on_start()
        self._times = TriggerTimeTracker()

    def keys_of_managed(self, event_type: str, obj: StoredObject) -> Iterable[Key]:
        metadata = obj["metadata"]
        return (Key(metadata["namespace"], metadata["name"]),) if event_type == "DELETED" else ()

    def sync(self, key: Key, service: Object | None) -> None:
        if service is None:
            self._times.delete_service(*key)
            if self.cache.get("endpoints", key.namespace, key.name) is not None:
                self.client.delete("endpoints", key.name, namespace=key.namespace)
            return
        if service["spec"].get("type") == "ExternalName" or service["spec"].get("selector") is None:
            return
        pods = self.pods_of(service)
        trigger_time = self._times.compute(service, pods)
        self._write_endpoints(
            service, self.cache.get("endpoints", key.namespace, key.name), _build_subsets(service, pods), trigger_time
        )

    def _write_endpoints(self, service: Object, current: Object | None, subsets: list[Object], trigger_time: str | None) -> None:
        """Creates or updates the Endpoints, if they are not as they should be. Raises ApiError."""
        labels = dict(service["metadata"].get("labels") or {})
        if is_headless(service):
            labels[IS_HEADLESS_SERVICE] = ""
        else:
            labels.pop(IS_HEADLESS_SERVICE, None)
        labels[MANAGED_BY] = MANAGER
        metadata = (
            dict(current["metadata"])
            if current is not None
            else {"name": service["metadata"]["name"], "namespace": service["metadata"]["namespace"]}
        )
        truncated = _truncate_endpoints(subsets)
        annotations = {
            name: value
            for name, value in (metadata.get("annotations") or {}).items()
            if name not in (ENDPOINTS_LAST_CHANGE_TRIGGER_TIME, OVER_CAPACITY)
        }
        if truncated != subsets:
            annotations[OVER_CAPACITY] = "truncated"
        if (
            current is not None
            and repack_subsets(current.get("subsets") or ()) == truncated
            and metadata.get("labels") == labels
            and ((OVER_CAPACITY in (metadata.get("annotations") or {})) == (OVER_CAPACITY in annotations))
        ):
            return
        if trigger_time is not None:
            annotations[ENDPOINTS_LAST_CHANGE_TRIGGER_TIME] = trigger_time
        endpoints = {
            "kind": "Endpoints",
            "apiVersion": "v1",
            "subsets": truncated or None,
            "metadata": {**metadata, "labels": labels, "annotations": annotations},
        }
        try:
            if current is None:
                self.client.create(endpoints)
            else:
                self.client.update(endpoints)
        except ApiError as error:
            self._handle_write_error(service, error, created=current is None)

    def _handle_write_error(self, service: Object, error: ApiError, *, created: bool) -> None:
        """Records an event about a failed write, and raises its error if the write is to be tried again."""
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        if created and is_namespace_terminating(error):
            return
        about = {"kind": "Endpoints", "apiVersion": "v1", "name": name}
        if created:
            message = f"Failed to create endpoint for service {namespace}/{name}: {error}"
            self.recorder.event(about, "Warning", "FailedToCreateEndpoint", message)
        else:
            message = f"Failed to update endpoint {namespace}/{name}: {error}"
            self.recorder.event({**about, "namespace": namespace}, "Warning", "FailedToUpdateEndpoint", message)
        if error.code != 422:  # an invalid object is not retried before something changes
            raise error


def _build_subsets(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Returns the subsets for the pods of a Service: each pod has one for each of its ports, before they are packed."""
    spec = service["spec"]
    publish = bool(spec.get("publishNotReadyAddresses"))
    subsets = []
    for pod in pods:
        if not should_pod_be_in_endpoints(pod, include_terminating=publish):
            continue
        address = _endpoint_address(service, pod)
        if address is None:
            continue
        field = "addresses" if publish or is_pod_ready(pod) else "notReadyAddresses"
        if not spec.get("ports"):
            if spec.get("clusterIP") == "None":
                subsets.append({field: [address]})
            continue
        subsets += [
            {field: [address], "ports": [{name: value for name, value in port.items() if value != ""}]}
            for port in get_endpoint_ports(service, pod)
        ]
    return repack_subsets(subsets)


def _endpoint_address(service: Mapping[str, Any], pod: Mapping[str, Any]) -> Object | None:
    """Returns the address of a pod in the first IP family of a Service; None if it has none (podToEndpointAddressForService)."""
    families = service["spec"].get("ipFamilies") or ()
    version = 6 if "IPv6" in families[:1] else 4
    for one in pod["status"].get("podIPs") or ():
        found = ip_address(one["ip"])
        if found.version == version:
            metadata = pod["metadata"]
            reference = {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
            address = {"ip": str(found), "nodeName": pod["spec"].get("nodeName") or "", "targetRef": reference}
            return address | ({"hostname": pod["spec"]["hostname"]} if should_set_hostname(pod, service) else {})
    return None


def _truncate_endpoints(subsets: list[Object]) -> list[Object]:
    """Reduces subsets to MAX_CAPACITY addresses, in proportion to their sizes; ready addresses are kept first."""
    ready = sum(len(one.get("addresses") or ()) for one in subsets)
    others = sum(len(one.get("notReadyAddresses") or ()) for one in subsets)
    if ready + others <= MAX_CAPACITY:
        return subsets
    field, total, capacity = (
        ("addresses", ready, MAX_CAPACITY) if ready > MAX_CAPACITY else ("notReadyAddresses", others, MAX_CAPACITY - ready)
    )
    remaining = capacity
    result = []
    for subset in subsets:
        count = len(subset.get(field) or ())
        share = min(math.ceil(count * capacity / total), remaining)
        remaining -= share
        cut = {name: value for name, value in subset.items() if name != "notReadyAddresses" or field != "addresses"}
        cut[field] = (subset.get(field) or [])[:share]
        result.append({name: value for name, value in cut.items() if value})
    return result

"""The Endpoints of services with a selector.

Specified by: pkg/controller/endpoint/endpoints_controller.go.
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
from fakekube.controllers.endpoints.subsets import repack
from fakekube.controllers.reconciler import Key, Object

__all__ = ["EndpointsController"]

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
HEADLESS: Final = "service.kubernetes.io/headless"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
MAX_CAPACITY: Final = 1000


class EndpointsController(ServiceReconciler):
    """Keys are services."""

    name: ClassVar[str] = "endpoints-controller"
    client_name: ClassVar[str] = "endpoint-controller"
    component: ClassVar[str] = MANAGER
    watches: ClassVar[tuple[str, ...]] = ("services", "pods", "endpoints")
    own: ClassVar[str] = "endpoints"

    def started(self) -> None:
        super().started()
        self._times = TriggerTimes()

    def keys_of_own(self, event_type: str, obj: Object) -> Iterable[Key]:
        metadata = obj["metadata"]
        return (Key(metadata["namespace"], metadata["name"]),) if event_type == "DELETED" else ()

    def sync(self, key: Key, service: Object | None) -> None:
        if service is None:
            self._times.forget(*key)
            if self.cache.get("endpoints", key.namespace, key.name) is not None:
                self.client.delete("endpoints", key.name, namespace=key.namespace)
            return
        if service["spec"].get("type") == "ExternalName" or service["spec"].get("selector") is None:
            return
        pods = self.pods_of(service)
        since = self._times.observe(service, pods)
        self._write(service, self.cache.get("endpoints", key.namespace, key.name), _subsets(service, pods), since)

    def _write(self, service: Object, current: Object | None, subsets: list[Object], since: str | None) -> None:
        labels = dict(service["metadata"].get("labels") or {})
        if is_headless(service):
            labels[HEADLESS] = ""
        else:
            labels.pop(HEADLESS, None)
        labels[MANAGED_BY] = MANAGER
        metadata = (
            dict(current["metadata"])
            if current is not None
            else {"name": service["metadata"]["name"], "namespace": service["metadata"]["namespace"]}
        )
        truncated = _truncated(subsets)
        annotations = {
            name: value for name, value in (metadata.get("annotations") or {}).items() if name not in (LAST_CHANGE, OVER_CAPACITY)
        }
        if truncated != subsets:
            annotations[OVER_CAPACITY] = "truncated"
        if (
            current is not None
            and repack(current.get("subsets") or ()) == truncated
            and metadata.get("labels") == labels
            and ((OVER_CAPACITY in (metadata.get("annotations") or {})) == (OVER_CAPACITY in annotations))
        ):
            return
        if since is not None:
            annotations[LAST_CHANGE] = since
        made = {
            "kind": "Endpoints",
            "apiVersion": "v1",
            "subsets": truncated or None,
            "metadata": {**metadata, "labels": labels, "annotations": annotations},
        }
        try:
            if current is None:
                self.client.create(made)
            else:
                self.client.update(made)
        except ApiError as error:
            self._failed(service, error, created=current is None)

    def _failed(self, service: Object, error: ApiError, *, created: bool) -> None:
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        causes = (error.status.get("details") or {}).get("causes") or ()
        if created and any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
            return
        about = {"kind": "Endpoints", "apiVersion": "v1", "name": name}
        if created:
            message = f"Failed to create endpoint for service {namespace}/{name}: {error}"
            self.recorder.event(about, "Warning", "FailedToCreateEndpoint", message)
        else:
            message = f"Failed to update endpoint {namespace}/{name}: {error}"
            self.recorder.event({**about, "namespace": namespace}, "Warning", "FailedToUpdateEndpoint", message)
        if error.code != 422:  # what is invalid stays so until something changes
            raise error


def _subsets(service: Object, pods: Iterable[Object]) -> list[Object]:
    spec = service["spec"]
    publish = bool(spec.get("publishNotReadyAddresses"))
    subsets = []
    for pod in pods:
        if not is_endpoint(pod, terminating=publish):
            continue
        address = _address(service, pod)
        if address is None:
            continue
        field = "addresses" if publish or is_ready(pod) else "notReadyAddresses"
        if not spec.get("ports"):
            if spec.get("clusterIP") == "None":
                subsets.append({field: [address]})
            continue
        subsets += [
            {field: [address], "ports": [{name: value for name, value in port.items() if value != ""}]}
            for port in endpoint_ports(service, pod)
        ]
    return repack(subsets)


def _address(service: Mapping[str, Any], pod: Mapping[str, Any]) -> Object | None:
    families = service["spec"].get("ipFamilies") or ()
    version = 6 if "IPv6" in families[:1] else 4
    for one in pod["status"].get("podIPs") or ():
        found = ip_address(one["ip"])
        if found.version == version:
            metadata = pod["metadata"]
            reference = {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
            made = {"ip": str(found), "nodeName": pod["spec"].get("nodeName") or "", "targetRef": reference}
            return made | ({"hostname": pod["spec"]["hostname"]} if has_hostname(pod, service) else {})
    return None


def _truncated(subsets: list[Object]) -> list[Object]:
    """At most a thousand addresses, the ready ones first, shared out among the subsets by their sizes."""
    ready = sum(len(one.get("addresses") or ()) for one in subsets)
    others = sum(len(one.get("notReadyAddresses") or ()) for one in subsets)
    if ready + others <= MAX_CAPACITY:
        return subsets
    field, total, left = (
        ("addresses", ready, MAX_CAPACITY) if ready > MAX_CAPACITY else ("notReadyAddresses", others, MAX_CAPACITY - ready)
    )
    room = left
    made = []
    for subset in subsets:
        count = len(subset.get(field) or ())
        share = min(-(-count * left // total), room)
        room -= share
        cut = {name: value for name, value in subset.items() if name != "notReadyAddresses" or field != "addresses"}
        cut[field] = (subset.get(field) or [])[:share]
        made.append({name: value for name, value in cut.items() if value})
    return made

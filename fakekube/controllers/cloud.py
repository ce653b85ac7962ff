"""The controllers of a cloud provider and of an ingress add-on. They assign addresses, on which nothing listens.

`IngressController` handles Ingresses without a class, with a class that does not exist, and with a class whose controller is
`fakekube.dev/ingress-controller`. Other Ingresses are left to their own controllers.

`ServiceLoadBalancerController` assigns spec.loadBalancerIP, or a free address of 172.18.255.0/24, to Services of type
LoadBalancer. Services with a loadBalancerClass are left to other controllers.

Specified by: k8s.io/api/networking/v1/types.go (IngressClass), k8s.io/cloud-provider/controllers/service/controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar, Final

from fakekube.apis.well_known import ANNOTATION_INGRESS_CLASS
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.reconciler import Key, Reconciler

CONTROLLER: Final = "fakekube.dev/ingress-controller"
ADDRESS: Final = "172.18.254.1"
INGRESSES: Final = "ingresses.networking.k8s.io"
CLASSES: Final = "ingressclasses.networking.k8s.io"


class IngressController(Reconciler):
    """Writes the load balancer status; keys are Ingresses."""

    name: ClassVar[str] = "ingress-controller"
    program: ClassVar[str] = "ingress-controller"
    watches: ClassVar[tuple[str, ...]] = (INGRESSES, CLASSES)

    def on_start(self) -> None:
        for ingress in self.cache.list(INGRESSES):
            self.enqueue(Key(ingress["metadata"]["namespace"], ingress["metadata"]["name"]))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if event_type == "DELETED":
            return ()
        if resource == INGRESSES:
            return (Key(obj["metadata"]["namespace"], obj["metadata"]["name"]),)
        return [
            Key(one["metadata"]["namespace"], one["metadata"]["name"])
            for one in self.cache.list(INGRESSES)
            if _class_name(one) == obj["metadata"]["name"]
        ]

    def reconcile(self, key: Key) -> None:
        ingress = self.cache.get(INGRESSES, key.namespace, key.name)
        if ingress is None or "deletionTimestamp" in ingress["metadata"] or not self._is_handled(ingress):
            return
        balancer = (ingress.get("status") or {}).get("loadBalancer") or {}
        if not balancer.get("ingress"):
            status = {"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}}
            self.client.patch(INGRESSES, key.name, status, namespace=key.namespace, subresource="status")

    def _is_handled(self, ingress: Object) -> bool:
        name = _class_name(ingress)
        found = self.cache.get(CLASSES, "", name) if name else None
        return found is None or found["spec"].get("controller") == CONTROLLER


def _class_name(ingress: Object) -> str:
    annotations = ingress["metadata"].get("annotations") or {}
    return ingress["spec"].get("ingressClassName") or annotations.get(ANNOTATION_INGRESS_CLASS) or ""


FINALIZER: Final = "service.kubernetes.io/load-balancer-cleanup"
ADDRESSES: Final = {"IPv4": ip_network("172.18.255.0/24"), "IPv6": ip_network("fd00:172:18:255::/112")}


def wants_load_balancer(service: StoredObject) -> bool:
    """Reports whether this controller assigns an address to the Service."""
    return service["spec"].get("type") == "LoadBalancer" and not service["spec"].get("loadBalancerClass")


def ingress_addresses(service: Object) -> list[str]:
    """Returns the addresses in its status."""
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    return [one["ip"] for one in balancer.get("ingress") or () if "ip" in one]


class ServiceLoadBalancerController(Reconciler):
    """Writes the load balancer status; keys are Services."""

    name: ClassVar[str] = "service-lb-controller"
    program: ClassVar[str] = "cloud-controller-manager"
    client_name: ClassVar[str] = "service-controller"
    component: ClassVar[str] = "service-controller"
    watches: ClassVar[tuple[str, ...]] = ("services",)

    def on_start(self) -> None:
        for service in self.cache.list("services"):
            self.enqueue(Key(service["metadata"]["namespace"], service["metadata"]["name"]))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        handled = wants_load_balancer(obj) or FINALIZER in (obj["metadata"].get("finalizers") or ())
        if event_type == "DELETED" or not handled:
            return ()
        return (Key(obj["metadata"]["namespace"], obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        service = self.cache.get("services", key.namespace, key.name)
        if service is None:
            return
        has_finalizer = FINALIZER in (service["metadata"].get("finalizers") or ())
        if "deletionTimestamp" in service["metadata"] or not wants_load_balancer(service):
            if has_finalizer:
                self._delete_load_balancer(service)
            return
        families = service["spec"].get("ipFamilies") or ["IPv4"]
        if has_finalizer and len(ingress_addresses(service)) == len(families):
            return
        self._ensure_load_balancer(service, families)

    def _ensure_load_balancer(self, service: Object, families: Iterable[str]) -> None:
        self.recorder.event(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
        finalizers = service["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            self._patch_service(service, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
        used = {address for one in self.cache.list("services") for address in ingress_addresses(one)}
        ingress = [{"ip": self._choose_address(service, family, used), "ipMode": "VIP"} for family in families]
        self._patch_service(service, {"status": {"loadBalancer": {"ingress": ingress}}}, subresource="status")
        self.recorder.event(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")

    @staticmethod
    def _choose_address(service: Object, family: str, used: set[str]) -> str:
        requested = service["spec"].get("loadBalancerIP")
        if requested and f"IPv{ip_address(requested).version}" == family:
            return str(requested)
        network = ADDRESSES[family]
        return next((str(one) for one in network.hosts() if str(one) not in used), str(network[1]))

    def _delete_load_balancer(self, service: Object) -> None:
        self.recorder.event(service, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
        if ingress_addresses(service):
            self._patch_service(service, {"status": {"loadBalancer": None}}, subresource="status")
        finalizers = [one for one in service["metadata"]["finalizers"] if one != FINALIZER]
        self._patch_service(service, {"metadata": {"finalizers": finalizers or None}})
        self.recorder.event(service, "Normal", "DeletedLoadBalancer", "Deleted load balancer")

    def _patch_service(self, service: Object, patch: dict[str, Any], subresource: str = "") -> None:
        metadata = service["metadata"]
        self.client.patch("services", metadata["name"], patch, namespace=metadata["namespace"], subresource=subresource)

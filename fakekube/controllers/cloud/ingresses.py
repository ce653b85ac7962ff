"""Assigns an address to Ingresses.

It handles Ingresses without a class, with a class that does not exist, and with a class whose controller is
`fakekube.dev/ingress-controller`. Other Ingresses are left to their own controllers.

Specified by: k8s.io/api/networking/v1/types.go (IngressClass).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["CONTROLLER", "IngressController"]

CONTROLLER: Final = "fakekube.dev/ingress-controller"
ADDRESS: Final = "172.18.254.1"
INGRESSES: Final = "ingresses.networking.k8s.io"
CLASSES: Final = "ingressclasses.networking.k8s.io"
CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"


class IngressController(Reconciler):
    """Writes the load balancer status; keys are Ingresses."""

    name: ClassVar[str] = "ingress-controller"
    program: ClassVar[str] = "ingress-controller"
    watches: ClassVar[tuple[str, ...]] = (INGRESSES, CLASSES)

    def started(self) -> None:
        for ingress in self.cache.list(INGRESSES):
            self.enqueue(Key(ingress["metadata"]["namespace"], ingress["metadata"]["name"]))

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
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
    return ingress["spec"].get("ingressClassName") or annotations.get(CLASS_ANNOTATION) or ""

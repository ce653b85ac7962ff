"""The base class of the controllers that write endpoints of Services: events of Services and pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from fakekube.controllers.endpoints.pod_endpoints import endpoint_fields, selects
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["ServiceReconciler"]


class ServiceReconciler(Reconciler):
    """A controller whose keys are Services.

    A key is synced when all keys have been processed that were queued before it, because pods often change together.
    """

    managed: ClassVar[str] = ""
    """The resource that the controller writes."""

    def started(self) -> None:
        self._deferred: set[Key] = set()
        for service in self.cache.list("services"):
            if service["spec"].get("selector") is not None:
                self.enqueue(_key(service))

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        if resource != "pods" or old is None:
            return True
        if obj is old:
            return True
        return obj["metadata"].get("labels") != old["metadata"].get("labels") or endpoint_fields(obj) != endpoint_fields(old)

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource == "services":
            return (_key(obj),)
        if resource == self.managed:
            return self.keys_of_managed(event_type, obj)
        if resource == "nodes":
            return self.keys_of_node(event_type, obj, old)
        return self.keys_of_pod(obj, old)

    def keys_of_pod(self, obj: Object, old: Object | None) -> Iterable[Key]:
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
            _key(service)
            for service in self.cache.list("services", metadata["namespace"])
            if any(selects(service, one) for one in labels)
        ]

    def keys_of_managed(self, event_type: str, obj: Object) -> Iterable[Key]:
        """Returns the keys of the Services that a change of a managed object concerns."""
        raise NotImplementedError

    def keys_of_node(self, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
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


def _key(service: Object) -> Key:
    return Key(service["metadata"]["namespace"], service["metadata"]["name"])

"""What the two controllers of services' endpoints share: which services a change concerns, and one look for many changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from fakekube.controllers.endpoints.membership import fingerprint, selects
from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["ServiceReconciler"]


class ServiceReconciler(Reconciler):
    """Keys are services. A service is looked at when what was in the queue before it is done: pods often change together."""

    own: ClassVar[str] = ""
    """The resource that is kept."""

    def started(self) -> None:
        self._put_off: set[Key] = set()
        for service in self.cache.list("services"):
            if service["spec"].get("selector") is not None:
                self.enqueue(_key(service))

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        if resource != "pods" or old is None:
            return True
        if obj is old:
            return True
        return obj["metadata"].get("labels") != old["metadata"].get("labels") or fingerprint(obj) != fingerprint(old)

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource == "services":
            return (_key(obj),)
        if resource == self.own:
            return self.keys_of_own(event_type, obj)
        if resource == "nodes":
            return self.keys_of_node(event_type, obj, old)
        return self._of_pod(obj, old)

    def _of_pod(self, obj: Object, old: Object | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        labels = [metadata.get("labels")]
        if old is not None:
            if old["metadata"].get("labels") == labels[0]:
                if fingerprint(old) == fingerprint(obj):
                    return ()
            else:
                labels.append(old["metadata"].get("labels"))
        return [
            _key(service)
            for service in self.cache.list("services", metadata["namespace"])
            if any(selects(service, one) for one in labels)
        ]

    def keys_of_own(self, event_type: str, obj: Object) -> Iterable[Key]:
        """Services that a change of what is kept concerns."""
        raise NotImplementedError

    def keys_of_node(self, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        """Services that a change of a node concerns."""
        return ()

    def reconcile(self, key: Key) -> None:
        if key not in self._put_off:
            self._put_off.add(key)
            self.enqueue(key)
            return
        self._put_off.discard(key)
        self.sync(key, self.cache.get("services", key.namespace, key.name))

    def sync(self, key: Key, service: Object | None) -> None:
        """Bring what is kept to what it should be; `service` is None if it is gone."""
        raise NotImplementedError

    def pods_of(self, service: Object) -> list[Object]:
        """The pods that the service selects."""
        pods = self.cache.list("pods", service["metadata"]["namespace"])
        return [pod for pod in pods if selects(service, pod["metadata"].get("labels"))]


def _key(service: Object) -> Key:
    return Key(service["metadata"]["namespace"], service["metadata"]["name"])

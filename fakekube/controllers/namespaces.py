"""A namespace that is being deleted is emptied, then let go.

All objects of all namespaced resources are deleted; what remains (finalizers, grace) is told in the namespace's conditions
and watched; when nothing remains the finalizer `kubernetes` is taken off, and the namespace ends.

Specified by: pkg/controller/namespace/deletion/{namespaced_resources_deleter,status_condition_utils}.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fakekube.client import ApiError
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.registry.resource import Resource

__all__ = ["NamespaceController"]

FINALIZER = "kubernetes"


@dataclass(slots=True)
class Remaining:
    """What is still in a namespace: instances by resource, and finalizers on them."""

    resources: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)


class NamespaceController(Reconciler):
    """Empties and ends namespaces."""

    name = "namespace-controller"
    watches = ("namespaces",)

    def __init__(self) -> None:
        self._terminating: set[str] = set()

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource != "namespaces":
            namespace = metadata["namespace"]
            return (Key("", namespace),) if namespace in self._terminating else ()
        if event_type == "DELETED":
            self._terminating.discard(metadata["name"])
            return ()
        return (Key("", metadata["name"]),) if "deletionTimestamp" in metadata else ()

    def reconcile(self, key: Key) -> None:
        namespace = self.client.get("namespaces", key.name)
        if "deletionTimestamp" not in namespace["metadata"] or FINALIZER not in namespace["spec"].get("finalizers", ()):
            return
        self._terminating.add(key.name)
        remaining = self._empty(key.name)
        self._tell(namespace, remaining)
        if not remaining.resources:
            self._let_go(self.client.get("namespaces", key.name))

    def _empty(self, namespace: str) -> Remaining:
        remaining = Remaining()
        for resource in self.client.namespaced_resources():
            if not {"list", "deletecollection"} <= resource.verbs:
                continue
            items = self._items(resource, namespace)
            if not items:
                continue
            self.also_watch(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)
            self.client.call("DELETE", self.client.path(resource, namespace))
            for item in self._items(resource, namespace):
                remaining.resources[f"{resource.plural}.{resource.group}"] += 1
                remaining.finalizers.update(item["metadata"].get("finalizers", ()))
        return remaining

    def _items(self, resource: Resource, namespace: str) -> list[Object]:
        items: list[Object] = self.client.call("GET", self.client.path(resource, namespace))["items"]
        return items

    def _tell(self, namespace: Object, remaining: Remaining) -> None:
        """Bring the conditions up to date."""
        status = namespace.get("status", {})
        old = {condition["type"]: condition for condition in status.get("conditions", ())}
        new = [_merged(old.get(condition["type"]), condition, self.client.now()) for condition in _conditions(remaining)]
        if new == status.get("conditions"):
            return
        changed = {**namespace, "status": {**status, "conditions": new}}
        try:
            self.client.update(changed, subresource="status")
        except ApiError as error:
            if error.reason != "Conflict":
                raise

    def _let_go(self, namespace: Object) -> None:
        kept = [name for name in namespace["spec"].get("finalizers", ()) if name != FINALIZER]
        self.client.update({**namespace, "spec": {"finalizers": kept}}, subresource="finalize")


def _conditions(remaining: Remaining) -> list[dict[str, str]]:
    content = finalizers = ""
    if remaining.resources:
        parts = [f"{name} has {count} resource instances" for name, count in sorted(remaining.resources.items())]
        content = f"Some resources are remaining: {', '.join(parts)}"
    if remaining.finalizers:
        parts = [f"{name} in {count} resource instances" for name, count in sorted(remaining.finalizers.items())]
        finalizers = f"Some content in the namespace has finalizers remaining: {', '.join(parts)}"
    return [
        _condition("NamespaceDeletionDiscoveryFailure", "", "", "ResourcesDiscovered", "All resources successfully discovered"),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure", "", "", "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        _condition(
            "NamespaceDeletionContentFailure", "", "", "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        _condition("NamespaceContentRemaining", "SomeResourcesRemain", content, "ContentRemoved",
                   "All content successfully removed"),
        _condition("NamespaceFinalizersRemaining", "SomeFinalizersRemain", finalizers, "ContentHasNoFinalizers",
                   "All content-preserving finalizers finished"),
    ]


def _condition(kind: str, bad_reason: str, bad_message: str, good_reason: str, good_message: str) -> dict[str, str]:
    if bad_message:
        return {"type": kind, "status": "True", "reason": bad_reason, "message": bad_message}
    return {"type": kind, "status": "False", "reason": good_reason, "message": good_message}


def _merged(old: Mapping[str, str] | None, new: dict[str, str], now: str) -> dict[str, str]:
    """The condition with the time of its last change."""
    if old is not None and all(old.get(name) == value for name, value in new.items()):
        return dict(old)
    same_status = old is not None and old["status"] == new["status"]
    time = old["lastTransitionTime"] if old is not None and same_status else now
    return {"type": new["type"], "status": new["status"], "lastTransitionTime": time, "reason": new["reason"],
            "message": new["message"]}

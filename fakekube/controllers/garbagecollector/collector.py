"""Deletes what has no owner left, orphans what is to live on, and lets go of owners whose dependents have gone.

An object is looked at when it names new owners, when one of its owners goes, or when it waits for its dependents. Its
owners are solid (they are there), dangling (they are not, or under another uid), or they wait for their dependents:

* some are solid: the references to all others are taken off;
* one waits, and the object has dependents itself: it is deleted in the foreground;
* else it is deleted, by the policy that its finalizers ask for, in the background without one.

References to kinds that are not served are looked at again when more is served.

Specified by: pkg/controller/garbagecollector/{garbagecollector,operations,patch}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from fakekube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiError
from fakekube.controllers.garbagecollector.graph import (
    FOREGROUND,
    ORPHAN,
    Action,
    Graph,
    Node,
    Reference,
    has_finalizer,
    is_blocking,
)
from fakekube.controllers.informers import ADDED, DELETED
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.registry.resource import Resource

__all__ = ["GarbageCollector"]

#: Not monitored: they come and go in numbers and own nothing.
IGNORED = frozenset({"events", "events.events.k8s.io"})
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class State(Enum):
    """How an owner is, as a dependent sees it."""

    SOLID = auto()
    DANGLING = auto()
    WAITING = auto()


class UnservedKind(Exception):
    """A reference names a kind that is not served."""


class NamespacedOwner(Exception):
    """A cluster-scoped object refers to a namespaced owner: nothing can be said of that."""


class GarbageCollector(Reconciler):
    """See the module. Keys are an action of the graph and the uid of the object that it is for."""

    name = "garbage-collector-controller"
    client_name = "generic-garbage-collector"
    watches = ()

    def __init__(self) -> None:
        self._graph = Graph()
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._unserved: set[str] = set()
        """Objects with references to kinds that are not served."""
        self._foreign: dict[str, set[str]] = {}
        """Objects with new references to owners that are in another namespace, and the uids of those."""
        self._gone: set[str] = set()
        """Owners that were deleted while they had dependents; kept only with a grace period."""

    def started(self) -> None:
        self.resources_changed()

    def resources_changed(self) -> None:
        self._kinds = {(resource.api_version, resource.kind): resource for resource in self.context.registry}
        for resource in self.context.registry:
            name = resource.group_resource
            if {"delete", "list", "watch"} <= resource.verbs and name not in IGNORED:
                self.also_watch(name)
        for uid in self._unserved:
            self.enqueue(Key(Action.DELETE, uid))
        self._unserved.clear()

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        metadata = obj["metadata"]
        return obj is old or "ownerReferences" in metadata or "finalizers" in metadata or resource == DEFINITIONS

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if event_type == ADDED and "ownerReferences" in obj["metadata"]:
            self._notice_foreign_owners(obj)
        grace, uid = self.context.deletion_grace, obj["metadata"]["uid"]
        if grace and event_type == DELETED and self._graph.dependents(uid):
            self._gone.add(uid)
        keys = [Key(action, uid) for action, uid in self._graph.observe(event_type, resource, obj, old)]
        if not grace:
            return keys
        for key in keys:
            self.requeue_after(key, grace)
        return ()

    def reconcile(self, key: Key) -> None:
        node = self._graph.node(key.name)
        if node is None:
            return
        if key.namespace == Action.ORPHAN:
            self._orphan_dependents(node)
            return
        self._report_foreign_owners(node)
        try:
            self._attempt_to_delete(node)
        except UnservedKind:
            self._unserved.add(node.uid)
        except NamespacedOwner:
            return

    # ------------------------------------------------------------ looking at one object

    def _attempt_to_delete(self, node: Node) -> None:
        if node.being_deleted and not node.deleting_dependents:
            return
        latest = self._object(node)
        if latest is None:
            return
        if node.deleting_dependents:
            self._process_deleting_dependents(node)
            return
        references = latest["metadata"].get("ownerReferences") or ()
        states = {reference["uid"]: self._state(reference, node) for reference in references}
        if not references:
            return
        if State.SOLID in states.values():
            gone = [uid for uid, state in states.items() if state is not State.SOLID]
            if gone:
                self._remove_references(node, gone)
        elif State.WAITING in states.values() and self._graph.dependents(node.uid):
            if any(dependent.deleting_dependents for dependent in self._graph.dependents(node.uid)):
                self._unblock_references(node)  # a circle: nobody would go first
                latest = self._object(node, live=True) or latest
            self._delete(node, latest, "Foreground")
        else:
            self._delete(node, latest, _policy_of(latest))

    def _process_deleting_dependents(self, node: Node) -> None:
        blocking = self._graph.blocking_dependents(node.uid)
        if not blocking:
            self._remove_finalizer(node, FOREGROUND)
        for dependent in list(blocking.values()):
            if not dependent.deleting_dependents and not dependent.being_deleted:
                self.enqueue(Key(Action.DELETE, dependent.uid))

    def _state(self, reference: Reference, node: Node) -> State:
        resource = self._kinds.get((reference["apiVersion"], reference["kind"]))
        if resource is None:
            raise UnservedKind
        if resource.namespaced and not node.namespace:
            raise NamespacedOwner
        namespace = node.namespace if resource.namespaced else ""
        owner = self._get(resource, namespace, reference["name"])
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            return State.SOLID if self.context.deletion_grace and reference["uid"] not in self._gone else State.DANGLING
        waits = "deletionTimestamp" in owner["metadata"] and has_finalizer(owner, FOREGROUND)
        return State.WAITING if waits else State.SOLID

    def _get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """An owner: from the cache, which knows of everything that was there when its dependent was written."""
        informer = resource.group_resource
        if informer not in IGNORED and "watch" in resource.verbs:
            return self.cache.get(informer, namespace, name)
        try:
            return self.client.call("GET", self.client.path(resource, namespace, name))
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    # ------------------------------------------------------------ writes

    def _orphan_dependents(self, owner: Node) -> None:
        for dependent in self._graph.dependents(owner.uid):
            try:
                self._remove_references(dependent, [owner.uid])
            except ApiError as error:
                if error.code != 404:
                    raise
        self._remove_finalizer(owner, ORPHAN)

    def _remove_references(self, node: Node, owners: Sequence[str]) -> None:
        patch = [{"$patch": "delete", "uid": uid} for uid in owners]
        self._patch_references(node, patch, lambda reference: None if reference["uid"] in owners else reference)

    def _unblock_references(self, node: Node) -> None:
        patch = [{**reference, "blockOwnerDeletion": False} for reference in node.references if is_blocking(reference)]
        self._patch_references(node, patch, lambda reference: {**reference, "blockOwnerDeletion": False})

    def _patch_references(self, node: Node, strategic: list[dict[str, Any]], change: Any) -> None:
        """By a strategic merge patch where there is one, else by a merge patch of the whole list."""
        resource = self.client.resource(node.resource)
        metadata: dict[str, Any] = {"uid": node.uid, "ownerReferences": strategic}
        media_type = STRATEGIC_MERGE_PATCH
        if resource.custom:
            latest = self._object(node, live=True)
            if latest is None:
                return
            changed = map(change, latest["metadata"].get("ownerReferences") or ())
            metadata = {
                "resourceVersion": latest["metadata"]["resourceVersion"],
                "ownerReferences": [reference for reference in changed if reference is not None] or None,
            }
            media_type = MERGE_PATCH
        self.client.call("PATCH", self._path(node), {"metadata": metadata}, content_type=media_type)

    def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        latest = self._object(node, live=True)
        if latest is None or not has_finalizer(latest, finalizer):
            return
        metadata = latest["metadata"]
        kept = [name for name in metadata["finalizers"] if name != finalizer]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": kept or None}}
        self.client.call("PATCH", self._path(node), patch, content_type=MERGE_PATCH)

    def _delete(self, node: Node, latest: Object, policy: str) -> None:
        """Delete the object if its owners are still those that were looked at."""
        preconditions = {"uid": node.uid, "resourceVersion": latest["metadata"]["resourceVersion"]}
        options = {"preconditions": preconditions, "propagationPolicy": policy}
        try:
            self.client.call("DELETE", self._path(node), options)
        except ApiError as error:
            if error.reason != "Conflict":
                raise
            now = self._object(node, live=True)
            if now is None or now["metadata"].get("ownerReferences") != latest["metadata"].get("ownerReferences"):
                raise
            options = {"preconditions": {"uid": node.uid}, "propagationPolicy": policy}
            self.client.call("DELETE", self._path(node), options)

    def _object(self, node: Node, *, live: bool = False) -> Object | None:
        """The object of a node; None if it has gone."""
        if live:
            try:
                found: Object | None = self.client.call("GET", self._path(node))
            except ApiError as error:
                if error.code != 404:
                    raise
                return None
        else:
            found = self.cache.get(node.resource, node.namespace, node.name)
        return found if found is not None and found["metadata"]["uid"] == node.uid else None

    def _path(self, node: Node) -> str:
        return self.client.path(self.client.resource(node.resource), node.namespace, node.name)

    # ------------------------------------------------------------ owners in other namespaces

    def _notice_foreign_owners(self, obj: Object) -> None:
        """Note down the references to objects that are there, but in another namespace."""
        metadata = obj["metadata"]
        for reference in metadata["ownerReferences"]:
            resource = self._kinds.get((reference["apiVersion"], reference["kind"]))
            if resource is None or not resource.namespaced or resource.group_resource in IGNORED:
                continue
            here = self.cache.get(resource.group_resource, metadata.get("namespace", ""), reference["name"])
            if here is None and self._is_elsewhere(resource, reference):
                self._foreign.setdefault(metadata["uid"], set()).add(reference["uid"])

    def _is_elsewhere(self, resource: Resource, reference: Reference) -> bool:
        return any(
            owner["metadata"]["uid"] == reference["uid"]
            for owner in self.cache.by_name(resource.group_resource, reference["name"])
        )

    def _report_foreign_owners(self, node: Node) -> None:
        owners = self._foreign.pop(node.uid, ())
        latest = self._object(node) if owners else None
        if latest is None:
            return
        subject = {"kind": latest["kind"], "apiVersion": latest["apiVersion"], "name": node.name, "uid": node.uid}
        if node.namespace:
            subject["namespace"] = node.namespace
        for reference in node.references:
            if reference["uid"] in owners:
                where = f"does not exist in namespace {_quoted(node.namespace)}"
                self.recorder.event(subject, "Warning", "OwnerRefInvalidNamespace", f"ownerRef {_text(reference, node)} {where}")


def _policy_of(obj: Mapping[str, Any]) -> str:
    """How an object is deleted whose finalizers say how its dependents fare."""
    if has_finalizer(obj, ORPHAN):
        return "Orphan"
    return "Foreground" if has_finalizer(obj, FOREGROUND) else "Background"


def _text(reference: Reference, node: Node) -> str:
    """A reference, as objectReference prints itself."""
    kind = f"{reference['apiVersion']}/{reference['kind']}"
    return f"[{kind}, namespace: {node.namespace}, name: {reference['name']}, uid: {reference['uid']}]"


def _quoted(text: str) -> str:
    return f'"{text}"'

"""The garbage collector: deletes objects whose owners do not exist any more.

The graph holds which objects depend on which, from the changes of all resources. It contains only objects with owner references,
and objects that are being deleted and wait for their dependents; other owners need not be known before they are deleted.
`GarbageCollector` deletes objects, orphans dependents and removes finalizers through the API.

Invariant: `Graph.dependents` is the inverse of the owner references of all existing objects.

An object is processed when it gets new owner references, when one of its owners is deleted, or when it waits for its
dependents. An owner is solid (it exists), dangling (it does not exist, or has another uid), or waiting for its dependents:

* If an owner is solid, the references to all others are removed.
* Else, if an owner is waiting and the object has dependents itself, the object is deleted in the foreground.
* Else it is deleted with the policy of its finalizers, by default in the background.

Objects with references to kinds that are not served are processed again when the set of served resources changes.

Specified by: pkg/controller/garbagecollector/{garbagecollector,operations,patch}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any, Final

from fakekube.apimachinery.patch import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from fakekube.apis.rest.resource import Resource
from fakekube.apis.validation.objectmeta import DELETE_DEPENDENTS, ORPHAN_DEPENDENTS
from fakekube.base.caches import BoundedCache
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.informers import ADDED, DELETED
from fakekube.controllers.reconciler import Key, Reconciler

Reference = Mapping[str, Any]


class Action(StrEnum):
    """What to do with a node: the work queue of the real controller."""

    DELETE = "attempt-to-delete"
    ORPHAN = "attempt-to-orphan"


@dataclass(slots=True, eq=False)
class Node:
    """An object in the graph."""

    resource: str
    namespace: str
    name: str
    uid: str
    references: Sequence[Reference] = ()
    being_deleted: bool = False
    """Whether it has a deletionTimestamp."""
    deleting_dependents: bool = False
    """Whether it is being deleted in the foreground, with the finalizer foregroundDeletion."""


@dataclass(slots=True)
class _Dependents:
    """The dependents of one owner, by uid."""

    all: dict[str, Node] = field(default_factory=dict)
    blocking: dict[str, Node] = field(default_factory=dict)
    """The dependents that block the deletion of the owner in the foreground."""


#: What an owner without dependents has; it stays empty.
_NONE: Final = _Dependents()


def is_blocking(reference: Reference) -> bool:
    """Reports whether the dependent blocks the owner's deletion in the foreground."""
    return bool(reference.get("blockOwnerDeletion"))


def has_finalizer(obj: StoredObject, finalizer: str) -> bool:
    """Reports whether the object has this finalizer."""
    return finalizer in (obj["metadata"].get("finalizers") or ())


class Graph:
    """The dependency graph (GraphBuilder)."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, _Dependents] = {}

    def node(self, uid: str) -> Node | None:
        """Returns the node of an object; None if the graph does not contain it."""
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[Node]:
        """Returns the objects that refer to this owner."""
        return list(self._dependents.get(uid, _NONE).all.values())

    def blocking_dependents(self, uid: str) -> Mapping[str, Node]:
        """Returns the dependents that block the owner's deletion in the foreground."""
        return self._dependents.get(uid, _NONE).blocking

    def process_change(
        self, change: str, resource: str, obj: StoredObject, old: StoredObject | None
    ) -> Iterator[tuple[str, str]]:
        """Applies a change of an object. Yields the actions to take, each with the uid of its object (processGraphChanges)."""
        uid: str = obj["metadata"]["uid"]
        if change == DELETED:
            yield from self._remove_node(uid)
            return
        yield from self._update_node(resource, obj)
        if _starts_deletion(obj, old, ORPHAN_DEPENDENTS):
            self._ensure_node(resource, obj)
            yield Action.ORPHAN, uid
        elif _starts_deletion(obj, old, DELETE_DEPENDENTS):
            self._ensure_node(resource, obj).deleting_dependents = True
            for dependent in self.dependents(uid):
                yield Action.DELETE, dependent.uid
            yield Action.DELETE, uid

    def add(self, resource: str, obj: StoredObject) -> None:
        """Adds an object for which there is nothing to do."""
        for _ in self._update_node(resource, obj):
            pass

    # --- Changes ------------------------------------------------------------------------------------------------------

    def _update_node(self, resource: str, obj: StoredObject) -> Iterator[tuple[str, str]]:
        """Updates the references. Yields the node if it has new ones, and owners that it no longer blocks."""
        metadata = obj["metadata"]
        references: Sequence[Reference] = metadata.get("ownerReferences") or ()
        node = self._nodes.get(metadata["uid"])
        if node is None and not references:
            return
        node = node or self._ensure_node(resource, obj)
        node.being_deleted = "deletionTimestamp" in metadata
        if node.references is references or node.references == references:
            return
        before = {reference["uid"]: reference for reference in node.references}
        after = {reference["uid"]: reference for reference in references}
        node.references = references
        for uid, reference in before.items():
            now = after.get(uid)
            if now is None:
                self._remove_dependent(uid, node)
            if is_blocking(reference) and (now is None or not is_blocking(now)):
                self._dependents.get(uid, _NONE).blocking.pop(node.uid, None)
                yield Action.DELETE, uid
        for uid, reference in after.items():
            self._add_dependent(uid, node, blocking=is_blocking(reference))
            if before.get(uid) != reference:
                yield Action.DELETE, node.uid

    def _remove_node(self, uid: str) -> Iterator[tuple[str, str]]:
        """Removes a deleted object. Yields its dependents, and its owners that wait for it."""
        node = self._nodes.pop(uid, None)
        for dependent in self.dependents(uid):
            yield Action.DELETE, dependent.uid
        for reference in node.references if node is not None else ():
            self._remove_dependent(reference["uid"], node)
            owner = self._nodes.get(reference["uid"])
            if owner is not None and owner.deleting_dependents:
                yield Action.DELETE, owner.uid

    def _ensure_node(self, resource: str, obj: StoredObject) -> Node:
        metadata = obj["metadata"]
        node = self._nodes.get(metadata["uid"])
        if node is None:
            node = Node(resource, metadata.get("namespace", ""), metadata["name"], metadata["uid"])
            node.being_deleted = "deletionTimestamp" in metadata
            self._nodes[node.uid] = node
        return node

    def _add_dependent(self, owner: str, node: Node, *, blocking: bool) -> None:
        dependents = self._dependents.setdefault(owner, _Dependents())
        dependents.all[node.uid] = node
        if blocking:
            dependents.blocking[node.uid] = node

    def _remove_dependent(self, owner: str, node: Node | None) -> None:
        dependents = self._dependents.get(owner)
        if dependents is None or node is None:
            return
        dependents.all.pop(node.uid, None)
        dependents.blocking.pop(node.uid, None)
        if not dependents.all:
            del self._dependents[owner]


def _starts_deletion(obj: StoredObject, old: StoredObject | None, finalizer: str) -> bool:
    """Reports whether this change starts the deletion with this finalizer."""
    if "deletionTimestamp" not in obj["metadata"] or not has_finalizer(obj, finalizer):
        return False
    return old is None or "deletionTimestamp" not in old["metadata"] or not has_finalizer(old, finalizer)


#: Resources that are not monitored (DefaultIgnoredResources): there are many of them, and they own nothing.
IGNORED: Final = frozenset({"events", "events.events.k8s.io"})
#: The size of the cache of absent owners in NewGarbageCollector.
_MAX_ABSENT_OWNERS: Final = 500
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"


class OwnerState(Enum):
    """The state of an owner (classifyReferences)."""

    SOLID = auto()
    DANGLING = auto()
    WAITING = auto()


class UnservedKind(Exception):
    """An owner reference has a kind that is not served."""


class NamespacedOwner(Exception):
    """A cluster-scoped object refers to an owner of a namespaced kind, so that it cannot be found."""


class GarbageCollector(Reconciler):
    """Processes the graph. A key consists of an action of the graph and the uid of an object."""

    name = "garbage-collector-controller"
    client_name = "generic-garbage-collector"
    watches = ()

    def __init__(self) -> None:
        self._graph = Graph()
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._unserved: set[str] = set()
        """The uids of objects with references to kinds that are not served."""
        self._foreign: dict[str, set[str]] = {}
        """Object → the uids of owners in new references that are in another namespace."""
        self._deleted_owners: set[str] = set()
        """The uids of owners that were deleted while they had dependents. It is filled only with a deletion grace."""
        self._absent_owners: BoundedCache[tuple[str, str, str, str], bool] = BoundedCache(_MAX_ABSENT_OWNERS)
        """By resource, namespace, name and uid."""

    def on_start(self) -> None:
        settled_at = self.context.settled_at
        if settled_at is not None:  # the changes until then are not sent
            for name in self._monitored_resources():
                for obj in self.cache.list(name):
                    if int(obj["metadata"]["resourceVersion"]) <= settled_at:
                        self._graph.add(name, obj)
        self.on_resources_changed()

    def _monitored_resources(self) -> list[str]:
        resources = (one for one in self.context.registry if {"delete", "list", "watch"} <= one.verbs)
        return [one.group_resource for one in resources if one.group_resource not in IGNORED]

    def on_resources_changed(self) -> None:
        self._kinds = {(resource.api_version, resource.kind): resource for resource in self.context.registry}
        for name in self._monitored_resources():
            self.also_watch(name)
        for uid in self._unserved:
            self.enqueue(Key(Action.DELETE, uid))
        self._unserved.clear()

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        metadata = obj["metadata"]
        return obj is old or "ownerReferences" in metadata or "finalizers" in metadata or resource == DEFINITIONS

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if event_type == ADDED and "ownerReferences" in obj["metadata"]:
            self._record_foreign_owners(obj)
        grace, uid = self.context.deletion_grace, obj["metadata"]["uid"]
        if grace and event_type == DELETED and self._graph.dependents(uid):
            self._deleted_owners.add(uid)
        keys = [Key(action, uid) for action, uid in self._graph.process_change(event_type, resource, obj, old)]
        if not grace:
            return keys
        for key in keys:
            self.requeue_after(key, grace)
        return ()

    def reconcile(self, key: Key) -> None:
        node = self._graph.node(key.name)
        if node is None:
            self._foreign.pop(key.name, None)
            return
        if key.namespace == Action.ORPHAN:
            self._attempt_to_orphan(node)
            return
        self._report_foreign_owners(node)
        try:
            self._attempt_to_delete_item(node)
        except UnservedKind:
            self._unserved.add(node.uid)
        except NamespacedOwner:
            return

    # --- attemptToDelete ----------------------------------------------------------------------------------------------

    def _attempt_to_delete_item(self, node: Node) -> None:
        """Deletes an object, or its references to absent owners, by the states of its owners.

        Raises UnservedKind, NamespacedOwner and ApiError.
        """
        if node.being_deleted and not node.deleting_dependents:
            return
        latest = self._get_object(node)
        if latest is None:
            return
        if node.deleting_dependents:
            self._process_deleting_dependents(node)
            return
        references = latest["metadata"].get("ownerReferences") or ()
        states = {reference["uid"]: self._classify_reference(reference, node) for reference in references}
        if not references:
            return
        if OwnerState.SOLID in states.values():
            others = [uid for uid, state in states.items() if state is not OwnerState.SOLID]
            if others:
                self._delete_owner_references(node, others)
        elif OwnerState.WAITING in states.values() and self._graph.dependents(node.uid):
            if any(dependent.deleting_dependents for dependent in self._graph.dependents(node.uid)):
                self._unblock_owner_references(node)  # because a cycle of owners would block itself
                latest = self._get_object(node, live=True) or latest
            self._delete_object(node, latest, "Foreground")
        else:
            self._delete_object(node, latest, _policy_of(latest))

    def _process_deleting_dependents(self, node: Node) -> None:
        """Removes the finalizer of an owner if no dependent blocks it, else has those deleted."""
        blocking = self._graph.blocking_dependents(node.uid)
        if not blocking:
            self._remove_finalizer(node, DELETE_DEPENDENTS)
        for dependent in list(blocking.values()):
            if not dependent.deleting_dependents and not dependent.being_deleted:
                self.enqueue(Key(Action.DELETE, dependent.uid))

    def _classify_reference(self, reference: Reference, node: Node) -> OwnerState:
        """Returns the state of an owner. Raises UnservedKind, NamespacedOwner and ApiError."""
        resource = self._kinds.get((reference["apiVersion"], reference["kind"]))
        if resource is None:
            raise UnservedKind
        if resource.namespaced and not node.namespace:
            raise NamespacedOwner
        namespace = node.namespace if resource.namespaced else ""
        owner = self._get_owner(resource, namespace, reference)
        if owner is None:
            never_existed = bool(self.context.deletion_grace) and reference["uid"] not in self._deleted_owners
            return OwnerState.SOLID if never_existed else OwnerState.DANGLING
        waits = "deletionTimestamp" in owner["metadata"] and has_finalizer(owner, DELETE_DEPENDENTS)
        return OwnerState.WAITING if waits else OwnerState.SOLID

    def _get_owner(self, resource: Resource, namespace: str, reference: Reference) -> Object | None:
        """Returns the owner with the uid of a reference; None if it is absent.

        The cache may not contain it yet: another client can read the owner, and write the dependent, before the write of the
        owner has returned. Therefore the API server says which owners are absent, once for each of them (absentOwnerCache).
        """
        informer, name, uid = resource.group_resource, reference["name"], reference["uid"]
        if informer not in IGNORED and "watch" in resource.verbs:
            owner = self.cache.get(informer, namespace, name)
            if owner is not None and owner["metadata"]["uid"] == uid:
                return owner
        identity = informer, namespace, name, uid
        if identity in self._absent_owners:
            return None
        owner = self._read_object(self.client.path(resource, namespace, name))
        if owner is None or owner["metadata"]["uid"] != uid:
            self._absent_owners.add(identity, True)
            return None
        return owner

    # --- Writes -------------------------------------------------------------------------------------------------------

    def _attempt_to_orphan(self, owner: Node) -> None:
        for dependent in self._graph.dependents(owner.uid):
            try:
                self._delete_owner_references(dependent, [owner.uid])
            except ApiError as error:
                if error.code != 404:
                    raise
        self._remove_finalizer(owner, ORPHAN_DEPENDENTS)

    def _delete_owner_references(self, node: Node, owners: Sequence[str]) -> None:
        patch = [{"$patch": "delete", "uid": uid} for uid in owners]
        self._patch_references(node, patch, lambda reference: None if reference["uid"] in owners else reference)

    def _unblock_owner_references(self, node: Node) -> None:
        patch = [{**reference, "blockOwnerDeletion": False} for reference in node.references if is_blocking(reference)]
        self._patch_references(node, patch, lambda reference: {**reference, "blockOwnerDeletion": False})

    def _patch_references(self, node: Node, strategic: list[Object], change: Callable[[Reference], Reference | None]) -> None:
        """Patches owner references: with a strategic merge patch, or for custom resources with a merge patch of the list.

        Args:
            node: the object.
            strategic: the items of the strategic merge patch.
            change: returns the reference in place of one; None removes it.
        """
        resource = self.client.resource(node.resource)
        metadata: Object = {"uid": node.uid, "ownerReferences": strategic}
        media_type = STRATEGIC_MERGE_PATCH
        if resource.custom:
            latest = self._get_object(node, live=True)
            if latest is None:
                return
            changed = map(change, latest["metadata"].get("ownerReferences") or ())
            metadata = {
                "resourceVersion": latest["metadata"]["resourceVersion"],
                "ownerReferences": [reference for reference in changed if reference is not None] or None,
            }
            media_type = MERGE_PATCH
        self.client.call("PATCH", self._path_of_node(node), {"metadata": metadata}, content_type=media_type)

    def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        latest = self._get_object(node, live=True)
        if latest is None or not has_finalizer(latest, finalizer):
            return
        metadata = latest["metadata"]
        kept = [name for name in metadata["finalizers"] if name != finalizer]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": kept or None}}
        self.client.call("PATCH", self._path_of_node(node), patch, content_type=MERGE_PATCH)

    def _delete_object(self, node: Node, latest: Object, policy: str) -> None:
        """Deletes the object, if its owner references are still the ones that were classified."""
        preconditions = {"uid": node.uid, "resourceVersion": latest["metadata"]["resourceVersion"]}
        options = {"preconditions": preconditions, "propagationPolicy": policy}
        try:
            self.client.call("DELETE", self._path_of_node(node), options)
        except ApiError as error:
            if error.reason != "Conflict":
                raise
            now = self._get_object(node, live=True)
            if now is None or now["metadata"].get("ownerReferences") != latest["metadata"].get("ownerReferences"):
                raise
            options = {"preconditions": {"uid": node.uid}, "propagationPolicy": policy}
            self.client.call("DELETE", self._path_of_node(node), options)

    def _get_object(self, node: Node, *, live: bool = False) -> Object | None:
        """Returns the object of a node; None if it does not exist.

        Args:
            live: reads the object from the API server, not from the cache.
        """
        found = self._read_object(self._path_of_node(node)) if live else self.cache.get(node.resource, node.namespace, node.name)
        return found if found is not None and found["metadata"]["uid"] == node.uid else None

    def _read_object(self, path: str) -> Object | None:
        """Returns an object from the API server; None if it does not exist. Raises ApiError."""
        try:
            return self.client.call("GET", path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def _path_of_node(self, node: Node) -> str:
        return self.client.path(self.client.resource(node.resource), node.namespace, node.name)

    # --- Owners in other namespaces -----------------------------------------------------------------------------------

    def _record_foreign_owners(self, obj: StoredObject) -> None:
        """Stores the references to owners that exist in another namespace, for an event."""
        metadata = obj["metadata"]
        for reference in metadata["ownerReferences"]:
            resource = self._kinds.get((reference["apiVersion"], reference["kind"]))
            if resource is None or not resource.namespaced or resource.group_resource in IGNORED:
                continue
            here = self.cache.get(resource.group_resource, metadata.get("namespace", ""), reference["name"])
            if here is None and self._is_in_another_namespace(resource, reference):
                self._foreign.setdefault(metadata["uid"], set()).add(reference["uid"])

    def _is_in_another_namespace(self, resource: Resource, reference: Reference) -> bool:
        return any(
            owner["metadata"]["uid"] == reference["uid"]
            for owner in self.cache.by_name(resource.group_resource, reference["name"])
        )

    def _report_foreign_owners(self, node: Node) -> None:
        owners = self._foreign.pop(node.uid, ())
        latest = self._get_object(node) if owners else None
        if latest is None:
            return
        subject = {"kind": latest["kind"], "apiVersion": latest["apiVersion"], "name": node.name, "uid": node.uid}
        if node.namespace:
            subject["namespace"] = node.namespace
        for reference in node.references:
            if reference["uid"] in owners:
                text = f'ownerRef {_object_reference(reference, node)} does not exist in namespace "{node.namespace}"'
                self.recorder.event(subject, "Warning", "OwnerRefInvalidNamespace", text)


def _policy_of(obj: Mapping[str, Any]) -> str:
    """Returns the propagation policy that the object's finalizers stand for."""
    if has_finalizer(obj, ORPHAN_DEPENDENTS):
        return "Orphan"
    return "Foreground" if has_finalizer(obj, DELETE_DEPENDENTS) else "Background"


def _object_reference(reference: Reference, node: Node) -> str:
    """Formats an owner reference as objectReference.String does."""
    kind = f"{reference['apiVersion']}/{reference['kind']}"
    return f"[{kind}, namespace: {node.namespace}, name: {reference['name']}, uid: {reference['uid']}]"

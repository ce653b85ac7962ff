"""The dependency graph: which objects depend on which owners, and which owners wait for their dependents.

It is built from the changes of all resources. It contains only objects with owner references, and objects that are being deleted
and wait for their dependents. Other owners need not be known before they are deleted.

Invariant: `dependents` is the inverse of the owner references of all existing objects.

Specified by: pkg/controller/garbagecollector/{graph,graph_builder}.go. The real one may learn of a dependent before its owner,
and has virtual nodes for such owners. Here changes are received in order: an owner that is not in the cache does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apis.validation.objectmeta import DELETE_DEPENDENTS, ORPHAN_DEPENDENTS
from fakekube.controllers.informers import DELETED
from fakekube.controllers.objects import StoredObject

__all__ = ["Action", "Graph", "Node", "has_finalizer", "is_blocking"]

Reference = Mapping[str, Any]


class Action:
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
    deleting_dependents: bool = False
    """Whether it is being deleted in the foreground, with the finalizer foregroundDeletion."""


@dataclass(slots=True)
class _Dependents:
    """The dependents of one owner, by uid."""

    all: dict[str, Node] = field(default_factory=dict)
    blocking: dict[str, Node] = field(default_factory=dict)
    """The dependents that block the deletion of the owner in the foreground."""


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

    # ------------------------------------------------------------ changes

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

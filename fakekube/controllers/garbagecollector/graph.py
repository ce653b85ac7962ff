"""Which objects depend on which owners, and which owners wait for their dependents.

The graph is made from the changes of all resources. It holds only objects that name owners, and objects that are being
deleted and wait for their dependents: an owner without owners need not be known before something happens to it.

Invariant: `dependents` is the inverse of the references of all objects that are there.

Specified by: pkg/controller/garbagecollector/graph_builder.go. That one learns of owners later than of dependents, and
keeps virtual nodes meanwhile; here every write is known in order, so that an owner that is not there has never been, or
has gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fakekube.controllers.informers import DELETED

__all__ = ["FOREGROUND", "ORPHAN", "Action", "Graph", "Node", "has_finalizer", "is_blocking"]

Object = Mapping[str, Any]
Reference = Mapping[str, Any]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Action:
    """What is to be done about a node."""

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
    """It waits for its dependents, with the finalizer foregroundDeletion."""


@dataclass(slots=True)
class _Dependents:
    """The dependents of one owner, by uid."""

    all: dict[str, Node] = field(default_factory=dict)
    blocking: dict[str, Node] = field(default_factory=dict)
    """Those that the owner waits for when it is deleted in the foreground."""


_NONE = _Dependents()


def is_blocking(reference: Reference) -> bool:
    """Does the owner's deletion in the foreground wait for the dependent?"""
    return bool(reference.get("blockOwnerDeletion"))


def has_finalizer(obj: Object, finalizer: str) -> bool:
    """Is this among the object's finalizers?"""
    return finalizer in (obj["metadata"].get("finalizers") or ())


class Graph:
    """See the module."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, _Dependents] = {}

    def node(self, uid: str) -> Node | None:
        """The node of an object; None if it has neither owners nor waits for dependents."""
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[Node]:
        """The objects that name this owner."""
        return list(self._dependents.get(uid, _NONE).all.values())

    def blocking_dependents(self, uid: str) -> Mapping[str, Node]:
        """Those for which the owner waits."""
        return self._dependents.get(uid, _NONE).blocking

    def observe(self, change: str, resource: str, obj: Object, old: Object | None) -> Iterator[tuple[str, str]]:
        """Take a change of an object in. Yields what is to be done now: an action and the uid of the object it is for."""
        uid: str = obj["metadata"]["uid"]
        if change == DELETED:
            yield from self._remove(uid)
            return
        yield from self._update(resource, obj)
        if _deletion_begins(obj, old, ORPHAN):
            self._ensure(resource, obj)
            yield Action.ORPHAN, uid
        elif _deletion_begins(obj, old, FOREGROUND):
            self._ensure(resource, obj).deleting_dependents = True
            for dependent in self.dependents(uid):
                yield Action.DELETE, dependent.uid
            yield Action.DELETE, uid

    # ------------------------------------------------------------ changes

    def _update(self, resource: str, obj: Object) -> Iterator[tuple[str, str]]:
        """Take over the references. Yields the node if it has new ones, and owners that need not wait for it any more."""
        metadata = obj["metadata"]
        references: Sequence[Reference] = metadata.get("ownerReferences") or ()
        node = self._nodes.get(metadata["uid"])
        if node is None and not references:
            return
        node = node or self._ensure(resource, obj)
        node.being_deleted = "deletionTimestamp" in metadata
        if node.references is references or node.references == references:
            return
        before = {reference["uid"]: reference for reference in node.references}
        after = {reference["uid"]: reference for reference in references}
        node.references = references
        for uid, reference in before.items():
            now = after.get(uid)
            if now is None:
                self._disconnect(uid, node)
            if is_blocking(reference) and (now is None or not is_blocking(now)):
                self._dependents.get(uid, _NONE).blocking.pop(node.uid, None)
                yield Action.DELETE, uid
        for uid, reference in after.items():
            self._connect(uid, node, blocking=is_blocking(reference))
            if before.get(uid) != reference:
                yield Action.DELETE, node.uid

    def _remove(self, uid: str) -> Iterator[tuple[str, str]]:
        """Yields the dependents of the object, and its owners that wait for it."""
        node = self._nodes.pop(uid, None)
        for dependent in self.dependents(uid):
            yield Action.DELETE, dependent.uid
        for reference in node.references if node is not None else ():
            self._disconnect(reference["uid"], node)
            owner = self._nodes.get(reference["uid"])
            if owner is not None and owner.deleting_dependents:
                yield Action.DELETE, owner.uid

    def _ensure(self, resource: str, obj: Object) -> Node:
        metadata = obj["metadata"]
        node = self._nodes.get(metadata["uid"])
        if node is None:
            node = Node(resource, metadata.get("namespace", ""), metadata["name"], metadata["uid"])
            node.being_deleted = "deletionTimestamp" in metadata
            self._nodes[node.uid] = node
        return node

    def _connect(self, owner: str, node: Node, *, blocking: bool) -> None:
        dependents = self._dependents.setdefault(owner, _Dependents())
        dependents.all[node.uid] = node
        if blocking:
            dependents.blocking[node.uid] = node

    def _disconnect(self, owner: str, node: Node | None) -> None:
        dependents = self._dependents.get(owner)
        if dependents is None or node is None:
            return
        dependents.all.pop(node.uid, None)
        dependents.blocking.pop(node.uid, None)
        if not dependents.all:
            del self._dependents[owner]


def _deletion_begins(obj: Object, old: Object | None, finalizer: str) -> bool:
    """Does the object begin to be deleted with this finalizer?"""
    if "deletionTimestamp" not in obj["metadata"] or not has_finalizer(obj, finalizer):
        return False
    return old is None or "deletionTimestamp" not in old["metadata"] or not has_finalizer(old, finalizer)

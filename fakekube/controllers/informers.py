"""What controllers know of the cluster: the objects of each resource that they watch, kept up to date from its changes.

An informer reads the changes of one resource as a watch delivers them, without encoding and decoding them: the objects
are the stored ones, so that a cache of thousands costs little memory. A `Cache` is the set of informers of a cluster,
each made when it is first needed.

Invariant: between two calls of `catch_up`, `objects` is what the resource held at one revision. Objects are shared with
the store and never changed.

Specified by: k8s.io/client-go/tools/cache (Reflector, SharedInformer, Indexer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fakekube.client import Client
from fakekube.registry.resource import Resource
from fakekube.store import Bucket, Compacted, Cursor, Event, Record, Store, StoreError

if TYPE_CHECKING:
    from fakekube.codecs.document import Document

__all__ = ["ADDED", "DELETED", "MODIFIED", "Cache", "Change", "Informer", "controller_uid"]

Object = dict[str, Any]

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Change(NamedTuple):
    """One event of a resource."""

    type: str
    obj: Object
    """Of a deletion the last state."""
    old: Object | None
    """The object before a modification."""


def controller_uid(obj: Mapping[str, Any]) -> str | None:
    """The uid of the owner that is the object's controller (metav1.GetControllerOf)."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            uid: str = reference["uid"]
            return uid
    return None


class Informer:
    """The objects of one resource. One owner at a time; empty before `open`."""

    def __init__(self, name: str, resource: Resource, bucket: Bucket[Document]) -> None:
        self.name = name
        self.resource = resource
        self._bucket = bucket
        self._cursor: Cursor[Document] | None = None
        self._kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        self._objects: dict[str, dict[str, Object]] = {}
        self._by_owner: dict[str, dict[tuple[str, str], Object]] | None = None

    # ------------------------------------------------------------ reads

    def get(self, namespace: str, name: str) -> Object | None:
        """One object, or None."""
        return self._objects.get(namespace, {}).get(name)

    def objects(self, namespace: str = "") -> Iterable[Object]:
        """Those of one namespace, or (without one) all."""
        if namespace:
            return list(self._objects.get(namespace, {}).values())
        return [obj for objects in self._objects.values() for obj in objects.values()]

    def named(self, name: str) -> Iterable[Object]:
        """The objects of that name in all namespaces."""
        return [objects[name] for objects in self._objects.values() if name in objects]

    def owned_by(self, uid: str) -> Iterable[Object]:
        """The objects whose controller has this uid."""
        if self._by_owner is None:
            self._by_owner = {}
            for obj in self.objects():
                self._index(obj)
        return list(self._by_owner.get(uid, {}).values())

    def orphans(self, namespace: str) -> Iterable[Object]:
        """The objects of a namespace that have no controller."""
        return self.owned_by(_orphan_key(namespace))

    # ------------------------------------------------------------ following

    def open(self, settled_at: int | None) -> list[Change]:
        """Begin to follow. Returns the changes since a revision, or, if that is not known any more, all objects as added."""
        if settled_at is not None:
            try:
                page = self._bucket.page(revision=settled_at)
                self._cursor = self._bucket.cursor(settled_at)
            except StoreError:
                self._cursor = None
            else:
                for record in page.records:
                    self._put(self._shown(record))
                return self.catch_up()
        return self._relist()

    def catch_up(self) -> list[Change]:
        """The changes since the last time."""
        if self._cursor is not None:
            try:
                return [self._apply(event) for event in self._cursor.take()]
            except Compacted:
                self._cursor = None
        return self._relist()

    def _relist(self) -> list[Change]:
        """The difference between what is known and what is there."""
        page = self._bucket.page()
        try:
            self._cursor = self._bucket.cursor(page.revision)
        except Compacted:  # meanwhile: the next call looks at everything again
            self._cursor = None
        new = {self._place(shown): shown for shown in map(self._shown, page.records)}
        gone = [obj for obj in self.objects() if self._place(obj) not in new]
        for obj in gone:
            self._drop(obj)
        changes = [Change(DELETED, obj, None) for obj in gone]
        for (namespace, name), obj in new.items():
            old = self.get(namespace, name)
            if old is None or old["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._put(obj)
                changes.append(Change(ADDED, obj, None) if old is None else Change(MODIFIED, obj, old))
        return changes

    def _apply(self, event: Event[Document]) -> Change:
        record = event.record
        if record is None:
            assert event.previous is not None
            last = self._shown(event.previous)
            self._drop(last)
            return Change(DELETED, last, None)
        obj = self._shown(record)
        old = self.get(*self._place(obj))
        self._put(obj)
        return Change(ADDED, obj, None) if event.previous is None or old is None else Change(MODIFIED, obj, old)

    def _shown(self, record: Record[Document]) -> Object:
        """A stored object in the version of this informer, with its kind."""
        resource, obj = self.resource, record.value.object
        if resource.custom:
            return obj
        if resource.from_storage is not None:
            obj = resource.from_storage(obj)
        return {**self._kind, **obj}

    # ------------------------------------------------------------ indexes

    @staticmethod
    def _place(obj: Object) -> tuple[str, str]:
        metadata = obj["metadata"]
        return metadata.get("namespace", ""), metadata["name"]

    def _put(self, obj: Object) -> None:
        namespace, name = self._place(obj)
        if self._by_owner is not None:
            self._unindex(self.get(namespace, name))
            self._index(obj)
        self._objects.setdefault(namespace, {})[name] = obj

    def _drop(self, obj: Object) -> None:
        namespace, name = self._place(obj)
        objects = self._objects.get(namespace, {})
        if self._by_owner is not None:
            self._unindex(objects.get(name))
        objects.pop(name, None)
        if not objects:
            self._objects.pop(namespace, None)

    def _index(self, obj: Object) -> None:
        if self._by_owner is not None:
            self._by_owner.setdefault(self._owner_key(obj), {})[self._place(obj)] = obj

    def _unindex(self, obj: Object | None) -> None:
        if obj is None or self._by_owner is None:
            return
        key = self._owner_key(obj)
        owned = self._by_owner.get(key, {})
        owned.pop(self._place(obj), None)
        if not owned:
            self._by_owner.pop(key, None)

    @staticmethod
    def _owner_key(obj: Object) -> str:
        return controller_uid(obj) or _orphan_key(obj["metadata"].get("namespace", ""))


def _orphan_key(namespace: str) -> str:
    """What objects without a controller are indexed under: no uid looks like this."""
    return f"/{namespace}"


class Cache:
    """The informers of a cluster; controllers read it, the manager keeps it up to date.

    Args:
        client: finds resources by their names.
        store: of the cluster.
        opened: called with the name of an informer that a read has made, and its first changes.
    """

    def __init__(self, client: Client, store: Store[Document], opened: Callable[[Informer], None]) -> None:
        self._client = client
        self._store = store
        self._opened = opened
        self._informers: dict[str, Informer] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._informers

    def __iter__(self) -> Iterator[Informer]:
        return iter(list(self._informers.values()))

    def informer(self, name: str) -> Informer:
        """The informer of a resource, made on first use. Raises UnknownResource."""
        found = self._informers.get(name)
        if found is None:
            resource = self._client.resource(name)
            found = self._informers.get(resource.group_resource)
            if found is None:
                found = Informer(resource.group_resource, resource, self._store.bucket(resource.bucket))
                self._informers[resource.group_resource] = found
                self._opened(found)
        return found

    def forget(self, name: str) -> None:
        """Drop the informer of a resource that is no more."""
        self._informers.pop(name, None)

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """One object, or None; never to be changed."""
        return self.informer(resource).get(namespace, name)

    def list(self, resource: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> Iterable[Object]:
        """The objects of one namespace, or (if "") of all; with `labels`, those that have all of these."""
        found = self.informer(resource).objects(namespace)
        return found if not labels else [obj for obj in found if _has_labels(obj, labels)]

    def named(self, resource: str, name: str) -> Iterable[Object]:
        """The objects of that name in all namespaces."""
        return self.informer(resource).named(name)

    def owned_by(self, resource: str, uid: str) -> Iterable[Object]:
        """The objects whose controller is the owner with this uid."""
        return self.informer(resource).owned_by(uid)

    def orphans(self, resource: str, namespace: str) -> Iterable[Object]:
        """The objects of a namespace that have no controller."""
        return self.informer(resource).orphans(namespace)


def _has_labels(obj: Object, labels: Mapping[str, str]) -> bool:
    found = obj["metadata"].get("labels") or {}
    return labels.items() <= found.items()

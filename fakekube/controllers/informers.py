"""Informers: the objects of each resource that controllers watch, kept up to date from the changes of the store.

An informer receives the changes of one resource as a watch delivers them, but does not encode and decode them: it holds the
stored objects themselves, so that a cache of thousands of objects needs little memory. A `Cache` holds the informers of a
cluster; each is made when it is first needed.

Invariant: between two calls of `catch_up`, `objects` is the content of the resource at one revision. Objects are shared with
the store and never changed.

Specified by: k8s.io/client-go/tools/cache (reflector.go, shared_informer.go, thread_safe_store.go);
k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fakekube.apis.rest.resource import Resource
from fakekube.base.objects import Object
from fakekube.controllers.client import Client
from fakekube.store import Bucket, Compacted, Cursor, Event, Record, Store, StoreError

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document


# --- References to controllers ----------------------------------------------------------------------------------------


def get_controller_of(obj: Mapping[str, Any]) -> Object | None:
    """Returns the owner reference with `controller: true`, or None (metav1.GetControllerOf)."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference  # type: ignore[no-any-return]
    return None


def is_controlled_by(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Reports whether the owner is the controller of the object (metav1.IsControlledBy)."""
    reference = get_controller_of(obj)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def new_controller_ref(owner: Object) -> Object:
    """Returns an owner reference that makes the owner the controller of an object (metav1.NewControllerRef)."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Change(NamedTuple):
    """One event of a resource."""

    type: str
    """ADDED, MODIFIED or DELETED."""
    obj: Object
    """The object, after a deletion its last state."""
    old: Object | None
    """The object before a modification, else None."""


class Informer:
    """The objects of one resource, indexed by namespace, name and controller. It is empty before `open`.

    One thread at a time uses it.

    Args:
        name: the resource, named as in `Reconciler.watches`.
        resource: the resource in the version that controllers use.
        bucket: has its objects.
    """

    def __init__(self, name: str, resource: Resource, bucket: Bucket[Document]) -> None:
        self.name = name
        self.resource = resource
        self._bucket = bucket
        self._cursor: Cursor[Document] | None = None
        self._kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        self._objects: dict[str, dict[str, Object]] = {}
        self._by_owner: dict[str, dict[tuple[str, str], Object]] | None = None

    # --- Reads --------------------------------------------------------------------------------------------------------

    def get(self, namespace: str, name: str) -> Object | None:
        """Returns one object, or None."""
        return self._objects.get(namespace, {}).get(name)

    def objects(self, namespace: str = "") -> Sequence[Object]:
        """Returns the objects of one namespace, or of all for ""."""
        if namespace:
            return list(self._objects.get(namespace, {}).values())
        return [obj for objects in self._objects.values() for obj in objects.values()]

    def by_name(self, name: str) -> Sequence[Object]:
        """Returns the objects of that name in all namespaces."""
        return [objects[name] for objects in self._objects.values() if name in objects]

    def creation_revision(self, namespace: str, name: str) -> int | None:
        """Returns the revision at which an object was created; None if it does not exist any more."""
        record = self._bucket.get(f"{namespace}/{name}" if self.resource.namespaced else name)
        return None if record is None else record.created

    def dependents_of(self, uid: str) -> Sequence[Object]:
        """Returns the objects whose controller has this uid."""
        if self._by_owner is None:
            self._by_owner = {}
            for obj in self.objects():
                self._index_by_owner(obj)
        return list(self._by_owner.get(uid, {}).values())

    def orphans(self, namespace: str) -> Sequence[Object]:
        """Returns the objects of a namespace that have no controller."""
        return self.dependents_of(_orphan_key(namespace))

    # --- Changes ------------------------------------------------------------------------------------------------------

    def open(self, settled_at: int | None) -> list[Change]:
        """Starts to follow the resource.

        Args:
            settled_at: the revision from which on changes are wanted.

        Returns:
            the changes since that revision. If it is None or compacted, all objects as added ones.
        """
        if settled_at is not None:
            try:
                page = self._bucket.page(revision=settled_at)
                self._cursor = self._bucket.cursor(settled_at)
            except StoreError:
                self._cursor = None
            else:
                for record in page.records:
                    self._put_object(self._decode_record(record))
                return self.catch_up()
        return self._list_again()

    def deletions_since(self, revision: int) -> list[Change]:
        """Returns the deletions since a revision; none if they are compacted."""
        try:
            events = self._bucket.cursor(revision).take()
        except StoreError:
            return []
        return [
            Change(DELETED, self._decode_record(event.previous), None)
            for event in events
            if event.record is None and event.previous is not None
        ]

    def catch_up(self) -> list[Change]:
        """Returns the changes since the last call."""
        if self._cursor is not None:
            try:
                return [self._apply_event(event) for event in self._cursor.take()]
            except Compacted:
                self._cursor = None
        return self._list_again()

    def _list_again(self) -> list[Change]:
        """Lists the resource, and returns the differences to the known objects."""
        page = self._bucket.page()
        try:
            self._cursor = self._bucket.cursor(page.revision)
        except Compacted:  # since the list; the next call lists again
            self._cursor = None
        new = {self._namespaced_name(obj): obj for obj in map(self._decode_record, page.records)}
        gone = [obj for obj in self.objects() if self._namespaced_name(obj) not in new]
        for obj in gone:
            self._delete_object(obj)
        changes = [Change(DELETED, obj, None) for obj in gone]
        for (namespace, name), obj in new.items():
            old = self.get(namespace, name)
            if old is None or old["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._put_object(obj)
                changes.append(Change(ADDED, obj, None) if old is None else Change(MODIFIED, obj, old))
        return changes

    def _apply_event(self, event: Event[Document]) -> Change:
        record = event.record
        if record is None:
            assert event.previous is not None
            last = self._decode_record(event.previous)
            self._delete_object(last)
            return Change(DELETED, last, None)
        obj = self._decode_record(record)
        old = self.get(*self._namespaced_name(obj))
        self._put_object(obj)
        return Change(ADDED, obj, None) if event.previous is None or old is None else Change(MODIFIED, obj, old)

    def _decode_record(self, record: Record[Document]) -> Object:
        """Returns a stored object in the version of this informer, with kind and apiVersion."""
        resource, obj = self.resource, record.value.object
        if resource.custom:
            return obj
        if resource.from_storage is not None:
            obj = resource.from_storage(obj)
        return {**self._kind, **obj}

    # --- Indexes ------------------------------------------------------------------------------------------------------

    @staticmethod
    def _namespaced_name(obj: Object) -> tuple[str, str]:
        metadata = obj["metadata"]
        return metadata.get("namespace", ""), metadata["name"]

    def _put_object(self, obj: Object) -> None:
        namespace, name = self._namespaced_name(obj)
        if self._by_owner is not None:
            self._remove_from_index(self.get(namespace, name))
            self._index_by_owner(obj)
        self._objects.setdefault(namespace, {})[name] = obj

    def _delete_object(self, obj: Object) -> None:
        namespace, name = self._namespaced_name(obj)
        objects = self._objects.get(namespace, {})
        if self._by_owner is not None:
            self._remove_from_index(objects.get(name))
        objects.pop(name, None)
        if not objects:
            self._objects.pop(namespace, None)

    def _index_by_owner(self, obj: Object) -> None:
        if self._by_owner is not None:
            self._by_owner.setdefault(self._owner_key(obj), {})[self._namespaced_name(obj)] = obj

    def _remove_from_index(self, obj: Object | None) -> None:
        if obj is None or self._by_owner is None:
            return
        key = self._owner_key(obj)
        owned = self._by_owner.get(key, {})
        owned.pop(self._namespaced_name(obj), None)
        if not owned:
            self._by_owner.pop(key, None)

    @staticmethod
    def _owner_key(obj: Object) -> str:
        reference = get_controller_of(obj)
        return _orphan_key(obj["metadata"].get("namespace", "")) if reference is None else str(reference["uid"])


def _orphan_key(namespace: str) -> str:
    """Returns the index key of objects without a controller, which no uid equals."""
    return f"/{namespace}"


class Cache:
    """The informers of a cluster (SharedInformerFactory): controllers read it, the dispatcher keeps it up to date.

    Args:
        client: finds resources by their names.
        store: the store of the cluster.
        opened: called with each new informer.
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
        """Returns the informer of a resource, which the first call makes. Raises UnknownResource."""
        found = self._informers.get(name)
        if found is None:
            resource = self._client.resource(name)
            found = self._informers.get(resource.group_resource)
            if found is None:
                found = Informer(resource.group_resource, resource, self._store.bucket(resource.bucket))
                resource.is_in_use = True
                self._informers[resource.group_resource] = found
                self._opened(found)
        return found

    def remove(self, name: str) -> None:
        """Removes the informer of a resource that is no longer served."""
        self._informers.pop(name, None)

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """Returns one object, or None. It must not be changed."""
        return self.informer(resource).get(namespace, name)

    def list(self, resource: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> Sequence[Object]:
        """Returns the objects of one namespace, or of all for ""; with `labels`, those that have all these labels."""
        found = self.informer(resource).objects(namespace)
        return found if not labels else [obj for obj in found if _has_labels(obj, labels)]

    def by_name(self, resource: str, name: str) -> Sequence[Object]:
        """Returns the objects of that name in all namespaces."""
        return self.informer(resource).by_name(name)

    def dependents_of(self, resource: str, uid: str) -> Sequence[Object]:
        """Returns the objects whose controller is the owner with this uid."""
        return self.informer(resource).dependents_of(uid)

    def orphans(self, resource: str, namespace: str) -> Sequence[Object]:
        """Returns the objects of a namespace that have no controller."""
        return self.informer(resource).orphans(namespace)


def _has_labels(obj: Object, labels: Mapping[str, str]) -> bool:
    found = obj["metadata"].get("labels") or {}
    return labels.items() <= found.items()

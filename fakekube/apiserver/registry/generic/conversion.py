"""Converts objects between the version of a request and the storage version.

Only a few built-in kinds (events, autoscalers, devices, certificate requests of pods) and custom resources with several versions
need a conversion; for all others it is the identity and costs nothing.

The real server has a watch cache for every version of a definition. It converts each change once, soon after it was made;
watches and lists get the converted objects, and while the conversion webhook fails they get no new ones. `Conversions` is that
part of the watch cache: its own thread converts the changes of a bucket in order, retries failed conversions with an exponential
backoff, and ends when there is nothing left to do.

Invariants: every change up to `position` is converted; at most one thread converts and at most one timer waits, however many
changes arrive while the webhook fails.

Specified by: k8s.io/apiserver/pkg/storage/cacher (reflector and its backoff), pkg/storage/etcd3/watcher.go (transform).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.registry.scope import Backend
from fakekube.base.objects import Object, StoredObject
from fakekube.store import Bucket, Compacted, Cursor, Event, Record


def to_storage(resource: Resource, obj: Object) -> Object:
    """Returns the object in the storage version."""
    return resource.to_storage(obj) if resource.to_storage else obj


def from_storage(resource: Resource, obj: Object) -> Object:
    """Returns a stored object in this version."""
    return resource.from_storage(obj) if resource.from_storage else obj


#: The gate with which an object that cannot be decoded is a corrupt one.
CORRUPT_OBJECTS: Final = "AllowUnsafeMalformedObjectDeletion"


class UndecodableError(StatusError):
    """A stored object cannot be converted; the message is that of a write (`corrupt_objects` has those of reads)."""

    def __init__(self, resource: Resource, document: Document, problem: str) -> None:
        self.problem = problem
        if resource.emulation.enabled(CORRUPT_OBJECTS):
            problem = f"object not decodable revision={document.tree['metadata'].get('resourceVersion', '0')}: {problem}"
        super().__init__(500, "", problem)


#: What is cached of a document that is the same in this version, as most custom resources are. A packed document keeps it.
_UNCHANGED: Final = ("unchanged",)


def to_version(resource: Resource, document: Document) -> Document:
    """Returns a stored document in this version, which may be the document itself; cached. Raises UndecodableError."""
    if resource.from_storage is None:
        return document
    convert = resource.from_storage

    def show(stored: StoredObject) -> Document | tuple[str]:
        obj = dict(stored)
        shown = convert(obj)
        return _UNCHANGED if shown is obj else Document(shown)

    try:
        found = document.encoding(resource.shown_key, show)
    except StatusError as error:
        raise UndecodableError(resource, document, error.message) from None
    return found if isinstance(found, Document) else document


def all_shown(resource: Resource, documents: list[Document]) -> list[Document]:
    """Returns every document in this version."""
    return documents if resource.from_storage is None else [to_version(resource, document) for document in documents]


def live_object(resource: Resource, record: Record[Document] | None) -> Object | None:
    """Returns the object of a record in the version of the resource; None without a record."""
    return None if record is None else to_version(resource, uncache(resource, record.value)).object


def uncache(resource: Resource, document: Document) -> Document:
    """Returns the stored document without cached conversions: a read or write of one object calls the webhook again."""
    return Document(document.object) if resource.converts_by_call else document


#: The backoff of failed conversions (seconds): initial, and maximum.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.8, 30.0

_creating = threading.Lock()


def start_conversions(backend: Backend, resource: Resource) -> None:
    """Starts converting the changes of all versions of a resource, once a client uses it."""
    for version in backend.registry.versions(resource.group, resource.plural):
        conversions_of(backend, version)


def conversions_of(backend: Backend, resource: Resource) -> Conversions:
    """Returns the conversions of a resource whose `converts_by_call` is true; created on first use."""
    with _creating:
        found: Conversions | None = backend.conversions.get(resource)
        if found is None:
            for unused in [known for known, conversions in backend.conversions.items() if not conversions.is_wanted()]:
                del backend.conversions[unused]
            bucket = backend.store.bucket(resource.bucket)
            found = backend.conversions[resource] = Conversions(bucket, resource, backend.registry)
    return found


class Conversions:
    """The changes of a bucket converted to one version; a `streams.Source` of their progress."""

    def __init__(self, bucket: Bucket[Document], resource: Resource, registry: Registry) -> None:
        self._bucket, self._resource, self._registry = bucket, resource, registry
        self._lock = threading.Lock()
        self._wakes: tuple[Callable[[], None], ...] = ()
        self._working = self._dirty = self._waits = False
        self._pause = _FIRST_PAUSE
        self.position = 0
        self._begin()
        bucket.subscribe(self._start_thread)
        self._start_thread()

    def _begin(self) -> None:
        """Starts with the current objects."""
        page = self._bucket.page()
        self._todo = deque((record.revision, record.value) for record in sorted(page.records, key=lambda r: r.revision))
        self._cursor = self._bucket.cursor(page.revision)
        if not self._todo:
            self.position = page.revision

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` whenever `position` has changed."""
        with self._lock:
            self._wakes = (*self._wakes, wake)
        if self._todo:  # retry what failed while there were no watches
            self._start_thread()

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Ends a subscription."""
        with self._lock:
            self._wakes = tuple(known for known in self._wakes if known != wake)

    def _start_thread(self) -> None:
        """Starts the thread if there are changes to convert or to retry; never blocks."""
        with self._lock:
            self._dirty = True
            if self._working:
                return
            self._working = True
        threading.Thread(target=self._work, name="fakekube-conversions", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._dirty:
                    self._working = False
                    return
                self._dirty = False
            if not self.is_wanted():
                self._bucket.unsubscribe(self._start_thread)
            elif not self._catch_up() and self._wakes:
                self._schedule_retry()

    def is_wanted(self) -> bool:
        """Reports whether the version is still served or watched."""
        resource = self._resource
        return bool(self._wakes) or self._registry.get(resource.group, resource.version, resource.plural) is resource

    def _schedule_retry(self) -> None:
        """Starts the timer of the next attempt, unless one is waiting."""
        with self._lock:
            if self._waits:
                return
            self._waits = True
        timer = threading.Timer(self._pause, self._retry)
        timer.daemon = True
        timer.start()
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _retry(self) -> None:
        with self._lock:
            self._waits = False
        self._start_thread()

    def _catch_up(self) -> bool:
        """Converts new changes; returns False if the webhook fails."""
        try:
            self._todo.extend((event.revision, document) for event in self._cursor.take() for document in _documents(event))
        except Compacted:  # the store was restored, or the position is no longer in the history
            self._begin()
        while self._todo:
            revision, document = self._todo[0]
            try:
                to_version(self._resource, document)
            except StatusError:
                return False
            self._todo.popleft()
            self._pause = _FIRST_PAUSE
            if self._todo and self._todo[0][0] > revision:
                self._advance(revision)
        self._advance(self._cursor.position)
        return True

    def _advance(self, revision: int) -> None:
        if revision > self.position:
            self.position = revision
            for wake in self._wakes:
                wake()


def _documents(event: Event[Document]) -> list[Document]:
    """Returns the documents of a change that watches need."""
    return [record.value for record in (event.previous, event.record) if record is not None]


class ConvertedCursor:
    """A cursor that returns only changes that are already converted."""

    def __init__(self, cursor: Cursor[Document], conversions: Conversions) -> None:
        self._cursor, self._conversions = cursor, conversions
        self._held: deque[Event[Document]] = deque()

    def take(self, limit: int = 0) -> list[Event[Document]]:
        """See `store.Cursor`."""
        if not self._held:
            self._held.extend(self._cursor.take(limit))
        ready: list[Event[Document]] = []
        while self._held and self._held[0].revision <= self._conversions.position:
            ready.append(self._held.popleft())
        return ready

    @property
    def pending(self) -> bool:
        """See `store.Cursor`."""
        return self._held[0].revision <= self._conversions.position if self._held else self._cursor.pending

    @property
    def position(self) -> int:
        """See `store.Cursor`."""
        return self._held[0].revision - 1 if self._held else self._cursor.position

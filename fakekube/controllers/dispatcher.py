"""Starts the controllers that a change concerns, and turns changes into keys in the work queue.

A controller starts when a resource changes that its descriptor lists in `starts_on`, and in a fork also when one changes that the
controller watched in the origin: its module is imported, and its watches open at the revision at which all controllers were last
idle, so that it receives every change since. All controllers of a cluster share one cache of informers.

Invariants: no controller misses a change of a resource that it watches. All informers are up to date before any controller
receives an event: a controller that handles an event of one resource reads others in its cache, which must not be older.

`WorkQueue` is the queue of the controllers of a cluster: items to process now, and items to process at a later time.

Invariant: an item is queued at most once. Times are those of the cluster's clock; of several times for one item the earliest
counts. Failures of one item in a row delay it by 5 ms, 10 ms, 20 ms … up to 1,000 s.

Specified by: k8s.io/client-go/informers/factory.go and tools/cache/shared_informer.go for the events; that controllers start late
is our own; k8s.io/client-go/util/workqueue (delaying_queue.go, default_rate_limiters.go, rate_limiting_queue.go).
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from fakekube.apis.rest.resource import Registry
from fakekube.controllers.client import UnknownResource
from fakekube.controllers.controller_descriptors import ANY_RESOURCE, ControllerDescriptor
from fakekube.controllers.informers import ADDED, DELETED, Cache, Change, Informer
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.store import Event, Store

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document

_log = logging.getLogger(__name__)


T = TypeVar("T")

#: Seconds.
BASE_DELAY: Final = 0.005
MAX_DELAY: Final = 1000.0


class WorkQueue(Generic[T]):
    """A delaying, rate-limiting queue. It is not thread-safe; all times are seconds of the clock."""

    def __init__(self) -> None:
        self._ready: deque[T] = deque()
        self._queued: set[T] = set()
        self._waiting: list[tuple[float, int, T]] = []
        self._due: dict[T, float] = {}
        self._order = itertools.count()
        self._failures: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self._ready)

    def __iter__(self) -> Iterator[T]:
        """Iterates over the items to process now, in order."""
        return iter(list(self._ready))

    def add(self, item: T) -> None:
        """Appends an item, unless it is queued already."""
        if item not in self._queued:
            self._queued.add(item)
            self._ready.append(item)

    def add_at(self, item: T, due: float) -> None:
        """Adds an item at a time, or earlier if it is added earlier by another call."""
        known = self._due.get(item)
        if known is None or due < known:
            self._due[item] = due
            heapq.heappush(self._waiting, (due, next(self._order), item))

    def get(self) -> T | None:
        """Removes and returns the next item; None if there is none."""
        if not self._ready:
            return None
        item = self._ready.popleft()
        self._queued.discard(item)
        return item

    def add_due(self, now: float) -> None:
        """Appends the delayed items whose time has come."""
        while self._waiting and self._waiting[0][0] <= now:
            due, _, item = heapq.heappop(self._waiting)
            if self._due.get(item) == due:
                del self._due[item]
                self.add(item)

    @property
    def next_due(self) -> float | None:
        """The time of the next delayed item; None if there is none."""
        while self._waiting and self._due.get(self._waiting[0][2]) != self._waiting[0][0]:
            heapq.heappop(self._waiting)  # superseded by an earlier time
        return self._waiting[0][0] if self._waiting else None

    def due_until(self, time: float) -> list[T]:
        """Returns the delayed items whose time comes until then."""
        return [item for item, due in list(self._due.items()) if due <= time]

    def waiting(self) -> list[tuple[float, T]]:
        """Returns the delayed items with their times, the next one first."""
        return sorted(((due, item) for item, due in list(self._due.items())), key=lambda one: one[0])

    def when(self, item: T) -> float:
        """Counts a failure of the item, and returns the seconds after which to retry it (RateLimiter.When)."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return min(BASE_DELAY * 2.0 ** min(failures, 32), MAX_DELAY)

    def num_requeues(self, item: T) -> int:
        """Returns how often the item has failed in a row (RateLimiter.NumRequeues)."""
        return self._failures.get(item, 0)

    def forget(self, item: T) -> None:
        """Resets the failures of an item (RateLimiter.Forget)."""
        self._failures.pop(item, None)


class Watch(NamedTuple):
    """A resource that a controller watches."""

    controller: str
    """The name of the controller."""
    resource: str
    """The resource, named as in `Reconciler.watches`."""
    bucket: str
    """The bucket of the store that has its objects."""


class Dispatcher:
    """The started controllers of one cluster, and their informers.

    All methods but `on_store_event` are called by one thread at a time.

    Args:
        store: the store of the cluster.
        registry: the resources that the cluster serves.
        descriptors: the controllers that are switched on.
        settled_at: the revision at which the controllers had nothing to do; None if that is not known.
        watches: those of the controllers of the cluster that this one is a fork of.
        prepare: sets the attributes of a new controller, but for `cache` and `also_watch`.
        enqueue: adds a key of a controller to the work queue.
    """

    def __init__(
        self,
        store: Store[Document],
        registry: Registry,
        descriptors: Sequence[ControllerDescriptor],
        settled_at: int | None,
        *,
        watches: Sequence[Watch],
        prepare: Callable[[Reconciler], None],
        enqueue: Callable[[Reconciler, Key], None],
    ) -> None:
        self._store = store
        self._registry = registry
        self._descriptors = _by_resource(tuple(descriptors))
        self._by_name = _by_name(tuple(descriptors))
        self._settled_at = settled_at
        self._watches = watches
        self._resumed: dict[str, list[ControllerDescriptor]] = {}
        """Bucket → the controllers that watched it in the origin of this fork. Any change of it starts them."""
        self._prepare = prepare
        self._enqueue = enqueue
        self._served = registry.state
        self._cache: Cache | None = None
        self._started: dict[ControllerDescriptor, Reconciler] = {}
        self._to_start: list[ControllerDescriptor] = []
        self._listeners: dict[str, list[Reconciler]] = {}
        """Resource → the controllers that receive its events."""
        self._informers: dict[str, list[Informer]] = {}
        """Bucket → the informers that follow it."""
        self._stale: set[str] = set()
        """The buckets that have changed since their informers read them."""
        for watch in watches:
            self._resumed.setdefault(watch.bucket, []).extend(self._by_name.get(watch.controller, ()))
        if settled_at is None:
            self._start_for_existing_objects()

    @property
    def pending(self) -> bool:
        """Whether a controller is to be started or an informer is to be updated."""
        return bool(self._to_start or self._stale)

    @property
    def starting(self) -> list[str]:
        """The names of the controllers that are about to start."""
        return [descriptor.name for descriptor in self._to_start]

    def watches(self) -> Sequence[Watch]:
        """Returns the watches of all controllers, those included that have not been started since the fork."""
        started = {controller.name for controller in self._started.values()}
        return (
            *(one for one in self._watches if one.controller not in started),
            *(
                Watch(controller.name, informer.name, bucket)
                for bucket, informers in self._informers.items()
                for informer in informers
                for controller in self._listeners.get(informer.name, ())
            ),
        )

    # --- Changes of the store -----------------------------------------------------------------------------------------

    def on_store_event(self, bucket: str, event: Event[Document] | None) -> bool:
        """Takes note of a change; called in the thread that writes.

        Args:
            bucket: the bucket of the store that has changed.
            event: the change; None if the whole bucket was restored from a snapshot.

        Returns:
            whether a controller must run for it now. A change that concerns no controller is read together with the next
            one that does.
        """
        if event is None:  # the history was replaced, so it is not known since when the controllers are idle
            self._settled_at = None
            obj = old = None
            is_empty = not self._store.bucket(bucket).has_keys()
        else:
            previous = event.previous.value.object if event.previous is not None else None
            obj, old = (event.record.value.object, previous) if event.record is not None else (previous, previous)
            is_empty = False
        followed = bucket in self._informers
        if followed:
            self._stale.add(bucket)
        starting = len(self._to_start)
        for descriptor in self._descriptors_for(bucket):
            if descriptor not in self._started and (descriptor.starts_for(obj) if obj is not None else not is_empty):
                self._start_soon(descriptor)
        for descriptor in self._resumed.get(bucket, ()):
            self._start_soon(descriptor)
        urgent = len(self._to_start) > starting
        if self._started and self._served is not self._registry.state:  # controllers may have to watch new resources
            return True
        if urgent or not followed:
            return urgent
        return obj is None or any(controller.concerns(bucket, obj, old) for controller in self._listeners.get(bucket, ()))

    def dispatch(self) -> None:
        """Starts the controllers that have to start, and enqueues the keys of all changes since the last call."""
        self._start_pending()
        before, self._served = self._served, self._registry.state
        if before is not self._served:
            for controller in list(self._started.values()):
                controller.client.forget_resources()
                controller.on_resources_changed()
            self._reopen_informers()
        while self._stale:
            self._update_informers()
        if before is not self._served:
            self._close_informers()

    def enqueue_for(self, name: str, key: Key, *, start: bool) -> None:
        """Adds a key for the controller of that name, if it has started; with `start`, starts it before."""
        found = self.start(name) if start else [one for one in self._started.values() if one.name == name]
        for controller in found:
            self._enqueue(controller, key)

    def start(self, name: str) -> list[Reconciler]:
        """Starts the controller of that name, if it is switched on, and returns it."""
        for descriptor in self._by_name.get(name, ()):
            self._start_controller(descriptor)
        return [one for one in self._started.values() if one.name == name]

    def _reopen_informers(self) -> None:
        """Follows the resources again that were not served for a time and that controllers still want to hear of."""
        if self._cache is None:
            return
        served = self._served_resources()
        for name in [one for one in self._listeners if one in served and one not in self._cache]:
            self._cache.informer(name)

    def _served_resources(self) -> set[str]:
        return {one.group_resource for one in self._registry}

    def _close_informers(self) -> None:
        """Drops the informers of custom resources that are no longer served, and the definitions of earlier versions."""
        if self._cache is None:
            return
        for informer in self._cache:
            resource = informer.resource
            if not resource.custom:
                continue
            now = self._registry.any_version(resource.group, resource.plural)
            if now is not None:
                informer.resource = now
                continue
            self._cache.remove(informer.name)
            followers = self._informers[resource.bucket]
            followers.remove(informer)
            if not followers:
                del self._informers[resource.bucket]

    def _update_informers(self) -> None:
        found: list[tuple[Informer, Sequence[Change]]] = []
        while self._stale:
            found += [(informer, informer.catch_up()) for informer in self._informers.get(self._stale.pop(), ())]
        for informer, changes in found:
            self._start_for_changes(informer.resource.bucket, changes)
        for informer, changes in found:
            self._distribute_changes(informer.name, changes)

    def _distribute_changes(self, name: str, changes: Sequence[Change]) -> None:
        if changes:
            for controller in self._listeners.get(name, ()):
                self._enqueue_keys(controller, name, changes)

    def _enqueue_keys(self, controller: Reconciler, name: str, changes: Iterable[Change]) -> None:
        """Enqueues the keys of changes. An exception for one change does not affect the others."""
        for change in changes:
            try:
                for key in controller.keys(name, change.type, change.obj, change.old):
                    self._enqueue(controller, key)
                if change.type == DELETED:
                    controller.forget(change.obj)
            except Exception:
                _log.exception("%s cannot handle an event of %s", controller.name, name)

    # --- Starting controllers -----------------------------------------------------------------------------------------

    def _descriptors_for(self, bucket: str) -> tuple[ControllerDescriptor, ...]:
        return (*self._descriptors.get(bucket, ()), *self._descriptors.get(ANY_RESOURCE, ()))

    def _start_soon(self, descriptor: ControllerDescriptor) -> None:
        if descriptor not in self._started and descriptor not in self._to_start:
            self._to_start.append(descriptor)

    def _start_for_existing_objects(self) -> None:
        """Marks the controllers for starting that an object in the store concerns."""
        for name, descriptors in self._descriptors.items():
            if name != ANY_RESOURCE and self._store.bucket(name).has_keys():
                self._to_start += [one for one in descriptors if one not in self._to_start]
        for descriptor in self._descriptors.get(ANY_RESOURCE, ()):
            documents = (
                record.value.object
                for resource in self._registry
                if "list" in resource.verbs
                for record in self._store.bucket(resource.bucket).page().records
            )
            if any(descriptor.starts_for(obj) for obj in documents):
                self._to_start.append(descriptor)

    def _start_for_changes(self, bucket: str, changes: Sequence[Change]) -> None:
        """Starts the controllers that these changes concern: their writer may not have called `on_store_event` yet."""
        for descriptor in self._descriptors_for(bucket):
            if descriptor not in self._started and any(descriptor.starts_for(change.obj) for change in changes):
                self._start_soon(descriptor)
        for descriptor in self._resumed.get(bucket, ()) if changes else ():
            self._start_soon(descriptor)
        self._start_pending()

    def _start_pending(self) -> None:
        while self._to_start:
            try:
                self._start_controller(self._to_start[0])
            except Exception:
                _log.exception("%s cannot start", self._to_start[0].name)
            self._to_start.pop(0)

    def _start_controller(self, descriptor: ControllerDescriptor) -> None:
        if descriptor in self._started:
            return
        controller = descriptor.new_controller()
        self._prepare(controller)
        if self._cache is None:
            self._cache = Cache(controller.client, self._store, self._on_informer_open)
        controller.cache = self._cache
        controller.also_watch = lambda name: self._also_watch(controller, name)
        self._started[descriptor] = controller
        controller.on_start()
        before = {one.resource for one in self._watches if one.controller == controller.name}
        resumed = sorted(before & self._served_resources()) if before else ()
        for name in (*controller.watches, *resumed):
            self._also_watch(controller, name)

    def _also_watch(self, controller: Reconciler, name: str) -> None:
        """Sends a controller the changes of a resource, those since the controllers were idle included.

        Raises UnknownResource.
        """
        listeners = self._listeners.setdefault(name, [])
        if controller in listeners:
            return
        is_open = name in controller.cache
        listeners.append(controller)  # before the informer is made, which sends its first changes to the listeners
        try:
            informer = controller.cache.informer(name)
        except UnknownResource:
            listeners.remove(controller)
            raise
        if is_open:  # for another controller, which has had the changes
            changes = [
                Change(ADDED, obj, None)
                for obj in informer.objects()
                if self._settled_at is None or int(obj["metadata"]["resourceVersion"]) > self._settled_at
            ]
            if self._settled_at is not None:
                changes += informer.deletions_since(self._settled_at)
            self._enqueue_keys(controller, name, changes)

    def _on_informer_open(self, informer: Informer) -> None:
        """Opens a new informer, and sends its first changes to the controllers that watch the resource."""
        self._informers.setdefault(informer.resource.bucket, []).append(informer)
        self._distribute_changes(informer.name, informer.open(self._settled_at))


@cache
def _by_resource(descriptors: tuple[ControllerDescriptor, ...]) -> dict[str, list[ControllerDescriptor]]:
    """Returns the controllers that a change of each resource starts."""
    found: dict[str, list[ControllerDescriptor]] = {}
    for descriptor in descriptors:
        for name in descriptor.starts_on:
            found.setdefault(name, []).append(descriptor)
    return found


@cache
def _by_name(descriptors: tuple[ControllerDescriptor, ...]) -> dict[str, list[ControllerDescriptor]]:
    """Returns the controllers of each name."""
    found: dict[str, list[ControllerDescriptor]] = {}
    for descriptor in descriptors:
        found.setdefault(descriptor.name, []).append(descriptor)
    return found

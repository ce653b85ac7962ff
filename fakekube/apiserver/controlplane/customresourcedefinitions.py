"""Serves CustomResourceDefinitions: their conditions, their versions in the registry, and the end of deleted ones.

Invariant: after a write of a definition, or of an object of a terminating one, the registry serves exactly the versions of the
definitions in the store.

Specified by: k8s.io/apiextensions-apiserver/pkg/controller/{status,establish,finalizer}, pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from fakekube.apiextensions.definition import conditions
from fakekube.apimachinery import features
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.data import API_EXTENSIONS
from fakekube.apimachinery.errors import StatusError
from fakekube.apis.rest.cluster_access import Call, ClusterAccess, Recorded
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.controlplane.control_loop import ControlLoop
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.store import Bucket, Reflector, Store

PLURAL = "customresourcedefinitions"


class CustomResourceDefinitionController(ControlLoop):
    """Serves the definitions of one cluster."""

    def __init__(
        self,
        store: Store[Document],
        registry: Registry,
        services: ClusterAccess,
        clock: Clock,
        call: Call,
        *,
        find_unready_cache: Callable[[Resource, Bucket[Document]], str],
    ) -> None:
        """`find_unready_cache` returns why a list of all objects of a resource fails; empty if it does not."""
        self._store, self._registry, self._services, self._clock, self._call = store, registry, services, clock, call
        self._find_unready_cache = find_unready_cache
        self._bucket = store.bucket(f"{PLURAL}.{API_EXTENSIONS}")
        self._known = Reflector(self._bucket)
        self._changed: dict[str, None] = {}
        """The names of changed definitions. They stay until all are processed: `refresh` may start again with a deep stack."""
        self._served: dict[str, tuple[Object, list[Resource]]] = {}
        """Name → the last observed definition, and its served resources."""
        self._went_on = threading.Condition()
        self._due: dict[str, float] = {}
        """Names of terminating definitions that wait → until when, by the clock."""
        self._terminating: dict[str, str] = {}
        """Names of terminating definitions → the bucket with their objects."""
        self._listed: set[str] = set()
        """The names of terminating definitions whose objects were listed."""
        super().__init__((self._bucket,))
        if self._bucket.count():
            self.refresh()

    def step(self) -> bool:
        """Processes every changed definition; returns whether there was one."""
        self._changed |= dict.fromkeys(self._known.catch_up())
        changed, present = self._changed, self._known.records
        deleted = [name for name in changed if name not in present]
        renamed = any(self._releases_names(name, present[name].value.object) for name in changed if name in present)
        for name in deleted:
            self._serve(name, {}, [])
            self._stop_waiting(name)
        for name in [*present] if deleted or renamed else changed:  # because other definitions may accept released names
            if name in present:
                self._process(name, present[name].value.object)
        self._changed = {}
        return bool(changed)

    def _releases_names(self, name: str, obj: Object) -> bool:
        """Reports whether a definition has released names since it was last observed."""
        known = self._served.get(name)
        return known is not None and not conditions.names_of(known[0]) <= conditions.names_of(obj)

    def _all(self) -> Iterator[Object]:
        yield from (record.value.object for record in self._bucket.page().records)

    def _process(self, name: str, obj: Object) -> None:
        known = self._served.get(name)
        if known and known[1] and conditions.is_same_serving(known[0], obj):
            self._served[name] = (obj, known[1])
        else:
            resources = self._resources_of(obj)
            if known and conditions.is_same_storage(known[0], obj):
                _keep_use(known[1], resources)
            self._serve(name, obj, resources)
        change = conditions.next_state(obj, self._all(), self._print_now())
        if change is not None:
            self._write(name, obj, change)
        elif conditions.is_ending(obj) and not self._waits(name):
            self._finalize(name, obj)

    def _waits(self, name: str) -> bool:
        """Reports whether a terminating definition is still to be seen, by the pace of the cluster; a timer goes on with it."""
        if not self._services.pace or self._clock.held:
            return False
        now = self._clock.monotonic()
        due = self._due.get(name)
        if due is None:
            self._due[name] = due = now + self._services.pace
            self._clock.call_at(due, partial(_go_on, weakref.ref(self), name), what="the end of a definition")
        elif due <= now:
            del self._due[name]
        return due > now

    def go_on(self, name: str) -> None:
        """Processes a terminating definition again."""
        with self._working:
            self._changed[name] = None
            self.refresh()
        with self._went_on:
            self._went_on.notify_all()

    @property
    def waits(self) -> bool:
        """Whether a terminating definition waits for the pace of the cluster."""
        return bool(self._due) and not self._clock.held

    def wait(self, timeout: float) -> bool:
        """Waits until no definition waits. Returns False after `timeout` real seconds."""
        with self._went_on:
            return self._went_on.wait_for(lambda: not self.waits, max(timeout, 0.0))

    def _resources_of(self, obj: Object) -> list[Resource]:
        if not conditions.is_served(obj):
            return []
        # Imported with the first definition: that is slow, and most clusters have none.
        from fakekube.apiextensions.resource import resources_of

        emulation = self._services.emulation
        with features.emulating(emulation):
            return resources_of(obj, self._call, emulation)

    def _serve(self, name: str, obj: Object, resources: list[Resource]) -> None:
        known = self._served.get(name)
        old = known[1] if known else []
        if old or resources:
            self._registry.replace([(r.group, r.version, r.plural) for r in old], resources)
        if bool(resources) != bool(old):  # the watch cache begins and ends with the resource: a new one has no history
            self._store.bucket((resources or old)[0].bucket).forget(has_ended=not resources)
        if obj:
            self._served[name] = (obj, resources)
        else:
            self._served.pop(name, None)

    def _finalize(self, name: str, obj: Object) -> None:
        """Deletes the remaining objects of a terminating definition, then removes its finalizer."""
        bucket_name = f"{obj['spec']['names']['plural']}.{obj['spec']['group']}"
        bucket = self._store.bucket(bucket_name)
        problem = self._find_list_problem(obj, bucket, is_first=name not in self._listed)
        self._listed.add(name)
        change = conditions.sync_deletion(obj, problem, self._print_now())
        if change is not None:
            self._write(name, obj, change)  # and comes back here
            return
        if not problem:
            for record in bucket.page().records:
                self._delete_instance(bucket_name, record.key)
        if bucket.count():
            if name not in self._terminating:
                self._terminating[name] = bucket_name
                bucket.subscribe(self._instances_changed)
            return
        self._stop_waiting(name)
        if conditions.is_released(conditions.finalize(obj, self._print_now())):
            self._services.remove(API_EXTENSIONS, PLURAL, "", name)
        else:
            self._write(name, obj, partial(conditions.finalize, now=self._print_now()))

    def _stop_waiting(self, name: str) -> None:
        """Forgets what was awaited for a terminating definition: its objects are gone, or a client has removed its finalizer."""
        self._due.pop(name, None)
        self._listed.discard(name)
        bucket_name = self._terminating.pop(name, None)
        if bucket_name is not None:
            self._store.bucket(bucket_name).unsubscribe(self._instances_changed)

    def _find_list_problem(self, obj: Object, bucket: Bucket[Document], *, is_first: bool) -> str:
        """Returns why the objects of a terminating definition cannot be listed; empty if they can.

        `is_first`: they have not been listed before.
        """
        if not bucket.count():
            is_in_use = any(resource.is_in_use for resource in self._served[obj["metadata"]["name"]][1])
            return conditions.UNINITIALISED if is_first and not is_in_use and conditions.is_true(obj, "Established") else ""
        if not conditions.is_served(obj):
            return ""
        from fakekube.apiextensions.resource import storage_resource_of

        emulation = self._services.emulation
        with features.emulating(emulation):
            return self._find_unready_cache(storage_resource_of(obj, self._call, emulation), bucket)

    def _instances_changed(self) -> None:
        with self._working:
            if self._busy:
                return
            for name in list(self._terminating):
                known = self._served.get(name)
                if known is None:
                    continue
                has_failed = conditions.has_failed_deletion(known[0])
                if has_failed or not self._store.bucket(self._terminating[name]).count():
                    self._finalize(name, known[0])

    def _delete_instance(self, bucket_name: str, key: str) -> None:
        """Removes an object, or marks it as deleted if it has finalizers."""
        bucket = self._store.bucket(bucket_name)
        record = bucket.get(key)
        if record is None:
            return
        meta = record.value.object["metadata"]
        if not meta.get("finalizers"):
            bucket.commit(key, None, None)
        elif "deletionTimestamp" not in meta:
            marked = {**meta, "deletionGracePeriodSeconds": 0, "deletionTimestamp": self._print_now()}
            marked["generation"] = meta.get("generation", 0) + 1
            obj = {**record.value.object, "metadata": dict(sorted(marked.items()))}
            bucket.commit(key, None, lambda revision: _with_resource_version(obj, revision))

    def _write(self, name: str, seen: Object, change: conditions.Change) -> None:
        """Writes a definition, unless another client has changed it in the meantime: then it is processed again."""
        try:
            self._services.update(
                API_EXTENSIONS,
                PLURAL,
                "",
                name,
                lambda old: change(old) if old is seen else old,
                recorded=Recorded("status", self._clock.now()),
            )
        except StatusError:  # it has been deleted in the meantime
            return

    def _print_now(self) -> str:
        return print_time(self._clock.now())


def _keep_use(old: list[Resource], new: list[Resource]) -> None:
    """Tells new resources of a storage whether one of the old ones was in use."""
    is_in_use = any(resource.is_in_use for resource in old)
    for resource in new:
        resource.is_in_use = is_in_use


def _go_on(reference: weakref.ref[CustomResourceDefinitionController], name: str) -> None:
    """Goes on with a definition if the cluster still exists: its clock must not keep it."""
    controller = reference()
    if controller is not None:
        controller.go_on(name)


def _with_resource_version(obj: Mapping[str, Any], revision: int) -> Document:
    return Document({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})

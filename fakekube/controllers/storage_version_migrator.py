"""The controller that migrates stored objects: a StorageVersionMigration writes all objects of a resource anew.

One migration of a resource runs at a time (MigrationRunnerController). It is given the latest revision of its resource
(ResourceVersionController), and then every object that is not newer is patched without a change, so that the API server writes
it in the present storage version (SVMController). The definition of a custom resource has the condition StorageMigrating
meanwhile; after a success its `status.storedVersions` is the present storage version only. 1.35 has no queue of migrations, and
does not touch definitions; messages differ from minor to minor.

Specified by: pkg/controller/storageversionmigrator/{migrationrunner,resourceversion,storageversionmigrator}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fakekube.apis.rest.resource import Resource
from fakekube.apis.storagemigration import FAILED, RUNNING, SUCCEEDED
from fakekube.apis.validation.objectmeta import has_condition, set_status_condition
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.garbagecollector import DEFINITIONS, IGNORED
from fakekube.controllers.reconciler import Key, Reconciler

MIGRATIONS: Final = "storageversionmigrations.storagemigration.k8s.io"
#: The namespace of keys that stand for a resource and its queue of migrations.
_QUEUE: Final = "queue"
#: The first minors with a queue of migrations, and with counts in the messages.
_QUEUES_SINCE, _COUNTS_SINCE = 36, 37
#: Seconds for which a resource that is not served may still appear.
_DISCOVERY_GRACE: Final = 60.0
_REQUIRED_VERBS: Final = ("update", "patch", "list")
_RETRIABLE: Final = frozenset({"ServerTimeout", "TooManyRequests", "ServiceUnavailable", "InternalError", "Timeout"})
_RUNNING_MESSAGE: Final = "The migration is running"
_FAILED_REASON: Final = "StorageVersionMigrationFailed"


class StorageVersionMigratorController(Reconciler):
    """Runs migrations. Keys are migrations, and resources with a queue of them."""

    name = "storage-version-migrator-controller"
    watches = (MIGRATIONS,)
    field_manager = "migration-runner-controller"

    def on_start(self) -> None:
        minor = self.context.services.emulation.minor
        self._has_queue, self._has_counts = minor >= _QUEUES_SINCE, minor >= _COUNTS_SINCE

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        queue = Key(_QUEUE, _group_resource(obj))
        return (queue,) if event_type == "DELETED" else (queue, Key("", obj["metadata"]["name"]))

    def reconcile(self, key: Key) -> None:
        if key.namespace == _QUEUE:
            if self._has_queue:
                self._run_next(key.name)
            return
        migration = self.cache.get(MIGRATIONS, "", key.name)
        if migration is None or _has(migration, SUCCEEDED) or _has(migration, FAILED):
            return
        if self._has_queue and not _has(migration, RUNNING):
            return
        if not (migration.get("status") or {}).get("resourceVersion"):
            self._set_resource_version(key, migration)
        else:
            self._migrate(key, migration)

    # --- MigrationRunnerController ------------------------------------------------------------------------------------

    def _run_next(self, group_resource: str) -> None:
        """Ends what is done, and starts the oldest of the others unless one runs."""
        all_ = [one for one in self.cache.list(MIGRATIONS) if _group_resource(one) == group_resource]
        for migration in all_:
            if _has(migration, RUNNING) and _is_finished(migration):
                self._complete(migration, group_resource)
        if any(_has(one, RUNNING) and not _is_finished(one) for one in all_):
            return
        waiting = [one for one in all_ if not _has(one, RUNNING) and not _is_finished(one)]
        if waiting:
            first = min(waiting, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))
            message = f"Migration {first['metadata']['name']} is running"
            self._apply_to_definition(group_resource, lambda _: ("True", "MigrationRunning", message, False))
            if not any(one["type"] == RUNNING for one in _conditions(first)):
                self._write(first, (self._condition(RUNNING, "True", "MigrationRunning", _RUNNING_MESSAGE),))

    def _complete(self, migration: Object, group_resource: str) -> None:
        succeeded = _has(migration, SUCCEEDED)

        def outcome(definition: Object) -> tuple[str, str, str, bool]:
            """Returns the condition, and whether nothing has changed while the migration ran, so that old versions are gone."""
            is_unchanged = any(
                one["type"] == "StorageMigrating" and one.get("observedGeneration") == definition["metadata"]["generation"]
                for one in _conditions(definition)
            )
            if not succeeded:
                return "False", "MigrationFailed", "The migration has failed", is_unchanged
            end = "and the stored versions have been updated"
            if not is_unchanged:
                end = "but the stored versions have not been updated due to a generation mismatch"
            return "False", "MigrationSucceeded", f"The migration has succeeded {end}", is_unchanged

        self._apply_to_definition(group_resource, outcome)
        condition = self._condition(RUNNING, "False", "MigrationCompleted", "Migration completed")
        if migration["metadata"].get("generation"):
            condition["observedGeneration"] = migration["metadata"]["generation"]
        self._write(migration, (condition,))

    def _apply_to_definition(self, group_resource: str, outcome: Any) -> None:
        """Applies the condition StorageMigrating to the definition of a custom resource; nothing happens to other resources."""
        try:
            definition = self.client.get(DEFINITIONS, group_resource)
        except ApiError as error:
            if error.code != 404:
                raise
            return
        status, reason, message, replaces = outcome(definition)
        condition = self._condition("StorageMigrating", status, reason, message)
        applied: Object = {"conditions": [{**condition, "observedGeneration": definition["metadata"]["generation"]}]}
        if replaces:
            applied["storedVersions"] = [one["name"] for one in definition["spec"]["versions"] if one.get("storage")]
        obj = {
            "apiVersion": definition["apiVersion"],
            "kind": definition["kind"],
            "metadata": {"name": group_resource, "resourceVersion": definition["metadata"]["resourceVersion"]},
            "status": applied,
        }
        self.client.apply(obj, field_manager=self.field_manager, subresource="status")

    # --- ResourceVersionController ------------------------------------------------------------------------------------

    def _set_resource_version(self, key: Key, migration: Object) -> None:
        resource = self._find_resource(migration)
        if resource is None:
            if self._is_new(migration):
                self.requeue_rate_limited(key)
            else:
                self._fail(migration, "resource does not exist in discovery")
        elif not resource.verbs.issuperset(_REQUIRED_VERBS):
            verbs, named = " ".join(_REQUIRED_VERBS), f"{resource.group}/{resource.version}, Resource={resource.plural}"
            self._fail(migration, f'resource "{named}" does not support discovery operations: [{verbs}]')
        else:
            namespace = "@fake:svm_ns!" if resource.namespaced else None  # no such namespace can exist
            listed = self.client.call("GET", self.client.path(resource, namespace), None, {"limit": "1"})
            status = {**(migration.get("status") or {}), "resourceVersion": listed["metadata"]["resourceVersion"]}
            self.client.update({**migration, "status": status}, subresource="status")

    # --- SVMController ------------------------------------------------------------------------------------------------

    def _migrate(self, key: Key, migration: Object) -> None:
        resource = self._find_resource(migration)
        if resource is None or resource.group_resource in IGNORED:
            text = "unable to obtain GVR from discovery" if resource is None else "resource does not exist in GC: %!w(<nil>)"
            if self._is_new(migration):
                self.requeue_rate_limited(key)
            else:
                self._fail(migration, f"migration encountered unhandled error: {text}")
            return
        if not self._has_queue:
            migration = self._write(migration, (self._condition(RUNNING, "True", "StorageVersionMigrationInProgress", ""),))
        objects = self.client.list(resource.group_resource)
        limit = int(migration["status"]["resourceVersion"])
        candidates = [one for one in objects if int(one["metadata"]["resourceVersion"]) <= limit]
        for index, obj in enumerate(candidates):
            try:
                self._rewrite(resource, obj)
            except ApiError as error:
                if error.code == 409 or (error.code == 404 and self._has_counts):
                    continue
                left = len(candidates) - index
                if error.reason in _RETRIABLE:
                    if self._has_counts:
                        self._write(migration, (self._running(left, len(objects), f"; transient error: {error}"),))
                    self.requeue_rate_limited(key)
                elif self._has_counts:
                    text = f"{left}/{len(objects)} not yet migrated. migration encountered unhandled error: {error}"
                    self._fail(migration, text, self._running(left, len(objects)))
                else:
                    self._fail(migration, f"migration encountered unhandled error: {error}")
                return
        message = "Migration completed" if self._has_counts else ""
        succeeded = self._condition(SUCCEEDED, "True", "StorageVersionMigrationSucceeded", message)
        self._write(migration, (self._running(0, len(objects)), succeeded) if self._has_counts else (succeeded,))

    def _rewrite(self, resource: Resource, obj: Object) -> None:
        """Patches an object without a change. Raises ApiError."""
        metadata = obj["metadata"]
        path = self.client.path(resource, metadata.get("namespace"), metadata["name"])
        patch: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        patch["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
        content_type = "application/merge-patch+json"
        if not self._has_counts:
            content_type = "application/apply-patch+yaml"
            patch["metadata"]["uid"] = metadata["uid"]
        self.client.call("PATCH", path, patch, {"fieldManager": self.name}, content_type=content_type)

    def _running(self, left: int, total: int, end: str = "") -> Object:
        """Returns the condition Running with what is left of a number of objects (migrationRunningMessage)."""
        text = f", {left}/{total} objects not yet migrated" if left else f", {total} objects verified migrated"
        return self._condition(RUNNING, "True", "MigrationRunning", _RUNNING_MESSAGE + (text if total else "") + end)

    # --- Helpers ------------------------------------------------------------------------------------------------------

    def _find_resource(self, migration: Object) -> Resource | None:
        try:
            resource = self.client.resource(_group_resource(migration))
        except UnknownResource:
            return None
        return resource if resource.group_resource == _group_resource(migration) else None

    def _is_new(self, migration: Object) -> bool:
        age = self.clock.now() - parse_time(migration["metadata"]["creationTimestamp"])
        return age.total_seconds() < _DISCOVERY_GRACE

    def _condition(self, type_: str, status: str, reason: str, message: str) -> Object:
        now = self.client.now()
        return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}

    def _fail(self, migration: Object, message: str, *before: Object) -> None:
        self._write(migration, (*before, self._condition(FAILED, "True", _FAILED_REASON, message)))

    def _write(self, migration: Object, conditions: Iterable[Object]) -> Object:
        """Sets conditions, and returns the written object."""
        known = _conditions(migration)
        for condition in conditions:
            known = set_status_condition(known, condition)
        status = {**(migration.get("status") or {}), "conditions": known}
        return self.client.update({**migration, "status": status}, subresource="status")


def _group_resource(migration: StoredObject) -> str:
    """Returns the resource of a migration, named as in `Reconciler.watches`."""
    resource: Mapping[str, str] = migration["spec"]["resource"]
    return ".".join(filter(None, (resource.get("resource"), resource.get("group"))))


def _conditions(obj: Mapping[str, Any]) -> list[Object]:
    return (obj.get("status") or {}).get("conditions") or []


def _has(migration: Object, type_: str) -> bool:
    return has_condition(migration.get("status") or {}, type_)


def _is_finished(migration: Object) -> bool:
    return _has(migration, SUCCEEDED) or _has(migration, FAILED)

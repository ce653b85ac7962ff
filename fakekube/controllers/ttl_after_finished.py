"""The TTL-after-finished controller: deletes Jobs ttlSecondsAfterFinished after their end.

Specified by: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from fakekube.base.objects import StoredObject
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.job.utils import finished_condition
from fakekube.controllers.reconciler import Key, Reconciler

JOBS: Final = "jobs.batch"


class TTLAfterFinishedController(Reconciler):
    """Deletes finished Jobs."""

    name = "ttl-after-finished-controller"
    watches = (JOBS,)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return obj is not old and _expiration_time(obj) is not None

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if event_type == "DELETED" or _expiration_time(obj) is None:
            return ()
        return (Key(obj["metadata"]["namespace"], obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        job = self.cache.get(JOBS, key.namespace, key.name)
        expires = _expiration_time(job) if job is not None else None
        if job is None or expires is None:
            return
        left = (expires - self.clock.now()).total_seconds()
        if left > 0:
            self.requeue_after(key, left)
            return
        self.client.delete(
            JOBS, key.name, namespace=key.namespace, propagationPolicy="Foreground", preconditions={"uid": job["metadata"]["uid"]}
        )


def _expiration_time(job: StoredObject) -> datetime | None:
    """Returns the time at which a Job is to be deleted; None if it has not finished, has no TTL, or is being deleted."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is None or "deletionTimestamp" in job["metadata"]:
        return None
    finished: str | None = (finished_condition(job) or {}).get("lastTransitionTime")
    return parse_time(finished) + timedelta(seconds=seconds) if finished else None

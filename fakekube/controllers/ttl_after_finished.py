"""A Job with ttlSecondsAfterFinished goes so many seconds after it has ended.

Specified by: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["TTLAfterFinishedController"]

JOBS = "jobs.batch"


class TTLAfterFinishedController(Reconciler):
    """Keys are Jobs."""

    name = "ttl-after-finished-controller"
    watches = (JOBS,)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return obj is not old and _expires(obj) is not None

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if event_type == "DELETED" or _expires(obj) is None:
            return ()
        return (Key(obj["metadata"]["namespace"], obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        job = self.cache.get(JOBS, key.namespace, key.name)
        expires = _expires(job) if job is not None else None
        if job is None or expires is None:
            return
        left = (expires - self.clock.now()).total_seconds()
        if left > 0:
            self.requeue_after(key, left)
            return
        self.client.delete(
            JOBS, key.name, namespace=key.namespace, propagationPolicy="Foreground", preconditions={"uid": job["metadata"]["uid"]}
        )


def _expires(job: Object) -> datetime | None:
    """When a Job is to go; None if it has not ended, is to stay, or goes already."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is None or "deletionTimestamp" in job["metadata"]:
        return None
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            ended: str | None = condition.get("lastTransitionTime")
            return datetime.fromisoformat(ended) + timedelta(seconds=seconds) if ended else None
    return None

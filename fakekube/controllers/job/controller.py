"""The Job controller: what wakes it, and pods that still hold the finalizer of a Job that is over.

A key names a Job, or, behind a prefix that no name has, a pod or a selector whose pods are to be freed.

Two things are left out that only spare a large cluster work: pods' changes are not gathered for a second before a Job is
looked at, and there are no expectations, since the cache is never behind.

Specified by: pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.job.backoff import BackoffRecord
from fakekube.controllers.job.conditions import is_finished
from fakekube.controllers.job.pass_state import FINALIZER, has_finalizer
from fakekube.controllers.job.sync import JobSync
from fakekube.controllers.job.tracking import remove_finalizer
from fakekube.controllers.owners import ControllerRefManager, controller_of, keys_of_controllers, selector_of
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.selectors import parse_labels

__all__ = ["JobController"]

_POD = "/pod/"
_SELECTOR = "/selector/"
OWN_NAME = "kubernetes.io/job-controller"
"""What spec.managedBy may say besides nothing."""


class JobController(Reconciler):
    """Runs Jobs."""

    name = "job-controller"
    watches = ("jobs.batch", "pods")

    def started(self) -> None:
        self._backoff: dict[Key, BackoffRecord] = {}

    # ---- what wakes it

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None = None) -> Iterable[Key]:
        return self._keys_of_job(event_type, obj) if resource == "jobs.batch" else self._keys_of_pod(event_type, obj, old)

    def _keys_of_job(self, event_type: str, job: Object) -> Iterable[Key]:
        metadata = job["metadata"]
        if event_type == "DELETED" or is_finished(job):
            yield Key(metadata["namespace"], f"{_SELECTOR}{selector_of(job)}")
        if event_type == "DELETED":
            self._backoff.pop(Key(metadata["namespace"], metadata["name"]), None)
        else:
            yield Key(metadata["namespace"], metadata["name"])

    def _keys_of_pod(self, event_type: str, pod: Object, old: Object | None) -> Iterable[Key]:
        metadata = pod["metadata"]
        yield from keys_of_controllers(self.cache, pod, old, kind="Job", resource="jobs.batch")
        if event_type != "DELETED" and has_finalizer(pod) and self._is_orphan(pod, controller_of(pod)):
            yield Key(metadata["namespace"], _POD + metadata["name"])

    def _is_orphan(self, pod: Object, owner: Object | None) -> bool:
        """Is there no Job any more that would count the pod?"""
        if owner is None:
            return True
        if owner["kind"] != "Job" or not owner["apiVersion"].startswith("batch/"):
            return False
        job = self.cache.get("jobs.batch", pod["metadata"]["namespace"], owner["name"])
        if job is None or job["metadata"]["uid"] != owner["uid"]:
            return True
        return is_finished(job) and not self._is_managed_elsewhere(job)

    @staticmethod
    def _is_managed_elsewhere(job: Object) -> bool:
        return job["spec"].get("managedBy") not in (None, OWN_NAME)

    # ---- what it does

    def reconcile(self, key: Key) -> None:
        if key.name.startswith(_POD):
            pod = self.cache.get("pods", key.namespace, key.name.removeprefix(_POD))
            self._free([] if pod is None else [pod])
        elif key.name.startswith(_SELECTOR):
            selector = parse_labels(key.name.removeprefix(_SELECTOR))
            found = self.cache.list("pods", key.namespace)
            self._free([pod for pod in found if selector.matches(pod["metadata"].get("labels"))])
        else:
            self._sync(key)

    def _free(self, pods: Iterable[Object]) -> None:
        """Take the finalizer off pods that nobody counts."""
        for pod in pods:
            if has_finalizer(pod) and self._is_orphan(pod, controller_of(pod)):
                remove_finalizer(self.client, pod)

    def _sync(self, key: Key) -> None:
        job = self.cache.get("jobs.batch", key.namespace, key.name)
        if job is None or self._is_managed_elsewhere(job):
            return
        if is_finished(job):
            self._backoff.pop(key, None)
            return
        former = self._backoff.get(key, BackoffRecord())
        self._backoff[key] = JobSync(self, key, job, self._claimed(job), former).run()

    def _claimed(self, job: Object) -> list[Object]:
        """The pods of the Job, those that it has just adopted as they are now."""
        selector = selector_of(job)
        manager = ControllerRefManager(
            self.client, job, "jobs.batch", "pods", lambda pod: selector.matches(pod["metadata"].get("labels")), (FINALIZER,)
        )
        return [pod if controller_of(pod) else self._fresh(pod) for pod in manager.claim_from(self.cache)]

    def _fresh(self, pod: Object) -> Object:
        """The pod as it is after it was adopted."""
        metadata = pod["metadata"]
        return self.cache.get("pods", metadata["namespace"], metadata["name"]) or pod

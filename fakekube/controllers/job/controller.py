"""The Job controller: events, and the finalizers of pods whose Job has finished or is gone.

The name in a key is that of a Job, or, behind a prefix that no name has, a pod or a label selector: the finalizers of these pods
are removed if no Job counts them.

Unlike the real controller, this one does not delay the sync after changes of pods for a second, and has no expectations, because
its cache is never stale.

Specified by: pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.apimachinery.selectors import parse_labels
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.job.backoff import BackoffRecord
from fakekube.controllers.job.conditions import is_job_finished
from fakekube.controllers.job.sync import JobSync
from fakekube.controllers.job.sync_context import FINALIZER, has_job_tracking_finalizer
from fakekube.controllers.job.tracking import remove_finalizer
from fakekube.controllers.objects import Object, get_controller_of
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["JobController"]

_POD = "/pod/"
_SELECTOR = "/selector/"
#: The value of spec.managedBy for this controller (JobControllerName).
CONTROLLER_NAME = "kubernetes.io/job-controller"


class JobController(Reconciler):
    """Creates, deletes and counts the pods of Jobs."""

    name = "job-controller"
    watches = ("jobs.batch", "pods")

    def started(self) -> None:
        self._backoff: dict[Key, BackoffRecord] = {}

    # ---- events

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None = None) -> Iterable[Key]:
        return self._keys_of_job(event_type, obj) if resource == "jobs.batch" else self._keys_of_pod(event_type, obj, old)

    def _keys_of_job(self, event_type: str, job: Object) -> Iterable[Key]:
        metadata = job["metadata"]
        if event_type == "DELETED" or is_job_finished(job):
            yield Key(metadata["namespace"], f"{_SELECTOR}{selector_of(job)}")
        if event_type == "DELETED":
            self._backoff.pop(Key(metadata["namespace"], metadata["name"]), None)
        else:
            yield Key(metadata["namespace"], metadata["name"])

    def _keys_of_pod(self, event_type: str, pod: Object, old: Object | None) -> Iterable[Key]:
        metadata = pod["metadata"]
        yield from keys_of_controllers(self.cache, pod, old, kind="Job", resource="jobs.batch")
        if event_type != "DELETED" and has_job_tracking_finalizer(pod) and self._is_orphan(pod, get_controller_of(pod)):
            yield Key(metadata["namespace"], _POD + metadata["name"])

    def _is_orphan(self, pod: Object, owner: Object | None) -> bool:
        """Whether no Job exists that would count the pod."""
        if owner is None:
            return True
        if owner["kind"] != "Job" or not owner["apiVersion"].startswith("batch/"):
            return False
        job = self.cache.get("jobs.batch", pod["metadata"]["namespace"], owner["name"])
        if job is None or job["metadata"]["uid"] != owner["uid"]:
            return True
        return is_job_finished(job) and not self._is_managed_elsewhere(job)

    @staticmethod
    def _is_managed_elsewhere(job: Object) -> bool:
        return job["spec"].get("managedBy") not in (None, CONTROLLER_NAME)

    # ---- sync

    def reconcile(self, key: Key) -> None:
        if key.name.startswith(_POD):
            pod = self.cache.get("pods", key.namespace, key.name.removeprefix(_POD))
            self._sync_orphan_pods([] if pod is None else [pod])
        elif key.name.startswith(_SELECTOR):
            selector = parse_labels(key.name.removeprefix(_SELECTOR))
            found = self.cache.list("pods", key.namespace)
            self._sync_orphan_pods([pod for pod in found if selector.matches(pod["metadata"].get("labels"))])
        else:
            self._sync(key)

    def _sync_orphan_pods(self, pods: Iterable[Object]) -> None:
        """Removes the finalizers of pods that no Job counts (syncOrphanPod)."""
        for pod in pods:
            if has_job_tracking_finalizer(pod) and self._is_orphan(pod, get_controller_of(pod)):
                remove_finalizer(self.client, pod)

    def _sync(self, key: Key) -> None:
        job = self.cache.get("jobs.batch", key.namespace, key.name)
        if job is None or self._is_managed_elsewhere(job):
            return
        if is_job_finished(job):
            self._backoff.pop(key, None)
            return
        record = self._backoff.get(key, BackoffRecord())
        self._backoff[key] = JobSync(self, key, job, self._claim_pods(job), record).run()

    def _claim_pods(self, job: Object) -> list[Object]:
        """Returns the pods of the Job. Pods that were just adopted have their owner reference."""
        selector = selector_of(job)
        manager = ControllerRefManager(
            self.client, job, "jobs.batch", "pods", lambda pod: selector.matches(pod["metadata"].get("labels")), (FINALIZER,)
        )
        return [pod if get_controller_of(pod) else self._get_updated(pod) for pod in manager.claim_from(self.cache)]

    def _get_updated(self, pod: Object) -> Object:
        """Returns the present state of a pod."""
        metadata = pod["metadata"]
        return self.cache.get("pods", metadata["namespace"], metadata["name"]) or pod

"""The Job controller: events, the sync of a Job, and the finalizers of pods whose Job has finished or is gone.

A sync decides whether the Job has finished, and creates or deletes pods.

The name in a key is that of a Job, or, behind a prefix that no name has, a pod or a label selector: the finalizers of these pods
are removed if no Job counts them.

Unlike the real controller, this one does not delay the sync after changes of pods for a second, and has no expectations, because
its cache is never stale.

Specified by: pkg/controller/job/job_controller.go (syncJob, manageJob),
pkg/controller/job/indexed_job_utils.go (activePodsForRemoval).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from fakekube.apimachinery.selectors import parse_labels
from fakekube.apis.well_known import JOB_TRACKING_FINALIZER
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.controller_utils import (
    POD_PREFIX,
    PodControl,
    get_pod_from_template,
    is_namespace_terminating,
    is_pod_ready,
    parse_time,
    sort_for_deletion,
)
from fakekube.controllers.informers import get_controller_of
from fakekube.controllers.job.backoff_utils import BackoffRecord, get_remaining_time_per_index
from fakekube.controllers.job.indexed_job_utils import (
    COMPLETION_INDEX,
    first_pending_indexes,
    get_completion_index,
    match_success_policy,
)
from fakekube.controllers.job.pod_failure_policy import (
    is_pod_failed,
    match_pod_failure_policy,
    new_index_failure_counts,
    only_replace_failed_pods,
)
from fakekube.controllers.job.tracking import StatusTracker, SyncContext, has_job_tracking_finalizer, remove_finalizer
from fakekube.controllers.job.utils import ensure_condition_status, find_true_condition, is_job_finished, new_condition
from fakekube.controllers.reconciler import Key, Reconciler

_SELECTOR: Final = "/selector/"
#: The value of spec.managedBy for this controller (JobControllerName).
CONTROLLER_NAME: Final = "kubernetes.io/job-controller"


class JobController(Reconciler):
    """Creates, deletes and counts the pods of Jobs."""

    name = "job-controller"
    watches = ("jobs.batch", "pods")

    def on_start(self) -> None:
        self._backoff: dict[Key, BackoffRecord] = {}

    # --- Events -------------------------------------------------------------------------------------------------------

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
        return self._keys_of_job(event_type, obj) if resource == "jobs.batch" else self._keys_of_pod(event_type, obj, old)

    def _keys_of_job(self, event_type: str, job: StoredObject) -> Iterable[Key]:
        metadata = job["metadata"]
        if event_type == "DELETED" or is_job_finished(job):
            yield Key(metadata["namespace"], f"{_SELECTOR}{selector_of(job)}")
        if event_type == "DELETED":
            self._backoff.pop(Key(metadata["namespace"], metadata["name"]), None)
        else:
            yield Key(metadata["namespace"], metadata["name"])

    def _keys_of_pod(self, event_type: str, pod: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = pod["metadata"]
        yield from keys_of_controllers(self.cache, pod, old, kind="Job", resource="jobs.batch")
        if event_type != "DELETED" and has_job_tracking_finalizer(pod) and self._is_orphan(pod, get_controller_of(pod)):
            yield Key(metadata["namespace"], POD_PREFIX + metadata["name"])

    def _is_orphan(self, pod: StoredObject, owner: Object | None) -> bool:
        """Reports whether no Job exists that would count the pod."""
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

    # --- Sync ---------------------------------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> None:
        if key.name.startswith(POD_PREFIX):
            pod = self.cache.get("pods", key.namespace, key.name.removeprefix(POD_PREFIX))
            self._sync_orphan_pods([] if pod is None else [pod])
        elif key.name.startswith(_SELECTOR):
            selector = parse_labels(key.name.removeprefix(_SELECTOR))
            found = self.cache.list("pods", key.namespace)
            self._sync_orphan_pods([pod for pod in found if selector.matches(pod["metadata"].get("labels"))])
        else:
            self._sync_job(key)

    def _sync_orphan_pods(self, pods: Iterable[Object]) -> None:
        """Removes the finalizers of pods that no Job counts (syncOrphanPod)."""
        for pod in pods:
            if has_job_tracking_finalizer(pod) and self._is_orphan(pod, get_controller_of(pod)):
                remove_finalizer(self.client, pod)

    def _sync_job(self, key: Key) -> None:
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
            self.client,
            job,
            "jobs.batch",
            "pods",
            lambda pod: selector.matches(pod["metadata"].get("labels")),
            (JOB_TRACKING_FINALIZER,),
        )
        return [pod if get_controller_of(pod) else self._get_updated(pod) for pod in manager.claim_from(self.cache)]

    def _get_updated(self, pod: Object) -> Object:
        """Returns the present state of a pod."""
        metadata = pod["metadata"]
        return self.cache.get("pods", metadata["namespace"], metadata["name"]) or pod


ENVIRONMENT: Final = "JOB_COMPLETION_INDEX"
_MAX_GENERATE_NAME: Final = 58


def new_job_pod(state: SyncContext, index: int | None) -> Object:
    """Returns a new pod of the Job.

    Args:
        state: the state of the pass.
        index: the completion index of the pod; None if the Job is not Indexed.
    """
    pod = get_pod_from_template(state.spec["template"], state.job)
    metadata, spec = pod["metadata"], pod["spec"]
    finalizers = metadata.get("finalizers", [])
    metadata["finalizers"] = finalizers if JOB_TRACKING_FINALIZER in finalizers else [*finalizers, JOB_TRACKING_FINALIZER]
    if index is None:
        return pod
    name, text = state.job["metadata"]["name"], str(index)
    suffix = f"-{index}-"
    metadata["generateName"] = f"{name}{suffix}"
    if len(metadata["generateName"]) > _MAX_GENERATE_NAME:
        metadata["generateName"] = f"{name}{suffix}"[: _MAX_GENERATE_NAME - len(suffix)] + suffix
    metadata["annotations"] = {**metadata.get("annotations", {}), COMPLETION_INDEX: text}
    metadata["labels"] = {**metadata.get("labels", {}), COMPLETION_INDEX: text}
    if state.limits_indexes:
        metadata["annotations"] |= new_index_failure_counts(state.job, state.delayed.get(index))
    pod["spec"] = {**spec, "hostname": f"{name}-{index}"}
    for containers in ("initContainers", "containers"):
        if spec.get(containers):
            pod["spec"][containers] = [_add_index_variable(container) for container in spec[containers]]
    return pod


def _add_index_variable(container: Object) -> Object:
    """Returns the container with the completion index in its environment."""
    environment = container.get("env") or []
    if any(variable["name"] == ENVIRONMENT for variable in environment):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**container, "env": [*environment, {"name": ENVIRONMENT, "valueFrom": source}]}


def active_pods_for_removal(state: SyncContext, count: int, now: datetime) -> list[Object]:
    """Returns the active pods to delete: at least `count`, and for Indexed Jobs all but one of each index."""
    removed, left = (
        _split_duplicate_pods(state.active, state.spec["completions"], now) if state.is_indexed else ([], state.active)
    )
    missing = count - len(removed)
    return [*removed, *_sort_for_deletion(left, now)[:missing]] if missing > 0 else removed


def _sort_for_deletion(pods: Iterable[Object], now: datetime) -> list[Object]:
    pods = list(pods)
    return sort_for_deletion(pods, [0] * len(pods), now) if len(pods) > 1 else pods


def _split_duplicate_pods(pods: list[Object], completions: int, now: datetime) -> tuple[list[Object], list[Object]]:
    """Returns the pods whose index is invalid or a duplicate, which are to be removed, and the other pods."""
    removed: list[Object] = []
    left: list[Object] = []
    for index, found in groupby(sorted(pods, key=get_completion_index), key=get_completion_index):
        same = list(found)
        if not 0 <= index < completions:
            removed += same
            continue
        *surplus, kept = _sort_for_deletion(same, now)
        removed += surplus
        left.append(kept)
    return removed, left


#: The maximum number of pods that a pass creates or deletes (MaxPodCreateDeletePerSync).
MAX_PODS_PER_SYNC: Final = 500
#: The minimum delay of a delayed pass, in seconds (syncJobBatchPeriod).
SYNC_BATCH: Final = 1.0


class JobSync:
    """One pass.

    Args:
        controller: provides the client, the clock and the recorder.
        key: the key of the Job.
        job: the Job.
        pods: the pods of the Job.
        backoff: the back-off record of the Job.
    """

    def __init__(self, controller: Reconciler, key: Key, job: Object, pods: list[Object], backoff: BackoffRecord) -> None:
        self._controller = controller
        self._key = key
        self._backoff = backoff
        self._control = PodControl(controller.client, controller.recorder)
        self._now = controller.clock.now()
        self.state = SyncContext(job, pods)
        self._active = len(self.state.active)
        self._failure: ApiError | None = None

    def run(self) -> BackoffRecord:
        """Runs the pass.

        Returns:
            the new back-off record of the Job.

        Raises:
            ApiError: a request failed, and the pass must be repeated.
        """
        state, old = self.state, self.state.job.get("status") or {}
        state.count_terminated(self._backoff)
        if "startTime" not in state.status and not state.is_suspended:
            state.status["startTime"] = self._controller.client.now()
        state.finished = self._check_decided() or self._check_limits()
        if state.is_indexed:
            self._sync_indexes()
        suspension_changed = False
        if state.finished is not None:
            self._delete_active_pods()
        else:
            suspension_changed = self._manage_job()
        new = {"active": self._active, "ready": state.ready, "terminating": state.terminating}
        changed = suspension_changed or self._active != old.get("active", 0)
        changed |= any(old.get(name) != new[name] for name in ("ready", "terminating"))
        state.status.update(new)
        flushed = StatusTracker(self._controller.client, self._controller.recorder, state).run(changed)
        if self._failure is not None:
            raise self._failure
        return state.backoff if flushed else self._backoff

    def _new_condition(self, type_: str, reason: str, message: str) -> Object:
        return new_condition(type_, reason, message, self._controller.client.now())

    # --- Has the Job finished -----------------------------------------------------------------------------------------

    def _check_decided(self) -> Object | None:
        """Returns the condition of a decision in a former pass, or of the podFailurePolicy; None if neither decides."""
        state = self.state
        success = find_true_condition(state.status, "SuccessCriteriaMet")
        if success is not None:
            return success
        failure = find_true_condition(state.status, "FailureTarget")
        if failure is not None:
            return self._new_condition("Failed", failure.get("reason", ""), failure.get("message", ""))
        if state.spec.get("podFailurePolicy") is None:
            return None
        failed = (pod for pod in state.pods if is_pod_failed(pod, state.job))
        message = next((found for pod in failed if (found := match_pod_failure_policy(state.job, pod).message)), None)
        return self._new_condition("FailureTarget", "PodFailurePolicy", message) if message else None

    def _check_limits(self) -> Object | None:
        """Checks backoffLimit and activeDeadlineSeconds; requeues the key for the end of the latter."""
        state, spec = self.state, self.state.spec
        if state.failed > spec["backoffLimit"] or self._past_backoff_limit_on_failure():
            text = "Job has reached the specified backoff limit"
            return self._new_condition("FailureTarget", "BackoffLimitExceeded", text)
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is None or state.is_suspended:
            return None
        remaining = (parse_time(state.status["startTime"]) + timedelta(seconds=deadline) - self._now).total_seconds()
        if remaining <= 0:
            text = "Job was active longer than specified deadline"
            return self._new_condition("FailureTarget", "DeadlineExceeded", text)
        self._controller.requeue_after(self._key, remaining)
        return None

    def _past_backoff_limit_on_failure(self) -> bool:
        """Reports whether the restarts of containers exceed backoffLimit; they count with restartPolicy OnFailure."""
        spec = self.state.spec
        if spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        restarts, limit = 0, max(int(spec["backoffLimit"]), 1)
        for pod in self.state.pods:
            status = pod.get("status") or {}
            if status.get("phase") in ("Running", "Pending"):
                for containers in (status.get("initContainerStatuses"), status.get("containerStatuses")):
                    restarts += sum(container.get("restartCount", 0) for container in containers or ())
        return restarts >= limit

    def _sync_indexes(self) -> None:
        """Checks maxFailedIndexes, failed indexes and the successPolicy of an Indexed Job."""
        state = self.state
        state.count_indexes()
        if state.failed_indexes is not None:
            if state.finished is None:
                state.finished = self._check_failed_indexes(state.failed_indexes.total())
            state.find_delayed()
        if state.finished is None:
            message = match_success_policy(state.job, state.succeeded_indexes)
            if message is not None:
                state.finished = self._new_condition("SuccessCriteriaMet", "SuccessPolicy", message)

    def _check_failed_indexes(self, failed: int) -> Object | None:
        state, maximum = self.state, self.state.spec.get("maxFailedIndexes")
        if maximum is not None and failed > maximum:
            text = "Job has exceeded the specified maximal number of failed indexes"
            return self._new_condition("FailureTarget", "MaxFailedIndexesExceeded", text)
        if failed and failed + state.succeeded_indexes.total() >= state.spec["completions"]:
            return self._new_condition("FailureTarget", "FailedIndexes", "Job has failed indexes")
        return None

    def _delete_active_pods(self) -> None:
        """Deletes the active pods of a Job that has finished. If that fails, the outcome is not recorded yet."""
        self._delete_pods(self.state.active, remove_finalizers=False)
        if self._failure is not None:
            self.state.finished = None

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def _manage_job(self) -> bool:
        """Creates and deletes pods. Returns whether the Job was suspended or resumed."""
        state, deleted = self.state, "deletionTimestamp" in self.state.job["metadata"]
        if not deleted:
            self._adjust_pods()
        completions = state.spec.get("completions")
        enough = state.succeeded > 0 if completions is None else state.succeeded >= completions
        if enough and not self._active:
            text = "Reached expected number of succeeded pods"
            state.finished = self._new_condition("SuccessCriteriaMet", "CompletionsReached", text)
            return False
        return not deleted and self._set_suspended_condition()

    def _set_suspended_condition(self) -> bool:
        state, now = self.state, self._controller.client.now()
        word, status = ("suspended", "True") if state.is_suspended else ("resumed", "False")
        message = f"Job {word}"
        if not ensure_condition_status(state.status, new_condition("Suspended", f"Job{word.title()}", message, now, status)):
            return False
        self._controller.recorder.event(state.job, "Normal", word.title(), message)
        if state.is_suspended:
            if self._controller.context.emulation.enabled("MutableSchedulingDirectivesForSuspendedJobs"):
                state.status.pop("startTime", None)
        else:
            state.status["startTime"] = now
        return True

    def _adjust_pods(self) -> None:
        state = self.state
        if state.is_suspended:
            self._delete_pods(active_pods_for_removal(state, self._active, self._now), remove_finalizers=True)
            return
        wanted = self._wanted_active()
        surplus = active_pods_for_removal(state, max(self._active - wanted, 0), self._now)[:MAX_PODS_PER_SYNC]
        if surplus:
            self._delete_pods(surplus, remove_finalizers=True)
            return
        terminating = state.terminating if only_replace_failed_pods(state.job) else 0
        missing = wanted - terminating - self._active
        if missing > 0:
            self._create_pods(min(missing, MAX_PODS_PER_SYNC))

    def _wanted_active(self) -> int:
        """Returns the number of pods that should be active."""
        state = self.state
        parallelism: int = state.spec.get("parallelism", 1)
        completions: int | None = state.spec.get("completions")
        if completions is None:
            return self._active if state.succeeded else parallelism
        return max(min(completions - state.succeeded, parallelism), 0)

    def _create_pods(self, count: int) -> None:
        state = self.state
        wait = 0.0 if state.limits_indexes else state.backoff.seconds_until_next_pod(self._now)
        indexes: list[int | None] = [None] * count
        if wait <= 0 and state.is_indexed:
            taken = state.taken_indexes(only_replace_failed_pods(state.job))
            pending = first_pending_indexes(taken, count, state.spec["completions"])
            waits = {index: get_remaining_time_per_index(state.delayed.get(index), self._now) for index in pending}
            indexes = [index for index in pending if waits[index] <= 0]
            wait = 0.0 if indexes else min(waits.values(), default=0.0)
        if wait > 0:
            self._controller.requeue_after(self._key, max(wait, SYNC_BATCH))
            return
        self._create_in_batches(indexes)

    def _create_in_batches(self, indexes: list[int | None]) -> None:
        """Creates a pod for each index, in batches of 1, 2, 4, …; stops after the first batch with an error."""
        size = 1
        while indexes and self._failure is None:
            batch, indexes = indexes[:size], indexes[size:]
            for index in batch:
                self._attempt_action(lambda index=index: self._create_one(index))  # type: ignore[misc]
            size *= 2

    def _create_one(self, index: int | None) -> None:
        try:
            self._control.create(new_job_pod(self.state, index), self.state.job)
        except ApiError as error:
            if not is_namespace_terminating(error):
                raise
        self._active += 1

    def _delete_pods(self, pods: list[Object], *, remove_finalizers: bool) -> None:
        """Deletes pods; with `remove_finalizers` so that they are not counted."""
        for pod in pods:
            if self._attempt_action(lambda pod=pod: self._delete_one(pod, remove_finalizers)):  # type: ignore[misc]
                self._active -= 1
                self.state.terminating += 1
                self.state.ready -= is_pod_ready(pod)

    def _delete_one(self, pod: Object, remove_finalizers: bool) -> None:
        if remove_finalizers and has_job_tracking_finalizer(pod):
            remove_finalizer(self._controller.client, pod)
        try:
            self._control.delete(pod, self.state.job)
        except ApiError as error:
            if error.code != 404:
                raise

    def _attempt_action(self, action: Callable[[], Any]) -> bool:
        """Runs an action; keeps the first ApiError in `_failure`. Returns whether it succeeded."""
        try:
            action()
        except ApiError as error:
            self._failure = self._failure or error
            return False
        return True

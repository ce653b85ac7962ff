"""One pass over a Job: decides whether it has finished, and creates or deletes pods.

Specified by: pkg/controller/job/job_controller.go (syncJob, manageJob).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import PodControl, is_namespace_terminating, is_pod_ready, parse_time
from fakekube.controllers.job.backoff import BackoffRecord, get_remaining_time_per_index
from fakekube.controllers.job.conditions import ensure_condition_status, find_true_condition, new_condition
from fakekube.controllers.job.creation import active_pods_for_removal, new_job_pod
from fakekube.controllers.job.indexes import first_pending_indexes
from fakekube.controllers.job.policies import (
    is_pod_failed,
    match_pod_failure_policy,
    match_success_policy,
    only_replace_failed_pods,
)
from fakekube.controllers.job.sync_context import SyncContext, has_job_tracking_finalizer
from fakekube.controllers.job.tracking import StatusTracker, remove_finalizer
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["JobSync"]

#: The maximum number of pods that a pass creates or deletes (MaxPodCreateDeletePerSync).
MAX_PODS_PER_SYNC = 500
#: The minimum delay of a delayed pass, in seconds (syncJobBatchPeriod).
SYNC_BATCH = 1.0


class JobSync:
    """One pass.

    Args:
        controller: Provides the client, the clock and the recorder.
        key: The key of the Job.
        job: The Job.
        pods: The pods of the Job.
        backoff: The back-off record of the Job.
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
            The new back-off record of the Job.

        Raises:
            ApiError: A request failed, and the pass must be repeated.
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

    def _condition(self, type_: str, reason: str, message: str) -> Object:
        return new_condition(type_, reason, message, self._controller.client.now())

    # ---- has the Job finished

    def _check_decided(self) -> Object | None:
        """Returns the condition of a decision in a former pass, or of the podFailurePolicy; None if neither decides."""
        state = self.state
        success = find_true_condition(state.status, "SuccessCriteriaMet")
        if success is not None:
            return success
        failure = find_true_condition(state.status, "FailureTarget")
        if failure is not None:
            return self._condition("Failed", failure.get("reason", ""), failure.get("message", ""))
        if state.spec.get("podFailurePolicy") is None:
            return None
        failed = (pod for pod in state.pods if is_pod_failed(pod, state.job))
        message = next((found for pod in failed if (found := match_pod_failure_policy(state.job, pod).message)), None)
        return self._condition("FailureTarget", "PodFailurePolicy", message) if message else None

    def _check_limits(self) -> Object | None:
        """Checks backoffLimit and activeDeadlineSeconds; requeues the key for the end of the latter."""
        state, spec = self.state, self.state.spec
        if state.failed > spec["backoffLimit"] or self._past_backoff_limit_on_failure():
            text = "Job has reached the specified backoff limit"
            return self._condition("FailureTarget", "BackoffLimitExceeded", text)
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is None or state.is_suspended:
            return None
        remaining = (parse_time(state.status["startTime"]) + timedelta(seconds=deadline) - self._now).total_seconds()
        if remaining <= 0:
            text = "Job was active longer than specified deadline"
            return self._condition("FailureTarget", "DeadlineExceeded", text)
        self._controller.requeue_after(self._key, remaining)
        return None

    def _past_backoff_limit_on_failure(self) -> bool:
        """Whether the restarts of containers exceed backoffLimit; they count with restartPolicy OnFailure."""
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
                state.finished = self._condition("SuccessCriteriaMet", "SuccessPolicy", message)

    def _check_failed_indexes(self, failed: int) -> Object | None:
        state, maximum = self.state, self.state.spec.get("maxFailedIndexes")
        if maximum is not None and failed > maximum:
            text = "Job has exceeded the specified maximal number of failed indexes"
            return self._condition("FailureTarget", "MaxFailedIndexesExceeded", text)
        if failed and failed + state.succeeded_indexes.total() >= state.spec["completions"]:
            return self._condition("FailureTarget", "FailedIndexes", "Job has failed indexes")
        return None

    def _delete_active_pods(self) -> None:
        """Deletes the active pods of a Job that has finished. If that fails, the outcome is not recorded yet."""
        self._delete(self.state.active, remove_finalizers=False)
        if self._failure is not None:
            self.state.finished = None

    # ---- pods

    def _manage_job(self) -> bool:
        """Creates and deletes pods. Returns whether the Job was suspended or resumed."""
        state, deleted = self.state, "deletionTimestamp" in self.state.job["metadata"]
        if not deleted:
            self._adjust_pods()
        completions = state.spec.get("completions")
        enough = state.succeeded > 0 if completions is None else state.succeeded >= completions
        if enough and not self._active:
            text = "Reached expected number of succeeded pods"
            state.finished = self._condition("SuccessCriteriaMet", "CompletionsReached", text)
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
            state.status.pop("startTime", None)
        else:
            state.status["startTime"] = now
        return True

    def _adjust_pods(self) -> None:
        state = self.state
        if state.is_suspended:
            self._delete(active_pods_for_removal(state, self._active, self._now), remove_finalizers=True)
            return
        wanted = self._wanted_active()
        surplus = active_pods_for_removal(state, max(self._active - wanted, 0), self._now)[:MAX_PODS_PER_SYNC]
        if surplus:
            self._delete(surplus, remove_finalizers=True)
            return
        terminating = state.terminating if only_replace_failed_pods(state.job) else 0
        missing = wanted - terminating - self._active
        if missing > 0:
            self._create(min(missing, MAX_PODS_PER_SYNC))

    def _wanted_active(self) -> int:
        """Returns the number of pods that should be active."""
        state = self.state
        parallelism: int = state.spec.get("parallelism", 1)
        completions: int | None = state.spec.get("completions")
        if completions is None:
            return self._active if state.succeeded else parallelism
        return max(min(completions - state.succeeded, parallelism), 0)

    def _create(self, count: int) -> None:
        state = self.state
        wait = 0.0 if state.limits_indexes else state.backoff.remaining(self._now)
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
                self._attempt(lambda index=index: self._create_one(index))  # type: ignore[misc]
            size *= 2

    def _create_one(self, index: int | None) -> None:
        try:
            self._control.create(new_job_pod(self.state, index), self.state.job)
        except ApiError as error:
            if not is_namespace_terminating(error):
                raise
        self._active += 1

    def _delete(self, pods: list[Object], *, remove_finalizers: bool) -> None:
        """Deletes pods; with `remove_finalizers` so that they are not counted."""
        for pod in pods:
            if self._attempt(lambda pod=pod: self._delete_one(pod, remove_finalizers)):  # type: ignore[misc]
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

    def _attempt(self, action: Callable[[], Any]) -> bool:
        """Runs an action; keeps the first ApiError in `_failure`. Returns whether it succeeded."""
        try:
            action()
        except ApiError as error:
            self._failure = self._failure or error
            return False
        return True

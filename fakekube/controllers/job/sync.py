"""One pass over a Job: is it over, and if not, which pods does it need?

Specified by: pkg/controller/job/job_controller.go (syncJob, manageJob).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fakekube.client import ApiError
from fakekube.controllers.job.backoff import BackoffRecord, remaining_for_index
from fakekube.controllers.job.conditions import condition_of, ensured, made_condition
from fakekube.controllers.job.creation import made_pod, to_remove
from fakekube.controllers.job.indexes import first_pending
from fakekube.controllers.job.pass_state import Pass, has_finalizer
from fakekube.controllers.job.policies import is_pod_failed, match_failure, match_success, replaces_failed_only
from fakekube.controllers.job.tracking import Tracker, remove_finalizer
from fakekube.controllers.pods import PodControl, is_ready, moment, namespace_is_terminating
from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["JobSync"]

MAX_PODS_PER_SYNC = 500
SYNC_BATCH = 1.0
"""Seconds that a delayed sync waits at least."""


class JobSync:
    """A pass.

    Args:
        controller: whose client, clock and recorder are used.
        key: of the Job.
        job: as it stands.
        pods: of the Job.
        backoff: what is remembered of its failures.
    """

    def __init__(self, controller: Reconciler, key: Key, job: Object, pods: list[Object], backoff: BackoffRecord) -> None:
        self._controller = controller
        self._key = key
        self._backoff = backoff
        self._control = PodControl(controller.client, controller.recorder)
        self._now = controller.clock.now()
        self.state = Pass(job, pods)
        self._active = len(self.state.active)
        self._failure: ApiError | None = None

    def run(self) -> BackoffRecord:
        """Do the pass.

        Returns:
            What is to be remembered of the Job's failures.

        Raises:
            ApiError: the pass is to be repeated later.
        """
        state, old = self.state, self.state.job.get("status") or {}
        state.count_ended(self._backoff)
        if "startTime" not in state.status and not state.is_suspended:
            state.status["startTime"] = self._controller.client.now()
        state.finished = self._decided() or self._past_limits()
        if state.is_indexed:
            self._judge_indexes()
        turned = False
        if state.finished is not None:
            self._delete_active()
        else:
            turned = self._manage()
        new = {"active": self._active, "ready": state.ready, "terminating": state.terminating}
        changed = turned or self._active != old.get("active", 0)
        changed |= any(old.get(name) != new[name] for name in ("ready", "terminating"))
        state.status.update(new)
        flushed = Tracker(self._controller.client, self._controller.recorder, state).run(changed)
        if self._failure is not None:
            raise self._failure
        return state.backoff if flushed else self._backoff

    def _condition(self, type_: str, reason: str, message: str) -> Object:
        return made_condition(type_, reason, message, self._controller.client.now())

    # ---- is it over?

    def _decided(self) -> Object | None:
        """What was decided in a former pass, or what the podFailurePolicy decides."""
        state = self.state
        success = condition_of(state.status, "SuccessCriteriaMet")
        if success is not None:
            return success
        failure = condition_of(state.status, "FailureTarget")
        if failure is not None:
            return self._condition("Failed", failure.get("reason", ""), failure.get("message", ""))
        if state.spec.get("podFailurePolicy") is None:
            return None
        failed = (pod for pod in state.pods if is_pod_failed(pod, state.job))
        message = next((found for pod in failed if (found := match_failure(state.job, pod).message)), None)
        return self._condition("FailureTarget", "PodFailurePolicy", message) if message else None

    def _past_limits(self) -> Object | None:
        """backoffLimit and activeDeadlineSeconds; if the latter is not over yet, look again when it is."""
        state, spec = self.state, self.state.spec
        if state.failed > spec["backoffLimit"] or self._restarted_too_often():
            text = "Job has reached the specified backoff limit"
            return self._condition("FailureTarget", "BackoffLimitExceeded", text)
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is None or state.is_suspended:
            return None
        left = (moment(state.status["startTime"]) + timedelta(seconds=deadline) - self._now).total_seconds()
        if left <= 0:
            text = "Job was active longer than specified deadline"
            return self._condition("FailureTarget", "DeadlineExceeded", text)
        self._controller.requeue_after(self._key, left)
        return None

    def _restarted_too_often(self) -> bool:
        """With restartPolicy OnFailure the restarts of containers count."""
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

    def _judge_indexes(self) -> None:
        """maxFailedIndexes, failed indexes and the successPolicy of an Indexed Job."""
        state = self.state
        state.count_indexes()
        if state.failed_indexes is not None:
            if state.finished is None:
                state.finished = self._past_failed_indexes(state.failed_indexes.total())
            state.find_delayed()
        if state.finished is None:
            message = match_success(state.job, state.succeeded_indexes)
            if message is not None:
                state.finished = self._condition("SuccessCriteriaMet", "SuccessPolicy", message)

    def _past_failed_indexes(self, failed: int) -> Object | None:
        state, most = self.state, self.state.spec.get("maxFailedIndexes")
        if most is not None and failed > most:
            text = "Job has exceeded the specified maximal number of failed indexes"
            return self._condition("FailureTarget", "MaxFailedIndexesExceeded", text)
        if failed and failed + state.succeeded_indexes.total() >= state.spec["completions"]:
            return self._condition("FailureTarget", "FailedIndexes", "Job has failed indexes")
        return None

    def _delete_active(self) -> None:
        """The Job is over: delete what still runs. It is not over yet if that fails."""
        self._delete(self.state.active, free=False)
        if self._failure is not None:
            self.state.finished = None

    # ---- which pods does it need?

    def _manage(self) -> bool:
        """Create and delete pods; was the Job suspended or resumed?"""
        state, deleted = self.state, "deletionTimestamp" in self.state.job["metadata"]
        if not deleted:
            self._adjust()
        completions = state.spec.get("completions")
        enough = state.succeeded > 0 if completions is None else state.succeeded >= completions
        if enough and not self._active:
            text = "Reached expected number of succeeded pods"
            state.finished = self._condition("SuccessCriteriaMet", "CompletionsReached", text)
            return False
        return not deleted and self._tell_suspended()

    def _tell_suspended(self) -> bool:
        state, now = self.state, self._controller.client.now()
        word, status = ("suspended", "True") if state.is_suspended else ("resumed", "False")
        message = f"Job {word}"
        if not ensured(state.status, made_condition("Suspended", f"Job{word.title()}", message, now, status)):
            return False
        self._controller.recorder.event(state.job, "Normal", word.title(), message)
        if state.is_suspended:
            state.status.pop("startTime", None)
        else:
            state.status["startTime"] = now
        return True

    def _adjust(self) -> None:
        state = self.state
        if state.is_suspended:
            self._delete(to_remove(state, self._active, self._now), free=True)
            return
        wanted = self._wanted()
        surplus = to_remove(state, max(self._active - wanted, 0), self._now)[:MAX_PODS_PER_SYNC]
        if surplus:
            self._delete(surplus, free=True)
            return
        waiting = state.terminating if replaces_failed_only(state.job) else 0
        missing = wanted - waiting - self._active
        if missing > 0:
            self._create(min(missing, MAX_PODS_PER_SYNC))

    def _wanted(self) -> int:
        """How many pods are to run."""
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
            taken = state.taken_indexes(replaces_failed_only(state.job))
            pending = first_pending(taken, count, state.spec["completions"])
            waits = {index: remaining_for_index(state.delayed.get(index), self._now) for index in pending}
            indexes = [index for index in pending if waits[index] <= 0]
            wait = 0.0 if indexes else min(waits.values(), default=0.0)
        if wait > 0:
            self._controller.requeue_after(self._key, max(wait, SYNC_BATCH))
            return
        self._create_in_batches(indexes)

    def _create_in_batches(self, indexes: list[int | None]) -> None:
        """Create a pod for each index, in batches of 1, 2, 4, …; after a batch with a failure no further one is begun."""
        size = 1
        while indexes and self._failure is None:
            batch, indexes = indexes[:size], indexes[size:]
            for index in batch:
                self._attempt(lambda index=index: self._create_one(index))  # type: ignore[misc]
            size *= 2

    def _create_one(self, index: int | None) -> None:
        try:
            self._control.create(made_pod(self.state, index), self.state.job)
        except ApiError as error:
            if not namespace_is_terminating(error):
                raise
        self._active += 1

    def _delete(self, pods: list[Object], *, free: bool) -> None:
        """Delete pods, and take their finalizers off first if they are not to be counted (`free`)."""
        for pod in pods:
            if self._attempt(lambda pod=pod: self._delete_one(pod, free)):  # type: ignore[misc]
                self._active -= 1
                self.state.terminating += 1
                self.state.ready -= is_ready(pod)

    def _delete_one(self, pod: Object, free: bool) -> None:
        if free and has_finalizer(pod):
            remove_finalizer(self._controller.client, pod)
        try:
            self._control.delete(pod, self.state.job)
        except ApiError as error:
            if error.code != 404:
                raise

    def _attempt(self, action: Callable[[], Any]) -> bool:
        """Do something that the API may refuse; the first refusal is remembered."""
        try:
            action()
        except ApiError as error:
            self._failure = self._failure or error
            return False
        return True

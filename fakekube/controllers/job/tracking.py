"""The state of one pass over a Job, and the count of its terminated pods.

Each terminated pod is counted exactly once, also if requests fail in between. First the pod's uid is added to
status.uncountedTerminatedPods, then the finalizer of the pod is removed, and then the uid is removed from the list and the count
is incremented. Successes of Indexed Jobs are recorded as completed indexes instead.

Invariant: a pod with the finalizer is not in a count; a pod without it is, or does not belong to the Job.

Specified by: pkg/controller/job/job_controller.go (syncJobCtx, trackJobStatusAndRemoveFinalizers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apis.well_known import JOB_TRACKING_FINALIZER
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.controller_utils import is_pod_active, is_pod_ready, is_pod_terminating, phase_of
from fakekube.controllers.job.backoff_utils import BackoffRecord, get_finished_time
from fakekube.controllers.job.indexed_job_utils import OrderedIntervals, get_completion_index, parse_indexes
from fakekube.controllers.job.pod_failure_policy import (
    absolute_failure_count,
    is_index_failed,
    is_pod_failed,
    match_pod_failure_policy,
)
from fakekube.controllers.job.utils import ensure_condition_status, find_true_condition, new_condition


def has_job_tracking_finalizer(pod: StoredObject) -> bool:
    """Reports whether the pod has the finalizer, and so is not yet counted."""
    return JOB_TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ())


@dataclass(slots=True)
class SyncContext:
    """The state of one pass.

    Args:
        job: the Job; its metadata are replaced when the status is written.
        pods: the pods of the Job.
    """

    job: Object
    pods: list[Object]
    status: Object = field(init=False)
    """The new status, a copy that may be changed."""
    active: list[Object] = field(init=False)
    ready: int = field(init=False)
    terminating: int = field(init=False)
    uncounted_succeeded: frozenset[str] = field(init=False)
    uncounted_failed: frozenset[str] = field(init=False)
    """The uids in status.uncountedTerminatedPods at the beginning of the pass."""
    succeeded: int = 0
    failed: int = 0
    backoff: BackoffRecord = field(default_factory=BackoffRecord)
    finished: Object | None = None
    """The condition that decides the Job's outcome; None while it continues."""
    former_indexes: OrderedIntervals = field(default_factory=OrderedIntervals)
    """The completed indexes in the status at the beginning of the pass."""
    succeeded_indexes: OrderedIntervals = field(default_factory=OrderedIntervals)
    failed_indexes: OrderedIntervals | None = None
    """None if the Job has no backoffLimitPerIndex."""
    delayed: dict[int, Object] = field(default_factory=dict)
    """Index → the failed pod that keeps its finalizer until it is replaced (podsWithDelayedDeletionPerIndex)."""

    def __post_init__(self) -> None:
        status = dict(self.job.get("status") or {})
        uncounted = status.get("uncountedTerminatedPods") or {}
        status["uncountedTerminatedPods"] = {name: list(uncounted.get(name) or ()) for name in ("succeeded", "failed")}
        self.status = status
        self.active = [pod for pod in self.pods if is_pod_active(pod)]
        self.ready = sum(map(is_pod_ready, self.active))
        self.terminating = sum(map(is_pod_terminating, self.pods))
        self.uncounted_succeeded = frozenset(status["uncountedTerminatedPods"]["succeeded"])
        self.uncounted_failed = frozenset(status["uncountedTerminatedPods"]["failed"])

    # --- The spec -----------------------------------------------------------------------------------------------------

    @property
    def spec(self) -> Object:
        """The spec of the Job."""
        return self.job["spec"]  # type: ignore[no-any-return]

    @property
    def is_indexed(self) -> bool:
        """Whether completionMode is Indexed."""
        return self.spec.get("completionMode") == "Indexed"

    @property
    def is_suspended(self) -> bool:
        """Whether the Job is suspended."""
        return bool(self.spec.get("suspend"))

    @property
    def limits_indexes(self) -> bool:
        """Whether the Job has a backoffLimitPerIndex."""
        return self.spec.get("backoffLimitPerIndex") is not None

    def has_index(self, pod: Object) -> bool:
        """Reports whether the pod has a valid completion index."""
        completions: int = self.spec["completions"]
        return 0 <= get_completion_index(pod) < completions

    # --- Counting -----------------------------------------------------------------------------------------------------

    def count_terminated(self, record: BackoffRecord) -> None:
        """Sets `succeeded` and `failed`, including the counts in the status, and the updated back-off record."""
        succeeded = self._list_uncounted_pods(self.uncounted_succeeded, lambda pod: phase_of(pod) == "Succeeded")
        failed = self._list_uncounted_pods(self.uncounted_failed, lambda pod: is_pod_failed(pod, self.job))
        counted = sum(match_pod_failure_policy(self.job, pod).counts for pod in failed)
        self.succeeded = self.status.get("succeeded", 0) + len(succeeded) + len(self.uncounted_succeeded)
        self.failed = self.status.get("failed", 0) + counted + len(self.uncounted_failed)
        self.backoff = record.with_terminated_pods(succeeded, failed)

    def _list_uncounted_pods(self, listed: Iterable[str], meets: Callable[[Object], bool]) -> list[Object]:
        """Returns the pods with the finalizer that are not listed as uncounted and meet a condition."""
        return [
            pod
            for pod in self.pods
            if has_job_tracking_finalizer(pod)
            and pod["metadata"]["uid"] not in listed
            and (not self.is_indexed or self.has_index(pod))
            and meets(pod)
        ]

    def count_indexes(self) -> None:
        """Sets the completed and the failed indexes."""
        completions = self.spec["completions"]
        mine = [pod for pod in self.pods if has_job_tracking_finalizer(pod) and self.has_index(pod)]
        done = [get_completion_index(pod) for pod in mine if phase_of(pod) == "Succeeded"]
        self.former_indexes = parse_indexes(self.status.get("completedIndexes", ""), completions)
        self.succeeded_indexes = self.former_indexes.merge(OrderedIntervals.from_indexes(done))
        self.succeeded = self.succeeded_indexes.total()
        if self.limits_indexes:
            former = parse_indexes(self.status.get("failedIndexes") or "", completions)
            lost = [get_completion_index(pod) for pod in mine if is_index_failed(self.job, pod)]
            self.failed_indexes = former.merge(OrderedIntervals.from_indexes(lost))

    def find_delayed(self) -> None:
        """Sets `delayed`: for each index that is to be retried the last failed pod."""
        assert self.failed_indexes is not None
        busy = {get_completion_index(pod) for pod in self.active}
        for pod in self._list_uncounted_pods((), lambda pod: is_pod_failed(pod, self.job)):
            index = get_completion_index(pod)
            if index in busy or index in self.succeeded_indexes or index in self.failed_indexes:
                continue
            last = self.delayed.get(index)
            if last is None or (
                absolute_failure_count(last) <= absolute_failure_count(pod) and get_finished_time(pod) >= get_finished_time(last)
            ):
                self.delayed[index] = pod

    def taken_indexes(self, only_replace_failed: bool) -> OrderedIntervals:
        """Returns the indexes for which no pod is to be created.

        Args:
            only_replace_failed: terminating pods keep their index until they have failed.
        """
        busy = [*self.active, *(filter(is_pod_terminating, self.pods) if only_replace_failed else ())]
        indexes = OrderedIntervals.from_indexes({index for pod in busy if (index := get_completion_index(pod)) >= 0})
        return self.succeeded_indexes.merge(indexes).merge(self.failed_indexes or OrderedIntervals())


#: The maximum number of uncounted pods in a status (MaxUncountedPods).
MAX_UNCOUNTED: Final = 500
#: Fields that are pointers in Go: empty values are written.
_POINTERS: Final = frozenset({"ready", "terminating", "failedIndexes", "uncountedTerminatedPods"})


def remove_finalizer(client: Client, pod: Object) -> None:
    """Removes the tracking finalizer of a pod. Raises ApiError, unless the pod is not found."""
    metadata = pod["metadata"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [JOB_TRACKING_FINALIZER]}}
    try:
        client.strategic_patch("pods", metadata["name"], patch, namespace=metadata["namespace"])
    except ApiError as error:
        if error.code != 404:
            raise


class StatusTracker:
    """Writes the status of one Job in a pass.

    Args:
        client: the client of the controller.
        recorder: the recorder of the controller.
        state: the state of the pass.
    """

    def __init__(self, client: Client, recorder: Any, state: SyncContext) -> None:
        self._client = client
        self._recorder = recorder
        self._state = state
        self._with_finalizer = {pod["metadata"]["uid"] for pod in state.pods if has_job_tracking_finalizer(pod)}

    def run(self, changed: bool) -> bool:
        """Counts terminated pods, and marks the Job as finished if it is.

        Args:
            changed: whether the new status already differs from the stored one.

        Returns:
            whether the status with the uncounted pods was written, after which the back-off record may be updated.
        """
        changed |= self._count_released()
        counted, more, changed = self._list_uncounted(changed)
        changed |= self._set_interim_condition()
        flushed = changed
        if changed:
            self._write_status()
        self._remove_finalizers(counted)
        changed = self._count_released()
        finished = not more and self._set_finished_condition()
        if changed or finished:
            self._write_status()
        if finished:
            self._record_finished()
        return flushed

    # --- Counting -----------------------------------------------------------------------------------------------------

    def _list_uncounted(self, changed: bool) -> tuple[list[Object], bool, bool]:
        """Adds terminated pods to the list of uncounted ones.

        Returns:
            the pods whose finalizers are to be removed, whether there are more, and whether the status has changed.
        """
        state, released = self._state, []
        uncounted = state.status["uncountedTerminatedPods"]
        new_indexes: list[int] = []
        more = False
        for pod in sorted(state.pods, key=get_completion_index) if state.is_indexed else state.pods:
            failed = is_pod_failed(pod, state.job)
            if not has_job_tracking_finalizer(pod) or not self._can_remove_finalizer(pod, failed):
                continue
            released.append(pod)
            uid = pod["metadata"]["uid"]
            if phase_of(pod) == "Succeeded" and uid not in state.uncounted_failed:
                if state.is_indexed:
                    if state.has_index(pod) and get_completion_index(pod) not in state.former_indexes:
                        new_indexes.append(get_completion_index(pod))
                elif uid not in state.uncounted_succeeded:
                    uncounted["succeeded"].append(uid)
                    changed = True
            elif (failed or self._is_failing()) and uid not in state.uncounted_failed and self._failure_counts(pod):
                uncounted["failed"].append(uid)
                changed = True
            more = len(new_indexes) + len(uncounted["succeeded"]) + len(uncounted["failed"]) >= MAX_UNCOUNTED
            if more:
                break
        if state.is_indexed:
            changed |= self._update_indexes(new_indexes)
        return released, more, changed

    def _can_remove_finalizer(self, pod: Object, failed: bool) -> bool:
        state = self._state
        if "deletionTimestamp" in state.job["metadata"] or state.finished or phase_of(pod) == "Succeeded":
            return True
        last = state.delayed.get(get_completion_index(pod))
        return failed and (last is None or last["metadata"]["uid"] != pod["metadata"]["uid"])

    def _is_failing(self) -> bool:
        finished = self._state.finished
        return finished is not None and finished["type"] != "SuccessCriteriaMet"

    def _failure_counts(self, pod: Object) -> bool:
        state = self._state
        return (not state.is_indexed or state.has_index(pod)) and match_pod_failure_policy(state.job, pod).counts

    def _update_indexes(self, new: list[int]) -> bool:
        """Sets the indexes in the status. Returns whether they have changed."""
        state, status = self._state, self._state.status
        state.succeeded_indexes = state.succeeded_indexes.merge(OrderedIntervals.from_indexes(new))
        fields: Object = {"succeeded": state.succeeded_indexes.total(), "completedIndexes": str(state.succeeded_indexes)}
        changed = bool(new) or fields["completedIndexes"] != status.get("completedIndexes", "")
        if state.failed_indexes is not None:
            fields["failedIndexes"] = str(state.failed_indexes)
            changed |= fields["failedIndexes"] != status.get("failedIndexes")
        status.update(fields)
        return changed

    def _remove_finalizers(self, pods: list[Object]) -> None:
        """Removes the finalizers of pods. Raises the first ApiError, after the status was written."""
        failure = None
        for pod in pods:
            try:
                remove_finalizer(self._client, pod)
            except ApiError as error:
                failure = failure or error
            else:
                self._with_finalizer.discard(pod["metadata"]["uid"])
        if failure is not None:
            if self._count_released():
                self._write_status()
            raise failure

    def _count_released(self) -> bool:
        """Counts the listed pods that have lost their finalizers. Returns whether there were any."""
        status, found = self._state.status, False
        for name, uids in status["uncountedTerminatedPods"].items():
            kept = [uid for uid in uids if uid in self._with_finalizer]
            if len(kept) != len(uids):
                status[name] = status.get(name, 0) + len(uids) - len(kept)
                uids[:] = kept
                found = True
        return found

    # --- The outcome --------------------------------------------------------------------------------------------------

    def _set_interim_condition(self) -> bool:
        """Adds SuccessCriteriaMet or FailureTarget to the status, if that was decided. Returns whether it is new."""
        state, now = self._state, self._client.now()
        finished = state.finished
        if finished is None or finished["type"] not in ("FailureTarget", "SuccessCriteriaMet"):
            return False
        final = "Failed" if finished["type"] == "FailureTarget" else "Complete"
        known = find_true_condition(state.status, finished["type"]) is not None
        if not known:
            state.status["conditions"] = [*(state.status.get("conditions") or ()), finished]
        state.finished = new_condition(final, finished["reason"], finished["message"], now)
        return not known

    def _set_finished_condition(self) -> bool:
        """Adds Complete or Failed to the status, if all pods have terminated and are counted. Returns whether it did."""
        state = self._state
        if state.finished is None or any(state.status["uncountedTerminatedPods"].values()) or state.terminating > 0:
            return False
        condition = {**state.finished, "lastProbeTime": self._client.now(), "lastTransitionTime": self._client.now()}
        ensure_condition_status(state.status, condition)
        if condition["type"] == "Complete":
            state.status["completionTime"] = state.finished["lastTransitionTime"]
        return True

    def _record_finished(self) -> None:
        state = self._state
        assert state.finished is not None
        if state.finished["type"] != "Complete":
            self._recorder.event(state.job, "Warning", state.finished["reason"], state.finished["message"])
            return
        completions = state.spec.get("completions")
        if completions is not None and state.status.get("succeeded", 0) > completions:
            text = "Too many succeeded pods running after completion count reached"
            self._recorder.event(state.job, "Warning", "TooManySucceededPods", text)
        self._recorder.event(state.job, "Normal", "Completed", "Job completed")

    def _write_status(self) -> None:
        state = self._state
        status = {name: value for name, value in state.status.items() if value or name in _POINTERS}
        uncounted = {name: list(uids) for name, uids in status["uncountedTerminatedPods"].items() if uids}
        status["uncountedTerminatedPods"] = uncounted
        written = self._client.update({**state.job, "status": status}, subresource="status")
        state.job = {**state.job, "metadata": written["metadata"]}

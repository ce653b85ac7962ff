"""Counts each terminated pod of a Job exactly once, also if requests fail in between.

First the pod's uid is added to status.uncountedTerminatedPods, then the finalizer of the pod is removed, and then the uid is
removed from the list and the count is incremented. Successes of Indexed Jobs are recorded as completed indexes instead.

Invariant: a pod with the finalizer is not in a count; a pod without it is, or does not belong to the Job.

Specified by: pkg/controller/job/job_controller.go (trackJobStatusAndRemoveFinalizers).
"""

from __future__ import annotations

from typing import Any

from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.controller_utils import phase_of
from fakekube.controllers.job.conditions import ensure_condition_status, find_true_condition, new_condition
from fakekube.controllers.job.indexes import OrderedIntervals, get_completion_index
from fakekube.controllers.job.policies import is_pod_failed, match_pod_failure_policy
from fakekube.controllers.job.sync_context import FINALIZER, SyncContext, has_job_tracking_finalizer
from fakekube.controllers.objects import Object

__all__ = ["StatusTracker", "remove_finalizer"]


#: The maximum number of uncounted pods in a status (MaxUncountedPods).
MAX_UNCOUNTED = 500
#: Fields that are pointers in Go: empty values are written.
_POINTERS = frozenset({"ready", "terminating", "failedIndexes", "uncountedTerminatedPods"})


def remove_finalizer(client: Client, pod: Object) -> None:
    """Removes the tracking finalizer of a pod. Raises ApiError, unless the pod is not found."""
    metadata = pod["metadata"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    try:
        client.strategic_patch("pods", metadata["name"], patch, namespace=metadata["namespace"])
    except ApiError as error:
        if error.code != 404:
            raise


class StatusTracker:
    """Writes the status of one Job in a pass.

    Args:
        client: The client of the controller.
        recorder: The recorder of the controller.
        state: The state of the pass.
    """

    def __init__(self, client: Client, recorder: Any, state: SyncContext) -> None:
        self._client = client
        self._recorder = recorder
        self._state = state
        self._with_finalizer = {pod["metadata"]["uid"] for pod in state.pods if has_job_tracking_finalizer(pod)}

    def run(self, changed: bool) -> bool:
        """Counts terminated pods, and marks the Job as finished if it is.

        Args:
            changed: Whether the new status already differs from the stored one.

        Returns:
            Whether the status with the uncounted pods was written, after which the back-off record may be updated.
        """
        changed |= self._count_released()
        counted, more, changed = self._list_uncounted(changed)
        changed |= self._set_interim_condition()
        flushed = changed
        if changed:
            self._write()
        self._remove_finalizers(counted)
        changed = self._count_released()
        finished = not more and self._set_finished_condition()
        if changed or finished:
            self._write()
        if finished:
            self._record_finished()
        return flushed

    # ---- counting

    def _list_uncounted(self, changed: bool) -> tuple[list[Object], bool, bool]:
        """Adds terminated pods to the list of uncounted ones.

        Returns:
            The pods whose finalizers are to be removed, whether there are more, and whether the status has changed.
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
        state.succeeded_indexes = state.succeeded_indexes.merge(OrderedIntervals.of(new))
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
                self._write()
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

    # ---- the outcome

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

    def _write(self) -> None:
        state = self._state
        status = {name: value for name, value in state.status.items() if value or name in _POINTERS}
        uncounted = {name: list(uids) for name, uids in status["uncountedTerminatedPods"].items() if uids}
        status["uncountedTerminatedPods"] = uncounted
        written = self._client.update({**state.job, "status": status}, subresource="status")
        state.job = {**state.job, "metadata": written["metadata"]}

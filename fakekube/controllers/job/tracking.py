"""Counts each ended pod of a Job exactly once, though controller and API may fail in between.

First the pod's uid is written into status.uncountedTerminatedPods, then the pod loses its finalizer, then the uid leaves the
list and the count grows. Indexed Jobs count successes by index instead.

Invariant: a pod with the finalizer is not counted; a pod without it is counted, or never was the Job's.

Specified by: pkg/controller/job/job_controller.go (trackJobStatusAndRemoveFinalizers).
"""

from __future__ import annotations

from typing import Any

from fakekube.client import ApiError, Client
from fakekube.controllers.job.conditions import condition_of, ensured, made_condition
from fakekube.controllers.job.indexes import Intervals, completion_index
from fakekube.controllers.job.pass_state import FINALIZER, Pass, has_finalizer
from fakekube.controllers.job.policies import is_pod_failed, match_failure
from fakekube.controllers.owners import STRATEGIC_MERGE_PATCH
from fakekube.controllers.pods import phase_of

__all__ = ["Tracker", "remove_finalizer"]

Object = dict[str, Any]

MAX_UNCOUNTED = 500
_ALWAYS_THERE = frozenset({"ready", "terminating", "failedIndexes", "uncountedTerminatedPods"})
"""Pointers in Go: they are kept though they are empty."""


def remove_finalizer(client: Client, pod: Object) -> None:
    """Let the pod go, as far as the Job is concerned. Raises ApiError, unless the pod is gone."""
    metadata = pod["metadata"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    path = client.path(client.resource("pods"), metadata["namespace"], metadata["name"])
    try:
        client.call("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)
    except ApiError as error:
        if error.code != 404:
            raise


class Tracker:
    """Writes the status of one Job in a pass.

    Args:
        client: writes.
        recorder: records that the Job is over.
        state: of the pass.
    """

    def __init__(self, client: Client, recorder: Any, state: Pass) -> None:
        self._client = client
        self._recorder = recorder
        self._state = state
        self._with_finalizer = {pod["metadata"]["uid"] for pod in state.pods if has_finalizer(pod)}

    def run(self, changed: bool) -> bool:
        """Count ended pods, and finish the Job if it is over.

        Args:
            changed: the status differs already from the one that is stored.

        Returns:
            Whether the status was written with uncounted pods in it, after which the back-off may be remembered.
        """
        changed |= self._count_freed()
        counted, more, changed = self._list_uncounted(changed)
        changed |= self._decide()
        flushed = changed
        if changed:
            self._write()
        self._free(counted)
        changed = self._count_freed()
        over = not more and self._finish()
        if changed or over:
            self._write()
        if over:
            self._record()
        return flushed

    # ---- the three steps of counting

    def _list_uncounted(self, changed: bool) -> tuple[list[Object], bool, bool]:
        """List the ended pods as uncounted; gives those to be freed, whether there are more, and whether the status changed."""
        state, freed = self._state, []
        uncounted = state.status["uncountedTerminatedPods"]
        new_indexes: list[int] = []
        more = False
        for pod in sorted(state.pods, key=completion_index) if state.is_indexed else state.pods:
            failed = is_pod_failed(pod, state.job)
            if not has_finalizer(pod) or not self._may_be_freed(pod, failed):
                continue
            freed.append(pod)
            uid = pod["metadata"]["uid"]
            if phase_of(pod) == "Succeeded" and uid not in state.uncounted_failed:
                if state.is_indexed:
                    if state.has_index(pod) and completion_index(pod) not in state.former_indexes:
                        new_indexes.append(completion_index(pod))
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
            changed |= self._tell_indexes(new_indexes)
        return freed, more, changed

    def _may_be_freed(self, pod: Object, failed: bool) -> bool:
        state = self._state
        if "deletionTimestamp" in state.job["metadata"] or state.finished or phase_of(pod) == "Succeeded":
            return True
        last = state.delayed.get(completion_index(pod))
        return failed and (last is None or last["metadata"]["uid"] != pod["metadata"]["uid"])

    def _is_failing(self) -> bool:
        finished = self._state.finished
        return finished is not None and finished["type"] != "SuccessCriteriaMet"

    def _failure_counts(self, pod: Object) -> bool:
        state = self._state
        return (not state.is_indexed or state.has_index(pod)) and match_failure(state.job, pod).counts

    def _tell_indexes(self, new: list[int]) -> bool:
        """Bring the indexes in the status up to date; have they changed?"""
        state, status = self._state, self._state.status
        state.succeeded_indexes = state.succeeded_indexes.merge(Intervals.of(new))
        told: Object = {"succeeded": state.succeeded_indexes.total(), "completedIndexes": str(state.succeeded_indexes)}
        changed = bool(new) or told["completedIndexes"] != status.get("completedIndexes", "")
        if state.failed_indexes is not None:
            told["failedIndexes"] = str(state.failed_indexes)
            changed |= told["failedIndexes"] != status.get("failedIndexes")
        status.update(told)
        return changed

    def _free(self, pods: list[Object]) -> None:
        """Take the finalizers off. Raises ApiError, after the status has been written."""
        failure = None
        for pod in pods:
            try:
                remove_finalizer(self._client, pod)
            except ApiError as error:
                failure = failure or error
            else:
                self._with_finalizer.discard(pod["metadata"]["uid"])
        if failure is not None:
            if self._count_freed():
                self._write()
            raise failure

    def _count_freed(self) -> bool:
        """Count the listed pods that have lost their finalizers; were there any?"""
        status, found = self._state.status, False
        for name, uids in status["uncountedTerminatedPods"].items():
            kept = [uid for uid in uids if uid in self._with_finalizer]
            if len(kept) != len(uids):
                status[name] = status.get(name, 0) + len(uids) - len(kept)
                uids[:] = kept
                found = True
        return found

    # ---- the end of a Job

    def _decide(self) -> bool:
        """Put the condition that decides about the Job into the status; the other one follows when all pods are gone."""
        state, now = self._state, self._client.now()
        finished = state.finished
        if finished is None or finished["type"] not in ("FailureTarget", "SuccessCriteriaMet"):
            return False
        final = "Failed" if finished["type"] == "FailureTarget" else "Complete"
        known = condition_of(state.status, finished["type"]) is not None
        if not known:
            state.status["conditions"] = [*(state.status.get("conditions") or ()), finished]
        state.finished = made_condition(final, finished["reason"], finished["message"], now)
        return not known

    def _finish(self) -> bool:
        """Mark the Job as over, if all of its pods are counted and gone."""
        state = self._state
        if state.finished is None or any(state.status["uncountedTerminatedPods"].values()) or state.terminating > 0:
            return False
        condition = {**state.finished, "lastProbeTime": self._client.now(), "lastTransitionTime": self._client.now()}
        ensured(state.status, condition)
        if condition["type"] == "Complete":
            state.status["completionTime"] = state.finished["lastTransitionTime"]
        return True

    def _record(self) -> None:
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
        status = {name: value for name, value in state.status.items() if value or name in _ALWAYS_THERE}
        uncounted = {name: list(uids) for name, uids in status["uncountedTerminatedPods"].items() if uids}
        status["uncountedTerminatedPods"] = uncounted
        written = self._client.update({**state.job, "status": status}, subresource="status")
        state.job = {**state.job, "metadata": written["metadata"]}

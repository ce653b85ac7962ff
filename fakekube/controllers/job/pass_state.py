"""What one pass over a Job knows: its pods sorted by state, and the status that is being made.

Specified by: pkg/controller/job/job_controller.go (syncJobCtx).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fakekube.controllers.job.backoff import BackoffRecord, finished_time
from fakekube.controllers.job.indexes import Intervals, completion_index, parse_indexes
from fakekube.controllers.job.policies import absolute_failure_count, is_index_failed, is_pod_failed, match_failure
from fakekube.controllers.pods import is_active, is_ready, is_terminating, phase_of

__all__ = ["FINALIZER", "Pass", "has_finalizer"]

Object = dict[str, Any]

FINALIZER = "batch.kubernetes.io/job-tracking"
"""Held by pods that have not been counted."""


def has_finalizer(pod: Object) -> bool:
    """Has the pod not been counted yet?"""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


@dataclass(slots=True)
class Pass:
    """One pass.

    Args:
        job: as it stands; replaced by what a write of its status is answered with.
        pods: of the Job.
    """

    job: Object
    pods: list[Object]
    status: Object = field(init=False)
    """The status that is being made: what it holds is its own."""
    active: list[Object] = field(init=False)
    ready: int = field(init=False)
    terminating: int = field(init=False)
    uncounted_succeeded: frozenset[str] = field(init=False)
    uncounted_failed: frozenset[str] = field(init=False)
    """Uids that the status listed as uncounted when the pass began."""
    succeeded: int = 0
    failed: int = 0
    backoff: BackoffRecord = field(default_factory=BackoffRecord)
    finished: Object | None = None
    """The condition that the Job is to have, if it is over."""
    former_indexes: Intervals = field(default_factory=Intervals)
    """The completed indexes in the status when the pass began."""
    succeeded_indexes: Intervals = field(default_factory=Intervals)
    failed_indexes: Intervals | None = None
    """None if the Job has no back-off limit per index."""
    delayed: dict[int, Object] = field(default_factory=dict)
    """By index the failed pod that stays until another one takes its place."""

    def __post_init__(self) -> None:
        status = dict(self.job.get("status") or {})
        uncounted = status.get("uncountedTerminatedPods") or {}
        status["uncountedTerminatedPods"] = {name: list(uncounted.get(name) or ()) for name in ("succeeded", "failed")}
        self.status = status
        self.active = [pod for pod in self.pods if is_active(pod)]
        self.ready = sum(map(is_ready, self.active))
        self.terminating = sum(map(is_terminating, self.pods))
        self.uncounted_succeeded = frozenset(status["uncountedTerminatedPods"]["succeeded"])
        self.uncounted_failed = frozenset(status["uncountedTerminatedPods"]["failed"])

    # ---- what the Job asks for

    @property
    def spec(self) -> Object:
        """The Job's spec."""
        return self.job["spec"]  # type: ignore[no-any-return]

    @property
    def is_indexed(self) -> bool:
        """Is completionMode Indexed?"""
        return self.spec.get("completionMode") == "Indexed"

    @property
    def is_suspended(self) -> bool:
        """Is it suspended?"""
        return bool(self.spec.get("suspend"))

    @property
    def limits_indexes(self) -> bool:
        """Does each index have a back-off limit of its own?"""
        return self.spec.get("backoffLimitPerIndex") is not None

    def has_index(self, pod: Object) -> bool:
        """Does the pod have one of the Job's indexes?"""
        completions: int = self.spec["completions"]
        return 0 <= completion_index(pod) < completions

    # ---- counting

    def count_ended(self, former: BackoffRecord) -> None:
        """Count the pods that have ended, with those that the status counts already."""
        succeeded = self._uncounted(self.uncounted_succeeded, lambda pod: phase_of(pod) == "Succeeded")
        failed = self._uncounted(self.uncounted_failed, lambda pod: is_pod_failed(pod, self.job))
        counted = sum(match_failure(self.job, pod).counts for pod in failed)
        self.succeeded = self.status.get("succeeded", 0) + len(succeeded) + len(self.uncounted_succeeded)
        self.failed = self.status.get("failed", 0) + counted + len(self.uncounted_failed)
        self.backoff = former.after(succeeded, failed)

    def _uncounted(self, listed: Iterable[str], meets: Callable[[Object], bool]) -> list[Object]:
        """The pods that nobody has counted or listed, and that meet a condition."""
        return [
            pod
            for pod in self.pods
            if has_finalizer(pod)
            and pod["metadata"]["uid"] not in listed
            and (not self.is_indexed or self.has_index(pod))
            and meets(pod)
        ]

    def count_indexes(self) -> None:
        """Find the completed and the failed indexes."""
        completions = self.spec["completions"]
        mine = [pod for pod in self.pods if has_finalizer(pod) and self.has_index(pod)]
        done = [completion_index(pod) for pod in mine if phase_of(pod) == "Succeeded"]
        self.former_indexes = parse_indexes(self.status.get("completedIndexes", ""), completions)
        self.succeeded_indexes = self.former_indexes.merge(Intervals.of(done))
        self.succeeded = self.succeeded_indexes.total()
        if self.limits_indexes:
            former = parse_indexes(self.status.get("failedIndexes") or "", completions)
            lost = [completion_index(pod) for pod in mine if is_index_failed(self.job, pod)]
            self.failed_indexes = former.merge(Intervals.of(lost))

    def find_delayed(self) -> None:
        """Find, for each index that is to be tried again, the last pod that failed."""
        assert self.failed_indexes is not None
        busy = {completion_index(pod) for pod in self.active}
        for pod in self._uncounted((), lambda pod: is_pod_failed(pod, self.job)):
            index = completion_index(pod)
            if index in busy or index in self.succeeded_indexes or index in self.failed_indexes:
                continue
            last = self.delayed.get(index)
            if last is None or (
                absolute_failure_count(last) <= absolute_failure_count(pod) and finished_time(pod) >= finished_time(last)
            ):
                self.delayed[index] = pod

    def taken_indexes(self, replaces_failed_only: bool) -> Intervals:
        """The indexes that no pod is to be made for."""
        busy = [*self.active, *(filter(is_terminating, self.pods) if replaces_failed_only else ())]
        indexes = Intervals.of({index for pod in busy if (index := completion_index(pod)) >= 0})
        return self.succeeded_indexes.merge(indexes).merge(self.failed_indexes or Intervals())

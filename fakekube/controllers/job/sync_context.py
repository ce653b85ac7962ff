"""The state of one pass over a Job: its pods by state, and the new status.

Specified by: pkg/controller/job/job_controller.go (syncJobCtx).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fakekube.controllers.controller_utils import is_pod_active, is_pod_ready, is_pod_terminating, phase_of
from fakekube.controllers.job.backoff import BackoffRecord, get_finished_time
from fakekube.controllers.job.indexes import OrderedIntervals, get_completion_index, parse_indexes
from fakekube.controllers.job.policies import absolute_failure_count, is_index_failed, is_pod_failed, match_pod_failure_policy
from fakekube.controllers.objects import Object

__all__ = ["FINALIZER", "SyncContext", "has_job_tracking_finalizer"]


#: The finalizer of pods that are not yet counted (JobTrackingFinalizer).
FINALIZER = "batch.kubernetes.io/job-tracking"


def has_job_tracking_finalizer(pod: Object) -> bool:
    """Whether the pod has the finalizer, and so is not yet counted."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


@dataclass(slots=True)
class SyncContext:
    """The state of one pass.

    Args:
        job: The Job; its metadata are replaced when the status is written.
        pods: The pods of the Job.
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

    # ---- the spec

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
        """Whether the pod has a valid completion index."""
        completions: int = self.spec["completions"]
        return 0 <= get_completion_index(pod) < completions

    # ---- counting

    def count_terminated(self, record: BackoffRecord) -> None:
        """Sets `succeeded` and `failed`, including the counts in the status, and the updated back-off record."""
        succeeded = self._uncounted(self.uncounted_succeeded, lambda pod: phase_of(pod) == "Succeeded")
        failed = self._uncounted(self.uncounted_failed, lambda pod: is_pod_failed(pod, self.job))
        counted = sum(match_pod_failure_policy(self.job, pod).counts for pod in failed)
        self.succeeded = self.status.get("succeeded", 0) + len(succeeded) + len(self.uncounted_succeeded)
        self.failed = self.status.get("failed", 0) + counted + len(self.uncounted_failed)
        self.backoff = record.updated(succeeded, failed)

    def _uncounted(self, listed: Iterable[str], meets: Callable[[Object], bool]) -> list[Object]:
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
        self.succeeded_indexes = self.former_indexes.merge(OrderedIntervals.of(done))
        self.succeeded = self.succeeded_indexes.total()
        if self.limits_indexes:
            former = parse_indexes(self.status.get("failedIndexes") or "", completions)
            lost = [get_completion_index(pod) for pod in mine if is_index_failed(self.job, pod)]
            self.failed_indexes = former.merge(OrderedIntervals.of(lost))

    def find_delayed(self) -> None:
        """Sets `delayed`: for each index that is to be retried the last failed pod."""
        assert self.failed_indexes is not None
        busy = {get_completion_index(pod) for pod in self.active}
        for pod in self._uncounted((), lambda pod: is_pod_failed(pod, self.job)):
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
            only_replace_failed: Terminating pods keep their index until they have failed.
        """
        busy = [*self.active, *(filter(is_pod_terminating, self.pods) if only_replace_failed else ())]
        indexes = OrderedIntervals.of({index for pod in busy if (index := get_completion_index(pod)) >= 0})
        return self.succeeded_indexes.merge(indexes).merge(self.failed_indexes or OrderedIntervals())

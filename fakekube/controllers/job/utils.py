"""Functions of the Job controller: conditions, completion indexes, policies of failure and success, and the back-off.

SuccessCriteriaMet or FailureTarget is set when the outcome of the Job is decided; Complete or Failed is set when all pods have
terminated and are counted.

Completion indexes are sorted intervals ("1,3-5,7").

The back-off before a Job replaces failed pods is 10 s after the first failure, then twice as long each time, at most 10 min. A
success resets it. The records are lost when the controller stops, as those of the real one are.

Invariant: intervals are sorted, do not overlap and do not touch.

Specified by: pkg/controller/job/{indexed_job_utils,pod_failure_policy,success_policy,backoff_utils}.go,
pkg/controller/job/util/utils.go, pkg/controller/job/job_controller.go (ensureJobConditionStatus).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.base.golang.strconv import MAX_INT32, parse_int
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.controller_utils import get_pod_ready_condition, parse_time, phase_of


def new_condition(type_: str, reason: str, message: str, now: str, status: str = "True") -> Object:
    """Returns a new condition with both times set to `now`."""
    times = {"lastProbeTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def find_true_condition(status: Object, type_: str) -> Object | None:
    """Returns the condition of this type, if its status is True."""
    condition = find_condition(status, type_)
    return condition if condition is not None and condition.get("status") == "True" else None


def finished_condition(job: StoredObject) -> Object | None:
    """Returns the condition Complete or Failed whose status is True; None if the Job has not finished (FinishedCondition)."""
    status = job.get("status") or {}
    return find_true_condition(status, "Complete") or find_true_condition(status, "Failed")


def finished_type(job: Object) -> str:
    """Returns "Complete" or "Failed"; "" if the Job has not finished."""
    condition = finished_condition(job)
    return "" if condition is None else str(condition["type"])


def is_job_finished(job: StoredObject) -> bool:
    """Reports whether the Job is Complete or Failed (IsJobFinished)."""
    return finished_condition(job) is not None


def ensure_condition_status(status: Object, condition: Object) -> bool:
    """Sets a condition in the status. Returns whether it has changed; a condition with the status False is not added."""
    conditions = list(status.get("conditions") or ())
    for index, one in enumerate(conditions):
        if one["type"] == condition["type"]:
            if all(one.get(name, "") == condition[name] for name in ("status", "reason", "message")):
                return False
            conditions[index] = condition
            break
    else:
        if condition["status"] == "False":
            return False
        conditions.append(condition)
    status["conditions"] = conditions
    return True


#: The annotation and the label of the pods of an Indexed Job.
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True, frozen=True)
class OrderedIntervals:
    """A set of indexes."""

    items: tuple[tuple[int, int], ...] = ()
    """The first and the last index of each interval."""

    @classmethod
    def from_indexes(cls, indexes: Iterable[int]) -> OrderedIntervals:
        """Returns the set of these indexes, which may have any order."""
        return cls().merge(cls(tuple((index, index) for index in sorted(indexes))))

    def merge(self, other: OrderedIntervals) -> OrderedIntervals:
        """Returns the union."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(self.items + other.items):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        return OrderedIntervals(tuple(merged))

    def total(self) -> int:
        """Returns the number of indexes."""
        return sum(last - first + 1 for first, last in self.items)

    def overlap(self, other: OrderedIntervals) -> int:
        """Returns the number of indexes that are in both sets."""
        return sum(max(min(last, end) - max(first, start) + 1, 0) for first, last in self.items for start, end in other.items)

    def __contains__(self, index: int) -> bool:
        return any(first <= index <= last for first, last in self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __str__(self) -> str:
        """Formats the set. Two consecutive indexes are written as two numbers, more as a range."""
        return ",".join(
            str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}" for first, last in self.items
        )


def parse_indexes(text: str, completions: int) -> OrderedIntervals:
    """Parses a list of indexes below `completions`; malformed parts are skipped."""
    found = []
    for part in text.split(",") if text else ():
        limits = part.split("-")
        try:
            first, last = int(limits[0]), int(limits[1] if len(limits) > 1 else limits[0])
        except ValueError:
            continue
        if first >= completions:
            break
        found.append((first, min(last, completions - 1)))
    return OrderedIntervals().merge(OrderedIntervals(tuple(found)))


def get_completion_index(pod: Object) -> int:
    """Returns the completion index in the pod's annotation; -1 if there is none."""
    text = (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX, "")
    try:
        return max(parse_int(text), -1)
    except ValueError:
        return -1


def first_pending_indexes(taken: OrderedIntervals, count: int, completions: int) -> list[int]:
    """Returns the lowest indexes that are not taken, at most `count`."""
    found: list[int] = []
    candidate = 0
    for first, last in (*taken.items, (completions, completions)):
        found += range(candidate, min(first, completions, candidate + count - len(found)))
        candidate = max(candidate, last + 1)
        if len(found) >= count:
            break
    return found


FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"


class FailurePolicyMatch(NamedTuple):
    """The result of a podFailurePolicy for a failed pod."""

    message: str | None = None
    """The reason for which the Job fails; None if it does not."""
    counts: bool = True
    """Whether the failure counts towards the back-off limit."""
    action: str | None = None
    """The action of the matching rule."""


def only_replace_failed_pods(job: Object) -> bool:
    """Reports whether terminating pods are replaced only after they have failed (onlyReplaceFailedPods)."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def is_pod_failed(pod: Object, job: Object) -> bool:
    """Reports whether the pod counts as failed for the Job (isPodFailed)."""
    phase = phase_of(pod)
    if phase == "Failed":
        return True
    return not only_replace_failed_pods(job) and "deletionTimestamp" in pod["metadata"] and phase != "Succeeded"


def match_pod_failure_policy(job: Object, pod: Object) -> FailurePolicyMatch:
    """Returns the result of the Job's podFailurePolicy for a failed pod (matchPodFailurePolicy)."""
    policy = job["spec"].get("podFailurePolicy") or {}
    for index, rule in enumerate(policy.get("rules") or ()):
        reason = _match_rule(rule, pod)
        if reason is None:
            continue
        action = rule["action"]
        message = f"{reason} matching {action} rule at index {index}" if action == "FailJob" else None
        return FailurePolicyMatch(message, action != "Ignore", action)
    return FailurePolicyMatch()


def _match_rule(rule: Object, pod: Object) -> str | None:
    """Returns why the rule matches; None if it does not."""
    place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    status = pod.get("status") or {}
    codes = rule.get("onExitCodes")
    if codes is not None:
        for statuses in (status.get("containerStatuses"), status.get("initContainerStatuses")):
            container = _failed_container(statuses or (), codes)
            if container is not None:
                code = container["state"]["terminated"]["exitCode"]
                return f"Container {container['name']} for pod {place} failed with exit code {code}"
        return None
    patterns = [(one["type"], one.get("status")) for one in rule.get("onPodConditions") or ()]
    for condition in status.get("conditions") or ():
        if (condition["type"], condition.get("status")) in patterns:
            return f"Pod {place} has condition {condition['type']}"
    return None


def _failed_container(statuses: Iterable[Mapping[str, Any]], codes: Object) -> Mapping[str, Any] | None:
    """Returns the first terminated container whose exit code matches the requirement; None if there is none."""
    for container in statuses:
        ended = (container.get("state") or {}).get("terminated")
        if not ended or codes.get("containerName") not in (None, container["name"]):
            continue
        code = ended.get("exitCode", 0)
        if code and (code in codes.get("values", ())) == (codes["operator"] == "In"):
            return container
    return None


def _count_in_annotation(pod: Object, name: str) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(name, "")
    try:
        count = parse_int(text) if text.isdigit() else 0
    except ValueError:
        return 0
    return count if count <= MAX_INT32 else 0


def index_failure_count(pod: Object) -> int:
    """Returns the number of failed pods of the index before this one, without those that the policy ignores."""
    return _count_in_annotation(pod, FAILURE_COUNT)


def absolute_failure_count(pod: Object) -> int:
    """Returns the number of failed pods of the index before this one."""
    return _count_in_annotation(pod, FAILURE_COUNT) + _count_in_annotation(pod, IGNORED_FAILURE_COUNT)


def is_index_failed(job: Object, pod: Object) -> bool:
    """Reports whether the index fails because of this pod (isIndexFailed)."""
    if not is_pod_failed(pod, job):
        return False
    match = match_pod_failure_policy(job, pod)
    if match.action == "FailIndex":
        return True
    return match.counts and index_failure_count(pod) >= job["spec"]["backoffLimitPerIndex"]


def new_index_failure_counts(job: Object, replaced: Object | None) -> dict[str, str]:
    """Returns the annotations of the pod that replaces a failed one; None for the first pod of an index."""
    if replaced is None:
        return {FAILURE_COUNT: "0"}
    counted = match_pod_failure_policy(job, replaced).counts
    failures = _count_in_annotation(replaced, FAILURE_COUNT) + counted
    ignored = _count_in_annotation(replaced, IGNORED_FAILURE_COUNT) + (not counted)
    return {FAILURE_COUNT: str(failures), **({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})}


def match_success_policy(job: Object, succeeded: OrderedIntervals) -> str | None:
    """Returns the message about the rule of the successPolicy that is met; None if none is (matchSuccessPolicy)."""
    if not succeeded:
        return None
    policy = job["spec"].get("successPolicy") or {}
    for index, rule in enumerate(policy.get("rules") or ()):
        if _is_met(rule, succeeded, job["spec"]["completions"]):
            return f"Matched rules at index {index}"
    return None


def _is_met(rule: Object, succeeded: OrderedIntervals, completions: int) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and succeeded.total() >= count
    required = parse_indexes(rule["succeededIndexes"], completions)
    if not required:
        return False
    done = required.overlap(succeeded)
    return done == required.total() or (count is not None and done >= count)


#: Seconds (DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff).
DEFAULT_BACKOFF: Final = 10.0
MAX_BACKOFF: Final = 600.0


@dataclass(slots=True, frozen=True)
class BackoffRecord:
    """The failures since the last success."""

    failures: int = 0
    last_failure: datetime | None = None

    def with_terminated_pods(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> BackoffRecord:
        """Returns the record after these pods have terminated (newBackoffRecord)."""
        failures = sorted(map(get_finished_time, failed), reverse=True)
        if not succeeded:
            return BackoffRecord(self.failures + len(failures), failures[0]) if failures else self
        success = max(map(get_finished_time, succeeded))
        later = [failure for failure in failures if failure > success]
        return BackoffRecord(len(later), later[0] if later else None)

    def remaining(self, now: datetime) -> float:
        """Returns the seconds until the next pod may be created."""
        return get_remaining_time(self.failures, self.last_failure, now)


def get_remaining_time(failures: int, last_failure: datetime | None, now: datetime) -> float:
    """Returns the seconds until a pod may be created after so many failures in a row."""
    if not failures or last_failure is None:
        return 0.0
    wait = min(DEFAULT_BACKOFF * 2.0 ** min(failures - 1, 10), MAX_BACKOFF)
    return max(wait - (now - last_failure).total_seconds(), 0.0)


def get_remaining_time_per_index(last_failed: Object | None, now: datetime) -> float:
    """Returns the seconds until the pod of an index may be created, given the last failed pod of the index, if any."""
    if last_failed is None:
        return 0.0
    return get_remaining_time(absolute_failure_count(last_failed) + 1, get_finished_time(last_failed), now)


def get_finished_time(pod: Object) -> datetime:
    """Returns the time at which the pod terminated.

    The first of these that is known: the end of its containers, the transition of its condition Ready, its deletion, its
    creation.
    """
    status, metadata = pod.get("status") or {}, pod["metadata"]
    sidecars = {one["name"] for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"}
    found = _latest_finish(status.get("containerStatuses") or ())
    in_init = [one for one in status.get("initContainerStatuses") or () if one["name"] in sidecars]
    if in_init:
        of_sidecars = _latest_finish(in_init)
        found = None if of_sidecars is None else max(found or of_sidecars, of_sidecars)
    if found is not None:
        return found
    ready = get_pod_ready_condition(pod)
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if "deletionTimestamp" in metadata:
        grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
        return parse_time(metadata["deletionTimestamp"]) - grace
    return parse_time(metadata["creationTimestamp"])


def _latest_finish(statuses: Iterable[Object]) -> datetime | None:
    """Returns the latest end of a container; None if one has not terminated or lacks the time."""
    latest = None
    for container in statuses:
        ended = ((container.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if not ended:
            return None
        latest = max(latest or parse_time(ended), parse_time(ended))
    return latest

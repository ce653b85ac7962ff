"""podFailurePolicy and successPolicy of a Job.

Specified by: pkg/controller/job/{pod_failure_policy,success_policy}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fakekube.controllers.job.indexes import Intervals, parse_indexes
from fakekube.controllers.pods import phase_of

__all__ = [
    "FailureMatch",
    "absolute_failure_count",
    "index_failure_count",
    "is_index_failed",
    "is_pod_failed",
    "match_failure",
    "match_success",
    "new_failure_counts",
    "replaces_failed_only",
]

Object = dict[str, Any]

FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"
_MAX_INT32 = 2**31 - 1


class FailureMatch(NamedTuple):
    """What a failure policy says of a failed pod."""

    message: str | None = None
    """Why the whole Job fails; None if it does not."""
    counts: bool = True
    """The failure counts towards the back-off limit."""
    action: str | None = None
    """The action of the rule that matched."""


def replaces_failed_only(job: Object) -> bool:
    """Are pods that are being deleted replaced only when they have failed?"""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def is_pod_failed(pod: Object, job: Object) -> bool:
    """Does the Job take the pod for failed?"""
    phase = phase_of(pod)
    if phase == "Failed":
        return True
    return not replaces_failed_only(job) and "deletionTimestamp" in pod["metadata"] and phase != "Succeeded"


# ---------------------------------------------------------------- podFailurePolicy


def match_failure(job: Object, pod: Object) -> FailureMatch:
    """What the Job's podFailurePolicy says of a failed pod."""
    policy = job["spec"].get("podFailurePolicy") or {}
    for index, rule in enumerate(policy.get("rules") or ()):
        reason = _matched(rule, pod)
        if reason is None:
            continue
        action = rule["action"]
        message = f"{reason} matching {action} rule at index {index}" if action == "FailJob" else None
        return FailureMatch(message, action != "Ignore", action)
    return FailureMatch()


def _matched(rule: Object, pod: Object) -> str | None:
    """Why the rule matches; None if it does not."""
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
    """The first container that has ended with one of the exit codes (or another one, as the operator says)."""
    for container in statuses:
        ended = (container.get("state") or {}).get("terminated")
        if not ended or codes.get("containerName") not in (None, container["name"]):
            continue
        code = ended.get("exitCode", 0)
        if code and (code in codes.get("values", ())) == (codes["operator"] == "In"):
            return container
    return None


# ---------------------------------------------------------------- backoffLimitPerIndex


def _count(pod: Object, name: str) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _MAX_INT32 else 0


def index_failure_count(pod: Object) -> int:
    """How many pods of the index had failed before this one, those ignored by the policy not counted."""
    return _count(pod, FAILURE_COUNT)


def absolute_failure_count(pod: Object) -> int:
    """How many pods of the index had failed before this one."""
    return _count(pod, FAILURE_COUNT) + _count(pod, IGNORED_FAILURE_COUNT)


def is_index_failed(job: Object, pod: Object) -> bool:
    """Does the failure of this pod make its index fail?"""
    if not is_pod_failed(pod, job):
        return False
    match = match_failure(job, pod)
    if match.action == "FailIndex":
        return True
    return match.counts and index_failure_count(pod) >= job["spec"]["backoffLimitPerIndex"]


def new_failure_counts(job: Object, replaced: Object | None) -> dict[str, str]:
    """The annotations of the pod that replaces a failed one (None: the first of its index)."""
    if replaced is None:
        return {FAILURE_COUNT: "0"}
    counted = match_failure(job, replaced).counts
    failures = _count(replaced, FAILURE_COUNT) + counted
    ignored = _count(replaced, IGNORED_FAILURE_COUNT) + (not counted)
    return {FAILURE_COUNT: str(failures), **({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})}


# ---------------------------------------------------------------- successPolicy


def match_success(job: Object, succeeded: Intervals) -> str | None:
    """Which rule of the successPolicy is met; None if none is."""
    if not succeeded:
        return None
    policy = job["spec"].get("successPolicy") or {}
    for index, rule in enumerate(policy.get("rules") or ()):
        if _is_met(rule, succeeded, job["spec"]["completions"]):
            return f"Matched rules at index {index}"
    return None


def _is_met(rule: Object, succeeded: Intervals, completions: int) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and succeeded.total() >= count
    required = parse_indexes(rule["succeededIndexes"], completions)
    if not required:
        return False
    done = required.overlap(succeeded)
    return done == required.total() or (count is not None and done >= count)

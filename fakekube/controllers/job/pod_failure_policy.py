"""When a pod counts as failed for its Job, and what its failure causes: the podFailurePolicy, and the limit of each index.

Specified by: pkg/controller/job/pod_failure_policy.go, pkg/controller/job/indexed_job_utils.go (the counts of failures).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fakekube.base.objects import Object
from fakekube.controllers.controller_utils import get_non_negative_annotation, phase_of

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
    return get_non_negative_annotation(pod, name) or 0


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

"""Builds the pods of a Job, and selects the pods to remove when there are too many.

Specified by: pkg/controller/job/{job_controller,indexed_job_utils}.go (manageJob, activePodsForRemoval).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby

from fakekube.controllers.controller_utils import get_pod_from_template, sort_for_deletion
from fakekube.controllers.job.indexes import COMPLETION_INDEX, get_completion_index
from fakekube.controllers.job.policies import new_index_failure_counts
from fakekube.controllers.job.sync_context import FINALIZER, SyncContext
from fakekube.controllers.objects import Object

__all__ = ["active_pods_for_removal", "new_job_pod"]


ENVIRONMENT = "JOB_COMPLETION_INDEX"
_MAX_GENERATE_NAME = 58


def new_job_pod(state: SyncContext, index: int | None) -> Object:
    """Returns a new pod of the Job.

    Args:
        state: The state of the pass.
        index: The completion index of the pod; None if the Job is not Indexed.
    """
    pod = get_pod_from_template(state.spec["template"], state.job)
    metadata, spec = pod["metadata"], pod["spec"]
    finalizers = metadata.get("finalizers", [])
    metadata["finalizers"] = finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]
    if index is None:
        return pod
    name, text = state.job["metadata"]["name"], str(index)
    suffix = f"-{index}-"
    metadata["generateName"] = f"{name}{suffix}"
    if len(metadata["generateName"]) > _MAX_GENERATE_NAME:
        metadata["generateName"] = f"{name}{suffix}"[: _MAX_GENERATE_NAME - len(suffix)] + suffix
    metadata["annotations"] = {**metadata.get("annotations", {}), COMPLETION_INDEX: text}
    metadata["labels"] = {**metadata.get("labels", {}), COMPLETION_INDEX: text}
    if state.limits_indexes:
        metadata["annotations"] |= new_index_failure_counts(state.job, state.delayed.get(index))
    pod["spec"] = {**spec, "hostname": f"{name}-{index}"}
    for containers in ("initContainers", "containers"):
        if spec.get(containers):
            pod["spec"][containers] = [_add_index_variable(container) for container in spec[containers]]
    return pod


def _add_index_variable(container: Object) -> Object:
    """Returns the container with the completion index in its environment."""
    environment = container.get("env") or []
    if any(variable["name"] == ENVIRONMENT for variable in environment):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**container, "env": [*environment, {"name": ENVIRONMENT, "valueFrom": source}]}


def active_pods_for_removal(state: SyncContext, count: int, now: datetime) -> list[Object]:
    """Returns the active pods to delete: at least `count`, and for Indexed Jobs all but one of each index."""
    removed, left = _duplicates(state.active, state.spec["completions"], now) if state.is_indexed else ([], state.active)
    missing = count - len(removed)
    return [*removed, *_sorted_for_deletion(left, now)[:missing]] if missing > 0 else removed


def _sorted_for_deletion(pods: Iterable[Object], now: datetime) -> list[Object]:
    pods = list(pods)
    return sort_for_deletion(pods, [0] * len(pods), now) if len(pods) > 1 else pods


def _duplicates(pods: list[Object], completions: int, now: datetime) -> tuple[list[Object], list[Object]]:
    """Returns the pods whose index is invalid or a duplicate, which are to be removed, and the other pods."""
    removed: list[Object] = []
    left: list[Object] = []
    for index, found in groupby(sorted(pods, key=get_completion_index), key=get_completion_index):
        same = list(found)
        if not 0 <= index < completions:
            removed += same
            continue
        *surplus, kept = _sorted_for_deletion(same, now)
        removed += surplus
        left.append(kept)
    return removed, left

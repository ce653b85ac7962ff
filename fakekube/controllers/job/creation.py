"""The pods of a Job: how they are made, and which go first when there are too many.

Specified by: pkg/controller/job/{job_controller,indexed_job_utils}.go (manageJob, activePodsForRemoval).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Any

from fakekube.controllers.job.indexes import COMPLETION_INDEX, completion_index
from fakekube.controllers.job.pass_state import FINALIZER, Pass
from fakekube.controllers.job.policies import new_failure_counts
from fakekube.controllers.pods import deletion_order, pod_from_template

__all__ = ["made_pod", "to_remove"]

Object = dict[str, Any]

ENVIRONMENT = "JOB_COMPLETION_INDEX"
_MAX_GENERATE_NAME = 58


def made_pod(state: Pass, index: int | None) -> Object:
    """A new pod of the Job.

    Args:
        state: of the Job.
        index: that the pod works on, None if the Job is not Indexed.
    """
    pod = pod_from_template(state.spec["template"], state.job)
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
        metadata["annotations"] |= new_failure_counts(state.job, state.delayed.get(index))
    pod["spec"] = {**spec, "hostname": f"{name}-{index}"}
    for containers in ("initContainers", "containers"):
        if spec.get(containers):
            pod["spec"][containers] = [_with_index(container) for container in spec[containers]]
    return pod


def _with_index(container: Object) -> Object:
    """The container with the index in its environment."""
    environment = container.get("env") or []
    if any(variable["name"] == ENVIRONMENT for variable in environment):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**container, "env": [*environment, {"name": ENVIRONMENT, "valueFrom": source}]}


def to_remove(state: Pass, count: int, now: datetime) -> list[Object]:
    """The active pods that are to be deleted: at least so many, and all but one of each index."""
    removed, left = _duplicates(state.active, state.spec["completions"], now) if state.is_indexed else ([], state.active)
    missing = count - len(removed)
    return [*removed, *_ordered(left, now)[:missing]] if missing > 0 else removed


def _ordered(pods: Iterable[Object], now: datetime) -> list[Object]:
    pods = list(pods)
    return deletion_order(pods, [0] * len(pods), now) if len(pods) > 1 else pods


def _duplicates(pods: list[Object], completions: int, now: datetime) -> tuple[list[Object], list[Object]]:
    """The pods without an index of the Job's or whose index another one has, too; and the others."""
    removed: list[Object] = []
    left: list[Object] = []
    for index, found in groupby(sorted(pods, key=completion_index), key=completion_index):
        same = list(found)
        if not 0 <= index < completions:
            removed += same
            continue
        *surplus, kept = _ordered(same, now)
        removed += surplus
        left.append(kept)
    return removed, left

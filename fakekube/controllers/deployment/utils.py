"""Functions of Deployments and ReplicaSets: conditions, annotations, and the numbers of replicas.

The annotations are the revision, and the size of the Deployment when it was last scaled. The numbers of replicas follow from
maxSurge, maxUnavailable and proportional scaling.

Invariant: there is at most one condition of each type. lastTransitionTime changes with the status, lastUpdateTime also with the
reason.

Specified by: pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fakekube.apis.validation.conditions import find_condition
from fakekube.apis.well_known import DEPRECATED_ROLLBACK_TO, LAST_APPLIED_CONFIG_ANNOTATION
from fakekube.controllers.controller_utils import get_scaled_value
from fakekube.controllers.objects import Object

__all__ = [
    "REVISION",
    "annotations_of",
    "deployment_complete",
    "get_desired_replicas_annotation",
    "get_max_replicas_annotation",
    "get_proportion",
    "get_replica_count",
    "has_progress_deadline",
    "is_rolling_update",
    "is_saturated",
    "last_revision",
    "max_revision",
    "max_surge",
    "max_unavailable",
    "new_deployment_condition",
    "new_replica_set_annotations",
    "new_rs_new_replicas",
    "remove_condition",
    "replicas_annotations",
    "replicas_of",
    "resolve_fenceposts",
    "revision_of",
    "rollback_annotations",
    "set_condition",
    "sum_status",
]

_MAX_INT32: Final = 2**31 - 1


def has_progress_deadline(deployment: Object) -> bool:
    """Reports whether the Deployment has a progressDeadlineSeconds (HasProgressDeadline)."""
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, _MAX_INT32)


def new_deployment_condition(type_: str, status: str, reason: str, message: str, now: str) -> Object:
    """Returns a new condition with both times set to `now` (NewDeploymentCondition)."""
    times = {"lastUpdateTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def remove_condition(status: Object, type_: str) -> Object:
    """Returns the status without the condition of this type (RemoveDeploymentCondition)."""
    rest = [one for one in status.get("conditions") or () if one["type"] != type_]
    bare = {name: value for name, value in status.items() if name != "conditions"}
    return {**bare, "conditions": rest} if rest else bare


def set_condition(status: Object, condition: Object) -> Object:
    """Returns the status with the condition, unchanged if it has one of the same status and reason (SetDeploymentCondition)."""
    current = find_condition(status, condition["type"])
    if current is not None and current["status"] == condition["status"]:
        if current.get("reason") == condition["reason"]:
            return status
        condition = {**condition, "lastTransitionTime": current["lastTransitionTime"]}
    bare = remove_condition(status, condition["type"])
    return {**bare, "conditions": [*bare.get("conditions", ()), condition]}


Annotations = dict[str, str]

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"

_NOT_COPIED: Final = frozenset(
    {LAST_APPLIED_CONFIG_ANNOTATION, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, DEPRECATED_ROLLBACK_TO}
)
#: Characters of the annotation with former revisions (maxRevHistoryLengthInChars).
_MAX_HISTORY: Final = 2000


def annotations_of(obj: Object) -> Annotations:
    """Returns a copy of metadata.annotations."""
    return dict(obj["metadata"].get("annotations") or {})


def _parse_int(text: str) -> int | None:
    """Parses a number as strconv.ParseInt does; None if it is malformed."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() else None


def revision_of(obj: Object) -> int | None:
    """Returns the revision in the annotation; 0 if it is absent, None if it is not a number."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION)
    return 0 if text is None else _parse_int(text)


def max_revision(replica_sets: Iterable[Object]) -> int:
    """Returns the highest revision; 0 if there is none."""
    return max((revision_of(one) or 0 for one in replica_sets), default=0)


def last_revision(replica_sets: Iterable[Object]) -> int:
    """Returns the second highest revision; 0 if there is none."""
    known = [revision for one in replica_sets if (revision := revision_of(one)) is not None]
    return sorted([0, 0, *known])[-2]


def _non_negative_annotation(obj: Object, name: str) -> int | None:
    """Returns the non-negative number in an annotation; None if it is absent or malformed."""
    text = (obj["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _MAX_INT32 else None


def get_desired_replicas_annotation(replica_set: Object) -> int | None:
    """Returns spec.replicas of the Deployment at the time when the ReplicaSet was last scaled."""
    return _non_negative_annotation(replica_set, DESIRED_REPLICAS)


def get_max_replicas_annotation(replica_set: Object) -> int | None:
    """Returns spec.replicas plus maxSurge of the Deployment at the time when the ReplicaSet was last scaled."""
    return _non_negative_annotation(replica_set, MAX_REPLICAS)


def replicas_annotations(desired: int, maximum: int) -> Annotations:
    """Returns the annotations that a ReplicaSet gets when it is scaled (SetReplicasAnnotations)."""
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(maximum)}


def new_replica_set_annotations(deployment: Object, annotations: Annotations, new_revision: int) -> tuple[Annotations, bool]:
    """Returns the annotations of the new ReplicaSet, and whether they have changed (SetNewReplicaSetAnnotations).

    Args:
        deployment: its annotations are copied, except those that belong to the Deployment itself.
        annotations: the present annotations of the ReplicaSet.
        new_revision: the revision of the present template.
    """
    copied = {name: value for name, value in annotations_of(deployment).items() if name not in _NOT_COPIED}
    result = {**annotations, **copied}
    changed = result != annotations
    old_text = annotations.get(REVISION, "")
    old = _parse_int(old_text) if old_text else 0
    if old is None:
        return result, False
    if old >= new_revision:
        return result, changed
    result[REVISION] = str(new_revision)
    if REVISION in annotations:
        _append_history(result, old_text)
    return result, True


def _append_history(annotations: Annotations, revision: str) -> None:
    """Appends a former revision; removes the oldest ones if the text gets too long."""
    text = annotations.get(REVISION_HISTORY, "")
    revisions = text.split(",")
    if not revisions[0]:
        annotations[REVISION_HISTORY] = revision
        return
    length, start = len(text) + len(revision) + 1, 0
    while length > _MAX_HISTORY and start < len(revisions):
        length -= len(revisions[start]) + 1
        start += 1
    if length <= _MAX_HISTORY:
        annotations[REVISION_HISTORY] = ",".join([*revisions[start:], revision])


def rollback_annotations(deployment: Object, replica_set: Object) -> Annotations:
    """Returns the annotations of a Deployment that is rolled back (SetDeploymentAnnotationsTo).

    They are the Deployment's own ones, and those that the ReplicaSet copied from it.
    """
    own = {name: value for name, value in annotations_of(deployment).items() if name in _NOT_COPIED}
    copied = {name: value for name, value in annotations_of(replica_set).items() if name not in _NOT_COPIED}
    return own | copied


def replicas_of(obj: Object) -> int:
    """Returns spec.replicas."""
    return obj["spec"].get("replicas", 0)  # type: ignore[no-any-return]


def get_replica_count(replica_sets: Iterable[Object]) -> int:
    """Returns the sum of spec.replicas (GetReplicaCountForReplicaSets)."""
    return sum(map(replicas_of, replica_sets))


def sum_status(replica_sets: Iterable[Object], field: str) -> int:
    """Returns the sum of a number in the statuses."""
    return sum((one.get("status") or {}).get(field, 0) for one in replica_sets)


def is_rolling_update(deployment: Object) -> bool:
    """Reports whether the strategy is RollingUpdate."""
    return deployment["spec"].get("strategy", {}).get("type") == "RollingUpdate"  # type: ignore[no-any-return]


def resolve_fenceposts(surge: int | str | None, unavailable: int | str | None, desired: int) -> tuple[int, int]:
    """Returns maxSurge, rounded up, and maxUnavailable, rounded down; if both are 0, maxUnavailable is 1."""
    surplus = get_scaled_value(surge, desired, round_up=True)
    missing = get_scaled_value(unavailable, desired, round_up=False)
    return (0, 1) if surplus == missing == 0 else (surplus, missing)


def _resolve_fenceposts(deployment: Object) -> tuple[int, int]:
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    return resolve_fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), replicas_of(deployment))


def max_surge(deployment: Object) -> int:
    """Returns the number of pods above `replicas` that may exist (MaxSurge)."""
    return _resolve_fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    """Returns the number of pods that may be unavailable (MaxUnavailable)."""
    desired = replicas_of(deployment)
    if not is_rolling_update(deployment) or not desired:
        return 0
    return min(_resolve_fenceposts(deployment)[1], desired)


def new_rs_new_replicas(deployment: Object, replica_sets: Iterable[Object], new: Object) -> int:
    """Returns the size of the new ReplicaSet, given the present sizes of the others (NewRSNewReplicas).

    Args:
        deployment: the Deployment.
        replica_sets: all of its ReplicaSets, including the new one.
        new: the ReplicaSet of the present template.
    """
    desired = replicas_of(deployment)
    if not is_rolling_update(deployment):
        return desired
    surge = (deployment["spec"]["strategy"].get("rollingUpdate") or {}).get("maxSurge")
    limit = desired + get_scaled_value(surge, desired, round_up=True)
    total = get_replica_count(replica_sets)
    if total >= limit:
        return replicas_of(new)
    return replicas_of(new) + min(limit - total, desired - replicas_of(new))


def get_proportion(replica_set: Object, deployment: Object, to_add: int, added: int) -> int:
    """Returns how many of the replicas to add (or to remove, if negative) one ReplicaSet gets (GetReplicaSetProportion).

    Args:
        replica_set: a ReplicaSet with replicas.
        deployment: the Deployment, which was scaled during a rollout.
        to_add: the number for all ReplicaSets together.
        added: the number that other ReplicaSets have got already.
    """
    if not replicas_of(replica_set) or to_add in (0, added):
        return 0
    fraction, allowed = _get_fraction(replica_set, deployment), to_add - added
    return min(fraction, allowed) if to_add > 0 else max(fraction, allowed)


def _get_fraction(replica_set: Object, deployment: Object) -> int:
    """Returns the change that keeps the ReplicaSet's share of the maximum as before the scaling (getReplicaSetFraction)."""
    size = replicas_of(replica_set)
    if not replicas_of(deployment):
        return -size
    before = get_max_replicas_annotation(replica_set) or (deployment.get("status") or {}).get("replicas", 0)
    if not before:
        return 0
    limit = replicas_of(deployment) + max_surge(deployment)
    return _round_half_away(size * limit / before) - size


def _round_half_away(number: float) -> int:
    """Rounds half away from zero, as math.Round does."""
    return int(number + 0.5) if number >= 0 else int(number - 0.5)


def is_saturated(deployment: Object, replica_set: Object | None) -> bool:
    """Reports whether the ReplicaSet has all replicas of the Deployment, and all are available (IsSaturated)."""
    if replica_set is None:
        return False
    desired = replicas_of(deployment)
    available = (replica_set.get("status") or {}).get("availableReplicas", 0)
    sizes = (replicas_of(replica_set), get_desired_replicas_annotation(replica_set), available)
    return all(size == desired for size in sizes)


def deployment_complete(deployment: Object, status: Object) -> bool:
    """Reports whether all replicas are updated and available, and no old ones are left (DeploymentComplete)."""
    desired = replicas_of(deployment)
    observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return observed and all(count == desired for count in counts)

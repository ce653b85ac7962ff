"""Calculates the numbers of replicas of a Deployment's ReplicaSets: maxSurge, maxUnavailable, proportional scaling.

Specified by: pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.deployment.annotations import get_desired_replicas_annotation, get_max_replicas_annotation
from fakekube.controllers.intstr import get_scaled_value
from fakekube.controllers.objects import Object

__all__ = [
    "deployment_complete",
    "get_proportion",
    "get_replica_count",
    "is_rolling_update",
    "is_saturated",
    "max_surge",
    "max_unavailable",
    "new_rs_new_replicas",
    "replicas_of",
    "resolve_fenceposts",
    "sum_status",
]


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
    """Whether the strategy is RollingUpdate."""
    return deployment["spec"].get("strategy", {}).get("type") == "RollingUpdate"  # type: ignore[no-any-return]


def resolve_fenceposts(surge: int | str | None, unavailable: int | str | None, desired: int) -> tuple[int, int]:
    """Returns maxSurge, rounded up, and maxUnavailable, rounded down; if both are 0, maxUnavailable is 1."""
    surplus = get_scaled_value(surge, desired, round_up=True)
    missing = get_scaled_value(unavailable, desired, round_up=False)
    return (0, 1) if surplus == missing == 0 else (surplus, missing)


def _fenceposts(deployment: Object) -> tuple[int, int]:
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    return resolve_fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), replicas_of(deployment))


def max_surge(deployment: Object) -> int:
    """Returns the number of pods above `replicas` that may exist (MaxSurge)."""
    return _fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    """Returns the number of pods that may be unavailable (MaxUnavailable)."""
    desired = replicas_of(deployment)
    if not is_rolling_update(deployment) or not desired:
        return 0
    return min(_fenceposts(deployment)[1], desired)


def new_rs_new_replicas(deployment: Object, replica_sets: Iterable[Object], new: Object) -> int:
    """Returns the size of the new ReplicaSet, given the present sizes of the others (NewRSNewReplicas).

    Args:
        deployment: The Deployment.
        replica_sets: All of its ReplicaSets, including the new one.
        new: The ReplicaSet of the present template.
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
        replica_set: A ReplicaSet with replicas.
        deployment: The Deployment, which was scaled during a rollout.
        to_add: The number for all ReplicaSets together.
        added: The number that other ReplicaSets have got already.
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
    return _round(size * limit / before) - size


def _round(number: float) -> int:
    """Rounds half away from zero, as math.Round does."""
    return int(number + 0.5) if number >= 0 else int(number - 0.5)


def is_saturated(deployment: Object, replica_set: Object | None) -> bool:
    """Whether the ReplicaSet has all replicas of the Deployment, and all are available (IsSaturated)."""
    if replica_set is None:
        return False
    desired = replicas_of(deployment)
    available = (replica_set.get("status") or {}).get("availableReplicas", 0)
    sizes = (replicas_of(replica_set), get_desired_replicas_annotation(replica_set), available)
    return all(size == desired for size in sizes)


def deployment_complete(deployment: Object, status: Object) -> bool:
    """Whether all replicas are updated and available, and no old ones are left (DeploymentComplete)."""
    desired = replicas_of(deployment)
    observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return observed and all(count == desired for count in counts)

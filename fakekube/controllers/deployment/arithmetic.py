"""How many replicas which ReplicaSet of a Deployment may have.

Specified by: pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakekube.controllers.deployment.annotations import desired_replicas, max_replicas
from fakekube.controllers.percentages import scaled_value

__all__ = [
    "is_complete",
    "is_rolling_update",
    "is_saturated",
    "max_surge",
    "max_unavailable",
    "new_replicas",
    "proportion",
    "replicas_of",
    "resolve_fenceposts",
    "specified",
    "status_sum",
]

Object = dict[str, Any]


def replicas_of(obj: Object) -> int:
    """spec.replicas."""
    return obj["spec"].get("replicas", 0)  # type: ignore[no-any-return]


def specified(replica_sets: Iterable[Object]) -> int:
    """The sum of spec.replicas."""
    return sum(map(replicas_of, replica_sets))


def status_sum(replica_sets: Iterable[Object], field: str) -> int:
    """The sum of a number of the statuses."""
    return sum((one.get("status") or {}).get(field, 0) for one in replica_sets)


def is_rolling_update(deployment: Object) -> bool:
    """Is the strategy RollingUpdate?"""
    return deployment["spec"].get("strategy", {}).get("type") == "RollingUpdate"  # type: ignore[no-any-return]


def resolve_fenceposts(surge: int | str | None, unavailable: int | str | None, desired: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers: shares are rounded up and down; both 0 would stop all rollouts."""
    surplus = scaled_value(surge, desired, round_up=True)
    missing = scaled_value(unavailable, desired, round_up=False)
    return (0, 1) if surplus == missing == 0 else (surplus, missing)


def _fenceposts(deployment: Object) -> tuple[int, int]:
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    return resolve_fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), replicas_of(deployment))


def max_surge(deployment: Object) -> int:
    """How many pods more than `replicas` there may be."""
    return _fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    """How many pods fewer than `replicas` may be available."""
    desired = replicas_of(deployment)
    if not is_rolling_update(deployment) or not desired:
        return 0
    return min(_fenceposts(deployment)[1], desired)


def new_replicas(deployment: Object, replica_sets: Iterable[Object], new: Object) -> int:
    """How many replicas the new ReplicaSet gets, with all the others as they are.

    Args:
        deployment: to roll out.
        replica_sets: all of its ReplicaSets, the new one as well.
        new: the one of the present template.
    """
    desired = replicas_of(deployment)
    if not is_rolling_update(deployment):
        return desired
    surge = (deployment["spec"]["strategy"].get("rollingUpdate") or {}).get("maxSurge")
    limit = desired + scaled_value(surge, desired, round_up=True)
    present = specified(replica_sets)
    if present >= limit:
        return replicas_of(new)
    return replicas_of(new) + min(limit - present, desired - replicas_of(new))


def proportion(replica_set: Object, deployment: Object, to_add: int, added: int) -> int:
    """How many of the replicas that are added to a Deployment (or removed, if negative) one ReplicaSet gets.

    Args:
        replica_set: one of those that share.
        deployment: which was scaled in the middle of a rollout.
        to_add: how many all together get.
        added: how many others have got already.
    """
    if not replicas_of(replica_set) or to_add in (0, added):
        return 0
    share, allowed = _share(replica_set, deployment), to_add - added
    return min(share, allowed) if to_add > 0 else max(share, allowed)


def _share(replica_set: Object, deployment: Object) -> int:
    """What keeps the ReplicaSet's part of the maximum as large as it was before the Deployment was scaled."""
    size = replicas_of(replica_set)
    if not replicas_of(deployment):
        return -size
    before = max_replicas(replica_set) or (deployment.get("status") or {}).get("replicas", 0)
    if not before:
        return 0
    limit = replicas_of(deployment) + max_surge(deployment)
    return _rounded(size * limit / before) - size


def _rounded(number: float) -> int:
    """Half away from zero."""
    return int(number + 0.5) if number >= 0 else int(number - 0.5)


def is_saturated(deployment: Object, replica_set: Object | None) -> bool:
    """Has the ReplicaSet all replicas of the Deployment, and are they available?"""
    if replica_set is None:
        return False
    desired = replicas_of(deployment)
    available = (replica_set.get("status") or {}).get("availableReplicas", 0)
    return replicas_of(replica_set) == desired and desired_replicas(replica_set) == desired and available == desired


def is_complete(deployment: Object, status: Object) -> bool:
    """Are all replicas of the present template and available, and no others left?"""
    desired = replicas_of(deployment)
    observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return observed and all(count == desired for count in counts)

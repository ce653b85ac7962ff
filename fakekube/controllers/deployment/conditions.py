"""Conditions of a Deployment's status.

Invariant: of each type there is at most one; lastTransitionTime changes with the status, lastUpdateTime with the reason.

Specified by: pkg/controller/deployment/util/deployment_util.go (SetDeploymentCondition).
"""

from __future__ import annotations

from typing import Any

__all__ = ["condition_of", "has_progress_deadline", "made_condition", "with_condition", "without_condition"]

Object = dict[str, Any]
Conditions = list[Object]

_MAX_INT32 = 2**31 - 1


def has_progress_deadline(deployment: Object) -> bool:
    """Is there a time after which a rollout without progress is told to be stuck?"""
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, _MAX_INT32)


def condition_of(status: Object, type_: str) -> Object | None:
    """The condition of a type."""
    return next((one for one in status.get("conditions") or () if one["type"] == type_), None)


def made_condition(type_: str, status: str, reason: str, message: str, now: str) -> Object:
    """A condition that begins now."""
    times = {"lastUpdateTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def without_condition(status: Object, type_: str) -> Object:
    """The status without the condition of a type."""
    rest = [one for one in status.get("conditions") or () if one["type"] != type_]
    bare = {name: value for name, value in status.items() if name != "conditions"}
    return {**bare, "conditions": rest} if rest else bare


def with_condition(status: Object, condition: Object) -> Object:
    """The status with a condition; as it is if it has one of the same status and reason."""
    current = condition_of(status, condition["type"])
    if current is not None and current["status"] == condition["status"]:
        if current.get("reason") == condition["reason"]:
            return status
        condition = {**condition, "lastTransitionTime": current["lastTransitionTime"]}
    bare = without_condition(status, condition["type"])
    return {**bare, "conditions": [*bare.get("conditions", ()), condition]}

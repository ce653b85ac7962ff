"""Conditions of a Deployment's status.

Invariant: there is at most one condition of each type. lastTransitionTime changes with the status, lastUpdateTime also with the
reason.
"""

from __future__ import annotations

from fakekube.apis.validation.conditions import find_condition
from fakekube.controllers.objects import Object

__all__ = ["has_progress_deadline", "new_deployment_condition", "remove_condition", "set_condition"]


_MAX_INT32 = 2**31 - 1


def has_progress_deadline(deployment: Object) -> bool:
    """Whether the Deployment has a progressDeadlineSeconds (HasProgressDeadline)."""
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

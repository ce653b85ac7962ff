"""Conditions of a Job's status.

A Job that is over is marked twice: SuccessCriteriaMet or FailureTarget as soon as that is decided, Complete or Failed when
all of its pods are gone or counted.

Specified by: pkg/controller/job/job_controller.go (ensureJobConditionStatus), pkg/controller/job/util.
"""

from __future__ import annotations

from typing import Any

__all__ = ["condition_of", "ensured", "finished_condition", "is_finished", "made_condition"]

Object = dict[str, Any]


def made_condition(type_: str, reason: str, message: str, now: str, status: str = "True") -> Object:
    """A condition that begins now."""
    times = {"lastProbeTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def condition_of(status: Object, type_: str, *, true: bool = True) -> Object | None:
    """The condition of a type; only if it is True, if `true`."""
    for condition in status.get("conditions") or ():
        if condition["type"] == type_ and (not true or condition.get("status") == "True"):
            return condition  # type: ignore[no-any-return]
    return None


def finished_condition(job: Object) -> str:
    """Complete or Failed; "" for a Job that is not over."""
    status = job.get("status") or {}
    return next((one["type"] for one in status.get("conditions") or () if _is_final(one)), "")


def _is_final(condition: Object) -> bool:
    return condition["type"] in ("Complete", "Failed") and condition.get("status") == "True"


def is_finished(job: Object) -> bool:
    """Is it Complete or Failed?"""
    return bool(finished_condition(job))


def ensured(status: Object, condition: Object) -> bool:
    """Put a condition into the status; was it another one before? One that is False is not begun with."""
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

"""The conditions of Jobs.

SuccessCriteriaMet or FailureTarget is set when the outcome of the Job is decided; Complete or Failed is set when all pods have
terminated and are counted.

Specified by: pkg/controller/job/util/utils.go, pkg/controller/job/job_controller.go (ensureJobConditionStatus).
"""

from __future__ import annotations

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.base.objects import Object, StoredObject


def new_condition(type_: str, reason: str, message: str, now: str, status: str = "True") -> Object:
    """Returns a new condition with both times set to `now`."""
    times = {"lastProbeTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def find_true_condition(status: Object, type_: str) -> Object | None:
    """Returns the condition of this type, if its status is True."""
    condition = find_condition(status, type_)
    return condition if condition is not None and condition.get("status") == "True" else None


def finished_condition(job: StoredObject) -> Object | None:
    """Returns the condition Complete or Failed whose status is True; None if the Job has not finished (FinishedCondition)."""
    status = job.get("status") or {}
    return find_true_condition(status, "Complete") or find_true_condition(status, "Failed")


def finished_type(job: Object) -> str:
    """Returns "Complete" or "Failed"; "" if the Job has not finished."""
    condition = finished_condition(job)
    return "" if condition is None else str(condition["type"])


def is_job_finished(job: StoredObject) -> bool:
    """Reports whether the Job is Complete or Failed (IsJobFinished)."""
    return finished_condition(job) is not None


def ensure_condition_status(status: Object, condition: Object) -> bool:
    """Sets a condition in a status. Returns whether the status has changed (ensureJobConditionStatus).

    Args:
        status: the status of the Job; its list of conditions is replaced by a changed one.
        condition: the condition, see `new_condition`. One whose status is False is not added.
    """
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

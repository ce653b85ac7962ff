"""Conditions of the status of an object: at most one of each type, in the order in which they were added.

`set_condition` and `is_ready` are those of pods.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/helpers.go (SetCRDCondition),
k8s.io/apimachinery/pkg/api/meta/conditions.go; pkg/api/pod/util.go (UpdatePodCondition).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object


def condition(obj: Object, type_: str) -> Mapping[str, str]:
    """Returns the condition of this type; an empty one if the object has none."""
    return find_condition(obj.get("status") or {}, type_) or {}


def find_condition(status: Mapping[str, Any], type_: str) -> Object | None:
    """Returns the condition of this type; None if the status has none (FindStatusCondition)."""
    return next((one for one in status.get("conditions") or () if one.get("type") == type_), None)


def set_status_condition(conditions: Iterable[Object] | None, new: Object) -> list[Object]:
    """Returns the conditions with this one; lastTransitionTime stays if the status does (meta.SetStatusCondition)."""
    result = list(conditions or ())
    for index, old in enumerate(result):
        if old["type"] == new["type"]:
            since = old["lastTransitionTime"] if old["status"] == new["status"] else new["lastTransitionTime"]
            result[index] = {**new, "lastTransitionTime": since}
            return result
    return [*result, new]


def with_condition(obj: Object, *, type_: str, status: str, reason: str, message: str, now: str) -> Object:
    """Returns the object with the condition set; lastTransitionTime changes only when the status does."""
    known = condition(obj, type_)
    since = known["lastTransitionTime"] if known.get("status") == status and "lastTransitionTime" in known else now
    return with_condition_since(obj, type_=type_, status=status, reason=reason, message=message, since=since)


def with_condition_since(obj: Object, *, type_: str, status: str, reason: str, message: str, since: str) -> Object:
    """Returns the object with the condition set, with this lastTransitionTime."""
    new = {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    found = list((obj.get("status") or {}).get("conditions") or ())
    if any(c["type"] == type_ for c in found):
        found = [new if c["type"] == type_ else c for c in found]
    else:
        found.append(new)
    return {**obj, "status": {**(obj.get("status") or {}), "conditions": found}}


Condition = dict[str, Any]


def set_condition(conditions: Sequence[Condition], new: Mapping[str, Any], now: datetime) -> list[Condition]:
    """Returns the conditions with this one; lastTransitionTime stays if the status does."""
    fresh = {**new, "lastProbeTime": None, "lastTransitionTime": print_time(now)}
    result = list(conditions)
    for index, condition in enumerate(result):
        if condition.get("type") == new["type"]:
            if condition.get("status") == new.get("status"):
                fresh["lastTransitionTime"] = condition.get("lastTransitionTime")
            result[index] = fresh
            return result
    return [*result, fresh]


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)

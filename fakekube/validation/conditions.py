"""Conditions of the status of an object: at most one of each type, in the order in which they were added.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/helpers.go (SetCRDCondition).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["condition", "with_condition", "with_condition_since"]

Object = dict[str, Any]


def condition(obj: Object, type_: str) -> Mapping[str, str]:
    """Returns the condition of this type; an empty one if the object has none."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in found if c["type"] == type_), {})


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

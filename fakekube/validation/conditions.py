"""The conditions in an object's status: each type once, in the order in which they came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["condition", "replaced", "with_condition"]

Object = dict[str, Any]


def condition(obj: Object, type_: str) -> Mapping[str, str]:
    """A condition of an object; empty if it has none of that type."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in found if c["type"] == type_), {})


def with_condition(obj: Object, *, type_: str, status: str, reason: str, message: str, now: str) -> Object:
    """The object with a condition set; its time only changes with its status."""
    known = condition(obj, type_)
    since = known["lastTransitionTime"] if known.get("status") == status and "lastTransitionTime" in known else now
    return replaced(obj, type_=type_, status=status, reason=reason, message=message, since=since)


def replaced(obj: Object, *, type_: str, status: str, reason: str, message: str, since: str) -> Object:
    """The object with a condition that has a time of its own."""
    new = {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    found = list((obj.get("status") or {}).get("conditions") or ())
    if any(c["type"] == type_ for c in found):
        found = [new if c["type"] == type_ else c for c in found]
    else:
        found.append(new)
    return {**obj, "status": {**(obj.get("status") or {}), "conditions": found}}

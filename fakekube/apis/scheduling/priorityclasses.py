"""PriorityClasses, and what other kinds say of priorities.

Specified by: pkg/registry/scheduling/priorityclass; pkg/apis/scheduling (validation, v1/helpers.go).
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors.field import forbidden
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation.rules import Change, Rule, changes, immutable, kept, one_of, optional, rules
from fakekube.base.objects import Object

HIGHEST_USER_DEFINABLE_PRIORITY = 1_000_000_000
_CRITICAL = 2 * HIGHEST_USER_DEFINABLE_PRIORITY

#: The system classes, and their values.
_SYSTEM_CLASSES = {"system-node-critical": _CRITICAL + 1000, "system-cluster-critical": _CRITICAL}
_SYSTEM_PREFIX = "system-"

PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


_PRIORITY_CLASS = rules(
    "PriorityClass",
    "ValidatePriorityClass",
    Rule("preemptionPolicy", optional(one_of(*PREEMPTION_POLICIES, needs="", ordered=True))),
)
_PRIORITY_CLASS_CHANGES = changes(
    "PriorityClass",
    "ValidatePriorityClassUpdate",
    Change("value", kept("may not be changed in an update.")),
    Change("preemptionPolicy", immutable()),
)


class PriorityClassStrategy(Strategy):
    """The strategy of priorityclasses."""

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["metadata"]["generation"] = 1  # constant, as updates do not change it

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _validate_value(obj["metadata"].get("name", ""), obj.get("value", 0), bool(obj.get("globalDefault")))
        return errors + _PRIORITY_CLASS.validate(obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _PRIORITY_CLASS_CHANGES.validate(obj, old)

    def refused_deletion(self, context: WriteContext, name: str) -> StatusError | None:
        if name not in _SYSTEM_CLASSES:
            return None
        text = "this is a system priority class and cannot be deleted"
        return status.forbidden("scheduling.k8s.io", "priorityclasses", name, text)


def _validate_value(name: str, value: int, is_default: bool) -> list[FieldError]:
    """Validates that users set no values or names that are reserved for the system."""
    if not name.startswith(_SYSTEM_PREFIX):
        if value <= HIGHEST_USER_DEFINABLE_PRIORITY:
            return []
        text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_DEFINABLE_PRIORITY}"
        return [forbidden("value", text)]
    problem = _is_known_system_priority_class(name, value, is_default)
    if not problem:
        return []
    text = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
    return [forbidden("metadata.name", text)]


def _is_known_system_priority_class(name: str, value: int, is_default: bool) -> str:
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""

"""priorityclasses.scheduling: names of pod priorities.

Specified by: pkg/registry/scheduling/priorityclass; pkg/apis/scheduling (validation, v1/helpers.go).
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors.field import forbidden
from fakekube.apis.rest.strategy import Object, Strategy, WriteContext
from fakekube.apis.validation.rules import Change, Rule, changes, immutable, kept, one_of, optional, rules

MAX_USER_PRIORITY = 1_000_000_000
_CRITICAL = 2 * MAX_USER_PRIORITY

#: The system classes, and their values.
SYSTEM_CLASSES = {"system-node-critical": _CRITICAL + 1000, "system-cluster-critical": _CRITICAL}
SYSTEM_PREFIX = "system-"

PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


PRIORITY_CLASS = rules(
    "PriorityClass",
    "ValidatePriorityClass",
    Rule("preemptionPolicy", optional(one_of(*PREEMPTION_POLICIES, needs="", ordered=True))),
)
PRIORITY_CLASS_CHANGES = changes(
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
        errors = validate_value(obj["metadata"].get("name", ""), obj.get("value", 0), bool(obj.get("globalDefault")))
        return errors + PRIORITY_CLASS.validate(obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return PRIORITY_CLASS_CHANGES.validate(obj, old)

    def refused_deletion(self, context: WriteContext, name: str) -> StatusError | None:
        if name not in SYSTEM_CLASSES:
            return None
        text = "this is a system priority class and cannot be deleted"
        return status.forbidden("scheduling.k8s.io", "priorityclasses", name, text)


def validate_value(name: str, value: int, is_default: bool) -> list[FieldError]:
    """Validates that users set no values or names that are reserved for the system."""
    if not name.startswith(SYSTEM_PREFIX):
        if value <= MAX_USER_PRIORITY:
            return []
        text = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
        return [forbidden("value", text)]
    problem = is_known_system_priority_class(name, value, is_default)
    if not problem:
        return []
    text = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
    return [forbidden("metadata.name", text)]


def is_known_system_priority_class(name: str, value: int, is_default: bool) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""

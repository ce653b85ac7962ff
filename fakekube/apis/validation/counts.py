"""Checks of the numbers of a status, and of values that are a number or a percentage.

Specified by: pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid
from fakekube.apis.validation.checks import IntOrString, all_non_negative, percentage

Part = Mapping[str, Any]


@dataclass(slots=True, frozen=True)
class StatusNumbers:
    """The rules of the numbers of a status."""

    not_negative: Sequence[str]
    within_replicas: Sequence[str]
    """The fields that cannot be greater than `replicas`."""
    ready_shown: str = "readyReplicas"
    """The name that messages use for the upper bound of availableReplicas."""
    counts_collisions: bool = True
    """The status has a collisionCount, which cannot be decremented."""

    def validate(self, status: Part) -> list[FieldError]:
        errors = all_non_negative(status, self.not_negative, "status")
        replicas = status.get("replicas", 0)
        for field in self.within_replicas:
            value = status.get(field, 0)
            if value > replicas:
                errors.append(invalid(f"status.{field}", value, "cannot be greater than status.replicas"))
        available = status.get("availableReplicas", 0)
        if self.within_replicas and available > status.get("readyReplicas", 0):
            text = f"cannot be greater than {self.ready_shown}"
            errors.append(invalid("status.availableReplicas", available, text))
        return errors

    def validate_update(self, status: Part, old: Part) -> list[FieldError]:
        """Returns the errors of the comparison with the old status only."""
        if not self.counts_collisions or old.get("collisionCount") is None:
            return []
        count = status.get("collisionCount")
        if count is not None and count >= old["collisionCount"]:
            return []
        return [invalid("status.collisionCount", count or 0, "cannot be decremented")]


def number_of(value: IntOrString) -> int:
    """Returns the number of a number or percentage; 0 for other texts."""
    if isinstance(value, int):
        return value
    found = percentage(value)
    if found is not None:
        return found
    try:
        return int(value)
    except ValueError:
        return 0

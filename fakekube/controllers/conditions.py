"""Finds conditions in the status of an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["find_condition"]


def find_condition(status: Mapping[str, Any], type_: str) -> dict[str, Any] | None:
    """Returns the condition of this type; None if the status has none."""
    return next((one for one in status.get("conditions") or () if one.get("type") == type_), None)

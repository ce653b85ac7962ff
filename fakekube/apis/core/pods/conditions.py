"""Conditions of pods.

Specified by: pkg/api/pod/util.go (UpdatePodCondition).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fakekube.base.golang.timestamps import print_time

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

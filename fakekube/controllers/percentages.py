"""Counts that may be percentages of another count.

Specified by: k8s.io/apimachinery/pkg/util/intstr/intstr.go (GetScaledValueFromIntOrPercent).
"""

from __future__ import annotations

__all__ = ["scaled_value"]


def scaled_value(value: int | str | None, total: int, *, round_up: bool, default: int | str = 0) -> int:
    """The count that an IntOrString stands for.

    Args:
        value: a number, or a percentage such as "25%"; None for `default`.
        total: what a percentage is of.
        round_up: which way a share is rounded.
        default: stands for an absent value.

    Raises:
        ValueError: the text is no percentage.
    """
    if value is None:
        value = default
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100

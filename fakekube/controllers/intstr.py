"""Reads IntOrString values, which are a number or a percentage of another number.

Specified by: k8s.io/apimachinery/pkg/util/intstr/intstr.go (GetScaledValueFromIntOrPercent).
"""

from __future__ import annotations

__all__ = ["get_scaled_value"]


def get_scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Returns the number that an IntOrString stands for (GetScaledValueFromIntOrPercent).

    Args:
        value: a number, or a percentage such as "25%"; None stands for 0.
        total: the number that a percentage refers to.
        round_up: whether a fraction is rounded up or down.

    Raises:
        ValueError: the text is not a percentage.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100

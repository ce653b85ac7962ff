"""Taints and tolerations.

Specified by: k8s.io/api/core/v1/toleration.go, k8s.io/component-helpers/scheduling/corev1/helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Taint = Mapping[str, Any]
Toleration = Mapping[str, Any]


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Reports whether the toleration tolerates the taint; an empty effect or key matches every effect or key."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerates_all(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Reports whether one of the tolerations tolerates the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], effects: Sequence[str] = ("NoSchedule", "NoExecute")
) -> Taint | None:
    """Returns the first taint of these effects that no toleration tolerates, or None."""
    for taint in taints:
        if taint.get("effect") in effects and not tolerates_all(tolerations, taint):
            return taint
    return None

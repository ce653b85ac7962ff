"""Writes the status of pods with strategic merge patches.

Specified by: pkg/scheduler/util/utils.go (PatchPodStatus), pkg/api/v1/pod/util.go (UpdatePodCondition).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apis.validation.conditions import find_condition
from fakekube.controllers.client import Client
from fakekube.controllers.objects import StoredObject

__all__ = ["condition_patch", "patch_status"]


def condition_patch(pod: StoredObject, type_: str, content: tuple[str, str, str], now: str) -> dict[str, Any] | None:
    """Returns a patch of the status that sets a condition; None if the pod has the condition already.

    Args:
        pod: The pod.
        type_: The type of the condition.
        content: Its status, reason and message.
        now: The time of a transition.
    """
    status, reason, message = content
    old = find_condition(pod.get("status") or {}, type_)
    since = now
    if old is not None and old.get("status") == status:
        since = old.get("lastTransitionTime") or now
    condition = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    if old is not None and all(old.get(name) == value for name, value in condition.items()):
        return None
    return {"conditions": [{"lastProbeTime": None, **condition}]}


def patch_status(client: Client, pod: StoredObject, status: Mapping[str, Any]) -> None:
    """Patches the status of a pod, if its uid is still the same. Raises ApiError."""
    metadata = pod["metadata"]
    body = {"metadata": {"uid": metadata["uid"]}, "status": status}
    client.strategic_patch("pods", metadata["name"], body, namespace=metadata["namespace"], subresource="status")

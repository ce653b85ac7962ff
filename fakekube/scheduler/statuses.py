"""How the scheduler writes the status of pods: strategic merge patches of what changes.

Specified by: pkg/scheduler/util/utils.go (PatchPodStatus), pkg/api/v1/pod/util.go (UpdatePodCondition).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.client import Client

__all__ = ["condition_patch", "patch_status"]

STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

Object = Mapping[str, Any]


def condition_patch(pod: Object, type_: str, content: tuple[str, str, str], now: str) -> dict[str, Any] | None:
    """What is to be written so that a pod has a condition with this status, reason and message; None if it has it."""
    status, reason, message = content
    conditions = (pod.get("status") or {}).get("conditions") or ()
    old = next((one for one in conditions if one["type"] == type_), None)
    since = now
    if old is not None and old.get("status") == status:
        since = old.get("lastTransitionTime") or now
    condition = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    if old is not None and all(old.get(name) == value for name, value in condition.items()):
        return None
    return {"conditions": [{"lastProbeTime": None, **condition}]}


def patch_status(client: Client, pod: Object, status: Mapping[str, Any]) -> None:
    """Patch the status of a pod; it must still be the same one. Raises ApiError."""
    metadata = pod["metadata"]
    path = client.path(client.resource("pods"), metadata["namespace"], metadata["name"], "status")
    body = {"metadata": {"uid": metadata["uid"]}, "status": status}
    client.call("PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH)

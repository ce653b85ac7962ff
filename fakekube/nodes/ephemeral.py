"""Ephemeral containers: starts those that are added to a running pod, and never restarts them.

Invariant: the status of a terminated ephemeral container does not change any more.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, ephemeralContainersToStart),
pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fakekube.nodes.pod_status import container_id, image_id

if TYPE_CHECKING:
    from fakekube.nodes.container_runtime import Exit

__all__ = ["EphemeralChange", "ephemeral_statuses"]

Object = Mapping[str, Any]


class EphemeralChange(NamedTuple):
    """The statuses to write, and the containers for which to record events."""

    statuses: list[dict[str, Any]]
    started: list[str]
    """The names of the containers that start."""


def ephemeral_statuses(pod: Object, exits: Iterable[Exit], now: str) -> EphemeralChange | None:
    """Returns the statuses of the ephemeral containers of a running pod; None if they have not changed.

    Args:
        pod: The pod.
        exits: The exits of main programs.
        now: The time, as a timestamp.
    """
    known = {one["name"]: one for one in (pod.get("status") or {}).get("ephemeralContainerStatuses") or ()}
    codes = {one.container: one.code for one in exits}
    statuses, started = [], []
    for container in pod["spec"].get("ephemeralContainers") or ():
        name = container["name"]
        status = known.get(name)
        if status is None:
            status = _running(pod, container, now)
            started.append(name)
        elif name in codes and "running" in (status.get("state") or {}):
            status = _ended(status, codes[name], now)
        statuses.append(status)
    return EphemeralChange(statuses, started) if statuses != list(known.values()) else None


def _running(pod: Object, container: Object, now: str) -> dict[str, Any]:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": image_id(image),
        "containerID": container_id(pod["metadata"]["uid"], container["name"]),
        "restartCount": 0,
        "ready": False,
        "state": {"running": {"startedAt": now}},
        "lastState": {},
    }


def _ended(status: Object, code: int, now: str) -> dict[str, Any]:
    ended = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": status["state"]["running"]["startedAt"],
        "finishedAt": now,
        "containerID": status["containerID"],
    }
    return {**status, "state": {"terminated": ended}}

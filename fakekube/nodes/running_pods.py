"""The sync of running pods: starts ephemeral containers, which are never restarted, and finds changes of images.

Invariant: the status of a terminated ephemeral container does not change any more.

Specified by: pkg/kubelet/kubelet.go (SyncPod), pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions),
pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fakekube.base.objects import Object, StoredObject
from fakekube.nodes.container_events import record_container_events, starting_events
from fakekube.nodes.node_state import Exit
from fakekube.nodes.pod_status import container_id, image_id

if TYPE_CHECKING:
    from fakekube.nodes.status_manager import StatusManager


class EphemeralChange(NamedTuple):
    """The statuses to write, and the containers for which to record events."""

    statuses: list[Object]
    started: list[str]
    """The names of the containers that start."""


def ephemeral_statuses(pod: StoredObject, exits: Iterable[Exit], now: str) -> EphemeralChange | None:
    """Returns the statuses of the ephemeral containers of a running pod; None if they have not changed.

    Args:
        pod: the pod.
        exits: the exits of main programs.
        now: the time, as a timestamp.
    """
    known = {one["name"]: one for one in (pod.get("status") or {}).get("ephemeralContainerStatuses") or ()}
    codes = {one.container: one.run.exit_code for one in exits}
    statuses, started = [], []
    for container in pod["spec"].get("ephemeralContainers") or ():
        name = container["name"]
        status = known.get(name)
        if status is None:
            status = _running_status(pod, container, now)
            started.append(name)
        elif name in codes and "running" in (status.get("state") or {}):
            status = _terminated_status(status, codes[name], now)
        statuses.append(status)
    return EphemeralChange(statuses, started) if statuses != list(known.values()) else None


def _running_status(pod: StoredObject, container: StoredObject, now: str) -> Object:
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


def _terminated_status(status: StoredObject, code: int, now: str) -> Object:
    ended = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": status["state"]["running"]["startedAt"],
        "finishedAt": now,
        "containerID": status["containerID"],
    }
    return {**status, "state": {"terminated": ended}}


def has_other_images(pod: StoredObject) -> bool:
    """Reports whether the spec of a running pod has changed since its kubelet has seen it, and names other images than run."""
    status = pod["status"]
    if status.get("observedGeneration", 0) == pod["metadata"].get("generation", 0):
        return False
    images = {one["name"]: one.get("image") for one in pod["spec"]["containers"]}
    return any(one["image"] != images.get(one["name"]) for one in status.get("containerStatuses") or ())


def sync_ephemeral_containers(kubelet: StatusManager, pod: Object, exits: Sequence[Exit]) -> tuple[Object, Sequence[Exit]]:
    """Starts the ephemeral containers of a running pod, and writes their exits.

    Returns the updated pod, and the exits of its other containers. Raises ApiError.
    """
    names = {one["name"] for one in pod["spec"].get("ephemeralContainers") or ()}
    if not names:
        return pod, exits
    others = [one for one in exits if one.container not in names]
    change = ephemeral_statuses(pod, [one for one in exits if one.container in names], kubelet.client.now())
    if change is None:
        return pod, others
    written = kubelet.patch_status("pods", pod, {"ephemeralContainerStatuses": change.statuses}, manager="kubelet")
    for one in written["spec"]["ephemeralContainers"]:
        if one["name"] in change.started:
            record_container_events(kubelet.recorder, written, starting_events(one, kubelet.context.emulation.minor))
    return written, others

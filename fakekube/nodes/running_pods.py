"""The sync of running pods: starts ephemeral containers, which are never restarted, and finds changes of images.

Invariant: the status of a terminated ephemeral container does not change any more.

Specified by: pkg/kubelet/kubelet.go (SyncPod), pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions),
pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fakekube.base.objects import Object, StoredObject
from fakekube.nodes.container_events import record_container_events, starting_events
from fakekube.nodes.images.names import image_id
from fakekube.nodes.node_state import Exit, state_of
from fakekube.nodes.plans import Run, failed_start
from fakekube.nodes.pod_status import NEVER, container_id

if TYPE_CHECKING:
    from fakekube.nodes.status_manager import StatusManager


class EphemeralChange(NamedTuple):
    """The statuses to write, and the containers for which to record events."""

    statuses: list[Object]
    started: list[str]
    """The names of the containers that start."""


def ephemeral_statuses(
    pod: StoredObject, exits: Iterable[Exit], now: str, find_start_error: Callable[[StoredObject], str]
) -> EphemeralChange | None:
    """Returns the statuses of the ephemeral containers of a running pod; None if they have not changed.

    Args:
        pod: the pod.
        exits: the exits of main programs.
        now: the time, as a timestamp.
        find_start_error: returns why the program of a container cannot be started; "" if it can.
    """
    known = {one["name"]: one for one in (pod.get("status") or {}).get("ephemeralContainerStatuses") or ()}
    runs = {one.container: one.run for one in exits}
    statuses, started = [], []
    for container in pod["spec"].get("ephemeralContainers") or ():
        name = container["name"]
        status = known.get(name)
        if status is None:
            status = _running_status(pod, container, now)
            if error := find_start_error(container):
                status = _terminated_status(status, failed_start(error), NEVER, now)
            started.append(name)
        elif name in runs and "running" in (status.get("state") or {}):
            status = _terminated_status(status, runs[name], status["state"]["running"]["startedAt"], now)
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


def _terminated_status(status: StoredObject, run: Run, started_at: str, now: str) -> Object:
    ended = {
        "exitCode": run.exit_code,
        "reason": run.reason or ("Error" if run.exit_code else "Completed"),
        "startedAt": started_at,
        "finishedAt": now,
        "containerID": status["containerID"],
    }
    if run.message:
        ended["message"] = run.message
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
    own = [one for one in exits if one.container in names]
    find_start_error = state_of(kubelet.context).known_images().find_start_error
    change = ephemeral_statuses(pod, own, kubelet.client.now(), find_start_error)
    if change is None:
        return pod, others
    written = kubelet.patch_status("pods", pod, {"ephemeralContainerStatuses": change.statuses}, manager="kubelet")
    for one in written["spec"]["ephemeralContainers"]:
        if one["name"] in change.started:
            events = starting_events(one, kubelet.context.emulation.minor, find_start_error(one))
            record_container_events(kubelet.recorder, written, events)
    return written, others

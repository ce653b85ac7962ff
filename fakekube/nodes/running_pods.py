"""The sync of running pods: starts ephemeral containers, which are never restarted, and applies resizes.

Invariant: the status of a terminated ephemeral container does not change any more.

Specified by: pkg/kubelet/kubelet.go (SyncPod), pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions),
pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.reconciler import Key
from fakekube.nodes.allocation import AllocationManager
from fakekube.nodes.container_events import record_container_events, starting_events
from fakekube.nodes.node_state import Exit
from fakekube.nodes.pod_status import container_id, image_id
from fakekube.nodes.pod_workers import PodWorkers

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


class RunningPods:
    """Syncs the running pods.

    Args:
        kubelet: the kubelet of the pods.
        workers: the state machines of pods with plans.
        on_node: node → its pods.
    """

    def __init__(self, kubelet: StatusManager, workers: PodWorkers, on_node: Mapping[str, set[Key]]) -> None:
        self._kubelet = kubelet
        self.allocation = AllocationManager(kubelet, workers, on_node)

    def sync(self, key: Key, pod: Object, node: Object, exits: Sequence[Exit]) -> tuple[Object, Sequence[Exit]]:
        """Syncs a pod. Returns the updated pod, and the exits that are still to be written. Raises ApiError."""
        if pod["spec"].get("ephemeralContainers"):
            names = {one["name"] for one in pod["spec"]["ephemeralContainers"]}
            pod = self._sync_ephemeral(pod, [one for one in exits if one.container in names])
            exits = [one for one in exits if one.container not in names]
        pod, restarts = self.allocation.sync(key, pod, node)
        return pod, [*exits, *restarts]

    # --- Ephemeral containers -----------------------------------------------------------------------------------------

    def _sync_ephemeral(self, pod: Object, exits: Sequence[Exit]) -> Object:
        change = ephemeral_statuses(pod, exits, self._kubelet.client.now())
        if change is None:
            return pod
        written = self._kubelet.patch_status("pods", pod, {"ephemeralContainerStatuses": change.statuses}, manager="kubelet")
        for one in written["spec"]["ephemeralContainers"]:
            if one["name"] in change.started:
                events = starting_events(one, self._kubelet.context.emulation.minor)
                record_container_events(self._kubelet.recorder, written, events)
        return written

"""The sync of running pods: starts ephemeral containers, which are never restarted, and resizes in place.

A resize that fits the node is applied at once. Others are deferred until pods have left the node.

Invariant: a resize is applied, or a condition contains why it is not; it never makes the allocated resources of the pods on a
node exceed its allocatable ones. The status of a terminated ephemeral container does not change any more.

Specified by: pkg/kubelet/kubelet.go (SyncPod), pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions),
pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses), pkg/kubelet/allocation/allocation_manager.go
(handlePodResourcesResize), pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/events/resize.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.core.pods.resize import RESIZABLE
from fakekube.apis.core.pods.resources import STATUSES, pod_requests, with_status_resources
from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import TERMINAL_POD_PHASES
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.reconciler import Key
from fakekube.nodes.container_events import record_container_events, starting_events
from fakekube.nodes.container_runtime import Exit
from fakekube.nodes.plans import Run
from fakekube.nodes.pod_state import KILLED
from fakekube.nodes.pod_status import container_id, image_id, resized_status, resources_of
from fakekube.nodes.pod_workers import PodWorkers

if TYPE_CHECKING:
    from fakekube.nodes.pod_status import StatusManager


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


PENDING: Final = "PodResizePending"


def is_resized(pod: StoredObject) -> bool:
    """Reports whether the spec of a running pod requests other resources than are allocated."""
    status = pod.get("status") or {}
    for kind, statuses in STATUSES.items():
        requested = {one["name"]: _set_resources(resources_of(one)) for one in pod["spec"].get(kind) or ()}
        for one in status.get(statuses) or ():
            running = "running" in (one.get("state") or {})
            if running and one["name"] in requested and _set_resources(one) != requested[one["name"]]:
                return True
    return False


def _set_resources(status: StoredObject) -> Object:
    """Returns the fields of a container status about resources that are not empty."""
    return {name: status[name] for name in ("allocatedResources", "resources") if status.get(name)}


def why_deferred(pod: StoredObject, node: StoredObject, others: Iterable[StoredObject]) -> str:
    """Returns why a node has not enough resources for a resized pod; "" if it has.

    Args:
        pod: the resized pod.
        node: the node of the pod.
        others: the other pods on the node that have not terminated.
    """
    wanted = pod_requests(dict(pod))
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    used = [pod_requests(dict(with_status_resources(one))) for one in others]
    for resource in RESIZABLE:
        if resource not in wanted or resource not in allocatable:
            continue
        requested, taken, capacity = (
            sum(one.milli_value() if resource == "cpu" else one.value() for one in amounts)
            for amounts in (
                [wanted[resource]],
                [one[resource] for one in used if resource in one],
                [parse(str(allocatable[resource]))],
            )
        )
        if requested > capacity - taken:
            return insufficient_resource(resource, requested, taken, capacity)
    return ""


def insufficient_resource(resource: str, requested: int, used: int, capacity: int) -> str:
    """Returns the message of a pod that a node has not enough of a resource for (InsufficientResourceError.Error)."""
    return f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"


def pending_condition(pod: StoredObject, message: str, now: str) -> Object:
    """Returns the condition of a deferred resize."""
    return {
        "type": PENDING,
        "status": "True",
        "observedGeneration": pod["metadata"].get("generation", 0),
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": "Deferred",
        "message": message,
    }


def resize_message(pod: StoredObject, prefix: str, error: str = "") -> str:
    """Returns the message of an event about a resize."""
    summary: Object = {}
    for kind in ("initContainers", "containers"):
        found = [{"name": one["name"], "resources": one.get("resources") or {}} for one in pod["spec"].get(kind) or ()]
        if found:
            summary[kind] = found
    summary["generation"] = pod["metadata"].get("generation", 0)
    if error:
        summary["error"] = error
    return f"{prefix}: {json.dumps(summary).decode()}"


class RunningPods:
    """Syncs the running pods.

    Args:
        kubelet: the kubelet of the pods.
        workers: the state machines of pods with plans.
        on_node: node → its pods.
    """

    def __init__(self, kubelet: StatusManager, workers: PodWorkers, on_node: Mapping[str, set[Key]]) -> None:
        self._kubelet, self._workers, self._on_node = kubelet, workers, on_node
        self._deferred: dict[str, set[Key]] = {}

    def pods_with_deferred_resize(self, node: str) -> Sequence[Key]:
        """Returns the pods on a node whose resize is deferred."""
        return tuple(self._deferred.get(node, ()))

    def sync(self, key: Key, pod: Object, node: Object, exits: Sequence[Exit]) -> tuple[Object, Sequence[Exit]]:
        """Syncs a pod. Returns the updated pod, and the exits that are still to be written. Raises ApiError."""
        if pod["spec"].get("ephemeralContainers"):
            names = {one["name"] for one in pod["spec"]["ephemeralContainers"]}
            pod = self._sync_ephemeral(pod, [one for one in exits if one.container in names])
            exits = [one for one in exits if one.container not in names]
        if is_resized(pod):
            pod, restarts = self._resize(key, pod, node)
            exits = [*exits, *restarts]
        elif find_condition(pod.get("status") or {}, PENDING) is not None:
            pod = self._clear_pending(key, pod)
        return pod, exits

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

    # --- Resize -------------------------------------------------------------------------------------------------------

    def _resize(self, key: Key, pod: Object, node: Object) -> tuple[Object, Sequence[Exit]]:
        """Applies a resize, or defers it. Returns the updated pod, and exits for the containers that it restarts."""
        name = node["metadata"]["name"]
        keys = [one for one in self._on_node.get(name, ()) if one != key]
        others = [found for one in keys if (found := self._kubelet.cache.get("pods", *one)) is not None]
        others = [one for one in others if (one.get("status") or {}).get("phase") not in TERMINAL_POD_PHASES]
        message = why_deferred(pod, node, others)
        if message:
            self._deferred.setdefault(name, set()).add(key)
            return self._defer(pod, message), ()
        self._deferred.get(name, set()).discard(key)
        restarts = self._restarts(pod)
        self._kubelet.record(pod, "Normal", "ResizeStarted", resize_message(pod, "Pod resize started"))
        changed = dict(resized_status(pod) or {})
        if find_condition(pod.get("status") or {}, PENDING) is not None:
            changed["conditions"] = [{"$patch": "delete", "type": PENDING}]
        self._workers.resize(pod)
        written = self._kubelet.patch_status("pods", pod, changed, manager="kubelet")
        self._kubelet.record(written, "Normal", "ResizeCompleted", resize_message(pod, "Pod resize completed"))
        return written, restarts

    def _defer(self, pod: Object, message: str) -> Object:
        """Writes the condition of a deferred resize, unless it is there. Returns the updated pod."""
        known = find_condition(pod.get("status") or {}, PENDING)
        generation = pod["metadata"].get("generation", 0)
        if known is not None and (known.get("message"), known.get("observedGeneration")) == (message, generation):
            return pod
        condition = pending_condition(pod, message, self._kubelet.client.now())
        status = {"observedGeneration": generation, "conditions": [condition]}
        written = self._kubelet.patch_status("pods", pod, status, manager="kubelet")
        self._kubelet.record(pod, "Warning", "ResizeDeferred", resize_message(pod, "Pod resize Deferred", message))
        return written

    def _clear_pending(self, key: Key, pod: Object) -> Object:
        """Removes the condition of a deferred resize that was taken back."""
        self._deferred.get(pod["spec"].get("nodeName", ""), set()).discard(key)
        status = {"conditions": [{"$patch": "delete", "type": PENDING}]}
        return self._kubelet.patch_status("pods", pod, status, manager="kubelet")

    def _restarts(self, pod: Object) -> list[Exit]:
        """Returns exits for the containers whose resizePolicy requires a restart."""
        statuses = {one["name"]: one for one in pod["status"].get("containerStatuses") or ()}
        now, found = self._kubelet.clock.monotonic(), []
        for container in pod["spec"]["containers"]:
            status = statuses.get(container["name"])
            if status is None:
                continue
            changed = _changed_resources(status.get("resources") or {}, resources_of(container).get("resources") or {})
            policies = {one["resourceName"]: one["restartPolicy"] for one in container.get("resizePolicy") or ()}
            if any(policies.get(one) == "RestartContainer" for one in changed):
                found.append(Exit(container["name"], status.get("restartCount", 0), Run(0.0, KILLED), now))
        return found


def _changed_resources(old: StoredObject, new: StoredObject) -> set[str]:
    """Returns the names of the resources whose request or limit differs."""
    return {
        resource
        for side in ("requests", "limits")
        for resource in {**old.get(side, {}), **new.get(side, {})}
        if old.get(side, {}).get(resource) != new.get(side, {}).get(resource)
    }

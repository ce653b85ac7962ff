"""The sync of running pods: starts ephemeral containers, and resizes in place.

Invariant: a resize is applied, or a condition contains why it is not.

Specified by: pkg/kubelet/kubelet.go (SyncPod), pkg/kubelet/allocation/allocation_manager.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fakekube.apis.validation.conditions import find_condition
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key
from fakekube.nodes.container_runtime import Exit
from fakekube.nodes.ephemeral import ephemeral_statuses
from fakekube.nodes.pod_status import TERMINAL, resized_status, resources_of
from fakekube.nodes.pod_workers import PodWorkers
from fakekube.nodes.resize import PENDING, is_resized, pending_condition, resize_message, why_deferred

if TYPE_CHECKING:
    from fakekube.nodes.kubelet import Kubelet

__all__ = ["RunningPods"]


class RunningPods:
    """Syncs the running pods.

    Args:
        kubelet: The kubelet of the pods.
        workers: The state machines of pods with plans.
        on_node: Node → its pods.
    """

    def __init__(self, kubelet: Kubelet, workers: PodWorkers, on_node: Mapping[str, set[Key]]) -> None:
        self._kubelet, self._workers, self._on_node = kubelet, workers, on_node
        self._deferred: dict[str, set[Key]] = {}

    def deferred_on(self, node: str) -> Sequence[Key]:
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

    # ------------------------------------------------------------ ephemeral containers

    def _sync_ephemeral(self, pod: Object, exits: Sequence[Exit]) -> Object:
        change = ephemeral_statuses(pod, exits, self._kubelet.client.now())
        if change is None:
            return pod
        written = self._kubelet.patch_status("pods", pod, {"ephemeralContainerStatuses": change.statuses}, manager="kubelet")
        for name in change.started:
            for reason, message in (("Created", "Container created"), ("Started", "Container started")):
                self._kubelet.record(written, "Normal", reason, message, f"spec.ephemeralContainers{{{name}}}")
        return written

    # ------------------------------------------------------------ resize

    def _resize(self, key: Key, pod: Object, node: Object) -> tuple[Object, Sequence[Exit]]:
        name = node["metadata"]["name"]
        keys = [one for one in self._on_node.get(name, ()) if one != key]
        others = [found for one in keys if (found := self._kubelet.cache.get("pods", *one)) is not None]
        others = [one for one in others if (one.get("status") or {}).get("phase") not in TERMINAL]
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
            status, resources = statuses.get(container["name"]), resources_of(container).get("resources") or {}
            policies = {one["resourceName"]: one["restartPolicy"] for one in container.get("resizePolicy") or ()}
            former = (status or {}).get("resources") or {}
            changed = {
                resource
                for side in ("requests", "limits")
                for resource in {**former.get(side, {}), **resources.get(side, {})}
                if former.get(side, {}).get(resource) != resources.get(side, {}).get(resource)
            }
            if status is not None and any(policies.get(one) == "RestartContainer" for one in changed):
                found.append(Exit(container["name"], status.get("restartCount", 0), 0, now))
        return found

"""What a kubelet does for pods that run: it starts ephemeral containers, resizes in place, runs the commands that tests ask for.

Invariant: a resize is done, or its condition says why not.

Specified by: pkg/kubelet/kubelet.go (SyncPod), pkg/kubelet/allocation/allocation_manager.go,
pkg/kubelet/kuberuntime/kuberuntime_container.go (startContainer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fakekube.controllers.reconciler import Key, Object
from fakekube.nodes.container_runtime import Exit
from fakekube.nodes.ephemeral import ephemeral_statuses
from fakekube.nodes.node_status import condition
from fakekube.nodes.pod_status import resized_status, resources_of
from fakekube.nodes.pod_workers import PodWorkers
from fakekube.nodes.resize import PENDING, deferral, is_resized, pending_condition, resize_message

if TYPE_CHECKING:
    from fakekube.nodes.kubelet import Kubelet
    from fakekube.nodes.rules import Pods
    from fakekube.runtime.container import Container
    from fakekube.runtime.runtime import Runtime

__all__ = ["RunningPods"]

_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_HOOK_FAILED: Final = 137


def _runs(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"


class RunningPods:
    """Looks after the pods that run.

    Args:
        kubelet: whose pods they are.
        workers: of the pods that have been told something.
        on_node: node → its pods.
    """

    def __init__(self, kubelet: Kubelet, workers: PodWorkers, on_node: Mapping[str, set[Key]]) -> None:
        self._kubelet, self._workers, self._on_node = kubelet, workers, on_node
        self._deferred: dict[str, set[Key]] = {}
        self._stopped: set[str] = set()
        """The uids of pods whose preStop hooks have run."""

    def deferred_on(self, node: str) -> Sequence[Key]:
        """The pods of a node whose resize waits for room."""
        return tuple(self._deferred.get(node, ()))

    def sync(self, key: Key, pod: Object, node: Object, exits: Sequence[Exit]) -> tuple[Object, Sequence[Exit]]:
        """Do what is to be done. Returns the pod as it is then, and exits that are left to do. Raises ApiError."""
        if pod["spec"].get("ephemeralContainers"):
            names = {one["name"] for one in pod["spec"]["ephemeralContainers"]}
            pod = self._sync_ephemeral(pod, [one for one in exits if one.container in names])
            exits = [one for one in exits if one.container not in names]
        if is_resized(pod):
            pod, restarts = self._resize(key, pod, node)
            exits = [*exits, *restarts]
        elif condition(pod, PENDING) is not None:
            pod = self._clear(key, pod)
        self._start_commands(pod)
        return pod, exits

    # ------------------------------------------------------------ ephemeral containers

    def _sync_ephemeral(self, pod: Object, exits: Sequence[Exit]) -> Object:
        changed = ephemeral_statuses(pod, exits, self._kubelet.client.now())
        if changed is None:
            return pod
        written = self._kubelet.patch_status("pods", pod, {"ephemeralContainerStatuses": changed.statuses}, manager="kubelet")
        for name in changed.started:
            for reason, message in (("Created", "Container created"), ("Started", "Container started")):
                self._tell(pod, "Normal", reason, message, f"spec.ephemeralContainers{{{name}}}")
        return written

    def _tell(self, pod: Object, type_: str, reason: str, message: str, field: str = "") -> None:
        metadata = pod["metadata"]
        about = {"kind": "Pod", "apiVersion": "v1", "fieldPath": field} | {
            name: metadata[name] for name in ("namespace", "name", "uid", "resourceVersion")
        }
        about = about if field else {name: value for name, value in about.items() if value}
        self._kubelet.recorder.event(about, type_, reason, message, host=pod["spec"].get("nodeName", ""))

    # ------------------------------------------------------------ resize

    def _resize(self, key: Key, pod: Object, node: Object) -> tuple[Object, Sequence[Exit]]:
        name = node["metadata"]["name"]
        keys = [one for one in self._on_node.get(name, ()) if one != key]
        others = [found for one in keys if (found := self._kubelet.cache.get("pods", *one)) is not None]
        others = [one for one in others if (one.get("status") or {}).get("phase") not in _TERMINAL]
        message = deferral(pod, node, others)
        if message:
            self._deferred.setdefault(name, set()).add(key)
            return self._defer(pod, message), ()
        self._deferred.get(name, set()).discard(key)
        restarts = self._restarts(pod)
        self._tell(pod, "Normal", "ResizeStarted", resize_message(pod, "Pod resize started"))
        changed = dict(resized_status(pod) or {})
        if condition(pod, PENDING) is not None:
            changed["conditions"] = [{"$patch": "delete", "type": PENDING}]
        self._workers.resize(pod)
        written = self._kubelet.patch_status("pods", pod, changed, manager="kubelet")
        self._tell(written, "Normal", "ResizeCompleted", resize_message(pod, "Pod resize completed"))
        return written, restarts

    def _defer(self, pod: Object, message: str) -> Object:
        known = condition(pod, PENDING)
        generation = pod["metadata"].get("generation", 0)
        if known is not None and (known.get("message"), known.get("observedGeneration")) == (message, generation):
            return pod
        wanted = pending_condition(pod, message, self._kubelet.client.now())
        status = {"observedGeneration": generation, "conditions": [wanted]}
        written = self._kubelet.patch_status("pods", pod, status, manager="kubelet")
        self._tell(pod, "Warning", "ResizeDeferred", resize_message(pod, "Pod resize Deferred", message))
        return written

    def _clear(self, key: Key, pod: Object) -> Object:
        """The pod asks for what it has again."""
        self._deferred.get(pod["spec"].get("nodeName", ""), set()).discard(key)
        status = {"conditions": [{"$patch": "delete", "type": PENDING}]}
        return self._kubelet.patch_status("pods", pod, status, manager="kubelet")

    def _restarts(self, pod: Object) -> list[Exit]:
        """The containers that have to be restarted to get other resources."""
        statuses = {one["name"]: one for one in pod["status"].get("containerStatuses") or ()}
        now, found = self._kubelet.clock.monotonic(), []
        for container in pod["spec"]["containers"]:
            status, wanted = statuses.get(container["name"]), resources_of(container).get("resources") or {}
            policies = {one["resourceName"]: one["restartPolicy"] for one in container.get("resizePolicy") or ()}
            had = (status or {}).get("resources") or {}
            changed = {
                resource
                for side in ("requests", "limits")
                for resource in {**had.get(side, {}), **wanted.get(side, {})}
                if had.get(side, {}).get(resource) != wanted.get(side, {}).get(resource)
            }
            if status is not None and any(policies.get(one) == "RestartContainer" for one in changed):
                found.append(Exit(container["name"], status.get("restartCount", 0), 0, now))
        return found

    # ------------------------------------------------------------ commands that are run

    def _start_commands(self, pod: Object) -> None:
        """Containers that follow their commands run these from their start."""
        rules: Pods | None = self._kubelet.context.shared.get("pods")
        if rules is None or not rules.run_commands:
            return
        running = {one["name"] for one in pod["status"].get("containerStatuses") or () if "running" in (one.get("state") or {})}
        for spec in pod["spec"]["containers"]:
            if spec["name"] in running and rules.behaviour_of(pod, spec).follows_command:
                runtime: Runtime = self._kubelet.context.shared["runtime of"]()
                container = runtime.container(pod, spec["name"])
                if container.main.start_now():
                    self._run_post_start(pod, container)

    def _run_post_start(self, pod: Object, container: Container) -> None:
        hook = ((container.spec.get("lifecycle") or {}).get("postStart") or {}).get("exec")
        if hook is None:
            return

        def failed() -> None:
            field = f"spec.containers{{{container.name}}}"
            self._tell(pod, "Warning", "FailedPostStartHook", "PostStartHook failed", field)
            container.exited(_HOOK_FAILED)

        container.run_hook(hook.get("command") or (), failed)

    def stop(self, pod: Object) -> None:
        """A pod is being deleted: run its preStop hooks, which take their time."""
        rules: Pods | None = self._kubelet.context.shared.get("pods")
        uid = pod["metadata"]["uid"]
        if rules is None or not rules.run_commands or uid in self._stopped or not _runs(pod):
            return
        self._stopped.add(uid)
        took = self._run_pre_stop(pod, rules, float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
        if any(took.values()):
            self._workers.delay_stop(pod, took)

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self._stopped.discard(uid)

    def _run_pre_stop(self, pod: Object, rules: Pods, grace: float) -> dict[str, float]:
        """Returns by container how many seconds its hook takes."""
        found: dict[str, float] = {}
        for spec in pod["spec"]["containers"]:
            hook = ((spec.get("lifecycle") or {}).get("preStop") or {}).get("exec")
            if hook is None or not rules.behaviour_of(pod, spec).follows_command:
                continue
            runtime: Runtime = self._kubelet.context.shared["runtime of"]()
            code, took = runtime.container(pod, spec["name"]).run_to_end(hook.get("command") or (), grace)
            found[spec["name"]] = took
            if code:
                self._tell(pod, "Warning", "FailedPreStopHook", "PreStopHook failed", f"spec.containers{{{spec['name']}}}")
        return found

"""Runs the commands and hooks of containers whose image and program are known, or for which a rule says `runs_command`.

Such containers terminate with their command, and its exit code. With a rule, a command that the shell does not have does nothing:
the container runs on, except where it would succeed at once without the rule (init containers, pods of Jobs).

Invariant: a command is started once for each run of its container.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_container.go (startContainer, executePreStopHook).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.controllers.objects import Object
from fakekube.nodes.images.registry import DEFAULT
from fakekube.nodes.pod_status import is_of_job

if TYPE_CHECKING:
    from fakekube.nodes.images.registry import Images
    from fakekube.nodes.kubelet import Kubelet
    from fakekube.nodes.pod_workers import Obstacles
    from fakekube.nodes.rules import Pods
    from fakekube.nodes.runtime.container import Container
    from fakekube.nodes.runtime.runtime import Runtime

__all__ = ["Commands"]

_HOOK_FAILED: Final = 137
#: Fields of a container that may keep it from starting.
_CHECKED: Final = frozenset({"env", "envFrom", "volumeMounts", "securityContext"})
_FIELDS: Final = {"initContainers": "initContainerStatuses", "containers": "containerStatuses"}


class Commands:
    """The commands of the containers of all pods.

    Args:
        kubelet: The kubelet of the pods.
    """

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._started: dict[str, dict[str, int]] = {}
        """The uid of a pod → container → its last run whose command was started."""
        self._stopped: set[str] = set()
        """The uids of pods whose preStop hooks have run."""

    def followed(self, pod: Object) -> frozenset[str]:
        """Returns the names of the containers that terminate with their command."""
        return frozenset(spec["name"] for _, spec in self._followed(pod))

    def _followed(self, pod: Object) -> Iterator[tuple[str, Object]]:
        """Returns the containers that terminate with their command, each with its field of the spec."""
        shared = self._kubelet.context.shared
        rules: Pods | None = shared.get("pods")
        images: Images = shared.get("images", DEFAULT)
        for field in _FIELDS:
            for spec in pod["spec"].get(field) or ():
                follows = rules.behaviour_of(pod, spec).follows_command if rules is not None else None
                completes = (field == "initContainers" and spec.get("restartPolicy") != "Always") or is_of_job(pod)
                if images.runs(spec, completes=completes) if follows is None else follows:
                    yield field, spec

    def obstacles(self, pod: Object) -> Obstacles:
        """Returns the functions that find out what keeps a pod or one of its containers from starting."""
        from fakekube.nodes.creation import creation_error, mount_error

        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        cluster = self._kubelet.context.services
        images: Images = self._kubelet.context.shared.get("images", DEFAULT)

        def current() -> Object:
            return self._kubelet.cache.get("pods", namespace, name) or pod

        def of_container(spec: Mapping[str, Any]) -> str:
            found, image = current(), images.find(spec.get("image") or "")
            if image is None:
                return ""
            variables: Mapping[str, str] = {}
            if any(one.get("subPathExpr") for one in spec.get("volumeMounts") or ()):
                from fakekube.nodes.runtime.environment import environment

                variables = environment(found, spec, cluster, None)
            return creation_error(found, spec, cluster, image, variables)

        def of_volumes() -> str:
            found = current()
            names = [one.get("image") or "" for field in _FIELDS for one in found["spec"].get(field) or ()]
            return mount_error(found, cluster) if any(images.find(one) is not None for one in names) else ""

        return of_container, of_volumes

    def is_obstructed(self, pod: Object) -> bool:
        """Reports whether something keeps a container of a known image from starting, although its command is not known."""
        images: Images = self._kubelet.context.shared.get("images", DEFAULT)
        spec = pod["spec"]
        concerned = [one for field in _FIELDS for one in spec.get(field) or () if images.find(one.get("image") or "") is not None]
        if not concerned or not (spec.get("volumes") or any(one.keys() & _CHECKED for one in concerned)):
            return False
        of_container, of_volumes = self.obstacles(pod)
        return bool(of_volumes()) or any(of_container(one) for one in concerned)

    def container(self, pod: Object, name: str) -> Container:
        """Returns the current run of a container."""
        runtime: Runtime = self._kubelet.context.shared["runtime of"]()
        return runtime.container(pod, name)

    # ------------------------------------------------------------ start

    def start(self, pod: Object) -> None:
        """Starts the commands of the containers that are running."""
        status = pod.get("status") or {}
        for field, spec in self._followed(pod):
            states = {one["name"]: one.get("state") or {} for one in status.get(_FIELDS[field]) or ()}
            if "running" in states.get(spec["name"], {}):
                container = self.container(pod, spec["name"])
                self._started.setdefault(pod["metadata"]["uid"], {})[spec["name"]] = container.run.attempt
                if container.main.start_now():
                    self._run_post_start(pod, container)

    def is_started(self, pod: Object, name: str, attempt: int) -> bool:
        """Reports whether the command of a run of a container was started."""
        return self._started.get(pod["metadata"]["uid"], {}).get(name) == attempt

    def _run_post_start(self, pod: Object, container: Container) -> None:
        hook = (container.spec.get("lifecycle") or {}).get("postStart")
        if not hook:
            return

        def failed() -> None:
            field = f"spec.containers{{{container.name}}}"
            self._kubelet.record(pod, "Warning", "FailedPostStartHook", "PostStartHook failed", field)
            container.exited(_HOOK_FAILED)

        from fakekube.nodes.runtime.probing import run_handler

        if "exec" in hook:
            container.run_hook(hook["exec"].get("command") or (), failed)
        elif run_handler(container, hook, math.inf).failure is not None:
            failed()

    # ------------------------------------------------------------ stop

    def stop(self, pod: Object) -> dict[str, float]:
        """Runs the preStop hooks of a deleted pod, once. Returns by container how many seconds its hook takes."""
        uid = pod["metadata"]["uid"]
        if uid in self._stopped or (pod.get("status") or {}).get("phase") != "Running":
            return {}
        took: dict[str, float] = {}
        for field, spec in self._followed(pod):
            self._stopped.add(uid)
            hook = (spec.get("lifecycle") or {}).get("preStop")
            if not hook or field != "containers":
                continue
            from fakekube.nodes.runtime.probing import run_handler

            grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            result = run_handler(self.container(pod, spec["name"]), hook, grace)
            took[spec["name"]] = result.seconds
            if result.failure is not None:
                path = f"spec.containers{{{spec['name']}}}"
                self._kubelet.record(pod, "Warning", "FailedPreStopHook", "PreStopHook failed", path)
        return took

    def forget(self, uid: str) -> None:
        """Removes the state of a deleted pod."""
        self._started.pop(uid, None)
        self._stopped.discard(uid)

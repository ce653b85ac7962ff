"""Runs the commands and hooks of containers whose image and program are known, or for which a rule says `runs_command`.

Such containers terminate with their command, and its exit code. With a rule, a command that the shell does not have does nothing:
the container runs on and its probes succeed, except where it would succeed at once without the rule (init containers, pods of
Jobs).

Invariant: a command is started once for each run of its container.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_container.go (startContainer, executePreStopHook).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.objects import Object
from fakekube.nodes.node_state import state_of
from fakekube.nodes.pod_status import is_meant_to_end, is_of_job, status_of

if TYPE_CHECKING:
    from fakekube.nodes.node_state import Exit
    from fakekube.nodes.pod_state import Container
    from fakekube.nodes.pod_workers import Obstacles
    from fakekube.nodes.runtime.container import Container as ContainerRun
    from fakekube.nodes.status_manager import StatusManager


_HOOK_FAILED: Final = 137
_LIFECYCLE: Final = "kube-lifecycle"
#: Fields of a container that may keep it from starting.
_CHECKED: Final = frozenset({"env", "envFrom", "volumeMounts", "securityContext"})
_FIELDS: Final = {"initContainers": "initContainerStatuses", "containers": "containerStatuses"}


class Commands:
    """The commands of the containers of all pods.

    Args:
        kubelet: the kubelet of the pods.
    """

    def __init__(self, kubelet: StatusManager) -> None:
        self._kubelet, self._state = kubelet, state_of(kubelet.context)
        self._started: dict[str, dict[str, int]] = {}
        """The uid of a pod → container → its last run whose command was started."""
        self._stopped: set[str] = set()
        """The uids of pods whose preStop hooks have run."""
        self._unwritten: set[str] = set()
        """The uids of pods with programs that were started before the status was written."""

    def containers_with_command(self, pod: Object) -> frozenset[str]:
        """Returns the names of the containers that terminate with their command."""
        return frozenset(spec["name"] for _, spec in self._containers_with_command(pod))

    def _containers_with_command(self, pod: Object) -> Iterator[tuple[str, Object]]:
        """Returns the containers that terminate with their command, each with its field of the spec."""
        state = self._state
        rules, images = state.rules, state.known_images()
        for field in _FIELDS:
            for spec in pod["spec"].get(field) or ():
                follows = rules.behaviour_of(pod, spec).follows_command if rules is not None else None
                completes = (field == "initContainers" and spec.get("restartPolicy") != "Always") or is_of_job(pod)
                ends = field == "containers" and is_meant_to_end(pod)
                if images.runs(spec, completes=completes, ends=ends) if follows is None else follows:
                    yield field, spec

    def obstacles(self, pod: Object) -> Obstacles:
        """Returns the functions that find out what keeps a pod or one of its containers from starting."""
        from fakekube.nodes.admission import creation_error, mount_error

        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        cluster = self._kubelet.context.services
        images = self._state.known_images()

        def current() -> Object:
            return self._kubelet.cache.get("pods", namespace, name) or pod

        def read_file(volume: str, path: str) -> bytes:
            return self._state.runtime().sandbox(current()).volumes.read_file(volume, path)

        def of_container(spec: Mapping[str, Any]) -> str:
            found, image = current(), images.find(spec.get("image") or "")
            if image is None:
                return ""
            variables: Mapping[str, str] = {}
            if any(one.get("subPathExpr") for one in spec.get("volumeMounts") or ()):
                from fakekube.nodes.runtime.environment import environment

                variables = environment(found, spec, cluster, None, read_file)
            if any("fileKeyRef" in (one.get("valueFrom") or {}) for one in spec.get("env") or ()):
                from fakekube.nodes.runtime.environment import env_file_error

                if problem := env_file_error(spec, read_file):
                    return problem
            return creation_error(found, spec, cluster, image, variables)

        def of_volumes() -> str:
            found = current()
            names = [one.get("image") or "" for field in _FIELDS for one in found["spec"].get(field) or ()]
            is_known = any(images.find(one) is not None for one in names)
            problem = (mount_error(found, cluster) or self._path_error(found)) if is_known else ""
            return problem or self._certificate_error(found)

        return of_container, of_volumes

    def is_obstructed(self, pod: Object) -> bool:
        """Reports whether something keeps a container of a known image from starting, although its command is not known."""
        images = self._state.known_images()
        spec = pod["spec"]
        if self._certificate_error(pod):
            return True
        concerned = [one for field in _FIELDS for one in spec.get(field) or () if images.find(one.get("image") or "") is not None]
        if not concerned or not (spec.get("volumes") or any(one.keys() & _CHECKED for one in concerned)):
            return False
        of_container, of_volumes = self.obstacles(pod)
        return bool(of_volumes()) or any(of_container(one) for one in concerned)

    def _path_error(self, pod: Object) -> str:
        """Returns why a path of the node, a hostPath with a type or a local volume, cannot be mounted; "" if all can."""
        volumes = pod["spec"].get("volumes") or ()
        typed = [one for one in volumes if (one.get("hostPath") or {}).get("type")]
        claimed = [one for one in volumes if "persistentVolumeClaim" in one]
        if not typed and not claimed:
            return ""
        from fakekube.nodes.admission import describe_failed_setup
        from fakekube.nodes.runtime.volumes import host_path_error, local_path_error

        files = self._state.runtime().node_files(pod["spec"]["nodeName"])
        problems = ((one["name"], host_path_error(files, one["hostPath"])) for one in typed)
        failed = (describe_failed_setup(name, problem) for name, problem in problems if problem)
        cluster, namespace = self._kubelet.context.services, pod["metadata"]["namespace"]
        lacking = (local_path_error(files, cluster, namespace, one["persistentVolumeClaim"]["claimName"]) for one in claimed)
        return next(chain(failed, filter(None, lacking)), "")

    def _certificate_error(self, pod: Object) -> str:
        """Returns why a volume with certificates of the pod cannot be mounted; "" if all can."""
        credentials = self._state.credentials
        if not credentials:
            return ""
        from fakekube.nodes.admission import describe_failed_setup
        from fakekube.nodes.pod_certificates import certificate_sources

        for volume, index, _ in certificate_sources(pod):
            credential = credentials.get((pod["metadata"]["uid"], volume, index))
            if credential is not None and credential.problem:
                return describe_failed_setup(volume, credential.problem)
        return ""

    def container(self, pod: Object, name: str) -> ContainerRun:
        """Returns the current run of a container."""
        return self._state.runtime().container(pod, name)

    # --- Start --------------------------------------------------------------------------------------------------------

    def start(self, pod: Object) -> None:
        """Starts the commands of the containers that are running."""
        status = pod.get("status") or {}
        for field, spec in self._containers_with_command(pod):
            states = {one["name"]: one.get("state") or {} for one in status.get(_FIELDS[field]) or ()}
            if "running" in states.get(spec["name"], {}):
                container = self.container(pod, spec["name"])
                self._started.setdefault(pod["metadata"]["uid"], {})[spec["name"]] = container.run.attempt
                if container.main.start_now():
                    self._run_post_start(pod, container)

    def start_before_status(self, pod: Object, containers: Iterable[Container]) -> Sequence[Exit]:
        """Starts the programs of containers before their status is written; those with a postStart hook are started after it.

        Args:
            pod: the pod with the status that it will have, if no program ends.
            containers: the containers.

        Returns:
            the exits of the programs that have ended at once.
        """
        runtime = self._state.runtime()
        uid = pod["metadata"]["uid"]
        started = [one for one in containers if not (one.spec.get("lifecycle") or {}).get("postStart")]
        if started:
            self._unwritten.add(uid)
            runtime.sandbox(pod).expect_status(pod["status"])
        for one in started:
            self._started.setdefault(uid, {})[one.name] = one.attempt
            runtime.container(pod, one.name).main.start_now(one.started_at)
        return self._state.take_exits(uid)

    def status_written(self, pod: Object) -> None:
        """Called when the status of a pod was written after `start_before_status`."""
        uid = pod["metadata"]["uid"]
        if uid in self._unwritten:
            self._unwritten.discard(uid)
            self._state.runtime().sandbox(pod).expect_status(None)

    def is_started(self, pod: Object, name: str, attempt: int) -> bool:
        """Reports whether the command of a run of a container was started, and the status of the pod shows that run."""
        if self._started.get(pod["metadata"]["uid"], {}).get(name) != attempt:
            return False
        status = status_of(pod, name) or {}
        return status.get("restartCount", 0) == attempt and "running" in (status.get("state") or {})

    def _run_post_start(self, pod: Object, container: ContainerRun) -> None:
        hook = (container.spec.get("lifecycle") or {}).get("postStart")
        if not hook:
            return

        def on_failure() -> None:
            field = f"spec.containers{{{container.name}}}"
            self._kubelet.record(pod, "Warning", "FailedPostStartHook", "PostStartHook failed", field)
            container.on_program_exit(_HOOK_FAILED)

        from fakekube.nodes.runtime.handlers import Caller, run_handler

        if "exec" in hook:
            container.run_hook(hook["exec"].get("command") or (), on_failure)
        elif run_handler(container, hook, math.inf, Caller(_LIFECYCLE, self._kubelet.context.version)).failure is not None:
            on_failure()

    # --- Stop ---------------------------------------------------------------------------------------------------------

    def stop(self, pod: Object) -> dict[str, float]:
        """Runs the preStop hooks of a deleted pod, once, and then sends SIGTERM to the programs that handle it.

        Returns by container how many seconds it takes at least to stop: infinitely many if its program decides.
        """
        uid = pod["metadata"]["uid"]
        if uid in self._stopped or (pod.get("status") or {}).get("phase") != "Running":
            return {}
        took: dict[str, float] = {}
        for field, spec in self._containers_with_command(pod):
            self._stopped.add(uid)
            hook = (spec.get("lifecycle") or {}).get("preStop")
            if hook and (field == "containers" or spec.get("restartPolicy") == "Always"):
                took[spec["name"]] = self._run_pre_stop(pod, spec, hook)
            if spec["name"] not in self._started.get(uid, {}):
                continue
            main = self.container(pod, spec["name"]).main
            main.catch_up()  # a busy machine may not have let it set its trap
            if main.catches_term:
                if wait := took.get(spec["name"], 0.0):
                    self._kubelet.clock.call_at(self._kubelet.clock.monotonic() + wait, main.terminate)
                else:
                    main.terminate()
                took[spec["name"]] = math.inf
        return took

    def _run_pre_stop(self, pod: Object, spec: Object, hook: Object) -> float:
        """Runs a preStop hook. Returns how many seconds it takes."""
        from fakekube.nodes.runtime.handlers import Caller, run_handler

        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        caller = Caller(_LIFECYCLE, self._kubelet.context.version)
        result = run_handler(self.container(pod, spec["name"]), hook, grace, caller)
        if result.failure is not None:
            path = f"spec.containers{{{spec['name']}}}"
            self._kubelet.record(pod, "Warning", "FailedPreStopHook", "PreStopHook failed", path)
        return result.seconds

    def forget(self, uid: str) -> None:
        """Removes the state of a deleted pod."""
        self._started.pop(uid, None)
        self._stopped.discard(uid)

"""Connects the container runtime with the kubelets: passes on behaviour that tests define, and exits of main programs.

The termination message of an exit is the end of the file at terminationMessagePath, or of the log.

Invariant: an exit is kept until the kubelet has written it to the pod's status, or the pod is deleted.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_container.go (getTerminationMessage).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apis.core.pods.visitor import containers
from fakekube.controllers.reconciler import Key
from fakekube.nodes.node_state import Exit
from fakekube.nodes.plans import Run
from fakekube.nodes.pod_status import is_of_job
from fakekube.nodes.runtime.behaviour import NOTHING, Behaviour

if TYPE_CHECKING:
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.controllers import Manager
    from fakekube.controllers.client import Client
    from fakekube.nodes.node_state import NodeState
    from fakekube.nodes.runtime.container import Container
    from fakekube.nodes.runtime.runtime import Runtime


def container_runtime(backend: Backend, client: Client, state: NodeState, manager: Manager) -> Runtime:
    """Returns the container runtime of a cluster.

    Args:
        backend: the backend of the cluster.
        client: a client of the cluster.
        state: what its kubelets read and test authors set; exits are added to it.
        manager: the controllers of the cluster.
    """
    from fakekube.nodes.runtime.runtime import Runtime  # a fifth of what a process would import for its first cluster

    def behaviour(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Behaviour:
        rules = state.rules
        return NOTHING if rules is None else rules.behaviour_of(pod, container)

    def on_exit(pod: Mapping[str, Any], container: Container, code: int | None) -> None:
        if code is None and not _completes(pod, container.name):
            return
        metadata = pod["metadata"]
        run = Run(0.0) if code is None else Run(0.0, code, container.main.reason, _termination_message(container, code))
        exit_ = Exit(container.name, container.run.attempt, run, container.main.scheduler.time)
        state.add_exit(metadata["uid"], exit_)
        manager.enqueue("kubelet", Key(metadata["namespace"], metadata["name"]), start=True)

    def enforces_policies() -> bool:
        return state.network_policies

    def credential(uid: str, volume: str, index: int) -> tuple[bytes, bytes]:
        found = state.credentials.get((uid, volume, index))
        return (b"", b"") if found is None else (found.key, found.chain)

    return Runtime(
        backend,
        client,
        behaviour,
        on_exit,
        state.images,
        enforces_policies=enforces_policies,
        credential=credential,
        terminations=lambda: dict(state.terminations),
    )


def _completes(pod: Mapping[str, Any], name: str) -> bool:
    """Reports whether a container succeeds if it has nothing to do: an init container, and those of a Job's pod."""
    inits = {one["name"]: one for one in pod["spec"].get("initContainers") or ()}
    if name in inits:
        return bool(inits[name].get("restartPolicy") != "Always")
    return is_of_job(pod)


#: The maximum length of a message, and of all messages of a pod.
_MAX_LENGTH: Final = 4096
_MAX_POD_LENGTH: Final = 12 * 1024
#: The part of the log that is a message.
_LOG_LINES: Final = 80
_LOG_LENGTH: Final = 2048
_FALLBACK: Final = "FallbackToLogsOnError"


def _termination_message(container: Container, code: int) -> str:
    """Returns the message of a container whose main program has exited with this code."""
    message = _file_content(container)[-_MAX_LENGTH:]
    if not message and code and container.spec.get("terminationMessagePolicy") == _FALLBACK:
        message = container.log.tail(_LOG_LINES)[-_LOG_LENGTH:]
    count = sum(1 for _ in containers(container.pod["spec"]))
    return message[: _MAX_POD_LENGTH // count].decode("utf-8", "replace")


def _file_content(container: Container) -> bytes:
    path = container.spec.get("terminationMessagePath") or ""
    try:
        return bytes(container.files.read(path)) if path else b""
    except OSError:
        return b""

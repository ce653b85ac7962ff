"""Connects the container runtime with the kubelets: passes on behaviour that tests define, and exits of main programs.

Invariant: an exit is kept until the kubelet has written it to the pod's status, or the pod is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakekube.controllers.reconciler import Key
from fakekube.nodes.pod_status import TERMINATIONS, is_of_job
from fakekube.nodes.runtime.behaviour import NOTHING, Behaviour

if TYPE_CHECKING:
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.controllers import Manager
    from fakekube.controllers.client import Client
    from fakekube.nodes.rules import Pods
    from fakekube.nodes.runtime.container import Container
    from fakekube.nodes.runtime.runtime import Runtime


#: The key of exits in `Context.shared`: uid of a pod → its exits.
EXITS: Final = "exits"


class Exit(NamedTuple):
    """The main program of a container has exited."""

    container: str
    attempt: int
    code: int
    time: float
    """The time of the exit, in seconds of the clock's `monotonic`."""
    message: str = ""
    """The termination message."""


def container_runtime(backend: Backend, client: Client, shared: MutableMapping[str, Any], manager: Manager) -> Runtime:
    """Returns the container runtime of a cluster.

    Args:
        backend: the backend of the cluster.
        client: a client of the cluster.
        shared: `Context.shared`: `pods` has the rules of tests; exits are added to `exits`.
        manager: the controllers of the cluster.
    """
    from fakekube.nodes.runtime.container import termination_message
    from fakekube.nodes.runtime.runtime import Runtime  # a fifth of what a process would import for its first cluster

    def behaviour(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Behaviour:
        rules: Pods | None = shared.get("pods")
        return NOTHING if rules is None else rules.behaviour_of(pod, container)

    def on_exit(pod: Mapping[str, Any], container: Container, code: int | None) -> None:
        if code is None and not _completes(pod, container.name):
            return
        metadata = pod["metadata"]
        exits: dict[str, list[Exit]] = shared.setdefault(EXITS, {})
        message = "" if code is None else termination_message(container, code)
        exits.setdefault(metadata["uid"], []).append(
            Exit(container.name, container.run.attempt, code or 0, container.main.scheduler.time, message)
        )
        manager.enqueue("kubelet", Key(metadata["namespace"], metadata["name"]), start=True)

    def enforces_policies() -> bool:
        return bool(shared.get("network_policies"))

    def credential(uid: str, volume: str, index: int) -> tuple[bytes, bytes]:
        found = shared.get("credentials", {}).get((uid, volume, index))
        return (b"", b"") if found is None else (found.key, found.chain)

    return Runtime(
        backend,
        client,
        behaviour,
        on_exit,
        shared.get("images"),
        enforces_policies=enforces_policies,
        credential=credential,
        terminations=lambda: dict(shared.get(TERMINATIONS, {})),
    )


def _completes(pod: Mapping[str, Any], name: str) -> bool:
    """Reports whether a container succeeds if it has nothing to do: an init container, and those of a Job's pod."""
    inits = {one["name"]: one for one in pod["spec"].get("initContainers") or ()}
    if name in inits:
        return bool(inits[name].get("restartPolicy") != "Always")
    return is_of_job(pod)

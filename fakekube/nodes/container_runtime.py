"""Connects the container runtime with the kubelets: what tests say of containers, and containers that end by themselves.

Invariant: an exit is kept until the kubelet has written it, or the pod is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakekube.controllers.reconciler import Key
from fakekube.runtime.behaviour import NOTHING, Behaviour

if TYPE_CHECKING:
    from fakekube.client import Client
    from fakekube.controllers import Manager
    from fakekube.nodes.rules import Pods
    from fakekube.registry.backend import Backend
    from fakekube.runtime.container import Container
    from fakekube.runtime.runtime import Runtime

__all__ = ["EXITS", "Exit", "container_runtime"]

#: Where exits are kept among what controllers share: uid of the pod → exits.
EXITS: Final = "exits"


class Exit(NamedTuple):
    """The main program of a container has ended."""

    container: str
    attempt: int
    code: int
    time: float
    """When, in seconds of the clock's `monotonic`."""


def container_runtime(backend: Backend, client: Client, shared: MutableMapping[str, Any], manager: Manager) -> Runtime:
    """Returns the runtime of a cluster.

    Args:
        backend, client, manager: of the cluster.
        shared: what tests tell controllers; `pods` has the rules, `exits` gets the exits.
    """
    from fakekube.runtime.runtime import Runtime  # a fifth of what a process would import for its first cluster

    def behaviour(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Behaviour:
        rules: Pods | None = shared.get("pods")
        return NOTHING if rules is None else rules.behaviour_of(pod, container)

    def on_exit(pod: Mapping[str, Any], container: Container, code: int) -> None:
        metadata = pod["metadata"]
        exits: dict[str, list[Exit]] = shared.setdefault(EXITS, {})
        exits.setdefault(metadata["uid"], []).append(
            Exit(container.name, container.run.attempt, code, container.main.scheduler.time)
        )
        manager.enqueue("kubelet", Key(metadata["namespace"], metadata["name"]), start=True)

    return Runtime(backend, client, behaviour, on_exit)

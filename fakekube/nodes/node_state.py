"""What the controllers of the nodes share in one cluster, with the container runtime and with what test authors set.

It is `Context.shared`: the other controllers do not look into it. `cluster.components` makes it; rules, images and the runtime
are made when they are first used, so that a cluster that does not need them does not import them.

Invariant: an exit is given to the kubelet once, however many threads add and take exits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Protocol

    from fakekube.controllers.reconciler import Context
    from fakekube.nodes.images.image import Images
    from fakekube.nodes.plans import Run
    from fakekube.nodes.rules import Pods
    from fakekube.nodes.runtime.runtime import Runtime
    from fakekube.nodes.stages.stage import Stage

    class Credential(Protocol):
        """What volumes have of a certificate: key and chain, or the problem if there is none yet."""

        key: bytes
        chain: bytes
        problem: str


class Exit(NamedTuple):
    """The main program of a container has exited."""

    container: str
    attempt: int
    run: Run
    """The exit code, the reason, and the termination message."""
    time: float
    """The time of the exit, in seconds of the clock's `monotonic`."""


class NodeState:
    """The state of one cluster.

    Args:
        runtime: returns the container runtime, which is made at the first call.
        seeded: whether the cluster has a seed, so that real time decides nothing.
    """

    __slots__ = (
        "_exits",
        "_lock",
        "credentials",
        "images",
        "made_runtime",
        "network_policies",
        "rules",
        "runtime",
        "seeded",
        "staged",
        "stages",
        "terminations",
    )

    def __init__(self, runtime: Callable[[], Runtime], *, seeded: bool) -> None:
        self.runtime = runtime
        self.seeded = seeded
        self.made_runtime: Runtime | None = None
        """The container runtime, if it was made."""
        self.rules: Pods | None = None
        """The rules for the behaviour of pods, `cluster.pods`, if it was used."""
        self.images: Images | None = None
        """The images of the user, if `cluster.images` was used."""
        self.network_policies = False
        """See `Cluster.network_policies`."""
        self.stages: dict[str, Stage] = {}
        """kwok's stages by name, those of Stage objects aside."""
        self.staged: set[str] = set()
        """The resources that stages play: kubelets leave them alone."""
        self.credentials: Mapping[tuple[str, str, int], Credential] = {}
        """Those of `PodCertificates`, by the uid of the pod, the volume, and the index of the source."""
        self.terminations: dict[tuple[str, str, int, str], int] = {}
        """The numbers of terminations, by node, type of the container, exit code and reason."""
        self._exits: dict[str, list[Exit]] = {}
        self._lock = threading.Lock()

    def known_images(self) -> Images:
        """Returns the images of the cluster: those of the user, or else those that every cluster has."""
        if self.images is not None:
            return self.images
        from fakekube.nodes.images.image import DEFAULT

        return DEFAULT

    def add_exit(self, uid: str, exit_: Exit) -> None:
        """Keeps the exit of a main program of a pod until its kubelet takes it."""
        with self._lock:
            self._exits.setdefault(uid, []).append(exit_)

    def take_exits(self, uid: str) -> Sequence[Exit]:
        """Removes and returns the exits of a pod, in their order."""
        with self._lock:
            return self._exits.pop(uid, ())


def state_of(context: Context) -> NodeState:
    """Returns what the controllers of the nodes share in the cluster of a context."""
    state = context.shared
    assert isinstance(state, NodeState)
    return state

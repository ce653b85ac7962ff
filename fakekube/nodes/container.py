"""The state of one container of a pod with a plan, and its next transitions.

Specified by: k8s.io/api/core/v1/types.go (ContainerStatus), pkg/kubelet/container/helpers.go (ShouldContainerBeRestarted).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from fakekube.nodes.plans import ContainerPlan

__all__ = ["Container", "Kind", "State", "Step", "Termination", "should_restart"]


class Kind(Enum):
    """The type of a container, by its list in the pod spec."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class State(Enum):
    """The state in a container status."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


class Step(Enum):
    """A transition of a container. Of several at the same time the one with the lowest value is done first."""

    START = 0
    STARTED = 1
    READY = 2
    EXIT = 3
    FAIL_PULL = 4
    WAIT = 5
    PULL_AGAIN = 6
    RESTART = 7


@dataclass(slots=True, frozen=True)
class Termination:
    """The end of a run."""

    exit_code: int
    reason: str
    message: str
    started: float
    finished: float
    attempt: int


@dataclass(slots=True)
class Container:
    """One container. Times are seconds of one clock."""

    spec: Mapping[str, Any]
    kind: Kind
    plan: ContainerPlan
    policy: str
    state: State = State.WAITING
    reason: str = ""
    message: str = ""
    attempt: int = 0
    """The number of restarts."""
    started_at: float = 0.0
    ended: Termination | None = None
    last: Termination | None = None
    ready: bool = False
    started: bool = False
    begun: bool = False
    pull_failures: int = 0
    back_off: float = 0.0
    steps: dict[Step, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the container."""
        name: str = self.spec["name"]
        return name

    @property
    def finished_well(self) -> bool:
        """Whether it has terminated with exit code 0."""
        return self.state is State.TERMINATED and self.ended is not None and self.ended.exit_code == 0

    @property
    def restarts(self) -> bool:
        """Whether it is restarted after its termination."""
        return self.ended is not None and should_restart(self.spec, self.policy, self.kind, self.ended.exit_code)

    @property
    def is_over(self) -> bool:
        """Whether it has terminated and is not restarted."""
        return self.state is State.TERMINATED and not self.restarts


def should_restart(spec: Mapping[str, Any], policy: str, kind: Kind, code: int) -> bool:
    """Whether a container that has terminated with this exit code is restarted."""
    for rule in spec.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = code in (codes.get("values") or ())
        if rule.get("action") == "Restart" and listed is (codes.get("operator") == "In"):
            return True
    own = spec.get("restartPolicy") or policy
    if own == "Always" and kind is Kind.INIT:
        own = "OnFailure"  # an init container that has succeeded is not run again
    return own == "Always" or (own == "OnFailure" and code != 0)

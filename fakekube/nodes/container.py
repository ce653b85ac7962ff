"""One container of a pod that has been told something: what it is doing, and what comes next.

Specified by: k8s.io/api/core/v1 (ContainerStatus), k8s.io/kubernetes/pkg/api/v1/pod (ContainerShouldRestart).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from fakekube.nodes.plans import ContainerPlan

__all__ = ["Container", "Kind", "State", "Step", "Termination", "should_restart"]


class Kind(Enum):
    """Which list of the pod a container stands in."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class State(Enum):
    """As in a container status."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


class Step(Enum):
    """What happens next to a container. Those that come first are done first at the same time."""

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
    """How a run ended."""

    exit_code: int
    reason: str
    message: str
    started: float
    finished: float
    attempt: int


@dataclass(slots=True)
class Container:
    """One container."""

    spec: Mapping[str, Any]
    kind: Kind
    plan: ContainerPlan
    policy: str
    state: State = State.WAITING
    reason: str = ""
    message: str = ""
    attempt: int = 0
    """How often it was restarted."""
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
        """Of the container."""
        name: str = self.spec["name"]
        return name

    @property
    def finished_well(self) -> bool:
        """Has it ended with code 0?"""
        return self.state is State.TERMINATED and self.ended is not None and self.ended.exit_code == 0

    @property
    def restarts(self) -> bool:
        """Will it be restarted when it ends as it did?"""
        return self.ended is not None and should_restart(self.spec, self.policy, self.kind, self.ended.exit_code)

    @property
    def is_over(self) -> bool:
        """Has it ended for good?"""
        return self.state is State.TERMINATED and not self.restarts


def should_restart(spec: Mapping[str, Any], policy: str, kind: Kind, code: int) -> bool:
    """Is a container that ended with this code restarted?"""
    for rule in spec.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = code in (codes.get("values") or ())
        if rule.get("action") == "Restart" and listed is (codes.get("operator") == "In"):
            return True
    own = spec.get("restartPolicy") or policy
    if own == "Always" and kind is Kind.INIT:
        own = "OnFailure"  # one that has ended well has done its work
    return own == "Always" or (own == "OnFailure" and code != 0)

"""The scheduling framework: statuses, and what a plugin is.

A plugin that filters, or scores, is a class whose instances live for one scheduling cycle: `pre_filter` and `pre_score` make
an instance that knows what it needs of the cycle, or None if the pod does not concern the plugin. The instance then judges
node by node. Preemption clones the instances of a cycle and tells them of pods that it takes away and puts back.

Specified by: k8s.io/kube-scheduler/framework/{interface,cycle_state}.go, pkg/scheduler/framework/types.go (FitError).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from fakekube.scheduler.cycle import Cycle
    from fakekube.scheduler.nodeinfo import NodeInfo, PodInfo

__all__ = ["MAX_NODE_SCORE", "Code", "Diagnosis", "FilterPlugin", "FitError", "PreFilterRejection", "ScorePlugin", "Status"]

MAX_NODE_SCORE = 100


class Code(Enum):
    """Why a node, or all of them, are refused."""

    UNSCHEDULABLE = "Unschedulable"
    """Preemption may help."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Preemption does not help."""


@dataclass(slots=True, frozen=True)
class Status:
    """A refusal; plugins return None for success."""

    code: Code
    reasons: tuple[str, ...]
    plugin: str = ""


class PreFilterRejection(Exception):
    """A plugin refuses the pod before it looks at single nodes."""

    def __init__(self, status: Status) -> None:
        super().__init__(", ".join(status.reasons))
        self.status = status


class FilterPlugin:
    """Judges nodes for one pod."""

    name: ClassVar[str] = ""
    node_names: frozenset[str] | None = None
    """The only nodes that come into question, or None."""

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        """An instance for this cycle, or None if there is nothing to judge. Raises PreFilterRejection."""
        raise NotImplementedError

    def filter(self, node: NodeInfo) -> Status | None:
        """None if the pod may be on this node."""
        raise NotImplementedError

    def clone(self) -> FilterPlugin:
        """An instance that can be told of pods that come and go; this one stays as it is."""
        return self

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        """A pod has come to (1), or gone from (-1), a node."""


class ScorePlugin:
    """Scores the nodes that fit one pod, from 0 to 100 after `normalize`."""

    name: ClassVar[str] = ""
    weight: ClassVar[int] = 1

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        """An instance for this cycle, or None if all nodes are alike."""
        raise NotImplementedError

    def score(self, node: NodeInfo) -> int:
        """The score of a node."""
        raise NotImplementedError

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """The scores of all nodes, brought into the range."""
        return scores


@dataclass(slots=True)
class Diagnosis:
    """Why no node fits."""

    nodes: dict[str, Status] = field(default_factory=dict)
    """Statuses of the nodes that were judged."""
    absent: Status | None = None
    """Of all others."""
    pre_filter_message: str = ""
    post_filter_message: str = ""
    plugins: set[str] = field(default_factory=set)
    """The plugins that refused."""

    def of(self, name: str) -> Status | None:
        """The status of a node."""
        return self.nodes.get(name, self.absent)


@dataclass(slots=True)
class FitError(Exception):
    """No node fits; `str` is what events and conditions say."""

    node_count: int
    diagnosis: Diagnosis

    def __str__(self) -> str:
        parts = [f"0/{self.node_count} nodes are available:"]
        diagnosis = self.diagnosis
        if diagnosis.pre_filter_message:
            parts.append(f"{diagnosis.pre_filter_message}.")
        elif reasons := self._histogram():
            parts.append(f"{', '.join(reasons)}.")
        if diagnosis.post_filter_message:
            parts.append(diagnosis.post_filter_message)
        return " ".join(parts)

    def _histogram(self) -> Iterable[str]:
        counts: Counter[str] = Counter()
        for status in self.diagnosis.nodes.values():
            counts.update(status.reasons)
        others = self.node_count - len(self.diagnosis.nodes)
        if others > 0 and self.diagnosis.absent is not None:
            for reason in self.diagnosis.absent.reasons:
                counts[reason] += others
        return sorted(f"{count} {reason}" for reason, count in counts.items())

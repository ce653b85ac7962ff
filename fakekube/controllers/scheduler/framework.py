"""The scheduling framework: the state of a scheduling cycle, statuses, and the interfaces of plugins.

A filter or score plugin is a class whose instances live for one scheduling cycle. `pre_filter` and `pre_score` return an instance
with the state of the cycle, or None if the plugin does not apply to the pod. Its `filter` or `score` is called for each node.
Preemption clones the instances of a cycle, and updates them with the pods that it removes and adds.

Specified by: k8s.io/kube-scheduler/framework/{interface,cycle_state}.go, pkg/scheduler/framework/types.go (FitError).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Final, Protocol

from fakekube.base.objects import StoredObject
from fakekube.controllers.scheduler.nodeinfo import NodeInfo, PodInfo, Snapshot


class Lister(Protocol):
    """Reads other objects of the cluster, from the caches of the scheduler's informers."""

    def get(self, resource: str, namespace: str, name: str) -> StoredObject | None:
        """Returns one object, or None."""

    def list(self, resource: str, namespace: str = "") -> Iterable[StoredObject]:
        """Returns the objects of one namespace, or of all for ""."""


@dataclass(slots=True)
class Cycle:
    """What plugins can read."""

    pod: PodInfo
    snapshot: Snapshot
    lister: Lister
    _namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def spec(self) -> StoredObject:
        """The spec of the pod."""
        spec: StoredObject = self.pod.obj["spec"]
        return spec

    @property
    def nodes(self) -> Iterable[NodeInfo]:
        """All nodes."""
        return self.snapshot.nodes.values()

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Returns the labels of a namespace; none if it does not exist."""
        if namespace not in self._namespaces:
            found = self.lister.get("namespaces", "", namespace)
            self._namespaces[namespace] = (found["metadata"].get("labels") or {}) if found else {}
        return self._namespaces[namespace]


MAX_NODE_SCORE: Final = 100


class Code(Enum):
    """The code of a rejection."""

    UNSCHEDULABLE = "Unschedulable"
    """Preemption may resolve it."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Preemption cannot resolve it."""


@dataclass(slots=True, frozen=True)
class Status:
    """A rejection by a plugin; plugins return None for success."""

    code: Code
    reasons: tuple[str, ...]
    plugin: str = ""


class PreFilterRejection(Exception):
    """A plugin rejects the pod on all nodes."""

    def __init__(self, status: Status) -> None:
        super().__init__(", ".join(status.reasons))
        self.status = status


class FilterPlugin:
    """A filter plugin, for one pod."""

    name: ClassVar[str] = ""
    node_names: frozenset[str] | None = None
    """The only nodes to consider; None for all (PreFilterResult)."""

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        """Returns an instance for this cycle; None if the plugin does not apply. Raises PreFilterRejection."""
        raise NotImplementedError

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns why the pod cannot run on this node; None if it can."""
        raise NotImplementedError

    def clone(self) -> FilterPlugin:
        """Returns an instance that can be updated without a change of this one."""
        return self

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        """A pod was added to (1) or removed from (-1) a node."""


class ScorePlugin:
    """A score plugin, for one pod. Scores are from 0 to MAX_NODE_SCORE after `normalize`."""

    name: ClassVar[str] = ""
    weight: ClassVar[int] = 1

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        """Returns an instance for this cycle; None if all nodes get the same score."""
        raise NotImplementedError

    def score(self, node: NodeInfo) -> int:
        """Returns the score of a node."""
        raise NotImplementedError

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Returns the scores of all nodes in the range from 0 to MAX_NODE_SCORE."""
        return scores


@dataclass(slots=True)
class Diagnosis:
    """The reasons for which no node fits."""

    nodes: dict[str, Status] = field(default_factory=dict)
    """The rejections of the nodes for which filters ran, by name."""
    absent: Status | None = None
    """The rejection of all other nodes."""
    pre_filter_message: str = ""
    post_filter_message: str = ""
    plugins: set[str] = field(default_factory=set)
    """The names of the plugins that rejected a node."""

    def of(self, name: str) -> Status | None:
        """Returns the rejection of a node."""
        return self.nodes.get(name, self.absent)


@dataclass(slots=True)
class FitError(Exception):
    """No node fits. `str` returns the message of events and conditions."""

    node_count: int
    diagnosis: Diagnosis

    def __str__(self) -> str:
        parts = [f"0/{self.node_count} nodes are available:"]
        diagnosis = self.diagnosis
        if diagnosis.pre_filter_message:
            parts.append(f"{diagnosis.pre_filter_message}.")
        elif reasons := self._reason_histogram():
            parts.append(f"{', '.join(reasons)}.")
        if diagnosis.post_filter_message:
            parts.append(diagnosis.post_filter_message)
        return " ".join(parts)

    def _reason_histogram(self) -> Iterable[str]:
        counts: Counter[str] = Counter()
        for status in self.diagnosis.nodes.values():
            counts.update(status.reasons)
        others = self.node_count - len(self.diagnosis.nodes)
        if others > 0 and self.diagnosis.absent is not None:
            for reason in self.diagnosis.absent.reasons:
                counts[reason] += others
        return sorted(f"{count} {reason}" for reason, count in counts.items())

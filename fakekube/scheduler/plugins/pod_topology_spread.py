"""PodTopologySpread: pods that a selector matches are spread over the values of a label.

Without constraints of its own a pod of a service or a workload is spread softly over nodes and zones.

Specified by: pkg/scheduler/framework/plugins/podtopologyspread/{plugin,common,filtering,scoring}.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakekube.scheduler.cycle import Cycle
from fakekube.scheduler.framework import MAX_NODE_SCORE, Code, FilterPlugin, ScorePlugin, Status
from fakekube.scheduler.nodeinfo import NodeInfo, PodInfo
from fakekube.scheduler.plugins.default_selector import default_selector
from fakekube.selectors import LabelSelector, from_label_selector
from fakekube.selectors.nodes import required_node_affinity
from fakekube.selectors.taints import untolerated

__all__ = ["PodTopologySpread", "PodTopologySpreadScore"]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(slots=True, frozen=True)
class Constraint:
    """One constraint of a pod."""

    max_skew: int
    key: str
    selector: LabelSelector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


def constraints(cycle: Cycle, action: str) -> list[Constraint]:
    """The constraints of a pod that say what to do when they cannot be met: DoNotSchedule or ScheduleAnyway."""
    return [
        Constraint(
            one["maxSkew"],
            one["topologyKey"],
            _selector(one, cycle.pod),
            one.get("minDomains") or 1,
            one.get("nodeAffinityPolicy", "Honor") == "Honor",
            one.get("nodeTaintsPolicy", "Ignore") == "Honor",
        )
        for one in cycle.spec.get("topologySpreadConstraints") or ()
        if one.get("whenUnsatisfiable") == action
    ]


def _selector(constraint: Mapping[str, Any], pod: PodInfo) -> LabelSelector:
    selector = from_label_selector(constraint.get("labelSelector"))
    labels = {key: pod.labels[key] for key in constraint.get("matchLabelKeys") or () if key in pod.labels}
    if not labels or selector.nothing:
        return selector
    return LabelSelector((*from_label_selector({"matchLabels": labels}).requirements, *selector.requirements))


class _Inclusion:
    """Which nodes count for a constraint: those that the pod's node affinity and tolerations let it be on."""

    def __init__(self, cycle: Cycle) -> None:
        self._affinity: Callable[[Mapping[str, Any]], bool] | None = required_node_affinity(cycle.spec)
        self._tolerations = cycle.spec.get("tolerations") or ()

    def counts(self, constraint: Constraint, node: NodeInfo) -> bool:
        if constraint.honor_affinity and self._affinity is not None and not self._affinity(node.obj):
            return False
        return not (constraint.honor_taints and untolerated(node.taints, self._tolerations))


def _has_all(node: NodeInfo, wanted: Sequence[Constraint]) -> bool:
    labels = node.labels
    return all(one.key in labels for one in wanted)


def _matching(cycle: Cycle, constraint: Constraint) -> Mapping[str, int]:
    """How many pods count on each node; an empty selector counts none."""
    return {} if constraint.selector.empty else cycle.snapshot.matching(cycle.pod.namespace, constraint.selector)


class PodTopologySpread(FilterPlugin):
    """Refuses nodes in whose topology there would be too many."""

    name = "PodTopologySpread"
    reason = "node(s) didn't match pod topology spread constraints"
    skewed = Status(Code.UNSCHEDULABLE, (reason,), name)
    unlabelled = Status(Code.UNRESOLVABLE, (f"{reason} (missing required label)",), name)

    def __init__(self, cycle: Cycle, wanted: list[Constraint], counts: list[dict[str, int]]) -> None:
        self._cycle, self._constraints, self._counts = cycle, wanted, counts
        self._inclusion = _Inclusion(cycle)

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        wanted = constraints(cycle, "DoNotSchedule")
        if not wanted:
            return None
        made = cls(cycle, wanted, [{} for _ in wanted])
        matching = [_matching(cycle, one) for one in wanted]
        for node in cycle.nodes:
            if not _has_all(node, wanted):
                continue
            for constraint, counts, found in zip(wanted, made._counts, matching, strict=True):
                if made._inclusion.counts(constraint, node):
                    value = node.labels[constraint.key]
                    counts[value] = counts.get(value, 0) + found.get(node.name, 0)
        return made

    def clone(self) -> FilterPlugin:
        return type(self)(self._cycle, self._constraints, [dict(counts) for counts in self._counts])

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        if pod.namespace != self._cycle.pod.namespace or not _has_all(node, self._constraints):
            return
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            if constraint.selector.matches(pod.labels) and self._inclusion.counts(constraint, node):
                value = node.labels[constraint.key]
                counts[value] = counts.get(value, 0) + delta

    def filter(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            value = labels.get(constraint.key)
            if value is None:
                return self.unlabelled
            least = min(counts.values()) if counts and len(counts) >= constraint.min_domains else 0
            itself = constraint.selector.matches(self._cycle.pod.labels)
            if counts.get(value, 0) + itself - least > constraint.max_skew:
                return self.skewed
        return None


class PodTopologySpreadScore(ScorePlugin):
    """The fewer pods in a node's topologies, the better."""

    name = "PodTopologySpread"
    weight = 2

    def __init__(
        self,
        wanted: list[Constraint],
        values: list[dict[str, int]],
        weights: list[float],
        ignored: set[str],
        on_node: list[Mapping[str, int]],
    ) -> None:
        self._constraints, self._values, self._weights = wanted, values, weights
        self._ignored, self._on_node = ignored, on_node

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        own = bool(cycle.spec.get("topologySpreadConstraints"))
        wanted = constraints(cycle, "ScheduleAnyway") if own else _default_constraints(cycle)
        if not wanted:
            return None
        ignored = {node.name for node in nodes if own and not _has_all(node, wanted)}
        on_node = [_matching(cycle, one) for one in wanted]
        values: list[dict[str, int]] = []
        weights = []
        inclusion = _Inclusion(cycle)
        for constraint, found in zip(wanted, on_node, strict=True):
            counts: dict[str, int] = {}
            size = len(nodes) - len(ignored)
            if constraint.key != HOSTNAME:
                counts = {node.labels.get(constraint.key, ""): 0 for node in nodes if node.name not in ignored}
                size = len(counts)
                for node in cycle.nodes:
                    value = node.labels.get(constraint.key, "")
                    if value in counts and not (own and not _has_all(node, wanted)) and inclusion.counts(constraint, node):
                        counts[value] += found.get(node.name, 0)
            values.append(counts)
            weights.append(math.log(size + 2))
        return cls(wanted, values, weights, ignored, on_node)

    def score(self, node: NodeInfo) -> int:
        if node.name in self._ignored:
            return 0
        total = 0.0
        labels = node.labels
        for index, constraint in enumerate(self._constraints):
            value = labels.get(constraint.key)
            if value is not None:
                count = (
                    self._on_node[index].get(node.name, 0) if constraint.key == HOSTNAME else self._values[index].get(value, 0)
                )
                total += count * self._weights[index] + (constraint.max_skew - 1)
        return math.floor(total + 0.5)

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        valid = [score for score, node in zip(scores, nodes, strict=True) if node.name not in self._ignored]
        least, most = min(valid, default=0), max(valid, default=0)
        return [
            0 if node.name in self._ignored else MAX_NODE_SCORE if most == 0 else MAX_NODE_SCORE * (most + least - score) // most
            for score, node in zip(scores, nodes, strict=True)
        ]


def _default_constraints(cycle: Cycle) -> list[Constraint]:
    selector = default_selector(cycle.pod.obj, cycle.catalog)
    return [] if selector.empty else [Constraint(3, HOSTNAME, selector), Constraint(5, ZONE, selector)]

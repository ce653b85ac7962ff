"""PodTopologySpread spreads the pods that a selector matches over the values of a label.

A pod without constraints of its own that belongs to a Service or a workload is spread over nodes and zones, if possible. Its
default selector is the labels of its Services and of the workload that controls it.

Specified by: pkg/scheduler/framework/plugins/podtopologyspread/{plugin,common,filtering,scoring}.go,
pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.selectors import LabelSelector, from_label_selector
from fakekube.apimachinery.selectors.nodes import find_untolerated_taint, required_node_affinity
from fakekube.apis.well_known import LABEL_HOSTNAME, LABEL_TOPOLOGY_ZONE
from fakekube.controllers.informers import get_controller_of
from fakekube.controllers.scheduler.framework import (
    MAX_NODE_SCORE,
    Code,
    Cycle,
    FilterPlugin,
    Lister,
    NodeInfo,
    PodInfo,
    ScorePlugin,
    Status,
)

#: The workloads whose selectors are used: (apiVersion, kind) → resource.
_OWNERS: Final = {
    ("apps/v1", "ReplicaSet"): "replicasets.apps",
    ("apps/v1", "StatefulSet"): "statefulsets.apps",
    ("v1", "ReplicationController"): "replicationcontrollers",
}


def default_selector(pod: Mapping[str, Any], lister: Lister) -> LabelSelector:
    """Returns the selector; it is empty if no Service selects the pod and no workload controls it."""
    namespace = pod["metadata"]["namespace"]
    labels: dict[str, str] = {}
    pod_labels = pod["metadata"].get("labels") or {}
    for service in lister.list("services", namespace):
        selector = service["spec"].get("selector")
        if selector and selector.items() <= pod_labels.items():
            labels |= selector
    owner = get_controller_of(pod)
    resource = _OWNERS.get((owner["apiVersion"], owner["kind"])) if owner else None
    found = lister.get(resource, namespace, owner["name"]) if owner and resource else None
    if found is None:
        return from_label_selector({"matchLabels": labels})
    if resource == "replicationcontrollers":
        return from_label_selector({"matchLabels": labels | (found["spec"].get("selector") or {})})
    of_owner = from_label_selector(found["spec"].get("selector"))
    if not labels:
        return of_owner
    return LabelSelector((*from_label_selector({"matchLabels": labels}).requirements, *of_owner.requirements))


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
    """Returns the constraints of a pod with this whenUnsatisfiable: DoNotSchedule or ScheduleAnyway."""
    return [
        Constraint(
            one["maxSkew"],
            one["topologyKey"],
            _constraint_selector(one, cycle.pod),
            one.get("minDomains") or 1,
            one.get("nodeAffinityPolicy", "Honor") == "Honor",
            one.get("nodeTaintsPolicy", "Ignore") == "Honor",
        )
        for one in cycle.spec.get("topologySpreadConstraints") or ()
        if one.get("whenUnsatisfiable") == action
    ]


def _constraint_selector(constraint: Mapping[str, Any], pod: PodInfo) -> LabelSelector:
    selector = from_label_selector(constraint.get("labelSelector"))
    labels = {key: pod.labels[key] for key in constraint.get("matchLabelKeys") or () if key in pod.labels}
    if not labels or selector.nothing:
        return selector
    return LabelSelector((*from_label_selector({"matchLabels": labels}).requirements, *selector.requirements))


class _NodeInclusion:
    """Decides whether the pods on a node count for a constraint, by nodeAffinityPolicy and nodeTaintsPolicy."""

    def __init__(self, cycle: Cycle) -> None:
        self._affinity: Callable[[Mapping[str, Any]], bool] | None = required_node_affinity(cycle.spec)
        self._tolerations = cycle.spec.get("tolerations") or ()

    def includes(self, constraint: Constraint, node: NodeInfo) -> bool:
        if constraint.honor_affinity and self._affinity is not None and not self._affinity(node.obj):
            return False
        return not (constraint.honor_taints and find_untolerated_taint(node.taints, self._tolerations))


def _has_all_keys(node: NodeInfo, wanted: Sequence[Constraint]) -> bool:
    labels = node.labels
    return all(one.key in labels for one in wanted)


def _count_matching(cycle: Cycle, constraint: Constraint) -> Mapping[str, int]:
    """Returns the number of matching pods on each node; an empty selector matches none."""
    return {} if constraint.selector.empty else cycle.snapshot.count_matching(cycle.pod.namespace, constraint.selector)


class PodTopologySpread(FilterPlugin):
    """Rejects nodes on which the pod would exceed maxSkew."""

    name = "PodTopologySpread"
    reason = "node(s) didn't match pod topology spread constraints"
    skewed = Status(Code.UNSCHEDULABLE, (reason,), name)
    unlabelled = Status(Code.UNRESOLVABLE, (f"{reason} (missing required label)",), name)

    def __init__(self, cycle: Cycle, wanted: list[Constraint], counts: list[dict[str, int]]) -> None:
        self._cycle, self._constraints, self._counts = cycle, wanted, counts
        self._inclusion = _NodeInclusion(cycle)

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        wanted = constraints(cycle, "DoNotSchedule")
        if not wanted:
            return None
        plugin = cls(cycle, wanted, [{} for _ in wanted])
        matching = [_count_matching(cycle, one) for one in wanted]
        for node in cycle.nodes:
            if not _has_all_keys(node, wanted):
                continue
            for constraint, counts, found in zip(wanted, plugin._counts, matching, strict=True):
                if plugin._inclusion.includes(constraint, node):
                    value = node.labels[constraint.key]
                    counts[value] = counts.get(value, 0) + found.get(node.name, 0)
        return plugin

    def clone(self) -> FilterPlugin:
        return type(self)(self._cycle, self._constraints, [dict(counts) for counts in self._counts])

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        if pod.namespace != self._cycle.pod.namespace or not _has_all_keys(node, self._constraints):
            return
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            if constraint.selector.matches(pod.labels) and self._inclusion.includes(constraint, node):
                value = node.labels[constraint.key]
                counts[value] = counts.get(value, 0) + delta

    def filter(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            value = labels.get(constraint.key)
            if value is None:
                return self.unlabelled
            minimum = min(counts.values()) if counts and len(counts) >= constraint.min_domains else 0
            self_match = constraint.selector.matches(self._cycle.pod.labels)
            if counts.get(value, 0) + self_match - minimum > constraint.max_skew:
                return self.skewed
        return None


class PodTopologySpreadScore(ScorePlugin):
    """Scores nodes by the number of matching pods in their topologies: the fewer, the higher."""

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
        ignored = {node.name for node in nodes if own and not _has_all_keys(node, wanted)}
        on_node = [_count_matching(cycle, one) for one in wanted]
        values: list[dict[str, int]] = []
        weights = []
        inclusion = _NodeInclusion(cycle)
        for constraint, found in zip(wanted, on_node, strict=True):
            counts: dict[str, int] = {}
            size = len(nodes) - len(ignored)
            if constraint.key != LABEL_HOSTNAME:
                counts = {node.labels.get(constraint.key, ""): 0 for node in nodes if node.name not in ignored}
                size = len(counts)
                for node in cycle.nodes:
                    value = node.labels.get(constraint.key, "")
                    if value not in counts or (own and not _has_all_keys(node, wanted)):
                        continue
                    if inclusion.includes(constraint, node):
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
                    self._on_node[index].get(node.name, 0)
                    if constraint.key == LABEL_HOSTNAME
                    else self._values[index].get(value, 0)
                )
                total += count * self._weights[index] + (constraint.max_skew - 1)
        return math.floor(total + 0.5)

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        valid = [score for score, node in zip(scores, nodes, strict=True) if node.name not in self._ignored]
        lowest, highest = min(valid, default=0), max(valid, default=0)

        def normalize_score(score: int) -> int:
            return MAX_NODE_SCORE * (highest + lowest - score) // highest if highest else MAX_NODE_SCORE

        return [0 if node.name in self._ignored else normalize_score(score) for score, node in zip(scores, nodes, strict=True)]


def _default_constraints(cycle: Cycle) -> list[Constraint]:
    selector = default_selector(cycle.pod.obj, cycle.lister)
    return [] if selector.empty else [Constraint(3, LABEL_HOSTNAME, selector), Constraint(5, LABEL_TOPOLOGY_ZONE, selector)]

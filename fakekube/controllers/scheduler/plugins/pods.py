"""The plugins that look at the other pods of a topology.

InterPodAffinity attracts pods to topologies with matching pods, and repels them.

It counts the pods that match a term in each topology. A topology is a pair of a label key and a value, which all nodes of a zone
or rack have, or only one node.

PodTopologySpread spreads the pods that a selector matches over the values of a label.

A pod without constraints of its own that belongs to a Service or a workload is spread over nodes and zones, if possible. Its
default selector is the labels of its Services and of the workload that controls it.

Specified by: pkg/scheduler/framework/plugins/interpodaffinity/{filtering,scoring}.go;
pkg/scheduler/framework/plugins/podtopologyspread/{plugin,common,filtering,scoring}.go,
pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fakekube.apimachinery.selectors import LabelSelector, from_label_selector
from fakekube.apimachinery.selectors.nodes import find_untolerated_taint, required_node_affinity
from fakekube.apis.well_known import LABEL_HOSTNAME, LABEL_TOPOLOGY_ZONE
from fakekube.controllers.informers import get_controller_of
from fakekube.controllers.scheduler.framework import (
    MAX_NODE_SCORE,
    AffinityTerm,
    AffinityTerms,
    Code,
    Cycle,
    FilterPlugin,
    Lister,
    NodeInfo,
    PodInfo,
    ScorePlugin,
    Status,
)

Topology = tuple[str, str]
Counts = Counter[Topology]


class InterPodAffinity(FilterPlugin):
    """Rejects nodes that violate required terms of the pod, or required anti-affinity terms of existing pods."""

    name = "InterPodAffinity"
    affinity_refusal = Status(Code.UNRESOLVABLE, ("node(s) didn't match pod affinity rules",), name)
    anti_affinity_refusal = Status(Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",), name)
    existing_refusal = Status(Code.UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",), name)

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._affinity: Counts = Counter()
        self._anti_affinity: Counts = Counter()
        self._existing: Counts = Counter()

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        made = cls(cycle)
        terms = cycle.pod.terms
        if terms.required or terms.required_anti:
            for node in cycle.nodes:
                for pod in node.pods.values():
                    made.update(pod, node, 1)
            return made
        for node in cycle.nodes:
            for pod in node.with_anti_affinity.values():
                made._count_existing(pod, node, 1)
        return made if made._existing else None

    def clone(self) -> FilterPlugin:
        made = type(self)(self._cycle)
        made._affinity, made._anti_affinity = self._affinity.copy(), self._anti_affinity.copy()
        made._existing = self._existing.copy()
        return made

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        terms = self._cycle.pod.terms
        if terms.required and all(_term_matches(self._cycle, term, pod) for term in terms.required):
            for term in terms.required:
                _count_term(self._affinity, term, node, delta)
        for term in terms.required_anti:
            if _term_matches(self._cycle, term, pod):
                _count_term(self._anti_affinity, term, node, delta)
        self._count_existing(pod, node, delta)

    def _count_existing(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        for term in pod.terms.required_anti:
            if _term_matches(self._cycle, term, self._cycle.pod):
                _count_term(self._existing, term, node, delta)

    def filter(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        if not self._satisfies_affinity(node):
            return self.affinity_refusal
        for term in self._cycle.pod.terms.required_anti if self._anti_affinity else ():
            if term.topology_key in labels and self._anti_affinity[term.topology_key, labels[term.topology_key]] > 0:
                return self.anti_affinity_refusal
        if self._existing and any(self._existing[pair] > 0 for pair in labels.items()):
            return self.existing_refusal
        return None

    def _satisfies_affinity(self, node: NodeInfo) -> bool:
        terms = self._cycle.pod.terms.required
        labels = node.labels
        if any(term.topology_key not in labels for term in terms):
            return False
        if all(self._affinity[term.topology_key, labels[term.topology_key]] > 0 for term in terms):
            return True
        # If no pod matches in the whole cluster, a pod that matches its own terms is allowed, so that the first one can start.
        no_matches = not any(self._affinity.values())
        return no_matches and all(_term_matches(self._cycle, term, self._cycle.pod) for term in terms)


def _term_matches(cycle: Cycle, term: AffinityTerm, pod: PodInfo) -> bool:
    return term.matches(pod.namespace, pod.labels, partial(cycle.namespace_labels, pod.namespace))


def _count_term(counts: Counts, term: AffinityTerm, node: NodeInfo, delta: int) -> None:
    value = node.labels.get(term.topology_key)
    if value is not None:
        counts[term.topology_key, value] += delta


class InterPodAffinityScore(ScorePlugin):
    """Scores the weights of preferred terms of the pod and of existing pods; required terms of the latter have the weight 1."""

    name = "InterPodAffinity"
    weight = 2

    def __init__(self, totals: Counts) -> None:
        self._totals = totals

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        terms = cycle.pod.terms
        all_pods = bool(terms.preferred or terms.preferred_anti)
        totals: Counts = Counter()
        for node in cycle.nodes:
            for pod in (node.pods if all_pods else node.with_affinity).values():
                for term, weight in _terms_with_signed_weights(terms):
                    if _term_matches(cycle, term, pod):
                        _count_term(totals, term, node, weight)
                for term, weight in (*((term, 1) for term in pod.terms.required), *_terms_with_signed_weights(pod.terms)):
                    if _term_matches(cycle, term, cycle.pod):
                        _count_term(totals, term, node, weight)
        return cls(totals) if totals else None

    def score(self, node: NodeInfo) -> int:
        return sum(self._totals[pair] for pair in node.labels.items())

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        lowest, highest = min(scores), max(scores)
        if lowest == highest:
            return [0] * len(scores)
        return [int(MAX_NODE_SCORE * ((score - lowest) / (highest - lowest))) for score in scores]


def _terms_with_signed_weights(terms: AffinityTerms) -> Iterable[tuple[AffinityTerm, int]]:
    """Yields the preferred terms with their weights, which are negative for anti-affinity."""
    yield from ((term, term.weight) for term in terms.preferred)
    yield from ((term, -term.weight) for term in terms.preferred_anti)


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

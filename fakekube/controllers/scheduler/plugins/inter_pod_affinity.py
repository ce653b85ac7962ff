"""InterPodAffinity attracts pods to topologies with matching pods, and repels them.

It counts the pods that match a term in each topology. A topology is a pair of a label key and a value, which all nodes of a zone
or rack have, or only one node.

Specified by: pkg/scheduler/framework/plugins/interpodaffinity/{filtering,scoring}.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from fakekube.controllers.scheduler.framework import (
    MAX_NODE_SCORE,
    AffinityTerm,
    AffinityTerms,
    Code,
    Cycle,
    FilterPlugin,
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

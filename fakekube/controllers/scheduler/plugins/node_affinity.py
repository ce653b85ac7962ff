"""NodeAffinity: nodeSelector, and required and preferred node affinity.

Specified by: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakekube.apimachinery.selectors.nodes import preferred_weight, required_node_affinity
from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, PreFilterRejection, ScorePlugin, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo
from fakekube.controllers.scheduler.plugins.normalizing import default_normalize

__all__ = ["NodeAffinity", "NodeAffinityScore"]


class NodeAffinity(FilterPlugin):
    """Rejects nodes that do not match nodeSelector or required node affinity."""

    name = "NodeAffinity"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",), name)
    conflict = Status(Code.UNRESOLVABLE, ("pod affinity terms conflict",), name)

    def __init__(self, matches: Callable[[Mapping[str, Any]], bool], names: frozenset[str] | None) -> None:
        self._matches = matches
        self.node_names = names

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        matches = required_node_affinity(cycle.spec)
        if matches is None:
            return None
        names = _node_names(cycle.spec)
        if names is not None and not names:
            raise PreFilterRejection(cls.conflict)
        return cls(matches, names)

    def filter(self, node: NodeInfo) -> Status | None:
        return None if self._matches(node.obj) else self.refusal


def _node_names(spec: Mapping[str, Any]) -> frozenset[str] | None:
    """Returns the nodes that the terms of required affinity name; None if a term does not restrict the name."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms")
    if not terms:
        return None
    names: frozenset[str] = frozenset()
    for term in terms:
        of_term: frozenset[str] | None = None
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In":
                values = frozenset(field.get("values") or ())
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        names |= of_term
    return names


class NodeAffinityScore(ScorePlugin):
    """Scores the weights of matching preferred terms."""

    name = "NodeAffinity"
    weight = 2

    def __init__(self, preferred: Sequence[Mapping[str, Any]]) -> None:
        self._preferred = preferred

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        affinity = (cycle.spec.get("affinity") or {}).get("nodeAffinity") or {}
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution")
        return cls(preferred) if preferred else None

    def score(self, node: NodeInfo) -> int:
        return preferred_weight(self._preferred, node.obj)

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        return default_normalize(scores)

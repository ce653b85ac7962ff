"""One scheduling cycle: which nodes fit a pod, and which of them is best.

Of nodes with the same score any may be taken; this takes the one whose name comes first.

Specified by: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, prioritizeNodes),
pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fakekube.scheduler.cycle import Cycle
from fakekube.scheduler.framework import Code, Diagnosis, FilterPlugin, FitError, PreFilterRejection, Status
from fakekube.scheduler.nodeinfo import NodeInfo, PodInfo
from fakekube.scheduler.plugins import FILTERS, SCORES

__all__ = ["Filters", "NoNodesAvailable", "Nominated", "pre_filter", "schedule"]

Nominated = Callable[[str], Iterable[PodInfo]]
"""The pods that are to come to a node for which preemption has made room."""


class NoNodesAvailable(Exception):
    """The cluster has no nodes."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


@dataclass(slots=True)
class Filters:
    """The plugins that judge nodes in this cycle."""

    cycle: Cycle
    plugins: list[FilterPlugin] = field(default_factory=list)

    def clone(self) -> Filters:
        """Filters that can be told of pods that come and go."""
        return Filters(self.cycle, [plugin.clone() for plugin in self.plugins])

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        """A pod has come to (1), or gone from (-1), a node: tell the plugins."""
        for plugin in self.plugins:
            plugin.update(pod, node, delta)

    def judge(self, node: NodeInfo) -> Status | None:
        """The first refusal, or None."""
        for plugin in self.plugins:
            status = plugin.filter(node)
            if status is not None:
                return status
        return None

    def judge_with_nominated(self, node: NodeInfo, nominated: Nominated) -> Status | None:
        """The same, as it is now, and as it will be when the pods that are nominated for the node have come to it."""
        pod = self.cycle.pod
        coming = [one for one in nominated(node.name) if one.uid != pod.uid and one.priority >= pod.priority]
        if coming:
            filters, crowded = self.clone(), node.clone()
            for one in coming:
                crowded.add(one)
                filters.update(one, crowded, 1)
            status = filters.judge(crowded)
            if status is not None:
                return status
        return self.judge(node)

    def names(self) -> tuple[frozenset[str] | None, list[str]]:
        """The only nodes that come into question (None: all), and the plugins that say so."""
        names: frozenset[str] | None = None
        said = []
        for plugin in self.plugins:
            if plugin.node_names is not None:
                names = plugin.node_names if names is None else names & plugin.node_names
                said.append(plugin.name)
        return names, sorted(said)


def pre_filter(cycle: Cycle) -> Filters:
    """The plugins that a pod concerns. Raises PreFilterRejection."""
    filters = Filters(cycle)
    for kind in FILTERS:
        plugin = kind.pre_filter(cycle)
        if plugin is not None:
            filters.plugins.append(plugin)
    return filters


def schedule(cycle: Cycle, nominated: Nominated) -> tuple[str, Filters]:
    """The best node for a pod. Raises NoNodesAvailable, and FitError with a diagnosis, which has no post filter message yet."""
    nodes = cycle.snapshot.nodes
    if not nodes:
        raise NoNodesAvailable
    diagnosis = Diagnosis()
    try:
        filters = pre_filter(cycle)
    except PreFilterRejection as rejection:
        diagnosis.absent = rejection.status
        diagnosis.pre_filter_message = ", ".join(rejection.status.reasons)
        diagnosis.plugins.add(rejection.status.plugin)
        raise FitError(len(nodes), diagnosis) from rejection
    own = cycle.pod.obj.get("status", {}).get("nominatedNodeName")
    if own in nodes and filters.judge_with_nominated(nodes[own], nominated) is None:
        return own, filters
    fitting = _fitting(cycle, filters, nominated, diagnosis)
    if not fitting:
        raise FitError(len(nodes), diagnosis)
    return _best(cycle, fitting), filters


def _fitting(cycle: Cycle, filters: Filters, nominated: Nominated, diagnosis: Diagnosis) -> list[NodeInfo]:
    candidates: Iterable[NodeInfo] = cycle.nodes
    names, plugins = filters.names()
    if names is not None:
        candidates = [node for node in candidates if node.name in names]
        said = " ".join(plugins)
        diagnosis.absent = Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{said}]",))
        diagnosis.plugins.update(plugins)
    fitting = []
    for node in candidates:
        status = filters.judge_with_nominated(node, nominated)
        if status is None:
            fitting.append(node)
        else:
            diagnosis.nodes[node.name] = status
            diagnosis.plugins.add(status.plugin)
    return fitting


def _best(cycle: Cycle, nodes: Sequence[NodeInfo]) -> str:
    if len(nodes) == 1:
        return nodes[0].name
    totals = [0] * len(nodes)
    for kind in SCORES:
        plugin = kind.pre_score(cycle, nodes)
        if plugin is not None:
            scores = plugin.normalize([plugin.score(node) for node in nodes], nodes)
            totals = [total + plugin.weight * score for total, score in zip(totals, scores, strict=True)]
    best = max(totals)
    return min(node.name for node, total in zip(nodes, totals, strict=True) if total == best)

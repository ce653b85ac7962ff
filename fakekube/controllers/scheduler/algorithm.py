"""One scheduling cycle: filters the nodes for a pod, and selects the one with the highest score.

Of several nodes with the highest score the first one by name is selected; the real scheduler selects any of them. If no node
passes the filters, `preemption` looks for pods to delete.

Specified by: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, prioritizeNodes),
pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fakekube.controllers.scheduler.framework import (
    Code,
    Cycle,
    Diagnosis,
    FilterPlugin,
    FitError,
    NodeInfo,
    PodInfo,
    PreFilterRejection,
    Status,
)
from fakekube.controllers.scheduler.plugins import FILTERS, SCORES

#: Returns the pods that are nominated for a node, because preemption has made room for them.
Nominated = Callable[[str], Iterable[PodInfo]]


class NoNodesAvailable(Exception):
    """The cluster has no nodes."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


@dataclass(slots=True)
class Filters:
    """The filter plugins of a cycle that apply to the pod."""

    cycle: Cycle
    plugins: list[FilterPlugin] = field(default_factory=list)

    def clone(self) -> Filters:
        """Returns a copy whose plugins can be updated."""
        return Filters(self.cycle, [plugin.clone() for plugin in self.plugins])

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        """Notifies the plugins that a pod was added to (1) or removed from (-1) a node (AddPod, RemovePod)."""
        for plugin in self.plugins:
            plugin.update(pod, node, delta)

    def run(self, node: NodeInfo) -> Status | None:
        """Returns the first rejection of a node; None if all plugins accept it (RunFilterPlugins)."""
        for plugin in self.plugins:
            status = plugin.filter(node)
            if status is not None:
                return status
        return None

    def run_with_nominated_pods(self, node: NodeInfo, nominated: Nominated) -> Status | None:
        """Runs the filters as the node is, and as it will be with the pods that are nominated for it.

        Only nominated pods of the same or a higher priority count (RunFilterPluginsWithNominatedPods).
        """
        pod = self.cycle.pod
        expected = [one for one in nominated(node.name) if one.uid != pod.uid and one.priority >= pod.priority]
        if expected:
            filters, with_nominated = self.clone(), node.clone()
            for one in expected:
                with_nominated.add(one)
                filters.update(one, with_nominated, 1)
            status = filters.run(with_nominated)
            if status is not None:
                return status
        return self.run(node)

    def node_names(self) -> tuple[frozenset[str] | None, list[str]]:
        """Returns the only nodes to consider (None: all), and the plugins that restrict them (PreFilterResult)."""
        names: frozenset[str] | None = None
        restricting = []
        for plugin in self.plugins:
            if plugin.node_names is not None:
                names = plugin.node_names if names is None else names & plugin.node_names
                restricting.append(plugin.name)
        return names, sorted(restricting)


def run_pre_filter_plugins(cycle: Cycle) -> Filters:
    """Returns the filter plugins that apply to the pod. Raises PreFilterRejection."""
    filters = Filters(cycle)
    for kind in FILTERS:
        plugin = kind.pre_filter(cycle)
        if plugin is not None:
            filters.plugins.append(plugin)
    return filters


def schedule_pod(cycle: Cycle, nominated: Nominated) -> tuple[str, Filters]:
    """Returns the name of the best node for a pod, and the filters.

    Raises:
        NoNodesAvailable: there are no nodes.
        FitError: no node fits; the post filter message of its diagnosis is empty.
    """
    nodes = cycle.snapshot.nodes
    if not nodes:
        raise NoNodesAvailable
    diagnosis = Diagnosis()
    try:
        filters = run_pre_filter_plugins(cycle)
    except PreFilterRejection as rejection:
        diagnosis.absent = rejection.status
        diagnosis.pre_filter_message = ", ".join(rejection.status.reasons)
        diagnosis.plugins.add(rejection.status.plugin)
        raise FitError(len(nodes), diagnosis) from rejection
    own = cycle.pod.obj.get("status", {}).get("nominatedNodeName")
    if own in nodes and filters.run_with_nominated_pods(nodes[own], nominated) is None:
        return own, filters
    feasible = _find_nodes_that_pass_filters(cycle, filters, nominated, diagnosis)
    if not feasible:
        raise FitError(len(nodes), diagnosis)
    return _select_host(cycle, feasible), filters


def _find_nodes_that_pass_filters(cycle: Cycle, filters: Filters, nominated: Nominated, diagnosis: Diagnosis) -> list[NodeInfo]:
    candidates: Iterable[NodeInfo] = cycle.nodes
    names, plugins = filters.node_names()
    if names is not None:
        candidates = [node for node in candidates if node.name in names]
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
        diagnosis.absent = Status(Code.UNRESOLVABLE, (text,))
        diagnosis.plugins.update(plugins)
    feasible = []
    for node in candidates:
        status = filters.run_with_nominated_pods(node, nominated)
        if status is None:
            feasible.append(node)
        else:
            diagnosis.nodes[node.name] = status
            diagnosis.plugins.add(status.plugin)
    return feasible


def _select_host(cycle: Cycle, nodes: Sequence[NodeInfo]) -> str:
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

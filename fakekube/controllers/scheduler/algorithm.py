"""One scheduling cycle: filters the nodes for a pod, selects the one with the highest score, or preempts.

Of several nodes with the highest score the first one by name is selected; the real scheduler selects any of them.

Preemption selects pods of lower priority to delete, so that a pod that fits on no node can be scheduled.

On each node where preemption may help, all pods of lower priority are removed. If the pod fits then, as many of them as possible
are reprieved: first those whose PodDisruptionBudget would be violated, then by importance. Of the candidate nodes the one with
the least important victims is selected.

Specified by: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, prioritizeNodes),
pkg/scheduler/framework/runtime/framework.go; pkg/scheduler/framework/preemption/preemption.go,
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fakekube.apimachinery.selectors import SelectorError, from_label_selector
from fakekube.apis.validation.objectmeta import find_condition
from fakekube.base.objects import StoredObject
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


NO_VICTIMS: Final = Status(Code.UNRESOLVABLE, ("No preemption victims found for incoming pod",))
NOT_HELPFUL: Final = Status(Code.UNRESOLVABLE, ("Preemption is not helpful for scheduling",))
NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."

#: Is added to priorities, so that sums are not negative.
OFFSET: Final = 2**31


class PodNotEligible(Exception):
    """The pod may not preempt others (PodEligibleToPreemptOthers)."""


@dataclass(slots=True, frozen=True)
class Candidate:
    """A node, and the pods to delete, the most important first."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int
    """The number of victims whose PodDisruptionBudget is violated."""


def preempt(filters: Filters, diagnosis: Diagnosis, budgets: Sequence[StoredObject], nominated: Nominated) -> Candidate:
    """Returns the node on which to preempt. Raises PodNotEligible, or FitError if preemption does not help."""
    pod, nodes = filters.cycle.pod, filters.cycle.snapshot.nodes
    _check_eligible(pod, nodes, diagnosis)
    statuses: dict[str, Status] = {}
    candidates = []
    for node in nodes.values():
        refusal = diagnosis.status_of(node.name)
        if refusal is None or refusal.code is not Code.UNSCHEDULABLE:
            continue
        found = _select_victims_on_node(filters.clone(), node.clone(), budgets, nominated)
        if isinstance(found, Candidate):
            candidates.append(found)
        else:
            statuses[node.name] = found
    if not candidates:
        raise FitError(len(nodes), Diagnosis(nodes=statuses, absent=NOT_HELPFUL))
    return min(candidates, key=_selection_key)


def _check_eligible(pod: PodInfo, nodes: Mapping[str, NodeInfo], diagnosis: Diagnosis) -> None:
    if pod.obj["spec"].get("preemptionPolicy") == "Never":
        raise PodNotEligible(NEVER)
    name = (pod.obj.get("status") or {}).get("nominatedNodeName")
    if not name or name not in nodes:
        return
    refusal = diagnosis.status_of(name)
    if refusal is not None and refusal.code is Code.UNRESOLVABLE:
        return
    if any(other.priority < pod.priority and _is_preempted(other) for other in nodes[name].pods.values()):
        raise PodNotEligible(TERMINATING)


def _is_preempted(pod: PodInfo) -> bool:
    condition = find_condition(pod.obj.get("status") or {}, "DisruptionTarget") or {}
    return pod.terminating and condition.get("status") == "True" and condition.get("reason") == "PreemptionByScheduler"


def _select_victims_on_node(
    filters: Filters, node: NodeInfo, budgets: Sequence[StoredObject], nominated: Nominated
) -> Candidate | Status:
    """Returns the pods to delete from a node, or why preemption does not help there. Changes filters and node."""
    pod = filters.cycle.pod
    potential = [other for other in node.pods.values() if other.priority < pod.priority]
    if not potential:
        return NO_VICTIMS
    for other in potential:
        node.remove(other.uid)
        filters.update(other, node, -1)
    refusal = filters.run_with_nominated_pods(node, nominated)
    if refusal is not None:
        return refusal
    potential.sort(key=_pod_importance)
    violating, others = _split_by_budget_violation(potential, budgets)
    victims = []
    violations = 0
    for other in (*violating, *others):
        node.add(other)
        filters.update(other, node, 1)
        if filters.run_with_nominated_pods(node, nominated) is not None:
            node.remove(other.uid)
            filters.update(other, node, -1)
            victims.append(other)
            violations += other in violating
    return Candidate(node.name, tuple(sorted(victims, key=_pod_importance)), violations)


def _pod_importance(pod: PodInfo) -> tuple[int, str]:
    """A sort key of pods: the most important first, by priority, then by start time (MoreImportantPod)."""
    return -pod.priority, _start_time(pod)


def _start_time(pod: PodInfo) -> str:
    start: str = (pod.obj.get("status") or {}).get("startTime") or pod.obj["metadata"].get("creationTimestamp") or ""
    return start


def _split_by_budget_violation(pods: Iterable[PodInfo], budgets: Sequence[StoredObject]) -> tuple[list[PodInfo], list[PodInfo]]:
    allowed = [(budget.get("status") or {}).get("disruptionsAllowed", 0) for budget in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        violated = False
        for index, budget in enumerate(budgets if pod.labels else ()):
            if not _budget_selects(budget, pod):
                continue
            allowed[index] -= 1
            violated = violated or allowed[index] < 0
        (violating if violated else others).append(pod)
    return violating, others


def _budget_selects(budget: StoredObject, pod: PodInfo) -> bool:
    if budget["metadata"]["namespace"] != pod.namespace or pod.name in ((budget.get("status") or {}).get("disruptedPods") or {}):
        return False
    try:
        selector = from_label_selector(budget["spec"].get("selector"))
    except SelectorError:
        return False
    return not selector.empty and selector.matches(pod.labels)


def _selection_key(candidate: Candidate) -> tuple[int, int, int, int, tuple[int, ...], str]:
    """A sort key of candidates (pickOneNodeForPreemption): the fewest violations, the least important victims first.

    Of otherwise equal candidates the one whose most important victims have started last is first.
    """
    victims = candidate.victims
    highest = victims[0].priority
    earliest = min((_start_time(one) for one in victims if one.priority == highest), default="")
    latest_first = tuple(-ord(char) for char in earliest)
    total = sum(one.priority + OFFSET for one in victims)
    return candidate.violations, highest, total, len(victims), latest_first, candidate.node

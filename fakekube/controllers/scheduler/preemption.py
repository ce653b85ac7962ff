"""Preemption: selects pods of lower priority to delete, so that a pod that fits on no node can be scheduled.

On each node where preemption may help, all pods of lower priority are removed. If the pod fits then, as many of them as possible
are reprieved: first those whose PodDisruptionBudget would be violated, then by importance. Of the candidate nodes the one with
the least important victims is selected.

Specified by: pkg/scheduler/framework/preemption/preemption.go,
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fakekube.apimachinery.selectors import SelectorError, from_label_selector
from fakekube.apis.validation.objectmeta import find_condition
from fakekube.base.objects import StoredObject
from fakekube.controllers.scheduler.algorithm import Filters, Nominated
from fakekube.controllers.scheduler.framework import Code, Diagnosis, FitError, NodeInfo, PodInfo, SchedulingError, Status

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
    """Returns the node on which to preempt.

    Raises:
        PodNotEligible: the pod may not preempt others.
        FitError: preemption does not help.
        SchedulingError: a plugin has failed on some nodes, and preemption does not help on the others.
    """
    pod, nodes = filters.cycle.pod, filters.cycle.snapshot.nodes
    _check_eligible(pod, nodes, diagnosis)
    statuses: dict[str, Status] = {}
    candidates = []
    failures: dict[str, None] = {}
    for node in nodes.values():
        refusal = diagnosis.status_of(node.name)
        if refusal is None or refusal.code is not Code.UNSCHEDULABLE:
            continue
        try:
            found = _select_victims_on_node(filters.clone(), node.clone(), budgets, nominated)
        except SchedulingError as error:
            failures[str(error)] = None
            continue
        if isinstance(found, Candidate):
            candidates.append(found)
        else:
            statuses[node.name] = found
    if failures and not candidates:
        message = ", ".join(failures)
        raise SchedulingError(message if len(failures) == 1 else f"[{message}]")
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
    """Returns a sort key of pods: the most important first, by priority, then by start time (MoreImportantPod)."""
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
    """Returns a sort key of candidates (pickOneNodeForPreemption): the fewest violations, the least important victims first.

    Of otherwise equal candidates the one whose most important victims have started last is first.
    """
    victims = candidate.victims
    highest = victims[0].priority
    earliest = min((_start_time(one) for one in victims if one.priority == highest), default="")
    latest_first = tuple(-ord(char) for char in earliest)
    total = sum(one.priority + OFFSET for one in victims)
    return candidate.violations, highest, total, len(victims), latest_first, candidate.node

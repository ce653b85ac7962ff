"""Preemption: pods of lower priority make room for a pod that fits nowhere.

On each node that preemption may help, all pods of lower priority are taken away; if the pod fits then, as many as possible
are put back, the most important first, and those first whose disruption budget would be violated. Of the nodes that
remain, the one that loses least is taken.

Specified by: pkg/scheduler/framework/preemption/preemption.go, plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fakekube.scheduler.algorithm import Filters, Nominated
from fakekube.scheduler.framework import Code, Diagnosis, FitError, Status
from fakekube.scheduler.nodeinfo import NodeInfo, PodInfo
from fakekube.selectors import SelectorError, from_label_selector

__all__ = ["Candidate", "NotEligible", "preempt"]

Object = Mapping[str, Any]

NO_VICTIMS = Status(Code.UNRESOLVABLE, ("No preemption victims found for incoming pod",))
NOT_HELPFUL = Status(Code.UNRESOLVABLE, ("Preemption is not helpful for scheduling",))
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."

#: Added to priorities so that no sum of them is negative.
OFFSET = 2**31


class NotEligible(Exception):
    """The pod may not preempt others."""


@dataclass(slots=True, frozen=True)
class Candidate:
    """A node, and the pods that would have to go, the most important first."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int
    """How many of them a disruption budget protects."""


def preempt(filters: Filters, diagnosis: Diagnosis, budgets: Sequence[Object], nominated: Nominated) -> Candidate:
    """The node on which to preempt. Raises NotEligible, and FitError if it does not help."""
    pod, nodes = filters.cycle.pod, filters.cycle.snapshot.nodes
    _check_eligible(pod, nodes, diagnosis)
    statuses: dict[str, Status] = {}
    candidates = []
    for node in nodes.values():
        refusal = diagnosis.of(node.name)
        if refusal is None or refusal.code is not Code.UNSCHEDULABLE:
            continue
        found = _victims(filters.clone(), node.clone(), budgets, nominated)
        if isinstance(found, Candidate):
            candidates.append(found)
        else:
            statuses[node.name] = found
    if not candidates:
        raise FitError(len(nodes), Diagnosis(nodes=statuses, absent=NOT_HELPFUL))
    return min(candidates, key=_loss)


def _check_eligible(pod: PodInfo, nodes: Mapping[str, NodeInfo], diagnosis: Diagnosis) -> None:
    if pod.obj["spec"].get("preemptionPolicy") == "Never":
        raise NotEligible(NEVER)
    name = (pod.obj.get("status") or {}).get("nominatedNodeName")
    if not name or name not in nodes:
        return
    refusal = diagnosis.of(name)
    if refusal is not None and refusal.code is Code.UNRESOLVABLE:
        return
    if any(other.priority < pod.priority and _is_preempted(other) for other in nodes[name].pods.values()):
        raise NotEligible(TERMINATING)


def _is_preempted(pod: PodInfo) -> bool:
    return pod.terminating and any(
        condition.get("type") == "DisruptionTarget"
        and condition.get("status") == "True"
        and condition.get("reason") == "PreemptionByScheduler"
        for condition in (pod.obj.get("status") or {}).get("conditions") or ()
    )


def _victims(filters: Filters, node: NodeInfo, budgets: Sequence[Object], nominated: Nominated) -> Candidate | Status:
    """The pods that have to go from a node, or why that does not help. Changes filters and node."""
    pod = filters.cycle.pod
    potential = [other for other in node.pods.values() if other.priority < pod.priority]
    if not potential:
        return NO_VICTIMS
    for other in potential:
        node.remove(other.uid)
        filters.update(other, node, -1)
    refusal = filters.judge_with_nominated(node, nominated)
    if refusal is not None:
        return refusal
    potential.sort(key=_importance)
    violating, others = _by_violation(potential, budgets)
    victims = []
    violations = 0
    for other in (*violating, *others):
        node.add(other)
        filters.update(other, node, 1)
        if filters.judge_with_nominated(node, nominated) is not None:
            node.remove(other.uid)
            filters.update(other, node, -1)
            victims.append(other)
            violations += other in violating
    return Candidate(node.name, tuple(sorted(victims, key=_importance)), violations)


def _importance(pod: PodInfo) -> tuple[int, str]:
    """Sorts the more important first: higher priority, then earlier start."""
    return -pod.priority, _start(pod)


def _start(pod: PodInfo) -> str:
    start: str = (pod.obj.get("status") or {}).get("startTime") or pod.obj["metadata"].get("creationTimestamp") or ""
    return start


def _by_violation(pods: Iterable[PodInfo], budgets: Sequence[Object]) -> tuple[list[PodInfo], list[PodInfo]]:
    allowed = [(budget.get("status") or {}).get("disruptionsAllowed", 0) for budget in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        violated = False
        for index, budget in enumerate(budgets if pod.labels else ()):
            if not _protects(budget, pod):
                continue
            allowed[index] -= 1
            violated = violated or allowed[index] < 0
        (violating if violated else others).append(pod)
    return violating, others


def _protects(budget: Object, pod: PodInfo) -> bool:
    if budget["metadata"]["namespace"] != pod.namespace or pod.name in ((budget.get("status") or {}).get("disruptedPods") or {}):
        return False
    try:
        selector = from_label_selector(budget["spec"].get("selector"))
    except SelectorError:
        return False
    return not selector.empty and selector.matches(pod.labels)


def _loss(candidate: Candidate) -> tuple[int, int, int, int, tuple[int, ...], str]:
    """Sorts the candidate first that loses least; of the same loss the one whose most important pods started last."""
    victims = candidate.victims
    highest = victims[0].priority
    earliest = min((_start(one) for one in victims if one.priority == highest), default="")
    latest_first = tuple(-ord(char) for char in earliest)
    total = sum(one.priority + OFFSET for one in victims)
    return candidate.violations, highest, total, len(victims), latest_first, candidate.node

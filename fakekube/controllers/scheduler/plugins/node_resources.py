"""NodeResourcesFit and NodeResourcesBalancedAllocation: free resources of nodes, and how evenly they are allocated.

Specified by: pkg/scheduler/framework/plugins/noderesources/{fit,least_allocated,balanced_allocation,resource_allocation}.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fakekube.controllers.scheduler.framework import (
    MAX_NODE_SCORE,
    Amounts,
    Code,
    Cycle,
    FilterPlugin,
    NodeInfo,
    ScorePlugin,
    Status,
)

#: The first minor that preempts no pods where a request is larger than the node.
_UNRESOLVABLE_SINCE: Final = 34
#: The first minor that scores how a pod changes the balance of a node; before, only the balance with the pod counts.
_GAIN_SINCE: Final = 36

#: The order of reasons; other resources follow.
NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
SCORED: Final = ("cpu", "memory")


class InsufficientResource(NamedTuple):
    """A resource of which a node has too little for a pod."""

    resource: str
    requested: int
    """The request of the pod."""
    used: int
    """The requests of the pods on the node."""
    capacity: int

    @property
    def reason(self) -> str:
        """The reason in the messages of the scheduler."""
        return "Too many pods" if self.resource == "pods" else f"Insufficient {self.resource}"


def insufficient_resources(
    requests: Amounts, allocatable: Amounts, requested: Amounts, pods: int
) -> Iterator[InsufficientResource]:
    """Yields the resources of a node that are insufficient for a pod.

    Args:
        requests: the requests of the pod.
        allocatable: the allocatable resources of the node.
        requested: the sum of the requests of the pods on the node.
        pods: the number of pods on the node.
    """
    capacity = allocatable.get("pods", 0)
    if pods + 1 > capacity:
        yield InsufficientResource("pods", 1, pods, capacity)
    for name in (*NATIVE, *(name for name in requests if name not in NATIVE)):
        amount, used, capacity = requests.get(name, 0), requested.get(name, 0), allocatable.get(name, 0)
        if amount > 0 and amount > capacity - used:
            yield InsufficientResource(name, amount, used, capacity)


class Fit(FilterPlugin):
    """Rejects nodes without enough free resources."""

    name = "NodeResourcesFit"

    def __init__(self, requests: Amounts, *, may_be_unresolvable: bool = True) -> None:
        self._may_be_unresolvable = may_be_unresolvable
        self._requests = {name: amount for name, amount in requests.items() if amount > 0}

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        return cls(cycle.pod.requests, may_be_unresolvable=cycle.minor >= _UNRESOLVABLE_SINCE)

    def filter(self, node: NodeInfo) -> Status | None:
        if not self._requests and len(node.pods) < node.allocatable.get("pods", 0):
            return None
        found = list(insufficient_resources(self._requests, node.allocatable, node.requested, len(node.pods)))
        if not found:
            return None
        unresolvable = any(one.resource != "pods" and one.requested > one.capacity for one in found)
        code = Code.UNRESOLVABLE if unresolvable and self._may_be_unresolvable else Code.UNSCHEDULABLE
        return Status(code, tuple(one.reason for one in found), self.name)


class LeastAllocated(ScorePlugin):
    """Scores the free share of CPU and memory (leastAllocatedScorer)."""

    name = "NodeResourcesFit"

    def __init__(self, requests: Amounts) -> None:
        self._requests = requests

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        return cls(cycle.pod.non_zero)

    def score(self, node: NodeInfo) -> int:
        total = weights = 0
        for name in SCORED:
            capacity = node.allocatable.get(name, 0)
            if capacity == 0:
                continue
            used = node.non_zero.get(name, 0) + self._requests.get(name, 0)
            total += 0 if used > capacity else (capacity - used) * MAX_NODE_SCORE // capacity
            weights += 1
        return total // weights if weights else 0


class BalancedAllocation(ScorePlugin):
    """Scores how equal the used shares of CPU and memory become (balancedResourceScorer)."""

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, requests: Amounts, *, compares: bool = True) -> None:
        self._requests, self._compares = requests, compares

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        requests = cycle.pod.requests
        return cls(requests, compares=cycle.minor >= _GAIN_SINCE) if any(requests.get(name) for name in SCORED) else None

    def score(self, node: NodeInfo) -> int:
        balance = _balance_score(node, self._requests)
        if not self._compares:
            return balance
        half = MAX_NODE_SCORE // 2
        return half + (half + balance - _balance_score(node, {})) // 2


def _balance_score(node: NodeInfo, more: Amounts) -> int:
    shares = [
        min((node.requested.get(name, 0) + more.get(name, 0)) / capacity, 1.0)
        for name in SCORED
        if (capacity := node.allocatable.get(name, 0))
    ]
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return int((1 - deviation) * MAX_NODE_SCORE)

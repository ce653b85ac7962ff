"""The pods that wait for a node: those to be tried now, the most important first, and those that did not fit.

A pod that did not fit is tried again as soon as something changes that may let it fit; there is no back-off, since
nobody gains by waiting. Pods with scheduling gates are not here.

Invariant: a pod is in one of the two places at most.

Specified by: pkg/scheduler/backend/queue/{scheduling_queue,active_queue,nominator}.go, plugins/queuesort/priority_sort.go.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterable

from fakekube.scheduler.hints import Change, worth_a_try
from fakekube.scheduler.nodeinfo import PodInfo

__all__ = ["SchedulingQueue"]


class SchedulingQueue:
    """See the module."""

    def __init__(self) -> None:
        self._active: dict[str, PodInfo] = {}
        self._heap: list[tuple[int, int, str]] = []
        self._places: dict[str, int] = {}
        self._order = itertools.count()
        self._unschedulable: dict[str, tuple[PodInfo, frozenset[str]]] = {}
        self._nominated: dict[str, tuple[str, PodInfo]] = {}

    def __len__(self) -> int:
        """How many are to be tried now."""
        return len(self._active)

    def add(self, pod: PodInfo) -> None:
        """Try a pod now; one that waits already keeps its place among its like."""
        self._unschedulable.pop(pod.uid, None)
        self._active[pod.uid] = pod
        place = self._places.setdefault(pod.uid, next(self._order))
        heapq.heappush(self._heap, (-pod.priority, place, pod.uid))

    def pop(self) -> PodInfo | None:
        """The pod to try first, or None."""
        while self._heap:
            priority, place, uid = heapq.heappop(self._heap)
            pod = self._active.get(uid)
            if pod is not None and -pod.priority == priority and self._places.get(uid) == place:
                del self._active[uid]
                return pod
        return None

    def add_unschedulable(self, pod: PodInfo, plugins: Collection[str]) -> None:
        """The pod did not fit, because of these plugins."""
        self._active.pop(pod.uid, None)
        self._unschedulable[pod.uid] = (pod, frozenset(plugins))

    def renew(self, pod: PodInfo) -> bool:
        """A newer version of a pod, not to be tried for that. False if it does not wait here."""
        if pod.uid in self._active:
            self.add(pod)
        elif pod.uid in self._unschedulable:
            self._unschedulable[pod.uid] = (pod, self._unschedulable[pod.uid][1])
        else:
            return False
        if pod.uid in self._nominated:
            self._nominated[pod.uid] = (self._nominated[pod.uid][0], pod)
        return True

    def remove(self, uid: str) -> None:
        """The pod has got a node, or is gone."""
        self._active.pop(uid, None)
        self._unschedulable.pop(uid, None)
        self._places.pop(uid, None)
        self._nominated.pop(uid, None)

    def notice(self, change: Change) -> None:
        """Something has changed: try those again that may fit now."""
        for pod, plugins in list(self._unschedulable.values()):
            if worth_a_try(pod, plugins, change):
                self.add(pod)

    # ---- nominations

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Preemption makes room for the pod on a node; "" ends that."""
        if node:
            self._nominated[pod.uid] = (node, pod)
        else:
            self._nominated.pop(pod.uid, None)

    def nominated(self, node: str) -> Iterable[PodInfo]:
        """The pods for which room is made on a node."""
        return [pod for name, pod in self._nominated.values() if name == node]

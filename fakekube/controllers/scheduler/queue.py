"""The scheduling queue: pods to schedule now, by priority, and unschedulable pods.

An unschedulable pod is retried as soon as an event may have made it schedulable. There is no back-off. Pods with scheduling
gates are not in the queue.

Invariant: a pod is either active or unschedulable.

Specified by: pkg/scheduler/backend/queue/{scheduling_queue,active_queue,nominator}.go,
pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterable

from fakekube.controllers.scheduler.nodeinfo import PodInfo
from fakekube.controllers.scheduler.queueing_hints import ClusterEvent, is_pod_worth_requeuing

__all__ = ["SchedulingQueue"]


class SchedulingQueue:
    """The pending pods of the scheduler."""

    def __init__(self) -> None:
        self._active: dict[str, PodInfo] = {}
        self._heap: list[tuple[int, int, str]] = []
        self._places: dict[str, int] = {}
        self._order = itertools.count()
        self._unschedulable: dict[str, tuple[PodInfo, frozenset[str]]] = {}
        self._nominated: dict[str, tuple[str, PodInfo]] = {}

    def __len__(self) -> int:
        """The number of active pods."""
        return len(self._active)

    def add(self, pod: PodInfo) -> None:
        """Makes a pod active. A pod that was in the queue before keeps its position among pods of its priority."""
        self._unschedulable.pop(pod.uid, None)
        self._active[pod.uid] = pod
        place = self._places.setdefault(pod.uid, next(self._order))
        heapq.heappush(self._heap, (-pod.priority, place, pod.uid))

    def pop(self) -> PodInfo | None:
        """Removes and returns the active pod with the highest priority; None if there is none."""
        while self._heap:
            priority, place, uid = heapq.heappop(self._heap)
            pod = self._active.get(uid)
            if pod is not None and -pod.priority == priority and self._places.get(uid) == place:
                del self._active[uid]
                return pod
        return None

    def add_unschedulable(self, pod: PodInfo, plugins: Collection[str]) -> None:
        """Makes a pod unschedulable, with the plugins that rejected it."""
        self._active.pop(pod.uid, None)
        self._unschedulable[pod.uid] = (pod, frozenset(plugins))

    def update(self, pod: PodInfo) -> bool:
        """Replaces a pod by a newer version, without a retry. Returns False if it is not in the queue."""
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
        """Removes a pod that was bound or deleted."""
        self._active.pop(uid, None)
        self._unschedulable.pop(uid, None)
        self._places.pop(uid, None)
        self._nominated.pop(uid, None)

    def move_all_to_active(self, event: ClusterEvent) -> None:
        """Makes the unschedulable pods active that the event may have made schedulable (MoveAllToActiveOrBackoffQueue)."""
        for pod, plugins in list(self._unschedulable.values()):
            if is_pod_worth_requeuing(pod, plugins, event):
                self.add(pod)

    # ---- nominations

    def add_nominated_pod(self, pod: PodInfo, node: str) -> None:
        """Nominates a pod for a node on which preemption makes room; "" removes the nomination."""
        if node:
            self._nominated[pod.uid] = (node, pod)
        else:
            self._nominated.pop(pod.uid, None)

    def nominated_pods_for_node(self, node: str) -> Iterable[PodInfo]:
        """Returns the pods that are nominated for a node."""
        return [pod for name, pod in self._nominated.values() if name == node]

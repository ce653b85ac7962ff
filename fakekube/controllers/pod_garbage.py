"""Pods that nobody else takes away: of nodes that are gone, terminating without a node, and old ones that have ended.

It looks every 20 seconds, as long as there is something to look for. A node that is not there is believed to be gone when
it has been missing for 40 seconds.

Specified by: pkg/controller/podgc/gc_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fakekube.client import ApiError
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["PodGarbageCollector"]

CHECK_PERIOD = 20.0
QUARANTINE = 40.0
#: How many ended pods are kept (--terminated-pod-gc-threshold).
TERMINATED_PODS = 12500
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

_ALL = Key("", "")


class PodGarbageCollector(Reconciler):
    """One key: all pods."""

    name = "pod-garbage-collector-controller"
    client_name = "pod-garbage-collector"
    watches = ("pods", "nodes")

    def __init__(self) -> None:
        self._is_due = False
        self._ended = 0
        self._missing: dict[str, float] = {}
        """Nodes that are not there, and when they will have been missing for long enough."""

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        if resource == "nodes":
            return obj is old or _is_out_of_service(obj)
        return old is None or "deletionTimestamp" in obj["metadata"] or is_pod_terminal(obj) != is_pod_terminal(old)

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource == "pods":
            self._count(event_type, obj, old)
            looks = event_type != "DELETED" and self._may_be_garbage(obj)
        else:
            looks = event_type == "DELETED" or _is_out_of_service(obj)
        if looks or self._ended > TERMINATED_PODS:
            self._look_later()
        return ()

    def _count(self, event_type: str, pod: Object, old: Object | None) -> None:
        if event_type == "MODIFIED" and old is not None:
            self._ended += is_pod_terminal(pod) - is_pod_terminal(old)
        elif is_pod_terminal(pod):
            self._ended += -1 if event_type == "DELETED" else 1

    def _may_be_garbage(self, pod: Object) -> bool:
        node = pod["spec"].get("nodeName")
        if node and self.cache.get("nodes", "", node) is None:
            return True
        return "deletionTimestamp" in pod["metadata"] and (not node or _is_out_of_service(self.cache.get("nodes", "", node)))

    def _look_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            self.requeue_after(_ALL, CHECK_PERIOD)

    def reconcile(self, key: Key) -> None:
        self._is_due = False
        pods = list(self.cache.list("pods"))
        self._collect_ended([pod for pod in pods if is_pod_terminal(pod)])
        self._collect_orphans(pods)
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                continue
            node = pod["spec"].get("nodeName")
            if not node or _is_out_of_service(self.cache.get("nodes", "", node)):
                self._delete(pod)
                self._look_later()

    def _collect_ended(self, pods: Sequence[Object]) -> None:
        """Evicted ones first, then the oldest."""
        ordered = sorted(
            pods,
            key=lambda pod: (
                pod["status"].get("reason") != "Evicted",
                pod["metadata"]["creationTimestamp"],
                pod["metadata"]["name"],
            ),
        )
        for pod in ordered[: max(len(ordered) - TERMINATED_PODS, 0)]:
            self._delete(pod)

    def _collect_orphans(self, pods: Sequence[Object]) -> None:
        now = self.clock.monotonic()
        orphans: dict[str, list[Object]] = {}
        for pod in pods:
            node = pod["spec"].get("nodeName")
            if node and self.cache.get("nodes", "", node) is None:
                orphans.setdefault(node, []).append(pod)
        self._missing = {node: self._missing.get(node, now + QUARANTINE) for node in orphans}
        for node, left in orphans.items():
            if self._missing[node] <= now:
                for pod in left:
                    self._delete(pod, "PodGC: node no longer exists")
            self._look_later()

    def _delete(self, pod: Object, why: str = "") -> None:
        """Force the deletion of a pod, after it is marked as failed unless it has ended."""
        metadata = pod["metadata"]
        try:
            if not is_pod_terminal(pod):
                self._mark_failed(pod, why)
            self.client.delete("pods", metadata["name"], namespace=metadata["namespace"], gracePeriodSeconds=0)
        except ApiError as error:
            if error.code != 404:
                raise

    def _mark_failed(self, pod: Object, why: str) -> None:
        metadata = pod["metadata"]
        status: dict[str, Any] = {"phase": "Failed", "observedGeneration": metadata.get("generation", 0)}
        if why:
            status["conditions"] = [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByPodGC",
                    "message": why,
                    "lastTransitionTime": self.client.now(),
                    "lastProbeTime": None,
                    "observedGeneration": metadata.get("generation", 0),
                }
            ]
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        self.client.strategic_patch("pods", metadata["name"], body, namespace=metadata["namespace"], subresource="status")


def _is_out_of_service(node: Object | None) -> bool:
    """Has somebody said that a node that is not ready will not come back?"""
    if node is None or not any(taint.get("key") == OUT_OF_SERVICE for taint in node["spec"].get("taints") or ()):
        return False
    conditions = (node.get("status") or {}).get("conditions") or ()
    return not any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

"""The pod garbage collector: deletes orphaned pods, terminating pods without a node, and old terminated pods.

It runs every 20 seconds of the clock while there may be pods to delete. Pods are orphaned if their node has been missing for 40
seconds.

Specified by: pkg/controller/podgc/gc_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import TAINT_NODE_OUT_OF_SERVICE
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.reconciler import Key, Reconciler

#: Seconds (gcCheckPeriod, quarantineTime).
CHECK_PERIOD: Final = 20.0
QUARANTINE: Final = 40.0
#: The number of terminated pods that are kept (--terminated-pod-gc-threshold).
TERMINATED_PODS: Final = 12500

#: The key for all pods.
_ALL: Final = Key("", "")


class PodGarbageCollector(Reconciler):
    """Has a single key, which stands for all pods."""

    name = "pod-garbage-collector-controller"
    client_name = "pod-garbage-collector"
    watches = ("pods", "nodes")

    def __init__(self) -> None:
        self._scheduled = False
        self._terminated = 0
        """The number of terminated pods."""
        self._missing: dict[str, float] = {}
        """Node that does not exist → the time at which its quarantine ends."""

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource == "nodes":
            return obj is old or _is_out_of_service(obj)
        return old is None or "deletionTimestamp" in obj["metadata"] or is_pod_terminal(obj) != is_pod_terminal(old)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == "pods":
            self._count_terminated(event_type, obj, old)
            garbage = event_type != "DELETED" and self._may_be_garbage(obj)
        else:
            garbage = event_type == "DELETED" or _is_out_of_service(obj)
        if garbage or self._terminated > TERMINATED_PODS:
            self._schedule_collection()
        return ()

    def _count_terminated(self, event_type: str, pod: StoredObject, old: StoredObject | None) -> None:
        if event_type == "MODIFIED" and old is not None:
            self._terminated += is_pod_terminal(pod) - is_pod_terminal(old)
        elif is_pod_terminal(pod):
            self._terminated += -1 if event_type == "DELETED" else 1

    def _may_be_garbage(self, pod: StoredObject) -> bool:
        """Reports whether a pod is to be deleted now or later, apart from the number of terminated ones."""
        node = pod["spec"].get("nodeName")
        if node and self.cache.get("nodes", "", node) is None:
            return True
        return "deletionTimestamp" in pod["metadata"] and (not node or _is_out_of_service(self.cache.get("nodes", "", node)))

    def _schedule_collection(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.requeue_after(_ALL, CHECK_PERIOD)

    def reconcile(self, key: Key) -> None:
        self._scheduled = False
        pods = list(self.cache.list("pods"))
        self._gc_terminated([pod for pod in pods if is_pod_terminal(pod)])
        self._gc_orphaned(pods)
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                continue
            node = pod["spec"].get("nodeName")
            if not node or _is_out_of_service(self.cache.get("nodes", "", node)):
                self._fail_and_delete_pod(pod)
                self._schedule_collection()

    def _gc_terminated(self, pods: Sequence[Object]) -> None:
        """Deletes terminated pods beyond TERMINATED_PODS: evicted ones first, then the oldest."""
        ordered = sorted(
            pods,
            key=lambda pod: (
                pod["status"].get("reason") != "Evicted",
                pod["metadata"]["creationTimestamp"],
                pod["metadata"]["name"],
            ),
        )
        for pod in ordered[: max(len(ordered) - TERMINATED_PODS, 0)]:
            self._fail_and_delete_pod(pod)

    def _gc_orphaned(self, pods: Sequence[Object]) -> None:
        """Deletes the pods of nodes that have been missing for the quarantine time."""
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
                    self._fail_and_delete_pod(pod, "PodGC: node no longer exists")
            self._schedule_collection()

    def _fail_and_delete_pod(self, pod: Object, why: str = "") -> None:
        """Marks a pod as failed, unless it has terminated, and deletes it without a grace period."""
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
        status: Object = {"phase": "Failed", "observedGeneration": metadata.get("generation", 0)}
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


def _is_out_of_service(node: StoredObject | None) -> bool:
    """Reports whether the node is not ready and has the taint out-of-service."""
    if node is None or not any(taint.get("key") == TAINT_NODE_OUT_OF_SERVICE for taint in node["spec"].get("taints") or ()):
        return False
    condition = find_condition(node.get("status") or {}, "Ready")
    return condition is None or condition["status"] != "True"

"""The scheduler: finds a node for each pod that names it, and binds the pod to it.

Changes of nodes and pods come into the snapshot as they are told; one work item, the queue, is reconciled while pods are
to be tried. A pod whose claims have to be bound first waits until they are.

Invariant: in the snapshot a pod is on the node to which it is bound, or is about to be bound.

Specified by: pkg/scheduler/{scheduler,schedule_one,eventhandlers}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from fakekube.client import ApiError
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.scheduler.algorithm import Filters, NoNodesAvailable, pre_filter, schedule
from fakekube.scheduler.cycle import Cycle
from fakekube.scheduler.events import SeriesRecorder
from fakekube.scheduler.framework import FitError
from fakekube.scheduler.hints import Change
from fakekube.scheduler.nodeinfo import PodInfo, Snapshot
from fakekube.scheduler.preemption import Candidate, NotEligible, preempt
from fakekube.scheduler.queue import SchedulingQueue
from fakekube.scheduler.statuses import condition_patch, patch_status
from fakekube.scheduler.volume_binder import VolumeBinder

__all__ = ["Scheduler"]

NAME: Final = "default-scheduler"
QUEUE: Final = Key("", "")
#: Pods that are tried before other controllers have their turn.
AT_ONCE: Final = 50

NO_CLAIMS: Final = "no new claims to deallocate"
#: What the post filter says after a plugin has refused the pod as a whole.
NO_STATE: Final = "not found"

_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_OTHERS: Final = ("persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io")


def _is_terminal(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in _TERMINAL


class Scheduler(Reconciler):
    """kube-scheduler with its default configuration."""

    name: ClassVar[str] = "kube-scheduler"
    program: ClassVar[str] = "kube-scheduler"
    client_name: ClassVar[str] = "scheduler"
    component: ClassVar[str] = NAME
    watches: ClassVar[tuple[str, ...]] = ("nodes", "pods", *_OTHERS)

    def started(self) -> None:
        self._snapshot = Snapshot()
        self._queue = SchedulingQueue()
        self._events = SeriesRecorder(self.client, self.clock, NAME, f"{NAME}-fakekube")
        self._binder = VolumeBinder(self.client, self.cache)
        self._waiting: dict[str, tuple[PodInfo, str]] = {}
        for node in self.cache.list("nodes"):
            self._snapshot.set_node(node["metadata"]["name"], node)
        for pod in self.cache.list("pods"):
            self._pod_changed(pod, None)
        if self._queue:
            self.enqueue(QUEUE)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        if resource != "pods" or old is None or obj is old:
            return True
        # Only what kubelets write into the status of a pod that runs does not matter.
        return (
            obj["spec"] != old["spec"]
            or obj["metadata"].get("labels") != old["metadata"].get("labels")
            or ("deletionTimestamp" in obj["metadata"] or _is_terminal(obj))
        )

    # ------------------------------------------------------------ changes

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        gone = event_type == "DELETED"
        if resource == "nodes":
            known = self._snapshot.nodes.get(obj["metadata"]["name"])
            before = old if old is not None else known.node if known is not None else None
            self._snapshot.set_node(obj["metadata"]["name"], None if gone else obj)
            self._queue.notice(Change(resource, None if gone else obj, obj if gone else before))
        elif resource == "pods":
            if gone:
                self._pod_gone(obj)
            else:
                self._pod_changed(obj, old)
        else:
            self._queue.notice(Change(resource, None if gone else obj, obj if gone else old))
            if resource == "persistentvolumeclaims" and self._waiting:
                return [Key("bind", uid) for uid in self._waiting]
        return (QUEUE,) if self._queue else ()

    def _pod_changed(self, obj: Object, old: Object | None) -> None:
        uid = obj["metadata"]["uid"]
        spec = obj["spec"]
        if _is_terminal(obj):
            self._pod_gone(obj)
        elif spec.get("nodeName"):
            self._assigned(PodInfo(obj), spec["nodeName"], old)
        elif spec.get("schedulerName") == NAME:
            if "deletionTimestamp" in obj["metadata"]:
                self._queue.remove(uid)
            elif not spec.get("schedulingGates"):
                self._pending(PodInfo(obj), old)

    def _assigned(self, pod: PodInfo, node: str, old: Object | None) -> None:
        self._queue.remove(pod.uid)
        self._waiting.pop(pod.uid, None)
        before = old if old is not None and old["spec"].get("nodeName") else None
        if before is None or _matters(pod.obj, before):
            self._snapshot.set_pod(pod, node)
            self._queue.notice(Change("pods", pod.obj, before))

    def _pending(self, pod: PodInfo, old: Object | None) -> None:
        if pod.uid in self._waiting:
            return
        nominated = (pod.obj.get("status") or {}).get("nominatedNodeName")
        if nominated:
            self._queue.nominate(pod, nominated)
        if old is not None and not _matters(pod.obj, old) and self._queue.renew(pod):
            return
        self._queue.add(pod)

    def _pod_gone(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        self._queue.remove(uid)
        self._waiting.pop(uid, None)
        known = self._snapshot.remove_pod(uid)
        if known is not None:
            self._queue.notice(Change("pods", None, known.obj))

    # ------------------------------------------------------------ work

    def reconcile(self, key: Key) -> None:
        if key.namespace == "bind":
            self._bind_when_volumes_are_bound(key.name)
            return
        for _ in range(AT_ONCE):
            pod = self._queue.pop()
            if pod is None:
                return
            self._schedule(pod)
        if self._queue:
            self.enqueue(QUEUE)

    def _schedule(self, pod: PodInfo) -> None:
        cycle = Cycle(pod, self._snapshot, self.cache)
        try:
            node, filters = schedule(cycle, self._queue.nominated)
        except NoNodesAvailable as error:
            self._failed(pod, str(error), ())
        except FitError as error:
            self._no_fit(cycle, error)
        else:
            self._reserve(pod, node, filters)

    def _reserve(self, pod: PodInfo, node: str, filters: Filters) -> None:
        """The pod is as good as on the node."""
        self._snapshot.set_pod(pod, node)
        try:
            if self._binder.bind(filters, node):
                self._bind(pod, node)
            else:
                self._waiting[pod.uid] = (pod, node)
        except ApiError as error:
            self._snapshot.remove_pod(pod.uid)
            if error.code == 404:
                self._queue.remove(pod.uid)
                return
            self._failed(pod, str(error), (), reason="SchedulerError")
            self._queue.add(pod)
            self.requeue_rate_limited(QUEUE)

    def _bind_when_volumes_are_bound(self, uid: str) -> None:
        if uid in self._waiting and self._binder.is_bound(self._waiting[uid][0].obj):
            pod, node = self._waiting.pop(uid)
            self._bind(pod, node)

    def _bind(self, pod: PodInfo, node: str) -> None:
        binding = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": {"kind": "Node", "name": node},
        }
        path = self.client.path(self.client.resource("pods"), pod.namespace, pod.name, "binding")
        self.client.call("POST", path, binding)
        self._queue.remove(pod.uid)
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self._events.event(dict(pod.obj), "Normal", "Scheduled", "Binding", note)

    # ------------------------------------------------------------ failure

    def _no_fit(self, cycle: Cycle, error: FitError) -> None:
        diagnosis = error.diagnosis
        nominated: str | None = None
        if diagnosis.pre_filter_message:
            diagnosis.post_filter_message = NO_STATE
        else:
            nominated, diagnosis.post_filter_message = self._post_filter(cycle, error)
        self._failed(cycle.pod, str(error), diagnosis.plugins, nominated=nominated)

    def _post_filter(self, cycle: Cycle, error: FitError) -> tuple[str | None, str]:
        """The node on which others make room ("" for none, None to leave what is nominated), and what is said."""
        budgets = list(self.cache.list("poddisruptionbudgets.policy"))
        try:
            chosen = preempt(pre_filter(cycle), error.diagnosis, budgets, self._queue.nominated)
        except NotEligible as refusal:
            return None, f"{NO_CLAIMS}, preemption: {refusal}"
        except FitError as refusal:
            return "", f"{NO_CLAIMS}, preemption: {refusal}"
        self._evict(cycle.pod, chosen)
        return chosen.node, ""

    def _evict(self, pod: PodInfo, chosen: Candidate) -> None:
        for victim in chosen.victims:
            message = f"{NAME}: preempting to accommodate a higher priority pod"
            try:
                patch = condition_patch(
                    victim.obj, "DisruptionTarget", ("True", "PreemptionByScheduler", message), self.client.now()
                )
                if patch is not None:
                    patch_status(self.client, victim.obj, patch)
                self.client.delete("pods", victim.name, namespace=victim.namespace)
            except ApiError as error:
                if error.code != 404:
                    raise
                continue
            note = f"Preempted by pod {pod.uid} on node {chosen.node}"
            self._events.event(dict(victim.obj), "Normal", "Preempted", "Preempting", note, related=dict(pod.obj))
        for other in self._queue.nominated(chosen.node):
            if other.priority < pod.priority:
                self._queue.nominate(other, "")
                patch_status(self.client, other.obj, {"nominatedNodeName": None})

    def _failed(
        self, pod: PodInfo, message: str, plugins: Iterable[str], *, nominated: str | None = None, reason: str = "Unschedulable"
    ) -> None:
        self._queue.add_unschedulable(pod, frozenset(plugins))
        if nominated is not None:
            self._queue.nominate(pod, nominated)
        self._events.event(dict(pod.obj), "Warning", "FailedScheduling", "Scheduling", message)
        patch = condition_patch(pod.obj, "PodScheduled", ("False", reason, message), self.client.now()) or {}
        known = (pod.obj.get("status") or {}).get("nominatedNodeName") or ""
        if nominated is not None and nominated != known:
            patch["nominatedNodeName"] = nominated or None
        if patch:
            try:
                patch_status(self.client, pod.obj, patch)
            except ApiError as error:
                if error.code != 404:
                    raise


def _matters(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Has anything but the status, and what the server keeps in the metadata, changed?"""
    return new["spec"] != old["spec"] or any(
        new["metadata"].get(field) != old["metadata"].get(field) for field in ("labels", "annotations", "deletionTimestamp")
    )

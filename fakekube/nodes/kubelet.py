"""The kubelets of all nodes: nodes become ready, pods that are bound to them run, end and go.

A pod that is told nothing is ready at once; one of a Job then succeeds at once; one that is being deleted is gone at once.
Whatever a pod's status says afterwards is left alone.

Invariant: only pods on nodes that exist and have a kubelet are touched.

Specified by: pkg/kubelet (kubelet_node_status.go, status/status_manager.go, nodelease); for pods that are told nothing kwok's
stages node/fast, node/heartbeat-with-lease and pod/fast.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from fakekube.api.version import git_version
from fakekube.client import ApiError
from fakekube.controllers.kubelets import has_kubelet
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.nodes.addresses import Addresses, AddressesExhausted
from fakekube.nodes.container_runtime import EXITS, Exit
from fakekube.nodes.node_status import condition, initial_status, is_ready, renewed_conditions
from fakekube.nodes.plans import PlanError, PodPlan, told_by_annotations
from fakekube.nodes.pod_status import completed_status, is_of_job, ready_status
from fakekube.nodes.pod_workers import PodWorkers
from fakekube.nodes.rules import RULES, Pods
from fakekube.nodes.running_pods import RunningPods

__all__ = ["Kubelet"]

STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
LEASES: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
#: Seconds between two renewals of a node's lease, and between two reports of its unchanged status.
RENEW_EVERY: Final = 10.0
REPORT_EVERY: Final = 300.0
#: Nobody looks at a lease while a clock is moved over hours: it is renewed ever more seldom then, up to this.
SELDOM: Final = 3600.0
#: Real seconds between two renewals that are of one stride.
IN_ONE_GO: Final = 0.2

DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
#: Who manages the fields of what is ready at once: kwok, whose results these are.
AT_ONCE: Final = "kwok"


def _microseconds(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Kubelet(Reconciler):
    """All kubelets of a cluster. A key without a namespace is a node, the others are pods."""

    name: ClassVar[str] = "kubelet"
    program: ClassVar[str] = "kubelet"
    client_name: ClassVar[str] = "kubelet"
    watches: ClassVar[tuple[str, ...]] = ("nodes", "pods")

    def started(self) -> None:
        self._addresses = Addresses()
        self._on_node: dict[str, set[Key]] = {}
        self._intervals: dict[str, tuple[float, float]] = {}
        self._workers = PodWorkers(self.clock, self.recorder, self._write)
        self._running = RunningPods(self, self._workers, self._on_node)
        self._staged: Container[str] = self.context.shared.get("staged", ())
        for node in self.cache.list("nodes"):
            self._hold_node_addresses(node)
            self.enqueue(Key("", node["metadata"]["name"]))
        for pod in self.cache.list("pods"):
            for key in self._pod_changed("ADDED", pod):
                self.enqueue(key)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource == "nodes" or bool(obj["spec"].get("nodeName"))

    # ------------------------------------------------------------ changes

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource == "pods":
            return self._pod_changed(event_type, obj)
        name = obj["metadata"]["name"]
        if event_type == "DELETED":
            self._addresses.release(f"node/{name}")
            return ()
        self._hold_node_addresses(obj)
        if old is not None and has_kubelet(old) == has_kubelet(obj) and is_ready(obj):
            return ()
        return (Key("", name), *self._on_node.get(name, ()))

    def _pod_changed(self, event_type: str, obj: Object) -> Iterable[Key]:
        metadata, node = obj["metadata"], obj["spec"].get("nodeName")
        if not node:
            return ()
        key = Key(metadata["namespace"], metadata["name"])
        pods = self._on_node.setdefault(node, set())
        if event_type == "DELETED":
            pods.discard(key)
            if not pods:
                del self._on_node[node]
            self._addresses.release(metadata["uid"])
            self._workers.forget(metadata["uid"])
            self._running.forget(metadata["uid"])
            self.context.shared.get(EXITS, {}).pop(metadata["uid"], None)
            return self._running.deferred_on(node)
        pods.add(key)
        status = obj.get("status") or {}
        if status.get("podIP") and not obj["spec"].get("hostNetwork"):
            for ip in status.get("podIPs") or ():
                self._addresses.hold(metadata["uid"], ip["ip"])
        return (key, *self._running.deferred_on(node)) if status.get("phase") in _TERMINAL else (key,)

    def _hold_node_addresses(self, node: Object) -> None:
        for one in (node.get("status") or {}).get("addresses") or ():
            if one["type"] == "InternalIP":
                self._addresses.hold(f"node/{node['metadata']['name']}", one["address"])

    # ------------------------------------------------------------ nodes

    def reconcile(self, key: Key) -> None:
        if key == RULES:
            for keys in self._on_node.values():
                for one in keys:
                    self.enqueue(one)
        elif key.namespace:
            self._reconcile_pod(key)
        elif (node := self.cache.get("nodes", "", key.name)) is not None and has_kubelet(node):
            self._reconcile_node(node)

    def _reconcile_node(self, node: Object) -> None:
        name = node["metadata"]["name"]
        if "nodes" in self._staged:
            pass
        elif not is_ready(node):
            known = self._address_of(node)
            status = initial_status(
                node, git_version(self.context.version), known or self._addresses.node(name), self.client.now()
            )
            self.patch_status("nodes", node, status)
        elif self._is_report_due(node):
            self.patch_status("nodes", node, {"conditions": renewed_conditions(node, self.client.now())})
        self._renew_lease(node)
        self.requeue_periodically(Key("", name), self._next_renewal(name))

    def _next_renewal(self, name: str) -> float:
        """Ten seconds; more while a held clock is moved in long strides."""
        real = time.monotonic()
        interval, last = self._intervals.get(name, (RENEW_EVERY, 0.0))
        interval = min(interval * 2, SELDOM) if self.clock.held and real - last < IN_ONE_GO else RENEW_EVERY
        self._intervals[name] = (interval, real)
        return interval

    def _is_report_due(self, node: Object) -> bool:
        ready = condition(node, "Ready") or {}
        last = ready.get("lastHeartbeatTime")
        return last is None or (self.clock.now() - datetime.fromisoformat(last)).total_seconds() >= REPORT_EVERY

    def _renew_lease(self, node: Object) -> None:
        name = node["metadata"]["name"]
        now = _microseconds(self.clock.now())
        try:
            self.client.patch("leases.coordination.k8s.io", name, {"spec": {"renewTime": now}}, namespace=LEASES)
        except ApiError as error:
            if error.code != 404:
                raise
            self._create_lease(node, now)

    def _create_lease(self, node: Object, now: str) -> None:
        name = node["metadata"]["name"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": name, "namespace": LEASES, "ownerReferences": [owner]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
        }
        try:
            self.client.create(lease)
        except ApiError as error:
            if error.code not in (403, 404, 409):  # the namespace of leases is not there, or it came meanwhile
                raise

    @staticmethod
    def _address_of(node: Object) -> str | None:
        for one in (node.get("status") or {}).get("addresses") or ():
            if one["type"] == "InternalIP":
                address: str = one["address"]
                return address
        return None

    # ------------------------------------------------------------ pods

    def _reconcile_pod(self, key: Key) -> None:
        pod = self.cache.get("pods", key.namespace, key.name)
        node = self.cache.get("nodes", "", pod["spec"].get("nodeName") or "") if pod is not None else None
        if pod is None or node is None or not has_kubelet(node) or "pods" in self._staged:
            return
        status = pod.get("status") or {}
        plan = self._plan_of(pod)
        exits: Sequence[Exit] = self.context.shared.get(EXITS, {}).pop(pod["metadata"]["uid"], ())
        if status.get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
            pod, exits = self._running.sync(key, pod, node, exits)
        elif "deletionTimestamp" in pod["metadata"]:
            self._running.stop(pod)
        if plan is not None or exits or pod["metadata"]["uid"] in self._workers:
            self._run_as_told(key, pod, node, plan, exits)
        elif "deletionTimestamp" in pod["metadata"]:
            self._remove(pod)
        elif status.get("phase", "Pending") == "Pending" and (condition(pod, "Ready") or {}).get("status") != "True":
            self._run(pod, node)
        elif status.get("phase") == "Running" and is_of_job(pod):
            self.patch_status("pods", pod, completed_status(pod, self.client.now()))
        if pod["spec"].get("activeDeadlineSeconds") is not None:
            self._check_deadline(key, pod, node)

    def _check_deadline(self, key: Key, pod: Object, node: Object) -> None:
        """A pod that has been active for too long fails."""
        status = pod.get("status") or {}
        if status.get("phase") in _TERMINAL or not status.get("startTime") or "deletionTimestamp" in pod["metadata"]:
            return
        active = (self.clock.now() - datetime.fromisoformat(status["startTime"])).total_seconds()
        left = pod["spec"]["activeDeadlineSeconds"] - active
        if left > 0:
            self.requeue_after(key, left)
        elif (found := self._addresses_for(pod, node)) is not None:
            self.recorder.event(pod, "Normal", DEADLINE_EXCEEDED, DEADLINE_MESSAGE, host=pod["spec"]["nodeName"])
            self._workers.fail(pod, found, DEADLINE_EXCEEDED, DEADLINE_MESSAGE)

    def _plan_of(self, pod: Object) -> PodPlan | None:
        """What the pod is told: by its annotations, else by rules. Annotations that say nothing are told of, and left out."""
        try:
            told = told_by_annotations(pod)
        except PlanError as error:
            self.recorder.event(pod, "Warning", "InvalidAnnotation", str(error), host=pod["spec"].get("nodeName", ""))
            told = None
        rules: Pods | None = self.context.shared.get("pods")
        return told if told is not None or rules is None else rules.plan_for(pod)

    def _run(self, pod: Object, node: Object) -> None:
        found = self._addresses_for(pod, node)
        if found is not None:
            self.patch_status("pods", pod, ready_status(pod, *found, self.client.now()))

    def _run_as_told(self, key: Key, pod: Object, node: Object, plan: PodPlan | None, exits: Sequence[Exit]) -> None:
        uid = pod["metadata"]["uid"]
        deleted = "deletionTimestamp" in pod["metadata"]
        if (pod.get("status") or {}).get("phase") in _TERMINAL and (uid not in self._workers or not deleted):
            if deleted:
                self._remove(pod)
            return
        found = self._addresses_for(pod, node)
        if found is None:
            return
        wait = self._workers.sync(pod, plan, found, exits)
        if deleted and self._workers.is_done(uid):
            self._remove(pod)
        elif wait is not None:
            self.requeue_after(key, wait)

    def _write(self, pod: Object, status: dict[str, Any]) -> Object:
        return self.patch_status("pods", pod, status, manager="kubelet")

    def _addresses_for(self, pod: Object, node: Object) -> tuple[str, list[str]] | None:
        """The addresses of node and pod; None if there is none left, which is told of, and tried again."""
        host = self._address_of(node) or self._addresses.node(node["metadata"]["name"])
        try:
            return host, [host] if pod["spec"].get("hostNetwork") else self._pod_addresses(pod, node)
        except AddressesExhausted as error:
            message = f"Failed to create pod sandbox: no IP addresses available in range {error}"
            self.recorder.event(pod, "Warning", "FailedCreatePodSandBox", message, host=node["metadata"]["name"])
            self.requeue_rate_limited(Key(pod["metadata"]["namespace"], pod["metadata"]["name"]))
            return None

    def _pod_addresses(self, pod: Object, node: Object) -> list[str]:
        known = [one["ip"] for one in (pod.get("status") or {}).get("podIPs") or ()]
        if known:
            return known
        held = self._addresses.of(pod["metadata"]["uid"])
        if held:
            return held
        spec = node.get("spec") or {}
        cidrs = tuple(spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else ()))
        return self._addresses.pod(pod["metadata"]["uid"], cidrs)

    def _remove(self, pod: Object) -> None:
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0 and pod["metadata"].get("finalizers"):
            return
        metadata = pod["metadata"]
        self.client.delete(
            "pods",
            metadata["name"],
            namespace=metadata["namespace"],
            gracePeriodSeconds=0,
            preconditions={"uid": metadata["uid"]},
        )

    def patch_status(self, resource: str, obj: Object, status: dict[str, Any], *, manager: str = AT_ONCE) -> Object:
        """Changes what is named of a status. Returns the object as it is then. Raises ApiError."""
        metadata = obj["metadata"]
        path = self.client.path(self.client.resource(resource), metadata.get("namespace"), metadata["name"], "status")
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        return self.client.call("PATCH", path, body, {"fieldManager": manager}, content_type=STRATEGIC_MERGE_PATCH)

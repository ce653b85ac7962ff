"""The controllers of nodes, and the facts and taints of nodes that several of them use.

The node lifecycle controller sets conditions of nodes without heartbeats to Unknown, and taints nodes by their conditions. If
a node has not been updated for 50 seconds (60 after its creation), its conditions become Unknown, and its pods are marked not
ready. Conditions become NoSchedule taints at once. NoExecute taints, which evict pods, are added to at most one node in ten
seconds in each zone, and not at all while all zones are disrupted.

Invariant: while our kubelets run, a node with one of them is healthy.

A node with the label `fakekube.dev/kubelet: silent` has no kubelet: a test does the kubelet's work, or the node has failed.

The TTL controller annotates nodes with the time for which kubelets may cache Secrets and ConfigMaps, by the cluster's size.

Specified by: pkg/controller/nodelifecycle/node_lifecycle_controller.go (monitorNodeHealth, processTaintBaseEviction);
pkg/controller/controller_utils.go (AddOrUpdateTaintOnNode, RemoveTaintOffNode), pkg/controller/util/node/controller_utils.go
(SwapNodeControllerTaint); pkg/controller/ttl/ttl_controller.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import (
    LABEL_ARCH_STABLE,
    LABEL_OS_STABLE,
    NAMESPACE_NODE_LEASE,
    TAINT_EFFECT_NO_EXECUTE,
    TAINT_EFFECT_NO_SCHEDULE,
    TAINT_NODE_DISK_PRESSURE,
    TAINT_NODE_MEMORY_PRESSURE,
    TAINT_NODE_NETWORK_UNAVAILABLE,
    TAINT_NODE_NOT_READY,
    TAINT_NODE_PID_PRESSURE,
    TAINT_NODE_UNREACHABLE,
    TAINT_NODE_UNSCHEDULABLE,
)
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.reconciler import Key, Reconciler

#: The label of nodes, and its value for a node without a kubelet.
KUBELET_LABEL: Final = "fakekube.dev/kubelet"
SILENT: Final = "silent"


def has_kubelet(node: Mapping[str, Any]) -> bool:
    """Reports whether a kubelet runs on this node."""
    return (node["metadata"].get("labels") or {}).get(KUBELET_LABEL) != SILENT


#: (key, effect), which identify a taint of a node.
Taint = tuple[str, str]


def taint_keys(node: Object) -> list[Taint]:
    """Returns the taints of a node."""
    return [(taint["key"], taint.get("effect", "")) for taint in (node.get("spec") or {}).get("taints") or ()]


def swap_taints(client: Client, node: Object, add: Collection[Taint], remove: Collection[Taint]) -> Object:
    """Adds and removes taints, if necessary, and returns the updated node (SwapNodeControllerTaint).

    Raises ApiError, also if the node has been changed meanwhile.
    """
    known = (node.get("spec") or {}).get("taints") or ()
    present = set(taint_keys(node))
    added = [one for one in add if one not in present]
    if not added and not present & set(remove):
        return node
    kept = [taint for taint in known if (taint["key"], taint.get("effect", "")) not in remove]
    now = client.now()
    taints = kept + [{"key": key, "effect": effect, "timeAdded": now} for key, effect in added]
    metadata = node["metadata"]
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"taints": taints or None}}
    return client.patch("nodes", metadata["name"], patch)


_TTL_ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"

#: (minimum of nodes, maximum of nodes, seconds). The ranges overlap, so that the value does not flap.
TTL_BOUNDARIES: Final = ((0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, 10000, 300))


def boundary_step_for(nodes: int, step: int) -> int:
    """Returns the index in `TTL_BOUNDARIES` for so many nodes, given the present one (boundaryStep)."""
    while step < len(TTL_BOUNDARIES) - 1 and nodes > TTL_BOUNDARIES[step][1]:
        step += 1
    while step > 0 and nodes < TTL_BOUNDARIES[step][0]:
        step -= 1
    return step


class TTLController(Reconciler):
    """Annotates nodes with the TTL for the number of nodes; keys are nodes."""

    name: ClassVar[str] = "ttl-controller"
    watches: ClassVar[tuple[str, ...]] = ("nodes",)

    def on_start(self) -> None:
        self._boundary_step = 0
        for node in self.cache.list("nodes"):
            self.enqueue(Key("", node["metadata"]["name"]))

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return old is None or obj is old or _TTL_ANNOTATION not in (obj["metadata"].get("annotations") or {})

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        nodes = list(self.cache.list("nodes"))
        before, self._boundary_step = self._boundary_step, boundary_step_for(len(nodes), self._boundary_step)
        if self._boundary_step != before:
            return [Key("", node["metadata"]["name"]) for node in nodes]
        return () if event_type == "DELETED" else (Key("", obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        node = self.cache.get("nodes", "", key.name)
        value = str(TTL_BOUNDARIES[self._boundary_step][2])
        if node is not None and (node["metadata"].get("annotations") or {}).get(_TTL_ANNOTATION) != value:
            self.client.patch("nodes", key.name, {"metadata": {"annotations": {_TTL_ANNOTATION: value}}})


#: Seconds (--node-monitor-grace-period, --node-startup-grace-period).
_MONITOR_GRACE_PERIOD: Final = 50.0
_STARTUP_GRACE_PERIOD: Final = 60.0
#: Seconds between two NoExecute taints in a zone, and in a large zone that is partially disrupted (--node-eviction-rate,
#: --secondary-node-eviction-rate).
_EVICTION_INTERVAL: Final = 10.0
_SECONDARY_EVICTION_INTERVAL: Final = 100.0
#: A zone with more nodes is large (--large-cluster-size-threshold).
_LARGE_CLUSTER_THRESHOLD: Final = 50
#: The share of nodes that are not ready from which on a zone is disrupted (--unhealthy-zone-threshold).
_UNHEALTHY_ZONE_THRESHOLD: Final = 0.55

#: Condition → status → the key of the taint.
CONDITION_TAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "Ready": {"False": TAINT_NODE_NOT_READY, "Unknown": TAINT_NODE_UNREACHABLE},
    "MemoryPressure": {"True": TAINT_NODE_MEMORY_PRESSURE},
    "DiskPressure": {"True": TAINT_NODE_DISK_PRESSURE},
    "NetworkUnavailable": {"True": TAINT_NODE_NETWORK_UNAVAILABLE},
    "PIDPressure": {"True": TAINT_NODE_PID_PRESSURE},
}
_CONDITION_TAINT_KEYS: Final = frozenset(key for keys in CONDITION_TAINTS.values() for key in keys.values())
#: The status of the condition Ready → the taint that evicts pods.
_NO_EXECUTE_TAINTS: Final[Mapping[str, Taint]] = {
    "False": (TAINT_NODE_NOT_READY, TAINT_EFFECT_NO_EXECUTE),
    "Unknown": (TAINT_NODE_UNREACHABLE, TAINT_EFFECT_NO_EXECUTE),
}
_KUBELET_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")

#: Labels, and the deprecated labels that are kept equal to them (labelReconcileInfo).
_RECONCILED_LABELS: Final = {LABEL_OS_STABLE: "beta.kubernetes.io/os", LABEL_ARCH_STABLE: "beta.kubernetes.io/arch"}


class ZoneState(Enum):
    """How many nodes of a zone are not ready: few, many, or all."""

    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(slots=True)
class _NodeHealth:
    """The last observed heartbeat of a node (nodeHealthData)."""

    probed: float
    """The time of the last change, in seconds of the clock."""
    heartbeat: str | None = None
    has_ready: bool = False


def _get_ready(node: Object) -> Object | None:
    return find_condition(node.get("status") or {}, "Ready")


def condition_taints(node: Object) -> list[Taint]:
    """Returns the NoSchedule taints for the node's conditions and spec.unschedulable."""
    taints = [
        (CONDITION_TAINTS[one["type"]][one["status"]], TAINT_EFFECT_NO_SCHEDULE)
        for one in (node.get("status") or {}).get("conditions") or ()
        if one.get("status") in CONDITION_TAINTS.get(one.get("type", ""), {})
    ]
    if (node.get("spec") or {}).get("unschedulable"):
        taints.append((TAINT_NODE_UNSCHEDULABLE, TAINT_EFFECT_NO_SCHEDULE))
    return taints


def _has_stale_unschedulable_taint(node: Object) -> bool:
    """Reports whether the node has the taint for a cordoned node, but is not cordoned."""
    is_cordoned = bool((node.get("spec") or {}).get("unschedulable"))
    return not is_cordoned and (TAINT_NODE_UNSCHEDULABLE, TAINT_EFFECT_NO_SCHEDULE) in taint_keys(node)


def zone_key(node: Object) -> str:
    """Returns region and zone of a node; "" if it has neither (GetZoneKey)."""
    labels = node["metadata"].get("labels") or {}
    parts = [
        labels.get(f"topology.kubernetes.io/{name}") or labels.get(f"failure-domain.beta.kubernetes.io/{name}") or ""
        for name in ("region", "zone")
    ]
    return ":\x00:".join(parts) if any(parts) else ""


def zone_state(ready: int, not_ready: int) -> ZoneState:
    """Returns the state of a zone with so many nodes (ComputeZoneState)."""
    if ready == 0 and not_ready > 0:
        return ZoneState.FULL
    if not_ready > 2 and not_ready / (ready + not_ready) >= _UNHEALTHY_ZONE_THRESHOLD:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


class NodeLifecycleController(Reconciler):
    """Monitors nodes. Keys are nodes, or pods to mark as not ready."""

    name: ClassVar[str] = "node-lifecycle-controller"
    client_name: ClassVar[str] = "node-controller"
    component: ClassVar[str] = "node-controller"
    watches: ClassVar[tuple[str, ...]] = ("nodes", "leases.coordination.k8s.io", "pods")

    def on_start(self) -> None:
        self._health: dict[str, _NodeHealth] = {}
        self._known: dict[str, str] = {}
        """The registered nodes, with their uids."""
        self._next_eviction: dict[str, float] = {}
        """Zone → the monotonic time from which on the next node of it may be tainted."""
        self._disrupted = False
        """Whether all zones are disrupted."""
        self._deferred: set[str] = set()
        """The nodes that are not cordoned any more, whose taint the scheduler sees first."""
        for node in self.cache.list("nodes"):
            if self._was_registered_before(node):
                self._known[node["metadata"]["name"]] = node["metadata"]["uid"]
            self.enqueue(Key("", node["metadata"]["name"]))

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource == "pods":
            return bool(obj["spec"].get("nodeName")) and (old is None or not old["spec"].get("nodeName"))
        return True

    # --- Changes ------------------------------------------------------------------------------------------------------

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        name = obj["metadata"]["name"]
        if resource == "nodes":
            return (Key("", name),)
        if resource == "pods":
            return self._keys_of_assigned_pod(event_type, obj, old)
        if event_type != "DELETED" and obj["metadata"]["namespace"] == NAMESPACE_NODE_LEASE and name in self._health:
            self._health[name].probed = self.clock.monotonic()
        return ()

    def _keys_of_assigned_pod(self, event_type: str, pod: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        """Returns the key of a pod that was assigned to a node that is not ready."""
        name = pod["spec"].get("nodeName")
        if event_type == "DELETED" or not name or (old is not None and old["spec"].get("nodeName") == name):
            return ()
        node = self.cache.get("nodes", "", name)
        ready = _get_ready(node) if node is not None else None
        if ready is None or ready.get("status") == "True":
            return ()
        metadata = pod["metadata"]
        return (Key(metadata["namespace"], metadata["name"]),)

    # --- One node -----------------------------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> None:
        if key.namespace:
            pod = self.cache.get("pods", key.namespace, key.name)
            if pod is not None:
                self._mark_pod_not_ready(pod)
            return
        node = self.cache.get("nodes", "", key.name)
        if node is None:
            self._remove_node(key.name)
            return
        if self._known.get(key.name) != node["metadata"]["uid"]:
            self._register_node(node)
        if _has_stale_unschedulable_taint(node) and key.name not in self._deferred:  # the scheduler acts first, as in reality
            self._deferred.add(key.name)
            self.enqueue(key)
            return
        self._deferred.discard(key.name)
        observed = (_get_ready(node) or {}).get("status", "Unknown")
        node = self._update_health(node)
        ready = _get_ready(node)
        if ready is not None and ready["status"] != "True" and observed == "True":
            self._record_event(node, "NodeNotReady", f"Node {key.name} status is now: NodeNotReady")
            for pod in self.cache.list("pods"):
                if pod["spec"].get("nodeName") == key.name:
                    self._mark_pod_not_ready(pod)
        node = self._reconcile_no_schedule_taints(self._reconcile_labels(node))
        self._handle_disruption(node)
        if ready is not None:
            self._reconcile_no_execute_taints(node, ready["status"])

    def _was_registered_before(self, node: Object) -> bool:
        """Reports whether the node existed when the cluster was made; it may have changed since."""
        settled_at = self.context.settled_at
        created = self.cache.informer("nodes").creation_revision("", node["metadata"]["name"])
        return settled_at is not None and created is not None and created <= settled_at

    def _register_node(self, node: Object) -> None:
        name = node["metadata"]["name"]
        self._known[name] = node["metadata"]["uid"]
        self._health.pop(name, None)
        self._record_event(node, "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")

    def _remove_node(self, name: str) -> None:
        uid = self._known.pop(name, None)
        self._health.pop(name, None)
        self._deferred.discard(name)
        if uid is not None:
            message = f"Node {name} event: Removing Node {name} from Controller"
            self._record_event({"metadata": {"name": name, "uid": uid}}, "RemovingNode", message)
            self._handle_disruption()

    def _record_event(self, node: Object, reason: str, message: str) -> None:
        metadata = node["metadata"]
        about = {"kind": "Node", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        self.recorder.event(about, "Normal", reason, message)

    # --- Health -------------------------------------------------------------------------------------------------------

    def _update_health(self, node: Object) -> Object:
        """Observes the node's heartbeat; if it is overdue, sets conditions to Unknown. Returns the updated node."""
        name, now = node["metadata"]["name"], self.clock.monotonic()
        ready = _get_ready(node)
        heartbeat = ready.get("lastHeartbeatTime") if ready is not None else None
        health = self._health.get(name)
        if health is None:
            health = self._health[name] = _NodeHealth(now, heartbeat, ready is not None)
            if ready is None:
                created = parse_time(node["metadata"]["creationTimestamp"])
                health.probed = now - max((self.clock.now() - created).total_seconds(), 0.0)
        elif (ready is not None) != health.has_ready or heartbeat != health.heartbeat:
            health.probed, health.heartbeat, health.has_ready = now, heartbeat, ready is not None
        if "kubelet" in self.context.controllers and has_kubelet(node):
            return node
        due = health.probed + (_STARTUP_GRACE_PERIOD if ready is None else _MONITOR_GRACE_PERIOD)
        if now <= due:
            self.requeue_periodically(Key("", name), due - now + 0.001)
            return node
        return self._set_unknown(node)

    def _set_unknown(self, node: Object) -> Object:
        """Sets the conditions that a kubelet maintains to Unknown. Returns the updated node."""
        now = self.client.now()
        status = node.get("status") or {}
        conditions = [self._as_unknown(one, now) for one in status.get("conditions") or ()]
        types = {one["type"] for one in conditions}
        conditions += [
            {
                "type": type_,
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
                "lastTransitionTime": now,
            }
            for type_ in _KUBELET_CONDITIONS
            if type_ not in types
        ]
        if conditions == status.get("conditions"):
            return node
        changed = {**node, "status": {**status, "conditions": conditions}}
        return self.client.update(changed, subresource="status")

    @staticmethod
    def _as_unknown(condition: Object, now: str) -> Object:
        if condition["type"] not in _KUBELET_CONDITIONS or condition["status"] == "Unknown":
            return condition
        return {
            **condition,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        }

    def _mark_pod_not_ready(self, pod: Object) -> None:
        status = pod.get("status") or {}
        condition = find_condition(status, "Ready")
        if condition is None or condition["status"] == "False":
            return
        changed = {**condition, "status": "False", "lastTransitionTime": self.client.now()}
        conditions = [changed if one is condition else one for one in status["conditions"]]
        try:
            self.client.update({**pod, "status": {**status, "conditions": conditions}}, subresource="status")
        except ApiError as error:
            if error.code == 404:
                return
            raise
        self.recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")

    # --- Taints and labels --------------------------------------------------------------------------------------------

    def _reconcile_no_schedule_taints(self, node: Object) -> Object:
        desired = condition_taints(node)
        present = [
            (key, effect)
            for key, effect in taint_keys(node)
            if effect == TAINT_EFFECT_NO_SCHEDULE and (key == TAINT_NODE_UNSCHEDULABLE or key in _CONDITION_TAINT_KEYS)
        ]
        return swap_taints(self.client, node, desired, [one for one in present if one not in desired])

    def _reconcile_no_execute_taints(self, node: Object, ready: str) -> None:
        """Sets the taint for the status of the condition Ready, as the rate allows (processTaintBaseEviction)."""
        present = set(taint_keys(node))
        if ready == "True":
            swap_taints(self.client, node, (), _NO_EXECUTE_TAINTS.values())
            return
        desired = _NO_EXECUTE_TAINTS.get(ready)
        if desired is None:  # the API accepts any status of a condition
            return
        other = _NO_EXECUTE_TAINTS["Unknown" if ready == "False" else "False"]
        if desired in present or (self._disrupted and other not in present):
            return
        if other not in present:
            wait = self._take_eviction(node)
            if wait is None:
                return
            if wait > 0:
                self.requeue_after(Key("", node["metadata"]["name"]), wait)
                return
        swap_taints(self.client, node, (desired,), (other,))

    def _take_eviction(self, node: Object) -> float | None:
        """Takes the next eviction that the rate of the node's zone allows.

        Returns:
            0 if the node may be tainted now, else the seconds until then; None for a small zone that is partially disrupted.
        """
        zone = zone_key(node)
        ready, not_ready = self._count_zones(node)[zone]
        interval = _EVICTION_INTERVAL
        if zone_state(ready, not_ready) is ZoneState.PARTIAL:
            if ready + not_ready <= _LARGE_CLUSTER_THRESHOLD:
                return None
            interval = _SECONDARY_EVICTION_INTERVAL
        now = self.clock.monotonic()
        wait = self._next_eviction.get(zone, 0.0) - now
        if wait <= 0:
            self._next_eviction[zone] = now + interval
        return max(wait, 0.0)

    def _reconcile_labels(self, node: Object) -> Object:
        labels = node["metadata"].get("labels") or {}
        changed = {
            follower: labels[label]
            for label, follower in _RECONCILED_LABELS.items()
            if label in labels and labels.get(follower) != labels[label]
        }
        return self.client.patch("nodes", node["metadata"]["name"], {"metadata": {"labels": changed}}) if changed else node

    # --- Zones --------------------------------------------------------------------------------------------------------

    def _list_nodes(self, *newer: Object) -> list[Object]:
        """Returns all nodes; `newer` ones replace those of the cache."""
        by_name = {node["metadata"]["name"]: node for node in self.cache.list("nodes")}
        return list((by_name | {node["metadata"]["name"]: node for node in newer}).values())

    def _count_zones(self, *newer: Object) -> dict[str, tuple[int, int]]:
        """Returns for each zone how many nodes are ready and how many are not."""
        ready: Counter[str] = Counter()
        not_ready: Counter[str] = Counter()
        for node in self._list_nodes(*newer):
            is_ready = (_get_ready(node) or {}).get("status") == "True"
            (ready if is_ready else not_ready)[zone_key(node)] += 1
        return {zone: (ready[zone], not_ready[zone]) for zone in {*ready, *not_ready}}

    def _handle_disruption(self, *newer: Object) -> None:
        """Stops evictions while all zones are fully disrupted, since then probably the network has failed (handleDisruption)."""
        counts = self._count_zones(*newer)
        disrupted = bool(counts) and all(zone_state(*count) is ZoneState.FULL for count in counts.values())
        if disrupted == self._disrupted:
            return
        self._disrupted = disrupted
        now = self.clock.monotonic()
        for node in self._list_nodes(*newer):
            if disrupted:
                swap_taints(self.client, node, (), _NO_EXECUTE_TAINTS.values())
            else:
                if health := self._health.get(node["metadata"]["name"]):
                    health.probed = now
                self.enqueue(Key("", node["metadata"]["name"]))

"""Watches over nodes: taints those that are not well, and says so where a kubelet does not speak any more.

A node from which nothing has come for 50 seconds (60 if it has never spoken) is unknown: its conditions, and the readiness of
its pods, say so. Conditions become taints NoSchedule at once; the taints NoExecute, which drive pods out, come at most once
in ten seconds in a zone, and not at all while every zone is disrupted.

Invariant: a node that has a kubelet of ours counts as heard of now, as long as kubelets run here.

Specified by: pkg/controller/nodelifecycle/node_lifecycle_controller.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import ClassVar, Final

from fakekube.client import ApiError
from fakekube.controllers.kubelets import has_kubelet
from fakekube.controllers.node_taints import NOT_READY, UNREACHABLE, UNSCHEDULABLE, Taint, swap_taints, taint_keys
from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["NodeLifecycleController", "ZoneState", "condition_taints", "zone_key", "zone_state"]

GRACE: Final = 50.0
STARTUP_GRACE: Final = 60.0
TAINT_EVERY: Final = 10.0
TAINT_EVERY_IN_LARGE: Final = 100.0
LARGE_ZONE: Final = 50
UNHEALTHY_SHARE: Final = 0.55

NO_EXECUTE: Final = "NoExecute"
NO_SCHEDULE: Final = "NoSchedule"

#: condition → status → key of the taint that it means.
CONDITION_TAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_CONDITION_KEYS: Final = frozenset(key for keys in CONDITION_TAINTS.values() for key in keys.values())
_KUBELET_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")

#: Labels that are kept alike: the stable one, and the one that follows it.
_LABELS: Final = {"kubernetes.io/os": "beta.kubernetes.io/os", "kubernetes.io/arch": "beta.kubernetes.io/arch"}


class ZoneState(Enum):
    """How a zone is."""

    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(slots=True)
class _Health:
    """What was last heard of a node."""

    probed: float
    """Seconds of the clock."""
    heartbeat: str | None = None
    has_ready: bool = False


def _ready(node: Object) -> Object | None:
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            found: Object = condition
            return found
    return None


def condition_taints(node: Object) -> list[Taint]:
    """The taints NoSchedule that a node should have, by its conditions and by what its spec says."""
    taints = [
        (CONDITION_TAINTS[one["type"]][one["status"]], NO_SCHEDULE)
        for one in (node.get("status") or {}).get("conditions") or ()
        if one.get("status") in CONDITION_TAINTS.get(one.get("type", ""), {})
    ]
    if (node.get("spec") or {}).get("unschedulable"):
        taints.append((UNSCHEDULABLE, NO_SCHEDULE))
    return taints


def _is_uncordoned(node: Object) -> bool:
    """Has the node a taint left that it got when it was cordoned?"""
    return not (node.get("spec") or {}).get("unschedulable") and (UNSCHEDULABLE, NO_SCHEDULE) in taint_keys(node)


def zone_key(node: Object) -> str:
    """Region and zone of a node; "" if it has neither."""
    labels = node["metadata"].get("labels") or {}
    parts = [
        labels.get(f"topology.kubernetes.io/{name}") or labels.get(f"failure-domain.beta.kubernetes.io/{name}") or ""
        for name in ("region", "zone")
    ]
    return ":\x00:".join(parts) if any(parts) else ""


def zone_state(ready: int, not_ready: int) -> ZoneState:
    """How a zone with so many nodes is."""
    if ready == 0 and not_ready > 0:
        return ZoneState.FULL
    if not_ready > 2 and not_ready / (ready + not_ready) >= UNHEALTHY_SHARE:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


class NodeLifecycleController(Reconciler):
    """Keys are names of nodes."""

    name: ClassVar[str] = "node-lifecycle-controller"
    client_name: ClassVar[str] = "node-controller"
    component: ClassVar[str] = "node-controller"
    watches: ClassVar[tuple[str, ...]] = ("nodes", "leases.coordination.k8s.io", "pods")

    def started(self) -> None:
        self._health: dict[str, _Health] = {}
        self._known: dict[str, str] = {}
        self._next_taint: dict[str, float] = {}
        self._disrupted = False
        self._put_off: set[str] = set()
        for node in self.cache.list("nodes"):
            if self._was_registered(node):
                self._known[node["metadata"]["name"]] = node["metadata"]["uid"]
            self.enqueue(Key("", node["metadata"]["name"]))

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        if resource == "pods":
            return bool(obj["spec"].get("nodeName")) and (old is None or not old["spec"].get("nodeName"))
        return True

    # ------------------------------------------------------------ changes

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        name = obj["metadata"]["name"]
        if resource == "nodes":
            return (Key("", name),)
        if resource == "pods":
            return self._assigned(event_type, obj, old)
        if event_type != "DELETED" and obj["metadata"]["namespace"] == "kube-node-lease" and name in self._health:
            self._health[name].probed = self.clock.monotonic()
        return ()

    def _assigned(self, event_type: str, pod: Object, old: Object | None) -> Iterable[Key]:
        """A pod that comes to a node that is not ready is not ready either."""
        name = pod["spec"].get("nodeName")
        if event_type == "DELETED" or not name or (old is not None and old["spec"].get("nodeName") == name):
            return ()
        node = self.cache.get("nodes", "", name)
        ready = _ready(node) if node is not None else None
        if ready is None or ready.get("status") == "True":
            return ()
        metadata = pod["metadata"]
        return (Key(metadata["namespace"], metadata["name"]),)

    # ------------------------------------------------------------ one node

    def reconcile(self, key: Key) -> None:
        if key.namespace:
            pod = self.cache.get("pods", key.namespace, key.name)
            if pod is not None:
                self._mark_not_ready(pod)
            return
        node = self.cache.get("nodes", "", key.name)
        if node is None:
            self._forget(key.name)
            return
        if self._known.get(key.name) != node["metadata"]["uid"]:
            self._register(node)
        if _is_uncordoned(node) and key.name not in self._put_off:  # the scheduler is quicker
            self._put_off.add(key.name)
            self.enqueue(key)
            return
        self._put_off.discard(key.name)
        observed = (_ready(node) or {}).get("status", "Unknown")
        node = self._probe(node)
        ready = _ready(node)
        if ready is not None and ready["status"] != "True" and observed == "True":
            self._say_node(node, "NodeNotReady", f"Node {key.name} status is now: NodeNotReady")
            for pod in self.cache.list("pods"):
                if pod["spec"].get("nodeName") == key.name:
                    self._mark_not_ready(pod)
        node = self._taint_by_conditions(self._reconcile_labels(node))
        self._see_zones(node)
        if ready is not None:
            self._taint_no_execute(node, ready["status"])

    def _was_registered(self, node: Object) -> bool:
        """Was the node there when the cluster was made?"""
        settled_at = self.context.settled_at
        return settled_at is not None and int(node["metadata"]["resourceVersion"]) <= settled_at

    def _register(self, node: Object) -> None:
        name = node["metadata"]["name"]
        self._known[name] = node["metadata"]["uid"]
        self._health.pop(name, None)
        self._say_node(node, "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")

    def _forget(self, name: str) -> None:
        uid = self._known.pop(name, None)
        self._health.pop(name, None)
        if uid is not None:
            message = f"Node {name} event: Removing Node {name} from Controller"
            self._say_node({"metadata": {"name": name, "uid": uid}}, "RemovingNode", message)
            self._see_zones()

    def _say_node(self, node: Object, reason: str, message: str) -> None:
        metadata = node["metadata"]
        about = {"kind": "Node", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        self.recorder.event(about, "Normal", reason, message)

    # ------------------------------------------------------------ health

    def _probe(self, node: Object) -> Object:
        """Note what the node says; if it has been silent for too long, say so in its status. Returns the node as it is then."""
        name, now = node["metadata"]["name"], self.clock.monotonic()
        ready = _ready(node)
        heartbeat = ready.get("lastHeartbeatTime") if ready is not None else None
        health = self._health.get(name)
        if health is None:
            health = self._health[name] = _Health(now, heartbeat, ready is not None)
            if ready is None:
                created = datetime.fromisoformat(node["metadata"]["creationTimestamp"])
                health.probed = now - max((self.clock.now() - created).total_seconds(), 0.0)
        elif (ready is not None) != health.has_ready or heartbeat != health.heartbeat:
            health.probed, health.heartbeat, health.has_ready = now, heartbeat, ready is not None
        if "kubelet" in self.context.controllers and has_kubelet(node):
            return node
        due = health.probed + (STARTUP_GRACE if ready is None else GRACE)
        if now <= due:
            self.requeue_periodically(Key("", name), due - now + 0.001)
            return node
        return self._set_unknown(node)

    def _set_unknown(self, node: Object) -> Object:
        now = self.client.now()
        status = node.get("status") or {}
        conditions = [self._unknown(one, now) for one in status.get("conditions") or ()]
        there = {one["type"] for one in conditions}
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
            if type_ not in there
        ]
        if conditions == status.get("conditions"):
            return node
        changed = {**node, "status": {**status, "conditions": conditions}}
        return self.client.update(changed, subresource="status")

    @staticmethod
    def _unknown(condition: Object, now: str) -> Object:
        if condition["type"] not in _KUBELET_CONDITIONS or condition["status"] == "Unknown":
            return condition
        return {
            **condition,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        }

    def _mark_not_ready(self, pod: Object) -> None:
        status = pod.get("status") or {}
        for condition in status.get("conditions") or ():
            if condition["type"] == "Ready" and condition["status"] != "False":
                changed = {**condition, "status": "False", "lastTransitionTime": self.client.now()}
                conditions = [changed if one is condition else one for one in status["conditions"]]
                try:
                    self.client.update({**pod, "status": {**status, "conditions": conditions}}, subresource="status")
                except ApiError as error:
                    if error.code == 404:
                        return
                    raise
                self.recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")

    # ------------------------------------------------------------ taints and labels

    def _taint_by_conditions(self, node: Object) -> Object:
        wanted = condition_taints(node)
        there = [
            (key, effect)
            for key, effect in taint_keys(node)
            if effect == NO_SCHEDULE and (key == UNSCHEDULABLE or key in _CONDITION_KEYS)
        ]
        return swap_taints(self.client, node, wanted, [one for one in there if one not in wanted])

    def _taint_no_execute(self, node: Object, ready: str) -> None:
        name = node["metadata"]["name"]
        both = {"False": (NOT_READY, NO_EXECUTE), "Unknown": (UNREACHABLE, NO_EXECUTE)}
        there = set(taint_keys(node))
        if ready == "True":
            swap_taints(self.client, node, (), both.values())
            return
        wanted = both[ready]
        other = both["Unknown" if ready == "False" else "False"]
        if wanted in there or (self._disrupted and other not in there):
            return
        if other not in there:
            wait = self._wait_for_turn(node)
            if wait is None:
                return
            if wait > 0:
                self.requeue_after(Key("", name), wait)
                return
        swap_taints(self.client, node, (wanted,), (other,))

    def _wait_for_turn(self, node: Object) -> float | None:
        """Seconds until the node may be tainted: 0 takes the turn of its zone; None while that is half disrupted."""
        zone = zone_key(node)
        ready, not_ready = self._count(node)[zone]
        every = TAINT_EVERY
        if zone_state(ready, not_ready) is ZoneState.PARTIAL:
            if ready + not_ready <= LARGE_ZONE:
                return None
            every = TAINT_EVERY_IN_LARGE
        now = self.clock.monotonic()
        wait = self._next_taint.get(zone, 0.0) - now
        if wait <= 0:
            self._next_taint[zone] = now + every
        return max(wait, 0.0)

    def _reconcile_labels(self, node: Object) -> Object:
        labels = node["metadata"].get("labels") or {}
        changed = {
            follower: labels[label]
            for label, follower in _LABELS.items()
            if label in labels and labels.get(follower) != labels[label]
        }
        return self.client.patch("nodes", node["metadata"]["name"], {"metadata": {"labels": changed}}) if changed else node

    # ------------------------------------------------------------ zones

    def _nodes(self, *newer: Object) -> list[Object]:
        """All nodes; of some a newer version is known than the cache has."""
        by_name = {node["metadata"]["name"]: node for node in self.cache.list("nodes")}
        return list((by_name | {node["metadata"]["name"]: node for node in newer}).values())

    def _count(self, *newer: Object) -> dict[str, tuple[int, int]]:
        """How many nodes of each zone are ready, and how many are not."""
        ready: Counter[str] = Counter()
        not_ready: Counter[str] = Counter()
        for node in self._nodes(*newer):
            is_ready = (_ready(node) or {}).get("status") == "True"
            (ready if is_ready else not_ready)[zone_key(node)] += 1
        return {zone: (ready[zone], not_ready[zone]) for zone in {*ready, *not_ready}}

    def _see_zones(self, *newer: Object) -> None:
        """While every zone is fully disrupted, nobody is driven out: it is more likely that the network is broken."""
        counts = self._count(*newer)
        disrupted = bool(counts) and all(zone_state(*count) is ZoneState.FULL for count in counts.values())
        if disrupted == self._disrupted:
            return
        self._disrupted = disrupted
        now = self.clock.monotonic()
        for node in self._nodes(*newer):
            if disrupted:
                swap_taints(self.client, node, (), ((NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)))
            else:
                if health := self._health.get(node["metadata"]["name"]):
                    health.probed = now
                self.enqueue(Key("", node["metadata"]["name"]))

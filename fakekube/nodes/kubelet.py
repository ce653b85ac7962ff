"""The kubelets of all nodes: they make nodes ready, and run and remove the pods that are bound to them.

A pod without a plan is ready at once; a pod of a Job then succeeds at once; a deleted pod stops and is removed at once. Later
changes of its status by others are kept.

Invariant: only pods on existing nodes with a kubelet are changed.

Specified by: pkg/kubelet/kubelet.go, pkg/kubelet/status/status_manager.go; for pods without a plan kwok's stages node-fast,
node-heartbeat-with-lease and pod-fast.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from fakekube.apis.validation.objectmeta import has_condition
from fakekube.apis.well_known import LABEL_OS_STABLE, TERMINAL_POD_PHASES
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.node_lifecycle import has_kubelet
from fakekube.controllers.reconciler import Key
from fakekube.nodes.addresses import Addresses, AddressesExhausted
from fakekube.nodes.allocation import AllocationManager
from fakekube.nodes.container_events import record_container_events, starting_events, stopping_event
from fakekube.nodes.container_lifecycle import Commands
from fakekube.nodes.images.image import Image
from fakekube.nodes.kubelet_node_status import NodeStatuses, extended_resources, internal_ip, is_ready
from fakekube.nodes.node_state import Exit, state_of
from fakekube.nodes.plans import PlanError, PodPlan, plan_from_annotations
from fakekube.nodes.pod_status import completed_status, is_of_job, observed_status, ready_status, stopped_status
from fakekube.nodes.pod_workers import PodWorkers
from fakekube.nodes.prober import Probes
from fakekube.nodes.rules import RULES
from fakekube.nodes.running_pods import has_other_images, sync_ephemeral_containers
from fakekube.nodes.status_manager import StatusManager

if TYPE_CHECKING:
    from fakekube.nodes.pod_certificates import PodCertificates

#: Seconds between two syncs of a node, and between two looks at the storage of a pod.
SYNC_EVERY: Final = 10.0
#: While a test advances the clock over hours, nodes are synced at increasing intervals, up to so many seconds.
MAX_SYNC_EVERY: Final = 3600.0
#: Real seconds: syncs that follow faster belong to one advance of the clock.
ONE_ADVANCE: Final = 0.2

EVICTED: Final = "Evicted"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"


class Kubelet(StatusManager):
    """All kubelets of a cluster. Keys without a namespace are nodes, others are pods."""

    name: ClassVar[str] = "kubelet"
    program: ClassVar[str] = "kubelet"
    client_name: ClassVar[str] = "kubelet"
    watches: ClassVar[tuple[str, ...]] = ("nodes", "pods")

    def on_start(self) -> None:
        self._state = state_of(self.context)
        self._addresses = Addresses(seeded=self._state.seeded)
        self._node_statuses = NodeStatuses(self, self._addresses)
        self._on_node: dict[str, set[Key]] = {}
        """Node → the pods that are bound to it."""
        self._intervals: dict[str, tuple[float, float]] = {}
        """See `_next_interval`: the present interval, and the real time at which it began."""
        self._due: dict[tuple[str, bool], float] = {}
        """Uid of a pod, and whether it is deleted → when the kubelet starts or removes it, by the pace of the cluster."""
        self._commands = Commands(self)
        self._workers = PodWorkers(
            self.clock,
            self.recorder,
            self._write_planned_status,
            self._commands.containers_with_command,
            self._commands.obstacles,
            start=self._commands.start_before_status,
            look_after=lambda: self._pace,
            image_of=self._image_of,
            minor=self.context.emulation.minor,
        )
        self._probes = Probes(self, self._commands, self._workers)
        self._certificates: PodCertificates | None = None
        self._allocation = AllocationManager(self, self._workers, self._on_node)
        for node in self.cache.list("nodes"):
            self._hold_node_addresses(node)
            self.enqueue(Key("", node["metadata"]["name"]))
        for pod in self.cache.list("pods"):
            for key in self._keys_of_pod("ADDED", pod):
                self.enqueue(key)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource == "nodes" or bool(obj["spec"].get("nodeName"))

    # --- Events -------------------------------------------------------------------------------------------------------

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == "pods":
            return self._keys_of_pod(event_type, obj)
        if resource != "nodes":  # a PodCertificateRequest
            return (Key(obj["metadata"]["namespace"], obj["spec"]["podName"]),)
        name = obj["metadata"]["name"]
        if event_type == "DELETED":
            self._addresses.release(f"node/{name}")
            self._node_statuses.forget(name)
            return ()
        self._hold_node_addresses(obj)
        if old is not None and has_kubelet(old) == has_kubelet(obj) and is_ready(obj):
            return (Key("", name),) if extended_resources(obj) else ()
        return (Key("", name), *self._on_node.get(name, ()))

    def _keys_of_pod(self, event_type: str, obj: StoredObject) -> Iterable[Key]:
        """Takes note of a change of a pod. Returns the pods to sync."""
        metadata, node = obj["metadata"], obj["spec"].get("nodeName")
        if not node:
            return ()
        key = Key(metadata["namespace"], metadata["name"])
        pods = self._on_node.setdefault(node, set())
        if event_type == "DELETED":
            pods.discard(key)
            if not pods:
                del self._on_node[node]
            self._forget_pod(metadata["uid"])
            self._allocation.forget(node, key)
            return self._allocation.pods_with_pending_resize(node)
        pods.add(key)
        status = obj.get("status") or {}
        if status.get("podIP") and not obj["spec"].get("hostNetwork"):
            for ip in status.get("podIPs") or ():
                self._addresses.hold(metadata["uid"], ip["ip"])
        return (key, *self._allocation.pods_with_pending_resize(node))

    def _forget_pod(self, uid: str) -> None:
        """Releases the addresses of a deleted pod, and drops what is remembered of it."""
        self._addresses.release(uid)
        self.context.scheduled.discard(uid)
        self._intervals.pop(uid, None)
        self._workers.forget(uid)
        if self._certificates is not None:
            self._certificates.forget(uid)
        for is_deleted in (False, True):
            self._due.pop((uid, is_deleted), None)
        self._commands.forget(uid)
        self._probes.forget(uid)
        self._state.take_exits(uid)

    def _hold_node_addresses(self, node: StoredObject) -> None:
        for one in (node.get("status") or {}).get("addresses") or ():
            if one["type"] == "InternalIP":
                self._addresses.hold(f"node/{node['metadata']['name']}", one["address"])

    # --- Nodes --------------------------------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> None:
        if key == RULES:
            for keys in self._on_node.values():
                for one in keys:
                    self.enqueue(one)
        elif key.namespace:
            self._reconcile_pod(key)
        elif (node := self.cache.get("nodes", "", key.name)) is not None and has_kubelet(node):
            self._node_statuses.sync(node, is_staged="nodes" in self._state.staged)
            self.requeue_periodically(key, self._next_interval(key.name))
        else:
            self._node_statuses.forget(key.name)

    def _next_interval(self, name: str) -> float:
        """Returns the seconds until something periodic is done again; they increase while a held clock is advanced over hours.

        Args:
            name: a node, which is synced, or the uid of a pod, whose storage is looked at.
        """
        real = time.monotonic()
        interval, last = self._intervals.get(name, (SYNC_EVERY, 0.0))
        in_one_advance = self.clock.held and (self._state.seeded or real - last < ONE_ADVANCE)
        interval = min(interval * 2, MAX_SYNC_EVERY) if in_one_advance else SYNC_EVERY
        self._intervals[name] = (interval, real)
        return interval

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def _reconcile_pod(self, key: Key) -> None:
        pod = self.cache.get("pods", key.namespace, key.name)
        node = self.cache.get("nodes", "", pod["spec"].get("nodeName") or "") if pod is not None else None
        if pod is None or node is None or not has_kubelet(node) or "pods" in self._state.staged:
            return
        if self._is_early(key, pod):
            return
        status = pod.get("status") or {}
        fits = not _is_new(pod) or pod["metadata"]["uid"] in self.context.scheduled
        if (not fits or _may_be_forbidden(pod)) and self._reject(key, pod, node, fits=fits):
            return
        if status.get("startTime"):
            self.context.scheduled.discard(pod["metadata"]["uid"])
        if has_certificates(pod) and "deletionTimestamp" not in pod["metadata"]:
            self._sync_certificates(key, pod, node)
        exits = self._state.take_exits(pod["metadata"]["uid"])
        try:
            self._sync_pod(key, pod, node, exits)
        except Exception:  # a status may not have been written
            for one in exits:
                self._state.add_exit(pod["metadata"]["uid"], one)
            raise

    def _sync_pod(self, key: Key, pod: Object, node: Object, exits: Sequence[Exit]) -> None:
        """Does what is due for a pod that its node has admitted (syncPod, syncTerminatingPod)."""
        status, plan = pod.get("status") or {}, self._plan_of(pod)
        if "deletionTimestamp" in pod["metadata"]:
            if any((took := self._commands.stop(pod)).values()):
                self._workers.delay_stop(pod, took)
        else:
            if status.get("phase") == "Running":
                if has_other_images(pod) and pod["metadata"]["uid"] not in self._workers:
                    self._workers.adopt(pod, plan)
                pod, exits = sync_ephemeral_containers(self, pod, exits)
            if status.get("phase") in ("Pending", "Running") and status.get("containerStatuses"):
                pod, restarts = self._allocation.sync(key, pod, node)
                exits = [*exits, *restarts]
            if (observed := observed_status(pod)) is not None:
                pod = self.patch_status("pods", pod, observed, manager="kubelet")
            self._commands.start(pod)
        if plan is not None or exits or pod["metadata"]["uid"] in self._workers:
            self._run_with_plan(key, pod, node, plan, exits)
        elif "deletionTimestamp" in pod["metadata"]:
            self._stop_at_once(pod)
            self._delete_pod(pod)
        elif status.get("phase", "Pending") == "Pending" and not has_condition(status, "Ready"):
            self._run_at_once(pod, node)
        elif status.get("phase") == "Running" and is_of_job(pod):
            status = completed_status(pod, self.client.now())
            self.patch_status("pods", pod, status | self._allocation.resources_to_write(pod, status["phase"]))
        if pod["spec"].get("activeDeadlineSeconds") is not None:
            self._check_deadline(key, pod, node)
        if status.get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"] and _limits_local_storage(pod):
            self._check_local_storage(key, pod, node)

    def _sync_certificates(self, key: Key, pod: Object, node: Object) -> None:
        if self._certificates is None:
            from fakekube.nodes.pod_certificates import PodCertificates

            self._certificates = PodCertificates(self)
        is_issued, wait = self._certificates.sync(pod, node)
        if is_issued:
            self._workers.retry(pod["metadata"]["uid"])
        if wait is not None:
            self.requeue_periodically(key, wait)

    def _is_early(self, key: Key, pod: Object) -> bool:
        """Reports whether the cluster's pace lets the kubelet wait for a pod that is new or newly deleted; it is requeued."""
        pace = self._pace
        deleted = "deletionTimestamp" in pod["metadata"]
        if not pace or not (deleted or not (pod.get("status") or {}).get("startTime")):
            return False
        now, uid = self.clock.monotonic(), pod["metadata"]["uid"]
        due = self._due.setdefault((uid, deleted), now + pace)
        if due <= now:
            return False
        self.requeue_after(key, due - now)
        return True

    def _reject(self, key: Key, pod: Object, node: Object, *, fits: bool) -> bool:
        """Fails a pod that does not fit its node, unless the scheduler has found that it `fits`. Returns whether it did."""
        from fakekube.nodes.admission import forbid_operating_system, forbid_sysctls, rejected_status, rejection

        found = forbid_sysctls(pod) or forbid_operating_system(pod)
        if found is None and not fits:
            keys = [one for one in self._on_node.get(node["metadata"]["name"], ()) if one != key]
            found = rejection(pod, node, [other for one in keys if (other := self.cache.get("pods", *one)) is not None])
        if found is None:
            return False
        self.record(pod, "Warning", found.reason, found.message)
        self.patch_status("pods", pod, rejected_status(pod, found, self.client.now()), manager="kubelet")
        return True

    def _check_deadline(self, key: Key, pod: Object, node: Object) -> None:
        """Fails a pod that has been active for longer than activeDeadlineSeconds."""
        status = pod.get("status") or {}
        if status.get("phase") in TERMINAL_POD_PHASES or not status.get("startTime") or "deletionTimestamp" in pod["metadata"]:
            return
        active = (self.clock.now() - parse_time(status["startTime"])).total_seconds()
        left = pod["spec"]["activeDeadlineSeconds"] - active
        if left > 0:
            self.requeue_after(key, left)
        elif (found := self._addresses_for(pod, node)) is not None:
            self.recorder.event(pod, "Normal", DEADLINE_EXCEEDED, DEADLINE_MESSAGE, host=pod["spec"]["nodeName"])
            self._workers.fail(pod, found, DEADLINE_EXCEEDED, DEADLINE_MESSAGE)

    def _check_local_storage(self, key: Key, pod: Object, node: Object) -> None:
        """Evicts a pod whose programs have written more than it may."""
        from fakekube.nodes.admission import find_excess

        uid = pod["metadata"]["uid"]
        runtime = self._state.made_runtime
        sandbox = None if runtime is None else runtime.find_sandbox(uid)
        message = "" if sandbox is None else find_excess(pod, sandbox)
        if not message:
            self.requeue_periodically(key, self._next_interval(uid))
        elif (found := self._addresses_for(pod, node)) is not None:
            self.recorder.event(pod, "Warning", EVICTED, message, host=pod["spec"]["nodeName"])
            self._workers.fail(pod, found, EVICTED, message)

    def _plan_of(self, pod: Object) -> PodPlan | None:
        """Returns the plan from the pod's annotations, or else from rules; None if there is neither.

        A pod whose commands are run has an empty plan. Invalid annotations are ignored, after an event.
        """
        try:
            plan = plan_from_annotations(pod)
        except PlanError as error:
            self.recorder.event(pod, "Warning", "InvalidAnnotation", str(error), host=pod["spec"].get("nodeName", ""))
            plan = None
        rules = self._state.rules
        if plan is None and rules is not None:
            plan = rules.plan_for(pod)
        if plan is None:
            is_told = None if rules is None else partial(rules.has_behaviour, pod)
            plan = self._state.known_images().plan_of_failures(pod, is_told)
            plan = plan or (PodPlan() if self._commands.containers_with_command(pod) else None)
            if plan is None and not (pod.get("status") or {}).get("startTime") and self._commands.is_obstructed(pod):
                plan = PodPlan()
        return plan

    def _run_at_once(self, pod: Object, node: Object) -> None:
        """Writes the status of a pod without a plan whose containers run."""
        found = self._addresses_for(pod, node)
        if found is not None:
            if self._has_pace:
                containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
                events = (event for one in containers for event in starting_events(one, self.context.emulation.minor))
                record_container_events(self.recorder, pod, events)
            status = ready_status(pod, *found, self.client.now())
            self.patch_status("pods", pod, status | self._allocation.resources_to_write(pod, status["phase"]))

    @property
    def _pace(self) -> float:
        """The seconds that a step takes by the cluster's pace; none while the clock is held."""
        return 0.0 if self.clock.held else self.context.services.pace

    @property
    def _has_pace(self) -> bool:
        """Whether pods take time to start, as in `serve`, where people look at their events; in tests events would take time."""
        return bool(self.context.services.pace)

    def _run_with_plan(self, key: Key, pod: Object, node: Object, plan: PodPlan | None, exits: Sequence[Exit]) -> None:
        uid = pod["metadata"]["uid"]
        deleted = "deletionTimestamp" in pod["metadata"]
        if (pod.get("status") or {}).get("phase") in TERMINAL_POD_PHASES and (uid not in self._workers or not deleted):
            if deleted:
                self._delete_pod(pod)
            return
        found = self._addresses_for(pod, node)
        if found is None:
            return
        waits = [self._workers.sync(pod, plan, found, exits), self._probes.sync(pod, found)]
        if deleted and self._workers.is_done(uid):
            self._delete_pod(pod)
        elif any(wait is not None for wait in waits):
            self.requeue_after(key, min(wait for wait in waits if wait is not None))

    def _write_planned_status(self, pod: Object, status: Object) -> Object:
        try:
            status = status | self._allocation.resources_to_write(pod, status["phase"])
            return self.patch_status("pods", pod, status, manager="kubelet")
        finally:
            self._commands.status_written(pod)

    def _addresses_for(self, pod: Object, node: Object) -> tuple[str, list[str]] | None:
        """Returns the addresses of node and pod. If none is free, records an event, requeues the pod and returns None."""
        host = internal_ip(node) or self._addresses.node(node["metadata"]["name"])
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
        held = self._addresses.list_for(pod["metadata"]["uid"])
        if held:
            return held
        spec = node.get("spec") or {}
        cidrs = tuple(spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else ()))
        return self._addresses.pod(pod["metadata"]["uid"], cidrs)

    def _stop_at_once(self, pod: Object) -> None:
        """Writes the status of a deleted pod without a plan whose containers have stopped: clients see that it is unready.

        A pod that finalizers hold keeps its status, as with kwok.
        """
        status = None if pod["metadata"].get("finalizers") else stopped_status(pod, self.client.now(), self._image_of)
        if status is not None:
            if self._has_pace:
                running = [one["name"] for one in pod["status"].get("containerStatuses") or () if "running" in one["state"]]
                record_container_events(self.recorder, pod, map(stopping_event, running))
            self.patch_status("pods", pod, status)

    def _image_of(self, name: str) -> Image | None:
        """Returns the known image of a name; None if there is none."""
        return self._state.known_images().find(name)

    def _delete_pod(self, pod: Object) -> None:
        """Deletes a pod whose containers have stopped, unless only finalizers keep it."""
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


def has_certificates(pod: Object) -> bool:
    """Reports whether a volume of the pod has certificates for which its kubelet asks."""
    return any(
        "podCertificate" in source
        for volume in pod["spec"].get("volumes") or ()
        if "projected" in volume
        for source in volume["projected"].get("sources") or ()
    )


def _limits_local_storage(pod: Object) -> bool:
    """Reports whether the pod, or a volume of it that is not in memory, may have a limited number of bytes."""
    volumes = (volume.get("emptyDir") or {} for volume in pod["spec"].get("volumes") or ())
    containers = ((one.get("resources") or {}).get("limits") or {} for one in pod["spec"]["containers"])
    limited = any(one.get("sizeLimit") and one.get("medium") != "Memory" for one in volumes)
    return limited or any("ephemeral-storage" in limits for limits in containers)


def _may_be_forbidden(pod: Object) -> bool:
    """Reports whether a pod that has not started sets kernel parameters, or names an operating system."""
    spec = pod["spec"]
    sets_sysctls = bool((spec.get("securityContext") or {}).get("sysctls"))
    names_system = "os" in spec or LABEL_OS_STABLE in (pod["metadata"].get("labels") or ())
    return (sets_sysctls or names_system) and not (pod.get("status") or {}).get("startTime")


def _is_new(pod: Object) -> bool:
    """Reports whether the kubelet of the pod has not seen it."""
    status = pod.get("status") or {}
    is_new = status.get("phase", "Pending") == "Pending" and not status.get("startTime")
    return is_new and "deletionTimestamp" not in pod["metadata"]

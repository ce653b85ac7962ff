"""The scheduler: selects a node for each pending pod, and binds the pod to it.

Events of nodes and pods update the snapshot. The scheduling queue is one work item, which is reconciled while there are active
pods. A pod whose claims have to be bound first is bound when they are.

Invariant: in the snapshot a pod is on the node to which it is bound or assumed to be bound.

`VolumeBinder` binds the claims of a scheduled pod to volumes that the node can access, or starts their provisioning; the
PersistentVolume controller completes the bindings.

The status of a pod is written with strategic merge patches, and its events in events.k8s.io/v1.

The recorder aggregates equal events into a series. An event is equal to an earlier one if all of its fields are, and the
resourceVersion of the object. The second one adds a series to the first; later ones are counted in memory only.

Specified by: pkg/scheduler/{scheduler,schedule_one,eventhandlers}.go, pkg/scheduler/framework/plugins/volumebinding/binder.go
(BindPodVolumes, bindAPIUpdate, checkBindings); pkg/scheduler/util/utils.go (PatchPodStatus), pkg/api/v1/pod/util.go
(UpdatePodCondition), k8s.io/client-go/tools/events/{event_recorder,event_broadcaster}.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import DEFAULT_SCHEDULER_NAME, TERMINAL_POD_PHASES
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_micro_time
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.recorder import generate_event_name, get_or_create_recent, get_reference, subject_of
from fakekube.controllers.scheduler.algorithm import Filters, NoNodesAvailable, run_pre_filter_plugins, schedule_pod
from fakekube.controllers.scheduler.framework import Cycle, Diagnosis, FitError, Lister, PodInfo, SchedulingError, Snapshot
from fakekube.controllers.scheduler.plugins.dynamic_resources import (
    CLAIMS,
    CLASSES,
    SLICES,
    ClaimError,
    DynamicResources,
    pod_claims,
)
from fakekube.controllers.scheduler.plugins.volume import VolumeBinding, claim_names, is_pvc_fully_bound
from fakekube.controllers.scheduler.preemption import NOT_HELPFUL, Candidate, PodNotEligible, preempt
from fakekube.controllers.scheduler.queue import ClusterEvent, SchedulingQueue
from fakekube.controllers.volumes.binding import BOUND_BY_CONTROLLER, SELECTED_NODE

if TYPE_CHECKING:
    from fakekube.controllers.scheduler.claim_binder import ClaimBinder


def condition_patch(pod: StoredObject, type_: str, content: tuple[str, str, str], now: str) -> dict[str, Any] | None:
    """Returns a patch of the status that sets a condition; None if the pod has the condition already.

    Args:
        pod: the pod.
        type_: the type of the condition.
        content: its status, reason and message.
        now: the time of a transition.
    """
    status, reason, message = content
    old = find_condition(pod.get("status") or {}, type_)
    since = now
    if old is not None and old.get("status") == status:
        since = old.get("lastTransitionTime") or now
    condition = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    if old is not None and all(old.get(name) == value for name, value in condition.items()):
        return None
    return {"conditions": [{"lastProbeTime": None, **condition}]}


def patch_status(client: Client, pod: StoredObject, status: Mapping[str, Any]) -> None:
    """Patches the status of a pod, if its uid is still the same. Raises ApiError."""
    metadata = pod["metadata"]
    body = {"metadata": {"uid": metadata["uid"]}, "status": status}
    client.strategic_patch("pods", metadata["name"], body, namespace=metadata["namespace"], subresource="status")


#: Seconds after the last event of a series at which it ends (finishTime).
SERIES_ENDS: Final = 360.0
#: Characters of a note (noteLengthLimit).
NOTE_LIMIT: Final = 1024
ELLIPSIS: Final = " ..."


@dataclass(slots=True)
class _Series:
    """Equal events: the Event object, how many there were, and the monotonic time of the last one."""

    name: str
    namespace: str
    count: int
    last: float


class SeriesRecorder:
    """Writes the events of one component.

    Args:
        client: the client of the component.
        clock: the clock of the cluster.
        controller: the reporting controller, e.g. "default-scheduler".
        instance: the reporting instance.
        numbers: see `Context.event_numbers`.
    """

    def __init__(self, client: Client, clock: Clock, controller: str, instance: str, numbers: Iterator[int]) -> None:
        self._client, self._clock, self._numbers = client, clock, numbers
        self._controller, self._instance = controller, instance
        self._series: OrderedDict[tuple[str, ...], dict[tuple[str, ...], _Series]] = OrderedDict()
        """The series of each object."""

    def event(
        self, regarding: Object, event_type: str, reason: str, action: str, note: str, *, related: Object | None = None
    ) -> None:
        """Records an event about an object. Errors of the API server are ignored."""
        if len(note) > NOTE_LIMIT:
            note = note[: NOTE_LIMIT - len(ELLIPSIS)] + ELLIPSIS
        about = get_reference(regarding)
        key = (event_type, action, reason, note, about.get("resourceVersion", ""))
        series = get_or_create_recent(self._series, subject_of(about), dict)
        now = self._clock.monotonic()
        known = series.get(key)
        if known is not None and now - known.last <= SERIES_ENDS:
            self._increment_series(known, now)
            return
        name = generate_event_name(about["name"], self._clock.now(), self._numbers)
        namespace = about.get("namespace") or "default"
        event = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": self._micro_time_now(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "regarding": about,
            "note": note,
            "type": event_type,
        }
        if related is not None:
            event["related"] = get_reference(related)
        for ended in [one for one, known in series.items() if now - known.last > SERIES_ENDS]:
            del series[ended]
        series[key] = _Series(name, namespace, 1, now)
        with suppress(ApiError):
            self._client.create(event, namespace=namespace)

    def forget(self, obj: StoredObject) -> None:
        """Forgets the series of an object that was deleted."""
        self._series.pop(subject_of(get_reference(obj)), None)

    def _increment_series(self, series: _Series, now: float) -> None:
        series.count += 1
        series.last = now
        if series.count != 2:
            return
        patch = {"series": {"count": 2, "lastObservedTime": self._micro_time_now()}}
        with suppress(ApiError):
            self._client.patch("events.events.k8s.io", series.name, patch, namespace=series.namespace)

    def _micro_time_now(self) -> str:
        return print_micro_time(self._clock.now())


class VolumeBinder:
    """Binds the claims of pods to volumes (BindPodVolumes).

    Args:
        client: writes claims and volumes.
        lister: reads them.
    """

    def __init__(self, client: Client, lister: Lister) -> None:
        self._client, self._lister = client, lister

    def bind(self, filters: Filters, node: str) -> bool:
        """Starts to bind the claims of the cycle's pod. Returns whether all are bound already. Raises ApiError."""
        plugin = next((one for one in filters.plugins if isinstance(one, VolumeBinding)), None)
        found = plugin.volumes.get(node) if plugin is not None else None
        if found is None or not (found.static or found.provisions):
            return True
        for claim, volume in found.static:
            self._bind_volume(claim, volume)
        for claim in found.provisions:
            annotations = {SELECTED_NODE: node}
            metadata = claim["metadata"]
            self._client.patch(
                "persistentvolumeclaims",
                metadata["name"],
                {"metadata": {"annotations": annotations}},
                namespace=metadata["namespace"],
            )
        return False

    def _bind_volume(self, claim: StoredObject, volume: StoredObject) -> None:
        metadata = claim["metadata"]
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }
        patch: dict[str, Any] = {
            "metadata": {"resourceVersion": volume["metadata"]["resourceVersion"]},
            "spec": {"claimRef": reference},
        }
        if volume["spec"].get("claimRef") is None:
            patch["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        self._client.patch("persistentvolumes", volume["metadata"]["name"], patch)

    def is_bound(self, pod: StoredObject) -> bool:
        """Reports whether all claims of a pod are bound."""
        for name, _ in claim_names(pod):
            claim = self._lister.get("persistentvolumeclaims", pod["metadata"]["namespace"], name)
            if claim is None or not is_pvc_fully_bound(claim):
                return False
        return True


QUEUE: Final = Key("", "")
#: The number of pods that are scheduled before other controllers run.
BATCH: Final = 50

#: What the plugin DynamicResources says after filtering of a pod without claims, and of one with claims.
NO_CLAIMS: Final = "no new claims to deallocate"
_NOT_SCHEDULABLE: Final = "still not schedulable"
#: The first minor in which it says nothing.
_SILENT_SINCE: Final = 37
#: The first minor whose scheduler allocates the devices of claims here.
_ALLOCATES_SINCE: Final = 34
#: The post filter message after a PreFilterRejection: no plugin state exists for preemption.
NO_STATE: Final = "not found"

_WATCHED: Final = ("persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io")


def _is_terminal(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in TERMINAL_POD_PHASES


def _waits_for_claims(pod: StoredObject) -> bool:
    """Reports whether a claim is not made yet from its template: the status will name it (DynamicResources.PreEnqueue)."""
    claims = pod["spec"].get("resourceClaims")
    if not claims:
        return False
    from fakekube.controllers.resource_claim import claim_name

    return any(claim_name(pod, one) is None for one in claims)


class Scheduler(Reconciler):
    """kube-scheduler with its default configuration."""

    name: ClassVar[str] = "kube-scheduler"
    program: ClassVar[str] = "kube-scheduler"
    client_name: ClassVar[str] = "scheduler"
    component: ClassVar[str] = DEFAULT_SCHEDULER_NAME
    watches: ClassVar[tuple[str, ...]] = ("nodes", "pods", *_WATCHED)

    def on_start(self) -> None:
        self._snapshot = Snapshot()
        self._queue = SchedulingQueue()
        self._events = SeriesRecorder(
            self.client, self.clock, DEFAULT_SCHEDULER_NAME, f"{DEFAULT_SCHEDULER_NAME}-fakekube", self.context.event_numbers
        )
        self._binder = VolumeBinder(self.client, self.cache)
        emulation = self.context.emulation
        self._minor = emulation.minor
        self._node_declared_features = emulation.enabled("NodeDeclaredFeatures")
        self._has_claims = emulation.enabled("DynamicResourceAllocation")
        self._allocates_devices = self._has_claims and emulation.minor >= _ALLOCATES_SINCE
        self._of_no_claims = f"{NO_CLAIMS}, " if self._has_claims and emulation.minor < _SILENT_SINCE else ""
        self._claims: ClaimBinder | None = None
        """Binds claims, once a pod has some."""
        self._waiting: dict[str, tuple[PodInfo, str]] = {}
        """Uid → a pod whose claims have to be bound first, and its node."""
        self._refused: list[str] = []
        """The uids of pods that could not be bound, and are tried again after a back-off."""
        for node in self.cache.list("nodes"):
            self._snapshot.set_node(node["metadata"]["name"], node)
        for pod in self.cache.list("pods"):
            self._on_pod_changed(pod, None)
        if self._queue:
            self.enqueue(QUEUE)

    def forget(self, obj: StoredObject) -> None:
        super().forget(obj)
        self._events.forget(obj)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource != "pods" or old is None or obj is old:
            return True
        # Updates of the status of a running pod do not matter.
        return (
            obj["spec"] != old["spec"]
            or obj["metadata"].get("labels") != old["metadata"].get("labels")
            or ("deletionTimestamp" in obj["metadata"] or _is_terminal(obj))
        )

    # --- Event handlers -----------------------------------------------------------------------------------------------

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        deleted = event_type == "DELETED"
        if resource == "nodes":
            known = self._snapshot.nodes.get(obj["metadata"]["name"])
            before = old if old is not None else known.node if known is not None else None
            self._snapshot.set_node(obj["metadata"]["name"], None if deleted else obj)
            self._queue.move_all_to_active(ClusterEvent(resource, None if deleted else obj, obj if deleted else before))
        elif resource == "pods":
            if deleted:
                self._on_pod_deleted(obj)
            else:
                self._on_pod_changed(obj, old)
        else:
            if resource == CLAIMS and self._claims is not None:
                self._claims.cache.observe(obj, deleted=deleted)
            self._queue.move_all_to_active(ClusterEvent(resource, None if deleted else obj, obj if deleted else old))
            if resource in ("persistentvolumeclaims", CLAIMS) and self._waiting:
                return [Key("bind", uid) for uid in self._waiting]
        return (QUEUE,) if self._queue else ()

    def _on_pod_changed(self, obj: StoredObject, old: StoredObject | None) -> None:
        uid = obj["metadata"]["uid"]
        spec = obj["spec"]
        if _is_terminal(obj):
            self._on_pod_deleted(obj)
        elif spec.get("nodeName"):
            self._on_assigned_pod_changed(PodInfo(obj), spec["nodeName"], old)
        elif spec.get("schedulerName") == DEFAULT_SCHEDULER_NAME:
            if "deletionTimestamp" in obj["metadata"]:
                self._queue.remove(uid)
            elif not spec.get("schedulingGates") and not _waits_for_claims(obj):
                self._on_pending_pod_changed(PodInfo(obj), old)

    def _on_assigned_pod_changed(self, pod: PodInfo, node: str, old: StoredObject | None) -> None:
        self._queue.remove(pod.uid)
        self._waiting.pop(pod.uid, None)
        before = old if old is not None and old["spec"].get("nodeName") else None
        if before is None or _scheduling_properties_changed(pod.obj, before):
            self._snapshot.set_pod(pod, node)
            self._queue.move_all_to_active(ClusterEvent("pods", pod.obj, before))

    def _on_pending_pod_changed(self, pod: PodInfo, old: StoredObject | None) -> None:
        if pod.uid in self._waiting:
            return
        nominated = (pod.obj.get("status") or {}).get("nominatedNodeName")
        if nominated:
            self._queue.add_nominated_pod(pod, nominated)
        if old is not None and not _scheduling_properties_changed(pod.obj, old) and self._queue.update(pod):
            return
        self._queue.add(pod)

    def _on_pod_deleted(self, obj: StoredObject) -> None:
        uid = obj["metadata"]["uid"]
        self._queue.remove(uid)
        self._waiting.pop(uid, None)
        known = self._snapshot.remove_pod(uid)
        if known is not None:
            self._queue.move_all_to_active(ClusterEvent("pods", None, known.obj))

    # --- Scheduling cycle ---------------------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> None:
        if key.namespace == "bind":
            self._bind_waiting_pod(key.name)
            return
        while self._refused:
            self._queue.activate(self._refused.pop())
        for _ in range(BATCH):
            pod = self._queue.pop()
            if pod is None:
                return
            try:
                self._schedule_one(pod)
            except Exception as error:  # unexpected; the pod must not be lost
                if pod.uid not in self._queue:
                    self._handle_error(pod, error)
                raise
        if self._queue:
            self.enqueue(QUEUE)

    def _schedule_one(self, pod: PodInfo) -> None:
        lister: Lister = self.cache
        has_claims = self._allocates_devices and bool(pod.obj["spec"].get("resourceClaims"))
        if has_claims:
            lister = self._open_claims().cache
            try:
                pod_claims(pod.obj, lister)
            except ClaimError:
                self._queue.add_unschedulable(pod, {DynamicResources.name})
                return
        cycle = Cycle(pod, self._snapshot, lister, self._minor, self._node_declared_features, has_claims)
        try:
            node, filters = schedule_pod(cycle, self._queue.nominated_pods_for_node)
        except NoNodesAvailable as error:
            self._handle_failure(pod, str(error), ())
        except SchedulingError as error:
            self._handle_failure(pod, str(error), (), reason="SchedulerError")
        except FitError as error:
            self._handle_fit_error(cycle, error)
        else:
            self._assume_pod(pod, node, filters)

    def _open_claims(self) -> ClaimBinder:
        """Returns what binds claims; the first call watches what it needs."""
        if self._claims is None:
            from fakekube.controllers.scheduler.claim_binder import AssumeCache, ClaimBinder

            enabled = self.context.emulation.enabled
            has_timestamps = enabled("DRADeviceBindingConditions") and enabled("DRAResourceClaimDeviceStatus")
            self._claims = ClaimBinder(self.client, AssumeCache(self.cache), has_timestamps=has_timestamps)
            for name in (CLAIMS, SLICES, CLASSES):
                self.also_watch(name)
        return self._claims

    def _assume_pod(self, pod: PodInfo, node: str, filters: Filters) -> None:
        """Adds the pod to the node in the snapshot, and starts the binding of its volumes or of the pod itself."""
        self._snapshot.set_pod(pod, node)
        try:
            is_bound = self._binder.bind(filters, node)
            has_devices = self._claims is None or self._claims.bind(filters, pod.obj, node)
            if is_bound and has_devices:
                self._bind_pod(pod, node)
            else:
                self._waiting[pod.uid] = (pod, node)
        except ApiError as error:
            self._handle_binding_error(pod, error)

    def _bind_waiting_pod(self, uid: str) -> None:
        """Binds a pod, if it waits for its claims and all are bound."""
        if uid in self._waiting and self._has_all_claims(self._waiting[uid][0].obj):
            pod, node = self._waiting.pop(uid)
            try:
                self._bind_pod(pod, node)
            except ApiError as error:
                self._handle_binding_error(pod, error)

    def _has_all_claims(self, pod: StoredObject) -> bool:
        """Reports whether all claims of a pod are bound, those of volumes and those of devices."""
        if not self._binder.is_bound(pod):
            return False
        if self._claims is None:
            return True
        try:
            return self._claims.is_ready(pod_claims(pod, self._claims.cache))
        except ClaimError:
            return False

    def _handle_binding_error(self, pod: PodInfo, error: ApiError) -> None:
        """Schedules an assumed pod again, unless it is gone (handleBindingCycleError)."""
        if error.code == 404:
            self._snapshot.remove_pod(pod.uid)
            self._queue.remove(pod.uid)
            return
        self._handle_error(pod, error)
        self.requeue_rate_limited(QUEUE)

    def _handle_error(self, pod: PodInfo, error: Exception) -> None:
        """Removes a pod from the node that was assumed, says why in its status, and schedules it again with the next work."""
        self._snapshot.remove_pod(pod.uid)
        self._refused.append(pod.uid)
        self._handle_failure(pod, str(error), (), reason="SchedulerError")

    def _bind_pod(self, pod: PodInfo, node: str) -> None:
        binding = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": {"kind": "Node", "name": node},
        }
        path = self.client.path(self.client.resource("pods"), pod.namespace, pod.name, "binding")
        self.context.scheduled.add(pod.uid)
        try:
            self.client.call("POST", path, binding)
        except ApiError:
            self.context.scheduled.discard(pod.uid)
            raise
        self._queue.remove(pod.uid)
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self._events.event(dict(pod.obj), "Normal", "Scheduled", "Binding", note)

    # --- Failure ------------------------------------------------------------------------------------------------------

    def _handle_fit_error(self, cycle: Cycle, error: FitError) -> None:
        diagnosis = error.diagnosis
        nominated: str | None = None
        if diagnosis.pre_filter_message:
            if DynamicResources.name in diagnosis.plugins:
                diagnosis.post_filter_message = f"{self._of_no_claims}{_refuse_preemption(error.node_count)}"
            else:
                diagnosis.post_filter_message = NO_STATE if self._has_claims else _refuse_preemption(error.node_count)
        else:
            nominated, diagnosis.post_filter_message = self._run_post_filter(cycle, error)
        self._handle_failure(cycle.pod, str(error), diagnosis.plugins, nominated=nominated)

    def _run_post_filter(self, cycle: Cycle, error: FitError) -> tuple[str | None, str]:
        """Preempts pods. Returns the nominated node ("" for none, None to keep the present one), and the message."""
        budgets = list(self.cache.list("poddisruptionbudgets.policy"))
        try:
            candidate = preempt(run_pre_filter_plugins(cycle), error.diagnosis, budgets, self._queue.nominated_pods_for_node)
        except PodNotEligible as refusal:
            return None, f"{self._about_claims(cycle)}preemption: {refusal}"
        except FitError as refusal:
            return "", f"{self._about_claims(cycle)}preemption: {refusal}"
        except SchedulingError as failure:
            return None, f"preemption: {failure}"
        self._prepare_candidate(cycle.pod, candidate)
        return candidate.node, ""

    def _about_claims(self, cycle: Cycle) -> str:
        """Returns what the plugin DynamicResources says of a pod that no node can run, and a separator."""
        return f"{_NOT_SCHEDULABLE}, " if cycle.has_claims and self._minor < _SILENT_SINCE else self._of_no_claims

    def _prepare_candidate(self, pod: PodInfo, candidate: Candidate) -> None:
        """Deletes the victims, and removes the nominations of pods of lower priority (prepareCandidate)."""
        for victim in candidate.victims:
            message = f"{DEFAULT_SCHEDULER_NAME}: preempting to accommodate a higher priority pod"
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
            note = f"Preempted by pod {pod.uid} on node {candidate.node}"
            self._events.event(dict(victim.obj), "Normal", "Preempted", "Preempting", note, related=dict(pod.obj))
        for other in self._queue.nominated_pods_for_node(candidate.node):
            if other.priority < pod.priority:
                self._queue.add_nominated_pod(other, "")
                patch_status(self.client, other.obj, {"nominatedNodeName": None})

    def _handle_failure(
        self, pod: PodInfo, message: str, plugins: Iterable[str], *, nominated: str | None = None, reason: str = "Unschedulable"
    ) -> None:
        self._queue.add_unschedulable(pod, frozenset(plugins))
        if nominated is not None:
            self._queue.add_nominated_pod(pod, nominated)
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


def _refuse_preemption(nodes: int) -> str:
    """Returns the message of a preemption of which no node can be the place."""
    return f"preemption: {FitError(nodes, Diagnosis(absent=NOT_HELPFUL))}"


def _scheduling_properties_changed(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Reports whether the spec, labels, annotations or deletionTimestamp have changed."""
    return new["spec"] != old["spec"] or any(
        new["metadata"].get(field) != old["metadata"].get(field) for field in ("labels", "annotations", "deletionTimestamp")
    )

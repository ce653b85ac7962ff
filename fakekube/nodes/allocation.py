"""Resizes in place: the kubelet allocates the resources of a resized pod if its node has them, and actuates them.

A resize that does not fit is deferred until pods have left the node; kubelets up to 1.35 call one infeasible that the empty node
would not have. A limit of memory below its usage is allocated, but not actuated, until the usage has sunk.

Invariant: a resize is actuated, or a condition contains why it is not; it never makes the allocated resources of the pods on a
node exceed its allocatable ones.

Specified by: pkg/kubelet/allocation/allocation_manager.go (handlePodResourcesResize), pkg/kubelet/lifecycle/predicate.go,
pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodResizeAction, validateMemoryResizeAction),
pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses), pkg/kubelet/events/resize.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.core.pods.resize import RESIZABLE
from fakekube.apis.core.pods.resources import STATUSES, pod_requests, with_status_resources
from fakekube.apis.core.pods.visitor import is_sidecar
from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import TERMINAL_POD_PHASES
from fakekube.base.golang.strings import aggregate_errors
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.reconciler import Key
from fakekube.nodes.node_state import Exit, state_of
from fakekube.nodes.plans import Run
from fakekube.nodes.pod_resources import POD_LEVEL_RESIZE, cgroup_resources, effective_limits, resources_in_status
from fakekube.nodes.pod_state import KILLED
from fakekube.nodes.pod_status import resources_of
from fakekube.nodes.pod_workers import PodWorkers

if TYPE_CHECKING:
    from fakekube.nodes.status_manager import StatusManager

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"

#: The reason of an event about resizes → the first minor whose kubelets record it.
_EVENTS_SINCE: Final = {"ResizeCompleted": 34, "ResizeStarted": 35, "ResizeError": 35}
#: The last minor in which a resize beyond the capacity of the node is infeasible, and not deferred.
_INFEASIBLE_UNTIL: Final = 35
#: The first minor that compares limits of memory with the usage.
_USAGE_SINCE: Final = 34
#: Seconds between two attempts to actuate a resize (syncFrequency).
_RETRY: Final = 60.0


def is_resized(pod: StoredObject) -> bool:
    """Reports whether the spec of a started pod requests other resources than are allocated and actuated."""
    status = pod.get("status") or {}
    for kind, statuses in STATUSES.items():
        requested = {one["name"]: _set_resources(resources_of(one)) for one in pod["spec"].get(kind) or ()}
        for one in status.get(statuses) or ():
            ended = "terminated" in (one.get("state") or {})
            if not ended and one["name"] in requested and _set_resources(one) != requested[one["name"]]:
                return True
    whole = status.get("resources")
    return (
        bool(pod["spec"].get("resources"))
        and whole is not None
        and resources_in_status(pod["spec"], status.get("phase", ""))["resources"] != whole
    )


def _set_resources(status: StoredObject) -> Object:
    """Returns the fields of a status about resources that are not empty."""
    return {name: status[name] for name in ("allocatedResources", "resources") if status.get(name)}


class Pending(NamedTuple):
    """Why a resize is not allocated."""

    reason: str
    """Deferred or Infeasible."""
    message: str


def why_pending(pod: StoredObject, node: StoredObject, others: Iterable[StoredObject], minor: int) -> Pending | None:
    """Returns why a node has not enough resources for a resized pod; None if it has.

    Args:
        pod: the resized pod.
        node: the node of the pod.
        others: the other pods on the node that have not terminated.
        minor: the minor of the kubelet, e.g. 37.
    """
    wanted = pod_requests(dict(pod))
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    used = [pod_requests(dict(with_status_resources(one))) for one in others]
    lacking: dict[str, Pending] = {}
    for resource in RESIZABLE:
        if resource not in wanted or resource not in allocatable:
            continue
        requested, taken, capacity = (
            sum(one.milli_value() if resource == "cpu" else one.value() for one in amounts)
            for amounts in (
                [wanted[resource]],
                [one[resource] for one in used if resource in one],
                [parse(str(allocatable[resource]))],
            )
        )
        if requested > capacity and minor <= _INFEASIBLE_UNTIL:
            text = f"Node didn't have enough capacity: {resource}, requested: {requested}, capacity: {capacity}"
            lacking["Infeasible"] = Pending("Infeasible", text)  # memory is named before cpu
        elif requested > capacity - taken:
            message = insufficient_resource(resource, requested, taken, capacity)
            lacking.setdefault("Deferred", Pending("Deferred", message))
    return lacking.get("Infeasible") or lacking.get("Deferred")


def insufficient_resource(resource: str, requested: int, used: int, capacity: int) -> str:
    """Returns the message of a pod that a node has not enough of a resource for (InsufficientResourceError.Error)."""
    return f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"


def _condition(pod: StoredObject, type_: str, now: str, reason: str = "", message: str = "") -> Object:
    """Returns a condition of a resize, as an item of a patch: an empty reason or message removes the known one."""
    return {
        "type": type_,
        "status": "True",
        "observedGeneration": _generation(pod),
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason or None,
        "message": message or None,
    }


def resize_message(pod: StoredObject, prefix: str, error: str = "") -> str:
    """Returns the message of an event about a resize."""
    summary: Object = {}
    for kind in ("initContainers", "containers"):
        found = [{"name": one["name"], "resources": one.get("resources") or {}} for one in pod["spec"].get(kind) or ()]
        if found:
            summary[kind] = found
    summary["generation"] = _generation(pod)
    if error:
        summary["error"] = error
    return f"{prefix}: {json.dumps(summary).decode()}"


class _Change(NamedTuple):
    """The resources of a running container before and after a resize, with the limits that it has from its pod."""

    container: StoredObject
    status: StoredObject
    old: StoredObject
    new: StoredObject

    @property
    def changed(self) -> set[str]:
        """The names of the resources whose request or limit differs."""
        return {
            resource
            for side in ("requests", "limits")
            for resource in {**self.old[side], **self.new[side]}
            if self.old[side].get(resource) != self.new[side].get(resource)
        }

    @property
    def restarts(self) -> bool:
        """Whether the container is restarted, as its resizePolicy says."""
        policies = {one["resourceName"]: one["restartPolicy"] for one in self.container.get("resizePolicy") or ()}
        return any(policies.get(one) == "RestartContainer" for one in self.changed)

    @property
    def lower_limit(self) -> int | None:
        """The bytes of a limit of memory that is new or lower; None if it is not."""
        limit = self.new["limits"].get("memory")
        return _bytes(limit) if limit is not None and _is_lower(self.old["limits"].get("memory"), limit) else None


def _bytes(amount: Any) -> int:
    return parse(str(amount)).value()


def _is_lower(old: Any, new: Any) -> bool:
    """Reports whether a limit is new, or lower than the old one."""
    return old is None or _bytes(new) < _bytes(old)


def _changes(pod: StoredObject) -> Iterator[_Change]:
    """Yields the running containers whose resources change."""
    whole = pod["spec"].get("resources")
    actuated = pod["status"].get("resources") if whole else None
    for kind, field in STATUSES.items():
        statuses = {one["name"]: one for one in pod["status"].get(field) or ()}
        for container in pod["spec"].get(kind) or ():
            status = statuses.get(container["name"])
            if status is None or "running" not in (status.get("state") or {}):
                continue
            old, new = ((one.get("resources") or {}).get("requests") or {} for one in (status, container))
            change = _Change(
                container,
                status,
                {"requests": old, "limits": effective_limits(actuated, status.get("resources"))},
                {"requests": new, "limits": effective_limits(whole, container.get("resources"))},
            )
            if change.changed:
                yield change


class AllocationManager:
    """Allocates and actuates the resizes of started pods.

    Args:
        kubelet: the kubelet of the pods.
        workers: the state machines of pods with plans.
        on_node: node → its pods.
    """

    def __init__(self, kubelet: StatusManager, workers: PodWorkers, on_node: Mapping[str, set[Key]]) -> None:
        self._kubelet, self._workers, self._on_node = kubelet, workers, on_node
        self._pending: dict[str, dict[Key, None]] = {}
        """Node → its pods with resizes that are not allocated, in the order in which they have come."""

    @property
    def _minor(self) -> int:
        return self._kubelet.context.emulation.minor

    def pods_with_pending_resize(self, node: str) -> Sequence[Key]:
        """Returns the pods on a node whose resize is deferred or infeasible, in the order in which they are tried again."""
        keys = self._pending.get(node)
        return sorted(keys, key=self._rank) if keys else ()

    def _rank(self, key: Key) -> tuple[int, bool]:
        """Returns the rank of a pod among those with pending resizes (sortPendingResizes)."""
        pod = self._kubelet.cache.get("pods", *key) or {"spec": {}}
        return -(pod["spec"].get("priority") or 0), (pod.get("status") or {}).get("qosClass") != "Guaranteed"

    def forget(self, node: str, key: Key) -> None:
        """Drops a pod of a node from those with pending resizes."""
        keys = self._pending.get(node)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._pending[node]

    def sync(self, key: Key, pod: Object, node: Object) -> tuple[Object, Sequence[Exit]]:
        """Applies the resize of a pod with started containers, if there is one.

        Returns the updated pod, and exits for the containers that it restarts. Raises ApiError.
        """
        if is_resized(pod):
            return self._resize(key, pod, node)
        return (self._clear(key, pod) if _conditions_of(pod) and _runs(pod) else pod), ()

    def resources_to_write(self, pod: Object, phase: str) -> Object:
        """Returns the fields to set in the status of a pod about its resources as a whole, unless a resize is not actuated."""
        return {} if _conditions_of(pod) else self._whole_resources(pod, phase)

    def _resize(self, key: Key, pod: Object, node: Object) -> tuple[Object, Sequence[Exit]]:
        name = node["metadata"]["name"]
        keys = [one for one in self._on_node.get(name, ()) if one != key]
        others = [found for one in keys if (found := self._kubelet.cache.get("pods", *one)) is not None]
        others = [one for one in others if (one.get("status") or {}).get("phase") not in TERMINAL_POD_PHASES]
        pending = why_pending(pod, node, others, self._minor)
        if pending is not None:
            self._pending.setdefault(name, {})[key] = None
            return self._write_pending(pod, pending), ()
        self.forget(name, key)
        changes = list(_changes(pod))
        error = self._memory_error(pod, changes)
        if error:
            self._kubelet.requeue_periodically(key, _RETRY)
            return self._write_error(pod, error), ()
        self._record_start(pod)
        self._workers.resize(pod)
        restarted = [change for change in changes if change.restarts]
        status = self._status_after(pod)
        conditions = {one: _deletion(one) for one in _conditions_of(pod)}
        if restarted:
            conditions[IN_PROGRESS] = _condition(pod, IN_PROGRESS, self._kubelet.client.now())
        if conditions:
            status["conditions"] = list(conditions.values())
        written = self._kubelet.patch_status("pods", pod, status, manager="kubelet")
        if not restarted:
            self._record(written, "Normal", "ResizeCompleted", "Pod resize completed")
        now = self._kubelet.clock.monotonic()
        exits = [Exit(one.container["name"], one.status.get("restartCount", 0), Run(0.0, KILLED), now) for one in restarted]
        return written, exits

    def _record(self, pod: Object, type_: str, reason: str, prefix: str, error: str = "") -> None:
        if self._minor >= _EVENTS_SINCE.get(reason, 0):
            self._kubelet.record(pod, type_, reason, resize_message(pod, prefix, error))

    def _record_start(self, pod: Object) -> None:
        """Records that a resize is allocated, unless it was before."""
        if _present_condition(pod, IN_PROGRESS) is None:
            self._record(pod, "Normal", "ResizeStarted", "Pod resize started")

    def _memory_error(self, pod: Object, changes: Sequence[_Change]) -> str:
        """Returns why limits of memory cannot be lowered: they are below the usage; "" if they can."""
        if self._minor < _USAGE_SINCE or not any("memory" in one.changed or one.restarts for one in changes):
            return ""
        before, after = (cgroup_resources(one)["limits"].get("memory") for one in (_actuated_spec(pod), pod["spec"]))
        limit = _bytes(after) if after is not None and _is_lower(before, after) else None
        lower = {one.container["name"]: found for one in changes if not one.restarts and (found := one.lower_limit) is not None}
        if limit is None and not lower:
            return ""
        usage = self._memory_usage(pod)
        total, errors = sum(usage.values()), []
        if limit is not None and total >= limit:
            errors.append(f"attempting to set pod memory limit ({limit}) below current usage ({total})")
        for name, bound in lower.items():
            if usage.get(name, 0) >= bound:
                errors.append(f'attempting to set container "{name}" memory limit ({bound}) below current usage ({total})')
        return f"cannot decrease memory limits: {aggregate_errors(errors)}" if errors else ""

    def _memory_usage(self, pod: Object) -> dict[str, int]:
        """Returns the bytes that the running containers of a pod use, by name."""
        from fakekube.nodes.runtime.resources import container_usage, running_containers

        runtime = state_of(self._kubelet.context).runtime()
        return {one["name"]: container_usage(runtime, pod, one)["memory"] for one in running_containers(pod)}

    # --- Status -------------------------------------------------------------------------------------------------------

    def _status_after(self, pod: Object) -> Object:
        """Returns the fields to set in the status of a pod when its resize is actuated."""
        status = pod["status"]
        changed: Object = {"observedGeneration": _generation(pod)}
        for kind, field in STATUSES.items():
            resources = {one["name"]: resources_of(one) for one in pod["spec"].get(kind) or ()}
            if any("resources" in one for one in status.get(field) or ()):
                changed[field] = [_with_resources(one, resources.get(one["name"])) for one in status[field]]
        return changed | self._whole_resources(pod, status.get("phase", ""))

    def _whole_resources(self, pod: Object, phase: str) -> Object:
        """Returns the fields to set in the status of a pod about its resources as a whole."""
        if not self._kubelet.context.emulation.enabled(POD_LEVEL_RESIZE):
            return {}
        return _replacing(pod.get("status") or {}, resources_in_status(pod["spec"], phase))

    def _write_pending(self, pod: Object, pending: Pending) -> Object:
        """Writes the condition of a resize that is not allocated, unless it is there. Returns the updated pod."""
        known = _present_condition(pod, PENDING)
        if known is not None and known.get("message") == pending.message:
            return pod
        condition = _condition(pod, PENDING, self._kubelet.client.now(), *pending)
        status = {"observedGeneration": _generation(pod), "conditions": [condition]}
        written = self._kubelet.patch_status("pods", pod, status, manager="kubelet")
        self._record(pod, "Warning", f"Resize{pending.reason}", f"Pod resize {pending.reason}", pending.message)
        return written

    def _write_error(self, pod: Object, error: str) -> Object:
        """Writes the condition of a resize that is allocated and cannot be actuated, unless it is there.

        Returns the updated pod.
        """
        known = _present_condition(pod, IN_PROGRESS)
        if known is not None and known.get("message") == error:
            return pod
        self._record_start(pod)
        status = self._status_after(pod)
        for field in STATUSES.values():
            if field in status:
                status[field] = _allocated_only(pod["status"][field], status[field])
        status.pop("resources", None)
        status["conditions"] = [_condition(pod, IN_PROGRESS, self._kubelet.client.now(), "Error", error)]
        if find_condition(pod["status"], PENDING) is not None:
            status["conditions"].append(_deletion(PENDING))
        written = self._kubelet.patch_status("pods", pod, status, manager="kubelet")
        self._record(pod, "Warning", "ResizeError", "Pod resize error", error)
        return written

    def _clear(self, key: Key, pod: Object) -> Object:
        """Removes the conditions of a resize that was taken back, or whose containers have been restarted."""
        self.forget(pod["spec"].get("nodeName", ""), key)
        known = _conditions_of(pod)
        status = {"conditions": [_deletion(one) for one in known]}
        written = self._kubelet.patch_status("pods", pod, status, manager="kubelet")
        if IN_PROGRESS in known:
            self._record(written, "Normal", "ResizeCompleted", "Pod resize completed")
        return written


def _conditions_of(pod: StoredObject) -> list[str]:
    """Returns the types of the conditions of a resize that a pod has."""
    return [one for one in (PENDING, IN_PROGRESS) if find_condition(pod.get("status") or {}, one) is not None]


def _present_condition(pod: StoredObject, type_: str) -> Object | None:
    """Returns the condition of the present generation of a pod; None if there is none."""
    found = find_condition(pod.get("status") or {}, type_)
    return found if found is not None and found.get("observedGeneration") == _generation(pod) else None


def _generation(pod: StoredObject) -> int:
    generation: int = pod["metadata"].get("generation", 0)
    return generation


def _deletion(type_: str) -> Object:
    """Returns the item of a strategic merge patch that deletes a condition."""
    return {"$patch": "delete", "type": type_}


def _runs(pod: StoredObject) -> bool:
    """Reports whether all containers and sidecars of a pod are running."""
    inits = {one["name"] for one in pod["spec"].get("initContainers") or () if not is_sidecar(one)}
    statuses = (*pod["status"].get("containerStatuses", ()), *pod["status"].get("initContainerStatuses", ()))
    return all("running" in (one.get("state") or {}) for one in statuses if one["name"] not in inits)


def _actuated_spec(pod: StoredObject) -> StoredObject:
    """Returns the spec of a pod with the resources that are actuated."""
    spec = with_status_resources(pod)["spec"]
    return {**spec, "resources": pod["status"].get("resources") or {}} if spec.get("resources") else spec


def _replacing(status: StoredObject, fields: Mapping[str, Any]) -> Object:
    """Returns the fields that differ from those in a status, as a strategic merge patch that replaces their maps."""
    different = {name: value for name, value in fields.items() if status.get(name) != value}
    return {name: {"$patch": "replace", **value} if status.get(name) else value for name, value in different.items()}


def _with_resources(status: StoredObject, resources: StoredObject | None) -> StoredObject:
    """Returns the status of a container with these resources."""
    if resources is None or "resources" not in status:
        return status
    return {**{name: value for name, value in status.items() if name not in ("resources", "allocatedResources")}, **resources}


def _allocated_only(old: Sequence[StoredObject], new: Sequence[StoredObject]) -> list[StoredObject]:
    """Returns the statuses of containers with the new allocated resources, and the old ones that are actuated."""
    return [
        {**changed, "resources": known["resources"]} if "resources" in known else known
        for known, changed in zip(old, new, strict=True)
    ]

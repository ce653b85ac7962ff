"""Builds the status of pods; `status_manager` writes it.

A pod without a plan is ready at once, and completed at once if a Job owns it (`ready_status`, `completed_status`). The status of
a pod with a plan is that of its state machine (`planned_status`).

Specified by: pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go (generateAPIPodStatus,
convertToAPIContainerStatuses); kwok's stages pod-ready and pod-complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apis.core.pods.visitor import CONTAINER_STATUSES
from fakekube.base.objects import StoredObject
from fakekube.nodes.images.names import image_id
from fakekube.nodes.pod_state import KILLED, Container, Kind, PodState, State, Termination

if TYPE_CHECKING:
    from fakekube.nodes.images.image import Image


#: The conditions that a kubelet sets in a ready pod; the scheduler sets PodScheduled.
READY_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def container_id(uid: str, name: str, attempt: int = 0) -> str:
    """Returns the id of a container, which depends on the pod, the name and the attempt."""
    return "containerd://" + hashlib.sha256(f"{uid}/{name}/{attempt}".encode()).hexdigest()


def resources_of(container: StoredObject) -> dict[str, Any]:
    """Returns the fields of a container status about resources."""
    resources = container.get("resources") or {}
    fields: dict[str, Any] = {"resources": {side: resources[side] for side in ("limits", "requests") if resources.get(side)}}
    if resources.get("requests"):
        fields["allocatedResources"] = dict(resources["requests"])
    return fields


def mount_statuses(container: StoredObject) -> dict[str, Any]:
    """Returns the field of a container status about its mounts (RecursiveReadOnlyMounts)."""
    mounts = [_mount_status(one) for one in container.get("volumeMounts") or ()]
    return {"volumeMounts": mounts} if mounts else {}


def linux_user(pod: StoredObject, container: StoredObject, image: Image | None = None) -> dict[str, Any]:
    """Returns user and groups of the first process of a container, as far as the spec and a known image say."""
    shared, own = pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}
    given = {**shared, **{name: value for name, value in own.items() if value is not None}}
    uid, gid = image.user_ids() if image is not None else (0, 0)
    groups: list[int] = []
    if given.get("runAsUser") is not None:
        uid, gid = int(given["runAsUser"]), 0
    if image is not None:
        known, groups = image.groups_of(uid)
        gid = gid or known
    gid = int(given["runAsGroup"]) if given.get("runAsGroup") is not None else gid
    groups = groups if shared.get("supplementalGroupsPolicy") != "Strict" else []
    groups = [gid, *groups, *(shared.get("supplementalGroups") or ())]
    groups += [shared["fsGroup"]] if shared.get("fsGroup") is not None else []
    return {"uid": uid, "gid": gid, "supplementalGroups": sorted(dict.fromkeys(groups))}


def is_of_job(pod: StoredObject) -> bool:
    """Reports whether a Job owns the pod."""
    return any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences") or ())


def is_meant_to_end(pod: StoredObject) -> bool:
    """Reports whether the pod ends when its containers have succeeded."""
    return (pod["spec"].get("restartPolicy") or "Always") != "Always"


def status_of(pod: StoredObject, name: str) -> StoredObject | None:
    """Returns the status of a container; None if there is none."""
    status = pod.get("status") or {}
    return next((one for kind in CONTAINER_STATUSES for one in status.get(kind) or () if one["name"] == name), None)


def ready_status(pod: StoredObject, host: str, addresses: Iterable[str], now: str) -> dict[str, Any]:
    """Returns the fields to set in the status of a pod that is running and ready."""
    spec = pod["spec"]
    gates = [gate["conditionType"] for gate in spec.get("readinessGates") or ()]
    status: dict[str, Any] = {
        "observedGeneration": pod["metadata"].get("generation", 0),
        "conditions": [_condition(pod, type_, now) for type_ in (*READY_CONDITIONS, *gates)],
        "containerStatuses": [_running_container(pod, container, now) for container in spec["containers"]],
        "phase": "Running",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": (pod.get("status") or {}).get("startTime") or now,
    }
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [
            _running_container(pod, one, now)
            if one.get("restartPolicy") == "Always"
            else _completed_container(pod, one, now, ready=True)
            for one in spec["initContainers"]
        ]
    ips = list(addresses)
    if ips:
        status |= {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
    return status


def completed_status(pod: StoredObject, now: str) -> dict[str, Any]:
    """Returns the fields to set in the status of a pod whose containers have succeeded."""
    status: dict[str, Any] = {
        "phase": "Succeeded",
        "containerStatuses": [_completed_container(pod, container, now, ready=False) for container in pod["spec"]["containers"]],
    }
    return status


def stopped_status(pod: StoredObject, now: str, image_of: Callable[[str], Image | None]) -> dict[str, Any] | None:
    """Returns the fields to set in the status of a deleted pod whose containers have stopped; None if none was running.

    A server that is known to handle SIGTERM has ended well, all others were killed.
    """
    status: dict[str, Any] = {}
    for field in CONTAINER_STATUSES:
        known = (pod.get("status") or {}).get(field) or ()
        if any("running" in (one.get("state") or {}) for one in known):
            status[field] = [_stopped_container(one, now, image_of) for one in known]
    if not status:
        return None
    mains = status.get("containerStatuses") or pod["status"].get("containerStatuses") or ()
    ended_well = all((one["state"].get("terminated") or {}).get("exitCode") == 0 for one in mains)
    generation = pod["metadata"].get("generation", 0)
    common = {"status": "False", "lastTransitionTime": now, "observedGeneration": generation}
    reason = {"reason": "PodCompleted" if ended_well else "PodFailed"}
    conditions = [{"type": type_, **common, **reason} for type_ in ("Ready", "ContainersReady")]
    conditions.append({"type": "PodReadyToStartContainers", **common})
    phase = "Succeeded" if ended_well else "Failed"
    return {**status, "observedGeneration": generation, "phase": phase, "conditions": conditions}


def _stopped_container(status: StoredObject, now: str, image_of: Callable[[str], Image | None]) -> StoredObject:
    running = (status.get("state") or {}).get("running")
    if running is None:
        return status
    image = image_of(status.get("image", ""))
    code = 0 if image is not None and image.daemon else KILLED
    ended = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": running.get("startedAt"),
        "finishedAt": now,
    }
    stopped = {name: value for name, value in status.items() if name != "user"}
    state = {"terminated": {**ended, "containerID": status.get("containerID", "")}}
    return {**stopped, "ready": False, "started": False, "state": state}


def observed_status(pod: StoredObject) -> dict[str, Any] | None:
    """Returns the fields to set in the status after a change of the spec: the observed generation, also of the kubelet's
    conditions. None if they are set, or if the kubelet has not started the pod."""
    generation, status = pod["metadata"].get("generation", 0), pod.get("status") or {}
    if not status.get("startTime") or status.get("observedGeneration", 0) == generation:
        return None
    own = [one["type"] for one in status.get("conditions") or () if one["type"] in (*READY_CONDITIONS, "PodScheduled")]
    return {"observedGeneration": generation, "conditions": [{"type": one, "observedGeneration": generation} for one in own]}


def _condition(pod: StoredObject, type_: str, now: str) -> dict[str, Any]:
    condition: dict[str, Any] = {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    if type_ in READY_CONDITIONS:
        condition["observedGeneration"] = pod["metadata"].get("generation", 0)
    return condition


def _common(pod: StoredObject, container: StoredObject) -> dict[str, Any]:
    image, name = container.get("image", ""), container["name"]
    return {
        "name": name,
        "image": image,
        "imageID": image_id(image),
        "restartCount": 0,
        "lastState": {},
        "containerID": container_id(pod["metadata"]["uid"], name),
        **resources_of(container),
        **mount_statuses(container),
    }


def _running_container(pod: StoredObject, container: StoredObject, now: str) -> dict[str, Any]:
    running = {"ready": True, "started": True, "state": {"running": {"startedAt": now}}}
    return _common(pod, container) | running | {"user": {"linux": linux_user(pod, container)}}


def _completed_container(pod: StoredObject, container: StoredObject, now: str, *, ready: bool) -> dict[str, Any]:
    common = _common(pod, container)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now, "containerID": common["containerID"]}
    return common | {"ready": ready, "started": False, "state": {"running": None, "terminated": ended}}


#: Formats a time of the state machine as a timestamp.
Timestamps = Callable[[float], str]

#: The conditions that a kubelet sets, in its order.
OWN: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

#: The time at which a program was started that could not be started.
NEVER: Final = "1970-01-01T00:00:00Z"

#: Status, reason and message of a condition.
_Content = tuple[bool, str, str]


def planned_status(
    pod: StoredObject, state: PodState, addresses: tuple[str, Iterable[str]], at: Timestamps, now: float
) -> dict[str, Any]:
    """Returns the fields of the status that the kubelet sets.

    Args:
        pod: the pod.
        state: the state of its containers.
        addresses: the address of the node, and those of the pod.
        at: formats times of the state machine.
        now: the present time of the state machine.
    """
    host, own = addresses
    metadata = pod["metadata"]
    full = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
    phase = state.phase
    mains = sorted(state.of_kind(Kind.MAIN), key=lambda one: one.name)  # kubelets sort them, but not init containers
    status: dict[str, Any] = {
        "observedGeneration": metadata.get("generation", 0),
        "phase": phase,
        "conditions": _conditions(pod, state, at(now)),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": (pod.get("status") or {}).get("startTime") or at(state.since),
        "containerStatuses": [_status(pod, one, full, at, state.image_of) for one in mains],
    }
    inits = [_status(pod, one, full, at, state.image_of) for one in state.of_kind(Kind.INIT, Kind.SIDECAR)]
    if inits:
        status["initContainerStatuses"] = inits
    ips = list(own)
    if ips and state.sandbox:
        status |= {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
    if state.failed is not None:
        status["reason"], status["message"] = state.failed
    return status


# --- Containers -------------------------------------------------------------------------------------------------------


def _status(
    pod: StoredObject, one: Container, full: str, at: Timestamps, image_of: Callable[[str], Image | None]
) -> dict[str, Any]:
    image = one.spec.get("image", "")
    has_run = one.state is not State.WAITING or one.last is not None
    attempt = one.attempt if one.state is not State.WAITING else max(one.attempt, 0)
    status: dict[str, Any] = {
        "name": one.name,
        "image": image,
        "imageID": image_id(image) if has_run else "",
        "restartCount": one.attempt,
        "ready": one.ready,
        "started": one.started,
        "state": _state(pod, one, full, at),
        "lastState": {"terminated": _terminated_state(pod, one, one.last, at)} if one.last is not None else {},
        **resources_of(one.spec),
        **mount_statuses(one.spec),
    }
    if one.state is State.RUNNING:
        status["user"] = {"linux": linux_user(pod, one.spec, image_of(image))}
    if has_run:
        status["containerID"] = container_id(pod["metadata"]["uid"], one.name, attempt)
    return status


def _mount_status(mount: StoredObject) -> dict[str, Any]:
    found: dict[str, Any] = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        found |= {"readOnly": True, "recursiveReadOnly": mount.get("recursiveReadOnly") or "Disabled"}
    return found


def _state(pod: StoredObject, one: Container, full: str, at: Timestamps) -> dict[str, Any]:
    if one.state is State.RUNNING:
        return {"running": {"startedAt": at(one.started_at)}}
    if one.state is State.TERMINATED and one.ended is not None:
        return {"terminated": _terminated_state(pod, one, one.ended, at)}
    return {"waiting": {"reason": one.reason} | ({"message": one.message.replace("$POD", full)} if one.message else {})}


def _terminated_state(pod: StoredObject, one: Container, ended: Termination, at: Timestamps) -> dict[str, Any]:
    made = {
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "startedAt": at(ended.started) if ended.started is not None else NEVER,
        "finishedAt": at(ended.finished),
        "containerID": container_id(pod["metadata"]["uid"], one.name, ended.attempt),
    }
    return made | ({"message": ended.message} if ended.message else {})


# --- Conditions -------------------------------------------------------------------------------------------------------


def _conditions(pod: StoredObject, state: PodState, now: str) -> list[dict[str, Any]]:
    old = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or ()}
    containers_ready = _containers_ready_condition(state)
    contents: dict[str, _Content] = {
        "PodReadyToStartContainers": (state.sandbox and not (state.phase in ("Succeeded", "Failed") and state.is_done), "", ""),
        "Initialized": _initialized_condition(state),
        "Ready": _ready_condition(pod, containers_ready, old),
        "ContainersReady": containers_ready,
        "PodScheduled": (True, "", ""),
    }
    made = []
    for type_ in OWN:
        status, reason, message = contents[type_]
        text = "True" if status else "False"
        known = old.get(type_)
        since = known["lastTransitionTime"] if known is not None and known.get("status") == text else None
        condition: dict[str, Any] = {
            "type": type_,
            "status": text,
            "observedGeneration": pod["metadata"].get("generation", 0),
            "lastProbeTime": None,
            "lastTransitionTime": since or now,
            "reason": reason or None,
            "message": message or None,
        }
        made.append(condition)
    return made


def _names(containers: Iterable[Container]) -> str:
    return f"[{' '.join(one.name for one in containers)}]"


def _initialized_condition(state: PodState) -> _Content:
    if state.phase == "Succeeded":
        return True, "PodCompleted", ""
    if any(one.state is not State.WAITING or one.last is not None for one in state.of_kind(Kind.MAIN)):
        return True, "", ""
    incomplete = [
        one for one in state.of_kind(Kind.INIT, Kind.SIDECAR) if not (one.ready if one.kind is Kind.INIT else one.started)
    ]
    if incomplete:
        return False, "ContainersNotInitialized", f"containers with incomplete status: {_names(incomplete)}"
    return True, "", ""


def _containers_ready_condition(state: PodState) -> _Content:
    if state.phase in ("Succeeded", "Failed"):
        return False, "PodCompleted" if state.phase == "Succeeded" else "PodFailed", ""
    unready = [one for one in state.of_kind(Kind.SIDECAR, Kind.MAIN) if not one.ready]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: {_names(unready)}"
    return True, "", ""


def _ready_condition(pod: StoredObject, containers_ready: _Content, conditions: Mapping[str, StoredObject]) -> _Content:
    if not containers_ready[0]:
        return containers_ready
    problems = []
    for gate in pod["spec"].get("readinessGates") or ():
        name = gate["conditionType"]
        found = conditions.get(name)
        if found is None:
            problems.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif found.get("status") != "True":
            problems.append(f'the status of pod readiness gate "{name}" is not "True", but {found.get("status")}')
    return (False, "ReadinessGatesNotReady", ", ".join(problems)) if problems else (True, "", "")

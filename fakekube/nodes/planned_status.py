"""Builds the status of a pod with a plan from the state of its containers.

Specified by: pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go (generateAPIPodStatus, convertToAPIContainerStatuses).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fakekube.nodes.container import Container, Kind, State, Termination
from fakekube.nodes.pod_state import PodState
from fakekube.nodes.pod_status import container_id, image_id, linux_user, resources_of

__all__ = ["Timestamps", "planned_status"]

Object = Mapping[str, Any]
#: Formats a time of the state machine as a timestamp.
Timestamps = Callable[[float], str]

#: The conditions that a kubelet sets, in its order.
OWN: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

#: Status, reason and message of a condition.
_Content = tuple[bool, str, str]


def planned_status(
    pod: Object, state: PodState, addresses: tuple[str, Iterable[str]], at: Timestamps, now: float
) -> dict[str, Any]:
    """Returns the fields of the status that the kubelet sets.

    Args:
        pod: The pod.
        state: The state of its containers.
        addresses: The address of the node, and those of the pod.
        at: Formats times of the state machine.
        now: The present time of the state machine.
    """
    host, own = addresses
    metadata = pod["metadata"]
    full = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
    phase = state.phase
    status: dict[str, Any] = {
        "observedGeneration": metadata.get("generation", 0),
        "phase": phase,
        "conditions": _conditions(pod, state, at(now)),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": (pod.get("status") or {}).get("startTime") or at(state.since),
        "containerStatuses": [_status(pod, one, full, at) for one in state.of_kind(Kind.MAIN)],
    }
    inits = [_status(pod, one, full, at) for one in state.of_kind(Kind.INIT, Kind.SIDECAR)]
    if inits:
        status["initContainerStatuses"] = inits
    ips = list(own)
    if ips and state.sandbox:
        status |= {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
    if state.failed is not None:
        status["reason"], status["message"] = state.failed
    return status


# ---------------------------------------------------------------- containers


def _status(pod: Object, one: Container, full: str, at: Timestamps) -> dict[str, Any]:
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
        "lastState": {"terminated": _terminated(pod, one, one.last, at)} if one.last is not None else {},
        "resources": {},
        **resources_of(one.spec),
    }
    if one.state is State.RUNNING:
        status["user"] = {"linux": linux_user(pod, one.spec)}
    if one.spec.get("volumeMounts"):
        status["volumeMounts"] = [_mount_status(mount) for mount in one.spec["volumeMounts"]]
    if has_run:
        status["containerID"] = container_id(pod["metadata"]["uid"], one.name, attempt)
    return status


def _mount_status(mount: Object) -> dict[str, Any]:
    found: dict[str, Any] = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        found |= {"readOnly": True, "recursiveReadOnly": mount.get("recursiveReadOnly") or "Disabled"}
    return found


def _state(pod: Object, one: Container, full: str, at: Timestamps) -> dict[str, Any]:
    if one.state is State.RUNNING:
        return {"running": {"startedAt": at(one.started_at)}}
    if one.state is State.TERMINATED and one.ended is not None:
        return {"terminated": _terminated(pod, one, one.ended, at)}
    return {"waiting": {"reason": one.reason} | ({"message": one.message.replace("$POD", full)} if one.message else {})}


def _terminated(pod: Object, one: Container, ended: Termination, at: Timestamps) -> dict[str, Any]:
    made = {
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "startedAt": at(ended.started),
        "finishedAt": at(ended.finished),
        "containerID": container_id(pod["metadata"]["uid"], one.name, ended.attempt),
    }
    return made | ({"message": ended.message} if ended.message else {})


# ---------------------------------------------------------------- conditions


def _conditions(pod: Object, state: PodState, now: str) -> list[dict[str, Any]]:
    old = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or ()}
    containers_ready = _containers_ready(state)
    contents: dict[str, _Content] = {
        "PodReadyToStartContainers": (state.sandbox and not (state.phase in ("Succeeded", "Failed") and state.is_done), "", ""),
        "Initialized": _initialized(state),
        "Ready": _ready(pod, containers_ready, old),
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


def _initialized(state: PodState) -> _Content:
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


def _containers_ready(state: PodState) -> _Content:
    if state.phase in ("Succeeded", "Failed"):
        return False, "PodCompleted" if state.phase == "Succeeded" else "PodFailed", ""
    unready = [one for one in state.of_kind(Kind.SIDECAR, Kind.MAIN) if not one.ready]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: {_names(unready)}"
    return True, "", ""


def _ready(pod: Object, containers_ready: _Content, conditions: Mapping[str, Object]) -> _Content:
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

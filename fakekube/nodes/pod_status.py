"""Builds the status of a pod without a plan: ready at once, and completed at once if a Job owns the pod.

Specified by: pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go (generateAPIPodStatus); kwok's stages pod-ready and
pod-complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = [
    "completed_status",
    "container_id",
    "image_id",
    "is_of_job",
    "observed_status",
    "ready_status",
    "resized_status",
    "resources_of",
]

Object = Mapping[str, Any]

#: The phases in which a pod has ended.
TERMINAL: Final = frozenset({"Succeeded", "Failed"})
#: The conditions that a kubelet sets in a ready pod; the scheduler sets PodScheduled.
READY_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def container_id(uid: str, name: str, attempt: int = 0) -> str:
    """Returns the id of a container, which depends on the pod, the name and the attempt."""
    return "containerd://" + hashlib.sha256(f"{uid}/{name}/{attempt}".encode()).hexdigest()


def image_id(image: str) -> str:
    """Returns the id of an image, which depends on its name."""
    name = image.partition("@")[0]
    if name.rfind(":") > name.rfind("/"):
        name = name[: name.rfind(":")]
    return f"{name}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def resources_of(container: Object) -> dict[str, Any]:
    """Returns the fields of a container status about resources."""
    resources = container.get("resources") or {}
    fields: dict[str, Any] = {}
    if resources.get("requests"):
        fields["allocatedResources"] = dict(resources["requests"])
    if resources:
        fields["resources"] = {side: resources[side] for side in ("limits", "requests") if resources.get(side)}
    return fields


def linux_user(pod: Object, container: Object) -> dict[str, Any]:
    """Returns user and groups of the first process of a container, as far as the spec says."""
    shared, own = pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}
    given = {**shared, **{name: value for name, value in own.items() if value is not None}}
    gid = int(given.get("runAsGroup") or 0)
    groups = [gid, *(shared.get("supplementalGroups") or ()), *([shared["fsGroup"]] if shared.get("fsGroup") is not None else ())]
    return {"uid": int(given.get("runAsUser") or 0), "gid": gid, "supplementalGroups": sorted(dict.fromkeys(groups))}


def is_of_job(pod: Object) -> bool:
    """Whether a Job owns the pod."""
    return any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences") or ())


def ready_status(pod: Object, host: str, addresses: Iterable[str], now: str) -> dict[str, Any]:
    """Returns the fields to set in the status of a pod that is running and ready."""
    spec = pod["spec"]
    gates = [gate["conditionType"] for gate in spec.get("readinessGates") or ()]
    status: dict[str, Any] = {
        "observedGeneration": pod["metadata"].get("generation", 0),
        "conditions": [_condition(pod, type_, now) for type_ in (*READY_CONDITIONS, *gates)],
        "containerStatuses": [_running(pod, container, now) for container in spec["containers"]],
        "phase": "Running",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": (pod.get("status") or {}).get("startTime") or now,
    }
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [
            _running(pod, one, now) if one.get("restartPolicy") == "Always" else _completed(pod, one, now, ready=True)
            for one in spec["initContainers"]
        ]
    ips = list(addresses)
    if ips:
        status |= {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
    return status


def completed_status(pod: Object, now: str) -> dict[str, Any]:
    """Returns the fields to set in the status of a pod whose containers have succeeded."""
    status: dict[str, Any] = {
        "phase": "Succeeded",
        "containerStatuses": [_completed(pod, container, now, ready=False) for container in pod["spec"]["containers"]],
    }
    return status


def observed_status(pod: Object) -> dict[str, Any] | None:
    """Returns the fields to set in the status after a change of the spec: the observed generation, also of the kubelet's
    conditions. None if they are set, or if the kubelet has not started the pod."""
    generation, status = pod["metadata"].get("generation", 0), pod.get("status") or {}
    if not status.get("startTime") or status.get("observedGeneration", 0) == generation:
        return None
    own = [one["type"] for one in status.get("conditions") or () if one["type"] in (*READY_CONDITIONS, "PodScheduled")]
    return {"observedGeneration": generation, "conditions": [{"type": one, "observedGeneration": generation} for one in own]}


def resized_status(pod: Object) -> dict[str, Any] | None:
    """Returns the fields to set in the status of a running pod after a resize; None if its resources have not changed."""
    status = pod["status"]
    resources = {container["name"]: resources_of(container) for container in pod["spec"]["containers"]}
    statuses = [
        {
            **{name: value for name, value in one.items() if name not in ("resources", "allocatedResources")},
            **resources[one["name"]],
        }
        if one["name"] in resources and "resources" in one
        else one
        for one in status.get("containerStatuses") or ()
    ]
    if statuses == status.get("containerStatuses", []):
        return None
    return {"observedGeneration": pod["metadata"].get("generation", 0), "containerStatuses": statuses}


def _condition(pod: Object, type_: str, now: str) -> dict[str, Any]:
    condition: dict[str, Any] = {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    if type_ in READY_CONDITIONS:
        condition["observedGeneration"] = pod["metadata"].get("generation", 0)
    return condition


def _common(pod: Object, container: Object) -> dict[str, Any]:
    image, name = container.get("image", ""), container["name"]
    return {
        "name": name,
        "image": image,
        "imageID": image_id(image),
        "restartCount": 0,
        "lastState": {},
        "containerID": container_id(pod["metadata"]["uid"], name),
        **resources_of(container),
    }


def _running(pod: Object, container: Object, now: str) -> dict[str, Any]:
    return _common(pod, container) | {"ready": True, "started": True, "state": {"running": {"startedAt": now}}}


def _completed(pod: Object, container: Object, now: str, *, ready: bool) -> dict[str, Any]:
    common = _common(pod, container)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now, "containerID": common["containerID"]}
    return common | {"ready": ready, "started": False, "state": {"running": None, "terminated": ended}}

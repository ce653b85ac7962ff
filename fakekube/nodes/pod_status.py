"""The status of a pod that has been told nothing: ready at once, and, if a Job owns it, done at once.

Specified by: pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go (generateAPIPodStatus); for what is ready at once
kwok's stages pod-ready and pod-complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["completed_status", "container_id", "image_id", "is_of_job", "ready_status", "resized_status", "resources_of"]

Object = Mapping[str, Any]

#: The conditions that a kubelet sets on a pod that is ready, but for PodScheduled.
READY_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def container_id(uid: str, name: str, attempt: int = 0) -> str:
    """The id of a container: the same for the same attempt of the same container."""
    return "containerd://" + hashlib.sha256(f"{uid}/{name}/{attempt}".encode()).hexdigest()


def image_id(image: str) -> str:
    """The id of an image: the same for the same name."""
    name = image.partition("@")[0]
    if name.rfind(":") > name.rfind("/"):
        name = name[: name.rfind(":")]
    return f"{name}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def resources_of(container: Object) -> dict[str, Any]:
    """What a container status says of resources."""
    resources = container.get("resources") or {}
    told: dict[str, Any] = {}
    if resources.get("requests"):
        told["allocatedResources"] = dict(resources["requests"])
    if resources:
        told["resources"] = {side: resources[side] for side in ("limits", "requests") if resources.get(side)}
    return told


def is_of_job(pod: Object) -> bool:
    """Does a Job own the pod?"""
    return any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences") or ())


def ready_status(pod: Object, host: str, addresses: Iterable[str], now: str) -> dict[str, Any]:
    """What is to be added to the status of a pod that runs and is ready."""
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
            _running(pod, one, now) if one.get("restartPolicy") == "Always" else _done(pod, one, now, ready=True)
            for one in spec["initContainers"]
        ]
    ips = list(addresses)
    if ips:
        status |= {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
    return status


def completed_status(pod: Object, now: str) -> dict[str, Any]:
    """What is to be changed in the status of a pod whose containers have ended well."""
    status: dict[str, Any] = {
        "phase": "Succeeded",
        "containerStatuses": [_done(pod, container, now, ready=False) for container in pod["spec"]["containers"]],
    }
    return status


def resized_status(pod: Object) -> dict[str, Any] | None:
    """What is to be changed in the status of a pod that runs and has been given other resources; None if it has not."""
    status = pod["status"]
    wanted = {container["name"]: resources_of(container) for container in pod["spec"]["containers"]}
    told = [
        {**{name: value for name, value in one.items() if name not in ("resources", "allocatedResources")}, **wanted[one["name"]]}
        if one["name"] in wanted and "resources" in one
        else one
        for one in status.get("containerStatuses") or ()
    ]
    if told == status.get("containerStatuses", []):
        return None
    return {"observedGeneration": pod["metadata"].get("generation", 0), "containerStatuses": told}


def _condition(pod: Object, type_: str, now: str) -> dict[str, Any]:
    made: dict[str, Any] = {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    if type_ in READY_CONDITIONS:
        made["observedGeneration"] = pod["metadata"].get("generation", 0)
    return made


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


def _done(pod: Object, container: Object, now: str, *, ready: bool) -> dict[str, Any]:
    common = _common(pod, container)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now, "containerID": common["containerID"]}
    return common | {"ready": ready, "started": False, "state": {"running": None, "terminated": ended}}

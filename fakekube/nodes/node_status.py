"""What a kubelet says of its node.

Specified by: pkg/kubelet/nodestatus/setters.go, pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["CAPACITY", "condition", "initial_status", "is_ready", "renewed_conditions"]

Object = Mapping[str, Any]

#: What a node has that does not say otherwise.
CAPACITY: Final = {"cpu": "16", "ephemeral-storage": "100Gi", "memory": "64Gi", "pods": "110"}

#: type → (status, reason, message) of a node that is well.
WELL: Final = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


def condition(obj: Object, type_: str) -> Object | None:
    """The condition of that type of a node or a pod, or None."""
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == type_:
            found: Object = one
            return found
    return None


def is_ready(node: Object) -> bool:
    """Does the node say that it is ready?"""
    found = condition(node, "Ready")
    return found is not None and found.get("status") == "True"


def initial_status(node: Object, version: str, address: str, now: str) -> dict[str, Any]:
    """What is to be added to the status of a node whose kubelet has started."""
    status = node.get("status") or {}
    capacity = dict(status.get("capacity") or status.get("allocatable") or CAPACITY)
    info = status.get("nodeInfo") or {}
    return {
        "addresses": _addresses(node, address),
        "allocatable": dict(status.get("allocatable") or capacity),
        "capacity": capacity,
        "conditions": renewed_conditions(node, now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _node_info(node, version) | {name: value for name, value in info.items() if value},
    }


def _addresses(node: Object, address: str) -> list[dict[str, str]]:
    known = [dict(one) for one in (node.get("status") or {}).get("addresses") or ()]
    types = {one["type"] for one in known}
    made = {"InternalIP": address, "Hostname": node["metadata"]["name"]}
    return known + [{"type": type_, "address": value} for type_, value in made.items() if type_ not in types]


def _node_info(node: Object, version: str) -> dict[str, str]:
    uid = node["metadata"].get("uid", "")
    return {
        "architecture": "amd64",
        "bootID": uid,
        "containerRuntimeVersion": "containerd://2.2.0",
        "kernelVersion": "6.12.0",
        "kubeProxyVersion": "",
        "kubeletVersion": version,
        "machineID": uid.replace("-", ""),
        "operatingSystem": "linux",
        "osImage": "fakekube",
        "systemUUID": uid,
    }


def renewed_conditions(node: Object, now: str) -> list[dict[str, str]]:
    """The conditions of a node that is well, as of now."""
    made = []
    for type_, (status, reason, message) in WELL.items():
        old = condition(node, type_)
        since = old.get("lastTransitionTime") if old is not None and old.get("status") == status else None
        made.append(
            {
                "type": type_,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since or now,
            }
        )
    return made

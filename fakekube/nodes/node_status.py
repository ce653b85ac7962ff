"""Builds the status of nodes.

Specified by: pkg/kubelet/nodestatus/setters.go, pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.apis.validation.conditions import find_condition

__all__ = ["CAPACITY", "healthy_conditions", "initial_status", "is_ready"]

Object = Mapping[str, Any]

#: The default capacity of a node.
CAPACITY: Final = {"cpu": "16", "ephemeral-storage": "100Gi", "memory": "64Gi", "pods": "110"}

#: Type → (status, reason, message) of the conditions of a healthy node.
HEALTHY: Final = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


def is_ready(node: Object) -> bool:
    """Whether the condition Ready of the node is True."""
    found = find_condition(node.get("status") or {}, "Ready")
    return found is not None and found.get("status") == "True"


def initial_status(node: Object, version: str, address: str, now: str) -> dict[str, Any]:
    """Returns the fields to set in the status of a node when its kubelet starts."""
    status = node.get("status") or {}
    capacity = dict(status.get("capacity") or status.get("allocatable") or CAPACITY)
    info = status.get("nodeInfo") or {}
    return {
        "addresses": _addresses(node, address),
        "allocatable": dict(status.get("allocatable") or capacity),
        "capacity": capacity,
        "conditions": healthy_conditions(node, now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _node_info(node, version) | {name: value for name, value in info.items() if value},
    }


def _addresses(node: Object, address: str) -> list[dict[str, str]]:
    known = [dict(one) for one in (node.get("status") or {}).get("addresses") or ()]
    types = {one["type"] for one in known}
    defaults = {"InternalIP": address, "Hostname": node["metadata"]["name"]}
    return known + [{"type": type_, "address": value} for type_, value in defaults.items() if type_ not in types]


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


def healthy_conditions(node: Object, now: str) -> list[dict[str, str]]:
    """Returns the conditions of a healthy node, with a heartbeat now."""
    conditions = []
    for type_, (status, reason, message) in HEALTHY.items():
        old = find_condition(node.get("status") or {}, type_)
        since = old.get("lastTransitionTime") if old is not None and old.get("status") == status else None
        conditions.append(
            {
                "type": type_,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since or now,
            }
        )
    return conditions

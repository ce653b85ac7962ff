"""The status and the lease of nodes, as their kubelets write them, and the events of kubelets about their node.

Events are recorded in clusters with a pace, as those of the containers of pods without a plan are. A kubelet looks at
spec.unschedulable when it syncs its node, every ten seconds, and not at once.

Invariant: only the status of nodes with a kubelet is written, and none that stages play.

Specified by: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus/setters.go,
pkg/kubelet/cm/node_container_manager_linux.go (enforceNodeAllocatableCgroups),
k8s.io/component-helpers/apimachinery/lease/controller.go, k8s.io/component-helpers/nodedeclaredfeatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import KUBELET_PORT, NAMESPACE_NODE_LEASE
from fakekube.apiserver.http.nonresource_paths import git_version
from fakekube.base.golang.timestamps import print_micro_time
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import parse_time

if TYPE_CHECKING:
    from fakekube.apimachinery.features import Emulation
    from fakekube.nodes.addresses import Addresses
    from fakekube.nodes.status_manager import StatusManager

#: The default capacity of a node.
CAPACITY: Final = {"cpu": "16", "ephemeral-storage": "100Gi", "memory": "64Gi", "pods": "110"}

#: Type → (status, reason, message) of the conditions of a healthy node.
HEALTHY: Final = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


def is_ready(node: StoredObject) -> bool:
    """Reports whether the condition Ready of the node is True."""
    found = find_condition(node.get("status") or {}, "Ready")
    return found is not None and found.get("status") == "True"


#: The features of the kubelets that they declare in the status of their node, if the gates are on → the first minor that does.
_DECLARED: Final = {
    "InPlacePodLevelResourcesVerticalScaling": 35,
    "InPlacePodVerticalScalingInitContainers": 36,
    "RestartAllContainersOnContainerExits": 35,
    "UserNamespacesHostNetworkSupport": 36,
    "VolumeBindMountOptions": 37,
}


def declared_features(emulation: Emulation) -> list[str]:
    """Returns the features that a kubelet declares, sorted; none without the gate NodeDeclaredFeatures."""
    if not emulation.enabled("NodeDeclaredFeatures"):
        return []
    return [name for name, since in _DECLARED.items() if since <= emulation.minor and emulation.enabled(name)]


def initial_status(node: StoredObject, version: str, address: str, now: str, features: Sequence[str] = ()) -> Object:
    """Returns the fields to set in the status of a node when its kubelet starts."""
    status = node.get("status") or {}
    capacity = dict(status.get("capacity") or status.get("allocatable") or CAPACITY)
    info = status.get("nodeInfo") or {}
    return {
        "addresses": _addresses_of(node, address),
        "allocatable": dict(status.get("allocatable") or capacity),
        "capacity": capacity,
        "conditions": healthy_conditions(node, now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        "nodeInfo": _node_info(node, version) | {name: value for name, value in info.items() if value},
        **({"declaredFeatures": [*features]} if features else {}),
    }


def _addresses_of(node: StoredObject, address: str) -> list[dict[str, str]]:
    """Returns the addresses of a node: those that it has, and by default an internal one and its name."""
    known = [dict(one) for one in (node.get("status") or {}).get("addresses") or ()]
    types = {one["type"] for one in known}
    defaults = {"InternalIP": address, "Hostname": node["metadata"]["name"]}
    return known + [{"type": type_, "address": value} for type_, value in defaults.items() if type_ not in types]


def _node_info(node: StoredObject, version: str) -> dict[str, str]:
    """Returns status.nodeInfo of a node whose kubelet has this version."""
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


def healthy_conditions(node: StoredObject, now: str) -> list[dict[str, str]]:
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


def extended_resources(node: StoredObject) -> dict[str, str | None]:
    """Returns the allocatable resources to set because others have added extended resources to the capacity of a node, or have
    removed them: name → amount, None to remove it."""
    status = node.get("status") or {}
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    added: dict[str, str | None] = {name: str(capacity[name]) for name in capacity if "/" in name and name not in allocatable}
    return added | {name: None for name in allocatable if "/" in name and name not in capacity}


def internal_ip(node: Object) -> str | None:
    """Returns the internal address of a node; None if it has none."""
    for one in (node.get("status") or {}).get("addresses") or ():
        if one["type"] == "InternalIP":
            return str(one["address"])
    return None


#: The duration of a node's lease in seconds (nodeLeaseDurationSeconds).
LEASE_SECONDS: Final = 40
#: Seconds between two reports of a node's unchanged status.
REPORT_EVERY: Final = 300.0

#: Type of a condition → the reason of the event about its healthy status, which a kubelet also records when it starts.
_HEALTHY_EVENTS: Final = {
    "MemoryPressure": "NodeHasSufficientMemory",
    "DiskPressure": "NodeHasNoDiskPressure",
    "PIDPressure": "NodeHasSufficientPID",
    "Ready": "NodeReady",
}
#: The first minor whose kubelets refer to their node with its version and without a uid, and the first with its uid.
_WITHOUT_UID, _WITH_UID = 35, 37


class NodeStatuses:
    """Writes the status and the lease of all nodes with a kubelet.

    Args:
        kubelet: all kubelets.
        addresses: the addresses of nodes.
    """

    def __init__(self, kubelet: StatusManager, addresses: Addresses) -> None:
        self._kubelet, self._addresses = kubelet, addresses
        self._unschedulable: dict[str, bool] = {}
        """Node whose kubelet has started → whether it was unschedulable at the last sync."""

    def forget(self, name: str) -> None:
        """Takes note that a node was deleted, or that its kubelet has stopped."""
        self._unschedulable.pop(name, None)

    def sync(self, node: Object, *, is_staged: bool) -> None:
        """Writes what is due of a node: its status, its lease, and events. Raises ApiError.

        Args:
            node: the node.
            is_staged: whether stages write the status of nodes.
        """
        if not is_staged:
            reasons = list(self._due_events(node)) if self._kubelet.context.services.pace else []
            self._write_status(node)
            for reason, message in reasons:
                self._record(node, reason, message)
        self._renew_lease(node)

    def _write_status(self, node: Object) -> None:
        kubelet, name = self._kubelet, node["metadata"]["name"]
        if not is_ready(node):
            status = initial_status(
                node,
                git_version(kubelet.context.version),
                internal_ip(node) or self._addresses.node(name),
                kubelet.client.now(),
                declared_features(kubelet.context.emulation),
            )
            kubelet.patch_status("nodes", node, status)
        elif self._is_report_due(node):
            kubelet.patch_status("nodes", node, {"conditions": healthy_conditions(node, kubelet.client.now())})
        elif changed := extended_resources(node):
            kubelet.patch_status("nodes", node, {"allocatable": changed})

    # --- Events -------------------------------------------------------------------------------------------------------

    def _due_events(self, node: Object) -> Iterator[tuple[str, str]]:
        """Yields reason and message of the events about what the sync of a node changes."""
        name, status = node["metadata"]["name"], node.get("status") or {}
        is_unschedulable = bool((node.get("spec") or {}).get("unschedulable"))
        has_started = name not in self._unschedulable
        was_unschedulable = self._unschedulable.get(name, False)
        self._unschedulable[name] = is_unschedulable
        if has_started:
            yield "Starting", "Starting kubelet."
            yield "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods"
        reasons = [
            reason
            for type_, reason in _HEALTHY_EVENTS.items()
            if has_started or (not is_ready(node) and (find_condition(status, type_) or {}).get("status") != HEALTHY[type_][0])
        ]
        if is_unschedulable != was_unschedulable:
            reasons.append("NodeNotSchedulable" if is_unschedulable else "NodeSchedulable")
        for reason in reasons:
            yield reason, f"Node {name} status is now: {reason}"

    def _record(self, node: Object, reason: str, message: str) -> None:
        name, minor = node["metadata"]["name"], self._kubelet.context.emulation.minor
        about = {"kind": "Node", "name": name}
        if minor < _WITHOUT_UID:
            about["uid"] = name
        else:
            about["apiVersion"] = "v1"
        if minor >= _WITH_UID:
            about["uid"] = node["metadata"]["uid"]
        self._kubelet.recorder.event(about, "Normal", reason, message, host=name)

    # --- Heartbeats ---------------------------------------------------------------------------------------------------

    def _is_report_due(self, node: Object) -> bool:
        """Reports whether the unchanged status of a node is to be reported again."""
        ready = find_condition(node.get("status") or {}, "Ready") or {}
        last = ready.get("lastHeartbeatTime")
        return last is None or (self._kubelet.clock.now() - parse_time(last)).total_seconds() >= REPORT_EVERY

    def _renew_lease(self, node: Object) -> None:
        name = node["metadata"]["name"]
        now = print_micro_time(self._kubelet.clock.now())
        try:
            self._kubelet.client.patch(
                "leases.coordination.k8s.io", name, {"spec": {"renewTime": now}}, namespace=NAMESPACE_NODE_LEASE
            )
        except ApiError as error:
            if error.code != 404:
                raise
            self._create_lease(node, now)

    def _create_lease(self, node: Object, now: str) -> None:
        name = node["metadata"]["name"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": name, "namespace": NAMESPACE_NODE_LEASE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
        }
        try:
            self._kubelet.client.create(lease)
        except ApiError as error:
            if error.code not in (403, 404, 409):  # the namespace does not exist, or the lease was created in the meantime
                raise

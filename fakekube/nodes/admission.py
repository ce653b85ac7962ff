"""What keeps a kubelet from running a pod, from starting it, or from creating a container, and what makes it evict a pod.

A pod that was created with a nodeName, or that another scheduler has bound, is rejected if it does not fit the node. The
scheduler of the cluster makes the same checks before it binds a pod, so that its pods are not checked again. A pod whose volumes
cannot be mounted stays in ContainerCreating; a container that cannot be created, because of its variables, sub-paths or user,
waits with CreateContainerConfigError. Both are tried again. A pod whose programs have written more than it may is evicted: the
kubelet looks every ten seconds; the files of images do not count, and files in memory have a size that they cannot exceed.

Invariant: pods that the kubelet has not admitted yet do not count.

Specified by: pkg/kubelet/lifecycle/predicate.go (Admit, generalFilter), pkg/scheduler/eventhandlers.go (AdmissionCheck),
pkg/kubelet/kubelet.go (rejectPod), pkg/kubelet/kubelet_pods.go (makeMounts, makeEnvironmentVariables),
pkg/kubelet/eviction/eviction_manager.go (localStorageEviction),
pkg/kubelet/sysctl, pkg/kubelet/kuberuntime/security_context.go (verifyRunAsNonRoot), pkg/volume/configmap, pkg/volume/secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakekube.apimachinery.schema.quantity import parse as parse_quantity
from fakekube.apimachinery.selectors.nodes import find_untolerated_taint, required_node_affinity
from fakekube.apis.core.pods.resources import container_sums
from fakekube.apis.core.pods.sysctls import normalize_name
from fakekube.apis.well_known import LABEL_OS_STABLE, TAINT_EFFECT_NO_EXECUTE, TERMINAL_POD_PHASES
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.scheduler.framework import NodeInfo, PodInfo
from fakekube.controllers.scheduler.plugins.node import NodeAffinity, NodePorts, TaintToleration
from fakekube.controllers.scheduler.plugins.node_resources import insufficient_resources
from fakekube.nodes.allocation import insufficient_resource

if TYPE_CHECKING:
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.nodes.images.image import Image
    from fakekube.nodes.runtime.sandbox import Sandbox


class Rejection(NamedTuple):
    """Why a kubelet rejects a pod: the reason, and the message of the event."""

    reason: str
    message: str


def rejection(pod: Object, node: Object, others: Iterable[Object]) -> Rejection | None:
    """Returns why a node's kubelet rejects a pod; None if it admits it.

    Args:
        pod: the pod.
        node: the node.
        others: the other pods that are bound to the node.
    """
    info = NodeInfo(node["metadata"]["name"])
    info.set_node(node)
    for other in others:
        status = other.get("status") or {}
        if status.get("startTime") and status.get("phase") not in TERMINAL_POD_PHASES:
            info.add(PodInfo(other))
    return next(_rejections(PodInfo(pod), info), None)


def _rejections(pod: PodInfo, node: NodeInfo) -> Iterator[Rejection]:
    requests = {name: amount for name, amount in pod.requests.items() if "/" not in name or name in node.allocatable}
    for lacking in insufficient_resources(requests, node.allocatable, node.requested, len(node.pods)):
        message = insufficient_resource(lacking.resource, lacking.requested, lacking.used, lacking.capacity)
        yield Rejection(f"OutOf{lacking.resource}", message)
    matches = required_node_affinity(pod.obj["spec"])
    if matches is not None and not matches(node.obj):
        yield _failed_predicate(NodeAffinity)
    if NodePorts(pod.host_ports).filter(node) is not None:
        yield _failed_predicate(NodePorts)
    if find_untolerated_taint(node.taints, pod.obj["spec"].get("tolerations") or (), (TAINT_EFFECT_NO_EXECUTE,)):
        yield _failed_predicate(TaintToleration)


def _failed_predicate(plugin: type[NodeAffinity | NodePorts | TaintToleration]) -> Rejection:
    """Returns the rejection by a filter of the scheduler."""
    return Rejection(plugin.name, f"Predicate {plugin.name} failed: {plugin.refusal.reasons[0]}")


#: The namespace of the kernel → the parameters in it that a pod may set.
_SAFE_SYSCTLS: Final = {
    "ipc": frozenset({"kernel.shm_rmid_forced"}),
    "net": frozenset(
        f"net.ipv4.{name}"
        for name in [
            "ip_local_port_range",
            "tcp_syncookies",
            "ping_group_range",
            "ip_unprivileged_port_start",
            "ip_local_reserved_ports",
            "tcp_keepalive_time",
            "tcp_fin_timeout",
            "tcp_keepalive_intvl",
            "tcp_keepalive_probes",
            "tcp_rmem",
            "tcp_wmem",
        ]
    ),
}


def forbid_sysctls(pod: Object) -> Rejection | None:
    """Returns why a kubelet rejects a pod for the kernel parameters that it sets; None if they are safe (patternAllowlist)."""
    spec = pod["spec"]
    shared = {"net": spec.get("hostNetwork"), "ipc": spec.get("hostIPC")}
    for one in (spec.get("securityContext") or {}).get("sysctls") or ():
        name = normalize_name(one["name"])
        namespace = next((namespace for namespace, names in _SAFE_SYSCTLS.items() if name in names), "")
        if not namespace:
            return Rejection("SysctlForbidden", f"forbidden sysctl: {go_quote(name)} not allowlisted")
        if shared[namespace]:
            text = f"forbidden sysctl: {go_quote(name)} not allowed with host {namespace} enabled"
            return Rejection("SysctlForbidden", text)
    return None


def forbid_operating_system(pod: Object) -> Rejection | None:
    """Returns why a kubelet rejects a pod for its operating system; None if it is Linux, or not set."""
    label = (pod["metadata"].get("labels") or {}).get(LABEL_OS_STABLE)
    if label is not None and label != "linux":
        text = f"Failed to admit pod as the `{LABEL_OS_STABLE}` label doesn't match node label"
        return Rejection("PodOSSelectorNodeLabelDoesNotMatch", text)
    if (pod["spec"].get("os") or {}).get("name", "linux") != "linux":
        return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def rejected_status(pod: Object, found: Rejection, now: str) -> Object:
    """Returns the fields to set in the status of a rejected pod."""
    return {
        "observedGeneration": pod["metadata"].get("generation", 0),
        "phase": "Failed",
        "reason": found.reason,
        "message": f"Pod was rejected: {found.message}",
        "startTime": now,
    }


def find_excess(pod: StoredObject, sandbox: Sandbox) -> str:
    """Returns the message about a limit that the programs of a pod have exceeded; "" if they have not."""
    for volume in pod["spec"].get("volumes") or ():
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit and 0 < parse_quantity(str(limit)).value() < sandbox.volumes.count_bytes(volume["name"]):
            return f"Usage of EmptyDir volume {go_quote(volume['name'])} exceeds the limit {go_quote(str(limit))}. "
    total = container_sums(pod["spec"], "limits").get("ephemeral-storage")
    if total is not None and total.value() < sandbox.written_bytes():
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "
    for container in pod["spec"]["containers"]:
        limit = ((container.get("resources") or {}).get("limits") or {}).get("ephemeral-storage")
        if limit and 0 < parse_quantity(str(limit)).value() < sandbox.written_bytes_of(container["name"]):
            return f"Container {container['name']} exceeded its local ephemeral storage limit {go_quote(str(limit))}. "
    return ""


#: The field of a source that names an object → its resource and kind.
_KEYED: Final = {
    "configMapKeyRef": ("configmaps", "ConfigMap"),
    "secretKeyRef": ("secrets", "Secret"),
    "configMapRef": ("configmaps", "ConfigMap"),
    "secretRef": ("secrets", "Secret"),
    "configMap": ("configmaps", "ConfigMap"),
    "secret": ("secrets", "Secret"),
}


def mount_error(pod: StoredObject, cluster: ClusterAccess) -> str:
    """Returns why the volumes of a pod cannot be mounted; "" if they can."""
    return next(_mount_errors(pod, cluster), "")


def describe_failed_setup(volume: str, problem: str) -> str:
    """Returns the message of the event about a volume that cannot be mounted."""
    return f'MountVolume.SetUp failed for volume "{volume}" : {problem}'


def _mount_errors(pod: StoredObject, cluster: ClusterAccess) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        sources = [volume, *((volume.get("projected") or {}).get("sources") or ())]
        for source in sources:
            for field in ("configMap", "secret"):
                if field in source:
                    problem = _find_missing(pod, field, source[field], cluster)
                    if problem:
                        yield describe_failed_setup(volume["name"], problem)
            if "clusterTrustBundle" in source and (problem := _missing_trust_anchors(source["clusterTrustBundle"], cluster)):
                yield describe_failed_setup(volume["name"], problem)


def _missing_trust_anchors(source: StoredObject, cluster: ClusterAccess) -> str:
    from fakekube.nodes.runtime.volumes import trust_anchors  # a pod that has no such volume does not need the runtime

    return trust_anchors(source, cluster)[1]


def _find_missing(pod: StoredObject, field: str, source: StoredObject, cluster: ClusterAccess) -> str:
    """Returns what a source refers to and does not exist; "" if all exists, or is optional."""
    if source.get("optional"):
        return ""
    plural, kind = _KEYED[field]
    namespace, name = pod["metadata"]["namespace"], source.get("secretName") or source.get("name") or ""
    found = cluster.get("", plural, namespace, name)
    if found is None:
        return f'{plural.removesuffix("s")} "{name}" not found'
    known = {**(found.get("data") or {}), **(found.get("binaryData") or {})}
    for item in source.get("items") or ():
        if item["key"] not in known:
            return f"references non-existent {plural.removesuffix('s')} key: {item['key']}"
    if "key" in source and source["key"] not in known:
        return f"couldn't find key {source['key']} in {kind} {namespace}/{name}"
    return ""


def creation_error(
    pod: StoredObject, container: StoredObject, cluster: ClusterAccess, image: Image | None, environment: Mapping[str, str]
) -> str:
    """Returns why a container cannot be created; "" if it can.

    Args:
        pod: the pod.
        container: an item of its spec.
        cluster: access to ConfigMaps and Secrets.
        image: the image of the container; None if it is not known.
        environment: the variables of the container.
    """
    return next(_creation_errors(pod, container, cluster, image, environment), "")


def _creation_errors(
    pod: StoredObject, container: StoredObject, cluster: ClusterAccess, image: Image | None, environment: Mapping[str, str]
) -> Iterator[str]:
    for source in (*(container.get("envFrom") or ()), *(one.get("valueFrom") or {} for one in container.get("env") or ())):
        for field in _KEYED.keys() & source.keys():
            problem = _find_missing(pod, field, source[field], cluster)
            if problem:
                yield problem
    for mount in container.get("volumeMounts") or ():
        yield from _sub_path_errors(mount, environment)
    yield from _user_errors(pod, container, image)


def _sub_path_errors(mount: StoredObject, environment: Mapping[str, str]) -> Iterator[str]:
    expression = mount.get("subPathExpr") or ""
    if not expression:
        return
    from fakekube.nodes.runtime.environment import REFERENCE, expand

    for found in REFERENCE.finditer(expression):
        if found[2] is not None and found[2] not in environment:
            yield f'missing value for "{found[2]}"'
    path = expand(expression, environment)
    if path.startswith("/"):
        yield f"error SubPath {go_quote(path)} must not be an absolute path"
    if ".." in path.split("/"):
        yield f"unable to provision SubPath {go_quote(path)}: must not contain '..'"


def _user_errors(pod: StoredObject, container: StoredObject, image: Image | None) -> Iterator[str]:
    own, shared = container.get("securityContext") or {}, pod["spec"].get("securityContext") or {}

    def value(name: str) -> Any:
        return own[name] if own.get(name) is not None else shared.get(name)

    if not value("runAsNonRoot"):
        return
    metadata = pod["metadata"]
    where = f'(pod: "{metadata["name"]}_{metadata["namespace"]}({metadata["uid"]})", container: {container["name"]})'
    if value("runAsUser") == 0:
        yield f"container's runAsUser breaks non-root policy {where}"
    elif value("runAsUser") is None and image is not None and not (image.user.partition(":")[0] or "0").strip("0"):
        yield f"container has runAsNonRoot and image will run as root {where}"

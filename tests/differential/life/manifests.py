"""Objects of the scenarios about living clusters, and the kinds that they are about."""

from __future__ import annotations

from typing import Any

#: kind -> (apiVersion, plural, namespaced)
KINDS = {
    kind: (version, plural, scope == "n")
    for kind, version, plural, scope in (
        line.split()
        for line in """
    Pod v1 pods n
    Service v1 services n
    Endpoints v1 endpoints n
    ConfigMap v1 configmaps n
    Secret v1 secrets n
    ServiceAccount v1 serviceaccounts n
    PersistentVolumeClaim v1 persistentvolumeclaims n
    PersistentVolume v1 persistentvolumes c
    ReplicationController v1 replicationcontrollers n
    ResourceQuota v1 resourcequotas n
    LimitRange v1 limitranges n
    PodTemplate v1 podtemplates n
    Namespace v1 namespaces c
    Node v1 nodes c
    Event v1 events n
    Deployment apps/v1 deployments n
    ReplicaSet apps/v1 replicasets n
    StatefulSet apps/v1 statefulsets n
    DaemonSet apps/v1 daemonsets n
    ControllerRevision apps/v1 controllerrevisions n
    Job batch/v1 jobs n
    CronJob batch/v1 cronjobs n
    HorizontalPodAutoscaler autoscaling/v2 horizontalpodautoscalers n
    PodDisruptionBudget policy/v1 poddisruptionbudgets n
    EndpointSlice discovery.k8s.io/v1 endpointslices n
    CertificateSigningRequest certificates.k8s.io/v1 certificatesigningrequests c
    ClusterRole rbac.authorization.k8s.io/v1 clusterroles c
    ClusterRoleBinding rbac.authorization.k8s.io/v1 clusterrolebindings c
    Role rbac.authorization.k8s.io/v1 roles n
    StorageClass storage.k8s.io/v1 storageclasses c
    VolumeAttachment storage.k8s.io/v1 volumeattachments c
    PriorityClass scheduling.k8s.io/v1 priorityclasses c
    Lease coordination.k8s.io/v1 leases n
    CustomResourceDefinition apiextensions.k8s.io/v1 customresourcedefinitions c
    StorageVersionMigration storagemigration.k8s.io/v1 storageversionmigrations c
    ResourceClaim resource.k8s.io/v1 resourceclaims n
    ResourceClaimTemplate resource.k8s.io/v1 resourceclaimtemplates n
    ResourceSlice resource.k8s.io/v1 resourceslices c
    DeviceClass resource.k8s.io/v1 deviceclasses c
    DeviceTaintRule resource.k8s.io/v1 devicetaintrules c
    PodCertificateRequest certificates.k8s.io/v1 podcertificaterequests n
""".strip().splitlines()
    )
}
KIND_OF = {plural: kind for kind, (_, plural, _) in KINDS.items()}
UNWATCHED = {
    "leases",
    "roles",
    "storageclasses",
    "volumeattachments",
    "priorityclasses",
    "customresourcedefinitions",
    "clusterrolebindings",
    "podtemplates",
    "storageversionmigrations",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
    "deviceclasses",
    "devicetaintrules",
    "podcertificaterequests",
}
SHARED_NODE = "life-node"
SILENT = "fakekube.dev/kubelet"
#: A scheduler that nobody plays: pods of this one stay as they are until the scenario itself moves them.
BY_HAND = "by-hand"


def root(version: str, plural: str, namespace: str | None) -> str:
    base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


def node_named(
    name: str, room: dict[str, str], labels: dict[str, str] | None = None, taints: Any = None, **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {**({"taints": taints} if taints else {}), **spec},
        "status": {"capacity": room, "allocatable": room},
    }


def condition(obj: dict[str, Any] | None, type_: str, field: str = "status") -> str | None:
    """A field of the condition of this type, or None."""
    for c in ((obj or {}).get("status") or {}).get("conditions") or []:
        if c["type"] == type_:
            return c.get(field)
    return None


def template(
    labels: dict[str, str],
    image: str = "app:1",
    hand: bool = False,
    annotations: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod template with one container named c; `hand`: no scheduler takes its pods."""
    container = {"name": "c", "image": image, **({"resources": {"requests": requests}} if requests else {})}
    return {
        "metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})},
        "spec": {"containers": [container], **({"schedulerName": BY_HAND} if hand else {}), **spec},
    }


def pod(name: str, labels: dict[str, str] | None = None, **kw: Any) -> dict[str, Any]:
    made = template(labels or {}, **kw)
    return {"kind": "Pod", "metadata": {"name": name, **{k: v for k, v in made["metadata"].items() if v}}, "spec": made["spec"]}


def workload(
    kind: str,
    name: str,
    replicas: int | None,
    image: str = "app:1",
    hand: bool = False,
    pods: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet of pods labelled app=NAME; `pods` is for their template."""
    return {
        "kind": kind,
        "metadata": {
            "name": name,
            **({"labels": labels} if labels else {}),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            **({"replicas": replicas} if replicas is not None else {}),
            "selector": {"matchLabels": {"app": name}},
            "template": template({"app": name}, image, hand, **(pods or {})),
            **spec,
        },
    }


def job(name: str, hand: bool = False, pods: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template({}, "job:1", hand, **{"restartPolicy": "Never", **(pods or {})}), **spec},
    }


def image(tag: str) -> dict[str, Any]:
    """A merge patch that gives a workload's container another image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": tag}]}}}}


def config(name: str, owners: list[dict[str, Any]] | None = None, **meta: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": name, **({"ownerReferences": owners} if owners else {}), **meta}}


def owner(obj: dict[str, Any], block: bool | None = None, controller: bool | None = None) -> dict[str, Any]:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        **({"blockOwnerDeletion": block} if block is not None else {}),
        **({"controller": controller} if controller is not None else {}),
    }

"""The controllers that there are, by the names by which --controllers of kube-controller-manager switches them.

A row says where a controller is found and which resources wake it: its module is not imported before one of them
changes. A controller must be woken by every resource of which a fresh cluster has objects that it looks after.

Specified by: cmd/kube-controller-manager/names/controller_names.go and app/controllermanager.go; the scheduler, kubelets
and what a cloud does have rows, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from fakekube.controllers.reconciler import Reconciler

__all__ = ["ALIASES", "ANYTHING", "DELETION_GRACE", "PROFILES", "ROWS", "Row", "UnknownController", "enabled"]

#: Wakes a controller on changes of every resource, if the row's `concerns` says so.
ANYTHING = "*"


class UnknownController(ValueError):
    """There is no controller of that name."""


def _everything(obj: Mapping[str, Any]) -> bool:
    return True


def _is_unscheduled(pod: Mapping[str, Any]) -> bool:
    return not pod["spec"].get("nodeName") and pod["spec"].get("schedulerName") == "default-scheduler"


def _is_of_nodes(obj: Mapping[str, Any]) -> bool:
    """A node, or a pod on one."""
    return "containers" not in obj.get("spec", {}) or bool(obj["spec"].get("nodeName"))


def _is_namespace_or_root_certificate(obj: Mapping[str, Any]) -> bool:
    return "namespace" not in obj["metadata"] or obj["metadata"]["name"] == "kube-root-ca.crt"


def _drives_out(node: Mapping[str, Any]) -> bool:
    """Has the node a taint NoExecute?"""
    return any(taint.get("effect") == "NoExecute" for taint in node["spec"].get("taints") or ())


def _has_selector(service: Mapping[str, Any]) -> bool:
    return service["spec"].get("selector") is not None


def _is_mirrored(endpoints: Mapping[str, Any]) -> bool:
    return (endpoints["metadata"].get("labels") or {}).get("endpointslice.kubernetes.io/skip-mirror") != "true"


def _is_load_balancer(service: Mapping[str, Any]) -> bool:
    return bool(service["spec"].get("type") == "LoadBalancer")


@dataclass(slots=True, frozen=True, eq=False)
class Row:
    """One controller."""

    name: str
    path: str
    """module:Class"""
    wakes_on: tuple[str, ...]
    """Resources, as `Reconciler.watches` names them."""
    concerns: Callable[[Mapping[str, Any]], bool] = _everything
    """Does this object, as it is stored, wake the controller?"""
    by_default: bool = True
    """Does it run where `*` is asked for?"""

    def load(self) -> Reconciler:
        """A new instance."""
        module, _, name = self.path.partition(":")
        return cast("Reconciler", getattr(import_module(module), name)())


def _has_owners_or_waits(obj: Mapping[str, Any]) -> bool:
    """Is the object the garbage collector's business? What the store keeps beside objects (ports that are taken) is not."""
    metadata = obj.get("metadata") or {}
    if "ownerReferences" in metadata:
        return True
    return "deletionTimestamp" in metadata and not {"orphan", "foregroundDeletion"}.isdisjoint(metadata.get("finalizers") or ())


def _has_tracking_finalizer(obj: Mapping[str, Any]) -> bool:
    """Is this a Job, or a pod that one has to count?"""
    return "batch.kubernetes.io/job-tracking" in (obj["metadata"].get("finalizers") or ()) or "template" in obj["spec"]


def _holds_a_token(secret: Mapping[str, Any]) -> bool:
    """Is it a Secret for a token of a service account?"""
    return bool(secret.get("type") == "kubernetes.io/service-account-token")


def _is_unchecked(policy: Mapping[str, Any]) -> bool:
    """Have the types of this generation of a policy not been checked?"""
    return bool(policy["metadata"].get("generation", 0) > (policy.get("status") or {}).get("observedGeneration", 0))


def _has_ephemeral_volumes(pod: Mapping[str, Any]) -> bool:
    """Is there a volume whose claim is made with the pod?"""
    return any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ())


def _is_managed(node: Mapping[str, Any]) -> bool:
    """Does the node leave it to the control plane to attach volumes?"""
    return "volumes.kubernetes.io/controller-managed-attach-detach" in (node["metadata"].get("annotations") or {})


def _claims_resources(obj: Mapping[str, Any]) -> bool:
    """Is it a claim, or a pod that has some?"""
    return "containers" not in obj["spec"] or bool(obj["spec"].get("resourceClaims"))


def _is_placed_or_ends(pod: Mapping[str, Any]) -> bool:
    """May somebody have to take the pod away, now or later?"""
    return "deletionTimestamp" in pod["metadata"] or bool(pod["spec"].get("nodeName"))


def _is_about_bootstrap(obj: Mapping[str, Any]) -> bool:
    """Is it a bootstrap token, or what is signed by some?"""
    return obj.get("type") == "bootstrap.kubernetes.io/token" or obj["metadata"]["name"] == "cluster-info"


def _is_budget_or_target(obj: Mapping[str, Any]) -> bool:
    """Is this a budget, or a pod that is marked to be disrupted?"""
    if "containers" not in obj["spec"]:
        return True
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "DisruptionTarget" for condition in conditions)


_HERE = "fakekube.controllers."
_REQUESTS = ("certificatesigningrequests.certificates.k8s.io",)

ROWS: tuple[Row, ...] = (
    Row("garbage-collector-controller", _HERE + "garbagecollector:GarbageCollector", (ANYTHING,), _has_owners_or_waits),
    Row("namespace-controller", _HERE + "namespaces:NamespaceController", ("namespaces",)),
    Row("serviceaccount-controller", _HERE + "service_accounts:ServiceAccountController", ("namespaces", "serviceaccounts")),
    Row(
        "root-ca-certificate-publisher-controller",
        _HERE + "root_certificate:RootCertificatePublisher",
        ("namespaces", "configmaps"),
        concerns=_is_namespace_or_root_certificate,
    ),
    Row("serviceaccount-token-controller", _HERE + "service_account_tokens:TokensController", ("secrets",), _holds_a_token),
    Row(
        "legacy-serviceaccount-token-cleaner-controller", _HERE + "legacy_tokens:LegacyTokenCleaner", ("secrets",), _holds_a_token
    ),
    Row(
        "clusterrole-aggregation-controller",
        _HERE + "cluster_roles:ClusterRoleAggregationController",
        ("clusterroles.rbac.authorization.k8s.io",),
    ),
    Row("resourcequota-controller", _HERE + "resource_quota:ResourceQuotaController", ("resourcequotas",)),
    Row("certificatesigningrequest-approving-controller", _HERE + "certificates.approver:CSRApprovingController", _REQUESTS),
    Row("certificatesigningrequest-signing-controller", _HERE + "certificates.signer:CSRSigningController", _REQUESTS),
    Row("certificatesigningrequest-cleaner-controller", _HERE + "certificates.cleaner:CSRCleanerController", _REQUESTS),
    Row(
        "persistentvolume-binder-controller",
        _HERE + "volumes.controller:PersistentVolumeController",
        ("persistentvolumeclaims", "persistentvolumes"),
    ),
    Row("persistentvolume-expander-controller", _HERE + "volumes.expander:ExpandController", ("persistentvolumeclaims",)),
    Row("ephemeral-volume-controller", _HERE + "volumes.ephemeral:EphemeralVolumeController", ("pods",), _has_ephemeral_volumes),
    Row("storage-provisioner", _HERE + "volumes.provisioner:StorageProvisioner", ("persistentvolumeclaims",)),
    Row(
        "persistentvolume-attach-detach-controller",
        _HERE + "volumes.attach_detach:AttachDetachController",
        ("nodes",),
        _is_managed,
    ),
    Row(
        "volumeattributesclass-protection-controller",
        _HERE + "volumes.protection:AttributesClassProtection",
        ("volumeattributesclasses.storage.k8s.io",),
    ),
    Row("service-cidr-controller", _HERE + "service_cidrs:ServiceCIDRController", ("servicecidrs.networking.k8s.io",)),
    Row(
        "resourceclaim-controller",
        _HERE + "resource_claims:ResourceClaimController",
        ("pods", "resourceclaims.resource.k8s.io"),
        _claims_resources,
    ),
    Row("pod-garbage-collector-controller", _HERE + "pod_garbage:PodGarbageCollector", ("pods",), _is_placed_or_ends),
    Row("ttl-after-finished-controller", _HERE + "ttl_after_finished:TTLAfterFinishedController", ("jobs.batch",)),
    Row(
        "bootstrap-signer-controller",
        _HERE + "bootstrap_tokens:BootstrapSigner",
        ("secrets", "configmaps"),
        _is_about_bootstrap,
        by_default=False,
    ),
    Row("token-cleaner-controller", _HERE + "bootstrap_tokens:TokenCleaner", ("secrets",), _is_about_bootstrap, by_default=False),
    Row("persistentvolumeclaim-protection-controller", _HERE + "volumes.protection:ClaimProtection", ("persistentvolumeclaims",)),
    Row("persistentvolume-protection-controller", _HERE + "volumes.protection:VolumeProtection", ("persistentvolumes",)),
    Row("deployment-controller", _HERE + "deployment.controller:DeploymentController", ("deployments.apps",)),
    Row("replicaset-controller", _HERE + "replicasets:ReplicaSetController", ("replicasets.apps",)),
    Row("replicationcontroller-controller", _HERE + "replicasets:ReplicationController", ("replicationcontrollers",)),
    Row("statefulset-controller", _HERE + "statefulset.controller:StatefulSetController", ("statefulsets.apps",)),
    Row("daemonset-controller", _HERE + "daemon.controller:DaemonSetController", ("daemonsets.apps",)),
    Row("cronjob-controller", _HERE + "cronjobs:CronJobController", ("cronjobs.batch",)),
    Row(
        "disruption-controller",
        _HERE + "disruption:DisruptionController",
        ("poddisruptionbudgets.policy", "pods"),
        _is_budget_or_target,
    ),
    Row(
        "horizontal-pod-autoscaler-controller",
        _HERE + "podautoscaler.controller:HorizontalPodAutoscalerController",
        ("horizontalpodautoscalers.autoscaling",),
    ),
    Row("job-controller", _HERE + "job.controller:JobController", ("jobs.batch", "pods"), _has_tracking_finalizer),
    Row("node-lifecycle-controller", _HERE + "node_lifecycle:NodeLifecycleController", ("nodes",)),
    Row("taint-eviction-controller", _HERE + "taint_eviction:TaintEvictionController", ("nodes",), _drives_out),
    Row("node-ipam-controller", _HERE + "node_ipam:NodeIPAMController", ("nodes",), by_default=False),
    Row("ttl-controller", _HERE + "node_ttl:TTLController", ("nodes",)),
    Row("endpoints-controller", _HERE + "endpoints.controller:EndpointsController", ("services",), _has_selector),
    Row("endpointslice-controller", _HERE + "endpoints.slice_controller:EndpointSliceController", ("services",), _has_selector),
    Row(
        "endpointslice-mirroring-controller",
        _HERE + "endpoints.mirroring_controller:EndpointSliceMirroringController",
        ("endpoints",),
        _is_mirrored,
    ),
    Row(
        "validatingadmissionpolicy-status-controller",
        _HERE + "admission_policy_status:ValidatingAdmissionPolicyStatusController",
        ("validatingadmissionpolicies.admissionregistration.k8s.io",),
        _is_unchecked,
    ),
    Row(
        "service-lb-controller",
        _HERE + "cloud.service_load_balancers:ServiceLoadBalancerController",
        ("services",),
        _is_load_balancer,
    ),
    Row("ingress-controller", _HERE + "cloud.ingresses:IngressController", ("ingresses.networking.k8s.io",)),
    Row("kwok-stage-controller", "fakekube.nodes.stages.controller:StageController", ("stages.kwok.x-k8s.io",)),
    Row("kube-scheduler", "fakekube.scheduler.scheduler:Scheduler", ("pods",), _is_unscheduled),
    Row("kubelet", "fakekube.nodes.kubelet:Kubelet", ("nodes", "pods"), _is_of_nodes),
    Row("metrics-server", "fakekube.nodes.metrics_server:MetricsServer", ()),
)

#: Names of old, which --controllers still understands.
ALIASES: Mapping[str, str] = {
    "attachdetach": "persistentvolume-attach-detach-controller",
    "bootstrapsigner": "bootstrap-signer-controller",
    "clusterrole-aggregation": "clusterrole-aggregation-controller",
    "cronjob": "cronjob-controller",
    "csrapproving": "certificatesigningrequest-approving-controller",
    "csrcleaner": "certificatesigningrequest-cleaner-controller",
    "csrsigning": "certificatesigningrequest-signing-controller",
    "daemonset": "daemonset-controller",
    "deployment": "deployment-controller",
    "disruption": "disruption-controller",
    "endpoint": "endpoints-controller",
    "endpointslice": "endpointslice-controller",
    "endpointslicemirroring": "endpointslice-mirroring-controller",
    "ephemeral-volume": "ephemeral-volume-controller",
    "garbagecollector": "garbage-collector-controller",
    "horizontalpodautoscaling": "horizontal-pod-autoscaler-controller",
    "job": "job-controller",
    "legacy-service-account-token-cleaner": "legacy-serviceaccount-token-cleaner-controller",
    "namespace": "namespace-controller",
    "nodelifecycle": "node-lifecycle-controller",
    "persistentvolume-binder": "persistentvolume-binder-controller",
    "persistentvolume-expander": "persistentvolume-expander-controller",
    "podgc": "pod-garbage-collector-controller",
    "pv-protection": "persistentvolume-protection-controller",
    "pvc-protection": "persistentvolumeclaim-protection-controller",
    "replicaset": "replicaset-controller",
    "replicationcontroller": "replicationcontroller-controller",
    "resource-claim-controller": "resourceclaim-controller",
    "resourcequota": "resourcequota-controller",
    "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
    "service": "service-lb-controller",
    "serviceaccount": "serviceaccount-controller",
    "serviceaccount-token": "serviceaccount-token-controller",
    "statefulset": "statefulset-controller",
    "tokencleaner": "token-cleaner-controller",
    "ttl": "ttl-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
}

#: What --controllers is where nothing else is said. `envtest` is for suites that were written for no controllers: it has those
#: whose work such a suite would have to do itself.
PROFILES: Mapping[str, tuple[str, ...]] = {
    "apiserver": (),
    "envtest": ("namespace-controller", "garbage-collector-controller"),
    "cluster": ("*",),
}

#: Profile → `Context.deletion_grace`.
DELETION_GRACE: Mapping[str, float] = {"envtest": 1.0}


def enabled(switches: Iterable[str]) -> tuple[Row, ...]:
    """The controllers that are switched on: `*` (all that run by default), `name`, `-name`; the first that fits decides.

    Raises UnknownController.
    """
    return _enabled(tuple(switches))


@lru_cache(maxsize=64)
def _enabled(switches: tuple[str, ...]) -> tuple[Row, ...]:
    chosen = [_by_new_name(switch.strip()) for switch in switches if switch.strip()]
    known = {row.name for row in ROWS}
    for switch in chosen:
        if switch != "*" and switch.removeprefix("-") not in known:
            raise UnknownController(f'"{switch.removeprefix("-")}" is not in the list of known controllers')
    return tuple(row for row in ROWS if _is_enabled(row, chosen))


def _by_new_name(switch: str) -> str:
    name = switch.removeprefix("-")
    return switch[: len(switch) - len(name)] + ALIASES.get(name, name)


def _is_enabled(row: Row, switches: list[str]) -> bool:
    """As IsControllerEnabled of k8s.io/controller-manager/app/helper.go."""
    if row.name in switches:
        return True
    if "-" + row.name in switches:
        return False
    return "*" in switches and row.by_default

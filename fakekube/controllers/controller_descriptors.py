"""All controllers, by the names that the flag --controllers of kube-controller-manager uses.

A descriptor holds the place of a controller's class and the resources that start it: the module is imported when one of them
changes. `starts_on` must list every resource of which a fresh cluster has objects that the controller reconciles.

The scheduler, the kubelets and the controllers of a cloud provider have descriptors, too.

Specified by: cmd/kube-controller-manager/names/controller_names.go, cmd/kube-controller-manager/app/controller_descriptor.go,
k8s.io/controller-manager/app/helper.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from fakekube.controllers.reconciler import Reconciler

from fakekube.apis.validation.objectmeta import DELETE_DEPENDENTS, ORPHAN_DEPENDENTS

__all__ = [
    "ALIASES",
    "ANY_RESOURCE",
    "CONTROLLERS",
    "DELETION_GRACE",
    "PROFILES",
    "ControllerDescriptor",
    "UnknownController",
    "enabled",
]

#: In `ControllerDescriptor.starts_on`: changes of every resource start the controller, if `starts_for` holds.
ANY_RESOURCE = "*"


class UnknownController(ValueError):
    """There is no controller of that name."""


def _any_object(obj: Mapping[str, Any]) -> bool:
    return True


def _is_unscheduled(pod: Mapping[str, Any]) -> bool:
    return not pod["spec"].get("nodeName") and pod["spec"].get("schedulerName") == "default-scheduler"


def _is_node_or_assigned_pod(obj: Mapping[str, Any]) -> bool:
    return "containers" not in obj.get("spec", {}) or bool(obj["spec"].get("nodeName"))


def _is_namespace_or_root_certificate(obj: Mapping[str, Any]) -> bool:
    return "namespace" not in obj["metadata"] or obj["metadata"]["name"] == "kube-root-ca.crt"


def _has_no_execute_taint(node: Mapping[str, Any]) -> bool:
    return any(taint.get("effect") == "NoExecute" for taint in node["spec"].get("taints") or ())


def _has_selector(service: Mapping[str, Any]) -> bool:
    return service["spec"].get("selector") is not None


def _is_mirrored(endpoints: Mapping[str, Any]) -> bool:
    return (endpoints["metadata"].get("labels") or {}).get("endpointslice.kubernetes.io/skip-mirror") != "true"


def _is_load_balancer(service: Mapping[str, Any]) -> bool:
    return bool(service["spec"].get("type") == "LoadBalancer")


@dataclass(slots=True, frozen=True, eq=False)
class ControllerDescriptor:
    """A controller that can be switched on (ControllerDescriptor of kube-controller-manager)."""

    name: str
    path: str
    """The class of the controller, as "module:Class"."""
    starts_on: tuple[str, ...]
    """The resources whose changes start the controller, named as in `Reconciler.watches`."""
    starts_for: Callable[[Mapping[str, Any]], bool] = _any_object
    """Whether a change of this object, which has the form of the store, starts the controller."""
    by_default: bool = True
    """Whether `*` switches it on."""

    def new_controller(self) -> Reconciler:
        """Imports the module and returns a new instance of the controller."""
        module, _, name = self.path.partition(":")
        return cast("Reconciler", getattr(import_module(module), name)())


def _has_owners_or_is_collected(obj: Mapping[str, Any]) -> bool:
    """Whether the garbage collector has to look at the object. Other records of the store, such as allocated ports, have
    no metadata."""
    metadata = obj.get("metadata") or {}
    if "ownerReferences" in metadata:
        return True
    finalizers = metadata.get("finalizers") or ()
    return "deletionTimestamp" in metadata and (ORPHAN_DEPENDENTS in finalizers or DELETE_DEPENDENTS in finalizers)


def _is_job_or_tracked_pod(obj: Mapping[str, Any]) -> bool:
    return "batch.kubernetes.io/job-tracking" in (obj["metadata"].get("finalizers") or ()) or "template" in obj["spec"]


def _is_service_account_token(secret: Mapping[str, Any]) -> bool:
    return bool(secret.get("type") == "kubernetes.io/service-account-token")


def _is_not_type_checked(policy: Mapping[str, Any]) -> bool:
    """Whether the present generation of the policy has not been type checked."""
    return bool(policy["metadata"].get("generation", 0) > (policy.get("status") or {}).get("observedGeneration", 0))


def _has_ephemeral_volumes(pod: Mapping[str, Any]) -> bool:
    return any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ())


def _has_managed_attachments(node: Mapping[str, Any]) -> bool:
    """Whether the attach-detach controller attaches the volumes of the node."""
    return "volumes.kubernetes.io/controller-managed-attach-detach" in (node["metadata"].get("annotations") or {})


def _is_claim_or_pod_with_claims(obj: Mapping[str, Any]) -> bool:
    return "containers" not in obj["spec"] or bool(obj["spec"].get("resourceClaims"))


def _is_assigned_or_terminating(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"] or bool(pod["spec"].get("nodeName"))


def _is_bootstrap_token_or_cluster_info(obj: Mapping[str, Any]) -> bool:
    return obj.get("type") == "bootstrap.kubernetes.io/token" or obj["metadata"]["name"] == "cluster-info"


def _is_budget_or_disruption_target(obj: Mapping[str, Any]) -> bool:
    """Whether this is a PodDisruptionBudget, or a pod with the condition DisruptionTarget."""
    if "containers" not in obj["spec"]:
        return True
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "DisruptionTarget" for condition in conditions)


_PACKAGE = "fakekube.controllers."
_CSRS = ("certificatesigningrequests.certificates.k8s.io",)

CONTROLLERS: tuple[ControllerDescriptor, ...] = (
    ControllerDescriptor(
        "garbage-collector-controller",
        _PACKAGE + "garbagecollector:GarbageCollector",
        (ANY_RESOURCE,),
        _has_owners_or_is_collected,
    ),
    ControllerDescriptor("namespace-controller", _PACKAGE + "namespace:NamespaceController", ("namespaces",)),
    ControllerDescriptor(
        "serviceaccount-controller", _PACKAGE + "service_accounts:ServiceAccountController", ("namespaces", "serviceaccounts")
    ),
    ControllerDescriptor(
        "root-ca-certificate-publisher-controller",
        _PACKAGE + "root_ca_cert_publisher:RootCertificatePublisher",
        ("namespaces", "configmaps"),
        starts_for=_is_namespace_or_root_certificate,
    ),
    ControllerDescriptor(
        "serviceaccount-token-controller",
        _PACKAGE + "service_account_tokens:TokensController",
        ("secrets",),
        _is_service_account_token,
    ),
    ControllerDescriptor(
        "legacy-serviceaccount-token-cleaner-controller",
        _PACKAGE + "legacy_service_account_token_cleaner:LegacyTokenCleaner",
        ("secrets",),
        _is_service_account_token,
    ),
    ControllerDescriptor(
        "clusterrole-aggregation-controller",
        _PACKAGE + "cluster_role_aggregation:ClusterRoleAggregationController",
        ("clusterroles.rbac.authorization.k8s.io",),
    ),
    ControllerDescriptor("resourcequota-controller", _PACKAGE + "resource_quota:ResourceQuotaController", ("resourcequotas",)),
    ControllerDescriptor(
        "certificatesigningrequest-approving-controller", _PACKAGE + "certificates.approver:CSRApprovingController", _CSRS
    ),
    ControllerDescriptor(
        "certificatesigningrequest-signing-controller", _PACKAGE + "certificates.signer:CSRSigningController", _CSRS
    ),
    ControllerDescriptor(
        "certificatesigningrequest-cleaner-controller", _PACKAGE + "certificates.cleaner:CSRCleanerController", _CSRS
    ),
    ControllerDescriptor(
        "persistentvolume-binder-controller",
        _PACKAGE + "volumes.controller:PersistentVolumeController",
        ("persistentvolumeclaims", "persistentvolumes"),
    ),
    ControllerDescriptor(
        "persistentvolume-expander-controller", _PACKAGE + "volumes.expander:ExpandController", ("persistentvolumeclaims",)
    ),
    ControllerDescriptor(
        "ephemeral-volume-controller", _PACKAGE + "volumes.ephemeral:EphemeralVolumeController", ("pods",), _has_ephemeral_volumes
    ),
    ControllerDescriptor("storage-provisioner", _PACKAGE + "volumes.provisioner:StorageProvisioner", ("persistentvolumeclaims",)),
    ControllerDescriptor(
        "persistentvolume-attach-detach-controller",
        _PACKAGE + "volumes.attach_detach:AttachDetachController",
        ("nodes",),
        _has_managed_attachments,
    ),
    ControllerDescriptor(
        "volumeattributesclass-protection-controller",
        _PACKAGE + "volumes.protection:AttributesClassProtection",
        ("volumeattributesclasses.storage.k8s.io",),
    ),
    ControllerDescriptor(
        "service-cidr-controller", _PACKAGE + "service_cidrs:ServiceCIDRController", ("servicecidrs.networking.k8s.io",)
    ),
    ControllerDescriptor(
        "resourceclaim-controller",
        _PACKAGE + "resource_claim:ResourceClaimController",
        ("pods", "resourceclaims.resource.k8s.io"),
        _is_claim_or_pod_with_claims,
    ),
    ControllerDescriptor(
        "pod-garbage-collector-controller", _PACKAGE + "pod_gc:PodGarbageCollector", ("pods",), _is_assigned_or_terminating
    ),
    ControllerDescriptor(
        "ttl-after-finished-controller", _PACKAGE + "ttl_after_finished:TTLAfterFinishedController", ("jobs.batch",)
    ),
    ControllerDescriptor(
        "bootstrap-signer-controller",
        _PACKAGE + "bootstrap:BootstrapSigner",
        ("secrets", "configmaps"),
        _is_bootstrap_token_or_cluster_info,
        by_default=False,
    ),
    ControllerDescriptor(
        "token-cleaner-controller",
        _PACKAGE + "bootstrap:TokenCleaner",
        ("secrets",),
        _is_bootstrap_token_or_cluster_info,
        by_default=False,
    ),
    ControllerDescriptor(
        "persistentvolumeclaim-protection-controller",
        _PACKAGE + "volumes.protection:ClaimProtection",
        ("persistentvolumeclaims",),
    ),
    ControllerDescriptor(
        "persistentvolume-protection-controller", _PACKAGE + "volumes.protection:VolumeProtection", ("persistentvolumes",)
    ),
    ControllerDescriptor("deployment-controller", _PACKAGE + "deployment.controller:DeploymentController", ("deployments.apps",)),
    ControllerDescriptor("replicaset-controller", _PACKAGE + "replicaset:ReplicaSetController", ("replicasets.apps",)),
    ControllerDescriptor(
        "replicationcontroller-controller", _PACKAGE + "replicaset:ReplicationController", ("replicationcontrollers",)
    ),
    ControllerDescriptor(
        "statefulset-controller", _PACKAGE + "statefulset.controller:StatefulSetController", ("statefulsets.apps",)
    ),
    ControllerDescriptor("daemonset-controller", _PACKAGE + "daemon.controller:DaemonSetController", ("daemonsets.apps",)),
    ControllerDescriptor("cronjob-controller", _PACKAGE + "cronjob.controller:CronJobController", ("cronjobs.batch",)),
    ControllerDescriptor(
        "disruption-controller",
        _PACKAGE + "disruption:DisruptionController",
        ("poddisruptionbudgets.policy", "pods"),
        _is_budget_or_disruption_target,
    ),
    ControllerDescriptor(
        "horizontal-pod-autoscaler-controller",
        _PACKAGE + "podautoscaler.controller:HorizontalPodAutoscalerController",
        ("horizontalpodautoscalers.autoscaling",),
    ),
    ControllerDescriptor(
        "job-controller", _PACKAGE + "job.controller:JobController", ("jobs.batch", "pods"), _is_job_or_tracked_pod
    ),
    ControllerDescriptor("node-lifecycle-controller", _PACKAGE + "node_lifecycle:NodeLifecycleController", ("nodes",)),
    ControllerDescriptor(
        "taint-eviction-controller", _PACKAGE + "taint_eviction:TaintEvictionController", ("nodes",), _has_no_execute_taint
    ),
    ControllerDescriptor("node-ipam-controller", _PACKAGE + "node_ipam:NodeIPAMController", ("nodes",), by_default=False),
    ControllerDescriptor("ttl-controller", _PACKAGE + "ttl:TTLController", ("nodes",)),
    ControllerDescriptor(
        "endpoints-controller", _PACKAGE + "endpoints.controller:EndpointsController", ("services",), _has_selector
    ),
    ControllerDescriptor(
        "endpointslice-controller", _PACKAGE + "endpoints.slice_controller:EndpointSliceController", ("services",), _has_selector
    ),
    ControllerDescriptor(
        "endpointslice-mirroring-controller",
        _PACKAGE + "endpoints.mirroring_controller:EndpointSliceMirroringController",
        ("endpoints",),
        _is_mirrored,
    ),
    ControllerDescriptor(
        "validatingadmissionpolicy-status-controller",
        _PACKAGE + "validating_admission_policy_status:ValidatingAdmissionPolicyStatusController",
        ("validatingadmissionpolicies.admissionregistration.k8s.io",),
        _is_not_type_checked,
    ),
    ControllerDescriptor(
        "service-lb-controller",
        _PACKAGE + "cloud.service_load_balancers:ServiceLoadBalancerController",
        ("services",),
        _is_load_balancer,
    ),
    ControllerDescriptor("ingress-controller", _PACKAGE + "cloud.ingresses:IngressController", ("ingresses.networking.k8s.io",)),
    ControllerDescriptor("kwok-stage-controller", "fakekube.nodes.stages.controller:StageController", ("stages.kwok.x-k8s.io",)),
    ControllerDescriptor("kube-scheduler", "fakekube.controllers.scheduler.scheduler:Scheduler", ("pods",), _is_unscheduled),
    ControllerDescriptor("kubelet", "fakekube.nodes.kubelet:Kubelet", ("nodes", "pods"), _is_node_or_assigned_pod),
    ControllerDescriptor("metrics-server", "fakekube.nodes.metrics_server:MetricsServer", ()),
)

#: Deprecated names that --controllers accepts, too (names.ControllerNames, CCMControllerAliases).
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

#: Profile → the default of --controllers. `envtest` is for test suites that are written for an API server without
#: controllers: it has those whose work such a suite would have to do itself.
PROFILES: Mapping[str, tuple[str, ...]] = {
    "apiserver": (),
    "envtest": ("namespace-controller", "garbage-collector-controller"),
    "cluster": ("*",),
}

#: Profile → `Context.deletion_grace`.
DELETION_GRACE: Mapping[str, float] = {"envtest": 1.0}


def enabled(switches: Iterable[str]) -> tuple[ControllerDescriptor, ...]:
    """Returns the controllers that the values of --controllers switch on.

    Args:
        switches: `*` (all that run by default), `name`, or `-name`. A name takes precedence over `-name`, and both over `*`.

    Raises:
        UnknownController: There is no controller of that name.
    """
    return _enabled(tuple(switches))


@lru_cache(maxsize=64)
def _enabled(switches: tuple[str, ...]) -> tuple[ControllerDescriptor, ...]:
    chosen = [_replace_alias(switch.strip()) for switch in switches if switch.strip()]
    known = {descriptor.name for descriptor in CONTROLLERS}
    for switch in chosen:
        if switch != "*" and switch.removeprefix("-") not in known:
            raise UnknownController(f'"{switch.removeprefix("-")}" is not in the list of known controllers')
    return tuple(descriptor for descriptor in CONTROLLERS if _is_enabled(descriptor, chosen))


def _replace_alias(switch: str) -> str:
    name = switch.removeprefix("-")
    return switch[: len(switch) - len(name)] + ALIASES.get(name, name)


def _is_enabled(descriptor: ControllerDescriptor, switches: list[str]) -> bool:
    """IsControllerEnabled."""
    if descriptor.name in switches:
        return True
    if "-" + descriptor.name in switches:
        return False
    return "*" in switches and descriptor.by_default

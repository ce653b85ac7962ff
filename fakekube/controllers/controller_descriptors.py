"""All controllers, by the names that the flag --controllers of kube-controller-manager uses.

A descriptor holds the constructor of a controller and the resources that start it: its module is imported when one of them
changes. `starts_on` must list every resource of which a fresh cluster has objects that the controller reconciles.

The scheduler and the controllers of a cloud provider have descriptors, too; those of the kubelets are in
`nodes.controller_descriptors`.

Invariant: importing this module imports no controller, so that a controller that does not run costs nothing.

Specified by: cmd/kube-controller-manager/names/controller_names.go, cmd/kube-controller-manager/app/controller_descriptor.go,
cmd/kube-controller-manager/app/{apps,autoscaling,batch,certificates,core,discovery,networking,policy,rbac}.go,
k8s.io/controller-manager/app/helper.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fakekube.apis.validation.objectmeta import DELETE_DEPENDENTS, ORPHAN_DEPENDENTS
from fakekube.apis.well_known import (
    DEFAULT_SCHEDULER_NAME,
    JOB_TRACKING_FINALIZER,
    LABEL_SKIP_MIRROR,
    ROOT_CA_CERT_CONFIG_MAP_NAME,
    SECRET_TYPE_BOOTSTRAP_TOKEN,
    SECRET_TYPE_SERVICE_ACCOUNT_TOKEN,
    TAINT_EFFECT_NO_EXECUTE,
)

if TYPE_CHECKING:
    from fakekube.controllers.reconciler import Reconciler


# --- Constructors, which import their controllers ---------------------------------------------------------------------


def new_garbage_collector() -> Reconciler:
    from fakekube.controllers.garbagecollector import GarbageCollector

    return GarbageCollector()


def new_namespace_controller() -> Reconciler:
    from fakekube.controllers.namespace import NamespaceController

    return NamespaceController()


def new_service_account_controller() -> Reconciler:
    from fakekube.controllers.service_accounts import ServiceAccountController

    return ServiceAccountController()


def new_root_certificate_publisher() -> Reconciler:
    from fakekube.controllers.root_ca_cert_publisher import RootCertificatePublisher

    return RootCertificatePublisher()


def new_tokens_controller() -> Reconciler:
    from fakekube.controllers.service_accounts import TokensController

    return TokensController()


def new_legacy_token_cleaner() -> Reconciler:
    from fakekube.controllers.service_accounts import LegacyTokenCleaner

    return LegacyTokenCleaner()


def new_cluster_role_aggregation_controller() -> Reconciler:
    from fakekube.controllers.cluster_role_aggregation import ClusterRoleAggregationController

    return ClusterRoleAggregationController()


def new_resource_quota_controller() -> Reconciler:
    from fakekube.controllers.resource_quota import ResourceQuotaController

    return ResourceQuotaController()


def new_pod_certificate_request_cleaner() -> Reconciler:
    from fakekube.controllers.certificates import PodCertificateRequestCleaner

    return PodCertificateRequestCleaner()


def new_cluster_trust_bundle_publisher() -> Reconciler:
    from fakekube.controllers.certificates import ClusterTrustBundlePublisher

    return ClusterTrustBundlePublisher()


def new_storage_version_migrator() -> Reconciler:
    from fakekube.controllers.storage_version_migrator import StorageVersionMigratorController

    return StorageVersionMigratorController()


def new_csr_approving_controller() -> Reconciler:
    from fakekube.controllers.certificates import CSRApprovingController

    return CSRApprovingController()


def new_csr_signing_controller() -> Reconciler:
    from fakekube.controllers.certificates import CSRSigningController

    return CSRSigningController()


def new_csr_cleaner_controller() -> Reconciler:
    from fakekube.controllers.certificates import CSRCleanerController

    return CSRCleanerController()


def new_persistent_volume_controller() -> Reconciler:
    from fakekube.controllers.volumes.controller import PersistentVolumeController

    return PersistentVolumeController()


def new_expand_controller() -> Reconciler:
    from fakekube.controllers.volumes.controller import ExpandController

    return ExpandController()


def new_ephemeral_volume_controller() -> Reconciler:
    from fakekube.controllers.volumes.protection import EphemeralVolumeController

    return EphemeralVolumeController()


def new_storage_provisioner() -> Reconciler:
    from fakekube.controllers.volumes.controller import StorageProvisioner

    return StorageProvisioner()


def new_attach_detach_controller() -> Reconciler:
    from fakekube.controllers.volumes.attach_detach import AttachDetachController

    return AttachDetachController()


def new_attributes_class_protection() -> Reconciler:
    from fakekube.controllers.volumes.protection import AttributesClassProtection

    return AttributesClassProtection()


def new_pod_group_protection() -> Reconciler:
    from fakekube.controllers.pod_groups import PodGroupProtection

    return PodGroupProtection()


def new_service_cidr_controller() -> Reconciler:
    from fakekube.controllers.service_cidrs import ServiceCIDRController

    return ServiceCIDRController()


def new_resource_claim_controller() -> Reconciler:
    from fakekube.controllers.resource_claim import ResourceClaimController

    return ResourceClaimController()


def new_pod_garbage_collector() -> Reconciler:
    from fakekube.controllers.pod_gc import PodGarbageCollector

    return PodGarbageCollector()


def new_ttl_after_finished_controller() -> Reconciler:
    from fakekube.controllers.ttl_after_finished import TTLAfterFinishedController

    return TTLAfterFinishedController()


def new_bootstrap_signer() -> Reconciler:
    from fakekube.controllers.bootstrap import BootstrapSigner

    return BootstrapSigner()


def new_token_cleaner() -> Reconciler:
    from fakekube.controllers.bootstrap import TokenCleaner

    return TokenCleaner()


def new_claim_protection() -> Reconciler:
    from fakekube.controllers.volumes.protection import ClaimProtection

    return ClaimProtection()


def new_volume_protection() -> Reconciler:
    from fakekube.controllers.volumes.protection import VolumeProtection

    return VolumeProtection()


def new_deployment_controller() -> Reconciler:
    from fakekube.controllers.deployment.controller import DeploymentController

    return DeploymentController()


def new_replica_set_controller() -> Reconciler:
    from fakekube.controllers.replicaset import ReplicaSetController

    return ReplicaSetController()


def new_replication_controller() -> Reconciler:
    from fakekube.controllers.replicaset import ReplicationController

    return ReplicationController()


def new_stateful_set_controller() -> Reconciler:
    from fakekube.controllers.statefulset.controller import StatefulSetController

    return StatefulSetController()


def new_daemon_set_controller() -> Reconciler:
    from fakekube.controllers.daemon import DaemonSetController

    return DaemonSetController()


def new_cron_job_controller() -> Reconciler:
    from fakekube.controllers.cronjob import CronJobController

    return CronJobController()


def new_disruption_controller() -> Reconciler:
    from fakekube.controllers.disruption import DisruptionController

    return DisruptionController()


def new_horizontal_pod_autoscaler_controller() -> Reconciler:
    from fakekube.controllers.podautoscaler.controller import HorizontalPodAutoscalerController

    return HorizontalPodAutoscalerController()


def new_job_controller() -> Reconciler:
    from fakekube.controllers.job.controller import JobController

    return JobController()


def new_node_lifecycle_controller() -> Reconciler:
    from fakekube.controllers.node_lifecycle import NodeLifecycleController

    return NodeLifecycleController()


def new_taint_eviction_controller() -> Reconciler:
    from fakekube.controllers.taint_eviction import TaintEvictionController

    return TaintEvictionController()


def new_node_ipam_controller() -> Reconciler:
    from fakekube.controllers.service_cidrs import NodeIPAMController

    return NodeIPAMController()


def new_ttl_controller() -> Reconciler:
    from fakekube.controllers.node_lifecycle import TTLController

    return TTLController()


def new_endpoints_controller() -> Reconciler:
    from fakekube.controllers.endpoints.controller import EndpointsController

    return EndpointsController()


def new_endpoint_slice_controller() -> Reconciler:
    from fakekube.controllers.endpoints.slice_controller import EndpointSliceController

    return EndpointSliceController()


def new_endpoint_slice_mirroring_controller() -> Reconciler:
    from fakekube.controllers.endpoints.mirroring_controller import EndpointSliceMirroringController

    return EndpointSliceMirroringController()


def new_validating_admission_policy_status_controller() -> Reconciler:
    from fakekube.controllers.validating_admission_policy_status import ValidatingAdmissionPolicyStatusController

    return ValidatingAdmissionPolicyStatusController()


def new_service_load_balancer_controller() -> Reconciler:
    from fakekube.controllers.cloud import ServiceLoadBalancerController

    return ServiceLoadBalancerController()


def new_ingress_controller() -> Reconciler:
    from fakekube.controllers.cloud import IngressController

    return IngressController()


def new_scheduler() -> Reconciler:
    from fakekube.controllers.scheduler.scheduler import Scheduler

    return Scheduler()


#: In `ControllerDescriptor.starts_on`: changes of every resource start the controller, if `starts_for` holds.
ANY_RESOURCE: Final = "*"


class UnknownController(ValueError):
    """There is no controller of that name."""


def _any_object(obj: Mapping[str, Any]) -> bool:
    return True


@dataclass(slots=True, frozen=True, eq=False)
class ControllerDescriptor:
    """A controller that can be switched on (ControllerDescriptor of kube-controller-manager)."""

    name: str
    new_controller: Callable[[], Reconciler]
    """Imports the controller and returns a new instance of it."""
    starts_on: tuple[str, ...]
    """The resources whose changes start the controller, named as in `Reconciler.watches`."""
    starts_for: Callable[[Mapping[str, Any]], bool] = _any_object
    """Whether a change of this object, which has the form of the store, starts the controller."""
    by_default: bool = True
    """Whether `*` switches it on."""


# --- Which objects start a controller ---------------------------------------------------------------------------------


def _is_unscheduled(pod: Mapping[str, Any]) -> bool:
    return not pod["spec"].get("nodeName") and pod["spec"].get("schedulerName") == DEFAULT_SCHEDULER_NAME


def _is_namespace_or_root_certificate(obj: Mapping[str, Any]) -> bool:
    return "namespace" not in obj["metadata"] or obj["metadata"]["name"] == ROOT_CA_CERT_CONFIG_MAP_NAME


def _has_no_execute_taint(node: Mapping[str, Any]) -> bool:
    return any(taint.get("effect") == TAINT_EFFECT_NO_EXECUTE for taint in node["spec"].get("taints") or ())


def _has_selector(service: Mapping[str, Any]) -> bool:
    return service["spec"].get("selector") is not None


def _is_mirrored(endpoints: Mapping[str, Any]) -> bool:
    return (endpoints["metadata"].get("labels") or {}).get(LABEL_SKIP_MIRROR) != "true"


def _is_load_balancer(service: Mapping[str, Any]) -> bool:
    return bool(service["spec"].get("type") == "LoadBalancer")


def _has_owners_or_is_collected(obj: Mapping[str, Any]) -> bool:
    """Reports whether the garbage collector has to look at the object. Other records of the store, such as allocated ports, have
    no metadata."""
    metadata = obj.get("metadata") or {}
    if "ownerReferences" in metadata:
        return True
    finalizers = metadata.get("finalizers") or ()
    return "deletionTimestamp" in metadata and (ORPHAN_DEPENDENTS in finalizers or DELETE_DEPENDENTS in finalizers)


def _is_job_or_tracked_pod(obj: Mapping[str, Any]) -> bool:
    return JOB_TRACKING_FINALIZER in (obj["metadata"].get("finalizers") or ()) or "template" in obj["spec"]


def _is_service_account_token(secret: Mapping[str, Any]) -> bool:
    return bool(secret.get("type") == SECRET_TYPE_SERVICE_ACCOUNT_TOKEN)


def _is_not_type_checked(policy: Mapping[str, Any]) -> bool:
    """Reports whether the present generation of the policy has not been type checked."""
    return bool(policy["metadata"].get("generation", 0) > (policy.get("status") or {}).get("observedGeneration", 0))


def _has_ephemeral_volumes(pod: Mapping[str, Any]) -> bool:
    return any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ())


def _has_managed_attachments(node: Mapping[str, Any]) -> bool:
    """Reports whether the attach-detach controller attaches the volumes of the node."""
    return "volumes.kubernetes.io/controller-managed-attach-detach" in (node["metadata"].get("annotations") or {})


def _is_root_certificate_or_bundle(obj: Mapping[str, Any]) -> bool:
    """Reports whether this is a ClusterTrustBundle, or the ConfigMap of the CA, with which a cluster with TLS begins."""
    return obj["metadata"]["name"] == ROOT_CA_CERT_CONFIG_MAP_NAME or "trustBundle" in (obj.get("spec") or {})


def _is_claim_or_pod_with_claims(obj: Mapping[str, Any]) -> bool:
    return "containers" not in obj["spec"] or bool(obj["spec"].get("resourceClaims"))


def _is_assigned_or_terminating(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"] or bool(pod["spec"].get("nodeName"))


def _is_bootstrap_token_or_cluster_info(obj: Mapping[str, Any]) -> bool:
    return obj.get("type") == SECRET_TYPE_BOOTSTRAP_TOKEN or obj["metadata"]["name"] == "cluster-info"


def _is_budget_or_disruption_target(obj: Mapping[str, Any]) -> bool:
    """Reports whether this is a PodDisruptionBudget, or a pod with the condition DisruptionTarget."""
    if "containers" not in obj["spec"]:
        return True
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "DisruptionTarget" for condition in conditions)


# --- All controllers --------------------------------------------------------------------------------------------------

_CSRS: Final = ("certificatesigningrequests.certificates.k8s.io",)

CONTROLLERS: Final[tuple[ControllerDescriptor, ...]] = (
    ControllerDescriptor("garbage-collector-controller", new_garbage_collector, (ANY_RESOURCE,), _has_owners_or_is_collected),
    ControllerDescriptor("namespace-controller", new_namespace_controller, ("namespaces",)),
    ControllerDescriptor("serviceaccount-controller", new_service_account_controller, ("namespaces", "serviceaccounts")),
    ControllerDescriptor(
        "root-ca-certificate-publisher-controller",
        new_root_certificate_publisher,
        ("namespaces", "configmaps"),
        starts_for=_is_namespace_or_root_certificate,
    ),
    ControllerDescriptor("serviceaccount-token-controller", new_tokens_controller, ("secrets",), _is_service_account_token),
    ControllerDescriptor(
        "legacy-serviceaccount-token-cleaner-controller", new_legacy_token_cleaner, ("secrets",), _is_service_account_token
    ),
    ControllerDescriptor(
        "clusterrole-aggregation-controller", new_cluster_role_aggregation_controller, ("clusterroles.rbac.authorization.k8s.io",)
    ),
    ControllerDescriptor("resourcequota-controller", new_resource_quota_controller, ("resourcequotas",)),
    ControllerDescriptor("certificatesigningrequest-approving-controller", new_csr_approving_controller, _CSRS),
    ControllerDescriptor("certificatesigningrequest-signing-controller", new_csr_signing_controller, _CSRS),
    ControllerDescriptor("certificatesigningrequest-cleaner-controller", new_csr_cleaner_controller, _CSRS),
    ControllerDescriptor(
        "persistentvolume-binder-controller", new_persistent_volume_controller, ("persistentvolumeclaims", "persistentvolumes")
    ),
    ControllerDescriptor("persistentvolume-expander-controller", new_expand_controller, ("persistentvolumeclaims",)),
    ControllerDescriptor("ephemeral-volume-controller", new_ephemeral_volume_controller, ("pods",), _has_ephemeral_volumes),
    ControllerDescriptor("storage-provisioner", new_storage_provisioner, ("persistentvolumeclaims",)),
    ControllerDescriptor(
        "persistentvolume-attach-detach-controller", new_attach_detach_controller, ("nodes",), _has_managed_attachments
    ),
    ControllerDescriptor(
        "volumeattributesclass-protection-controller",
        new_attributes_class_protection,
        ("volumeattributesclasses.storage.k8s.io",),
    ),
    ControllerDescriptor(
        "podcertificaterequest-cleaner-controller",
        new_pod_certificate_request_cleaner,
        ("podcertificaterequests.certificates.k8s.io",),
    ),
    ControllerDescriptor(
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        new_cluster_trust_bundle_publisher,
        ("configmaps", "clustertrustbundles.certificates.k8s.io"),
        _is_root_certificate_or_bundle,
    ),
    ControllerDescriptor(
        "storage-version-migrator-controller", new_storage_version_migrator, ("storageversionmigrations.storagemigration.k8s.io",)
    ),
    ControllerDescriptor("podgroup-protection-controller", new_pod_group_protection, ("podgroups.scheduling.k8s.io",)),
    ControllerDescriptor("service-cidr-controller", new_service_cidr_controller, ("servicecidrs.networking.k8s.io",)),
    ControllerDescriptor(
        "resourceclaim-controller",
        new_resource_claim_controller,
        ("pods", "resourceclaims.resource.k8s.io"),
        _is_claim_or_pod_with_claims,
    ),
    ControllerDescriptor("pod-garbage-collector-controller", new_pod_garbage_collector, ("pods",), _is_assigned_or_terminating),
    ControllerDescriptor("ttl-after-finished-controller", new_ttl_after_finished_controller, ("jobs.batch",)),
    ControllerDescriptor(
        "bootstrap-signer-controller",
        new_bootstrap_signer,
        ("secrets", "configmaps"),
        _is_bootstrap_token_or_cluster_info,
        by_default=False,
    ),
    ControllerDescriptor(
        "token-cleaner-controller", new_token_cleaner, ("secrets",), _is_bootstrap_token_or_cluster_info, by_default=False
    ),
    ControllerDescriptor("persistentvolumeclaim-protection-controller", new_claim_protection, ("persistentvolumeclaims",)),
    ControllerDescriptor("persistentvolume-protection-controller", new_volume_protection, ("persistentvolumes",)),
    ControllerDescriptor("deployment-controller", new_deployment_controller, ("deployments.apps",)),
    ControllerDescriptor("replicaset-controller", new_replica_set_controller, ("replicasets.apps",)),
    ControllerDescriptor("replicationcontroller-controller", new_replication_controller, ("replicationcontrollers",)),
    ControllerDescriptor("statefulset-controller", new_stateful_set_controller, ("statefulsets.apps",)),
    ControllerDescriptor("daemonset-controller", new_daemon_set_controller, ("daemonsets.apps",)),
    ControllerDescriptor("cronjob-controller", new_cron_job_controller, ("cronjobs.batch",)),
    ControllerDescriptor(
        "disruption-controller",
        new_disruption_controller,
        ("poddisruptionbudgets.policy", "pods"),
        _is_budget_or_disruption_target,
    ),
    ControllerDescriptor(
        "horizontal-pod-autoscaler-controller",
        new_horizontal_pod_autoscaler_controller,
        ("horizontalpodautoscalers.autoscaling",),
    ),
    ControllerDescriptor("job-controller", new_job_controller, ("jobs.batch", "pods"), _is_job_or_tracked_pod),
    ControllerDescriptor("node-lifecycle-controller", new_node_lifecycle_controller, ("nodes",)),
    ControllerDescriptor("taint-eviction-controller", new_taint_eviction_controller, ("nodes",), _has_no_execute_taint),
    ControllerDescriptor("node-ipam-controller", new_node_ipam_controller, ("nodes",), by_default=False),
    ControllerDescriptor("ttl-controller", new_ttl_controller, ("nodes",)),
    ControllerDescriptor("endpoints-controller", new_endpoints_controller, ("services",), _has_selector),
    ControllerDescriptor("endpointslice-controller", new_endpoint_slice_controller, ("services",), _has_selector),
    ControllerDescriptor(
        "endpointslice-mirroring-controller", new_endpoint_slice_mirroring_controller, ("endpoints",), _is_mirrored
    ),
    ControllerDescriptor(
        "validatingadmissionpolicy-status-controller",
        new_validating_admission_policy_status_controller,
        ("validatingadmissionpolicies.admissionregistration.k8s.io",),
        _is_not_type_checked,
    ),
    ControllerDescriptor("service-lb-controller", new_service_load_balancer_controller, ("services",), _is_load_balancer),
    ControllerDescriptor("ingress-controller", new_ingress_controller, ("ingresses.networking.k8s.io",)),
    ControllerDescriptor("kube-scheduler", new_scheduler, ("pods",), _is_unscheduled),
)

#: Deprecated names that --controllers accepts, too (names.ControllerNames, CCMControllerAliases).
ALIASES: Final[Mapping[str, str]] = {
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
    "svm": "storage-version-migrator-controller",
    "tokencleaner": "token-cleaner-controller",
    "ttl": "ttl-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
}

#: Profile → the default of --controllers. `envtest` is for test suites that are written for an API server without
#: controllers: it has those whose work such a suite would have to do itself.
PROFILES: Final[Mapping[str, tuple[str, ...]]] = {
    "apiserver": (),
    "envtest": ("namespace-controller", "garbage-collector-controller"),
    "cluster": ("*",),
}

#: Profile → `Context.deletion_grace`.
DELETION_GRACE: Final[Mapping[str, float]] = {"envtest": 1.0}


def select_controllers(
    switches: Iterable[str], others: tuple[ControllerDescriptor, ...] = ()
) -> tuple[ControllerDescriptor, ...]:
    """Returns the controllers that the values of --controllers switch on.

    Args:
        switches: `*` (all that run by default), `name`, or `-name`. A name takes precedence over `-name`, and both over `*`.
        others: the controllers besides `CONTROLLERS`.

    Raises:
        UnknownController: there is no controller of that name.
    """
    return _select_controllers(tuple(switches), (*CONTROLLERS, *others))


@lru_cache(maxsize=64)
def _select_controllers(
    switches: tuple[str, ...], descriptors: tuple[ControllerDescriptor, ...]
) -> tuple[ControllerDescriptor, ...]:
    chosen = [_replace_alias(switch.strip()) for switch in switches if switch.strip()]
    known = {descriptor.name for descriptor in descriptors}
    for switch in chosen:
        if switch != "*" and switch.removeprefix("-") not in known:
            raise UnknownController(f'"{switch.removeprefix("-")}" is not in the list of known controllers')
    return tuple(descriptor for descriptor in descriptors if _is_controller_enabled(descriptor, chosen))


def _replace_alias(switch: str) -> str:
    """Returns a value of --controllers with the name that a deprecated one stands for."""
    name = switch.removeprefix("-")
    return switch[: len(switch) - len(name)] + ALIASES.get(name, name)


def _is_controller_enabled(descriptor: ControllerDescriptor, switches: list[str]) -> bool:
    """Reports whether the values of --controllers switch a controller on (IsControllerEnabled)."""
    if descriptor.name in switches:
        return True
    if "-" + descriptor.name in switches:
        return False
    return "*" in switches and descriptor.by_default

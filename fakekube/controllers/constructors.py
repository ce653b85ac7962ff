"""The constructors of the controllers, each of which imports its controller when it is called.

Invariant: importing this module imports no controller, so that a controller that does not run costs nothing.

Specified by: cmd/kube-controller-manager/app/{apps,autoscaling,batch,certificates,core,discovery,networking,policy,rbac}.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.controllers.reconciler import Reconciler


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
    from fakekube.controllers.service_accounts import RootCertificatePublisher

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
    from fakekube.controllers.daemon.controller import DaemonSetController

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
    from fakekube.controllers.node_lifecycle import TaintEvictionController

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

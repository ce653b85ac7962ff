"""The code of each built-in resource and subresource: strategies, projections, actions, and functions that compute objects.

As in Kubernetes, a resource and its subresources are entries of a map (`storage["pods"]`, `storage["pods/status"]`). A function
here makes the entries of one module of `fakekube.apis`, which it imports when it is called: when a resource of the module is
first used. A resource without an entry has the generic `Strategy`; a /status without one is a `KindStatusStrategy`.

Invariant: no module of `fakekube.apis` with the rules of kinds is imported before one of its resources is used.

Specified by: k8s.io/kubernetes/pkg/registry/*/rest/storage_*.go (RESTStorageProvider).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fakekube.apis.rest.strategy import Action, Projection, Strategy
from fakekube.base.objects import Object

Storage = Mapping[str, type[Strategy] | Strategy | Projection | Action | Callable[..., Sequence[Object]]]
"""Resource, or resource/subresource → its code: a Strategy (or its class) for a view, a Projection (scale), an Action of a POST,
or the function that computes the objects of a resource that is not stored."""

Provider = Callable[[], Storage]

Conversions = tuple[Callable[..., Any], Callable[..., Any]]
"""The functions to the storage version, and from it."""


def _customresourcedefinitions() -> Storage:
    from fakekube.apiextensions.definition.strategy import DefinitionStatusStrategy, DefinitionStrategy

    return {"customresourcedefinitions": DefinitionStrategy, "customresourcedefinitions/status": DefinitionStatusStrategy}


def _policies() -> Storage:
    from fakekube.apis.admissionregistration import policies

    return {
        "validatingadmissionpolicies": policies.ValidatingPolicyStrategy,
        "validatingadmissionpolicybindings": policies.ValidatingPolicyBindingStrategy,
        "mutatingadmissionpolicies": policies.MutatingPolicyStrategy,
        "mutatingadmissionpolicybindings": policies.MutatingPolicyBindingStrategy,
        "validatingadmissionpolicies/status": policies.STATUS,
    }


def _webhookconfigurations() -> Storage:
    from fakekube.apis.admissionregistration.webhookconfigurations import MutatingWebhookStrategy, ValidatingWebhookStrategy

    return {
        "validatingwebhookconfigurations": ValidatingWebhookStrategy,
        "mutatingwebhookconfigurations": MutatingWebhookStrategy,
    }


def _apiregistration() -> Storage:
    from fakekube.apis.apiregistration import STATUS, APIServiceStrategy

    return {"apiservices": APIServiceStrategy, "apiservices/status": STATUS}


def _daemonsets() -> Storage:
    from fakekube.apis.apps.daemonsets import DaemonSetStatusStrategy, DaemonSetStrategy

    return {"daemonsets": DaemonSetStrategy, "daemonsets/status": DaemonSetStatusStrategy}


def _deployments() -> Storage:
    from fakekube.apis.apps import deployments, replicasets

    return {
        "replicationcontrollers": replicasets.ReplicationControllerStrategy,
        "replicasets": replicasets.ReplicaSetStrategy,
        "deployments": deployments.DeploymentStrategy,
        "replicationcontrollers/status": replicasets.ReplicationControllerStatusStrategy,
        "replicasets/status": replicasets.ReplicaSetStatusStrategy,
        "deployments/status": deployments.DeploymentStatusStrategy,
    }


def _statefulsets() -> Storage:
    from fakekube.apis.apps.statefulsets import ControllerRevisionStrategy, StatefulSetStatusStrategy, StatefulSetStrategy

    return {
        "statefulsets": StatefulSetStrategy,
        "controllerrevisions": ControllerRevisionStrategy,
        "statefulsets/status": StatefulSetStatusStrategy,
    }


def _authentication() -> Storage:
    from fakekube.apis import authentication

    return {"tokenreviews": authentication.review_token, "selfsubjectreviews": authentication.review_self}


def _authorization() -> Storage:
    from fakekube.apis import authorization

    return {
        "subjectaccessreviews": authorization.review_access,
        "localsubjectaccessreviews": authorization.review_access_in_namespace,
        "selfsubjectaccessreviews": authorization.review_own_access,
        "selfsubjectrulesreviews": authorization.review_own_rules,
    }


def _horizontalpodautoscalers() -> Storage:
    from fakekube.apis.autoscaling import horizontalpodautoscalers

    return {
        "horizontalpodautoscalers": horizontalpodautoscalers.HorizontalPodAutoscalerStrategy,
        "horizontalpodautoscalers/status": horizontalpodautoscalers.STATUS,
    }


def _scale() -> Storage:
    from fakekube.apis.autoscaling import scale

    return {
        "replicationcontrollers/scale": scale.REPLICATION_CONTROLLERS,
        "replicasets/scale": scale.REPLICA_SETS,
        "deployments/scale": scale.DEPLOYMENTS,
        "statefulsets/scale": scale.STATEFUL_SETS,
    }


def _horizontalpodautoscalers_v1() -> Storage:
    from fakekube.apis.autoscaling.horizontalpodautoscalers import HorizontalPodAutoscalerV1Strategy

    return {"horizontalpodautoscalers": HorizontalPodAutoscalerV1Strategy}


def _cronjobs() -> Storage:
    from fakekube.apis.batch.cronjobs import CronJobStatusStrategy, CronJobStrategy

    return {"cronjobs": CronJobStrategy, "cronjobs/status": CronJobStatusStrategy}


def _jobs() -> Storage:
    from fakekube.apis.batch.jobs import JobStatusStrategy, JobStrategy

    return {"jobs": JobStrategy, "jobs/status": JobStatusStrategy}


def _certificatesigningrequests() -> Storage:
    from fakekube.apis.certificates.certificatesigningrequests import (
        CertificateSigningRequestStrategy,
        CSRApprovalStrategy,
        CSRStatusStrategy,
    )

    return {
        "certificatesigningrequests": CertificateSigningRequestStrategy,
        "certificatesigningrequests/status": CSRStatusStrategy,
        "certificatesigningrequests/approval": CSRApprovalStrategy,
    }


def _clustertrustbundles() -> Storage:
    from fakekube.apis.certificates.clustertrustbundles import ClusterTrustBundleStrategy

    return {"clustertrustbundles": ClusterTrustBundleStrategy}


def _podcertificaterequests() -> Storage:
    from fakekube.apis.certificates.podcertificaterequests import (
        PodCertificateRequestStatusStrategy,
        PodCertificateRequestStrategy,
    )

    return {
        "podcertificaterequests": PodCertificateRequestStrategy,
        "podcertificaterequests/status": PodCertificateRequestStatusStrategy,
    }


def _coordination() -> Storage:
    from fakekube.apis.coordination import LeaseCandidateStrategy, LeaseStrategy

    return {"leases": LeaseStrategy, "leasecandidates": LeaseCandidateStrategy}


def _configmaps() -> Storage:
    from fakekube.apis.core.configmaps import ConfigMapStrategy

    return {"configmaps": ConfigMapStrategy}


def _secrets() -> Storage:
    from fakekube.apis.core.secrets import SecretStrategy

    return {"secrets": SecretStrategy}


def _endpoints() -> Storage:
    from fakekube.apis.core.endpoints import EndpointsStrategy
    from fakekube.apis.core.endpointslices import EndpointSliceStrategy

    return {"endpoints": EndpointsStrategy, "endpointslices": EndpointSliceStrategy}


def _namespaces() -> Storage:
    from fakekube.apis.core.namespaces import NamespaceFinalizeStrategy, NamespaceStatusStrategy, NamespaceStrategy

    return {
        "namespaces": NamespaceStrategy,
        "namespaces/status": NamespaceStatusStrategy,
        "namespaces/finalize": NamespaceFinalizeStrategy,
    }


def _nodes() -> Storage:
    from fakekube.apis.core.nodes import STATUS, NodeStrategy, component_statuses

    return {"nodes": NodeStrategy, "nodes/status": STATUS, "componentstatuses": component_statuses}


def _persistentvolumeclaims() -> Storage:
    from fakekube.apis.core.persistentvolumeclaims import STATUS, PersistentVolumeClaimStrategy

    return {"persistentvolumeclaims": PersistentVolumeClaimStrategy, "persistentvolumeclaims/status": STATUS}


def _persistentvolumes() -> Storage:
    from fakekube.apis.core.persistentvolumes import STATUS, PersistentVolumeStrategy

    return {"persistentvolumes": PersistentVolumeStrategy, "persistentvolumes/status": STATUS}


def _pods() -> Storage:
    from fakekube.apis.core.pods import strategy
    from fakekube.apis.core.pods.binding import bind, bind_named

    return {
        "pods": strategy.PodStrategy,
        "pods/binding": bind,
        "pods/status": strategy.PodStatusStrategy,
        "pods/ephemeralcontainers": strategy.EphemeralContainersStrategy,
        "pods/resize": strategy.ResizeStrategy,
        "bindings": bind_named,
    }


def _podtemplates() -> Storage:
    from fakekube.apis.core.podtemplates import PodTemplateStrategy

    return {"podtemplates": PodTemplateStrategy}


def _resourcequotas() -> Storage:
    from fakekube.apis.core.resourcequotas import ResourceQuotaStatusStrategy, ResourceQuotaStrategy

    return {"resourcequotas": ResourceQuotaStrategy, "resourcequotas/status": ResourceQuotaStatusStrategy}


def _limitranges() -> Storage:
    from fakekube.apis.core.limitranges import LimitRangeStrategy

    return {"limitranges": LimitRangeStrategy}


def _serviceaccounts() -> Storage:
    from fakekube.apis.core.serviceaccounts.strategy import ServiceAccountStrategy
    from fakekube.apis.core.serviceaccounts.token import request_token

    return {"serviceaccounts": ServiceAccountStrategy, "serviceaccounts/token": request_token}


def _services() -> Storage:
    from fakekube.apis.core.services.strategy import STATUS, ServiceStrategy

    return {"services": ServiceStrategy, "services/status": STATUS}


def _events() -> Storage:
    from fakekube.apis.events import EventStrategy

    return {"events": EventStrategy}


def _flowcontrol() -> Storage:
    from fakekube.apis.flowcontrol import STATUS, FlowSchemaStrategy, PriorityLevelConfigurationStrategy

    return {
        "flowschemas": FlowSchemaStrategy,
        "prioritylevelconfigurations": PriorityLevelConfigurationStrategy,
        "flowschemas/status": STATUS,
        "prioritylevelconfigurations/status": STATUS,
    }


def _networking() -> Storage:
    from fakekube.apis import networking

    return {
        "ipaddresses": networking.IPAddressStrategy,
        "servicecidrs": networking.ServiceCIDRStrategy,
        "ingresses": networking.IngressStrategy,
        "ingressclasses": networking.IngressClassStrategy,
        "networkpolicies": networking.NetworkPolicyStrategy,
        "servicecidrs/status": networking.SERVICE_CIDR_STATUS,
        "ingresses/status": networking.INGRESS_STATUS,
    }


def _node() -> Storage:
    from fakekube.apis.node import RuntimeClassStrategy

    return {"runtimeclasses": RuntimeClassStrategy}


def _policy() -> Storage:
    from fakekube.apis.core.pods.eviction import evict
    from fakekube.apis.policy import PodDisruptionBudgetStatusStrategy, PodDisruptionBudgetStrategy

    return {
        "poddisruptionbudgets": PodDisruptionBudgetStrategy,
        "pods/eviction": evict,
        "poddisruptionbudgets/status": PodDisruptionBudgetStatusStrategy,
    }


def _rbac() -> Storage:
    from fakekube.apis import rbac

    return {
        "roles": rbac.RoleStrategy,
        "rolebindings": rbac.RoleBindingStrategy,
        "clusterroles": rbac.ClusterRoleStrategy,
        "clusterrolebindings": rbac.ClusterRoleBindingStrategy,
    }


def _devices() -> Storage:
    from fakekube.apis.resource.devices import STATUS, DeviceTaintRuleStrategy

    return {"devicetaintrules": DeviceTaintRuleStrategy, "devicetaintrules/status": STATUS}


def _resourceclaims() -> Storage:
    from fakekube.apis.resource import resourceclaims

    return {
        "resourceclaims": resourceclaims.ResourceClaimStrategy,
        "resourceclaimtemplates": resourceclaims.ResourceClaimTemplateStrategy,
        "deviceclasses": resourceclaims.DeviceClassStrategy,
        "resourceclaims/status": resourceclaims.STATUS,
    }


def _resourceslices() -> Storage:
    from fakekube.apis.resource.resourceslices import ResourceSliceStrategy

    return {"resourceslices": ResourceSliceStrategy}


def _resourcepoolstatusrequests() -> Storage:
    from fakekube.apis.resource.resourcepoolstatusrequests import STATUS, ResourcePoolStatusRequestStrategy

    return {"resourcepoolstatusrequests": ResourcePoolStatusRequestStrategy, "resourcepoolstatusrequests/status": STATUS}


def _evictions() -> Storage:
    from fakekube.apis import lifecycle

    return {
        "evictionrequests": lifecycle.EvictionRequestStrategy,
        "evictionrequests/status": lifecycle.REQUEST_STATUS,
        "evictions": lifecycle.EvictionStrategy,
        "evictions/status": lifecycle.STATUS,
    }


def _priorityclasses() -> Storage:
    from fakekube.apis.scheduling.priorityclasses import PriorityClassStrategy

    return {"priorityclasses": PriorityClassStrategy}


def _workloads() -> Storage:
    from fakekube.apis.scheduling import workloads

    return {
        "compositepodgroups": workloads.CompositePodGroupStrategy,
        "compositepodgroups/status": workloads.COMPOSITE_POD_GROUP_STATUS,
        "podgroups": workloads.PodGroupStrategy,
        "podgroups/status": workloads.POD_GROUP_STATUS,
        "workloads": workloads.WorkloadStrategy,
    }


def _first_workloads() -> Storage:
    from fakekube.apis.scheduling.first_workloads import FirstWorkloadStrategy

    return {"workloads": FirstWorkloadStrategy}


def _alpha_workloads() -> Storage:
    """Returns those of v1alpha2, which has other fields."""
    from fakekube.apis.scheduling.workloads import POD_GROUP_STATUS, AlphaPodGroupStrategy, AlphaWorkloadStrategy

    return {"podgroups": AlphaPodGroupStrategy, "podgroups/status": POD_GROUP_STATUS, "workloads": AlphaWorkloadStrategy}


def _csi() -> Storage:
    from fakekube.apis.storage import csi

    return {
        "csidrivers": csi.CSIDriverStrategy,
        "csinodes": csi.CSINodeStrategy,
        "csistoragecapacities": csi.CSIStorageCapacityStrategy,
        "volumeattachments": csi.VolumeAttachmentStrategy,
        "csinodes/status": csi.CSI_NODE_STATUS,
        "volumeattachments/status": csi.STATUS,
    }


def _storageclasses() -> Storage:
    from fakekube.apis.storage.storageclasses import StorageClassStrategy, VolumeAttributesClassStrategy

    return {"storageclasses": StorageClassStrategy, "volumeattributesclasses": VolumeAttributesClassStrategy}


def _storagemigration() -> Storage:
    from fakekube.apis.storagemigration import STATUS, StorageVersionMigrationStrategy

    return {"storageversionmigrations": StorageVersionMigrationStrategy, "storageversionmigrations/status": STATUS}


def _storageversions() -> Storage:
    from fakekube.apis.apiserverinternal import STORAGE_VERSION_STATUS, StorageVersionStrategy

    return {"storageversions": StorageVersionStrategy, "storageversions/status": STORAGE_VERSION_STATUS}


def _event_conversions() -> Conversions:
    from fakekube.apis.events import from_storage, to_storage

    return to_storage, from_storage


def _horizontalpodautoscaler_conversions() -> Conversions:
    from fakekube.apis.autoscaling.v1_conversion import from_storage, to_storage

    return to_storage, from_storage


def _device_conversions(name: str) -> Conversions:
    from fakekube.apis.resource import v1beta1_conversion

    return {
        "resourceslices": v1beta1_conversion.SLICES,
        "resourceclaims": v1beta1_conversion.CLAIMS,
        "resourceclaimtemplates": v1beta1_conversion.TEMPLATES,
    }[name]


def _podcertificaterequest_conversions() -> Conversions:
    from fakekube.apis.certificates.podcertificaterequests import from_storage, to_storage

    return to_storage, from_storage


#: Group, or group/version for what only a version has → providers, each with the names of its entries: resources, and
#: subresources of resources that another module has.
_NAMES: Final[Mapping[str, Mapping[Provider, str]]] = {
    "": {
        _pods: "bindings pods",
        _nodes: "componentstatuses nodes",
        _configmaps: "configmaps",
        _secrets: "secrets",
        _endpoints: "endpoints",
        _events: "events",
        _resourcequotas: "resourcequotas",
        _limitranges: "limitranges",
        _namespaces: "namespaces",
        _persistentvolumeclaims: "persistentvolumeclaims",
        _persistentvolumes: "persistentvolumes",
        _policy: "pods/eviction",
        _podtemplates: "podtemplates",
        _deployments: "replicationcontrollers",
        _scale: "replicationcontrollers/scale",
        _serviceaccounts: "serviceaccounts",
        _services: "services",
    },
    "admissionregistration.k8s.io": {
        _policies: "mutatingadmissionpolicies mutatingadmissionpolicybindings"
        " validatingadmissionpolicies validatingadmissionpolicybindings",
        _webhookconfigurations: "mutatingwebhookconfigurations validatingwebhookconfigurations",
    },
    "apiextensions.k8s.io": {_customresourcedefinitions: "customresourcedefinitions"},
    "apiregistration.k8s.io": {_apiregistration: "apiservices"},
    "apps": {
        _statefulsets: "controllerrevisions statefulsets",
        _daemonsets: "daemonsets",
        _deployments: "deployments replicasets",
        _scale: "deployments/scale replicasets/scale statefulsets/scale",
    },
    "authentication.k8s.io": {_authentication: "selfsubjectreviews tokenreviews"},
    "authorization.k8s.io": {
        _authorization: "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews"
    },
    "autoscaling": {_horizontalpodautoscalers: "horizontalpodautoscalers"},
    "autoscaling/v1": {_horizontalpodautoscalers_v1: "horizontalpodautoscalers"},
    "batch": {_cronjobs: "cronjobs", _jobs: "jobs"},
    "certificates.k8s.io": {
        _certificatesigningrequests: "certificatesigningrequests",
        _clustertrustbundles: "clustertrustbundles",
        _podcertificaterequests: "podcertificaterequests",
    },
    "coordination.k8s.io": {_coordination: "leasecandidates leases"},
    "discovery.k8s.io": {_endpoints: "endpointslices"},
    "events.k8s.io": {_events: "events"},
    "flowcontrol.apiserver.k8s.io": {_flowcontrol: "flowschemas prioritylevelconfigurations"},
    "lifecycle.k8s.io": {_evictions: "evictionrequests evictions"},
    "networking.k8s.io": {_networking: "ingressclasses ingresses ipaddresses networkpolicies servicecidrs"},
    "node.k8s.io": {_node: "runtimeclasses"},
    "policy": {_policy: "poddisruptionbudgets"},
    "rbac.authorization.k8s.io": {_rbac: "clusterrolebindings clusterroles rolebindings roles"},
    "resource.k8s.io": {
        _resourceclaims: "deviceclasses resourceclaims resourceclaimtemplates",
        _devices: "devicetaintrules",
        _resourceslices: "resourceslices",
        _resourcepoolstatusrequests: "resourcepoolstatusrequests",
    },
    "scheduling.k8s.io": {_priorityclasses: "priorityclasses"},
    "scheduling.k8s.io/v1alpha1": {_first_workloads: "workloads"},
    "scheduling.k8s.io/v1alpha2": {_alpha_workloads: "podgroups workloads"},
    "scheduling.k8s.io/v1alpha3": {_workloads: "compositepodgroups podgroups workloads"},
    "scheduling.k8s.io/v1beta1": {_workloads: "podgroups workloads"},
    "storage.k8s.io": {
        _csi: "csidrivers csinodes csistoragecapacities volumeattachments",
        _storageclasses: "storageclasses volumeattributesclasses",
    },
    "storagemigration.k8s.io": {_storagemigration: "storageversionmigrations"},
    "internal.apiserver.k8s.io": {_storageversions: "storageversions"},
}

#: (group or group/version, name) → its provider.
PROVIDERS: Final[Mapping[tuple[str, str], Provider]] = {
    (group, name): provider
    for group, providers in _NAMES.items()
    for provider, names in providers.items()
    for name in names.split()
}

#: (group, version, plural) → the conversions of versions that are stored as another one.
CONVERSIONS: Final[Mapping[tuple[str, str, str], Callable[[], Conversions]]] = {
    ("events.k8s.io", "v1", "events"): _event_conversions,
    ("autoscaling", "v1", "horizontalpodautoscalers"): _horizontalpodautoscaler_conversions,
    **{
        ("resource.k8s.io", "v1beta1", name): partial(_device_conversions, name)
        for name in ("resourceslices", "resourceclaims", "resourceclaimtemplates")
    },
    ("certificates.k8s.io", "v1", "podcertificaterequests"): _podcertificaterequest_conversions,
}


def find_storage(group: str, version: str, name: str) -> Any:
    """Returns the code of a resource ("pods") or a subresource ("pods/status"); None if it has none of its own."""
    plural = name.partition("/")[0]
    for key in (f"{group}/{version}", group):
        provider = PROVIDERS.get((key, name)) or PROVIDERS.get((key, plural))
        found = provider().get(name) if provider is not None else None
        if found is not None:
            return found
    return None

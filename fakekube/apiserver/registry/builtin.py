"""Creates the built-in resources from the tables of `apimachinery/data/` and the code of their kinds.

The tables refer to code as "module:attribute"; a module is imported when its kind is first used. A resource without a
row has the generic `Strategy`. The list of resources is created once per emulation and is immutable.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any

from fakekube.apimachinery import data, features
from fakekube.apimachinery.schema.builtin import Builtins
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.rest.resource import GVK, METADATA_LABELS, Resource, field_readers
from fakekube.apis.rest.strategy import Action, KindStatusStrategy, Projection, Strategy, Subresource
from fakekube.apiserver.registry.served_apis import NO_RUNTIME_CONFIG, RuntimeConfig, deprecation_of, is_served

#: (group, plural) → the Strategy class of the resource; ("group/version", plural) for one that only a version has.
STRATEGIES: dict[tuple[str, str], str] = {
    # -- pods, workloads, batch, configuration
    ("", "pods"): "fakekube.apis.core.pods.strategy:PodStrategy",
    ("", "podtemplates"): "fakekube.apis.core.podtemplates:PodTemplateStrategy",
    ("", "replicationcontrollers"): "fakekube.apis.apps.deployments:ReplicationControllerStrategy",
    ("apps", "replicasets"): "fakekube.apis.apps.deployments:ReplicaSetStrategy",
    ("apps", "deployments"): "fakekube.apis.apps.deployments:DeploymentStrategy",
    ("apps", "daemonsets"): "fakekube.apis.apps.daemonsets:DaemonSetStrategy",
    ("apps", "statefulsets"): "fakekube.apis.apps.statefulsets:StatefulSetStrategy",
    ("batch", "jobs"): "fakekube.apis.batch.jobs:JobStrategy",
    ("batch", "cronjobs"): "fakekube.apis.batch.cronjobs:CronJobStrategy",
    ("apps", "controllerrevisions"): "fakekube.apis.apps.statefulsets:ControllerRevisionStrategy",
    ("policy", "poddisruptionbudgets"): "fakekube.apis.policy:PodDisruptionBudgetStrategy",
    ("", "configmaps"): "fakekube.apis.core.configmaps:ConfigMapStrategy",
    ("", "secrets"): "fakekube.apis.core.configmaps:SecretStrategy",
    ("", "serviceaccounts"): "fakekube.apis.core.serviceaccounts:ServiceAccountStrategy",
    ("scheduling.k8s.io", "priorityclasses"): "fakekube.apis.scheduling:PriorityClassStrategy",
    ("scheduling.k8s.io/v1alpha2", "podgroups"): "fakekube.apis.scheduling:AlphaPodGroupStrategy",
    ("scheduling.k8s.io/v1alpha2", "workloads"): "fakekube.apis.scheduling:AlphaWorkloadStrategy",
    ("scheduling.k8s.io/v1alpha3", "podgroups"): "fakekube.apis.scheduling:PodGroupStrategy",
    ("scheduling.k8s.io/v1alpha3", "workloads"): "fakekube.apis.scheduling:WorkloadStrategy",
    ("scheduling.k8s.io/v1beta1", "podgroups"): "fakekube.apis.scheduling:PodGroupStrategy",
    ("scheduling.k8s.io/v1beta1", "workloads"): "fakekube.apis.scheduling:WorkloadStrategy",
    ("node.k8s.io", "runtimeclasses"): "fakekube.apis.node:RuntimeClassStrategy",
    ("", "limitranges"): "fakekube.apis.core.resourcequotas:LimitRangeStrategy",
    ("", "resourcequotas"): "fakekube.apis.core.resourcequotas:ResourceQuotaStrategy",
    # -- the other kinds
    ("", "namespaces"): "fakekube.apis.core.namespaces:NamespaceStrategy",
    ("", "nodes"): "fakekube.apis.core.nodes:NodeStrategy",
    ("", "services"): "fakekube.apis.core.services.strategy:ServiceStrategy",
    ("", "endpoints"): "fakekube.apis.core.endpoints:EndpointsStrategy",
    ("discovery.k8s.io", "endpointslices"): "fakekube.apis.core.endpoints:EndpointSliceStrategy",
    ("", "events"): "fakekube.apis.events:EventStrategy",
    ("events.k8s.io", "events"): "fakekube.apis.events:EventStrategy",
    ("networking.k8s.io", "ipaddresses"): "fakekube.apis.networking:IPAddressStrategy",
    ("networking.k8s.io", "servicecidrs"): "fakekube.apis.networking:ServiceCIDRStrategy",
    ("rbac.authorization.k8s.io", "roles"): "fakekube.apis.rbac:RoleStrategy",
    ("rbac.authorization.k8s.io", "rolebindings"): "fakekube.apis.rbac:RoleBindingStrategy",
    ("rbac.authorization.k8s.io", "clusterroles"): "fakekube.apis.rbac:ClusterRoleStrategy",
    ("rbac.authorization.k8s.io", "clusterrolebindings"): "fakekube.apis.rbac:ClusterRoleBindingStrategy",
    ("coordination.k8s.io", "leases"): "fakekube.apis.coordination:LeaseStrategy",
    ("networking.k8s.io", "ingresses"): "fakekube.apis.networking:IngressStrategy",
    ("networking.k8s.io", "ingressclasses"): "fakekube.apis.networking:IngressClassStrategy",
    ("networking.k8s.io", "networkpolicies"): "fakekube.apis.networking:NetworkPolicyStrategy",
    ("", "persistentvolumes"): "fakekube.apis.core.persistentvolumes:PersistentVolumeStrategy",
    ("", "persistentvolumeclaims"): "fakekube.apis.core.persistentvolumeclaims:PersistentVolumeClaimStrategy",
    ("storage.k8s.io", "storageclasses"): "fakekube.apis.storage.storageclasses:StorageClassStrategy",
    ("storage.k8s.io", "volumeattributesclasses"): "fakekube.apis.storage.storageclasses:VolumeAttributesClassStrategy",
    ("storage.k8s.io", "csidrivers"): "fakekube.apis.storage.csi:CSIDriverStrategy",
    ("storage.k8s.io", "csinodes"): "fakekube.apis.storage.csi:CSINodeStrategy",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "fakekube.apiextensions.definition.strategy:DefinitionStrategy",
    ("storage.k8s.io", "csistoragecapacities"): "fakekube.apis.storage.csi:CSIStorageCapacityStrategy",
    ("storage.k8s.io", "volumeattachments"): "fakekube.apis.storage.csi:VolumeAttachmentStrategy",
    (
        "autoscaling",
        "horizontalpodautoscalers",
    ): "fakekube.apis.autoscaling.horizontalpodautoscalers:HorizontalPodAutoscalerStrategy",
    (
        "autoscaling/v1",
        "horizontalpodautoscalers",
    ): "fakekube.apis.autoscaling.horizontalpodautoscalers:HorizontalPodAutoscalerV1Strategy",
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
    ): "fakekube.apis.certificates.certificatesigningrequests:CertificateSigningRequestStrategy",
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
    ): "fakekube.apis.admissionregistration.webhookconfigurations:ValidatingWebhookStrategy",
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
    ): "fakekube.apis.admissionregistration.webhookconfigurations:MutatingWebhookStrategy",
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
    ): "fakekube.apis.admissionregistration.policies:ValidatingPolicyStrategy",
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
    ): "fakekube.apis.admissionregistration.policies:ValidatingPolicyBindingStrategy",
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
    ): "fakekube.apis.admissionregistration.policies:MutatingPolicyStrategy",
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
    ): "fakekube.apis.admissionregistration.policies:MutatingPolicyBindingStrategy",
    (
        "certificates.k8s.io",
        "clustertrustbundles",
    ): "fakekube.apis.certificates.podcertificaterequests:ClusterTrustBundleStrategy",
    (
        "certificates.k8s.io",
        "podcertificaterequests",
    ): "fakekube.apis.certificates.podcertificaterequests:PodCertificateRequestStrategy",
    ("resource.k8s.io", "devicetaintrules"): "fakekube.apis.resource.devices:DeviceTaintRuleStrategy",
    ("storagemigration.k8s.io", "storageversionmigrations"): "fakekube.apis.storagemigration:StorageVersionMigrationStrategy",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "fakekube.apis.flowcontrol:FlowSchemaStrategy",
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
    ): "fakekube.apis.flowcontrol:PriorityLevelConfigurationStrategy",
    ("apiregistration.k8s.io", "apiservices"): "fakekube.apis.apiregistration:APIServiceStrategy",
    ("resource.k8s.io", "resourceclaims"): "fakekube.apis.resource.resourceclaims:ResourceClaimStrategy",
    ("resource.k8s.io", "resourceclaimtemplates"): "fakekube.apis.resource.resourceclaims:ResourceClaimTemplateStrategy",
    ("resource.k8s.io", "deviceclasses"): "fakekube.apis.resource.resourceclaims:DeviceClassStrategy",
    ("resource.k8s.io", "resourceslices"): "fakekube.apis.resource.resourceslices:ResourceSliceStrategy",
}

#: (group, "plural/subresource") → a Strategy class (a view), a Projection, or an Action (see subresources.py).
#: A /status without a row is a `KindStatusStrategy`.
SUBRESOURCES: dict[tuple[str, str], str] = {
    # -- pods, workloads, batch, configuration
    ("", "pods/binding"): "fakekube.apis.core.pods.strategy:bind",
    ("", "pods/eviction"): "fakekube.apis.policy:evict",
    ("", "pods/status"): "fakekube.apis.core.pods.strategy:PodStatusStrategy",
    ("", "pods/ephemeralcontainers"): "fakekube.apis.core.pods.strategy:EphemeralContainersStrategy",
    ("", "pods/resize"): "fakekube.apis.core.pods.strategy:ResizeStrategy",
    ("", "replicationcontrollers/status"): "fakekube.apis.apps.deployments:ReplicationControllerStatusStrategy",
    ("", "replicationcontrollers/scale"): "fakekube.apis.autoscaling.horizontalpodautoscalers:REPLICATION_CONTROLLERS",
    ("apps", "replicasets/status"): "fakekube.apis.apps.deployments:ReplicaSetStatusStrategy",
    ("apps", "replicasets/scale"): "fakekube.apis.autoscaling.horizontalpodautoscalers:REPLICA_SETS",
    ("apps", "deployments/status"): "fakekube.apis.apps.deployments:DeploymentStatusStrategy",
    ("apps", "deployments/scale"): "fakekube.apis.autoscaling.horizontalpodautoscalers:DEPLOYMENTS",
    ("apps", "daemonsets/status"): "fakekube.apis.apps.daemonsets:DaemonSetStatusStrategy",
    ("batch", "jobs/status"): "fakekube.apis.batch.jobs:JobStatusStrategy",
    ("batch", "cronjobs/status"): "fakekube.apis.batch.cronjobs:CronJobStatusStrategy",
    ("apps", "statefulsets/status"): "fakekube.apis.apps.statefulsets:StatefulSetStatusStrategy",
    ("apps", "statefulsets/scale"): "fakekube.apis.autoscaling.horizontalpodautoscalers:STATEFUL_SETS",
    ("policy", "poddisruptionbudgets/status"): "fakekube.apis.policy:PodDisruptionBudgetStatusStrategy",
    ("", "serviceaccounts/token"): "fakekube.apis.core.serviceaccounts:request_token",
    ("", "resourcequotas/status"): "fakekube.apis.core.resourcequotas:ResourceQuotaStatusStrategy",
    # -- the other kinds
    ("", "namespaces/status"): "fakekube.apis.core.namespaces:NamespaceStatusStrategy",
    ("", "namespaces/finalize"): "fakekube.apis.core.namespaces:NamespaceFinalizeStrategy",
    ("", "nodes/status"): "fakekube.apis.core.nodes:STATUS",
    ("", "services/status"): "fakekube.apis.core.services.strategy:STATUS",
    ("networking.k8s.io", "servicecidrs/status"): "fakekube.apis.networking:SERVICE_CIDR_STATUS",
    ("networking.k8s.io", "ingresses/status"): "fakekube.apis.networking:INGRESS_STATUS",
    ("", "persistentvolumes/status"): "fakekube.apis.core.persistentvolumes:STATUS",
    ("", "persistentvolumeclaims/status"): "fakekube.apis.core.persistentvolumeclaims:STATUS",
    ("storage.k8s.io", "csinodes/status"): "fakekube.apis.storage.csi:CSI_NODE_STATUS",
    ("storage.k8s.io", "volumeattachments/status"): "fakekube.apis.storage.csi:STATUS",
    ("autoscaling", "horizontalpodautoscalers/status"): "fakekube.apis.autoscaling.horizontalpodautoscalers:STATUS",
    (
        "certificates.k8s.io",
        "certificatesigningrequests/status",
    ): "fakekube.apis.certificates.certificatesigningrequests:CSRStatusStrategy",
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions/status",
    ): "fakekube.apiextensions.definition.strategy:DefinitionStatusStrategy",
    (
        "certificates.k8s.io",
        "certificatesigningrequests/approval",
    ): "fakekube.apis.certificates.certificatesigningrequests:CSRApprovalStrategy",
    (
        "certificates.k8s.io",
        "podcertificaterequests/status",
    ): "fakekube.apis.certificates.podcertificaterequests:PodCertificateRequestStatusStrategy",
    ("resource.k8s.io", "devicetaintrules/status"): "fakekube.apis.resource.devices:STATUS",
    ("storagemigration.k8s.io", "storageversionmigrations/status"): "fakekube.apis.storagemigration:STATUS",
    ("admissionregistration.k8s.io", "validatingadmissionpolicies/status"): "fakekube.apis.admissionregistration.policies:STATUS",
    ("flowcontrol.apiserver.k8s.io", "flowschemas/status"): "fakekube.apis.flowcontrol:STATUS",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations/status"): "fakekube.apis.flowcontrol:STATUS",
    ("apiregistration.k8s.io", "apiservices/status"): "fakekube.apis.apiregistration:STATUS",
    ("resource.k8s.io", "resourceclaims/status"): "fakekube.apis.resource.resourceclaims:STATUS",
}

#: (group, plural) → the Action of a resource that is not stored and only supports POST (reviews, bindings).
ACTIONS: dict[tuple[str, str], str] = {
    ("", "bindings"): "fakekube.apis.core.pods.strategy:bind_named",
    ("authorization.k8s.io", "subjectaccessreviews"): "fakekube.apis.authorization:review_access",
    ("authorization.k8s.io", "localsubjectaccessreviews"): "fakekube.apis.authorization:review_access_in_namespace",
    ("authorization.k8s.io", "selfsubjectaccessreviews"): "fakekube.apis.authorization:review_own_access",
    ("authorization.k8s.io", "selfsubjectrulesreviews"): "fakekube.apis.authorization:review_own_rules",
    ("authentication.k8s.io", "tokenreviews"): "fakekube.apis.authorization:review_token",
    ("authentication.k8s.io", "selfsubjectreviews"): "fakekube.apis.authorization:review_self",
}

#: (group, plural) → the function that computes the objects of a read-only resource that is not stored.
COMPUTED: dict[tuple[str, str], str] = {("", "componentstatuses"): "fakekube.apis.core.nodes:statuses"}

#: (group, plural) → bucket, group and version of resources that are stored under another group or version.
STORED_AS: dict[tuple[str, str], tuple[str, str, str]] = {
    ("events.k8s.io", "events"): ("events", "", "v1"),
    ("autoscaling", "horizontalpodautoscalers"): ("horizontalpodautoscalers.autoscaling", "autoscaling", "v2"),
}

#: (group, version, plural) → ("module:to_storage", "module:from_storage") for versions that are converted.
CONVERSIONS: dict[tuple[str, str, str], tuple[str, str]] = {
    ("events.k8s.io", "v1", "events"): ("fakekube.apis.events:to_storage", "fakekube.apis.events:from_storage"),
    ("autoscaling", "v1", "horizontalpodautoscalers"): (
        "fakekube.apis.autoscaling.v1_conversion:to_storage",
        "fakekube.apis.autoscaling.v1_conversion:from_storage",
    ),
}

#: The subresources with a TableConvertor, and the exceptions.
_TABLES = frozenset({"status", "scale"})
_NO_TABLES = frozenset(
    {
        ("apiextensions.k8s.io", "customresourcedefinitions/status"),
        ("apiregistration.k8s.io", "apiservices/status"),
        ("resource.k8s.io", "resourceclaims/status"),
    }
)

#: (group, version, kind) → supported field labels that the recorded facts do not contain.
_MORE_FIELD_LABELS: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("batch", "v1", "Job"): ("status.successful",),
    ("", "v1", "Pod"): ("spec.host",),  # of old clients; the storage version calls it spec.nodeName
}

_NO_REPLICAS = {"spec": {"replicas": 0}}

#: (group, plural) → fields of an empty object (a bookmark), besides the zero values of its type.
_EMPTY_OBJECTS: dict[tuple[str, str], dict[str, Any]] = {
    ("apps", "deployments"): _NO_REPLICAS,
    ("apps", "replicasets"): _NO_REPLICAS,
    ("apps", "statefulsets"): _NO_REPLICAS,
    ("apps", "daemonsets"): {"metadata": {"annotations": {"deprecated.daemonset.template.generation": "0"}}},
}

#: The storage prefix of a resource in the real server, if it is not its plural.
_STORAGE_PREFIXES = {
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "ingresses.networking.k8s.io": "ingress",
    "podsecuritypolicies.policy": "podsecuritypolicy",
    "apiservices.apiregistration.k8s.io": "apiregistration.k8s.io/apiservices",
}


def attribute(path: str) -> Any:
    """Returns the attribute that a "module:attribute" of the tables refers to."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def resources(emulation: features.Emulation = features.DEFAULT, config: RuntimeConfig = NO_RUNTIME_CONFIG) -> Sequence[Resource]:
    """Returns the built-in resources that a server serves, in the order of discovery. Shared by all clusters; do not change."""
    return emulation.compiled(("resources", config), partial(_resources, config))


def _resources(config: RuntimeConfig, emulation: features.Emulation) -> Sequence[Resource]:
    rows = [row for row in emulation.facts.resources if is_served(row, emulation, config)]
    main = [row for row in rows if "/" not in row.name]
    below: dict[tuple[str, str, str], list[data.ResourceRow]] = {}
    for row in rows:
        if "/" in row.name:
            below.setdefault((row.group, row.version, row.name.partition("/")[0]), []).append(row)
    return tuple(_resource(emulation, row, below.get((row.group, row.version, row.name), [])) for row in main)


def _resource(emulation: features.Emulation, row: data.ResourceRow, below: Sequence[data.ResourceRow]) -> Resource:
    facts, types = emulation.facts, emulation.types
    own_bucket = f"{row.name}.{row.group}" if row.group else row.name
    bucket, group, version = STORED_AS.get((row.group, row.name), (own_bucket, row.group, row.version))
    kind = facts.kind(row.group, row.version, row.kind)
    to_storage, from_storage = CONVERSIONS.get((row.group, row.version, row.name), ("", ""))
    action, computed = ACTIONS.get((row.group, row.name)), COMPUTED.get((row.group, row.name))
    return Resource(
        group=row.group,
        version=row.version,
        plural=row.name,
        singular=row.singular,
        kind=row.kind,
        namespaced=row.namespaced,
        verbs=frozenset(row.verbs),
        bucket=bucket,
        strategy_factory=partial(_strategy, emulation, row.group, row.name, row.version),
        type_factory=partial(_type, types, GVK(row.group, row.version, row.kind)),
        storage_type_factory=partial(_type, types, GVK(group, version, row.kind)),
        list_kind=f"{row.kind}List",
        short_names=row.short_names,
        categories=row.categories,
        subresources={s.name: s for s in (_subresource(emulation, b) for b in below)},
        field_labels=_field_labels(kind, GVK(row.group, row.version, row.kind)),
        field_readers=field_readers(bucket),
        storage_version_hash=row.storage_version_hash,
        empty=_EMPTY_OBJECTS.get((row.group, row.name), {}),
        deprecation=deprecation_of(row.group, row.version, row.kind, emulation.minor),
        storage_prefix=_STORAGE_PREFIXES.get(bucket, row.name),
        to_storage=partial(_act, to_storage) if to_storage else None,
        from_storage=partial(_act, from_storage) if from_storage else None,
        action=partial(_act, action) if action else None,
        computed=partial(_act, computed, emulation.facts) if computed else None,
        emulation=emulation,
    )


def _field_labels(kind: data.KindRow | None, gvk: GVK) -> tuple[str, ...]:
    known = kind.field_labels if kind and kind.field_labels else METADATA_LABELS
    return known + _MORE_FIELD_LABELS.get((gvk.group, gvk.version, gvk.kind), ())


def _type(types: Builtins, gvk: GVK) -> Type:
    found = types.kind_type(gvk.group, gvk.version, gvk.kind)
    if found is None:
        raise LookupError(f"no type for {gvk}")
    return found


def _strategy(emulation: features.Emulation, group: str, plural: str, version: str) -> Strategy:
    path = STRATEGIES.get((f"{group}/{version}", plural)) or STRATEGIES.get((group, plural))
    strategy: Strategy = attribute(path)() if path else Strategy()
    strategy.emulation = emulation
    return strategy


def _act(path: str, *arguments: Any) -> Any:
    """Returns a function that imports the function of the tables when it is first called."""
    return attribute(path)(*arguments)


def _subresource(emulation: features.Emulation, row: data.ResourceRow) -> Subresource:
    name = row.name.partition("/")[2]
    gvk = GVK(row.kind_group, row.kind_version, row.kind)
    return Subresource(
        name,
        gvk,
        frozenset(row.verbs),
        partial(_type, emulation.types, gvk),
        partial(_implementation, emulation, row, name),
        tables=name in _TABLES and (row.group, row.name) not in _NO_TABLES,
    )


def _implementation(emulation: features.Emulation, row: data.ResourceRow, name: str) -> Strategy | Projection | Action | None:
    path = SUBRESOURCES.get((row.group, row.name))
    if path is None:
        plural = row.name.partition("/")[0]
        if name != "status":
            return None
        made: Any = KindStatusStrategy(_strategy(emulation, row.group, plural, row.version))
    else:
        found: Any = attribute(path)
        made = found() if isinstance(found, type) else copy(found) if isinstance(found, Strategy) else found
    if isinstance(made, Strategy):
        made.emulation = emulation
    implementation: Strategy | Projection | Action = made
    return implementation

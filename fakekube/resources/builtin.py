"""The built-in resources: rows of `data/` joined with the code of their kinds.

The tables name a kind's code as "module:attribute"; a module is imported when its kind is first used. A resource
without a row is served by the generic `Strategy`. The list of resources is made once per process and never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from fakekube import data
from fakekube.resources.registry import GVK, METADATA_LABELS, Resource
from fakekube.resources.selectable import field_readers
from fakekube.resources.strategy import Strategy
from fakekube.resources.subresources import Action, Projection, StatusView, Subresource
from fakekube.schema.builtin import Builtins, builtins
from fakekube.schema.model import Type

__all__ = ["ACTIONS", "CONVERSIONS", "STRATEGIES", "SUBRESOURCES", "resources"]

#: (group, plural) → the Strategy class of the resource; ("group/version", plural) where a version has its own.
STRATEGIES: dict[tuple[str, str], str] = {
    # -- pods, workloads, batch, configuration
    ("", "pods"): "fakekube.resources.pods.strategy:PodStrategy",
    ("", "podtemplates"): "fakekube.resources.workloads.podtemplates:PodTemplateStrategy",
    ("", "replicationcontrollers"): "fakekube.resources.workloads.replicasets:ReplicationControllerStrategy",
    ("apps", "replicasets"): "fakekube.resources.workloads.replicasets:ReplicaSetStrategy",
    ("apps", "deployments"): "fakekube.resources.workloads.deployments:DeploymentStrategy",
    ("apps", "daemonsets"): "fakekube.resources.workloads.daemonsets:DaemonSetStrategy",
    ("apps", "statefulsets"): "fakekube.resources.workloads.statefulsets:StatefulSetStrategy",
    ("batch", "jobs"): "fakekube.resources.batch.jobs:JobStrategy",
    ("batch", "cronjobs"): "fakekube.resources.batch.cronjobs:CronJobStrategy",
    ("apps", "controllerrevisions"): "fakekube.resources.workloads.controllerrevisions:ControllerRevisionStrategy",
    ("policy", "poddisruptionbudgets"): "fakekube.resources.poddisruptionbudgets:PodDisruptionBudgetStrategy",
    ("", "configmaps"): "fakekube.resources.configmaps:ConfigMapStrategy",
    ("", "secrets"): "fakekube.resources.secrets:SecretStrategy",
    ("", "serviceaccounts"): "fakekube.resources.serviceaccounts:ServiceAccountStrategy",
    ("scheduling.k8s.io", "priorityclasses"): "fakekube.resources.priorityclasses:PriorityClassStrategy",
    ("node.k8s.io", "runtimeclasses"): "fakekube.resources.runtimeclasses:RuntimeClassStrategy",
    ("", "limitranges"): "fakekube.resources.limitranges:LimitRangeStrategy",
    ("", "resourcequotas"): "fakekube.resources.resourcequotas:ResourceQuotaStrategy",
    # -- the other kinds
    ("", "namespaces"): "fakekube.resources.namespaces:NamespaceStrategy",
    ("", "nodes"): "fakekube.resources.nodes:NodeStrategy",
    ("", "services"): "fakekube.resources.service:ServiceStrategy",
    ("", "endpoints"): "fakekube.resources.endpoints:EndpointsStrategy",
    ("discovery.k8s.io", "endpointslices"): "fakekube.resources.endpoints:EndpointSliceStrategy",
    ("", "events"): "fakekube.resources.events:EventStrategy",
    ("events.k8s.io", "events"): "fakekube.resources.events:EventStrategy",
    ("networking.k8s.io", "ipaddresses"): "fakekube.resources.ipaddresses:IPAddressStrategy",
    ("networking.k8s.io", "servicecidrs"): "fakekube.resources.servicecidrs:ServiceCIDRStrategy",
    ("rbac.authorization.k8s.io", "roles"): "fakekube.resources.rbac:RoleStrategy",
    ("rbac.authorization.k8s.io", "rolebindings"): "fakekube.resources.rbac:RoleBindingStrategy",
    ("rbac.authorization.k8s.io", "clusterroles"): "fakekube.resources.rbac:ClusterRoleStrategy",
    ("rbac.authorization.k8s.io", "clusterrolebindings"): "fakekube.resources.rbac:ClusterRoleBindingStrategy",
    ("coordination.k8s.io", "leases"): "fakekube.resources.leases:LeaseStrategy",
    ("networking.k8s.io", "ingresses"): "fakekube.resources.ingresses:IngressStrategy",
    ("networking.k8s.io", "ingressclasses"): "fakekube.resources.ingresses:IngressClassStrategy",
    ("networking.k8s.io", "networkpolicies"): "fakekube.resources.networkpolicies:NetworkPolicyStrategy",
    ("", "persistentvolumes"): "fakekube.resources.persistentvolumes:PersistentVolumeStrategy",
    ("", "persistentvolumeclaims"): "fakekube.resources.persistentvolumeclaims:PersistentVolumeClaimStrategy",
    ("storage.k8s.io", "storageclasses"): "fakekube.resources.storage.classes:StorageClassStrategy",
    ("storage.k8s.io", "volumeattributesclasses"): "fakekube.resources.storage.classes:VolumeAttributesClassStrategy",
    ("storage.k8s.io", "csidrivers"): "fakekube.resources.storage.csi:CSIDriverStrategy",
    ("storage.k8s.io", "csinodes"): "fakekube.resources.storage.csi:CSINodeStrategy",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "fakekube.crd.definitions:DefinitionStrategy",
    ("storage.k8s.io", "csistoragecapacities"): "fakekube.resources.storage.csi:CSIStorageCapacityStrategy",
    ("storage.k8s.io", "volumeattachments"): "fakekube.resources.storage.attachments:VolumeAttachmentStrategy",
    ("autoscaling", "horizontalpodautoscalers"): "fakekube.resources.horizontalpodautoscalers:HorizontalPodAutoscalerStrategy",
    ("autoscaling/v1", "horizontalpodautoscalers"): "fakekube.resources.horizontalpodautoscalers:HorizontalPodAutoscalerV1Strategy",
    ("certificates.k8s.io", "certificatesigningrequests"): "fakekube.resources.certificates:CertificateSigningRequestStrategy",
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): "fakekube.resources.webhookconfigurations:ValidatingWebhookStrategy",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): "fakekube.resources.webhookconfigurations:MutatingWebhookStrategy",
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): "fakekube.resources.admissionpolicies:ValidatingPolicyStrategy",
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): "fakekube.resources.admissionpolicies:ValidatingPolicyBindingStrategy",
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): "fakekube.resources.admissionpolicies:MutatingPolicyStrategy",
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): "fakekube.resources.admissionpolicies:MutatingPolicyBindingStrategy",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "fakekube.resources.flowcontrol:FlowSchemaStrategy",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): "fakekube.resources.flowcontrol:PriorityLevelConfigurationStrategy",
    ("apiregistration.k8s.io", "apiservices"): "fakekube.resources.apiservices:APIServiceStrategy",
    ("resource.k8s.io", "resourceclaims"): "fakekube.resources.resourceclaims:ResourceClaimStrategy",
    ("resource.k8s.io", "resourceclaimtemplates"): "fakekube.resources.resourceclaims:ResourceClaimTemplateStrategy",
    ("resource.k8s.io", "deviceclasses"): "fakekube.resources.resourceclaims:DeviceClassStrategy",
    ("resource.k8s.io", "resourceslices"): "fakekube.resources.resourceslices:ResourceSliceStrategy",
}

#: (group, "plural/subresource") → a Strategy class (a view), a Projection, or an Action (see subresources.py).
#: A /status without a row is a `StatusView`.
SUBRESOURCES: dict[tuple[str, str], str] = {
    # -- pods, workloads, batch, configuration
    ("", "pods/binding"): "fakekube.resources.pods.binding:bind",
    ("", "pods/eviction"): "fakekube.resources.pods.eviction:evict",
    ("", "pods/status"): "fakekube.resources.pods.strategy:PodStatusStrategy",
    ("", "pods/ephemeralcontainers"): "fakekube.resources.pods.strategy:EphemeralContainersStrategy",
    ("", "pods/resize"): "fakekube.resources.pods.strategy:ResizeStrategy",
    ("", "replicationcontrollers/status"): "fakekube.resources.workloads.replicasets:ReplicationControllerStatusStrategy",
    ("", "replicationcontrollers/scale"): "fakekube.resources.workloads.scale:REPLICATION_CONTROLLERS",
    ("apps", "replicasets/status"): "fakekube.resources.workloads.replicasets:ReplicaSetStatusStrategy",
    ("apps", "replicasets/scale"): "fakekube.resources.workloads.scale:REPLICA_SETS",
    ("apps", "deployments/status"): "fakekube.resources.workloads.deployments:DeploymentStatusStrategy",
    ("apps", "deployments/scale"): "fakekube.resources.workloads.scale:DEPLOYMENTS",
    ("apps", "daemonsets/status"): "fakekube.resources.workloads.daemonsets:DaemonSetStatusStrategy",
    ("batch", "jobs/status"): "fakekube.resources.batch.jobs:JobStatusStrategy",
    ("batch", "cronjobs/status"): "fakekube.resources.batch.cronjobs:CronJobStatusStrategy",
    ("apps", "statefulsets/status"): "fakekube.resources.workloads.statefulsets:StatefulSetStatusStrategy",
    ("apps", "statefulsets/scale"): "fakekube.resources.workloads.scale:STATEFUL_SETS",
    ("policy", "poddisruptionbudgets/status"): "fakekube.resources.poddisruptionbudgets:PodDisruptionBudgetStatusStrategy",
    ("", "serviceaccounts/token"): "fakekube.resources.serviceaccount_tokens:request_token",
    ("", "resourcequotas/status"): "fakekube.resources.resourcequotas:ResourceQuotaStatusStrategy",
    # -- the other kinds
    ("", "namespaces/status"): "fakekube.resources.namespaces:StatusView",
    ("", "namespaces/finalize"): "fakekube.resources.namespaces:FinalizeView",
    ("", "nodes/status"): "fakekube.resources.nodes:STATUS",
    ("", "services/status"): "fakekube.resources.service:STATUS",
    ("networking.k8s.io", "servicecidrs/status"): "fakekube.resources.servicecidrs:STATUS",
    ("networking.k8s.io", "ingresses/status"): "fakekube.resources.ingresses:STATUS",
    ("", "persistentvolumes/status"): "fakekube.resources.persistentvolumes:STATUS",
    ("", "persistentvolumeclaims/status"): "fakekube.resources.persistentvolumeclaims:STATUS",
    ("storage.k8s.io", "volumeattachments/status"): "fakekube.resources.storage.attachments:STATUS",
    ("autoscaling", "horizontalpodautoscalers/status"): "fakekube.resources.horizontalpodautoscalers:STATUS",
    ("certificates.k8s.io", "certificatesigningrequests/status"): "fakekube.resources.certificates:StatusView",
    ("apiextensions.k8s.io", "customresourcedefinitions/status"): "fakekube.crd.definitions:DefinitionStatusStrategy",
    ("certificates.k8s.io", "certificatesigningrequests/approval"): "fakekube.resources.certificates:ApprovalView",
    ("admissionregistration.k8s.io", "validatingadmissionpolicies/status"): "fakekube.resources.admissionpolicies:STATUS",
    ("flowcontrol.apiserver.k8s.io", "flowschemas/status"): "fakekube.resources.flowcontrol:STATUS",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations/status"): "fakekube.resources.flowcontrol:STATUS",
    ("apiregistration.k8s.io", "apiservices/status"): "fakekube.resources.apiservices:STATUS",
    ("resource.k8s.io", "resourceclaims/status"): "fakekube.resources.resourceclaims:STATUS",
}

#: (group, plural) → the Action behind a resource that is not stored: a POST answers (reviews, bindings).
ACTIONS: dict[tuple[str, str], str] = {
    ("", "bindings"): "fakekube.resources.pods.binding:bind_named",
    ("authorization.k8s.io", "subjectaccessreviews"): "fakekube.resources.reviews:review_access",
    ("authorization.k8s.io", "localsubjectaccessreviews"): "fakekube.resources.reviews:review_access_in_namespace",
    ("authorization.k8s.io", "selfsubjectaccessreviews"): "fakekube.resources.reviews:review_own_access",
    ("authorization.k8s.io", "selfsubjectrulesreviews"): "fakekube.resources.reviews:review_own_rules",
    ("authentication.k8s.io", "tokenreviews"): "fakekube.resources.reviews:review_token",
    ("authentication.k8s.io", "selfsubjectreviews"): "fakekube.resources.reviews:review_self",
}

#: (group, plural) → the function that tells the objects of a resource that is read-only and not stored.
COMPUTED: dict[tuple[str, str], str] = {("", "componentstatuses"): "fakekube.resources.componentstatuses:statuses"}

#: (group, plural) → where resources are stored under another group or version than their own: bucket, group, version.
STORED_AS: dict[tuple[str, str], tuple[str, str, str]] = {
    ("events.k8s.io", "events"): ("events", "", "v1"),
    ("autoscaling", "horizontalpodautoscalers"): ("horizontalpodautoscalers.autoscaling", "autoscaling", "v2"),
}

#: (group, version, plural) of what is not stored in its own shape → ("module:to_storage", "module:from_storage").
CONVERSIONS: dict[tuple[str, str, str], tuple[str, str]] = {
    ("events.k8s.io", "v1", "events"): ("fakekube.resources.events:to_storage", "fakekube.resources.events:from_storage"),
    ("autoscaling", "v1", "horizontalpodautoscalers"): ("fakekube.resources.autoscaling_v1:to_storage", "fakekube.resources.autoscaling_v1:from_storage"),
}

#: The subresources whose answers can become Tables, and which of those cannot (who implements TableConvertor).
_TABLES = frozenset({"status", "scale"})
_NO_TABLES = frozenset({
    ("apiextensions.k8s.io", "customresourcedefinitions/status"),
    ("apiregistration.k8s.io", "apiservices/status"),
    ("resource.k8s.io", "resourceclaims/status"),
})

#: (group, version, kind) → field labels that the kind knows, and the facts do not tell.
_MORE_FIELD_LABELS: dict[tuple[str, str, str], tuple[str, ...]] = {("batch", "v1", "Job"): ("status.successful",)}

#: (group, version, plural) → the warning that goes with every answer.
_DEPRECATIONS: dict[tuple[str, str, str], str] = {
    ("", "v1", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "v1", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}

_NO_REPLICAS = {"spec": {"replicas": 0}}

#: (group, plural) → what stands in an object with nothing in it (a bookmark), beside the zero values of its type.
_EMPTY_OBJECTS: dict[tuple[str, str], dict[str, Any]] = {
    ("apps", "deployments"): _NO_REPLICAS, ("apps", "replicasets"): _NO_REPLICAS, ("apps", "statefulsets"): _NO_REPLICAS,
    ("apps", "daemonsets"): {"metadata": {"annotations": {"deprecated.daemonset.template.generation": "0"}}},
}

#: Where the real server's storage keeps a resource, if not below its plural.
_STORAGE_PREFIXES = {
    "services": "services/specs", "endpoints": "services/endpoints", "nodes": "minions", "replicationcontrollers": "controllers",
    "ingresses.networking.k8s.io": "ingress", "podsecuritypolicies.policy": "podsecuritypolicy",
    "apiservices.apiregistration.k8s.io": "apiregistration.k8s.io/apiservices",
}


def attribute(path: str) -> Any:
    """What a "module:attribute" of the tables names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@cache
def resources(version: str = "1.36") -> Sequence[Resource]:
    """All built-in resources of a minor, in the order of discovery. Shared by all clusters: not to be changed."""
    facts, types = data.minor(version), builtins(version)
    rows = facts.resources
    main = [row for row in rows if "/" not in row.name]
    below: dict[tuple[str, str, str], list[data.ResourceRow]] = {}
    for row in rows:
        if "/" in row.name:
            below.setdefault((row.group, row.version, row.name.partition("/")[0]), []).append(row)
    return tuple(_resource(facts, types, row, below.get((row.group, row.version, row.name), [])) for row in main)


def _resource(facts: data.Facts, types: Builtins, row: data.ResourceRow, below: Sequence[data.ResourceRow]) -> Resource:
    own_bucket = f"{row.name}.{row.group}" if row.group else row.name
    bucket, group, version = STORED_AS.get((row.group, row.name), (own_bucket, row.group, row.version))
    kind = facts.kind(row.group, row.version, row.kind)
    to_storage, from_storage = CONVERSIONS.get((row.group, row.version, row.name), ("", ""))
    action, computed = ACTIONS.get((row.group, row.name)), COMPUTED.get((row.group, row.name))
    return Resource(
        group=row.group, version=row.version, plural=row.name, singular=row.singular, kind=row.kind,
        namespaced=row.namespaced, verbs=frozenset(row.verbs), bucket=bucket, storage_version=version,
        strategy_factory=partial(_strategy, row.group, row.name, row.version),
        type_factory=partial(_type, types, GVK(row.group, row.version, row.kind)),
        storage_type_factory=partial(_type, types, GVK(group, version, row.kind)),
        list_kind=f"{row.kind}List", short_names=row.short_names, categories=row.categories,
        subresources={s.name: s for s in (_subresource(types, b) for b in below)},
        field_labels=_field_labels(kind, GVK(row.group, row.version, row.kind)),
        field_readers=field_readers(bucket), storage_version_hash=row.storage_version_hash,
        empty=_EMPTY_OBJECTS.get((row.group, row.name), {}),
        deprecation=_DEPRECATIONS.get((row.group, row.version, row.name), ""),
        storage_prefix=_STORAGE_PREFIXES.get(bucket, row.name),
        to_storage=partial(_act, to_storage) if to_storage else None,
        from_storage=partial(_act, from_storage) if from_storage else None,
        action=partial(_act, action) if action else None,
        computed=partial(_act, computed) if computed else None,
    )


def _field_labels(kind: data.KindRow | None, gvk: GVK) -> tuple[str, ...]:
    known = kind.field_labels if kind and kind.field_labels else METADATA_LABELS
    return known + _MORE_FIELD_LABELS.get((gvk.group, gvk.version, gvk.kind), ())


def _type(types: Builtins, gvk: GVK) -> Type:
    found = types.kind_type(gvk.group, gvk.version, gvk.kind)
    if found is None:
        raise LookupError(f"no type for {gvk}")
    return found


def _strategy(group: str, plural: str, version: str) -> Strategy:
    path = STRATEGIES.get((f"{group}/{version}", plural)) or STRATEGIES.get((group, plural))
    strategy: Strategy = attribute(path)() if path else Strategy()
    return strategy


def _act(path: str, *arguments: Any) -> Any:
    """Imports a function of the tables when it is first called."""
    return attribute(path)(*arguments)


def _subresource(types: Builtins, row: data.ResourceRow) -> Subresource:
    name = row.name.partition("/")[2]
    gvk = GVK(row.kind_group, row.kind_version, row.kind)
    return Subresource(
        name, gvk, frozenset(row.verbs), partial(_type, types, gvk), partial(_implementation, row, name),
        tables=name in _TABLES and (row.group, row.name) not in _NO_TABLES,
    )


def _implementation(row: data.ResourceRow, name: str) -> Strategy | Projection | Action | None:
    path = SUBRESOURCES.get((row.group, row.name))
    if path is None:
        plural = row.name.partition("/")[0]
        return StatusView(_strategy(row.group, plural, row.version)) if name == "status" else None
    found: Any = attribute(path)
    made: Strategy | Projection | Action | None = found() if isinstance(found, type) else found
    return made

"""Fields whose feature gate is off: a write drops them, unless the old object uses the feature.

`FIELDS` has a row a gate and resource: the paths of its fields. While the gate is off and the old object has none of them, they
are removed from the new object before its strategy prepares it. In a path `[]` stands for the items of a list, `{}` for the
values of a map, `(a|b)` for several fields, and `?` behind a field means that it is removed with its last member. A row of a
gate that a minor does not know has no effect there, since the minor's types do not have the fields either.

Invariant: an object without such fields is only read.

Specified by: pkg/registry/**/strategy.go and pkg/api/**/util.go (the functions dropDisabled…).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fakekube.apimachinery.features import Emulation
from fakekube.apimachinery.schema.trees import are_equal
from fakekube.apis.core.pods.visitor import containers, uses_restart_rules
from fakekube.apis.validation.rules import NEVER
from fakekube.base.objects import Object


@dataclass(slots=True, frozen=True)
class GatedFields:
    """The fields of one gate in objects of one kind."""

    gate: str
    paths: tuple[str, ...]
    used_by: tuple[str, ...] = ()
    """The paths that show that the old object uses the feature; by default those of the fields."""
    since: int = 0
    """The first minor that drops them."""
    until: int = NEVER
    """The first minor that does so no more."""
    also: str = ""
    """A second gate that must be on."""


def _fields_of(
    gate: str, *paths: str, used_by: tuple[str, ...] = (), since: int = 0, until: int = NEVER, also: str = ""
) -> GatedFields:
    return GatedFields(gate, paths, used_by, since, until, also)


_CONTAINERS: Final = "(containers|initContainers|ephemeralContainers)[]"
_PROBES: Final = "(livenessProbe|readinessProbe|startupProbe)"
_AFFINITIES: Final = "affinity.(podAffinity|podAntiAffinity)"
_TERMS: Final = (
    f"{_AFFINITIES}.requiredDuringSchedulingIgnoredDuringExecution[]",
    f"{_AFFINITIES}.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm",
)
_USERS: Final = "volumes[].(secret|configMap|downwardAPI|projected)"
_STATUSES: Final = "(containerStatuses|initContainerStatuses|ephemeralContainerStatuses)[]"

_PREEMPTED: Final = ("disruptionMode", "priorityClassName", "priority")

#: The composite templates of a workload, which is at most so deep, and the lists of templates of groups of pods.
_COMPOSITES: Final = tuple(f"spec{'.compositePodGroupTemplates[]' * depth}" for depth in (1, 2, 3))
_TEMPLATES: Final = tuple(f"{parent}.podGroupTemplates[]" for parent in ("spec", *_COMPOSITES))

#: Of a pod's spec (dropDisabledFields).
POD_SPEC: Final = (
    _fields_of("UserNamespacesSupport", "hostUsers"),
    _fields_of("SupplementalGroupsPolicy", "securityContext.supplementalGroupsPolicy"),
    _fields_of("PodLevelResources", "resources"),
    _fields_of("MatchLabelKeysInPodTopologySpread", "topologySpreadConstraints[].matchLabelKeys"),
    _fields_of(
        "MatchLabelKeysInPodAffinity",
        *(f"{term}.{field}" for term in _TERMS for field in ("matchLabelKeys", "mismatchLabelKeys")),
    ),
    _fields_of("DynamicResourceAllocation", f"{_CONTAINERS}.resources.claims", "resourceClaims", used_by=("resourceClaims",)),
    _fields_of("ClusterTrustBundleProjection", "volumes[].projected.sources[].clusterTrustBundle"),
    _fields_of("PodCertificateRequest", "volumes[].projected.sources[].podCertificate"),
    _fields_of(
        "AtomicWriteVolumeUserFields",
        f"{_USERS}.defaultUser",
        f"{_USERS}.items[].user",
        "volumes[].projected.sources[].(secret|configMap|downwardAPI).items[].user",
        "volumes[].projected.sources[].(serviceAccountToken|clusterTrustBundle|podCertificate).user",
    ),
    _fields_of("GenericWorkload", "schedulingGroup"),
    _fields_of("GenericWorkload", "workloadRef"),
    _fields_of("GRPCContainerProbeTLS", f"{_CONTAINERS}.{_PROBES}.grpc.mode"),
    _fields_of("EvictionRequestAPI", "evictionResponders"),
    _fields_of("InPlacePodVerticalScaling", f"{_CONTAINERS}.resizePolicy"),
    _fields_of(
        "ContainerRestartRules",
        f"{_CONTAINERS}.restartPolicyRules",
        used_by=(f"{_CONTAINERS}.restartPolicyRules", "containers[].restartPolicy"),
    ),
    _fields_of("RecursiveReadOnlyMounts", f"{_CONTAINERS}.volumeMounts[].recursiveReadOnly"),
    _fields_of("EmptyDirVolumeMode", "volumes[].emptyDir.mode"),
    _fields_of("VolumeBindMountOptions", f"{_CONTAINERS}.volumeMounts[].bindMountOptions"),
    _fields_of("HostnameOverride", "hostnameOverride"),
    _fields_of("EnvFiles", f"{_CONTAINERS}.env[].valueFrom.fileKeyRef"),
    _fields_of("SELinuxChangePolicy", "securityContext.seLinuxChangePolicy"),
    _fields_of("ContainerStopSignals", f"{_CONTAINERS}.lifecycle?.stopSignal"),
    _fields_of(
        "H2CContainerProbe",
        f"{_CONTAINERS}.{_PROBES}.httpGet.protocol",
        f"{_CONTAINERS}.lifecycle.(postStart|preStop).httpGet.protocol",
    ),
)

#: Of a pod's status (dropDisabledPodStatusFields).
POD_STATUS: Final = (
    _fields_of("InPlacePodLevelResourcesVerticalScaling", "(resources|allocatedResources)"),
    _fields_of("InPlacePodVerticalScaling", f"{_STATUSES}.(resources|allocatedResources)"),
    _fields_of("DynamicResourceAllocation", "resourceClaimStatuses"),
    _fields_of("DRAExtendedResource", "extendedResourceClaimStatus"),
    _fields_of("RecursiveReadOnlyMounts", f"{_STATUSES}.volumeMounts"),
    _fields_of("ResourceHealthStatus", f"{_STATUSES}.allocatedResourcesStatus"),
    _fields_of("ResourceHealthStatusMessage", f"{_STATUSES}.allocatedResourcesStatus[].resources[].message"),
    _fields_of("SupplementalGroupsPolicy", f"{_STATUSES}.user"),
    _fields_of("PodObservedGenerationTracking", "observedGeneration", "conditions[].observedGeneration"),
    _fields_of("ImageVolumeWithDigest", f"{_STATUSES}.volumeMounts[].volumeStatus"),
    _fields_of("DRANodeAllocatableResources", "nodeAllocatableResourceClaimStatuses"),
    _fields_of("CSIVolumeHealth", "volumeHealth"),
)

_REQUESTS: Final = "devices.requests[]"
_DISTINCT: Final = "devices.constraints[].distinctAttribute"
_CAPACITIES: Final = (f"{_REQUESTS}.exactly.capacity", f"{_REQUESTS}.firstAvailable[].capacity")
_CLAIM_SPEC: Final = (
    ("DRAPrioritizedList", (f"{_REQUESTS}.firstAvailable",)),
    ("DRADeviceTaints", (f"{_REQUESTS}.exactly.tolerations", f"{_REQUESTS}.firstAvailable[].tolerations")),
    ("DRAAdminAccess", (f"{_REQUESTS}.exactly.adminAccess",)),
    ("DRAConsumableCapacity", (_DISTINCT,)),
    ("DRAConsumableCapacity", _CAPACITIES),
    ("DRADerivedAttributes", (f"{_REQUESTS}.exactly.derivedAttributes", f"{_REQUESTS}.firstAvailable[].derivedAttributes")),
)
_RESULTS: Final = "status.allocation.devices.results[]"


#: Field of claims → the first minor that drops it without its gate; 1.34 does not, by mistake.
_DROPPED_SINCE: Final = {f"{_REQUESTS}.exactly.tolerations": 35, _DISTINCT: 35}
#: Gate → the fields that show its use, if they are more than those of a row.
_USED_BY: Final = {"DRAConsumableCapacity": (_DISTINCT, *_CAPACITIES)}


def _claim_spec(at: str) -> tuple[GatedFields, ...]:
    return tuple(
        _fields_of(
            gate,
            *(f"{at}.{path}" for path in paths),
            used_by=tuple(f"{at}.{path}" for path in _USED_BY.get(gate, ())),
            since=_DROPPED_SINCE.get(paths[0], 0),
        )
        for gate, paths in _CLAIM_SPEC
    )


#: (group, resource or resource/subresource) → its gated fields.
FIELDS: Final[Mapping[tuple[str, str], tuple[GatedFields, ...]]] = {
    ("", "persistentvolumes"): (_fields_of("VolumeAttributesClass", "spec.volumeAttributesClassName"),),
    ("", "persistentvolumeclaims"): (_fields_of("VolumeAttributesClass", "spec.volumeAttributesClassName"),),
    ("", "persistentvolumeclaims/status"): (
        _fields_of("VolumeAttributesClass", "status.(currentVolumeAttributesClassName|modifyVolumeStatus)"),
        _fields_of("RecoverVolumeExpansionFailure", "status.(allocatedResources|allocatedResourceStatuses)"),
        _fields_of("CSIVolumeHealth", "status.healthStatus"),
    ),
    ("", "nodes"): (
        _fields_of("NodeDeclaredFeatures", "status.declaredFeatures"),
        _fields_of("SupplementalGroupsPolicy", "status.features"),
        _fields_of("KubeletInUserNamespace", "status.nodeInfo.runningInUserNamespace"),
        _fields_of("InPlacePodVerticalScalingSchedulerPreemption", "spec.podPreemptionPolicy"),),
    ("", "nodes/status"): (
        _fields_of("KubeletInUserNamespace", "status.nodeInfo.runningInUserNamespace"),
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions/status"): (
        _fields_of("CRDObservedGenerationTracking", "status.observedGeneration", "status.conditions[].observedGeneration"),
    ),
    ("apps", "statefulsets"): (
        _fields_of("MaxUnavailableStatefulSet", "spec.updateStrategy.rollingUpdate.maxUnavailable"),
    ),
    ("apps", "deployments/status"): (_fields_of("DeploymentReplicaSetTerminatingReplicas", "status.terminatingReplicas"),),
    ("apps", "replicasets/status"): (_fields_of("DeploymentReplicaSetTerminatingReplicas", "status.terminatingReplicas"),),
    ("autoscaling", "horizontalpodautoscalers"): (
        _fields_of("HPAConfigurableTolerance", "spec.behavior.(scaleUp|scaleDown).tolerance"),
    ),
    ("batch", "jobs"): (
        _fields_of("JobManagedBy", "spec.managedBy"),
        _fields_of("JobPodReplacementPolicy", "spec.podReplacementPolicy"),
        _fields_of("WorkloadWithJob", "spec.scheduling"),
    ),
    ("batch", "cronjobs"): (
        _fields_of("JobManagedBy", "spec.jobTemplate.spec.managedBy"),
        _fields_of("WorkloadWithJob", "spec.jobTemplate.spec.scheduling"),
    ),
    ("coordination.k8s.io", "leases"): (
        _fields_of("CoordinatedLeaderElection", "spec.strategy"),
        _fields_of("CoordinatedLeaderElection", "spec.preferredHolder"),
    ),
    ("discovery.k8s.io", "endpointslices"): (
        _fields_of("PreferSameTrafficDistribution", "endpoints[].hints.forNodes"),
    ),
    ("resource.k8s.io", "deviceclasses"): (_fields_of("DRAExtendedResource", "spec.extendedResourceName"),),
    ("resource.k8s.io", "resourceclaims"): _claim_spec("spec"),
    ("resource.k8s.io", "resourceclaimtemplates"): _claim_spec("spec.spec"),
    ("resource.k8s.io", "resourceclaims/status"): (
        _fields_of("DRAResourceClaimDeviceStatus", "status.devices"),
        _fields_of("DRAConsumableCapacity", f"{_RESULTS}.(shareID|consumedCapacity)", "status.devices[].shareID"),
        _fields_of(
            "DRADeviceBindingConditions",
            f"{_RESULTS}.(bindingConditions|bindingFailureConditions)",
            "status.allocation.allocationTimestamp",
            until=35,
            also="DRAResourceClaimDeviceStatus",
        ),
        _fields_of("DRADeviceBindingConditions", f"{_RESULTS}.(bindingConditions|bindingFailureConditions)", since=35),
        _fields_of("DRAOptionalNodeOperations", f"{_RESULTS}.skipNodeOperations"),
    ),
    ("resource.k8s.io", "resourceslices"): (
        _fields_of("DRADeviceTaints", "spec.devices[].taints"),
        _fields_of(
            "DRAPartitionableDevices",
            "spec.(sharedCounters|perDeviceNodeSelection)",
            "spec.devices[].(consumesCounters|nodeName|nodeSelector|allNodes)",
        ),
        _fields_of(
            "DRADeviceBindingConditions",
            "spec.devices[].(bindingConditions|bindingFailureConditions|bindsToNode)",
            also="DRAResourceClaimDeviceStatus",
        ),
        _fields_of("DRAConsumableCapacity", "spec.devices[].allowMultipleAllocations", "spec.devices[].capacity{}.requestPolicy"),
        _fields_of("DRADeviceCompatibilityGroups", "spec.devices[].consumesCounters[].compatibilityGroups"),
        _fields_of("DRANodeAllocatableResources", "spec.devices[].(nodeAllocatableResources|nodeAllocatableResourceMappings)"),
        _fields_of("DRAListTypeAttributes", "spec.devices[].attributes{}.(bools|ints|strings|versions)"),
        _fields_of("DRAPartitionableDevicesType", "spec.partitionTypeAttribute"),
        _fields_of("DRAOptionalNodeOperations", "spec.skipNodeOperations"),
    ),
    ("resource.k8s.io", "resourcepoolstatusrequests"): (
        _fields_of("DRAPartitionableDevicesType", "spec.defaultPartitionTypeAttribute"),
    ),
    ("scheduling.k8s.io", "podgroups"): (
        _fields_of("TopologyAwareWorkloadScheduling", "spec.schedulingConstraints"),
        _fields_of("DRAWorkloadResourceClaims", "spec.resourceClaims"),
        *(_fields_of("WorkloadAwarePreemption", f"spec.{field}", until=37) for field in _PREEMPTED),
        _fields_of("PodGroupPreemptionPolicy", "spec.preemptionPolicy"),
        _fields_of("CompositePodGroup", "spec.parentCompositePodGroupName"),
    ),
    ("scheduling.k8s.io", "compositepodgroups"): (_fields_of("PodGroupPreemptionPolicy", "spec.preemptionPolicy"),),
    ("scheduling.k8s.io", "podgroups/status"): (_fields_of("DRAWorkloadResourceClaims", "status.resourceClaimStatuses"),),
    ("scheduling.k8s.io", "workloads"): (
        _fields_of("TopologyAwareWorkloadScheduling", *(f"{path}.schedulingConstraints" for path in _TEMPLATES)),
        _fields_of("DRAWorkloadResourceClaims", *(f"{path}.resourceClaims" for path in _TEMPLATES)),
        *(_fields_of("WorkloadAwarePreemption", f"spec.podGroupTemplates[].{field}", until=37) for field in _PREEMPTED),
        _fields_of("PodGroupPreemptionPolicy", *(f"{path}.preemptionPolicy" for path in (*_TEMPLATES, *_COMPOSITES))),
        _fields_of("CompositePodGroup", "spec.compositePodGroupTemplates"),
    ),
    ("storage.k8s.io", "csidrivers"): (
        _fields_of("SELinuxMountReadWriteOncePod", "spec.seLinuxMount"),
        _fields_of("MutableCSINodeAllocatableCount", "spec.nodeAllocatableUpdatePeriodSeconds"),
        _fields_of("CSIServiceAccountTokenSecrets", "spec.serviceAccountTokenInSecrets"),
        _fields_of("VolumeLimitScaling", "spec.preventPodSchedulingIfMissing"),
    ),
    ("storage.k8s.io", "csinodes/status"): (_fields_of("CSIVolumeHealth", "status.storageHealth"),),
    ("storage.k8s.io", "volumeattachments/status"): (
        _fields_of("MutableCSINodeAllocatableCount", "status.(attachError|detachError).errorCode"),
    ),
}  # fmt: skip

_IMAGE_VOLUMES: Final = "ImageVolume"

#: The first minor in which containers have restart policies; an earlier one forbids them.
_DROPS_RESTART_POLICIES: Final = 34


def drop_disabled_fields(emulation: Emulation, group: str, resource: str, obj: Object, old: Object | None) -> None:
    """Drops the fields of gates that are off, in place.

    Args:
        emulation: the minor and its gates.
        group: of the resource.
        resource: its plural, with `/` and the subresource of the write if there is one.
        obj: the new object.
        old: the stored object; None on create.
    """
    rows = FIELDS.get((group, resource))
    if rows is not None:
        _drop(emulation, (group, resource), rows, obj, old)


def drop_disabled_pod_fields(emulation: Emulation, spec: Object, old: Object | None) -> None:
    """Drops the fields of gates that are off of the spec of a pod or of a pod template, in place (`old`: None on create)."""
    if old is not None and are_equal(spec, old):  # what is in use is kept
        return
    _drop(emulation, "pod spec", POD_SPEC, spec, old)
    if emulation.minor >= _DROPS_RESTART_POLICIES and not emulation.enabled("ContainerRestartRules"):
        _drop_restart_policies(spec, old)
    if not emulation.enabled("PodLifecycleSleepAction"):
        _drop_sleep_actions(spec, old)
    if not emulation.enabled("ProcMountType"):
        _reset_proc_mounts(spec, old)
    if not emulation.enabled(_IMAGE_VOLUMES):
        _drop_image_volumes(spec, old)


def _reset_proc_mounts(spec: Object, old: Object | None) -> None:
    """Sets the mounts of /proc to the default, where there are any (dropDisabledProcMountField)."""
    if any(context["procMount"] != "Default" for context in _list_proc_mounts(old or {})):
        return
    for context in _list_proc_mounts(spec):
        context["procMount"] = "Default"


def _list_proc_mounts(spec: Object) -> list[Object]:
    """Returns the security contexts of containers that say how /proc is mounted."""
    contexts = (container.get("securityContext") or {} for container in containers(spec))
    return [context for context in contexts if context.get("procMount") is not None]


def _drop_sleep_actions(spec: Object, old: Object | None) -> None:
    """Drops the sleep of hooks, and the hooks that have nothing else (dropPodLifecycleSleepAction)."""
    if old is not None and any(_list_sleeping_hooks(old)):
        return
    for container, name in list(_list_sleeping_hooks(spec)):
        lifecycle = container["lifecycle"]
        del lifecycle[name]["sleep"]
        if not lifecycle[name]:
            del lifecycle[name]
        if not lifecycle:
            del container["lifecycle"]


def _list_sleeping_hooks(spec: Object) -> Iterator[tuple[Object, str]]:
    """Yields the containers whose hooks sleep, with the name of the hook."""
    for container in containers(spec):
        for name in ("postStart", "preStop"):
            if "sleep" in ((container.get("lifecycle") or {}).get(name) or ()):
                yield container, name


def drop_disabled_pod_status(emulation: Emulation, status: Object, old: Object | None) -> None:
    """Drops the fields of gates that are off of the status of a pod, in place."""
    _drop(emulation, "pod status", POD_STATUS, status, old)


def _drop_restart_policies(spec: Object, old: Object | None) -> None:
    """Drops the restart policies of containers, but for those of sidecars (dropContainerRestartRules)."""
    if uses_restart_rules(old or {}):
        return
    sidecars = {id(item) for item in spec.get("initContainers") or () if item.get("restartPolicy") == "Always"}
    for container in containers(spec):
        if id(container) not in sidecars:
            container.pop("restartPolicy", None)


def _drop_image_volumes(spec: Object, old: Object | None) -> None:
    """Drops volumes that are images, and their mounts (dropImageVolumes)."""
    if any("image" in volume for volume in (old or {}).get("volumes") or ()):
        return
    names = {volume["name"] for volume in spec.get("volumes") or () if "image" in volume}
    if not names:
        return
    spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] not in names]
    for container in containers(spec):
        if container.get("volumeMounts"):
            container["volumeMounts"] = [one for one in container["volumeMounts"] if one.get("name") not in names]


# --- Paths -----------------------------------------------------------------------------------------------------------

_STEP: Final = re.compile(r"\(([^)]*)\)|(\w+)|(\[\])|(\{\})")
_Step = tuple[tuple[str, ...], bool]
"""Alternative fields, or `[]` or `{}`; and whether the field is removed with its last member."""


def _steps(path: str) -> tuple[_Step, ...]:
    found: list[_Step] = []
    for match in _STEP.finditer(path):
        names = tuple(match[1].split("|")) if match[1] else (match[0],)
        found.append((names, path[match.end() : match.end() + 1] == "?"))
    return tuple(found)


@dataclass(slots=True, frozen=True)
class _Row:
    """A compiled row."""

    drops: tuple[tuple[_Step, ...], ...]
    used_by: tuple[tuple[_Step, ...], ...]


#: The paths of several rows as a tree: the steps below a field or below `[]` and `{}`; None at the end of a path.
_Tree = dict[str, "_Tree | None"]


@dataclass(slots=True, frozen=True)
class _Disabled:
    """The rows whose gates are off, and all their paths as one tree, with which an object is searched in one walk."""

    rows: tuple[_Row, ...]
    fields: _Tree


def _drop(emulation: Emulation, key: object, rows: Iterable[GatedFields], obj: Object, old: Object | None) -> None:
    make: Callable[[Emulation], _Disabled] = partial(_compile, rows)
    disabled = emulation.compiled(("disabled-fields", key), make)
    if not _holds_any(obj, disabled.fields):
        return
    for row in disabled.rows:
        if old is not None and any(_has(old, path) for path in row.used_by):
            continue
        for path in row.drops:
            _remove(obj, path)


def _compile(rows: Iterable[GatedFields], emulation: Emulation) -> _Disabled:
    held = [row for row in rows if row.since <= emulation.minor < row.until]
    off = [row for row in held if not (emulation.enabled(row.gate) and (not row.also or emulation.enabled(row.also)))]
    compiled = tuple(_Row(tuple(map(_steps, row.paths)), tuple(map(_steps, row.used_by or row.paths))) for row in off)
    fields: _Tree = {}
    for row in compiled:
        for path in row.drops:
            _add_path(fields, path)
    return _Disabled(compiled, fields)


def _add_path(tree: _Tree, path: tuple[_Step, ...]) -> None:
    (names, _), *rest = path
    for name in names:
        if not rest:
            tree[name] = None
            continue
        below = tree.setdefault(name, {})
        if below is not None:  # else the whole field is dropped
            _add_path(below, tuple(rest))


def _holds_any(value: Any, fields: _Tree) -> bool:
    """Reports whether a value has a field at the end of a path, whatever its value."""
    if value.__class__ is dict:
        if "{}" in fields:
            return any(_holds_any(member, fields["{}"] or {}) for member in value.values())
        for name in fields.keys() & value.keys():
            below = fields[name]
            if below is None or (value[name] and _holds_any(value[name], below)):
                return True
        return False
    below = fields.get("[]")
    if below:
        for item in value:
            if item and _holds_any(item, below):
                return True
    return False


def _members(value: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Returns what a step leads to, each with its name."""
    if names == ("[]",):
        yield from (("", item) for item in value or ())
    elif names == ("{}",):
        yield from (value or {}).items()
    else:
        yield from ((name, value[name]) for name in names if value and name in value)


def _has(value: Any, path: tuple[_Step, ...]) -> bool:
    """Reports whether anything but an empty value is at a path."""
    if not path:
        return value not in (None, [], {})
    return any(_has(member, path[1:]) for _, member in _members(value, path[0][0]))


def _remove(value: Any, path: tuple[_Step, ...]) -> None:
    (names, prunes), *rest = path
    if not rest:
        for name in names:
            value.pop(name, None)
        return
    for name, member in list(_members(value, names)):
        if member is not None:
            had = bool(member)
            _remove(member, tuple(rest))
            if prunes and had and not member:
                del value[name]

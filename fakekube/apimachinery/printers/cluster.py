"""Printers of the kinds about the cluster: access, admission, certificates, priorities, leases, devices, flows.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go); of APIServices
k8s.io/kube-aggregator/pkg/registry/apiservice/etcd; of definitions
k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/tableconvertor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery.data import ADMISSION_REGISTRATION, RBAC
from fakekube.apimachinery.printers.texts import (  # fmt: skip
    NONE,
    UNKNOWN,
    UNSET,
    Ages,
    Cells,
    age,
    condition,
    human_duration,
    labels,
    name,
    quantity,
    since,
)
from fakekube.base.golang.strings import label_selector_string
from fakekube.base.golang.timestamps import ZERO_TIME
from fakekube.base.objects import StoredObject, group_resource


def _spec(obj: StoredObject) -> StoredObject:
    found: StoredObject = obj.get("spec") or {}
    return found


def _name_and_age(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), age(obj, ages)]


# --- Access -----------------------------------------------------------------------------------------------------------


def _role_binding(obj: StoredObject, ages: Ages) -> list[Any]:
    role = obj.get("roleRef", {})
    subjects = obj.get("subjects") or ()
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        text = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            text = f"{subject.get('namespace', '')}/{text}"
        named.setdefault(subject.get("kind", ""), []).append(text)
    wide = [", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name(obj), f"{role.get('kind', '')}/{role.get('name', '')}", age(obj, ages), *wide]


def _signing_request(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _spec(obj), obj.get("status", {})
    conditions = status.get("conditions")
    verdicts = ("Denied", "Approved")
    verdict = next((type_ for type_ in verdicts if condition(conditions, type_) is not None), "Pending")
    if condition(conditions, "Failed") is not None:
        verdict += ",Failed"
    if status.get("certificate"):
        verdict += ",Issued"
    seconds = spec.get("expirationSeconds")
    duration = NONE if seconds is None else human_duration(seconds)
    signer = spec.get("signerName") or NONE
    return [name(obj), age(obj, ages), signer, spec.get("username", ""), duration, verdict]


def _trust_bundle(obj: StoredObject, _: Ages) -> list[Any]:
    return [name(obj), _spec(obj).get("signerName") or NONE]


def _pod_certificate(obj: StoredObject, _: Ages) -> list[Any]:
    spec = _spec(obj)
    types = [one.get("type") for one in obj.get("status", {}).get("conditions") or ()]
    state = next((type_ for type_ in reversed(types) if type_ in ("Issued", "Denied", "Failed")), "Pending")
    fields = ("podName", "serviceAccountName", "nodeName", "signerName")
    annotations = spec.get("unverifiedUserAnnotations")
    return [name(obj), *(spec.get(field, "") for field in fields), state, labels(annotations)]


def _device_taint_rule(obj: StoredObject, ages: Ages) -> list[Any]:
    taint = _spec(obj).get("taint", {})
    added = taint.get("timeAdded")
    cells = [taint.get(field, "") for field in ("key", "value", "effect")]
    return [name(obj), *cells, since(added, ages) if added else "", age(obj, ages)]


def _migration(obj: StoredObject, _: Ages) -> list[Any]:
    resource, conditions = _spec(obj).get("resource", {}), obj.get("status", {}).get("conditions") or ()
    states = [one["type"] for one in conditions if one.get("status") == "True"]
    known = [state for state in states if state in ("Running", "Failed", "Succeeded")]
    plural, group = resource.get("resource", ""), resource.get("group", "")
    return [name(obj), group_resource(group, plural), known[-1] if known else "Unknown"]


# --- Admission --------------------------------------------------------------------------------------------------------


def _count_of(field: str, place: str = "") -> Cells:
    """Returns the name, the length of a list, and the age."""

    def cells(obj: StoredObject, ages: Ages) -> list[Any]:
        holder = obj.get(place, {}) if place else obj
        return [name(obj), len(holder.get(field) or ()), age(obj, ages)]

    return cells


def _policy(field: str) -> Cells:
    def cells(obj: StoredObject, ages: Ages) -> list[Any]:
        spec = _spec(obj)
        kind = spec.get("paramKind")
        shown = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
        return [name(obj), len(spec.get(field) or ()), shown, age(obj, ages)]

    return cells


def _policy_binding(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = _spec(obj)
    reference, shown = spec.get("paramRef"), UNSET
    if reference is not None:
        if reference.get("name"):
            shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
        elif reference.get("selector") is not None:
            shown = label_selector_string(reference["selector"])
    return [name(obj), spec.get("policyName", ""), shown, age(obj, ages)]


# --- Scheduling, nodes, devices, leases -------------------------------------------------------------------------------


def _priority_class(obj: StoredObject, ages: Ages) -> list[Any]:
    return [
        name(obj), obj.get("value", 0), obj.get("globalDefault", False), age(obj, ages),
        obj.get("preemptionPolicy", ""),
    ]  # fmt: skip


def _runtime_class(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), obj.get("handler", ""), age(obj, ages)]


def _lease(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), _spec(obj).get("holderIdentity", ""), age(obj, ages)]


def _lease_candidate(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = _spec(obj)
    return [name(obj), *(spec.get(field, "") for field in ("leaseName", "binaryVersion", "emulationVersion")), age(obj, ages)]


def _resource_claim(obj: StoredObject, ages: Ages) -> list[Any]:
    status, deleted = obj.get("status") or {}, bool(obj["metadata"].get("deletionTimestamp"))
    allocated = status.get("allocation") is not None
    states = {
        "deleted": deleted,
        "pending": not allocated and not deleted,
        "allocated": allocated,
        "reserved": allocated and bool(status.get("reservedFor")),
    }
    return [name(obj), ",".join(state for state, holds in states.items() if holds), age(obj, ages)]


def _resource_slice(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = _spec(obj)
    pool = spec.get("pool", {}).get("name", "")
    return [name(obj), spec.get("nodeName", ""), spec.get("driver", ""), pool, age(obj, ages)]


def _resource_pool_status(obj: StoredObject, ages: Ages) -> list[Any]:
    status, state, completed = obj.get("status"), "Pending", NONE
    counts = ["-"] * 5
    pools = (status or {}).get("pools") or ()
    total = (status or {}).get("poolCount", 0)
    verdicts = [one for one in (status or {}).get("conditions") or () if one.get("status") == "True"]
    verdict = next((one for one in verdicts if one.get("type") in ("Complete", "Failed")), None)
    if verdict is not None:
        state = verdict["type"]
    if verdict is not None and state == "Complete":
        completed = since(verdict.get("lastTransitionTime"), ages)
        state += f" ({len(pools)}/{total} pools)" if total > len(pools) else ""
    if status is not None and state != "Failed":
        fields = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
        counts = [str(sum(pool.get(field, 0) for pool in pools)) for field in fields]
        counts.append(str(sum("validationError" in pool for pool in pools)))
    return [name(obj), _spec(obj).get("driver", ""), *counts, total, state, completed]


def _policy_and_workload(obj: StoredObject) -> list[Any]:
    spec = _spec(obj)
    reference = spec.get("workloadRef") or (spec.get("podGroupTemplateRef") or {}).get("workload")
    policy = "Gang" if "gang" in spec.get("schedulingPolicy", {}) else "Basic"
    return [name(obj), policy, NONE if reference is None else reference.get("workloadName", "")]


def _pod_group(obj: StoredObject, ages: Ages) -> list[Any]:
    conditions = {one.get("type"): one for one in obj.get("status", {}).get("conditions") or ()}
    scheduled = conditions.get("PodGroupInitiallyScheduled", conditions.get("PodGroupScheduled"))
    state = "Pending"
    if scheduled is not None:
        state = "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if "DisruptionTarget" in conditions:
        state = conditions["DisruptionTarget"].get("reason", "")
    return [*_policy_and_workload(obj), state, age(obj, ages)]


def _composite_pod_group(obj: StoredObject, ages: Ages) -> list[Any]:
    return [*_policy_and_workload(obj), age(obj, ages)]


def _target_and_state(obj: StoredObject) -> list[Any]:
    """Returns the name, the target, its kind, and how far an eviction is."""
    pod, status = _spec(obj).get("target", {}).get("pod"), obj.get("status", {})
    state = "Progressing" if status.get("observedGeneration", 0) > 0 else "Pending"
    for kind in ("Failed", "TargetEvicted"):
        found = condition(status.get("conditions"), kind)
        if found is not None and found.get("status") == "True":
            state = f"{kind} ({found.get('reason', '')})"
    target = [UNSET, UNSET] if pod is None else [pod.get("name", ""), "Pod"]
    return [name(obj), *target, state]


def _eviction_request(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = _spec(obj)
    return [*_target_and_state(obj), spec.get("requester", ""), spec.get("intent", ""), age(obj, ages)]


def _eviction(obj: StoredObject, ages: Ages) -> list[Any]:
    status = obj.get("status", {})
    targeted = status.get("targetResponders") or ()
    done = [one for one in targeted if one.get("state") in ("Canceled", "Interrupted", "Completed")]
    active = [one for one in targeted if one.get("state") == "Active"]
    last = (active or done or [None])[-1]
    shown = f"{UNSET if last is None else last.get('name', '')} ({len(done) + len(active)}/{len(targeted)})"
    responder = None
    if last is not None:
        responder = next((one for one in status.get("responders") or () if one.get("name") == last.get("name")), None)
    progress = _progress(responder, last["state"], ages) if last is not None and responder is not None else (UNSET, UNKNOWN)
    heartbeat, message = (responder or {}).get("heartbeatTime"), ((responder or {}).get("message") or "").strip()
    wide = [f"{since(heartbeat, ages)} ago" if heartbeat else UNSET, message or UNSET]
    return [*_target_and_state(obj), shown, *progress, _requesters(status.get("requesters") or ()), age(obj, ages), *wide]


def _progress(responder: StoredObject, state: str, ages: Ages) -> tuple[str, str]:
    """Returns what a responder does, and when it will end, which is not told: rows are made once, and know ages only."""
    if state != "Active":
        ended = responder.get("completionTime") if state == "Completed" else None
        return f"{state} ({since(ended, ages)} ago)" if ended else state, "-"
    started = responder.get("startTime")
    return (f"Started ({since(started, ages)} ago)" if started else state), UNKNOWN


def _requesters(requesters: Sequence[StoredObject]) -> str:
    wanted = sorted(one.get("name", "") for one in requesters if one.get("intent") != "Withdrawn")
    if not wanted:
        return "<withdrawn>" if requesters else NONE
    return f"{wanted[0]} + {len(wanted) - 1} more..." if len(wanted) > 1 else wanted[0]


# --- Flow control, aggregation ----------------------------------------------------------------------------------------


def _flow_schema(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = _spec(obj)
    method = spec.get("distinguisherMethod")
    dangling = condition(obj.get("status", {}).get("conditions"), "Dangling")
    return [
        name(obj), spec.get("priorityLevelConfiguration", {}).get("name", ""),
        spec.get("matchingPrecedence", 0), NONE if method is None else method.get("type", ""), age(obj, ages),
        "?" if dangling is None else dangling.get("status", ""),
    ]  # fmt: skip


def flow_order(obj: StoredObject) -> tuple[int, str]:
    """Returns the sort key of FlowSchemas: the order in which they are matched."""
    return _spec(obj).get("matchingPrecedence", 0), name(obj)


def _priority_level(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = _spec(obj)
    limited = spec.get("limited")
    shares: Any = NONE
    queues: list[Any] = [NONE] * 3
    if limited is not None:
        shares = limited.get("nominalConcurrencyShares", 0)
        queuing = limited.get("limitResponse", {}).get("queuing")
        if queuing is not None:
            queues = [queuing.get(field, 0) for field in ("queues", "handSize", "queueLengthLimit")]
    return [name(obj), spec.get("type", ""), shares, *queues, age(obj, ages)]


def _api_service(obj: StoredObject, ages: Ages) -> list[Any]:
    service = _spec(obj).get("service")
    where = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    available = condition(obj.get("status", {}).get("conditions"), "Available")
    status = "Unknown" if available is None else available.get("status", "")
    if available is not None and status != "True" and available.get("reason"):
        status = f"{status} ({available['reason']})"
    return [name(obj), where, status, age(obj, ages)]


def _definition(obj: StoredObject, _: Ages) -> list[Any]:
    spec, metadata = _spec(obj), obj["metadata"]
    served = (version for version in spec.get("versions") or () if version.get("served"))
    labels_of_versions = sorted(version["name"] + ("(storage)" if version.get("storage") else "") for version in served)
    established = condition(obj.get("status", {}).get("conditions"), "Established")
    names = spec.get("names", {})
    return [
        name(obj), spec.get("scope", ""), ",".join(labels_of_versions), metadata.get("creationTimestamp") or ZERO_TIME,
        spec.get("group", ""), names.get("kind", ""), ",".join(names.get("shortNames") or ()),
        established is not None and established.get("status") == "True",
    ]  # fmt: skip


_WEBHOOKS: Final = _count_of("webhooks")

CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    (ADMISSION_REGISTRATION, "mutatingadmissionpolicies"): _policy("mutations"),
    (ADMISSION_REGISTRATION, "mutatingadmissionpolicybindings"): _policy_binding,
    (ADMISSION_REGISTRATION, "mutatingwebhookconfigurations"): _WEBHOOKS,
    (ADMISSION_REGISTRATION, "validatingadmissionpolicies"): _policy("validations"),
    (ADMISSION_REGISTRATION, "validatingadmissionpolicybindings"): _policy_binding,
    (ADMISSION_REGISTRATION, "validatingwebhookconfigurations"): _WEBHOOKS,
    ("apiextensions.k8s.io", "customresourcedefinitions"): _definition,
    ("apiregistration.k8s.io", "apiservices"): _api_service,
    ("certificates.k8s.io", "certificatesigningrequests"): _signing_request,
    ("certificates.k8s.io", "clustertrustbundles"): _trust_bundle,
    ("certificates.k8s.io", "podcertificaterequests"): _pod_certificate,
    ("resource.k8s.io", "devicetaintrules"): _device_taint_rule,
    ("storagemigration.k8s.io", "storageversionmigrations"): _migration,
    ("coordination.k8s.io", "leases"): _lease,
    ("coordination.k8s.io", "leasecandidates"): _lease_candidate,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): _flow_schema,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): _priority_level,
    ("node.k8s.io", "runtimeclasses"): _runtime_class,
    (RBAC, "clusterrolebindings"): _role_binding,
    (RBAC, "rolebindings"): _role_binding,
    ("resource.k8s.io", "deviceclasses"): _name_and_age,
    ("resource.k8s.io", "resourceclaims"): _resource_claim,
    ("resource.k8s.io", "resourceclaimtemplates"): _name_and_age,
    ("resource.k8s.io", "resourceslices"): _resource_slice,
    ("resource.k8s.io", "resourcepoolstatusrequests"): _resource_pool_status,
    ("scheduling.k8s.io", "priorityclasses"): _priority_class,
    ("scheduling.k8s.io", "compositepodgroups"): _composite_pod_group,
    ("scheduling.k8s.io", "podgroups"): _pod_group,
    ("scheduling.k8s.io", "workloads"): _name_and_age,
    ("lifecycle.k8s.io", "evictionrequests"): _eviction_request,
    ("lifecycle.k8s.io", "evictions"): _eviction,
}


# --- Volumes, claims, storage classes and CSI objects ----------------------------------------------------------------
# Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go), pkg/apis/core/helper.


_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class",
)  # fmt: skip
_DEFAULT_ATTRIBUTES: Final = "volumeattributesclass.alpha.kubernetes.io/is-default-class"
_MODES: Final = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip


def _annotations(obj: StoredObject) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def _access_modes(modes: Sequence[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _phase(obj: StoredObject) -> str:
    deleted = obj["metadata"].get("deletionTimestamp")
    return "Terminating" if deleted else obj.get("status", {}).get("phase", "")


def _storage_class_of(obj: StoredObject) -> str:
    return _annotations(obj).get(_CLASS_ANNOTATION, obj.get("spec", {}).get("storageClassName", ""))


def _volume(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    claim = spec.get("claimRef")
    return [
        name(obj), quantity(spec.get("capacity"), "storage"), _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""), _phase(obj),
        "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}",
        _storage_class_of(obj), spec.get("volumeAttributesClassName", UNSET),
        obj.get("status", {}).get("reason", ""), age(obj, ages), spec.get("volumeMode", UNSET),
    ]  # fmt: skip


def _claim(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    volume = spec.get("volumeName", "")
    capacity = modes = ""
    if volume:
        capacity = quantity(status.get("capacity"), "storage")
        modes = _access_modes(status.get("accessModes"))
    return [
        name(obj), _phase(obj), volume, capacity, modes, _storage_class_of(obj),
        spec.get("volumeAttributesClassName", UNSET), age(obj, ages), spec.get("volumeMode", UNSET),
    ]  # fmt: skip


def storage_class(obj: StoredObject, ages: Ages, default: str = "") -> list[Any]:
    """Returns the cells of a StorageClass; `default`: the name of the one that a list marks."""
    return [
        f"{default} (default)" if name(obj) == default else name(obj), obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False), age(obj, ages),
    ]  # fmt: skip


def _is_default(obj: StoredObject) -> bool:
    return any(_annotations(obj).get(key) == "true" for key in _DEFAULT_ANNOTATIONS)


def effective_default(objects: Sequence[StoredObject]) -> str:
    """Returns the name of the youngest default StorageClass, of two the first by name; "" if none is a default."""
    defaults = sorted(filter(_is_default, objects), key=name)
    return name(max(defaults, key=lambda obj: obj["metadata"].get("creationTimestamp") or "")) if defaults else ""


def storage_class_with_default(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns the cells of a StorageClass in 1.36 and before, which marks every default."""
    return storage_class(obj, ages, name(obj) if _is_default(obj) else "")


def attributes_class_with_default(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns the cells of a VolumeAttributesClass in 1.33, which marks a default."""
    own, *rest = _attributes_class(obj, ages)
    return [f"{own} (default)" if _annotations(obj).get(_DEFAULT_ATTRIBUTES) == "true" else own, *rest]


def _attributes_class(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), obj.get("driverName", ""), age(obj, ages)]


def _attachment(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    volume = spec.get("source", {}).get("persistentVolumeName", "")
    attached = obj.get("status", {}).get("attached", False)
    return [name(obj), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, age(obj, ages)]


def _csi_node(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), len(obj.get("spec", {}).get("drivers") or ()), age(obj, ages)]


def _csi_driver(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    requests = spec.get("tokenRequests")
    audiences = UNSET if requests is None else ",".join(request.get("audience", "") for request in requests)
    modes = ",".join(spec.get("volumeLifecycleModes") or ()) or NONE
    return [
        name(obj), spec.get("attachRequired", True), spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False), audiences, spec.get("requiresRepublish", False), modes,
        age(obj, ages),
    ]  # fmt: skip


STORAGE_CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "persistentvolumeclaims"): _claim,
    ("", "persistentvolumes"): _volume,
    ("storage.k8s.io", "csidrivers"): _csi_driver,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("storage.k8s.io", "storageclasses"): storage_class,
    ("storage.k8s.io", "volumeattachments"): _attachment,
    ("storage.k8s.io", "volumeattributesclasses"): _attributes_class,
}

"""Admission plugins for pods: service account, default tolerations, runtime class, topology labels, resize, priority, groups of
pods.

ServiceAccount sets the service account of pods, mounts its token, and adds its image pull secrets. If an account has the
annotation for enforcing mountable secrets, its pods may use only the secrets in its list. Priority resolves the class of a pod,
or of a group of pods, to a number. PodGroupWorkloadExists is a plugin of 1.36 alone.

Specified by: plugin/pkg/admission/{serviceaccount,defaulttolerationseconds,runtimeclass,podtopologylabels,podresize,priority},
plugin/pkg/admission/scheduling/podgroupprotection, plugin/pkg/admission/podgroup (1.36).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import status
from fakekube.apis.core.pods.defaults import sync_service_account
from fakekube.apis.core.pods.visitor import secret_names
from fakekube.apis.rest.strategy import WriteContext, unusable_name
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import semantic_deep_equal
from fakekube.apis.well_known import (
    DEFAULT_SERVICE_ACCOUNT_NAME,
    ENFORCE_MOUNTABLE_SECRETS_ANNOTATION,
    MIRROR_POD_ANNOTATION_KEY,
    POD_GROUP_PROTECTION_FINALIZER,
)
from fakekube.apiserver.admission.chain import CREATE, Attributes, Operation, Plugin, forbidden
from fakekube.base.chance import random_string
from fakekube.base.golang.strconv import TRUE_TEXTS, go_quote
from fakekube.base.objects import Object

PODS = ("", "pods")


class DefaultTolerationSeconds(Plugin):
    """Adds tolerations of five minutes for nodes that are not ready or unreachable, unless the pod has its own."""

    name = "DefaultTolerationSeconds"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({PODS})

    TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    SECONDS = 300

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object["spec"]
        held: Sequence[Mapping[str, Any]] = spec.get("tolerations") or ()
        covered = [held_one.get("key", "") for held_one in held if held_one.get("effect", "") in ("", "NoExecute")]
        missing = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": self.SECONDS}
            for key in self.TAINTS
            if key not in covered and "" not in covered
        ]
        if missing:
            spec["tolerations"] = [*held, *missing]


class RuntimeClass(Plugin):
    """Sets the overhead and the scheduling constraints of the pod's RuntimeClass."""

    name = "RuntimeClass"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({PODS})

    def admit(self, attributes: Attributes) -> None:
        runtime_class = self._find(attributes)
        if runtime_class is None:
            return
        assert attributes.object is not None
        spec = attributes.object["spec"]
        overhead, scheduling = runtime_class.get("overhead"), runtime_class.get("scheduling")
        if overhead is not None:
            self._check_overhead(attributes, overhead, bool(spec.get("overhead")))
            if overhead.get("podFixed"):
                spec["overhead"] = dict(overhead["podFixed"])
        if scheduling is not None:
            _set_scheduling(attributes, spec, scheduling)

    def validate(self, attributes: Attributes) -> None:
        runtime_class = self._find(attributes)
        overhead = runtime_class.get("overhead") if runtime_class else None
        if overhead is not None:
            self._check_overhead(attributes, overhead, True)
        elif attributes.object and attributes.object["spec"].get("overhead") is not None:
            text = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden(attributes, text)

    @staticmethod
    def _find(attributes: Attributes) -> Object | None:
        assert attributes.object is not None
        name = attributes.object["spec"].get("runtimeClassName")
        if name is None:
            return None
        problem = unusable_name(name)
        if problem:
            raise status.generic(500, "", problem)
        found = attributes.context.services.get("node.k8s.io", "runtimeclasses", "", name)
        if found is None:
            raise forbidden(attributes, f"pod rejected: RuntimeClass {go_quote(name)} not found")
        return found

    @staticmethod
    def _check_overhead(attributes: Attributes, overhead: Object, is_set: bool) -> None:
        assert attributes.object is not None
        if is_set and not semantic_deep_equal(overhead.get("podFixed"), attributes.object["spec"].get("overhead")):
            text = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise forbidden(attributes, text)


def _set_scheduling(attributes: Attributes, spec: Object, scheduling: Object) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            text = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            raise forbidden(attributes, text)
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    merged = _merged_tolerations([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
    if merged:
        spec["tolerations"] = merged


def _merged_tolerations(tolerations: Sequence[Object]) -> list[Object]:
    """Merges tolerations: those that another one covers are removed; of equal ones the first remains."""
    merged: list[Object] = []
    for index, item in enumerate(tolerations):
        if any(_includes(other, item) for other in merged):
            continue
        if any(item != other and _includes(other, item) for other in tolerations[index + 1 :]):
            continue
        merged.append(item)
    return merged


def _includes(wide: Object, narrow: Object) -> bool:
    if wide == narrow:
        return True
    operator = wide.get("operator", "")
    every_key = not wide.get("key") and operator == "Exists"
    if narrow.get("key", "") != wide.get("key", "") and not every_key:
        return False
    if narrow.get("effect", "") != wide.get("effect", "") and wide.get("effect"):
        return False
    seconds = wide.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and seconds is not None:
        asked = narrow.get("tolerationSeconds")
        if asked is None or asked > seconds:
            return False
    if operator in ("", "Equal"):
        return bool(narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", ""))
    return bool(operator == "Exists")


class PodTopologyLabels(Plugin):
    """Copies the topology labels of the node to pods that are created with or bound to it."""

    name = "PodTopologyLabels"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({PODS})
    subresources = frozenset({"", "binding"})

    LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")

    def admit(self, attributes: Attributes) -> None:
        if not features.CURRENT.get().enabled("PodTopologyLabelsAdmission"):
            return
        obj = attributes.object
        assert obj is not None
        node_name = self._get_target_node(obj) if attributes.subresource else obj["spec"].get("nodeName", "")
        node = attributes.context.services.get("", "nodes", "", node_name) if node_name else None
        held = (node or {}).get("metadata", {}).get("labels") or {}
        labels = {key: held[key] for key in self.LABELS if key in held}
        if labels:
            meta = obj.setdefault("metadata", {})
            meta["labels"] = {**(meta.get("labels") or {}), **labels}

    @staticmethod
    def _get_target_node(binding: Object) -> str:
        target = binding.get("target") or {}
        return str(target.get("name", "")) if target.get("kind") == "Node" else ""


class PodResizeValidator(Plugin):
    """Rejects resizes that exceed the capacity of the node, from 1.36 on."""

    name = "PodResizeValidator"
    operations = frozenset({Operation.UPDATE})
    resources = frozenset({PODS})
    subresources = frozenset({"resize"})

    def validate(self, attributes: Attributes) -> None:
        obj, old = attributes.object, attributes.old
        if obj is None or old is None or not obj["spec"].get("nodeName") or not from_minor(36):
            return
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        name = obj["spec"]["nodeName"]
        node = attributes.context.services.get("", "nodes", "", name)
        if node is None:
            raise forbidden(attributes, f"node {go_quote(name)} not found")
        system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
        if system != "linux":
            text = f"pod resize is only supported on linux nodes, node {go_quote(name)} is {go_quote(system)}"
            self._refuse(attributes, text, "UnsupportedPlatform")
        problems = _list_exceeded(obj, (node.get("status") or {}).get("allocatable") or {})
        if problems:
            text = f"node didn't have enough allocatable resources: {'; '.join(problems)}"
            self._refuse(attributes, text, "NodeCapacity")

    @staticmethod
    def _refuse(attributes: Attributes, problem: str, reason: str) -> None:
        error = forbidden(attributes, problem)
        error.details = {**(error.details or {}), "causes": [{"reason": reason}]}
        raise error


def _list_exceeded(pod: Object, allocatable: Mapping[str, str]) -> list[str]:
    from fakekube.apis.core.pods.resources import pod_requests

    requests, problems = pod_requests(pod), []
    for name in ("cpu", "memory"):
        asked, there = requests.get(name, quantity("0")), quantity(allocatable.get(name, "0"))
        if asked > there:
            numbers = [q.milli_value() if name == "cpu" else q.value() for q in (asked, there)]
            problems.append(f"{name}, requested: {numbers[0]}, allocatable: {numbers[1]}")
    return problems


#: Real seconds to wait for the default service account.
PATIENCE = 1.0

VOLUME_PREFIX = "kube-api-access-"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607
"""One hour and 7 seconds (WarnOnlyBoundTokenExpirationPeriod), which identifies injected tokens."""


class ServiceAccount(Plugin):
    """See the module."""

    name = "ServiceAccount"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({("", "pods")})
    subresources = frozenset({"", "ephemeralcontainers"})

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.object
        if pod is None or attributes.operation is not Operation.CREATE or attributes.subresource:
            return
        if not _is_mirror(pod):
            spec = pod["spec"]
            spec["serviceAccountName"] = spec.get("serviceAccountName") or DEFAULT_SERVICE_ACCOUNT_NAME
            sync_service_account(spec)
            account = _account(attributes, spec["serviceAccountName"])
            if _automounts(account, spec):
                _mount_token(spec)
            if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
                spec["imagePullSecrets"] = [dict(item) for item in account["imagePullSecrets"]]
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        pod = attributes.object
        if pod is None:
            return
        if attributes.operation is Operation.CREATE and _is_mirror(pod):
            _check_mirror(attributes, pod["spec"])
        elif attributes.operation is Operation.CREATE or attributes.subresource:
            _check_secrets(attributes, pod)


def _is_mirror(pod: Object) -> bool:
    return MIRROR_POD_ANNOTATION_KEY in (pod["metadata"].get("annotations") or {})


def _account(attributes: Attributes, name: str) -> Object:
    namespace = attributes.namespace
    services = attributes.context.services
    if name == DEFAULT_SERVICE_ACCOUNT_NAME:  # a new namespace gets it in a moment
        found = services.expect("", "serviceaccounts", namespace, name, PATIENCE)
    else:
        found = services.get("", "serviceaccounts", namespace, name)
    if found is None:
        problem = unusable_name(name) or f'serviceaccount "{name}" not found'
        raise forbidden(attributes, f"error looking up service account {namespace}/{name}: {problem}")
    return found


def _automounts(account: Object, spec: Object) -> bool:
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _mount_token(spec: Object) -> None:
    volumes: list[Object] = spec.get("volumes") or []
    held = next((item["name"] for item in volumes if item.get("name", "").startswith(VOLUME_PREFIX)), None)
    name = held or VOLUME_PREFIX + random_string(5)
    mounted = False
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            mounts = container.get("volumeMounts") or []
            if all(mount.get("mountPath") != MOUNT_PATH for mount in mounts):
                container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
                mounted = True
    if mounted and held is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_volume()}]


def _token_volume() -> Object:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
    }


# ---------------------------------------------------------------- secrets


def _check_mirror(attributes: Attributes, spec: Object) -> None:
    if spec.get("serviceAccountName"):
        raise forbidden(attributes, "a mirror pod may not reference service accounts")
    if next(secret_names(spec), None) is not None:
        raise forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _check_secrets(attributes: Attributes, pod: Object) -> None:
    spec, meta = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName", "")
    if not name:
        text = f"no service account specified for pod {attributes.namespace}/{meta.get('name', '')}"
        raise forbidden(attributes, text)
    account = _account(attributes, name)
    if (account["metadata"].get("annotations") or {}).get(ENFORCE_MOUNTABLE_SECRETS_ANNOTATION) not in TRUE_TEXTS:
        return
    of_ephemeral_containers = bool(attributes.subresource)
    problem = next(_unmountable(account, spec, of_ephemeral_containers), None)
    if problem is not None and of_ephemeral_containers:
        raise status.generic(500, "", problem)  # a mere error in the real server, too
    if problem is not None:
        raise forbidden(attributes, problem)


def _unmountable(account: Object, spec: Object, of_ephemeral_containers: bool) -> Iterator[str]:
    """Yields an error for each secret that the account does not list."""
    account_name = account["metadata"]["name"]
    refused = f"is not allowed because service account {account_name} does not reference that"
    secrets = {item.get("name", "") for item in account.get("secrets") or ()}
    if of_ephemeral_containers:
        yield from _of_containers(spec, (("ephemeralContainers", "ephemeral container"),), secrets, refused)
        return
    for volume in spec.get("volumes") or ():
        source = volume.get("secret")
        if source is not None and source.get("secretName", "") not in secrets:
            yield f'volume with secret.secretName="{source.get("secretName", "")}" {refused} secret'
    fields = (("initContainers", "init container"), ("containers", "container"))
    yield from _of_containers(spec, fields, secrets, refused)
    pull_secrets = {item.get("name", "") for item in account.get("imagePullSecrets") or ()}
    for index, item in enumerate(spec.get("imagePullSecrets") or ()):
        if item.get("name", "") not in pull_secrets:
            yield f'imagePullSecrets[{index}].name="{item.get("name", "")}" {refused} imagePullSecret'


def _of_containers(spec: Object, fields: Sequence[tuple[str, str]], secrets: set[str], refused: str) -> Iterator[str]:
    for field, what in fields:
        for container in spec.get(field) or ():
            for use, secret in _list_secrets(container):
                if secret not in secrets:
                    named = f"{what} {container.get('name', '')} with {use} referencing"
                    yield f'{named} secret.secretName="{secret}" {refused} secret'


def _list_secrets(container: Object) -> Iterator[tuple[str, str]]:
    """Yields the secrets that a container uses, and how."""
    for item in container.get("env") or ():
        reference = (item.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield f"envVar {item.get('name', '')}", reference.get("name", "")
    for item in container.get("envFrom") or ():
        if item.get("secretRef") is not None:
            yield "envFrom", item["secretRef"].get("name", "")


# --- Admission plugins of scheduling ----------------------------------------------------------------------------------


POD_GROUPS = ("scheduling.k8s.io", "podgroups")
PRIORITY_CLASSES = ("scheduling.k8s.io", "priorityclasses")

#: The groups of pods with a priority → what errors call them.
_GROUPS = {POD_GROUPS: "pod group", ("scheduling.k8s.io", "compositepodgroups"): "composite pod group"}
_SETS_PRIORITY_SINCE = 37


class Priority(Plugin):
    """Sets the priority of pods from their PriorityClass or the default one; allows one default PriorityClass
    only."""

    name = "Priority"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({PODS, PRIORITY_CLASSES, *_GROUPS})

    def admit(self, attributes: Attributes) -> None:
        resource = (attributes.resource.group, attributes.resource.plural)
        if resource in _GROUPS and attributes.operation is CREATE:
            _set_priority_of_group(attributes)
        if resource != PODS:
            return
        assert attributes.object is not None
        spec = attributes.object["spec"]
        if attributes.operation is CREATE:
            _set_priority_of_pod(attributes, spec)
        elif attributes.old is not None:
            for field in ("priority", "preemptionPolicy"):
                held = attributes.old["spec"].get(field)
                if spec.get(field) is None and held is not None:
                    spec[field] = held

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.object
        if obj is None or not obj.get("globalDefault") or attributes.resource.plural != PRIORITY_CLASSES[1]:
            return
        default = _default_priority_class(attributes.context)
        if default is None:
            return
        name = default["metadata"]["name"]
        if attributes.operation is CREATE or name != obj["metadata"].get("name"):
            text = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise forbidden(attributes, text)


def _set_priority_of_pod(attributes: Attributes, spec: Object) -> None:
    name, value, policy = _compute_priority(attributes, spec)
    if name:
        spec["priorityClassName"] = name
    asked = _set_or_find_other(spec, "priority", value)
    if asked is not None:
        text = (
            f"the integer value of priority ({asked}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(attributes, text)
    if policy is not None:
        _set_preemption_policy(attributes, spec, policy, "pod")


def _set_priority_of_group(attributes: Attributes) -> None:
    """Sets the priority of a group of pods (admitPodGroup, admitCompositePodGroup)."""
    emulation = features.current()
    if emulation.minor < _SETS_PRIORITY_SINCE and not emulation.enabled("WorkloadAwarePreemption"):
        return
    assert attributes.object is not None
    spec = attributes.object.setdefault("spec", {})
    called = _GROUPS[attributes.resource.group, attributes.resource.plural]
    name, value, policy = _compute_priority(attributes, spec)
    asked = _set_or_find_other(spec, "priority", value)
    if asked is not None:
        text = (
            f"priority set in the {called} ({asked}) must match the priority computed ({value}) "
            "based on the priority class set in the spec"
        )
        raise forbidden(attributes, text)
    if name:
        spec["priorityClassName"] = name
    if policy is not None and emulation.enabled("PodGroupPreemptionPolicy"):
        _set_preemption_policy(attributes, spec, policy, called)


def _compute_priority(attributes: Attributes, spec: Object) -> tuple[str, int, str | None]:
    """Returns the name, the value and the preemption policy of the PriorityClass that a spec names, or of the default one.

    Raises StatusError 403.
    """
    chosen = _priority_class(attributes, spec.get("priorityClassName", ""))
    if chosen is None:
        return "", 0, "PreemptLowerPriority"
    return (chosen["metadata"]["name"], chosen.get("value", 0), chosen.get("preemptionPolicy"))


def _set_or_find_other(spec: Object, field: str, value: Any) -> Any:
    """Sets a field that the client has not set to another value; returns that other value."""
    asked = spec.get(field)
    if asked is not None and asked != value:
        return asked
    spec[field] = value
    return None


def _set_preemption_policy(attributes: Attributes, spec: Object, policy: str, called: str) -> None:
    asked = _set_or_find_other(spec, "preemptionPolicy", policy)
    if asked is not None:
        text = (
            f"the string value of PreemptionPolicy ({asked}) must not be provided in {called} spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden(attributes, text)


def _priority_class(attributes: Attributes, name: str) -> Object | None:
    if not name:
        return _default_priority_class(attributes.context)
    found = attributes.context.services.get(*PRIORITY_CLASSES, "", name)
    if found is None:
        raise forbidden(attributes, f"no PriorityClass with name {name} was found")
    return found


def _default_priority_class(context: WriteContext) -> Object | None:
    """Returns the default PriorityClass; of several, the one with the lowest value."""
    if not context.configured.default_priority_class:
        return None
    classes = [item for item in context.services.list(*PRIORITY_CLASSES) if item.get("globalDefault")]
    return min(classes, key=lambda item: item.get("value", 0), default=None)


class PodGroupProtection(Plugin):
    """Adds the finalizer that keeps a group while it has pods."""

    name = "PodGroupProtection"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({POD_GROUPS})

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        metadata = attributes.object.setdefault("metadata", {})
        held = metadata.get("finalizers") or []
        if features.current().enabled("GenericWorkload") and POD_GROUP_PROTECTION_FINALIZER not in held:
            metadata["finalizers"] = [*held, POD_GROUP_PROTECTION_FINALIZER]


class PodGroupWorkloadExists(Plugin):
    """Rejects groups of a workload, or of a template in it, that does not exist; only the API of 1.36 names them so."""

    name = "PodGroupWorkloadExists"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({POD_GROUPS})

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        template = attributes.object.get("spec", {}).get("podGroupTemplateRef") or {}
        reference = template.get("workload")
        if reference is None:
            return
        name, wanted = reference.get("workloadName", ""), reference.get("podGroupTemplateName", "")
        workload = attributes.context.services.get("scheduling.k8s.io", "workloads", attributes.namespace, name)
        if workload is None:
            raise forbidden(attributes, f"PodGroup rejected: Workload {go_quote(name)} not found")
        if "deletionTimestamp" in workload["metadata"]:
            raise forbidden(attributes, f"PodGroup rejected: Workload {go_quote(name)} is being deleted")
        if all(one["name"] != wanted for one in workload["spec"].get("podGroupTemplates") or ()):
            text = f"PodGroup rejected: PodGroupTemplate {go_quote(wanted)} not found in Workload {go_quote(name)}"
            raise forbidden(attributes, text)

"""Admission plugins of pods and groups of pods: default tolerations, runtime class, topology labels, resize, protection.

ServiceAccount, Priority and PodSecurity have modules of their own. PodGroupWorkloadExists and JobValidation are plugins of 1.36
alone.

Specified by: plugin/pkg/admission/{defaulttolerationseconds,runtimeclass,podtopologylabels,podresize},
plugin/pkg/admission/scheduling/podgroupprotection, plugin/pkg/admission/{podgroup,job} (1.36).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.selectors.nodes import merge_tolerations
from fakekube.apis.rest.strategy import unusable_name
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import semantic_deep_equal
from fakekube.apis.well_known import (
    LABEL_OS_STABLE,
    POD_GROUP_PROTECTION_FINALIZER,
    TAINT_EFFECT_NO_EXECUTE,
    TAINT_NODE_NOT_READY,
    TAINT_NODE_UNREACHABLE,
)
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

PODS = ("", "pods")


class DefaultTolerationSeconds(Plugin):
    """Adds tolerations of five minutes for nodes that are not ready or unreachable, unless the pod has its own."""

    name = "DefaultTolerationSeconds"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({PODS})

    TAINTS = (TAINT_NODE_NOT_READY, TAINT_NODE_UNREACHABLE)
    SECONDS = 300

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object["spec"]
        held: Sequence[Mapping[str, Any]] = spec.get("tolerations") or ()
        covered = [held_one.get("key", "") for held_one in held if held_one.get("effect", "") in ("", TAINT_EFFECT_NO_EXECUTE)]
        missing = [
            {"key": key, "operator": "Exists", "effect": TAINT_EFFECT_NO_EXECUTE, "tolerationSeconds": self.SECONDS}
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
    merged = merge_tolerations([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
    if merged:
        spec["tolerations"] = merged


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
        system = (node["metadata"].get("labels") or {}).get(LABEL_OS_STABLE, "linux")
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


POD_GROUPS = ("scheduling.k8s.io", "podgroups")
_VALIDATES_JOBS = 36


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


class JobValidation(Plugin):
    """Rejects another parallelism of a job whose pods are scheduled as a gang; a plugin of 1.36 alone."""

    name = "JobValidation"
    operations = frozenset({Operation.UPDATE})
    resources = frozenset({("batch", "jobs")})

    def validate(self, attributes: Attributes) -> None:
        job, old = attributes.object, attributes.old
        assert job is not None
        assert old is not None
        emulation = features.current()
        if emulation.minor != _VALIDATES_JOBS or not emulation.enabled("GenericWorkload"):
            return
        if job["spec"].get("parallelism") == old["spec"].get("parallelism"):
            return
        for group in attributes.context.services.list(*POD_GROUPS, attributes.namespace):
            if "gang" in group["spec"]["schedulingPolicy"] and _is_group_of(group["metadata"], old):
                name = go_quote(group["metadata"]["name"])
                raise forbidden(attributes, f"cannot change parallelism for a Job referencing gang-scheduled PodGroup {name}")


def _is_group_of(metadata: Object, job: Object) -> bool:
    """Reports whether the template of a job names the group, or where it names none, whether the job controls the group."""
    named = (job["spec"]["template"]["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if named is not None:
        return bool(metadata["name"] == named)
    owners = metadata.get("ownerReferences") or ()
    return any(owner.get("controller") and owner["uid"] == job["metadata"]["uid"] for owner in owners)


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

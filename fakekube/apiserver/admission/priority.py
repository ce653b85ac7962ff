"""The admission plugin Priority: resolves the PriorityClass of a pod, or of a group of pods, to a number.

Specified by: plugin/pkg/admission/priority.
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery import features
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apiserver.admission.chain import CREATE, Attributes, Operation, Plugin, forbidden
from fakekube.apiserver.admission.pods import POD_GROUPS, PODS
from fakekube.base.objects import Object

_PRIORITY_CLASSES = ("scheduling.k8s.io", "priorityclasses")

#: The groups of pods with a priority → what errors call them.
_GROUPS = {POD_GROUPS: "pod group", ("scheduling.k8s.io", "compositepodgroups"): "composite pod group"}
_SETS_PRIORITY_SINCE = 37


class Priority(Plugin):
    """Sets the priority of pods from their PriorityClass or the default one; allows only one default PriorityClass."""

    name = "Priority"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({PODS, _PRIORITY_CLASSES, *_GROUPS})

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
        if obj is None or not obj.get("globalDefault") or attributes.resource.plural != _PRIORITY_CLASSES[1]:
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
    found = attributes.context.services.get(*_PRIORITY_CLASSES, "", name)
    if found is None:
        raise forbidden(attributes, f"no PriorityClass with name {name} was found")
    return found


def _default_priority_class(context: WriteContext) -> Object | None:
    """Returns the default PriorityClass; of several, the one with the lowest value."""
    if not context.configured.default_priority_class:
        return None
    classes = [item for item in context.services.list(*_PRIORITY_CLASSES) if item.get("globalDefault")]
    return min(classes, key=lambda item: item.get("value", 0), default=None)

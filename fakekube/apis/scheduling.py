"""The kinds of scheduling.k8s.io: priorityclasses, workloads, and the groups of pods that belong to them.

The templates of composite groups, and these groups, are not validated.

Specified by: pkg/registry/scheduling/{priorityclass,podgroup,workload}; pkg/apis/scheduling (validation, also the one of
1.35, v1/helpers.go, v1alpha2/zz_generated.{defaults,validations}.go of 1.36, v1beta1/zz_generated.{defaults,validations}.go of
1.37).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors.field import IMMUTABLE, duplicate, forbidden, invalid, not_supported, required, too_many
from fakekube.apis.rest.strategy import ConditionalStatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import NOT_A_CLAIM, POSITIVE, conditions, invalid_each, many_set, one_member
from fakekube.apis.validation.rules import (
    Change,
    Check,
    Rule,
    at_least,
    at_most,
    changes,
    from_minor,
    immutable,
    kept,
    needed,
    one_of,
    optional,
    rules,
    then,
)
from fakekube.apis.validation.to_internal import semantic_deep_equal, to_internal
from fakekube.base.objects import Object, Part

_MAX_USER_PRIORITY = 1_000_000_000
_CRITICAL = 2 * _MAX_USER_PRIORITY

#: The system classes, and their values.
_SYSTEM_CLASSES = {"system-node-critical": _CRITICAL + 1000, "system-cluster-critical": _CRITICAL}
_SYSTEM_PREFIX = "system-"

PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


_PRIORITY_CLASS = rules(
    "PriorityClass",
    "ValidatePriorityClass",
    Rule("preemptionPolicy", optional(one_of(*PREEMPTION_POLICIES, needs="", ordered=True))),
)
_PRIORITY_CLASS_CHANGES = changes(
    "PriorityClass",
    "ValidatePriorityClassUpdate",
    Change("value", kept("may not be changed in an update.")),
    Change("preemptionPolicy", immutable()),
)


class PriorityClassStrategy(Strategy):
    """The strategy of priorityclasses."""

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["metadata"]["generation"] = 1  # constant, as updates do not change it

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _validate_value(obj["metadata"].get("name", ""), obj.get("value", 0), bool(obj.get("globalDefault")))
        return errors + _PRIORITY_CLASS.validate(obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _PRIORITY_CLASS_CHANGES.validate(obj, old)

    def refused_deletion(self, context: WriteContext, name: str) -> StatusError | None:
        if name not in _SYSTEM_CLASSES:
            return None
        text = "this is a system priority class and cannot be deleted"
        return status.forbidden("scheduling.k8s.io", "priorityclasses", name, text)


def _validate_value(name: str, value: int, is_default: bool) -> list[FieldError]:
    """Validates that users set no values or names that are reserved for the system."""
    if not name.startswith(_SYSTEM_PREFIX):
        if value <= _MAX_USER_PRIORITY:
            return []
        text = f"maximum allowed value of a user defined priority is {_MAX_USER_PRIORITY}"
        return [forbidden("value", text)]
    problem = _is_known_system_priority_class(name, value, is_default)
    if not problem:
        return []
    text = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
    return [forbidden("metadata.name", text)]


def _is_known_system_priority_class(name: str, value: int, is_default: bool) -> str:
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


# --- Workloads, and the groups of pods that belong to them -----------------------------------------------------------


FieldCheck = Callable[[Any, Any, str], list[FieldError]]
"""Of the new value, the old one (None: there was none), and the path."""

_MAX_CLAIMS = 4
_MAX_TEMPLATES = 8
MODES = ("Pod", "PodGroup")
_DEFAULTS_MODES = 36
_COUNT = then(needed(), at_least(1))


class PodGroupStrategy(Strategy):
    """The strategy of podgroups."""

    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if features.current().enabled("PodGroupPreemptionPolicy"):
            spec.setdefault("preemptionPolicy", PREEMPTION_POLICIES[0])
        spec.setdefault("disruptionMode", {"single": {}})

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        if features.current().minor == _DEFAULTS_MODES:  # reading the object defaults the mode that the gate drops
            obj["spec"].setdefault("disruptionMode", MODES[0])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_group(obj["spec"], None, "spec")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_group(obj["spec"], old["spec"], "spec")


class AlphaPodGroupStrategy(PodGroupStrategy):
    """The strategy of podgroups in 1.36."""

    unconditional_update = True

    def default(self, obj: Object) -> None:
        """Does nothing: the one default is a constant."""


def _validate_group_status(obj: Object, old: Object) -> list[FieldError]:
    """Validates the status of a group (ValidatePodGroupStatusUpdate)."""
    found: Part = obj.get("status") or {}
    claims = {one.get("name", "") for one in obj["spec"].get("resourceClaims") or ()}
    return conditions(found.get("conditions") or (), "status.conditions") + [
        invalid(f"status.resourceClaimStatuses[{index}].name", one.get("name", ""), NOT_A_CLAIM)
        for index, one in enumerate(found.get("resourceClaimStatuses") or ())
        if one.get("name", "") not in claims
    ]


POD_GROUP_STATUS = ConditionalStatusStrategy(_validate_group_status)


class WorkloadStrategy(Strategy):
    """The strategy of workloads."""

    unconditional_update = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_workload(obj["spec"], None, "spec")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_workload(obj["spec"], old["spec"], "spec")


class AlphaWorkloadStrategy(WorkloadStrategy):
    """The strategy of workloads in 1.36."""

    unconditional_update = True


class FirstWorkloadStrategy(Strategy):
    """The strategy of workloads in 1.35, whose groups are in them."""

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_first_workload(obj["spec"])

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = _validate_first_workload(obj["spec"])
        if old["spec"].get("controllerRef") is not None:
            errors += _FIRST_CONTROLLER.validate(obj["spec"], old["spec"])
        return errors + _FIRST_GROUPS.validate(obj["spec"], old["spec"])


def _internal_groups(groups: Sequence[Part] | None) -> list[Part] | None:
    """Returns the groups of a workload of 1.35 as the internal type holds them."""
    if groups is None:
        return None
    policies = [(one.get("name", ""), one.get("policy") or {}) for one in groups]
    return [{"Name": name, "Policy": {"Basic": policy.get("basic"), "Gang": _internal_gang(policy)}} for name, policy in policies]


def _internal_gang(policy: Part) -> Part | None:
    gang = policy.get("gang")
    return None if gang is None else {"MinCount": gang.get("minCount", 0)}


#: The paths do not start with the spec.
_FIRST_CONTROLLER = changes(
    "WorkloadSpec",
    "validateWorkloadSpecUpdate",
    Change("controllerRef", immutable(lambda value: value and to_internal("TypedLocalObjectReference", value))),
)
_FIRST_GROUPS = changes("WorkloadSpec", "validateWorkloadSpecUpdate", Change("podGroups", immutable(_internal_groups)))


def _validate_first_workload(spec: Part) -> list[FieldError]:
    """Validates the spec of a workload of 1.35 (validateWorkloadSpec)."""
    errors = _CONTROLLER(spec["controllerRef"], None, "spec.controllerRef") if spec.get("controllerRef") is not None else []
    groups: Sequence[Part] = spec.get("podGroups") or ()
    if not groups:
        return [*errors, required("spec.podGroups", "must have at least one item")]
    if len(groups) > _MAX_TEMPLATES:
        return [*errors, too_many("spec.podGroups", len(groups), _MAX_TEMPLATES)]
    held: set[str] = set()
    for index, group in enumerate(groups):
        path, name = f"spec.podGroups[{index}]", group.get("name", "")
        errors += invalid_each(f"{path}.name", name, names.dns_label(name))
        if name in held:
            errors.append(duplicate(f"{path}.name", name))
        held.add(name)
        errors += _validate_first_policy(group.get("policy") or {}, f"{path}.policy")
    return errors


def _validate_first_policy(policy: Part, path: str) -> list[FieldError]:
    """Validates the policy of a group of 1.35 (validatePodGroupPolicy)."""
    chosen = [name for name in ("basic", "gang") if policy.get(name) is not None]
    text = "exactly one of `basic`, `gang` is required"
    if not chosen:
        return [required(path, text)]
    if len(chosen) > 1:
        return [invalid(path, "{`basic`, `gang`}", many_set(text))]
    if chosen == ["basic"]:
        return []
    count = policy["gang"].get("minCount", 0)
    return [] if count > 0 else [invalid(f"{path}.gang.minCount", count, POSITIVE)]


def _validate_group(spec: Part, old: Part | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if "parentCompositePodGroupName" in spec and "workloadRef" not in spec:
        errors.append(required(f"{path}.workloadRef", "must be set when parentCompositePodGroupName is set"))
    return errors + _validate_fields(spec, old, path, {**_OF_GROUP, **_COMMON})


def _validate_workload(spec: Part, old: Part | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    templates: Sequence[Part] = spec.get("podGroupTemplates") or ()
    if from_minor(37):
        if any(_priority(one) != _priority(templates[0]) for one in templates):
            errors.append(invalid(path, None, "detected multiple priority configurations"))
        if old is None or not semantic_deep_equal(spec, old):
            errors += _union("podGroupTemplates", "compositePodGroupTemplates")(spec, old, path)
    errors += _validate_fields(spec, old, path, {"controllerRef": _CONTROLLER})
    return errors + _validate_templates(
        templates, None if old is None else old.get("podGroupTemplates") or (), f"{path}.podGroupTemplates"
    )


def _priority(template: Part) -> tuple[str, int | None]:
    return template.get("priorityClassName") or "", template.get("priority")


def _validate_templates(templates: Sequence[Part], old: Sequence[Part] | None, path: str) -> list[FieldError]:
    if old is not None and semantic_deep_equal(templates, old):
        return []
    if old is not None and not from_minor(37):
        return [invalid(path, None, IMMUTABLE)]
    if len(templates) > _MAX_TEMPLATES:
        return [too_many(path, len(templates), _MAX_TEMPLATES)]
    if not templates and not from_minor(37):
        return [required(path)]
    before = None if old is None else {one.get("name", ""): one for one in old}
    if before is not None:
        held = {one.get("name", "") for one in templates}
        moved = [
            forbidden(f"{path}[{index}]", "item may not be added")
            for index, one in enumerate(templates)
            if one.get("name", "") not in before
        ]
        moved += [forbidden(path, "item may not be removed") for name in before if name not in held]
        if moved:
            return moved
    errors = _forbid_repeated_names(templates, path, {"name": "", "schedulingPolicy": {}, "schedulingConstraints": None})
    for index, one in enumerate(templates):
        was = None if before is None else before[one.get("name", "")]
        if was is None or not semantic_deep_equal(one, was):
            errors += _validate_fields(one, was, f"{path}[{index}]", {"name": _SHORT_NAME, **_COMMON}, musts=("name",))
    return errors


def _validate_fields(
    value: Part, old: Part | None, path: str, table: Mapping[str, FieldCheck], *, musts: Sequence[str] = ()
) -> list[FieldError]:
    """Validates the fields of a struct; on an update only those that have changed, and most cannot change."""
    errors: list[FieldError] = []
    for name, check in table.items():
        new, was, where = value.get(name), (old or {}).get(name), f"{path}.{name}"
        if old is not None:
            if _is_same(new, was):
                continue
            if name != "schedulingPolicy" or not from_minor(37):
                errors.append(invalid(where, None, IMMUTABLE))
                continue
        if name in musts and not new:
            errors.append(required(where))
        elif new is not None or name == "schedulingPolicy":
            errors += check(new, was, where)
    return errors


def _is_same(new: Any, old: Any) -> bool:
    """Compares values; an empty struct is not an absent one, unlike an empty list."""
    return bool(new == old) if isinstance(new, Mapping) or isinstance(old, Mapping) else semantic_deep_equal(new, old)


def _union(*members: str) -> FieldCheck:
    """Exactly one of the members is set."""

    def run(value: Any, _old: Any, path: str) -> list[FieldError]:
        return one_member((member for member in members if (value or {}).get(member) not in (None, [])), members, path)

    return run


def _name(check: Callable[[str], Sequence[str]]) -> FieldCheck:
    return lambda value, _old, path: invalid_each(path, value, check(value)) if value else []


_SHORT_NAME = _name(lambda value: names.count_in_bytes(names.dns_label(value)))
_LONG_NAME = _name(names.dns_subdomain)
_SEGMENT = _name(names.path_segment)


def _validate_scheduling_policy(value: Part | None, old: Part | None, path: str) -> list[FieldError]:
    policy, was = value or {}, old or {}
    errors = _union("basic", "gang")(policy, None, path)
    if old is not None and not _is_same(policy.get("basic"), was.get("basic")):
        errors.append(invalid(f"{path}.basic", None, IMMUTABLE))
    gang = policy.get("gang")
    if old is not None and (gang is None) != (was.get("gang") is None):
        text = f"field cannot be {'cleared once set' if gang is None else 'set once created'}"
        errors.append(invalid(f"{path}.gang", None, text))
    elif gang is not None:
        errors += _COUNT.run(gang.get("minCount"), f"{path}.gang.minCount")
    return errors


def _validate_scheduling_constraints(value: Part, _old: Any, path: str) -> list[FieldError]:
    topology = value.get("topology") or ()
    if len(topology) > 1:
        return [too_many(f"{path}.topology", len(topology), 1)]
    errors: list[FieldError] = []
    for index, one in enumerate(topology):
        where, key = f"{path}.topology[{index}].key", one.get("key")
        errors += invalid_each(where, key, names.label_key(key)) if key else [required(where)]
    return errors


def _validate_claims(claims: Sequence[Part], _old: Any, path: str) -> list[FieldError]:
    if len(claims) > _MAX_CLAIMS:
        return [too_many(path, len(claims), _MAX_CLAIMS)]
    errors = _forbid_repeated_names(claims, path, {"name": ""})
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        errors += _union(*sources)(claim, None, where)
        fields = {"name": _SHORT_NAME, **dict.fromkeys(sources, _LONG_NAME)}
        errors += _validate_fields(claim, None, where, fields, musts=("name",))
    return errors


def _forbid_repeated_names(items: Sequence[Part], path: str, empty: Part) -> list[FieldError]:
    """Finds the items with the name of an earlier one; the error shows them with the fields that Go does not omit."""
    held: set[str] = set()
    errors = []
    for index, item in enumerate(items):
        if item.get("name", "") in held:
            errors.append(duplicate(f"{path}[{index}]", {**empty, **item}))
        held.add(item.get("name", ""))
    return errors


def _validate_mode(value: Any, _old: Any, path: str) -> list[FieldError]:
    if isinstance(value, Mapping):
        return _union("single", "all")(value, None, path)
    return [] if value in MODES else [not_supported(path, value, MODES)]


def _row(check: Check) -> FieldCheck:
    return lambda value, _old, path: check.run(value, path)


def _validate_template_reference(value: Part, _old: Any, path: str) -> list[FieldError]:
    errors = _union("workload")(value, None, path)
    fields: Mapping[str, FieldCheck] = {"workloadName": _LONG_NAME, "podGroupTemplateName": _SHORT_NAME}
    return errors + (_struct(fields, musts=tuple(fields))(value["workload"], None, f"{path}.workload") if not errors else [])


def _struct(table: Mapping[str, FieldCheck], *, musts: Sequence[str] = ()) -> FieldCheck:
    return lambda value, _old, path: _validate_fields(value, None, path, table, musts=musts)


_CONTROLLER = _struct({"apiGroup": _LONG_NAME, "kind": _SEGMENT, "name": _SEGMENT}, musts=("kind", "name"))

#: Of a group.
_OF_GROUP: Mapping[str, FieldCheck] = {
    "parentCompositePodGroupName": _LONG_NAME,
    "workloadRef": _struct({"workloadName": _LONG_NAME, "templateName": _SHORT_NAME}, musts=("workloadName", "templateName")),
    "podGroupTemplateRef": _validate_template_reference,
}
#: Of a group and of a template.
_COMMON: Mapping[str, FieldCheck] = {
    "schedulingPolicy": _validate_scheduling_policy,
    "schedulingConstraints": _validate_scheduling_constraints,
    "resourceClaims": _validate_claims,
    "disruptionMode": _validate_mode,
    "priorityClassName": _LONG_NAME,
    "priority": _row(at_most(_MAX_USER_PRIORITY)),
    "preemptionPolicy": _row(one_of(*PREEMPTION_POLICIES)),
}

"""Workloads, and the groups of pods, and of such groups, that are made of their templates.

A declared rule is validated on an update only where its field has changed, and most fields cannot change.

Specified by: pkg/registry/scheduling/{podgroup,compositepodgroup,workload}; pkg/apis/scheduling (validation,
v1alpha2/zz_generated.{defaults,validations}.go of 1.36, {v1alpha3,v1beta1}/zz_generated.{defaults,validations}.go of 1.37).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, duplicate, forbidden, invalid, not_supported, required, too_many
from fakekube.apis.rest.strategy import ConditionalStatusStrategy, Strategy, WriteContext
from fakekube.apis.scheduling.priorityclasses import HIGHEST_USER_DEFINABLE_PRIORITY, PREEMPTION_POLICIES
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import NOT_A_CLAIM, conditions, invalid_each, one_member, repeated_indices
from fakekube.apis.validation.rules import Check, at_least, at_most, from_minor, needed, one_of, then
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.objects import Object, Part

FieldCheck = Callable[[Any, Any, str], list[FieldError]]
"""Of the new value, the old one (None: there was none), and the path."""

_MAX_CLAIMS = 4
_MAX_DEPTH = 4
MAX_TEMPLATES = 8
MODES = ("Pod", "PodGroup")
_DEFAULTS_MODES = 36
_ABSENT: tuple[Any, ...] = (None, "", [], ())
_COUNT = then(needed(), at_least(1))


class PodGroupStrategy(Strategy):
    """The strategy of podgroups."""

    has_status = True
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

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        """Returns nothing: only the storage of the status says what it resets."""
        return ()


def _validate_group_status(obj: Object, old: Object) -> list[FieldError]:
    """Validates the status of a group (ValidatePodGroupStatusUpdate)."""
    found, where = obj.get("status") or {}, "status.resourceClaimStatuses"
    statuses: Sequence[Part] = found.get("resourceClaimStatuses") or ()
    claims = {one.get("name", "") for one in obj["spec"].get("resourceClaims") or ()}
    errors = conditions(found.get("conditions") or (), "status.conditions")
    for index, one in enumerate(statuses):
        if one.get("name", "") not in claims:
            errors.append(invalid(f"{where}[{index}].name", one.get("name", ""), NOT_A_CLAIM))
    return errors + _validate_claim_statuses(statuses, where)


def _validate_claim_statuses(statuses: Sequence[Part], path: str) -> list[FieldError]:
    """Validates what is declared of the statuses of claims."""
    if too_long := _limit_claims(statuses, path):
        return too_long
    errors = _forbid_repeated_names(statuses, path, lambda one: {"name": "", **one})
    for index, one in enumerate(statuses):
        errors += validate_fields(one, None, f"{path}[{index}]", {"resourceClaimName": _POINTER_TO_LONG_NAME})
    return errors


POD_GROUP_STATUS = ConditionalStatusStrategy(_validate_group_status)


class CompositePodGroupStrategy(PodGroupStrategy):
    """The strategy of compositepodgroups."""

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return validate_fields(obj["spec"], None, "spec", _OF_COMPOSITE, musts=("workloadRef",))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return validate_fields(obj["spec"], old["spec"], "spec", _OF_COMPOSITE, musts=("workloadRef",))


def _validate_composite_status(obj: Object, old: Object) -> list[FieldError]:
    """Validates the status of a composite group (ValidateCompositePodGroupStatusUpdate)."""
    return conditions((obj.get("status") or {}).get("conditions") or (), "status.conditions")


COMPOSITE_POD_GROUP_STATUS = ConditionalStatusStrategy(_validate_composite_status)


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


def _validate_group(spec: Part, old: Part | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if old is None and "parentCompositePodGroupName" in spec and "workloadRef" not in spec:
        errors.append(required(f"{path}.workloadRef", "must be set when parentCompositePodGroupName is set"))
    return errors + validate_fields(spec, old, path, {**_OF_GROUP, **_COMMON}, mutable=_mutable())


def _mutable() -> Collection[str]:
    """Returns the fields of a group, or of a template, that may change."""
    return ("schedulingPolicy",) if from_minor(37) else ()


def _validate_workload(spec: Part, old: Part | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if from_minor(37):
        errors += _validate_workload_spec(spec, path)
        if old is None or spec != old:
            errors += union(*_TEMPLATES)(spec, old, path)
    errors += validate_fields(spec, old, path, {"controllerRef": VALIDATE_CONTROLLER})
    return errors + _validate_lists(spec, old, path, tuple(_TEMPLATES) if from_minor(37) else ("podGroupTemplates",))


def _validate_workload_spec(spec: Part, path: str) -> list[FieldError]:
    """Validates what templates have to do with one another (ValidateWorkloadSpec)."""
    composites: Sequence[Part] = spec.get("compositePodGroupTemplates") or ()
    errors = _validate_names(composites, path, {one.get("name", "") for one in spec.get("podGroupTemplates") or ()})
    for index, one in enumerate(composites):
        if not _fits(one, 1):
            children = [to_internal("CompositePodGroupTemplate", child) for child in one.get("compositePodGroupTemplates") or ()]
            text = f"maximum template hierarchy depth is {_MAX_DEPTH}"
            errors.append(invalid(f"{path}.compositePodGroupTemplates[{index}]", children, text))
    return errors + _validate_priorities(spec, path) + _validate_children(composites, path)


def _validate_names(composites: Sequence[Part], path: str, held: set[str]) -> list[FieldError]:
    """Finds names that another list has; a list itself is validated as declared (validateCompositePodGroupTemplateListNames)."""
    errors = _find_held(composites, f"{path}.compositePodGroupTemplates", held)
    for index, one in enumerate(composites):
        where = f"{path}.compositePodGroupTemplates[{index}]"
        errors += _find_held(one.get("podGroupTemplates") or (), f"{where}.podGroupTemplates", held)
        errors += _validate_names(one.get("compositePodGroupTemplates") or (), where, held)
    return errors


def _find_held(templates: Sequence[Part], path: str, held: set[str]) -> list[FieldError]:
    """Finds the templates of a list whose names are held, then holds its names."""
    given = [one.get("name", "") for one in templates]
    errors = [duplicate(f"{path}[{index}].name", name) for index, name in enumerate(given) if name in held]
    held.update(given)
    return errors


def _fits(composite: Part, depth: int) -> bool:
    children: Sequence[Part] = composite.get("compositePodGroupTemplates") or ()
    return depth < _MAX_DEPTH and all(_fits(child, depth + 1) for child in children)


def _validate_priorities(spec: Part, path: str) -> list[FieldError]:
    """Validates that all templates have the same priority (validateWorkloadPriority)."""
    priorities = {_priority(one) for one in spec.get("podGroupTemplates") or ()}
    if len(priorities) > 1:
        return [invalid(path, None, "detected multiple priority configurations")]
    priorities.update(map(_priority, _list_templates(spec.get("compositePodGroupTemplates") or ())))
    text = "all priority and priorityClassName values must be identical, detected multiple values"
    return [invalid(path, None, text)] if len(priorities) > 1 else []


def _list_templates(composites: Sequence[Part]) -> Iterator[Part]:
    """Yields composite templates, and all templates in them."""
    for one in composites:
        yield one
        yield from _list_templates(one.get("compositePodGroupTemplates") or ())
        yield from one.get("podGroupTemplates") or ()


def _priority(template: Part) -> tuple[str, int | None]:
    return template.get("priorityClassName") or "", template.get("priority")


def _validate_children(composites: Sequence[Part], path: str) -> list[FieldError]:
    """Validates that composite templates have templates (validateCompositePodGroupTemplateHasAtLeastOneChild)."""
    errors: list[FieldError] = []
    for index, one in enumerate(composites):
        where = f"{path}.compositePodGroupTemplates[{index}]"
        if not any(one.get(field) for field in _TEMPLATES):
            text = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
            errors.append(invalid(where, one.get("name", ""), text))
        errors += _validate_children(one.get("compositePodGroupTemplates") or (), where)
    return errors


def _validate_lists(value: Part, old: Part | None, path: str, fields: Sequence[str]) -> list[FieldError]:
    """Validates the lists of templates of a workload, or of a composite template."""
    errors: list[FieldError] = []
    for field in fields:
        before = None if old is None else old.get(field) or ()
        errors += _validate_templates(field, value.get(field) or (), before, f"{path}.{field}")
    return errors


def _validate_templates(field: str, templates: Sequence[Part], old: Sequence[Part] | None, path: str) -> list[FieldError]:
    if old is not None and _is_same(templates, old):
        return []
    if old is not None and not from_minor(37):
        return [invalid(path, None, IMMUTABLE)]
    errors = [too_many(path, len(templates), MAX_TEMPLATES)] if len(templates) > MAX_TEMPLATES else []
    if not templates and not from_minor(37):
        errors.append(required(path))
    before = None if old is None else {one.get("name", ""): one for one in old}
    if before is not None:
        held = {one.get("name", "") for one in templates}
        errors += [
            forbidden(f"{path}[{index}]", "item may not be added")
            for index, one in enumerate(templates)
            if one.get("name", "") not in before
        ]
        errors += [forbidden(path, "item may not be removed") for name in before if name not in held]
    if errors:
        return errors
    errors = _forbid_repeated_names(templates, path, lambda one: _show_template(field, one))
    for index, one in enumerate(templates):
        was = None if before is None else before[one.get("name", "")]
        if was is None or one != was:
            errors += _validate_template(field, one, was, f"{path}[{index}]")
    return errors


def _validate_template(field: str, template: Part, old: Part | None, path: str) -> list[FieldError]:
    fields = {"name": _SHORT_NAME, **_TEMPLATES[field]}
    errors = validate_fields(template, old, path, fields, musts=("name",), mutable=_mutable())
    return errors + (_validate_lists(template, old, path, tuple(_TEMPLATES)) if field == "compositePodGroupTemplates" else [])


def _show_template(field: str, template: Part) -> Part:
    """Returns a template with the fields that Go does not omit."""
    if field == "podGroupTemplates":
        return {"name": "", "schedulingPolicy": {}, "schedulingConstraints": None, **template}
    lists = {name: [_show_template(name, one) for one in template[name]] for name in _TEMPLATES if name in template}
    return {"name": "", "schedulingPolicy": {}, **template, **lists}


def validate_fields(
    value: Part,
    old: Part | None,
    path: str,
    table: Mapping[str, FieldCheck],
    *,
    musts: Collection[str] = (),
    mutable: Collection[str] = (),
) -> list[FieldError]:
    """Validates the fields of a struct.

    Args:
        value: the struct.
        old: the one that is stored; None on create.
        path: of the struct.
        table: the checks of its fields.
        musts: the fields that must be set.
        mutable: the fields that may change.
    """
    errors: list[FieldError] = []
    for name, check in table.items():
        new, was, where = value.get(name), (old or {}).get(name), f"{path}.{name}"
        if old is not None and (new == was if check is _POINTER_TO_LONG_NAME else _is_same(new, was)):
            continue
        fixed = old is not None and name not in mutable
        if fixed:
            errors.append(invalid(where, None, IMMUTABLE))
            errors += _limit_claims(new or (), where) if name == "resourceClaims" else []  # the one list with a limit
        if name in musts and not new:
            errors.append(required(where))
        elif not fixed and (new is not None or name == "schedulingPolicy"):
            errors += check(new, was, where)
    return errors


def _is_same(new: Any, old: Any) -> bool:
    """Compares values; an empty list or text is an absent one, an empty struct is not."""
    if isinstance(new, dict) and isinstance(old, dict):
        return all(_is_same(new.get(name), old.get(name)) for name in {**new, **old})
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return all(map(_is_same, new, old))
    return bool(new == old) or (new in _ABSENT and old in _ABSENT)


def union(*members: str) -> FieldCheck:
    """Exactly one of the members is set."""

    def run(value: Any, _old: Any, path: str) -> list[FieldError]:
        return one_member((member for member in members if (value or {}).get(member) not in (None, [])), members, path)

    return run


def validate_presence(value: Any, old: Any, path: str) -> list[FieldError]:
    """Validates that an update neither sets nor clears a field (validate.NoSet, validate.NoUnset)."""
    if (value is None) == (old is None):
        return []
    return [invalid(path, None, f"field cannot be {'cleared once set' if value is None else 'set once created'}")]


def _name(check: Callable[[str], Sequence[str]], *, pointer: bool = False) -> FieldCheck:
    """A name of a form; an empty one counts as absent, unless Go has a pointer to it."""
    return lambda value, _old, path: invalid_each(path, value, check(value)) if value or pointer else []


def _check_long_name(value: str) -> list[str]:
    return names.count_in_bytes(names.dns_subdomain(value))


_SHORT_NAME = _name(lambda value: names.count_in_bytes(names.dns_label(value)))
_LONG_NAME = _name(_check_long_name)
_POINTER_TO_LONG_NAME = _name(_check_long_name, pointer=True)
_SEGMENT = _name(names.path_segment)


def _policy(count: str) -> FieldCheck:
    """The policy of a group of pods, or of groups, and its field with the least number of them."""

    def validate_scheduling_policy(value: Part | None, old: Part | None, path: str) -> list[FieldError]:
        policy, was = value or {}, old or {}
        errors = union("basic", "gang")(policy, None, path)
        if old is not None and not _is_same(policy.get("basic"), was.get("basic")):
            errors.append(invalid(f"{path}.basic", None, IMMUTABLE))
        gang = policy.get("gang")
        fixed = [] if old is None else validate_presence(gang, was.get("gang"), f"{path}.gang")
        if gang is not None and not fixed:
            errors += _COUNT.run(gang.get(count), f"{path}.gang.{count}")
        return errors + fixed

    return validate_scheduling_policy


def validate_scheduling_constraints(value: Part, _old: Any, path: str) -> list[FieldError]:
    topology = value.get("topology") or ()
    if len(topology) > 1:
        return [too_many(f"{path}.topology", len(topology), 1)]
    errors: list[FieldError] = []
    for index, one in enumerate(topology):
        where, key = f"{path}.topology[{index}].key", one.get("key")
        errors += invalid_each(where, key, names.label_key(key)) if key else [required(where)]
    return errors


def validate_claims(claims: Sequence[Part], _old: Any, path: str) -> list[FieldError]:
    if too_long := _limit_claims(claims, path):
        return too_long
    errors = _forbid_repeated_names(claims, path, lambda claim: {"name": "", **claim})
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        errors += union(*sources)(claim, None, where)
        fields = {"name": _SHORT_NAME, **dict.fromkeys(sources, _POINTER_TO_LONG_NAME)}
        errors += validate_fields(claim, None, where, fields, musts=("name",))
    return errors


def _limit_claims(claims: Sequence[Part], path: str) -> list[FieldError]:
    return [too_many(path, len(claims), _MAX_CLAIMS)] if len(claims) > _MAX_CLAIMS else []


def _forbid_repeated_names(items: Sequence[Part], path: str, shown: Callable[[Part], Part]) -> list[FieldError]:
    """Finds the items with the name of an earlier one."""
    repeated = repeated_indices(item.get("name", "") for item in items)
    return [duplicate(f"{path}[{index}]", shown(items[index])) for index in repeated]


def validate_mode(value: Any, _old: Any, path: str) -> list[FieldError]:
    if isinstance(value, Mapping):
        return union("single", "all")(value, None, path)
    return [] if value in MODES else [not_supported(path, value, MODES)]


def _row(check: Check) -> FieldCheck:
    return lambda value, _old, path: check.run(value, path)


def _validate_template_reference(value: Part, _old: Any, path: str) -> list[FieldError]:
    errors = union("workload")(value, None, path)
    fields: Mapping[str, FieldCheck] = {"workloadName": _LONG_NAME, "podGroupTemplateName": _SHORT_NAME}
    return errors + (_struct(fields, musts=tuple(fields))(value["workload"], None, f"{path}.workload") if not errors else [])


def _struct(table: Mapping[str, FieldCheck], *, musts: Sequence[str] = ()) -> FieldCheck:
    return lambda value, _old, path: validate_fields(value, None, path, table, musts=musts)


VALIDATE_CONTROLLER = _struct({"apiGroup": _LONG_NAME, "kind": _SEGMENT, "name": _SEGMENT}, musts=("kind", "name"))

#: Of all groups and templates.
_OF_ALL: Mapping[str, FieldCheck] = {
    "disruptionMode": validate_mode,
    "priorityClassName": _LONG_NAME,
    "priority": _row(at_most(HIGHEST_USER_DEFINABLE_PRIORITY)),
    "preemptionPolicy": _row(one_of(*PREEMPTION_POLICIES)),
}
#: Of a group of pods and of its template.
_COMMON: Mapping[str, FieldCheck] = {
    "schedulingPolicy": _policy("minCount"),
    "schedulingConstraints": validate_scheduling_constraints,
    "resourceClaims": validate_claims,
    **_OF_ALL,
}
#: Of a composite group and of its template.
_COMMON_OF_COMPOSITES: Mapping[str, FieldCheck] = {
    "schedulingPolicy": _policy("minGroupCount"),
    "schedulingConstraints": validate_scheduling_constraints,
    **_OF_ALL,
}
_WORKLOAD = _struct({"workloadName": _LONG_NAME, "templateName": _SHORT_NAME}, musts=("workloadName", "templateName"))
_MEMBERSHIP: Mapping[str, FieldCheck] = {"parentCompositePodGroupName": _POINTER_TO_LONG_NAME, "workloadRef": _WORKLOAD}
#: Of a group of pods.
_OF_GROUP: Mapping[str, FieldCheck] = {**_MEMBERSHIP, "podGroupTemplateRef": _validate_template_reference}
#: Of a composite group.
_OF_COMPOSITE: Mapping[str, FieldCheck] = {**_MEMBERSHIP, **_COMMON_OF_COMPOSITES}
#: The lists of templates, and what is validated of each template beside its name.
_TEMPLATES: Mapping[str, Mapping[str, FieldCheck]] = {
    "podGroupTemplates": _COMMON,
    "compositePodGroupTemplates": _COMMON_OF_COMPOSITES,
}

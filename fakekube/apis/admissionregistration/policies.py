"""Validating and mutating admission policies, and their bindings.

The expressions after a variable can refer to it; the type of the variable is that of its own expression.

Specified by: pkg/apis/admissionregistration/{validation,v1/defaults.go},
pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fakekube.apimachinery.cel.compilation import JSON_PATCH, NULL, OBJECT, Environment, ExpressionError, admission
from fakekube.apimachinery.cel.syntax import RESERVED
from fakekube.apimachinery.cel.types import BOOL, STRING
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, forbidden, invalid, required
from fakekube.apis.admissionregistration.webhookconfigurations import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    AdmissionStrategy,
    blank,
    validate_match_conditions,
    validate_match_resources,
    validate_mutating_operations,
)
from fakekube.apis.rest.strategy import StatusStrategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import (
    NOT_BLANK,
    ONE_LINE,
    conditions,
    invalid_each,
    label_name,
    one_of,
    repeated_indices,
    required_one_of,
    too_many_error,
)
from fakekube.apis.validation.expressions import expression, expression_error
from fakekube.apis.validation.rules import holds_declared_rules
from fakekube.apis.validation.selectors import label_selector
from fakekube.apis.validation.to_internal import semantic_deep_equal, to_internal
from fakekube.base.objects import Object

REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
ACTIONS = ("Audit", "Deny", "Warn")
PATCH_TYPES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_PATCH_RESULTS = {"ApplyConfiguration": OBJECT, "JSONPatch": JSON_PATCH}
_NOT_FOUND_ACTIONS = ("Deny", "Allow")
_AUDIT_ANNOTATIONS = 20
_VALUE_EXPRESSION_LENGTH = 5 * 1024
_BOTH_EMPTY = "validations or auditAnnotations must contain at least one item"
_EXCLUSIVE = "name and selector are mutually exclusive"
_DENY_AND_WARN = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)

_identifier_matches = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch


class _PolicyStrategy(AdmissionStrategy):
    def validate_new(self, obj: Object) -> list[FieldError]:
        return self._validate_spec(obj, conditions_too=True)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        kept = all(semantic_deep_equal(spec.get(field), before.get(field)) for field in ("paramKind", "matchConditions"))
        return self._validate_spec(obj, conditions_too=not kept)

    def _validate_spec(self, obj: Object, *, conditions_too: bool) -> list[FieldError]:
        raise NotImplementedError


class ValidatingPolicyStrategy(_PolicyStrategy):
    """The strategy of validatingadmissionpolicies."""

    has_status = True

    def _validate_spec(self, obj: Object, *, conditions_too: bool) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = _validate_failure_policy_and_match(spec)
        if conditions_too:
            errors += _validate_match_conditions(spec)
        wrong, known = _variables(spec, admission(params="paramKind" in spec, composed=bool(spec.get("variables"))))
        errors += wrong
        validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
        if not validations and not annotations:
            return [*errors, required("spec.validations", _BOTH_EMPTY), required("spec.auditAnnotations", _BOTH_EMPTY)]
        for index, validation in enumerate(validations):
            errors += _validate_validation(validation, f"spec.validations[{index}]", known)
        return errors + _validate_audit_annotations(annotations, obj["metadata"].get("name", ""), known)


class MutatingPolicyStrategy(_PolicyStrategy):
    """The strategy of mutatingadmissionpolicies."""

    def _validate_spec(self, obj: Object, *, conditions_too: bool) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = _validate_failure_policy_and_match(spec)
        if "matchConstraints" in spec:
            errors += validate_mutating_operations(spec["matchConstraints"], "spec.matchConstraints")
        if conditions_too:
            errors += _validate_match_conditions(spec)
        wrong, known = _variables(spec, admission(params="paramKind" in spec, composed=True, patches=True))
        errors += wrong
        mutations = spec.get("mutations") or ()
        if not mutations:
            errors.append(required("spec.mutations", "mutations must contain at least one item"))
        for index, mutation in enumerate(mutations):
            errors += _validate_mutation(mutation, f"spec.mutations[{index}]", known)
        reinvocation = spec.get("reinvocationPolicy", "")
        return errors + required_one_of(reinvocation, "spec.reinvocationPolicy", REINVOCATION_POLICIES)


class ValidatingPolicyBindingStrategy(AdmissionStrategy):
    """The strategy of validatingadmissionpolicybindings."""

    def validate_new(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        actions = spec.get("validationActions") or ()
        return _validate_binding(spec) + _validate_validation_actions(actions, "spec.validationActions")


class MutatingPolicyBindingStrategy(AdmissionStrategy):
    """The strategy of mutatingadmissionpolicybindings."""

    def validate_new(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        return _validate_binding(spec) + validate_mutating_operations(spec.get("matchResources") or {}, "spec.matchResources")


def _validate_failure_policy_and_match(spec: Object) -> list[FieldError]:
    errors = [required("spec.failurePolicy")] if "failurePolicy" not in spec else []
    if "failurePolicy" in spec:
        errors += one_of(spec["failurePolicy"], "spec.failurePolicy", FAILURE_POLICIES)
    if "paramKind" in spec:
        errors += _validate_param_kind(spec["paramKind"], "spec.paramKind")
    if "matchConstraints" not in spec:
        return [*errors, required("spec.matchConstraints")]
    errors += validate_match_resources(spec["matchConstraints"], "spec.matchConstraints")
    if not spec["matchConstraints"].get("resourceRules"):
        errors.append(required("spec.matchConstraints.resourceRules"))
    return errors


def _validate_param_kind(kind: Object, path: str) -> list[FieldError]:
    errors = _validate_api_version(kind.get("apiVersion", ""), f"{path}.apiVersion")
    name = kind.get("kind", "")
    if not name:
        return [*errors, required(f"{path}.kind")]
    if problem := names.kind_name(name):
        errors.append(invalid(f"{path}.kind", name, problem))
    return errors


def _validate_api_version(value: str, path: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    if value.count("/") > 1:
        return [invalid(path, value, f"unexpected GroupVersion string: {value}")]
    group, _, version = value.rpartition("/")
    errors: list[FieldError] = []
    if group and names.dns_subdomain(group):
        errors.append(invalid(path, group, ",".join(names.dns_subdomain(group))))
    if not version:
        errors.append(invalid(path, value, "version must be specified"))
    elif names.dns_1035_label(version):
        errors.append(invalid(path, version, ",".join(names.dns_1035_label(version))))
    return errors


def _validate_match_conditions(spec: Object) -> list[FieldError]:
    return validate_match_conditions(spec.get("matchConditions") or (), "spec.matchConditions", params="paramKind" in spec)


def _variables(spec: Object, known: Environment) -> tuple[list[FieldError], Environment]:
    """Returns the errors of the variables, and the environment of the expressions after them."""
    errors: list[FieldError] = []
    for index, variable in enumerate(spec.get("variables") or ()):
        path, name = f"spec.variables[{index}]", variable.get("name", "")
        if blank(name):
            errors.append(required(f"{path}.name", "name is not specified"))
        elif not _identifier_matches(name) or name in RESERVED:
            errors.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
        source = variable.get("expression", "")
        if blank(source):
            errors.append(required(f"{path}.expression", "expression is not specified"))
            continue
        try:
            known = known.with_variable(name, replace(known, makes_patches=False).compiled(source))
        except ExpressionError as error:
            known = known.with_variable(name, None)
            errors.append(expression_error(f"{path}.expression", source, error))
    return errors, known


def _validate_validation(validation: Object, path: str, known: Environment) -> list[FieldError]:
    source, message, message_expression = (validation.get(field, "") for field in ("expression", "message", "messageExpression"))
    if blank(source):
        errors = [required(f"{path}.expression", "expression is not specified")]
    else:
        errors = expression(known, source, f"{path}.expression", BOOL)
    if not blank(message_expression):
        errors += expression(known.without_authorizer(), message_expression, f"{path}.messageExpression", STRING)
    elif message_expression:
        errors.append(invalid(f"{path}.messageExpression", message_expression, NOT_BLANK))
    if message and blank(message):
        errors.append(invalid(f"{path}.message", message, NOT_BLANK))
    elif re.search(r"[\n\r]", message.strip()):
        errors.append(invalid(f"{path}.message", message, ONE_LINE))
    return errors + (one_of(validation["reason"], f"{path}.reason", REASONS) if "reason" in validation else [])


def _validate_audit_annotations(annotations: Sequence[Object], policy: str, known: Environment) -> list[FieldError]:
    path = "spec.auditAnnotations"
    errors: list[FieldError] = []
    if len(annotations) > _AUDIT_ANNOTATIONS:
        shown = [to_internal("AuditAnnotation", annotation) for annotation in annotations]
        errors.append(invalid(path, shown, too_many_error(_AUDIT_ANNOTATIONS, "auditAnnotations")))
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        where, key = f"{path}[{index}]", annotation.get("key", "")
        errors += label_name(f"{policy}/{key}", f"{where}.key")
        errors += _validate_value_expression(annotation.get("valueExpression", ""), f"{where}.valueExpression", known)
        if key in seen:
            errors.append(duplicate(f"{where}.key", key))
        seen.add(key)
    return errors


def _validate_value_expression(text: str, path: str, known: Environment) -> list[FieldError]:
    if blank(text):
        return [required(path, "valueExpression is not specified")]
    if len(text.strip().encode()) > _VALUE_EXPRESSION_LENGTH:
        return [required(path, f"must not exceed {_VALUE_EXPRESSION_LENGTH} bytes in length")]
    return expression(known, text.strip(), path, STRING, NULL, shown=text)


def _validate_mutation(mutation: Object, path: str, known: Environment) -> list[FieldError]:
    kind = mutation.get("patchType", "")
    errors = required_one_of(kind, f"{path}.patchType", PATCH_TYPES)
    if errors:
        return errors
    wanted = PATCH_TYPES[kind]
    unwanted = next(field for field in PATCH_TYPES.values() if field != wanted)
    if wanted not in mutation:
        errors.append(required(f"{path}.{wanted}", f"must be specified when patchType is {kind}"))
    elif source := mutation[wanted].get("expression", "").strip():
        errors += expression(known, source, f"{path}.{wanted}.expression", _PATCH_RESULTS[kind])
    else:
        errors.append(required(f"{path}.{wanted}.expression"))
    if unwanted in mutation:
        text = f"must not be specified when patchType is {kind}"
        errors.append(invalid(f"{path}.{unwanted}", f"{{{unwanted}}}", text))
    return errors


def _validate_binding(spec: Object) -> list[FieldError]:
    policy = spec.get("policyName", "")
    path = "spec.policyName"
    errors = invalid_each(path, policy, names.dns_subdomain(policy)) if policy else [required(path)]
    if "paramRef" in spec:
        errors += _validate_param_ref(spec["paramRef"], "spec.paramRef")
    return errors + (validate_match_resources(spec["matchResources"], "spec.matchResources") if "matchResources" in spec else [])


def _validate_param_ref(reference: Object, path: str) -> list[FieldError]:
    name, selector = reference.get("name", ""), reference.get("selector")
    errors: list[FieldError] = []
    if name:
        errors += invalid_each(f"{path}.name", name, names.path_segment(name))
    if name and selector is not None:
        errors.append(forbidden(f"{path}.name", _EXCLUSIVE))
    if selector is not None:
        errors += label_selector(selector, f"{path}.selector")
    if name and selector is not None:
        errors.append(forbidden(f"{path}.selector", _EXCLUSIVE))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction", "")
    return errors + required_one_of(action, f"{path}.parameterNotFoundAction", _NOT_FOUND_ACTIONS, ordered=True)


def _validate_validation_actions(actions: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    repeated = set(repeated_indices(actions))
    for index, action in enumerate(actions):
        errors += one_of(action, f"{path}[{index}]", ACTIONS)
        if index in repeated:
            errors.append(duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        errors.append(invalid(path, actions, _DENY_AND_WARN))
    return (
        errors
        if actions
        else [*errors, required(path, "" if holds_declared_rules() else "at least one validation action is required")]
    )


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    status = obj.get("status") or {}
    errors: list[FieldError] = []
    for index, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        errors += [required(f"{path}.warning")] if not warning.get("warning") else []
        errors += _validate_field_reference(warning.get("fieldRef", ""), f"{path}.fieldRef")
    return errors + conditions(status.get("conditions") or (), "status.conditions")


def _validate_field_reference(reference: str, path: str) -> list[FieldError]:
    """Validates the path of an expression (validateFieldRef)."""
    from fakekube.apimachinery.printers import jsonpath  # only the status of policies has such paths

    reference = reference.strip()
    if not reference:
        return [required(path)]
    try:
        jsonpath.parse(reference)
    except jsonpath.PathError as problem:
        return [invalid(path, reference, f"invalid JSONPath: {problem}")]
    return []


class _StatusStrategy(StatusStrategy):
    unconditional_update = False
    checks_metadata_update = False


STATUS = _StatusStrategy(_validate_status, keeps_metadata=True, resets=(("spec",), ("metadata",)))

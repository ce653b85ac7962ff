"""Validating and mutating webhook configurations, and the rules and match conditions that they share with policies.

An update may keep what the stored object has wrong already: unknown review versions, side effects, duplicate names.

Specified by: pkg/apis/admissionregistration/validation/validation.go, pkg/apis/admissionregistration/v1/defaults.go,
pkg/registry/admissionregistration/{validating,mutating}webhookconfiguration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fakekube.apimachinery.cel.compilation import admission
from fakekube.apimachinery.cel.types import BOOL
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, required, too_many
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import fully_qualified_name, invalid_each, label_name, one_of, wildcard_alone
from fakekube.apis.validation.expressions import expression
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.selectors import has_invalid_label_value, label_selector
from fakekube.apis.validation.to_internal import contains_empty
from fakekube.apis.validation.webhooks import NO_SIDE_EFFECTS, REVIEW_VERSIONS, client_errors, is_excluded, review_version_errors
from fakekube.base.objects import Object

FAILURE_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
#: Operations with an object that can be mutated; a DELETE has none.
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
_MAX_TIMEOUT = 30
_MATCH_CONDITIONS = 64
_RESERVED_SUFFIX = ".static.k8s.io"
RESERVED = (
    f'names ending with "{_RESERVED_SUFFIX}" are reserved for static manifest-based configurations '
    "and cannot be managed via the API"
)
_MANIFEST_GATE = "ManifestBasedAdmissionControlConfig"
"""The gate with which such names are refused."""


class AdmissionStrategy(Strategy):
    """The base strategy of all kinds of the group."""

    unconditional_update = False
    generation = True
    checks_metadata_update = False
    checks_metadata_again = True
    standard_finalizers = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors, name = self.validate_new(obj), obj["metadata"].get("name", "")
        if name.endswith(_RESERVED_SUFFIX) and context.emulation.enabled(_MANIFEST_GATE):
            errors.append(invalid("metadata.name", name, RESERVED))
        return errors

    def validate_new(self, obj: Object) -> list[FieldError]:
        """Validates a new object but for its name."""
        raise NotImplementedError

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        warnings: list[str] = []
        is_refused = old is None and context.emulation.enabled(_MANIFEST_GATE)
        if not is_refused and from_minor(36) and obj["metadata"].get("name", "").endswith(_RESERVED_SUFFIX):
            warnings.append(f"metadata.name: {RESERVED}")
        if from_minor(37):
            warnings += _warnings_about_excluded_rules(obj.get("webhooks") or ())
        return warnings


def _warnings_about_excluded_rules(webhooks: Sequence[Object]) -> list[str]:
    """Returns warnings about rules that name resources which no webhook sees (warningsForExcludedRules)."""
    found: list[str] = []
    for index, webhook in enumerate(webhooks):
        for number, rule in enumerate(webhook.get("rules") or ()):
            groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
            named = dict.fromkeys((group, plural) for group in groups for plural in resources)
            if "*" in groups or "*" in resources:
                continue
            where = f"webhooks[{index}].rules[{number}]"
            found += [f"{where}: {plural}.{group} {_EXCLUDED}" for group, plural in named if is_excluded(group, plural)]
    return found


_EXCLUDED = "is excluded from admission webhooks; this rule will have no effect"


def blank(text: str) -> bool:
    """Reports whether the text is empty or white space."""
    return not text.strip()


def _validate_rule_with_operations(rule: Object, path: str) -> list[FieldError]:
    """Validates a RuleWithOperations."""
    operations = rule.get("operations") or ()
    errors = _validate_list_with_wildcard(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        errors += one_of(operation, f"{path}.operations[{index}]", OPERATIONS)
    errors += _validate_list_with_wildcard(rule.get("apiGroups") or (), f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or ()
    errors += _validate_list_with_wildcard(versions, f"{path}.apiVersions", "API versions")
    errors += [required(f"{path}.apiVersions[{index}]") for index, version in enumerate(versions) if not version]
    errors += _validate_resources(rule.get("resources") or (), f"{path}.resources")
    if "scope" in rule:
        errors += one_of(rule["scope"], f"{path}.scope", SCOPES)
    return errors


def _validate_list_with_wildcard(values: Sequence[str], path: str, what: str) -> list[FieldError]:
    """Validates that a list has at least one item, and that "*" is the only one if present."""
    if not values:
        return [required(path)]
    return wildcard_alone(values, path, what)


def _validate_resources(values: Sequence[str], path: str) -> list[FieldError]:
    errors = [] if values else [required(path)]
    with_all_subresources: set[str] = set()
    of_all_resources: set[str] = set()
    ends_plain = False
    for index, value in enumerate(values):
        where = f"{path}[{index}]"
        resource, slash, subresource = value.partition("/")
        if not value:
            errors.append(required(where))
        elif not slash:
            ends_plain = value != "*"
        else:
            if resource in with_all_subresources:
                errors.append(invalid(where, value, f"if '{resource}/*' is present, must not specify {value}"))
            if subresource in of_all_resources:
                errors.append(invalid(where, value, f"if '*/{subresource}' is present, must not specify {value}"))
            if subresource == "*":
                with_all_subresources.add(resource)
            if resource == "*":
                of_all_resources.add(subresource)
    if len(values) > 1 and "*/*" in values:
        errors.append(invalid(path, values, "if '*/*' is present, must not specify other resources"))
    if "*" in values and ends_plain:
        text = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, values, text))
    return errors


def validate_match_conditions(conditions: Sequence[Object], path: str, *, params: bool = False) -> list[FieldError]:
    """Validates match conditions; with `params`, expressions may refer to the parameters of a policy."""
    environment = admission(params=params)
    errors = [too_many(path, len(conditions), _MATCH_CONDITIONS)] if len(conditions) > _MATCH_CONDITIONS else []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, name, source = f"{path}[{index}]", condition.get("name", ""), condition.get("expression", "").strip()
        if source:
            errors += expression(environment, source, f"{where}.expression", BOOL)
        else:
            errors.append(required(f"{where}.expression"))
        if not name:
            errors.append(required(f"{where}.name"))
            continue
        errors += label_name(name, f"{where}.name")
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
    return errors


def validate_match_resources(match: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates the MatchResources of a policy or of a binding."""
    policy, where = match.get("matchPolicy"), f"{path}.matchPolicy"
    errors = [required(where)] if policy is None else one_of(policy, where, _MATCH_POLICIES)
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector(match[field], f"{path}.{field}") if field in match else [required(f"{path}.{field}")]
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            errors += _validate_named_rule(rule, f"{path}.{field}[{index}]")
    return errors


def validate_mutating_operations(match: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates that a rule of a mutating policy has only operations with an object."""
    rules: Collection[Object] = match.get("resourceRules") or ()
    return [
        error
        for rule in rules
        for operation in rule.get("operations") or ()
        for error in one_of(operation, f"{path}.resourceRules.operations", _MUTATING_OPERATIONS)
    ]


def _validate_named_rule(rule: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames") or ()):
        where = f"{path}.resourceNames[{index}]"
        errors += invalid_each(where, name, names.path_segment(name))
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors + _validate_rule_with_operations(rule, path)


@dataclass(slots=True, frozen=True)
class _ValidationOptions:
    """Rules that an update may break because the stored object breaks them already."""

    side_effects: bool = False
    versions: bool = False
    names: bool = False
    label_values: bool = False
    conditions: bool = False


class ValidatingWebhookStrategy(AdmissionStrategy):
    """The strategy of validatingwebhookconfigurations."""

    mutating: ClassVar[bool] = False

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if contains_empty(context.resource.storage_type.fields["webhooks"].type, obj.get("webhooks")):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate_new(self, obj: Object) -> list[FieldError]:
        return self._validate_hooks(obj.get("webhooks") or (), _ValidationOptions())

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        new, before = obj.get("webhooks") or (), old.get("webhooks") or ()
        return self._validate_hooks(new, _validation_options(new, before))

    def _validate_hooks(self, hooks: Sequence[Object], options: _ValidationOptions) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, hook in enumerate(hooks):
            path, name = f"webhooks[{index}]", hook.get("name", "")
            errors += self._validate_hook(hook, path, options)
            versions = hook.get("admissionReviewVersions") or ()
            errors += _validate_review_versions(versions, f"{path}.admissionReviewVersions", options)
            if name in seen and not options.names:
                errors.append(duplicate(f"{path}.name", name))
            if name:
                seen.add(name)
        return errors

    def _validate_hook(self, hook: Object, path: str, options: _ValidationOptions) -> list[FieldError]:
        errors = fully_qualified_name(hook.get("name", ""), f"{path}.name")
        for index, rule in enumerate(hook.get("rules") or ()):
            errors += _validate_rule_with_operations(rule, f"{path}.rules[{index}]")
        errors += _validate_enumeration(hook, "failurePolicy", path, FAILURE_POLICIES)
        errors += _validate_enumeration(hook, "matchPolicy", path, _MATCH_POLICIES)
        allowed = _SIDE_EFFECTS if options.side_effects else NO_SIDE_EFFECTS
        if hook.get("sideEffects") is None:
            errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
        errors += _validate_enumeration(hook, "sideEffects", path, allowed)
        timeout = hook.get("timeoutSeconds")
        if timeout is not None and not 1 <= timeout <= _MAX_TIMEOUT:
            text = f"the timeout value must be between 1 and {_MAX_TIMEOUT} seconds"
            errors.append(invalid(f"{path}.timeoutSeconds", timeout, text))
        for field in ("namespaceSelector", "objectSelector"):
            errors += label_selector(hook.get(field), f"{path}.{field}", allow_invalid_values=options.label_values)
        if self.mutating:
            errors += _validate_enumeration(hook, "reinvocationPolicy", path, REINVOCATION_POLICIES)
        errors += client_errors(hook.get("clientConfig") or {}, f"{path}.clientConfig")
        if not options.conditions:
            errors += validate_match_conditions(hook.get("matchConditions") or (), f"{path}.matchConditions")
        return errors


class MutatingWebhookStrategy(ValidatingWebhookStrategy):
    """The strategy of mutatingwebhookconfigurations."""

    mutating = True


def _validate_enumeration(hook: Object, field: str, path: str, values: Sequence[str]) -> list[FieldError]:
    return one_of(hook[field], f"{path}.{field}", values) if hook.get(field) is not None else []


def _validation_options(hooks: Sequence[Object], before: Sequence[Object]) -> _ValidationOptions:
    old_names = [hook.get("name", "") for hook in before]
    return _ValidationOptions(
        side_effects=any(hook.get("sideEffects") not in NO_SIDE_EFFECTS for hook in before),
        versions=any(
            not set(hook["admissionReviewVersions"]) & set(REVIEW_VERSIONS)
            for hook in before
            if hook.get("admissionReviewVersions")
        ),
        names=len(set(old_names)) < len(old_names),
        label_values=any(
            has_invalid_label_value(hook.get(field)) for hook in before for field in ("namespaceSelector", "objectSelector")
        ),
        conditions=[hook.get("matchConditions") for hook in hooks] == [hook.get("matchConditions") for hook in before],
    )


def _validate_review_versions(versions: Sequence[str], path: str, options: _ValidationOptions) -> list[FieldError]:
    if not versions:
        return [required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")]
    return review_version_errors(versions, path, needs_known=not options.versions)

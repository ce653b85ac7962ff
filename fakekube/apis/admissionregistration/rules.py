"""Rules, match conditions and match resources: the requests to which an admission webhook or policy applies.

Specified by: pkg/apis/admissionregistration/validation/validation.go,
pkg/apis/admissionregistration/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fakekube.apimachinery.cel.compilation import admission
from fakekube.apimachinery.cel.types import BOOL
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, required, too_many
from fakekube.apis.rest.strategy import Object, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, label_name, one_of
from fakekube.apis.validation.expressions import expression
from fakekube.apis.validation.selectors import label_selector

__all__ = [
    "FAILURE_POLICIES",
    "MATCH_POLICIES",
    "MUTATING_OPERATIONS",
    "REINVOCATION_POLICIES",
    "AdmissionStrategy",
    "blank",
    "match_conditions",
    "match_resources",
    "mutating_operations",
    "rule_errors",
]

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
#: Operations with an object that can be mutated; a DELETE has none.
MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
MATCH_CONDITIONS = 64
RESERVED_SUFFIX = ".static.k8s.io"


class AdmissionStrategy(Strategy):
    """The base strategy of all kinds of the group."""

    unconditional_update = False
    generation = True
    checks_metadata_update = False
    checks_metadata_again = True
    standard_finalizers = False

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        if not obj["metadata"].get("name", "").endswith(RESERVED_SUFFIX):
            return []
        return [
            f'metadata.name: names ending with "{RESERVED_SUFFIX}" are reserved for static manifest-based '
            "configurations and cannot be managed via the API"
        ]


def blank(text: str) -> bool:
    """Reports whether the text is empty or white space."""
    return not text.strip()


def rule_errors(rule: Object, path: str) -> list[FieldError]:
    """Validates a RuleWithOperations."""
    operations = rule.get("operations") or ()
    errors = _listed(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        errors += one_of(operation, f"{path}.operations[{index}]", OPERATIONS)
    errors += _listed(rule.get("apiGroups") or (), f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or ()
    errors += _listed(versions, f"{path}.apiVersions", "API versions")
    errors += [required(f"{path}.apiVersions[{index}]") for index, version in enumerate(versions) if not version]
    errors += _resources(rule.get("resources") or (), f"{path}.resources")
    if "scope" in rule:
        errors += one_of(rule["scope"], f"{path}.scope", SCOPES)
    return errors


def _listed(values: Sequence[str], path: str, what: str) -> list[FieldError]:
    """Validates that a list has at least one item, and that "*" is the only one if present."""
    if not values:
        return [required(path)]
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _resources(values: Sequence[str], path: str) -> list[FieldError]:
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


def match_conditions(conditions: Sequence[Object], path: str, *, params: bool = False) -> list[FieldError]:
    """Validates match conditions; with `params`, expressions may refer to the parameters of a policy."""
    environment = admission(params=params)
    errors = [too_many(path, len(conditions), MATCH_CONDITIONS)] if len(conditions) > MATCH_CONDITIONS else []
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


def match_resources(match: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates the MatchResources of a policy or of a binding."""
    policy, where = match.get("matchPolicy"), f"{path}.matchPolicy"
    errors = [required(where)] if policy is None else one_of(policy, where, MATCH_POLICIES)
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector(match[field], f"{path}.{field}") if field in match else [required(f"{path}.{field}")]
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            errors += _named_rule(rule, f"{path}.{field}[{index}]")
    return errors


def mutating_operations(match: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates that a rule of a mutating policy has only operations with an object."""
    rules: Collection[Object] = match.get("resourceRules") or ()
    return [
        error
        for rule in rules
        for operation in rule.get("operations") or ()
        for error in one_of(operation, f"{path}.resourceRules.operations", MUTATING_OPERATIONS)
    ]


def _named_rule(rule: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames") or ()):
        where = f"{path}.resourceNames[{index}]"
        errors += invalid_each(where, name, names.path_segment(name))
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors + rule_errors(rule, path)

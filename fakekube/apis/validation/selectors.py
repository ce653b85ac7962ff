"""Validation of selectors in objects (label, node and topology selectors), and of tolerations and taint effects.

Specified by: k8s.io/apimachinery/pkg/apis/meta/v1/validation; pkg/apis/core/validation/validation.go (ValidateTolerations,
validateTaintEffect …).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, duplicate, forbidden, invalid, not_supported, required
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, label_name, one_of, repeated_indices, required_one_of
from fakekube.apis.validation.objectmeta import validate_labels
from fakekube.apis.validation.rules import from_minor
from fakekube.base.golang.strconv import parse_int

NOT_AN_OPERATOR = "not a valid selector operator"
_SET_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
IN_KEYS_AND_SELECTOR = "exists in both matchLabelKeys and labelSelector"
KEYS_WITHOUT_SELECTOR = "must not be specified when labelSelector is not set"
VALUES_REQUIRED = "must be specified when `operator` is 'In' or 'NotIn'"
VALUES_FORBIDDEN = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def has_invalid_label_value(selector: Mapping[str, Any] | None) -> bool:
    """Reports whether an expression has a value that is not a valid label value (as old objects may have)."""
    expressions = (selector or {}).get("matchExpressions") or ()
    return any(names.label_value(value) for item in expressions for value in item.get("values") or ())


def label_selector(selector: Mapping[str, Any] | None, path: str, *, allow_invalid_values: bool = False) -> list[FieldError]:
    """Validates a metav1.LabelSelector; an absent one is valid (ValidateLabelSelector)."""
    if not selector:
        return []
    labels = selector.get("matchLabels")
    errors = validate_labels(labels, f"{path}.matchLabels") if labels else []
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        errors += label_selector_requirement(
            requirement, f"{path}.matchExpressions[{index}]", allow_invalid_values=allow_invalid_values
        )
    return errors


def label_selector_requirement(
    requirement: Mapping[str, Any], path: str, *, allow_invalid_values: bool = False, allow_unknown_operators: bool = False
) -> list[FieldError]:
    """Validates an item of matchExpressions (ValidateLabelSelectorRequirement)."""
    errors: list[FieldError] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in _SET_OPERATORS:
        errors += _set_operator_errors(operator, values, f"{path}.values")
    elif not allow_unknown_operators:
        errors.append(invalid(f"{path}.operator", Typed(operator), NOT_AN_OPERATOR))
    errors += label_name(requirement.get("key", ""), f"{path}.key")
    return errors if allow_invalid_values else errors + _label_values(values, f"{path}.values")


def _set_operator_errors(operator: str, values: Sequence[str], path: str) -> list[FieldError]:
    """Validates that In and NotIn have values, and that Exists and DoesNotExist have none."""
    if operator in ("In", "NotIn"):
        return [] if values else [required(path, VALUES_REQUIRED)]
    return [forbidden(path, VALUES_FORBIDDEN)] if values else []


def _label_values(values: Sequence[str], path: str) -> list[FieldError]:
    return [
        invalid(f"{path}[{index}]", value, detail) for index, value in enumerate(values) for detail in names.label_value(value)
    ]


def node_selector(selector: Mapping[str, Any], path: str, *, allow_invalid_values: bool = False) -> list[FieldError]:
    """Validates a core NodeSelector (ValidateNodeSelector)."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors += node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]", allow_invalid_values=allow_invalid_values)
    return errors


def node_selector_term(term: Mapping[str, Any], path: str, *, allow_invalid_values: bool = False) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        errors += _node_requirement(requirement, f"{path}.matchExpressions[{index}]", allow_invalid_values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        errors += _node_field_requirement(requirement, f"{path}.matchFields[{index}]")
    return errors


def _node_requirement(requirement: Mapping[str, Any], path: str, allow_invalid_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in _SET_OPERATORS:
        errors += _set_operator_errors(operator, values, f"{path}.values")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{path}.values", detail))
    else:
        errors.append(invalid(f"{path}.operator", Typed(operator), NOT_AN_OPERATOR))
    errors += label_name(requirement.get("key", ""), f"{path}.key")
    return errors if allow_invalid_values else errors + _label_values(values, f"{path}.values")


def _node_field_requirement(requirement: Mapping[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values = requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", Typed(operator), NOT_AN_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", detail))
    if key != "metadata.name":
        return [*errors, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        errors += invalid_each(f"{path}.values[{index}]", value, names.dns_subdomain(value))
    return errors


def preferred_scheduling_terms(terms: Sequence[Mapping[str, Any]], path: str) -> list[FieldError]:
    """Validates weighted node selector terms (ValidatePreferredSchedulingTerms)."""
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors += weight(term, f"{path}[{index}]")
        preference = term.get("preference") or {}
        errors += node_selector_term(preference, f"{path}[{index}].preference", allow_invalid_values=True)
    return errors


def weight(term: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates the weight of a preference."""
    value = term.get("weight", 0)
    return [] if 0 < value <= 100 else [invalid(f"{path}.weight", value, "must be in the range 1-100")]


def topology_selector_term(term: Mapping[str, Any], path: str) -> tuple[dict[str, frozenset[str]], list[FieldError]]:
    """Validates a term of allowedTopologies; returns its keys with their values, and the errors."""
    errors: list[FieldError] = []
    found: dict[str, frozenset[str]] = {}
    for index, requirement in enumerate(term.get("matchLabelExpressions") or ()):
        where = f"{path}.matchLabelExpressions[{index}]"
        key, values = requirement.get("key", ""), requirement.get("values") or ()
        if not values:
            errors.append(required(f"{where}.values"))
        errors += [duplicate(f"{where}.values[{position}]", values[position]) for position in repeated_indices(values)]
        errors += label_name(key, f"{where}.key")
        if key in found:
            errors.append(duplicate(f"{where}.key", key))
        found[key] = frozenset(values)
    return found, errors


def label_keys(
    matching: Sequence[str], mismatching: Sequence[str], selector: Mapping[str, Any] | None, path: str
) -> list[FieldError]:
    """Validates matchLabelKeys and mismatchLabelKeys of a selector."""
    errors = _keys_beside(matching, selector, f"{path}.matchLabelKeys")
    errors += _keys_beside(mismatching, selector, f"{path}.mismatchLabelKeys")
    if selector is not None:
        positions = {key: index for index, key in enumerate(matching)}
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in positions and key in seen:
                where = f"{path}[{positions[key]}]"
                errors.append(invalid(where, key, IN_KEYS_AND_SELECTOR))
            seen.add(key)
    for index, key in enumerate(matching):
        if key in mismatching:
            where = f"{path}.matchLabelKeys[{index}]"
            errors.append(invalid(where, key, "exists in both matchLabelKeys and mismatchLabelKeys"))
    return errors


def _keys_beside(keys: Sequence[str], selector: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    if not keys:
        return []
    if selector is None:
        return [forbidden(path, KEYS_WITHOUT_SELECTOR)]
    return [error for index, key in enumerate(keys) for error in label_name(key, f"{path}[{index}]")]


EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def taint_effect(effect: str, path: str) -> list[FieldError]:
    """Validates the effect of a taint, which is required."""
    return required_one_of(effect, path, EFFECTS, ordered=True)


def tolerations(items: Sequence[Mapping[str, Any]], path: str, *, allow_comparisons: bool = False) -> list[FieldError]:
    """Validates the tolerations of a pod or a runtime class; Lt and Gt are valid only if the old object has them."""
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        errors += _toleration(item, f"{path}[{index}]", allow_comparisons)
    return errors


def _toleration(item: Mapping[str, Any], path: str, comparisons: bool) -> list[FieldError]:
    key, operator, effect = item.get("key", ""), item.get("operator", ""), item.get("effect", "")
    errors: list[FieldError] = []
    if key:
        errors += label_name(key, f"{path}.key")
    elif operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{path}.operator", Typed(operator), text))
    if item.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", Typed(effect), text))
    errors += _operator(operator, item.get("value", ""), path, comparisons)
    return errors + one_of(effect, f"{path}.effect", EFFECTS, ordered=True) if effect else errors


def _operator(operator: str, value: str, path: str, comparisons: bool) -> list[FieldError]:
    if operator in ("", "Equal"):
        details = names.label_value(value)
        return [invalid(f"{path}.operator", value, ";".join(details))] if details else []
    if operator == "Exists":
        text = "value must be empty when `operator` is 'Exists'"
        return [invalid(f"{path}.operator", value, text)] if value else []
    if operator in ("Lt", "Gt") and from_minor(35):
        if comparisons:
            return _number(value, f"{path}.value")
        return [not_supported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))]
    return [not_supported(f"{path}.operator", operator, ("Equal", "Exists"))]


def _number(value: str, path: str) -> list[FieldError]:
    errors = [invalid(path, value, text) for text in names.decimal_integer(value)]
    try:
        parse_int(value)
    except ValueError as problem:
        errors.append(invalid(path, value, str(problem)))
    return errors

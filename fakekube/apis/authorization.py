"""Access reviews: the server answers a POST and stores nothing.

Specified by: pkg/registry/authorization, pkg/apis/authorization/validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery import features, selectors
from fakekube.apimachinery.data import AUTHORIZATION
from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.errors.field import forbidden, invalid, required
from fakekube.apis.authentication import current_user
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apis.validation.selectors import VALUES_FORBIDDEN, VALUES_REQUIRED, label_selector_requirement
from fakekube.base.objects import Object

_OPERATORS_OF_FIELDS = ("In", "NotIn")
_ONE_OF_THEM: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_UNION_OF_SPEC: Final = 37
"""The first minor in which the spec is a union: both faults have one text and the path of the spec."""


def _raise_invalid(errors: Sequence[FieldError]) -> None:
    """Raises a 422 without the kind, which the real server does not know at this point."""
    if errors:
        raise status.invalid(AUTHORIZATION, "", "", errors)


# --- Access -----------------------------------------------------------------------------------------------------------


def review_access(context: WriteContext, name: str, review: Object) -> Object:
    """Handles a SubjectAccessReview. Raises StatusError 422."""
    review = _with_known_selectors(review)
    spec = review.get("spec") or {}
    _raise_invalid(_validate_subject_spec(spec) + _require_empty_metadata(review, "must be empty", ()))
    context.check(review)
    return {**review, "status": _decide(context, spec)}


def review_access_in_namespace(context: WriteContext, name: str, review: Object) -> Object:
    """Handles a LocalSubjectAccessReview, about access in one namespace. Raises StatusError 422."""
    review = _with_known_selectors(review)
    spec = review.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors = _validate_subject_spec(spec) + _require_empty_metadata(review, "must be empty except for namespace", ("namespace",))
    if resource is not None and resource.get("namespace", "") != review["metadata"].get("namespace", ""):
        where = "spec.resourceAttributes.namespace"
        errors.append(invalid(where, resource.get("namespace", ""), "must match metadata.namespace"))
    if path is not None:
        errors.append(invalid("spec.nonResourceAttributes", _shown_path(path), "disallowed on this kind of request"))
    _raise_invalid(errors)
    context.check(review)
    return {**review, "status": _decide(context, spec)}


def review_own_access(context: WriteContext, name: str, review: Object) -> Object:
    """Handles a SelfSubjectAccessReview. Raises StatusError 422."""
    review = _with_known_selectors(review)
    spec = review.get("spec") or {}
    _raise_invalid(
        _validate_resource_or_path(spec) + _validate_selectors(spec) + _require_empty_metadata(review, "must be empty", ())
    )
    context.check(review)
    return {**review, "status": _decide(context, {**spec, **current_user(context)})}


def review_own_rules(context: WriteContext, name: str, review: Object) -> Object:
    """Handles a SelfSubjectRulesReview. Raises StatusError 400."""
    namespace = (review.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise status.bad_request("no namespace on request")
    context.check(review)
    found = context.services.rules(context.user, context.groups, namespace)
    return {"metadata": {}, "spec": {}, "status": found}


def _with_known_selectors(review: Object) -> Object:
    """Returns a review without selectors, if the gate for them is off."""
    spec = review.get("spec") or {}
    resource = spec.get("resourceAttributes")
    if not resource or features.current().enabled("AuthorizeWithSelectors"):
        return review
    known = {name: value for name, value in resource.items() if name not in ("fieldSelector", "labelSelector")}
    return {**review, "spec": {**spec, "resourceAttributes": known}}


def _decide(context: WriteContext, spec: Object) -> Object:
    decision = context.services.decide(spec)
    answer: Object = {"allowed": decision.allowed}
    if decision.denied:
        answer["denied"] = True
    if decision.reason:
        answer["reason"] = decision.reason
    problems = [decision.error] if decision.error else []
    problems += _unreadable_selectors(spec.get("resourceAttributes") or {})
    return {**answer, "evaluationError": "; ".join(problems)} if problems else answer


def _validate_subject_spec(spec: Object) -> list[FieldError]:
    errors = _validate_resource_or_path(spec)
    if not spec.get("user") and not spec.get("groups"):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    return errors + _validate_selectors(spec)


def _validate_resource_or_path(spec: Object) -> list[FieldError]:
    """Validates that the review is about a resource or a path, not about both."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) is not (path is None):
        return []
    if features.current().minor >= _UNION_OF_SPEC:
        return [invalid("spec", None if path is None else _shown_path(path), _ONE_OF_THEM)]
    if path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", _shown_path(path), text)]
    return [invalid("spec.resourceAttributes", None, _ONE_OF_THEM)]


def _shown_path(path: Object) -> Object:
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _require_empty_metadata(review: Object, detail: str, allowed: Sequence[str]) -> list[FieldError]:
    meta = review.get("metadata") or {}
    rest = {key: value for key, value in meta.items() if key not in ("managedFields", *allowed) and value}
    return [invalid("metadata", meta, detail)] if rest else []


# --- Selectors --------------------------------------------------------------------------------------------------------


def _validate_selectors(spec: Object) -> list[FieldError]:
    resource = spec.get("resourceAttributes") or {}
    errors: list[FieldError] = []
    for field, check in (("fieldSelector", _validate_field_requirement), ("labelSelector", _validate_label_requirement)):
        selector, path = resource.get(field), f"spec.resourceAttributes.{field}"
        if selector is None:
            continue
        raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or ()
        if raw and requirements:
            errors.append(invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements"))
        if not raw and not requirements:
            text = f"when {path} is specified, requirements or rawSelector is required"
            errors.append(required(f"{path}.requirements", text))
        for index, requirement in enumerate(requirements):
            errors += check(requirement, f"{path}.requirements[{index}]")
    return errors


def _validate_label_requirement(requirement: Object, path: str) -> list[FieldError]:
    return label_selector_requirement(requirement, path, allow_unknown_operators=True)


def _validate_field_requirement(requirement: Object, path: str) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values")
    errors: list[FieldError] = []
    if not requirement.get("key"):
        errors.append(required(f"{path}.key", "must be specified"))
    if operator in ("In", "NotIn") and not values:
        errors.append(required(f"{path}.values", VALUES_REQUIRED))
    elif operator in ("Exists", "DoesNotExist") and values:
        errors.append(forbidden(f"{path}.values", VALUES_FORBIDDEN))
    return errors


def _unreadable_selectors(resource: Mapping[str, Any]) -> list[str]:
    """Returns the errors of selectors that the authorizer ignores."""
    problems: list[str] = []
    for field, readable in (("fieldSelector", _readable_field), ("labelSelector", _readable_label)):
        selector = resource.get(field) or {}
        parts = [readable(item) for item in selector.get("requirements") or ()]
        if selector.get("rawSelector"):
            parts = [_parses(field, selector["rawSelector"])]
        if not all(parts):
            partly = "partially " if any(parts) else ""
            problems.append(f"spec.resourceAttributes.{field} {partly}ignored due to parse error")
    return problems


def _parses(field: str, text: str) -> bool:
    parse = selectors.parse_labels if field == "labelSelector" else selectors.parse_fields
    try:
        parse(text)
    except selectors.SelectorError:
        return False
    return True


def _readable_field(requirement: Mapping[str, Any]) -> bool:
    return requirement.get("operator") in _OPERATORS_OF_FIELDS and len(requirement.get("values") or ()) == 1


def _readable_label(requirement: Mapping[str, Any]) -> bool:
    return not label_selector_requirement(requirement, "")

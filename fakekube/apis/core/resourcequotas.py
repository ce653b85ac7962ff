"""The limits of a namespace: resourcequotas for its total usage, limitranges for each container, pod and claim.

Specified by: pkg/registry/core/{resourcequota,limitrange}; ValidateResourceQuota… and ValidateLimitRange of
pkg/apis/core/validation; SetDefaults_LimitRangeItem of pkg/apis/core/v1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, forbidden, immutable, invalid, required
from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each
from fakekube.apis.validation.resource_lists import (
    MAX_MILLI_VALUE,
    QUOTA_RESOURCES,
    container_resource_name,
    is_overcommitable,
    is_quota_huge_page,
    quantity,
    quantity_value,
    quota_resource_name,
    resource_name,
)
from fakekube.apis.validation.selectors import NOT_AN_OPERATOR
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.chance import random_uuid
from fakekube.base.objects import Object

_PODS = frozenset({"pods"})
_COMPUTE = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})

#: Scopes, and the resources to which they apply.
SCOPES = {
    "Terminating": _PODS | _COMPUTE,
    "NotTerminating": _PODS | _COMPUTE,
    "BestEffort": _PODS,
    "NotBestEffort": _PODS | _COMPUTE,
    "PriorityClass": _PODS | _COMPUTE,
    "CrossNamespacePodAffinity": _PODS | _COMPUTE,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
EXCLUSIVE_SCOPES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))

#: Scopes that support only the operator Exists.
PLAIN_SCOPES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
PLAIN_SCOPES_TEXT = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
    "ResourceQuotaScopeCrossNamespacePodAffinity"
)

#: Resources whose requests and limits are compared; those that also exist without `requests.`.
COMPARED = ("cpu", "memory", "storage", "ephemeral-storage")
COMPARED_BARE = ("cpu", "memory")


class ResourceQuotaStrategy(Strategy):
    """The strategy of resourcequotas."""

    has_status = True
    delete_returns_object = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        hard, scopes, selector = spec.get("hard") or {}, spec.get("scopes"), spec.get("scopeSelector")
        errors = _amounts(hard, "spec.hard")
        if scopes:
            errors += _scopes(scopes, hard, "spec.scopes")
        if selector is not None:
            errors += _selector(selector, scopes, hard, "spec.scopeSelector.matchExpressions")
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        scopes, before = ((o.get("spec") or {}).get("scopes") for o in (obj, old))
        errors = self.validate(context, obj)
        return errors if set(scopes or ()) == set(before or ()) else [*errors, immutable("spec.scopes", scopes)]

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return [] if old is not None else _warnings((obj.get("spec") or {}).get("hard") or {})

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


class ResourceQuotaStatusStrategy(StatusStrategy):
    """The strategy of resourcequotas/status."""

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        status = obj.get("status") or {}
        errors = _amounts(status.get("hard") or {}, "status.hard")
        return errors + _amounts(status.get("used") or {}, "status.used")


def _amounts(amounts: Mapping[str, str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, amount in amounts.items():
        where = f"{path}[{name}]"
        errors += quota_resource_name(name, where) + quantity_value(name, amount, where)
    return errors


def _scopes(scopes: Sequence[str], hard: Iterable[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for scope in scopes:
        if scope not in SCOPES:
            errors.append(invalid(path, scopes, "unsupported scope"))
        errors += [invalid(path, scopes, UNSUPPORTED_SCOPE)] * _count_unsupported(scope, hard)
    return errors + _exclusive(scopes, scopes, path)


UNSUPPORTED_SCOPE = "unsupported scope applied to resource"


def _count_unsupported(scope: str, hard: Iterable[str]) -> int:
    """Returns the number of resources to which a scope does not apply."""
    if scope not in SCOPES:
        return 0
    known = (name for name in hard if name in QUOTA_RESOURCES or is_quota_huge_page(name))
    return sum(name not in SCOPES[scope] for name in known)


def _exclusive(scopes: Sequence[str], shown: Any, path: str) -> list[FieldError]:
    return [invalid(path, shown, "conflicting scopes") for pair in EXCLUSIVE_SCOPES if set(pair) <= set(scopes)]


def _selector(selector: Mapping[str, Any], scopes: Sequence[str] | None, hard: Iterable[str], path: str) -> list[FieldError]:
    """Validates the scope selector (validateScopedResourceSelectorRequirement)."""
    errors: list[FieldError] = []
    expressions = selector.get("matchExpressions") or ()
    for expression in expressions:
        scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
        if scope not in SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        shown = to_internal("ScopeSelector", selector)
        errors += [invalid(path, shown, UNSUPPORTED_SCOPE)] * _count_unsupported(scope, hard)
        if scope in PLAIN_SCOPES and operator != "Exists":
            errors.append(invalid(f"{path}.operator", operator, PLAIN_SCOPES_TEXT))
        errors += _operator(operator, expression.get("values"), path)
    named = [expression.get("scopeName", "") for expression in expressions]
    return errors + _exclusive(named, scopes, path)


def _operator(operator: str, values: Sequence[str] | None, path: str) -> list[FieldError]:
    if operator in ("In", "NotIn"):
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return [] if values else [required(f"{path}.values", text)]
    if operator in ("Exists", "DoesNotExist"):
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [invalid(f"{path}.values", values, text)] if values else []
    return [invalid(f"{path}.operator", operator, NOT_AN_OPERATOR)]


def _warnings(hard: Mapping[str, str]) -> list[str]:
    """Returns warnings about quotas whose requests are larger than the limits."""
    found = []
    for resource in COMPARED:
        request, limit = f"requests.{resource}", f"limits.{resource}"
        if request not in hard and resource in COMPARED_BARE:
            request = resource
        if request in hard and limit in hard and quantity(hard[request]) > quantity(hard[limit]):
            found.append(f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})")
    return found


# --- limitranges ------------------------------------------------------------------------------------------------------


TYPES = ("Pod", "Container", "PersistentVolumeClaim")


Amounts = Mapping[str, str]


class LimitRangeStrategy(Strategy):
    """The strategy of limitranges."""

    create_on_update = True
    checks_metadata_update = False
    checks_metadata_again = True

    def default(self, obj: Object) -> None:
        for limit in (obj.get("spec") or {}).get("limits") or ():
            if limit.get("type") == "Container":
                _default_of_containers(limit)

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = random_uuid()

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        seen = set()
        for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
            path, type_ = f"spec.limits[{index}]", limit.get("type", "")
            errors += _type(type_, f"{path}.type")
            if type_ in seen:
                errors.append(duplicate(f"{path}.type", type_))
            seen.add(type_)
            errors += _limit(limit, path)
        return errors


def _default_of_containers(limit: Object) -> None:
    """Sets defaults of container limits: `default` from `max`, `defaultRequest` from `default` or else from `min`.

    Empty ones are dropped: every read of the real server adds them, so that they never are a change.
    """
    limits = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    requests = {**(limit.get("min") or {}), **limits, **(limit.get("defaultRequest") or {})}
    for name, defaults in (("default", limits), ("defaultRequest", requests)):
        if defaults:
            limit[name] = defaults
        else:
            limit.pop(name, None)


def _type(type_: str, path: str) -> list[FieldError]:
    errors = invalid_each(path, type_, names.label_key(type_))
    if errors or "/" in type_ or type_ in TYPES:
        return errors
    return [invalid(path, type_, "must be a standard limit type or fully qualified")]


def _limit(limit: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates an item: first the names, then the quantities of each resource against each other."""
    type_ = limit.get("type", "")
    name_check = container_resource_name if type_ in ("Pod", "Container") else resource_name
    bounds: dict[str, Amounts] = {field: limit.get(field) or {} for field in ("max", "min")}
    errors = _names(bounds, path, name_check)
    defaults: dict[str, Amounts] = {field: limit.get(field) or {} for field in ("default", "defaultRequest")}
    if type_ == "Pod":
        text = "may not be specified when `type` is 'Pod'"
        errors += [forbidden(f"{path}.{field}", text) for field, amounts in defaults.items() if amounts]
        defaults = {field: {} for field in defaults}
    errors += _names(defaults, path, name_check)
    if type_ == "PersistentVolumeClaim" and not any("storage" in amounts for amounts in bounds.values()):
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", text))
    ratios = {"maxLimitRequestRatio": limit.get("maxLimitRequestRatio") or {}}
    errors += _names(ratios, path, name_check)
    named = {**bounds, **defaults, **ratios}
    for name in {name: None for amounts in named.values() for name in amounts}:
        errors += _validate_quantities(name, {field: amounts.get(name) for field, amounts in named.items()}, path)
    return errors


def _names(lists: Mapping[str, Iterable[str]], path: str, check: Callable[[str, str], list[FieldError]]) -> list[FieldError]:
    return [error for field, names_ in lists.items() for name in names_ for error in check(name, f"{path}.{field}[{name}]")]


#: The smaller field, the larger field, the field with the error, the field whose quantity is shown, and the message.
ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest",
     "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest",
     "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest",
     "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)  # fmt: skip


def _validate_quantities(name: str, texts: Mapping[str, str | None], path: str) -> list[FieldError]:
    """Validates the quantities of one resource against each other."""
    amounts = {field: quantity(text) for field, text in texts.items() if text is not None}
    errors = [
        invalid(f"{path}.{blamed}[{name}]", texts[shown], words.format(texts[less], texts[more]))
        for less, more, blamed, shown, words in ORDER
        if less in amounts and more in amounts and amounts[less] > amounts[more]
    ]
    errors += _ratio(name, texts["maxLimitRequestRatio"], amounts, f"{path}.maxLimitRequestRatio[{name}]")
    request, default = texts["defaultRequest"], texts["default"]
    both = "default" in amounts and "defaultRequest" in amounts
    if both and not is_overcommitable(name) and amounts["default"] != amounts["defaultRequest"]:
        text = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", request, text))
    return errors


def _ratio(name: str, text: str | None, amounts: Mapping[str, Quantity], path: str) -> list[FieldError]:
    """Validates maxLimitRequestRatio: at least 1, and at most the ratio of `max` to `min`."""
    if text is None:
        return []
    ratio = amounts["maxLimitRequestRatio"]
    errors = [invalid(path, text, f"ratio {text} is less than 1")] if ratio < quantity("1") else []
    if "min" not in amounts or "max" not in amounts:
        return errors
    least, most = amounts["min"], amounts["max"]
    if all(amount.value() < MAX_MILLI_VALUE for amount in (ratio, least, most)):
        requested_ratio, low, high = ratio.milli_value() / 1000, least.milli_value(), most.milli_value()
    else:
        requested_ratio, low, high = float(ratio.value()), least.value(), most.value()
    if low and requested_ratio > high / low:
        errors.append(invalid(path, text, f"ratio {text} is greater than max/min = {high / low:f}"))
    return errors

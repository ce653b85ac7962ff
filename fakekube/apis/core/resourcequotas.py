"""resourcequotas: the limits of the total usage of a namespace.

Specified by: pkg/registry/core/resourcequota; ValidateResourceQuota… of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, immutable, invalid, required
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation.resource_lists import (
    QUOTA_RESOURCES,
    is_quota_huge_page,
    quantity,
    quantity_value,
    quota_resource_name,
)
from fakekube.apis.validation.selectors import NOT_AN_OPERATOR
from fakekube.apis.validation.to_internal import to_internal
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
_EXCLUSIVE_SCOPES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))

#: Scopes that support only the operator Exists.
_PLAIN_SCOPES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_PLAIN_SCOPES_TEXT = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
    "ResourceQuotaScopeCrossNamespacePodAffinity"
)

#: Resources whose requests and limits are compared; those that also exist without `requests.`.
COMPARED = ("cpu", "memory", "storage", "ephemeral-storage")
_COMPARED_BARE = ("cpu", "memory")


class ResourceQuotaStrategy(Strategy):
    """The strategy of resourcequotas."""

    has_status = True
    delete_returns_object = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        hard, scopes, selector = spec.get("hard") or {}, spec.get("scopes"), spec.get("scopeSelector")
        errors = _validate_amounts(hard, "spec.hard")
        if scopes:
            errors += _validate_scopes(scopes, hard, "spec.scopes")
        if selector is not None:
            errors += _validate_selector(selector, scopes, hard, "spec.scopeSelector.matchExpressions")
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        scopes, before = ((o.get("spec") or {}).get("scopes") for o in (obj, old))
        errors = self.validate(context, obj)
        return errors if set(scopes or ()) == set(before or ()) else [*errors, immutable("spec.scopes", scopes)]

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return [] if old is not None else _warnings((obj.get("spec") or {}).get("hard") or {})


class ResourceQuotaStatusStrategy(StatusStrategy):
    """The strategy of resourcequotas/status."""

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        status = obj.get("status") or {}
        errors = _validate_amounts(status.get("hard") or {}, "status.hard")
        return errors + _validate_amounts(status.get("used") or {}, "status.used")


def _validate_amounts(amounts: Mapping[str, str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, amount in amounts.items():
        where = f"{path}[{name}]"
        errors += quota_resource_name(name, where) + quantity_value(name, amount, where)
    return errors


def _validate_scopes(scopes: Sequence[str], hard: Iterable[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    unsupported = _count_unsupported(hard)
    for scope in scopes:
        if scope not in SCOPES:
            errors.append(invalid(path, scopes, "unsupported scope"))
        errors += [invalid(path, scopes, _UNSUPPORTED_SCOPE)] * unsupported.get(scope, 0)
    return errors + _forbid_conflicting_scopes(scopes, scopes, path)


_UNSUPPORTED_SCOPE = "unsupported scope applied to resource"


def _count_unsupported(hard: Iterable[str]) -> Mapping[str, int]:
    """Returns for each scope the number of resources to which it does not apply."""
    known = [name for name in hard if name in QUOTA_RESOURCES or is_quota_huge_page(name)]
    return {scope: sum(name not in supported for name in known) for scope, supported in SCOPES.items()}


def _forbid_conflicting_scopes(scopes: Sequence[str], shown: Any, path: str) -> list[FieldError]:
    return [invalid(path, shown, "conflicting scopes") for pair in _EXCLUSIVE_SCOPES if set(pair) <= set(scopes)]


def _validate_selector(
    selector: Mapping[str, Any], scopes: Sequence[str] | None, hard: Iterable[str], path: str
) -> list[FieldError]:
    """Validates the scope selector (validateScopedResourceSelectorRequirement)."""
    errors: list[FieldError] = []
    expressions = selector.get("matchExpressions") or ()
    unsupported = _count_unsupported(hard)
    shown = to_internal("ScopeSelector", selector) if any(unsupported.values()) else None
    for expression in expressions:
        scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
        if scope not in SCOPES:
            errors.append(invalid(f"{path}.scopeName", Typed(scope), "unsupported scope"))
        errors += [invalid(path, shown, _UNSUPPORTED_SCOPE)] * unsupported.get(scope, 0)
        if scope in _PLAIN_SCOPES and operator != "Exists":
            errors.append(invalid(f"{path}.operator", Typed(operator), _PLAIN_SCOPES_TEXT))
        errors += _validate_operator(operator, expression.get("values"), path)
    named = [expression.get("scopeName", "") for expression in expressions]
    return errors + _forbid_conflicting_scopes(named, scopes, path)


def _validate_operator(operator: str, values: Sequence[str] | None, path: str) -> list[FieldError]:
    if operator in ("In", "NotIn"):
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return [] if values else [required(f"{path}.values", text)]
    if operator in ("Exists", "DoesNotExist"):
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [invalid(f"{path}.values", values, text)] if values else []
    return [invalid(f"{path}.operator", Typed(operator), NOT_AN_OPERATOR)]


def _warnings(hard: Mapping[str, str]) -> list[str]:
    """Returns warnings about quotas whose requests are larger than the limits."""
    found = []
    for resource in COMPARED:
        request, limit = f"requests.{resource}", f"limits.{resource}"
        if request not in hard and resource in _COMPARED_BARE:
            request = resource
        if request in hard and limit in hard and quantity(hard[request]) > quantity(hard[limit]):
            found.append(f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})")
    return found

"""limitranges: the limits and the defaults of each container, pod and claim of a namespace.

Specified by: pkg/registry/core/limitrange; ValidateLimitRange of pkg/apis/core/validation; SetDefaults_LimitRangeItem of
pkg/apis/core/v1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, duplicate, forbidden, invalid, required
from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each
from fakekube.apis.validation.resource_lists import (
    MAX_MILLI_VALUE,
    container_resource_name,
    is_overcommitable,
    quantity,
    resource_name,
)
from fakekube.base.chance import random_uuid
from fakekube.base.objects import Object

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
            errors += _validate_type(type_, f"{path}.type")
            if type_ in seen:
                errors.append(duplicate(f"{path}.type", type_))
            seen.add(type_)
            errors += _validate_limit(limit, path)
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


def _validate_type(type_: str, path: str) -> list[FieldError]:
    errors = invalid_each(path, Typed(type_), names.label_key(type_))
    if errors or "/" in type_ or type_ in TYPES:
        return errors
    return [invalid(path, Typed(type_), "must be a standard limit type or fully qualified")]


def _validate_limit(limit: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates an item: first the names, then the quantities of each resource against each other."""
    type_ = limit.get("type", "")
    name_check = container_resource_name if type_ in ("Pod", "Container") else resource_name
    bounds: dict[str, Amounts] = {field: limit.get(field) or {} for field in ("max", "min")}
    errors = _validate_resource_names(bounds, path, name_check)
    defaults: dict[str, Amounts] = {field: limit.get(field) or {} for field in ("default", "defaultRequest")}
    if type_ == "Pod":
        text = "may not be specified when `type` is 'Pod'"
        errors += [forbidden(f"{path}.{field}", text) for field, amounts in defaults.items() if amounts]
        defaults = {field: {} for field in defaults}
    errors += _validate_resource_names(defaults, path, name_check)
    if type_ == "PersistentVolumeClaim" and not any("storage" in amounts for amounts in bounds.values()):
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", text))
    ratios = {"maxLimitRequestRatio": limit.get("maxLimitRequestRatio") or {}}
    errors += _validate_resource_names(ratios, path, name_check)
    named = {**bounds, **defaults, **ratios}
    for name in {name: None for amounts in named.values() for name in amounts}:
        errors += _validate_quantities(name, {field: amounts.get(name) for field, amounts in named.items()}, path)
    return errors


def _validate_resource_names(
    lists: Mapping[str, Iterable[str]], path: str, check: Callable[[str, str], list[FieldError]]
) -> list[FieldError]:
    return [error for field, names_ in lists.items() for name in names_ for error in check(name, f"{path}.{field}[{name}]")]


#: The smaller field, the larger field, the field with the error, the field whose quantity is shown, and the message.
_ORDER = (
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
        for less, more, blamed, shown, words in _ORDER
        if less in amounts and more in amounts and amounts[less] > amounts[more]
    ]
    errors += _validate_ratio(texts["maxLimitRequestRatio"], amounts, f"{path}.maxLimitRequestRatio[{name}]")
    request, default = texts["defaultRequest"], texts["default"]
    both = "default" in amounts and "defaultRequest" in amounts
    if both and not is_overcommitable(name) and amounts["default"] != amounts["defaultRequest"]:
        text = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", request, text))
    return errors


def _validate_ratio(text: str | None, amounts: Mapping[str, Quantity], path: str) -> list[FieldError]:
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

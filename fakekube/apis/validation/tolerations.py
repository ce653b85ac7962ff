"""Tolerations and the effects of taints.

Specified by: pkg/apis/core/validation/validation.go (ValidateTolerations, validateTaintEffect).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, not_supported
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import label_name, one_of, required_one_of
from fakekube.base.golang.strconv import parse_int

__all__ = ["EFFECTS", "taint_effect", "tolerations"]

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
        errors.append(invalid(f"{path}.operator", operator, text))
    if item.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, text))
    errors += _operator(operator, item.get("value", ""), path, comparisons)
    return errors + one_of(effect, f"{path}.effect", EFFECTS, ordered=True) if effect else errors


def _operator(operator: str, value: str, path: str, comparisons: bool) -> list[FieldError]:
    if operator in ("", "Equal"):
        details = names.label_value(value)
        return [invalid(f"{path}.operator", value, ";".join(details))] if details else []
    if operator == "Exists":
        text = "value must be empty when `operator` is 'Exists'"
        return [invalid(f"{path}.operator", value, text)] if value else []
    if operator in ("Lt", "Gt"):
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

"""Validates the fields of x-kubernetes-validations, except for the compilation of rules.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
(ValidateCustomResourceDefinitionOpenAPISchema, the part about XValidations).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fakekube.apiextensions.definition.structural_validation import structural_problem
from fakekube.apiextensions.definition.to_internal import Schema
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, not_supported, required
from fakekube.apimachinery.schema.paths import SchemaPathError, place_at

__all__ = ["rule_errors"]

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NOT_EMPTY, _ONE_LINE = "must be non-empty if specified", "must not contain line breaks"


def rule_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Validates the rules of one node of a schema."""
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        place = f"{path}.x-kubernetes-validations[{index}]"
        yield from _text_errors(rule, place)
        expression, reason = rule.get("messageExpression", ""), rule.get("reason")
        if expression and not expression.strip():
            yield required(f"{place}.messageExpression", "messageExpression must be non-empty if specified")
        if reason is not None and reason not in _REASONS:
            yield not_supported(f"{place}.reason", reason, _REASONS)
        yield from _field_path_errors(rule.get("fieldPath", ""), schema, f"{place}.fieldPath")


def _breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _text_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Returns the first error of rule and message."""
    text, message = rule.get("rule", "").strip(), rule.get("message", "")
    if not text:
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, _NOT_EMPTY)
    elif _breaks(message.strip()):
        yield invalid(f"{path}.message", message, _ONE_LINE)
    elif _breaks(text) and not message:
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")


def _field_path_errors(field_path: str, schema: Schema, path: str) -> Iterator[FieldError]:
    if field_path and not field_path.strip():
        yield invalid(path, field_path, _NOT_EMPTY)
    if _breaks(field_path):
        yield invalid(path, field_path, _ONE_LINE)
    if field_path and not structural_problem(schema):
        try:
            place_at(field_path, schema)
        except SchemaPathError:
            yield invalid(path, field_path, "must be a valid path")

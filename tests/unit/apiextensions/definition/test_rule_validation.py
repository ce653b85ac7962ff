"""The fields of validation rules, except for compilation errors."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiextensions.definition.keyword_validation import rule_errors

SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
REASONS = '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
BAD_PATH = "must be a valid path"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"rule": " "}, ["rule: Required value: rule is not specified"]),
        ({"message": ""}, []),
        ({"message": "  "}, ['message: Invalid value: "  ": must be non-empty if specified']),
        ({"message": "a\nb"}, ['message: Invalid value: "a\\nb": must not contain line breaks']),
        ({"rule": "true\n&& true"}, ["message: Required value: message must be specified if rule contains line breaks"]),
        ({"rule": "true\n&& true", "message": "m"}, []),
        ({"messageExpression": " "}, ["messageExpression: Required value: messageExpression must be non-empty if specified"]),
        ({"reason": "FieldValueInvalid"}, []),
        ({"reason": ""}, [f'reason: Unsupported value: "": supported values: {REASONS}']),
        ({"fieldPath": ".a"}, []),
        ({"fieldPath": "['a']"}, []),
        ({"fieldPath": ".m['key']"}, []),
        ({"fieldPath": "a"}, [f'fieldPath: Invalid value: "a": {BAD_PATH}']),
        ({"fieldPath": ".l[0]"}, [f'fieldPath: Invalid value: ".l[0]": {BAD_PATH}']),
        (
            {"fieldPath": ".a\n"},
            ['fieldPath: Invalid value: ".a\\n": must not contain line breaks', f'fieldPath: Invalid value: ".a\\n": {BAD_PATH}'],
        ),
    ],
)
def test_validation_rule_fields(change: dict[str, Any], expected: list[str]) -> None:
    schema = {**SCHEMA, "x-kubernetes-validations": [{"rule": "true"}, {"rule": "has(self.a)", **change}]}
    found = [error.message for error in rule_errors(schema, "S") if not error.detail.startswith("compilation")]
    assert found == [f"S.x-kubernetes-validations[1].{text}" for text in expected]

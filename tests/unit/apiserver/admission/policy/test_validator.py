"""Decisions, messages and annotations of compiled policies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.apiserver.admission.policy.validating import Action, Result, Validator, validator_of

OBJECT = {"metadata": {"name": "x"}, "data": {"a": "1", "text": "y" * 20_000, "pattern": "z" * 400}}
#: Costs 200,000 of the 10,000,000 of a policy.
COSTLY = "string(object.data.text).matches(string(object.data.pattern))"


def result_of(**spec: Any) -> Result:
    versioned: Any = SimpleNamespace(object=OBJECT, old=None, views={}, attributes=SimpleNamespace(resource=None))
    unused: Any = None
    return Validator(spec).validate(versioned, unused, unused, None, None)


def decisions(**spec: Any) -> list[tuple[Action, str]]:
    return [(decision.action, decision.message) for decision in result_of(**spec).decisions]


def test_message_expression_is_trimmed_or_replaced_by_the_message() -> None:
    messages = {
        "'  told  '": "told",
        "'a\\nb'": "plain",
        "' '": "plain",
        "string(object.none)": "plain",
        "'x' + string(object.data.text)": "plain",
    }
    validations = [{"expression": "false", "messageExpression": source, "message": "plain"} for source in messages]
    assert [message for _, message in decisions(validations=validations)] == list(messages.values())
    assert decisions(validations=[{"expression": "  1 > 2 "}]) == [(Action.DENY, "failed expression: 1 > 2")]


def test_errors_follow_the_failure_policy() -> None:
    validations = [{"expression": "object.none == 1"}]
    assert decisions(validations=validations)[0][0] is Action.DENY
    assert decisions(validations=validations, failurePolicy="Ignore") == [(Action.ADMIT, "")]
    conditions = [{"name": "c", "expression": "object.none == 1"}]
    assert len(decisions(validations=[{"expression": "true"}], matchConditions=conditions)) == 1
    assert decisions(validations=[{"expression": "false"}], matchConditions=conditions, failurePolicy="Ignore") == []


def test_cost_of_unused_message_expressions_is_counted() -> None:
    heavy = [{"expression": "true", "messageExpression": f"{' || '.join([COSTLY] * 4)} ? 'yes' : 'no {n}'"} for n in range(13)]
    problem = (
        "failed messageExpression: validation failed due to running out of cost budget, no further validation rules will be run"
    )
    assert decisions(validations=heavy) == [(Action.DENY, problem)] * 13
    light = [{"expression": "true", "messageExpression": f"'{n} ' + string(object.none)"} for n in range(60)]
    assert decisions(validations=light) == [(Action.ADMIT, "")] * 60


def test_audit_annotations() -> None:
    annotations = [
        {"key": "a", "valueExpression": "' ' + string(object.data.a)"},
        {"key": "b", "valueExpression": "null"},
        {"key": "c", "valueExpression": "string(object.none)"},
    ]
    found = result_of(validations=[{"expression": "true"}], auditAnnotations=annotations).annotations
    assert [(each.key, each.value, bool(each.error)) for each in found] == [("a", "1", False), ("b", "", False), ("c", "", True)]


@pytest.mark.parametrize("source", ["authorizer.path('/').check('get').reason()", "variables.may"])
def test_audit_annotations_cannot_use_the_authorizer(source: str) -> None:
    variables = [{"name": "may", "expression": "authorizer.path('/').check('get').reason()"}]
    (found,) = result_of(variables=variables, auditAnnotations=[{"key": "a", "valueExpression": source}]).annotations
    assert "no such attribute(s): authorizer" in found.error


def test_compiled_policies_are_cached() -> None:
    spec = {"validations": [{"expression": "object.data.size() == 3"}]}
    assert validator_of(spec) is validator_of(dict(spec))
    assert validator_of({**spec, "failurePolicy": "Ignore"}) is not validator_of(spec)

"""Expressions of policies: variables, costs, errors, and match conditions."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.apimachinery.cel.compilation import admission
from fakekube.apiserver.admission.cel import (
    Activation,
    Compiled,
    MatchConditionError,
    MatchConditions,
    OutOfBudget,
    compile_cel,
    evaluate,
)

OBJECT = {"metadata": {"name": "x"}, "data": {"a": "1", "text": "y" * 20_000, "pattern": "z" * 400}}
#: Costs 200,000.
COSTLY = "string(object.data.text).matches(string(object.data.pattern))"


def activation(variables: Mapping[str, Compiled] | None = None) -> Activation:
    versioned: Any = SimpleNamespace(object=OBJECT, old=None, views={})
    resource: Any = None
    return Activation(versioned, resource, None, variables=variables)


def composed(**sources: str) -> tuple[dict[str, Compiled], Any]:
    """Variables, and what is known to the expressions after them."""
    environment, variables = admission(composed=True), {}
    for name, source in sources.items():
        variables[name] = compile_cel(environment, source)
        environment = environment.with_variable(name, variables[name].type)
    return variables, environment


def test_evaluation_results_and_errors() -> None:
    sources = ["object.data.a == '1'", "object.data.b == '1'", "oldObject == null"]
    results, _ = evaluate([compile_cel(admission(), source) for source in sources], activation(), 1_000)
    assert [result and result.value for result in results] == [True, None, True]
    assert results[1] and results[1].error == "expression 'object.data.b == '1'' resulted in error: no such key: b"


def test_compilation_errors_are_reported_at_evaluation() -> None:
    (result,), left = evaluate([compile_cel(admission(), "nobody == 1")], activation(), 5)
    assert result and (result.error or "").startswith("compilation error: compilation failed: ERROR")
    assert left == 5


def test_variable_is_evaluated_once_and_charged_per_run() -> None:
    variables, environment = composed(costly=COSTLY, twice="variables.costly || variables.costly")
    within = activation(variables)
    expressions = [
        compile_cel(environment, "!variables.twice"),
        compile_cel(environment, "!variables.costly && !variables.twice"),
    ]
    spent = []
    for _ in range(2):
        _, left = evaluate(expressions, within, 10_000_000)
        spent.append(10_000_000 - left)
    assert spent[0] == spent[1]
    assert 200_000 < spent[0] < 210_000


def test_failing_variable_fails_only_expressions_using_it() -> None:
    variables, environment = composed(broken="int(object.metadata.name)", unused="object.none")
    expressions = [compile_cel(environment, "variables.broken > 0"), compile_cel(environment, "true")]
    (first, second), _ = evaluate(expressions, activation(variables), 1_000)
    assert first and first.error == (
        "expression 'variables.broken > 0' resulted in error: composited variable \"broken\" fails to evaluate: "
        "type conversion error from 'string' to 'int'"
    )
    assert second and second.value is True


def test_per_expression_limit_and_total_cost_budget() -> None:
    too_much = compile_cel(admission(), " || ".join([COSTLY] * 6))
    (result,), _ = evaluate([too_much], activation(), 10_000_000)
    assert result and (result.error or "").endswith("operation cancelled: actual cost limit exceeded")
    with pytest.raises(OutOfBudget):
        evaluate([compile_cel(admission(), COSTLY)] * 3, activation(), 500_000)


@pytest.mark.parametrize(
    ("sources", "matches"),
    [
        (["true", "object.data.a == '1'"], True),
        (["true", "false"], False),
        (["object.data.b == ''", "false"], False),
        (["false", "object.data.b == ''"], False),
    ],
)
def test_single_false_match_condition_excludes_the_request(sources: list[str], matches: bool) -> None:
    conditions = [{"name": f"c{number}", "expression": source} for number, source in enumerate(sources)]
    assert MatchConditions(conditions, "Fail").match(activation()) is matches


def test_match_condition_errors_follow_the_failure_policy() -> None:
    conditions = [{"name": f"c{name}", "expression": f"object.{name} == 1"} for name in ("a", "b")]
    assert MatchConditions(conditions, "Ignore").match(activation()) is False
    with pytest.raises(MatchConditionError) as raised:
        MatchConditions(conditions, "Fail").match(activation())
    assert str(raised.value) == (
        "[expression 'object.a == 1' resulted in error: no such key: a, "
        "expression 'object.b == 1' resulted in error: no such key: b]"
    )

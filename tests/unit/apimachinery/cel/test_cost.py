"""Cost limits of one evaluation and of one object, and time limits for hostile expressions."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fakekube.apimachinery.cel import compile_rules
from fakekube.apimachinery.cel.compilation import compile_validation
from fakekube.apimachinery.cel.cost.estimated_calls import Range, fixed_range
from fakekube.apimachinery.cel.declarations import declaration
from fakekube.apimachinery.cel.values import MAX_UINT64

STRING = {"type": "string"}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"s": STRING, "l": NUMBERS}}


def failures(*rules: dict[str, Any], **value: Any) -> list[str]:
    compiled = compile_rules({**SCHEMA, "x-kubernetes-validations": list(rules)})
    assert compiled is not None
    return [error.message for error in compiled.validate(value)]


def test_cost_estimates_saturate() -> None:
    assert Range(1, MAX_UINT64).plus(fixed_range(5)) == Range(6, MAX_UINT64)
    assert Range(3, MAX_UINT64).times(fixed_range(2)) == Range(6, MAX_UINT64)
    assert Range(0, MAX_UINT64).scale(0.1) == Range(0, 1844674407370955264)
    assert fixed_range(11).scale(0.1) == fixed_range(2)
    assert fixed_range(1).union(Range(0, 5)) == Range(0, 5)


def test_rule_exceeding_its_cost_limit_stops_validation() -> None:
    rule = {"rule": "self.l.all(x, self.s.contains(self.s))"}
    [found] = failures(rule, {"rule": "false"}, l=[1, 2], s="a" * 9_000)  # 810,000 units each
    said = "no further validation rules will be run due to call cost exceeds limit for rule"
    assert found.endswith(f"'operation cancelled: actual cost limit exceeded': {said}: {rule['rule']}")


def test_cost_budget_of_an_object_is_limited() -> None:
    rule = {"rule": "self.s.contains(self.s)"}
    assert failures(*[rule] * 12, s="a" * 9_000) == []
    [found] = failures(*[rule] * 14, s="a" * 9_000)
    assert found.endswith("validation failed due to running out of cost budget, no further validation rules will be run")


def test_message_expression_exceeding_its_cost_limit_stops_validation() -> None:
    expression = "string(self.l.all(x, self.s.contains(self.s)))"
    rule = {"rule": "false", "messageExpression": expression}
    [found] = failures(rule, {"rule": "false"}, l=[1, 2], s="a" * 9_000)
    said = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
    assert found.endswith(f'{said}: "{expression}"')


@pytest.mark.parametrize(
    "rule",
    [
        "(" * 10_000 + "true" + ")" * 10_000,
        "[" * 10_000 + "]" * 10_000,
        "!" * 9_999 + "true",
        " + ".join(["1"] * 10_000) + " > 0",
        "self" + ".s" * 10_000,
        "self.s" + ".trim()" * 5_000 + " == ''",
        "'" + "a" * 100_001 + "' == ''",
        "9" * 50_000 + " > 1",
        "&&".join(["true"] * 9_000),
        "self.s.matches('" + "(" * 2_000 + "a" + ")" * 2_000 + "')",
        "self.s.matches('(a{1000}){1000}')",
        "'%.999999999f'.format([1.0]) == ''",
        "'" * 5_001,
        "@" * 200,
    ],
)
def test_compilation_time_of_hostile_rules_is_bounded(rule: str) -> None:
    declared = declaration(SCHEMA)
    assert declared is not None
    began = time.process_time()
    compile_validation({"rule": rule}, declared)
    assert time.process_time() - began < 20  # seconds; a hang is what it would be otherwise


@pytest.mark.parametrize(
    "rule",
    [
        "self.s.matches('^(a+)+$')",
        "self.s.matches('(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^a]$')",
        "lists.range(1000000000).size() > 0",
        "lists.range(9000000000000000000).size() > 0",
        "self.s.replace('', self.s).replace('', self.s).size() > 0",
        "self.l.map(x, self.s).join(self.s).size() > 0",
        "optional.of(self.s)" + ".optMap(x, x + x)" * 45 + ".hasValue()",
        "[[self.s]]" + ".map(a, a.map(b, b + b + b + b + b + b + b + b))" * 12 + ".size() > 0",
        "self.l.map(x, self.l).flatten().distinct().size() > 0",
        "self.l.all(x, " * 100 + "true" + ")" * 100,
    ],
)
def test_evaluation_time_of_hostile_rules_is_bounded(rule: str) -> None:
    began = time.process_time()
    failures({"rule": rule}, s="a" * 5_000, l=list(range(300)))
    assert time.process_time() - began < 20

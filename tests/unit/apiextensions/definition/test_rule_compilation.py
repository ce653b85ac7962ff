"""What the rules of a definition can cost, and whether its defaults keep them."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiextensions.definition.keyword_validation import default_errors
from fakekube.apiextensions.definition.rule_compilation import compilation_errors

STRING = {"type": "string"}
ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
)


def obj(*rules: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | (ruled({}, *rules) if rules else {})


def ruled(schema: dict[str, Any], *rules: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [rule if isinstance(rule, dict) else {"rule": rule} for rule in rules]}


def array(items: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **keywords}


def problems(schema: dict[str, Any]) -> list[str]:
    return [error.message for error in compilation_errors(schema, "", ())]


def excess(path: str, factor: str, name: str = "estimated rule cost") -> str:
    return f"{path}: Forbidden: {name} exceeds budget by factor of {factor} {ADVICE}"


@pytest.mark.parametrize(
    ("keywords", "factor"),
    [
        ({}, "more than 100x"),
        ({"maxItems": 1000}, "more than 100x"),
        ({"maxItems": 101}, "10.1x"),
        ({"maxItems": 12}, "1.200002x"),
        ({"maxItems": 10}, "1.000002x"),
        ({"maxItems": 9}, ""),
    ],
)
def test_rule_cost_is_multiplied_by_the_cardinality(keywords: dict[str, Any], factor: str) -> None:
    schema = obj(a=array(ruled({"type": "string", "maxLength": 2500}, "self.contains(self)"), **keywords))
    place = ".properties[a].items.x-kubernetes-validations[0].rule"
    assert problems(schema)[:1] == ([excess(place, factor)] if factor else [])


def test_message_expression_cost_is_counted_once() -> None:
    rule = {"rule": "false", "messageExpression": "self.map(x, self.map(y, x + y).join()).join()"}
    place = ".properties[a].x-kubernetes-validations[0].messageExpression"
    assert problems(obj(a=ruled(array(STRING), rule)))[0] == excess(place, "more than 100x", "estimated messageExpression cost")


def test_total_rule_cost_is_limited() -> None:
    costly = array(ruled({"type": "string", "maxLength": 2500}, "self.contains(self)"), maxItems=9)
    found = problems(obj(**{f"a{number}": costly for number in range(15)}))
    said = "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    assert [message.endswith(said) for message in found] == [True] * 4 + [False]
    name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    assert found[-1] == excess("<nil>", "1.350003x", name)


def test_rules_on_untyped_values_are_rejected() -> None:
    schema = obj(a=ruled({"x-kubernetes-preserve-unknown-fields": True}, "self == 1"))
    assert problems(schema) == [
        ".properties[a].x-kubernetes-validations: Internal error: internal error: failed to construct type information for "
        "x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
    ]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("self == 'y'", ".properties[a].default: Invalid value: \"x\": failed rule: self == 'y'"),
        ("self == 'x'", ""),
        (
            "self.z == 1",
            '.properties[a].default: Invalid value: "string": rule compile error: compilation failed: ERROR: '
            "<input>:1:5: type 'string' does not support field selection\n | self.z == 1\n | ....^",
        ),
        ("self != oldSelf", '.properties[a].default: Invalid value: "x": failed rule: self != oldSelf'),
        (
            {"rule": "oldSelf.hasValue()", "optionalOldSelf": True},
            '.properties[a].default: Invalid value: "x": failed rule: oldSelf.hasValue()',
        ),
    ],
)
def test_defaults_must_satisfy_the_rules(rule: Any, message: str) -> None:
    found = [error.message for error in default_errors(obj(a=ruled({**STRING, "default": "x"}, rule)), "")]
    assert found == ([message] if message else [])


def test_the_number_of_values_is_that_of_all_lists_around_them() -> None:
    """A rule of the items of a list within a list of at most ten runs at most a hundred times, which is cheap."""
    inner = ruled({"type": "string", "maxLength": 10}, "self.contains('x')")
    lists = {"type": "array", "maxItems": 10, "items": {"type": "array", "maxItems": 10, "items": inner}}
    assert compilation_errors({"type": "object", "properties": {"lists": lists}}, "", []) == []


def test_the_number_of_values_of_a_list_without_a_limit_is_not_known() -> None:
    inner = ruled({"type": "string", "maxLength": 100000}, "self.matches('^x*$')")
    lists = {"type": "array", "items": {"type": "array", "maxItems": 10, "items": inner}}
    errors = compilation_errors({"type": "object", "properties": {"lists": lists}}, "", [])
    assert [error.path for error in errors][:1] == [".properties[lists].items.items.x-kubernetes-validations[0].rule"]

"""Compilation of validation rules: errors equal those of the reference server."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.cel.compilation import compile_validation
from fakekube.apimachinery.cel.declarations import declaration

STRING = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": STRING,
        "i": {"type": "integer"},
        "l": {"type": "array", "items": STRING},
        "ios": {"x-kubernetes-int-or-string": True},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "d": {"type": "string", "format": "date-time"},
        "namespace": STRING,
        "o": {"type": "object", "properties": {"x": STRING}},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
    },
}


def problem(rule: str, **more: Any) -> str:
    declared = declaration(SCHEMA)
    assert declared is not None
    verdict = compile_validation({"rule": rule, **more}, declared)
    return verdict.rule_problem or verdict.message_problem


def at(column: int, message: str, rule: str) -> str:
    return f"compilation failed: ERROR: <input>:1:{column}: {message}\n | {rule}\n | {'.' * (column - 1)}^"


@pytest.mark.parametrize(
    ("rule", "column", "message"),
    [
        ("self.foo", 5, "undefined field 'foo'"),
        ("self.any == 1", 5, "undefined field 'any'"),
        ("foo == 1", 1, "undeclared reference to 'foo' (in container '')"),
        ("foo(self.s)", 4, "undeclared reference to 'foo' (in container '')"),
        ("self.s.reverse() == ''", 15, "found no matching overload for 'reverse' applied to 'string.()'"),
        ("self.i + 1.5 > 2.0", 8, "found no matching overload for '_+_' applied to '(int, double)'"),
        ("self.s == null", 8, "found no matching overload for '_==_' applied to '(string, null)'"),
        ("self.d == '2024'", 8, "found no matching overload for '_==_' applied to '(timestamp, string)'"),
        ("1 == 1.0", 3, "found no matching overload for '_==_' applied to '(int, double)'"),
        ("self.s ? 1 : 2", 8, "found no matching overload for '_?_:_' applied to '(string, int, int)'"),
        ("self.i && true", 5, "expected type 'bool' but found 'int'"),
        ("self.l.all(x, x)", 15, "expected type 'bool' but found 'string'"),
        ("self.i in [1, 2.0]", 15, "expected type 'int' but found 'double'"),
        ("self.s.x == 1", 7, "type 'string' does not support field selection"),
        ("self.s.matches('[')", 16, "invalid matches argument"),
        ("duration('x') > duration('1s')", 10, "invalid duration argument"),
        ("[1, 2", 6, "Syntax error: mismatched input '<EOF>' expecting {']', ','}"),
    ],
)
def test_compile_errors_have_column_and_message(rule: str, column: int, message: str) -> None:
    assert problem(rule) == at(column, message, rule)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("self.s", "cel expression must evaluate to a bool"),
        ("int('a') == 1", "program instantiation failed: type conversion error from 'string' to 'int'"),
        ("self.s.find('(') == ''", "program instantiation failed: error parsing regexp: missing closing ): `(`"),
    ],
)
def test_expressions_that_are_not_valid_rules(rule: str, message: str) -> None:
    assert problem(rule) == message


@pytest.mark.parametrize(
    "rule",
    [
        "self.namespace == 'x'",
        "self.__namespace__ == 'x'",
        "self.ios == 5 || self.ios == 'x'",
        "self.i < 1.5",
        "self.?o.x.hasValue()",
        "'%s'.format([[1, 'a', null]]) == ''",
        "self.m.all(k, v, v > 0 && k != '')",
        "type(self.d) == google.protobuf.Timestamp",
        "self == oldSelf",
        "[].all(x, x)",
    ],
)
def test_valid_rules_compile(rule: str) -> None:
    assert problem(rule) == ""


def test_message_expression_must_be_a_string() -> None:
    assert problem("true", messageExpression="1") == "messageExpression must evaluate to a string"


def test_optional_old_self_has_optional_type() -> None:
    assert problem("oldSelf.hasValue()", optionalOldSelf=True) == ""
    assert "found no matching overload for 'hasValue'" in problem("oldSelf.hasValue()")

from __future__ import annotations

from typing import Any

import pytest

from fakekube.base.golang import strconv

VALUE = {"b": [1, "x", None, True], "a": {"c": 1.5}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (VALUE, "map[a:map[c:1.5] b:[1 x <nil> true]]"),
        ([], "[]"),
        (1e6, "1e+06"),
        (2.0, "2"),
        (1e21, "1e+21"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-0.25, "-0.25"),
        (0.0, "0"),
        (999999.0, "999999"),
        (123456789.5, "1.234567895e+08"),
    ],
)
def test_format_verb_v(value: Any, text: str) -> None:
    assert strconv.plain(value) == text


def test_json_has_exponents_only_below_a_millionth() -> None:
    values = [0.00001, 0.000001, -0.0000025, 1e-7, "2e-6"]
    assert strconv.go_json({"a": values}) == '{"a":[0.00001,0.000001,-0.0000025,1e-7,"2e-6"]}'


def test_format_verb_s_marks_non_strings() -> None:
    assert strconv.string_verb(VALUE) == ("map[a:map[c:%!s(float64=1.5)] b:[%!s(int64=1) x %!s(<nil>) %!s(bool=true)]]")


def test_format_verb_sharp_v() -> None:
    assert strconv.go_syntax(VALUE) == (
        'map[string]interface {}{"a":map[string]interface {}{"c":1.5}, "b":[]interface {}{1, "x", interface {}(nil), true}}'
    )


@pytest.mark.parametrize(
    ("value", "text"), [({}, "map[string]interface {}"), ([], "[]interface {}"), (True, "bool"), (1, "int64"), (1.0, "float64")]
)
def test_format_verb_t_of_types(value: Any, text: str) -> None:
    assert strconv.go_type(value) == text
    assert strconv.go_type_or_nil(value) == text


def test_type_of_nil() -> None:
    assert strconv.go_type_or_nil(None) == "%!s(<nil>)"

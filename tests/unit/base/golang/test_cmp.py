"""The reporter of go-cmp, with texts of the real one (v0.7; some are in answers of kube-apiserver 1.33)."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.base.golang.cmp import Kind, Value, diff


def text(value: str) -> Value:
    return Value(Kind.STRING, "string", value)


def number(value: int) -> Value:
    return Value(Kind.SCALAR, "int", str(value), zero=not value)


def texts(*values: str) -> Value:
    return Value(Kind.SLICE, "[]string", [text(value) for value in values])


def struct(**fields: Value) -> Value:
    return Value(Kind.STRUCT, "p.T", fields)


def entries(**values: str) -> Value:
    return Value(Kind.MAP, "map[string]string", {name: text(value) for name, value in values.items()})


NIL = Value(Kind.SLICE, "[]string")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (text("a"), text("a"), ""),
        (text("a"), text("b"), '  string(\n- \t"a",\n+ \t"b",\n  )\n'),
        (struct(A=number(1), B=text("x")), struct(A=number(2), B=text("x")), '  p.T{\n- \tA: 1,\n+ \tA: 2,\n  \tB: "x",\n  }\n'),
        (struct(A=NIL), struct(A=texts("x")), '  p.T{\n- \tA: nil,\n+ \tA: []string{"x"},\n  }\n'),
        (texts("a", "b", "c"), texts("b", "c", "d"), '  []string{\n- \t"a",\n  \t"b",\n  \t"c",\n+ \t"d",\n  }\n'),
        (
            entries(a="1", b="2"),
            entries(a="1", c="2"),
            '  map[string]string{\n  \t"a": "1",\n- \t"b": "2",\n+ \t"c": "2",\n  }\n',
        ),
    ],
)
def test_differences_read_as_those_of_go(old: Value, new: Value, expected: str) -> None:
    assert diff(old, new) == expected


def test_what_is_far_from_a_difference_is_counted() -> None:
    fields: dict[str, Any] = {name: number(1) for name in "ABCDEFG"}
    found = diff(struct(**fields), struct(**{**fields, "D": number(2)}))
    assert found == "  p.T{\n  \tA: 1,\n  \tB: 1,\n  \tC: 1,\n- \tD: 1,\n+ \tD: 2,\n  \tE: 1,\n  \tF: 1,\n  \tG: 1,\n  }\n"
    more = {**fields, **{name: number(0) for name in "HIJ"}}
    assert diff(struct(**more), struct(**{**more, "A": number(2)})).endswith(
        "  \tB: 1,\n  \tC: 1,\n  \t... // 7 identical fields\n  }\n"
    )

"""Label selectors as parts of objects."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.selectors import SelectorError, from_label_selector


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "k", "operator": operator, **({"values": list(values)} if values else {})}


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"matchLabels": {}, "matchExpressions": []}, ""),
        ({"matchLabels": None}, ""),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"matchExpressions": [expression("In", "y", "x")]}, "k in (x,y)"),
        ({"matchExpressions": [expression("NotIn", "x")]}, "k notin (x)"),
        ({"matchExpressions": [expression("Exists"), expression("DoesNotExist")]}, "k,!k"),
        ({"matchExpressions": [expression("Exists")], "matchLabels": {"z": "", "a": ""}}, "a=,k,z="),
    ],
)
def test_label_selector_object_to_text(selector: dict[str, Any], text: str) -> None:
    assert str(from_label_selector(selector)) == text


def test_nil_selector_matches_nothing_and_empty_selector_everything() -> None:
    assert not from_label_selector(None).matches({"a": "b"})
    assert from_label_selector({}).matches(None)


def test_match_labels_and_match_expressions_must_all_match() -> None:
    selector = from_label_selector(
        {"matchLabels": {"a": "1"}, "matchExpressions": [expression("In", "x", "y"), expression("NotIn", "y")]}
    )
    assert selector.matches({"a": "1", "k": "x"})
    assert not selector.matches({"a": "1", "k": "y"})
    assert not selector.matches({"a": "1"})
    assert not selector.matches({"k": "x"})


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (expression("Gt", "1"), '"Gt" is not a valid label selector operator'),
        ({"key": "k"}, '"" is not a valid label selector operator'),
        (expression("In"), "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
        (expression("Exists", "x"), 'values: Invalid value: ["x"]: values set must be empty for exists and does not exist'),
    ],
)
def test_invalid_match_expressions_are_rejected(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(SelectorError) as refused:
        from_label_selector({"matchExpressions": [wrong]})
    assert str(refused.value) == problem

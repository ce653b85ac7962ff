"""What label selectors match, against a naive evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.selectors import LabelRequirement, LabelSelector, Operator, SelectorError, parse_labels
from fakekube.apimachinery.selectors.labels import EVERYTHING, NOTHING, requirement

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "x", "y", "1", "05", "7", "9223372036854775807", "9223372036854775808", "1x"])
LABELS = st.dictionaries(KEYS, VALUES)


def number(text: str | None) -> int | None:
    if text is None or not text.isdigit() or int(text) >= 2**63:
        return None
    return int(text)


def compare(value: str | None, bound: str, test: Callable[[int, int], bool]) -> bool:
    left, right = number(value), number(bound)
    return left is not None and right is not None and test(left, right)


NAIVE: Mapping[Operator, Callable[[str | None, tuple[str, ...]], bool]] = {
    Operator.EQUALS: lambda value, values: value is not None and value in values,
    Operator.DOUBLE_EQUALS: lambda value, values: value is not None and value in values,
    Operator.NOT_EQUALS: lambda value, values: value is None or value not in values,
    Operator.IN: lambda value, values: value is not None and value in values,
    Operator.NOT_IN: lambda value, values: value is None or value not in values,
    Operator.EXISTS: lambda value, values: value is not None,
    Operator.DOES_NOT_EXIST: lambda value, values: value is None,
    Operator.GREATER_THAN: lambda value, values: compare(value, values[0], int.__gt__),
    Operator.LESS_THAN: lambda value, values: compare(value, values[0], int.__lt__),
}


@st.composite
def requirements(draw: st.DrawFn) -> LabelRequirement:
    operator = draw(st.sampled_from(Operator))
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        return requirement(draw(KEYS), operator)
    if operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        return requirement(draw(KEYS), operator, [draw(st.sampled_from(["0", "1", "7", "9223372036854775807"]))])
    several = operator in (Operator.IN, Operator.NOT_IN)
    return requirement(draw(KEYS), operator, draw(st.lists(VALUES, min_size=1, max_size=3 if several else 1)))


@given(st.lists(requirements(), max_size=3), LABELS)
def test_selector_matches_if_all_requirements_match(wanted: list[LabelRequirement], labels: dict[str, str]) -> None:
    expected = all(NAIVE[one.operator](labels.get(one.key), one.values) for one in wanted)
    selector = LabelSelector(tuple(wanted))
    assert selector.matches(labels) is expected
    assert parse_labels(str(selector)).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "matches"),
    [("", True), ("a", False), ("!a", True), ("a=", False), ("a!=b", True), ("a notin (b)", True), ("a>0", False)],
)
def test_missing_labels_match_like_irrelevant_labels(text: str, matches: bool) -> None:
    selector = parse_labels(text)
    assert [selector.matches(labels) for labels in (None, {}, {"z": "b"})] == [matches] * 3


def test_everything_and_nothing_selectors() -> None:
    assert (EVERYTHING.empty, EVERYTHING.matches({"a": "b"}), str(EVERYTHING)) == (True, True, "")
    assert (NOTHING.empty, NOTHING.matches({"a": "b"}), NOTHING.matches(None)) == (False, False, False)
    assert not parse_labels("a").empty
    assert parse_labels("") == EVERYTHING != NOTHING


@pytest.mark.parametrize(
    ("operator", "values", "problem"),
    [
        (Operator.IN, (), "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
        (Operator.EXISTS, ("x",), 'values: Invalid value: ["x"]: values set must be empty for exists and does not exist'),
        (Operator.EQUALS, ("x", "y"), 'values: Invalid value: ["x","y"]: exact-match compatibility requires one single value'),
        (Operator.LESS_THAN, ("1", "2"), "values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required"),
    ],
)  # fmt: skip
def test_operators_check_their_number_of_values(operator: Operator, values: tuple[str, ...], problem: str) -> None:
    with pytest.raises(SelectorError) as refused:
        requirement("a", operator, values)
    assert str(refused.value) == problem

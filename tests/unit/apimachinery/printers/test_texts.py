from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.printers import texts
from tests.unit.apimachinery.printers.rows import AGES, ago

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

DURATIONS = [
    (-2, "<invalid>"), (-1.9, "0s"), (-1, "0s"), (0, "0s"), (0.9, "0s"), (119, "119s"), (120, "2m"), (121, "2m1s"), (10 * MINUTE - 1, "9m59s"),
    (10 * MINUTE, "10m"), (3 * HOUR - 1, "179m"), (3 * HOUR, "3h"), (3 * HOUR + 5 * MINUTE, "3h5m"), (8 * HOUR - 1, "7h59m"), (8 * HOUR, "8h"),
    (2 * DAY - 1, "47h"), (2 * DAY, "2d"), (2 * DAY + 5 * HOUR, "2d5h"), (8 * DAY - 1, "7d23h"), (8 * DAY, "8d"), (2 * YEAR - 1, "729d"),
    (2 * YEAR, "2y"), (2 * YEAR + 3 * DAY, "2y3d"), (8 * YEAR - 1, "7y364d"), (8 * YEAR, "8y"), (100 * YEAR, "100y"),
]  # fmt: skip


@pytest.mark.parametrize(("seconds", "text"), DURATIONS)
def test_human_duration(seconds: float, text: str) -> None:
    assert texts.human_duration(seconds) == text


@given(st.floats(0, 200 * YEAR))
def test_human_duration_is_at_most_six_characters(seconds: float) -> None:
    assert len(texts.human_duration(seconds)) <= 6


def test_ages_and_intervals() -> None:
    assert texts.since(None, AGES) == "<unknown>"
    assert texts.since(ago(hours=2), AGES) == "120m"
    assert texts.since("2026-01-10T11:59:00.500000Z", AGES) == "59s"
    assert texts.duration_between(ago(hours=3), ago(hours=1)) == "120m"
    assert texts.age({"metadata": {}}, AGES) == "<unknown>"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, ""),
        ({}, ""),
        ({"matchLabels": {"z": "1", "a": "2"}}, "a=2,z=1"),
        (
            {
                "matchLabels": {"z": "1"},
                "matchExpressions": [
                    {"key": "m", "operator": "In", "values": ["c", "b"]}, {"key": "b", "operator": "Exists"},
                    {"key": "n", "operator": "DoesNotExist"}, {"key": "o", "operator": "NotIn", "values": ["q"]},
                ],
            },
            "b,m in (b,c),!n,o notin (q),z=1",
        ),
        ({"matchExpressions": [{"key": "a", "operator": "Nope"}]}, "<error>"),
    ],
)  # fmt: skip
def test_selectors(selector: Any, expected: str) -> None:
    assert texts.selector(selector) == expected


def test_truncated_lists() -> None:
    assert texts.shorten_list([]) == "<unset>"
    assert texts.shorten_list([], empty="") == ""
    assert texts.shorten_list(["a", "b", "c"]) == "a,b,c"
    assert texts.shorten_list(["a", "b", "c", "d", "e"]) == "a,b,c + 2 more..."


def test_labels() -> None:
    assert texts.labels(None) == "<none>"
    assert texts.labels({"b": "1", "a": ""}) == "a=,b=1"

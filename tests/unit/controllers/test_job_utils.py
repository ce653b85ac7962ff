"""Completion indexes as sets of intervals, against sets of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.controllers.job.indexed_job_utils import OrderedIntervals, first_pending_indexes, parse_indexes

INDEXES = st.sets(st.integers(0, 30))


def numbers(intervals: OrderedIntervals) -> set[int]:
    return {index for first, last in intervals.items for index in range(first, last + 1)}


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((3,), "3"), ((1, 2), "1,2"), ((1, 2, 3), "1-3"), ((0, 2, 3, 4, 7), "0,2-4,7")]
)
def test_print_and_parse(indexes: tuple[int, ...], text: str) -> None:
    assert str(OrderedIntervals.from_indexes(indexes)) == text
    assert parse_indexes(text, 10) == OrderedIntervals.from_indexes(indexes)


@pytest.mark.parametrize(("text", "found"), [("0,x,2", {0, 2}), ("1-9", {1, 2, 3}), ("1,2,4", {1, 2}), ("0,1-2", {0, 1, 2})])
def test_invalid_indexes_and_those_beyond_the_limit_are_dropped(text: str, found: set[int]) -> None:
    assert numbers(parse_indexes(text, 4)) == found


@given(INDEXES, INDEXES)
def test_merge_total_overlap_and_membership(one: set[int], other: set[int]) -> None:
    left, right = OrderedIntervals.from_indexes(one), OrderedIntervals.from_indexes(other)
    assert numbers(left.merge(right)) == one | other
    assert left.total() == len(one)
    assert left.overlap(right) == len(one & other)
    assert {index for index in range(31) if index in left} == one
    assert parse_indexes(str(left), 31) == left


@given(INDEXES, st.integers(0, 8), st.integers(0, 31))
def test_the_lowest_free_indexes_are_pending(taken: set[int], count: int, completions: int) -> None:
    free = [index for index in range(completions) if index not in taken]
    assert first_pending_indexes(OrderedIntervals.from_indexes(taken), count, completions) == free[:count]

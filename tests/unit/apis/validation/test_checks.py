from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fakekube.apis.validation.checks import repeated_indices


@given(st.lists(st.sampled_from("abc")))
def test_repeated_items_are_those_that_stand_before(items: list[str]) -> None:
    assert repeated_indices(items) == [index for index, item in enumerate(items) if item in items[:index]]


def test_very_many_items_take_a_time_in_proportion() -> None:
    assert len(repeated_indices(["a"] * 500_000)) == 499_999  # minutes, if each were compared with all before it

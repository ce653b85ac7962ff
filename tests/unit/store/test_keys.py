"""The sorted set of keys against a sorted list, with chunks small enough to split and vanish."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.store import versions
from fakekube.store.versions import SortedKeys

NAMES = st.text(alphabet="ab", max_size=5)
ENDS = st.none() | NAMES


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "_MAXIMUM", 3)
        yield


def made_of(changes: list[str]) -> tuple[SortedKeys, list[str]]:
    """Each name is added, or removed if it is there."""
    made, there = SortedKeys(), set[str]()
    for name in changes:
        if name in there:
            made.remove(name)
        else:
            made.add(name)
        there ^= {name}
    return made, sorted(there)


@given(st.lists(NAMES, max_size=60), NAMES, ENDS, st.integers(0, 7))
def test_key_ranges_equal_those_of_a_sorted_list(changes: list[str], first: str, end: str | None, limit: int) -> None:
    made, plain = made_of(changes)
    expected = [name for name in plain if first <= name and (end is None or name < end)]
    assert made.first_keys((first, end), 0) == expected
    assert made.first_keys((first, end), limit) == (expected[:limit] if limit else expected)
    assert made.count((first, end)) == len(expected)
    assert made.count(("", None)) == len(plain)


@given(st.lists(NAMES, max_size=40), st.lists(NAMES, max_size=10))
def test_copy_is_independent_of_the_original(changes: list[str], more: list[str]) -> None:
    made, plain = made_of(changes)
    assert made.count(("", None)) == len(plain)
    twin = made.copy()
    there = set(plain)
    for name in more:
        if name in there:
            twin.remove(name)
        else:
            twin.add(name)
        there ^= {name}
    assert made.first_keys(("", None), 0) == plain
    assert twin.first_keys(("", None), 0) == sorted(there)
    assert (made.count(("", None)), twin.count(("", None))) == (len(plain), len(there))

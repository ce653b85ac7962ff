"""The rules of the house (house_rules.py): each room has a budget of findings for each rule, which may only shrink."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit import house_rules as rules


@pytest.fixture(scope="module", autouse=True)
def _forget_the_trees() -> Iterator[None]:
    """Frees the trees of all modules, which the collector would look at during all later tests."""
    yield
    rules.functions.cache_clear()
    rules.sources.cache_clear()


def test_rooms_keep_to_their_budgets() -> None:
    excess = {
        f"{room}, {rule}": f"{count}, at most {allowed[rule]}"
        for room in rules.rooms()
        for allowed in [rules.budget(room)]
        for rule, count in rules.counts(room).items()
        if count > allowed[rule]
    }
    assert not excess, "`python tests/unit/house_rules.py ROOM` lists the findings of a room"


def test_budgets_belong_to_rooms() -> None:
    assert {path.stem for path in rules.BUDGETS.iterdir()} <= set(rules.rooms())


def test_exceptions_are_needed() -> None:
    files = {name: rules.PACKAGE / name for name in rules.SIZES}
    needless = [name for name, file in files.items() if not file.exists() or 60 <= file.read_text().count("\n") <= 700]
    assert not needless

"""The rules of the house (house_rules.py): each room has a budget of findings for each rule, which may only shrink."""

from __future__ import annotations

import pytest

from tests.unit import house_rules as rules


pytestmark = pytest.mark.xdist_group("house")  # the modules are parsed once


@pytest.mark.parametrize("room", rules.rooms())
def test_room_keeps_to_its_budget(room: str) -> None:
    allowed = rules.budget(room)
    excess = {rule: f"{count}, at most {allowed[rule]}" for rule, count in rules.counts(room).items() if count > allowed[rule]}
    assert not excess, f"`python tests/unit/house_rules.py {room}` lists all findings"


def test_budgets_belong_to_rooms() -> None:
    assert {path.stem for path in rules.BUDGETS.iterdir()} <= set(rules.rooms())


def test_exceptions_are_needed() -> None:
    files = {source.name: source for source in rules.sources()}
    needless = [name for name in rules.SIZES if name not in files or 60 <= files[name].text.count("\n") <= 700]
    assert not needless

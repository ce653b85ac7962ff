"""The rules of the house (house_rules.py): each room has a budget of findings for each rule, which may only shrink."""

from __future__ import annotations

from tests.unit import house_rules as rules


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
    files = {source.name: source for source in rules.sources()}
    needless = [name for name in rules.SIZES if name not in files or 60 <= files[name].text.count("\n") <= 700]
    assert not needless

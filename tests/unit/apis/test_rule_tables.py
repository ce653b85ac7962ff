"""Rule tables: what holds in which minor and by which gate, and the page that is made of them."""

from __future__ import annotations

from fakekube.apimachinery import features
from fakekube.apimachinery.features import Emulation, emulating, emulation
from fakekube.apis.validation.rules import (
    NEVER,
    Rule,
    Rules,
    at_least,
    by_minor,
    changes,
    each,
    fixed,
    immutable,
    needed,
    optional,
    rules,
    struct,
    then,
)
from tests.unit.apis import rule_pages

INNER = rules("Inner", "ValidateInner", Rule("count", at_least(1)))
OUTER = rules(
    "Outer",
    "ValidateOuter",
    *by_minor("name", (needed("must be set"), 0, 37), (needed(), 37, NEVER)),
    Rule("inner", struct(INNER)),
    Rule("items", each(INNER)),
    Rule("deep.value", optional(at_least(2))),
    Rule("gated", needed(), gate="CoordinatedLeaderElection"),
    Rule("ungated", needed(), gate="!CoordinatedLeaderElection"),
)
FULL = {"name": "n", "inner": {"count": 1}, "items": [{"count": 1}], "gated": 1, "ungated": 1}


def messages(table: Rules, value: dict[str, object], emulated: Emulation = features.DEFAULT, path: str = "") -> list[str]:
    with emulating(emulated):
        return [error.message for error in table.validate(value, path)]


def test_rows_are_checked_in_order_at_their_paths() -> None:
    assert messages(OUTER, FULL) == []
    wrong = {"inner": {"count": 0}, "items": [{"count": 1}, {}], "deep": {"value": 1}, "ungated": 1}
    assert messages(OUTER, wrong, emulation("1.36"), "spec") == [
        "spec.name: Required value: must be set",
        "spec.inner.count: Invalid value: 0: must be greater than or equal to 1",
        "spec.items[1].count: Invalid value: 0: must be greater than or equal to 1",
        "spec.deep.value: Invalid value: 1: must be greater than or equal to 2",
    ]


def test_rows_hold_by_minor_and_gate() -> None:
    unnamed = {**FULL, "name": ""}
    assert messages(OUTER, unnamed, emulation("1.36")) == ["name: Required value: must be set"]
    assert messages(OUTER, unnamed, emulation("1.37")) == ["name: Required value"]
    bare = {**FULL, "gated": None, "ungated": None}
    on = emulation("1.36", {"CoordinatedLeaderElection": True})
    assert messages(OUTER, bare, on) == ["gated: Required value"]
    assert messages(OUTER, bare, emulation("1.36")) == ["ungated: Required value"]


def test_a_chain_of_checks_stops_at_the_first_error() -> None:
    table = rules("S", "ValidateS", Rule("n", then(needed(), at_least(5), at_least(9))))
    assert [len(messages(table, {"n": n})) for n in (None, 3, 7, 9)] == [1, 1, 1, 0]


def test_changes_compare_old_and_new() -> None:
    table = changes("S", "ValidateSUpdate", *by_minor("a", (immutable(), 0, 37), (fixed(), 37, NEVER)))
    for minor, shown in (("1.36", '"y"'), ("1.37", "null")):
        with emulating(emulation(minor)):
            assert [error.message for error in table.validate({"a": "y"}, {"a": "x"}, "spec")] == [
                f"spec.a: Invalid value: {shown}: field is immutable"
            ]
            assert table.validate({"a": "x"}, {"a": "x"}) == []


def test_the_page_of_rules_is_current() -> None:
    """`python -m tests.unit.apis.rule_pages` writes it."""
    assert rule_pages.PAGE.read_text(encoding="utf-8") == rule_pages.page()


def test_every_row_with_a_field_is_shown_by_a_recording() -> None:
    unproven = {f"{row.table.struct}.{row.row.field}" for row in rule_pages.rows() if row.row.field and not row.proofs}
    assert unproven == set()

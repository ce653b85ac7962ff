"""The table of rules."""

from __future__ import annotations

from pathlib import Path

from fakekube.checker.expectations import Expectation
from fakekube.checker.rule import Outcome, Verdict
from fakekube.checker.rules import all_rules, chosen
from fakekube.checker.runner import rows

CATALOGUE = [
    *(f"W{number}" for number in range(1, 17)),
    "P1 P2 R1 R2 R3 R4 C1 C2 C3 C4 C5 C6 C7 C8 V1 D1 D2 A1 L1 N1 N2 N3 S1 S2 S3",
]
IDS = " ".join(CATALOGUE).split()


def test_every_row_of_the_catalogue_is_there_in_its_order() -> None:
    assert list(dict.fromkeys(rule.id for rule in all_rules())) == IDS


def test_every_rule_says_what_a_report_shows_and_can_be_told_apart() -> None:
    rules = all_rules()
    assert len({(rule.id, rule.provocation) for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.legality in ("A", "B", "C")
        assert rule.obligation
        assert rule.advice
        assert rule.source
        assert type(rule).__doc__


def test_every_rule_is_on_the_page_for_authors_of_clients() -> None:
    page = (Path(__file__).parents[3] / "docs" / "client-rules.md").read_text(encoding="utf-8")
    assert [rule for rule in IDS if f"\n### {rule} " not in page] == []


def test_the_page_tells_what_each_rule_asks_and_provokes() -> None:
    page = (Path(__file__).parents[3] / "docs" / "client-rules.md").read_text(encoding="utf-8")
    parts = {part.split()[0]: " ".join(part.split()).lower() for part in page.split("\n### ")[1:]}
    texts = [(rule.id, text, rule.legality) for rule in all_rules() for text in (rule.obligation, rule.advice, rule.provocation)]
    assert [(rule, text) for rule, text, _ in texts if text.lower() not in parts[rule]] == []
    assert [rule.id for rule in all_rules() if f"{rule.provocation} ({rule.legality})".lower() not in parts[rule.id]] == []


def test_a_named_rule_has_all_its_provocations_and_a_class_only_its_own() -> None:
    assert {rule.legality for rule in chosen(["w14"], [])} == {"A", "B", "C"}
    assert {rule.legality for rule in chosen(None, ["C"])} == {"C"}


def test_the_worst_verdict_of_a_row_counts() -> None:
    one, other = chosen(["W1"], [])
    (row,) = rows([one, other], {one: Verdict.passed(), other: Verdict(Outcome.FAIL, ["what happened"])})
    assert (row.verdict, row.evidence) == ("fail", [f"{other.provocation}: what happened"])
    (row,) = rows([one, other], {one: Verdict.passed(), other: Verdict.not_exercised("why")})
    assert row.verdict == "pass"


def test_signs_are_read() -> None:
    sign = Expectation.parse("widgets.example.com/{name}-x:status.example\\.com/a.0=Ready")
    assert (sign.resource, sign.name, sign.path, sign.value) == (
        "widgets.example.com",
        "{name}-x",
        ("status", "example.com/a", "0"),
        "Ready",
    )

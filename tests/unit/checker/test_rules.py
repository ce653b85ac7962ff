"""The table of rules."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fakekube.checker import execution, runner
from fakekube.checker.reaction import Expectation
from fakekube.checker.rows import rows_of
from fakekube.checker.rule import Rule
from fakekube.checker.rules import LIVES, UnknownRule, all_rules, choose_rules, find_provocation, group_by_life, step_rule
from fakekube.checker.verdict import Run, Symptom, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.checker.report import RuleReport

CATALOGUE = [
    *(f"W{number}" for number in range(1, 17)),
    "P1 P2 R1 R2 R3 R4 R5 R6 R7 C1 C2 C3 C4 C5 C6 C7 C8 C9 V1 D1 D2 D3 A1 L1 N1 N2 N3 S1 S2 S3",
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
    assert {rule.legality for rule in choose_rules(["w14"], [])} == {"A", "B", "C"}
    assert {rule.legality for rule in choose_rules(None, ["C"])} == {"C"}


def test_a_provocation_is_found_by_its_key() -> None:
    keys = [rule.key for rule in all_rules()]
    assert len(set(keys)) == len(keys)
    assert find_provocation("w8/slices").key == "W8/slices"
    assert find_provocation("W4").key == "W4/errors"
    with pytest.raises(UnknownRule, match="there are W8/slices, W8/together"):
        find_provocation("W8/none")


def row_of(id_: str, *verdicts: Verdict) -> RuleReport:
    rules = choose_rules([id_], [])[: len(verdicts)]
    (row,) = rows_of(rules, {rule: Run(verdict, 1.0) for rule, verdict in zip(rules, verdicts, strict=True)})
    return row


def test_rules_that_share_a_life_begin_when_the_client_runs_and_do_not_start_it_again() -> None:
    rules = {rule.key: rule for rule in all_rules()}
    shared = [rules[key] for life in LIVES for key in life]
    assert len({rule.key for rule in shared}) == len(shared)
    assert [
        rule.key for rule in shared if rule.at_start or rule.restarts or rule.distorts or rule.token_file or rule.is_step
    ] == []
    assert [rule.key for rule in shared if rule.fallback or rule.on_baseline or rule.in_every_run] == []
    own = {"prepare": Rule.prepare, "cluster_arguments": Rule.cluster_arguments}
    assert [rule.key for rule in shared for name, default in own.items() if getattr(type(rule), name) is not default] == []


def test_rules_are_grouped_by_the_lives_of_which_they_are_part() -> None:
    chosen = [rule for rule in all_rules() if rule.key in ("W5/ends", "C2/update", "C1/conflict", "W13/relist")]
    assert [[rule.key for rule in life] for life in group_by_life(chosen)] == [
        ["W13/relist"],
        ["C1/conflict", "C2/update"],
        ["W5/ends"],
    ]


@pytest.mark.parametrize(
    ("seconds", "lives"), [(0.0, ["W13/relist", "C1/conflict C2/update", "W5/ends"]), (7.0, ["C1/conflict", "C2/update"])]
)
def test_rules_of_a_client_that_lists_rarely_have_a_client_each(seconds: float, lives: list[str]) -> None:
    chosen = [rule for rule in all_rules() if rule.key in " ".join(lives).split()]
    baseline: Any = SimpleNamespace(poll_seconds=lambda: seconds)
    found = {" ".join(rule.key for rule in life) for life in runner.lives_of(baseline, chosen)}
    assert found == set(lives)


class Lives:
    """What `run_in_turn` does with clients whose verdicts are known."""

    def __init__(self, *outcomes: Verdict, ends_after: int = 9) -> None:
        self.verdicts = list(outcomes)
        self._left = ends_after
        self.kept: list[Verdict] = []
        self.stopped = 0
        self.begun = False

    def has_begun(self) -> bool:
        return self.begun

    def exercise(self, rule: Rule) -> Verdict:
        self._left -= 1
        self.begun = True
        return self.verdicts.pop(0)

    def goes_on(self) -> bool:
        return self._left > 0

    def keep(self, verdict: Verdict) -> None:
        self.kept.append(verdict)

    def stop(self) -> None:
        self.stopped += 1


GOOD, BAD, NONE = Verdict.success(), Verdict.failure("what happened"), Verdict.not_exercised("why")


@pytest.mark.parametrize(
    ("outcomes", "count"),
    [
        ((GOOD, GOOD, GOOD), [GOOD, GOOD, GOOD]),
        ((GOOD, BAD, GOOD), [GOOD]),  # it may suffer from the first one
        ((GOOD, NONE, BAD), [GOOD]),
        ((GOOD, NONE, GOOD), [GOOD, None, GOOD]),
        ((BAD, GOOD, GOOD), [BAD]),
        ((NONE, GOOD, GOOD), [NONE, GOOD, GOOD]),
    ],
)
def test_what_follows_a_failure_and_what_was_not_exercised_is_run_with_another_client(
    outcomes: tuple[Verdict, ...], count: list[Verdict | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdicts_of(Lives(*outcomes), monkeypatch)[: len(count)] == count


def test_no_rule_follows_in_the_life_of_a_client_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdicts_of(Lives(NONE, GOOD, GOOD, ends_after=1), monkeypatch) == [NONE, None, None]


def test_what_another_run_has_shown_meanwhile_is_not_exercised(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Lives(GOOD, GOOD)
    shown = Verdict.not_exercised("another run has shown it")
    assert verdicts_of(life, monkeypatch, unmet=[0]) == [shown, GOOD, GOOD]
    assert life.kept == [GOOD, GOOD]


def verdicts_of(life: Lives, monkeypatch: pytest.MonkeyPatch, unmet: Sequence[int] = ()) -> list[Verdict | None]:
    """Returns the verdicts of three rules in turn that count; those at some positions do not apply any more."""
    rules = choose_rules(["C2"], [])[:1] + choose_rules(["C3"], [])[:2]
    left_out = [rules[number] for number in unmet]
    monkeypatch.setattr(execution, "_Life", lambda baseline, inspections, started: life)
    monkeypatch.setattr(
        execution, "unmet_requirement", lambda baseline, rule: "another run has shown it" if rule in left_out else ""
    )
    baseline: Any = SimpleNamespace(session=SimpleNamespace(time_is_up=lambda: False))
    found = dict(execution.run_in_turn(baseline, rules, execution.Inspections()))
    counted = [found[rule].verdict for rule in rules if rule in found and rule not in left_out]
    assert (life.kept, life.stopped) == (counted, 1)
    return [found[rule].verdict if rule in found else None for rule in rules]


def test_the_worst_verdict_of_a_row_counts() -> None:
    row = row_of("W1", Verdict.success(), Verdict.failure("what happened"))
    assert (row.verdict, row.evidence) == (
        "fail",
        ["reconnect (the revision of a watch has expired when it reconnects): what happened"],
    )
    assert [(one.key, one.verdict) for one in row.provocations] == [("W1/open", "pass"), ("W1/reconnect", "fail")]


def test_a_row_says_which_provocations_were_not_exercised() -> None:
    row = row_of("W1", Verdict.success(), Verdict.not_exercised("why"))
    assert (row.verdict, row.evidence) == ("pass", ["1 of 2 provocations (open); not exercised: reconnect: why"])


def test_a_row_shows_what_is_not_accepted_first() -> None:
    rules = choose_rules(["W1"], [])[:2]
    verdicts = (Verdict.failure("known"), Verdict.warning("new"))
    runs = {rule: Run(verdict, 1.0) for rule, verdict in zip(rules, verdicts, strict=True)}
    (row,) = rows_of(rules, runs, {rules[0].key})
    assert (row.verdict, row.evidence) == ("warn", [f"{rules[1].name} ({rules[1].provocation}): new"])
    (row,) = rows_of(rules, runs, {rule.key for rule in rules})
    assert row.verdict == "fail"


@pytest.mark.parametrize("id_", ["C7", "W5"])
def test_what_is_looked_for_in_every_run_decides_no_row(id_: str) -> None:
    rules = choose_rules([id_], [])
    verdicts = {rule: Verdict.success() if rule.in_every_run else Verdict.not_exercised("why") for rule in rules}
    (row,) = rows_of(rules, {rule: Run(verdict, 1.0) for rule, verdict in verdicts.items()})
    assert row.verdict == "not exercised"


def test_a_row_whose_deciding_provocation_was_not_exercised_is_not_exercised() -> None:
    rules = choose_rules(["D1"], [])
    decisive = [rule for rule in rules if rule.decisive]
    assert decisive
    runs = {rule: Run(Verdict.not_exercised("why") if rule in decisive else Verdict.success(), 1.0) for rule in rules}
    assert rows_of(rules, runs)[0].verdict == "not exercised"


def test_rows_with_one_cause_are_grouped_under_the_rule_that_names_it() -> None:
    rules = [choose_rules([one], [])[0] for one in ("W3", "W6", "W9")]
    loop = Verdict.failure("no backoff", symptom=Symptom.NO_PAUSE, likeness="/api/v1/pods")
    found = rows_of(rules, {rules[0]: Run(loop, 1.0), rules[1]: Run(loop, 1.0), rules[2]: Run(Verdict.failure("other"), 1.0)})
    assert [row.same_as for row in found] == ["W6", "", ""]


def test_each_step_has_a_rule() -> None:
    for rule in all_rules():
        for step in rule.steps:
            assert isinstance(step_rule(step), Rule)


def test_signs_are_read() -> None:
    sign = Expectation.parse("widgets.example.com/{name}-x:status.example\\.com/a.0=Ready")
    assert (sign.resource, sign.name, sign.path, sign.value) == (
        "widgets.example.com",
        "{name}-x",
        ("status", "example.com/a", "0"),
        "Ready",
    )

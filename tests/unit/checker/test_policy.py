"""What the owner of a client demands, and the forms of a report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from fakekube.checker.api import _parse_accept, _select, parse_profile
from fakekube.checker.policy import Policy, parse_accepted
from fakekube.checker.report import ProvocationReport, Report, RuleReport, github_annotations, markdown, sarif
from fakekube.checker.rules import UnknownRule
from fakekube.cli import check
from fakekube.cli.arguments import Options

if TYPE_CHECKING:
    from pathlib import Path


def rule(id_: str, verdict: str, reason: str = "why") -> RuleReport:
    one = ProvocationReport(f"{id_}/one", "something happens", "A", verdict, [reason], 1.5)
    return RuleReport(id_, verdict, "A", [reason], "the source", "the obligation", "the advice", [one])


REPORT = Report(
    "client", [rule("W1", "pass"), rule("W7", "fail"), rule("N2", "warn"), rule("C8", "not exercised")], "a b.py", seed=3
)


@pytest.mark.parametrize(
    ("policy", "code", "remark"),
    [
        (Policy(), 1, ""),
        (Policy(accepted={"W7": "known"}), 0, ""),
        (Policy(accepted={"W7": "known", "W1": "known"}), 0, "W1 is accepted as broken, and passes now"),
        (Policy(accepted={"W7": "known"}, strict=True), 1, "the warnings of N2 are failures"),
        (Policy(accepted={"W7": "known", "N2": "known"}, strict=True), 0, ""),
        (Policy(accepted={"W7": "known"}, required=["W1", "C8"]), 4, "C8 was not exercised: why"),
        (Policy(accepted={"W7": "known"}, min_exercised=3), 0, ""),
        (Policy(accepted={"W7": "known"}, min_exercised=4), 4, "fewer than 4 rules were exercised: 3"),
        (Policy(required=["C8"]), 1, "C8 was not exercised"),
    ],
)
def test_a_policy_decides_the_exit_code(policy: Policy, code: int, remark: str) -> None:
    found = policy.apply(REPORT, cut_short=[])
    assert (found.exit_code, found.ok) == (code, code == 0)
    assert remark in " ".join(found.remarks)


def test_a_check_that_has_exercised_nothing_is_not_green() -> None:
    found = Policy().apply(Report("client", [rule("L1", "not exercised")]), cut_short=[])
    assert (found.exit_code, found.remarks) == (4, ["no rule was exercised"])


def test_a_timeout_that_leaves_rules_unexercised_is_not_green_unless_this_is_allowed() -> None:
    accepted = {"W7": "known"}
    found = Policy(accepted=accepted).apply(REPORT, cut_short=["C8"])
    assert found.exit_code == 4
    assert "the time was up before all of C8 had a verdict" in found.table()
    assert Policy(accepted=accepted, allow_timeout=True).apply(REPORT, cut_short=["C8"]).exit_code == 0


def test_accepted_failures_are_ids_or_a_file_with_reasons(tmp_path: Path) -> None:
    assert parse_accepted("w7, N2") == dict.fromkeys(("w7", "N2"), "named by --accept")
    assert parse_accepted("W8/slices,V1/2^53") == dict.fromkeys(("W8/slices", "V1/2^53"), "named by --accept")
    file = tmp_path / "accepted.txt"
    file.write_text("# known\n\nW7: no idle timeout\n- N2 the library sets it\nC1\nS3/set-back: on purpose\n")
    assert parse_accepted(str(file)) == {
        "W7": "no idle timeout",
        "N2": "the library sets it",
        "C1": "named by --accept",
        "S3/set-back": "on purpose",
    }
    file.write_text("W7: fine\nsomething else\n")
    with pytest.raises(ValueError, match="line 2 of"):
        parse_accepted(str(file))
    with pytest.raises(ValueError, match="names neither a rule nor a file"):
        parse_accepted(" ")
    with pytest.raises(ValueError, match="neither a list of rules nor a file"):
        parse_accepted(str(tmp_path / "missing.txt"))


@pytest.mark.parametrize(
    ("accepted", "code", "shown", "remark"),
    [
        ({"W8/one": "known"}, 1, "fail", ""),
        ({"W8/one": "known", "W8/two": "later"}, 0, "accepted", ""),
        ({"W8": "known", "W8/two": "later"}, 0, "accepted", ""),
        ({"W8/one": "known", "W8/three": "known"}, 1, "fail", "W8/three is accepted as broken, and passes now"),
    ],
)
def test_one_provocation_of_a_rule_is_accepted(accepted: dict[str, str], code: int, shown: str, remark: str) -> None:
    verdicts = {"one": "fail", "two": "fail", "three": "pass"}
    provocations = [
        ProvocationReport(f"W8/{name}", "it happens", "A", verdict, ["why"], 1.0) for name, verdict in verdicts.items()
    ]
    row = RuleReport("W8", "fail", "A", ["why"], "the source", "the obligation", "the advice", provocations)
    found = Policy(accepted=accepted).apply(Report("client", [row]), cut_short=[])
    assert (found.exit_code, found["W8"].shown_verdict) == (code, shown)
    assert remark in " ".join(found.remarks)


def test_names_of_accepted_provocations_are_those_of_the_report() -> None:
    assert _parse_accept("w8/SLICES, n2") == dict.fromkeys(("W8/slices", "N2"), "named by --accept")
    with pytest.raises(UnknownRule, match="W8/none is not a provocation"):
        _parse_accept({"W8/none": "why"})


def test_profiles_of_rules_and_of_clusters_are_independent() -> None:
    assert parse_profile("fast") == ("fast", "cluster")
    assert parse_profile("apiserver") == ("full", "apiserver")
    assert parse_profile("apiserver, fast") == ("fast", "apiserver")
    with pytest.raises(ValueError, match="there is no profile slow"):
        parse_profile("slow")
    with pytest.raises(ValueError, match="names both fast and full"):
        parse_profile("fast,full")


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (Policy(required=["W7"]), "--require: W7 does not run: the profile fast leaves it out"),
        (Policy(required=["D1"]), "--require: D1 does not run: it is not selected"),
        (Policy(min_exercised=3), "--min-exercised: 3 are more than the 2 rules that run"),
    ],
)
def test_a_demand_that_no_client_can_fulfil_is_refused_before_the_client_starts(policy: Policy, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        policy.refuse_impossible(["W1", "W5"], {"W7": "the profile fast leaves it out"})
    Policy(required=["W1"], min_exercised=2).refuse_impossible(["W1", "W5"], {})


def test_an_accepted_failure_is_no_failure_in_any_form(tmp_path: Path) -> None:
    report = Policy(accepted={"W7": "known: <later>"}).apply(REPORT, cut_short=[])
    assert "W7    accepted" in report.table()
    assert "known: <later>" in report.table()
    report.write_junit(tmp_path / "junit.xml")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("4", "0", "1")
    assert suite.findall("testcase")[1].attrib["time"] == "1.5"
    report.write_sarif(tmp_path / "check.sarif")
    (run,) = json.loads((tmp_path / "check.sarif").read_text())["runs"]
    assert [(one["ruleId"], one["level"], "suppressions" in one) for one in run["results"]] == [
        ("W7", "error", True),
        ("N2", "warning", False),
    ]
    (place,) = run["results"][0]["locations"]  # code scanning of GitHub refuses results without a file and a line
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "a%20b.py"}, "region": {"startLine": 1}}
    assert {one["id"] for one in run["tool"]["driver"]["rules"]} == {"W1", "W7", "N2", "C8"}
    assert github_annotations(report)[0] == "::notice title=W7 fail::why%0AFix: the advice"
    assert "| W7 | accepted | why | known: &lt;later>" in markdown(report)


def test_an_accepted_warning_is_neither_counted_nor_an_alert(tmp_path: Path) -> None:
    report = Policy(accepted={"N2": "known"}).apply(REPORT, cut_short=[])
    assert "1 fail, 1 accepted, 0 warn" in report.table()
    assert ["suppressions" in one for one in sarif(report)["runs"][0]["results"]] == [False, True]
    report.write_junit(tmp_path / "junit.xml")
    told = [one.text for one in ElementTree.parse(tmp_path / "junit.xml").getroot().iter("system-out")]
    assert "accepted (known): why" in told


def test_a_strict_warning_is_a_failure_in_every_form(tmp_path: Path) -> None:
    report = Policy(accepted={"W7": "known"}, strict=True).apply(REPORT, cut_short=[])
    assert [one.id for one in report.failures] == ["N2"]
    report.write_junit(tmp_path / "junit.xml")
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().attrib["failures"] == "1"
    assert [one["level"] for one in sarif(report)["runs"][0]["results"]] == ["error", "error"]
    assert github_annotations(report)[1].startswith("::error title=N2 warn::")
    assert "### fakekube check: 1 rule broken" in markdown(report)


@pytest.mark.parametrize(
    ("provocation", "run", "options"),
    [
        ("something happens", "", "--again W5/one"),
        ("in every run: a watch stands still", "R2/writes", "--rules W5,R2"),
        ("in every run: a watch stands still", "W5/ends", "--rules W5"),
        ("in every run: a watch stands still", "", "--rules W5"),
    ],
)
def test_the_summary_says_how_a_verdict_is_shown_again(provocation: str, run: str, options: str) -> None:
    one = ProvocationReport("W5/one", provocation, "A", "fail", ["why"], 1.5, run)
    found = RuleReport("W5", "fail", "A", ["why"], "the source", "the obligation", "the advice", [one])
    assert f"the advice (`{options}`) |" in markdown(Report("client", [found]))


def test_what_every_run_shows_is_not_run_alone() -> None:
    with pytest.raises(ValueError, match="W5/stuck is looked for in every run"):
        _select(None, [], "W5/stuck", ["A"], "full")


def test_too_little_that_was_exercised_is_an_alert_of_its_own() -> None:
    report = Policy(accepted={"W7": "known"}, required=["C8"]).apply(REPORT, cut_short=[])
    assert github_annotations(report)[-1] == "::error title=not enough exercised::--require: C8 was not exercised: why"
    assert "not enough" not in github_annotations(Policy(required=["C8"]).apply(REPORT, cut_short=[]))[-1]


def test_a_summary_that_only_the_environment_asks_for_does_not_decide_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "of the host" / "summary.md"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    check._write(REPORT, Options("check"))
    out, err = capsys.readouterr()
    assert "::error title=W7 fail::why" in out
    assert err.startswith("fakekube: $GITHUB_STEP_SUMMARY: ")


def test_the_reason_is_never_cut() -> None:
    reason = "because " * 60
    table = Report("client", [rule("W1", "fail", reason)]).table()
    assert " ".join(table.split()).count("because") == 60
    assert max(map(len, table.splitlines())) <= 118


def test_the_table_says_once_why_several_rules_were_left_out() -> None:
    left = "the profile fast leaves it out"
    rules = [rule("W7", "not exercised", left), rule("C8", "not exercised", left), rule("D2", "not exercised", "no discovery")]
    table = Report("client", rules).table()
    assert f"not exercised, {left}: W7, C8" in table
    assert "no discovery" in next(line for line in table.splitlines() if line.startswith("D2"))
    assert f"* W7, C8: {left}" in markdown(Report("client", rules))

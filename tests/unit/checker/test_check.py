"""`fakekube.check` with clients in this process, and the command. The checks run side by side: they wait most of their time."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

import fakekube
from fakekube.checker import BaselineFailed, UnknownRule
from fakekube.checker.process import starter_of
from fakekube.checker.rules import choose_rules
from fakekube.checker.sample import Sample
from fakekube.checker.session import Session
from fakekube.checker.trial import Trial
from fakekube.cli import main
from tests.unit.checker.reflector import PATH, reflector

if TYPE_CHECKING:
    from pathlib import Path

    from fakekube.checker import Report

#: Kept short: these clients react at once.
FAST: dict[str, Any] = {"quiet": 0.15, "profile": "apiserver", "seconds": 2.0}


def check_of_a_good_client() -> Report:
    return fakekube.check(reflector(), rules="W1,W5,W6,W10,C8", **FAST)


@pytest.mark.parametrize("awaited", [check_of_a_good_client], indirect=True)
def test_a_good_client_passes_and_what_it_gives_no_occasion_for_is_not_exercised(awaited: Report) -> None:
    report = awaited
    assert {rule.id: rule.verdict for rule in report.rules} == {
        "W1": "pass",
        "W5": "pass",
        "W6": "pass",
        "W10": "not exercised",
        "C8": "not exercised",
    }
    assert report.ok
    assert "reflector/1" in report.client


@dataclass(frozen=True)
class CheckOfADefect:
    """Checks a client that forgets what a rule asks for by this rule."""

    rule: str

    def __call__(self) -> Report:
        return fakekube.check(reflector(self.rule), rules=self.rule, **FAST)


@pytest.mark.parametrize(
    ("awaited", "rule", "evidence"),
    [
        (CheckOfADefect("W1"), "W1", "that this revision is expired"),
        (CheckOfADefect("W5"), "W5", "was resumed from"),
        (CheckOfADefect("W8"), "W8", "the client ended"),
    ],
    indirect=["awaited"],
    ids=["W1", "W5", "W8"],
)
def test_a_defect_is_found_by_its_rule(awaited: Report, rule: str, evidence: str) -> None:
    report = awaited
    assert not report.ok
    assert evidence in report[rule].evidence[0]
    assert any(PATH in line for line in report[rule].evidence[1:])
    with pytest.raises(AssertionError, match="1 obligations are broken"):
        report.require_ok()


@pytest.mark.parametrize(("seed", "same"), [(3, True), (4, False)])
def test_what_a_rule_chooses_follows_from_its_seed(seed: int, same: bool) -> None:
    sample = Sample.read({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sample", "namespace": "default"}})
    names: list[list[str]] = []
    for session in (Session(starter_of(reflector()), sample, seed=3), Session(starter_of(reflector()), sample, seed=seed)):
        trial = Trial(session, choose_rules(["W8"], [])[0])
        trial.open()
        names.append([*trial.stimulate().names(), *trial.stimulate().names()])
        trial.close()
        session.close()
    assert (names[0] == names[1]) is same


def check_of_a_coroutine_function() -> tuple[Report, list[bool]]:
    """Returns the report, and whether the coroutine was cancelled."""
    cancelled: list[bool] = []

    async def start(kubeconfig: Path) -> None:
        url = json.dumps(kubeconfig.read_text())
        host, _, port = url.partition("http://")[2].partition("\\n")[0].partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {PATH}?watch=1 HTTP/1.1\r\nHost: {host}\r\nUser-Agent: coroutine\r\n\r\n".encode())
        try:
            while await reader.readline():
                pass
        finally:
            cancelled.append(True)
            writer.close()

    return fakekube.check(start, rules="N2", **FAST), cancelled


@pytest.mark.parametrize("awaited", [check_of_a_coroutine_function], indirect=True)
def test_a_coroutine_function_is_cancelled_at_the_end(awaited: tuple[Report, list[bool]], fakekube_check: Any) -> None:
    report, cancelled = awaited
    assert report["N2"].verdict == "pass"
    assert cancelled == [True]
    assert fakekube_check is fakekube.check


def test_a_client_that_does_not_come_has_no_verdicts() -> None:
    with pytest.raises(BaselineFailed, match="exit code 0"):
        fakekube.check(lambda kubeconfig: None, rules="W1", **FAST)


def check_of_another_minor() -> tuple[Report, list[str]]:
    """Returns the report, and the minors that the client was told."""
    minors: list[str] = []

    def ask(kubeconfig: Path, stopped: threading.Event) -> None:
        host = kubeconfig.read_text().partition("http://")[2].partition("\n")[0].strip('"')
        connection = http.client.HTTPConnection(host)
        connection.request("GET", "/version", headers={"User-Agent": "asks/1"})
        minors.append(json.loads(connection.getresponse().read())["minor"])
        connection.close()
        reflector()(kubeconfig, stopped)

    return fakekube.check(ask, rules="N2", version="1.35", **FAST), minors


@pytest.mark.parametrize("awaited", [check_of_another_minor], indirect=True)
def test_the_clusters_emulate_the_minor_that_is_asked_for(awaited: tuple[Report, list[str]]) -> None:
    report, minors = awaited
    assert minors == ["35"]
    assert report.as_json()["kubernetes"] == "1.35"
    with pytest.raises(ValueError, match=r"Kubernetes 1\.20 is not known"):
        fakekube.check(reflector(), version="1.20")


def test_rules_that_do_not_exist_are_an_error() -> None:
    with pytest.raises(UnknownRule, match="there is no rule W99; there are W1, W2"):
        fakekube.check(reflector(), rules=["w1", "W99"])
    with pytest.raises(UnknownRule, match="A, B and C"):
        fakekube.check(reflector(), legality="A,D")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--rules", "X1", "--", "true"], 2, "there is no rule X1"),
        (["--rules", "W1", "--", "/no/such/command"], 2, "no such command"),
        (["--expect", "what", "--", "true"], 2, "is not RESOURCE/NAME"),
        (["--rules", "W1", "--except", "w1", "--", "true"], 2, "no rule is left to check without W1"),
        (["--again", "W5/ends", "--except", "W5", "--", "true"], 2, "no rule is left to check without W5"),
        (["--sample", "/no/such/file.yaml", "--", "true"], 2, "No such file"),
        (["--rules", "W1", "--", "false"], 3, "exit code 1"),
    ],
)
def test_exit_codes(arguments: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *arguments]) == code
    assert text in capsys.readouterr().err


def test_what_a_client_printed_before_it_ended_in_the_baseline_run_is_kept_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    command = ["sh", "-c", "echo no configuration; echo bye; exit 4"]
    assert main(["check", "--rules", "W1", "--keep", str(tmp_path / "kept"), "--", *command]) == 3
    assert (tmp_path / "kept" / "baseline" / "output.txt").read_text() == "no configuration\nbye\n\n"
    assert capsys.readouterr().out.startswith("::error title=no baseline run::")


class Patience(float):
    """A timeout that has passed from a line of progress on, however long the check takes until then."""

    last = ""
    """A part of that line."""
    is_over = False

    @classmethod
    def until(cls, last: str) -> Patience:
        patience = cls(60.0)
        patience.last = last
        return patience

    def __lt__(self, seconds: float) -> bool:
        return self.is_over

    def hear(self, progress: str) -> None:
        """Takes a line of progress."""
        self.is_over = self.is_over or self.last in progress


def check_that_is_cut_short(*, allow: bool) -> Report:
    timeout = Patience.until("apply to this client")
    return fakekube.check(
        reflector(), rules="N2,W6", timeout=timeout, allow_timeout=allow, progress=timeout.hear, **{**FAST, "seconds": 600.0}
    )


#: The same, and whether the timeout may leave rules unexercised.
CUT_SHORT = {allow: partial(check_that_is_cut_short, allow=allow) for allow in (False, True)}


@pytest.mark.parametrize("awaited", [CUT_SHORT[False]], indirect=True)
def test_a_check_whose_time_is_up_is_not_green(awaited: Report) -> None:
    assert {rule.id: rule.verdict for rule in awaited.rules} == {"W6": "not exercised", "N2": "pass"}
    assert (awaited.exit_code, awaited.ok) == (4, False)
    assert "--timeout: the time was up before all of W6 had a verdict; --allow-timeout accepts this" in str(awaited)
    with pytest.raises(AssertionError, match="the time was up"):
        awaited.require_ok()


@pytest.mark.parametrize("awaited", [CUT_SHORT[True]], indirect=True)
def test_a_check_whose_time_is_up_is_green_if_this_is_allowed(awaited: Report) -> None:
    assert {rule.id: rule.verdict for rule in awaited.rules} == {"W6": "not exercised", "N2": "pass"}
    assert (awaited.exit_code, awaited.ok) == (0, True)
    assert "the timeout of the check had passed" in awaited["W6"].evidence[0]


def check_of_two_rules() -> Report:
    return fakekube.check(reflector(), rules="N2,W12", **FAST)


@pytest.mark.parametrize("awaited", [check_of_two_rules], indirect=True)
def test_the_reports_of_a_run(awaited: Report, tmp_path: Path) -> None:
    report = awaited
    report.write_json(tmp_path / "report.json")
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["client"] == report.client
    assert (written["seed"], written["profile"], written["exit_code"]) == (0, "full", 0)
    assert {"id", "verdict", "legality", "obligation", "advice", "source", "evidence", "provocations"} <= set(written["rules"][0])
    assert [one["key"] for one in written["rules"][1]["provocations"]] == ["N2/agent"]
    assert [(rule["id"], rule["verdict"]) for rule in written["rules"]] == [("W12", "not exercised"), ("N2", "pass")]
    report.write_junit(tmp_path / "junit.xml")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    cases = suite.findall("testcase")
    assert [case.attrib["name"].partition(":")[0] for case in cases] == [
        *(f"W12/{name}" for name in ("offline", "expiry", "end", "child-end", "children", "owner")),
        "N2/agent",
    ]
    assert all(float(case.attrib["time"]) >= 0.0 for case in cases)
    assert suite.attrib["skipped"] == "6"
    assert "W12 not exercised" in " ".join(str(report).split())

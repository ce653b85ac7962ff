"""The report of a check as a page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fakekube import Cluster
from fakekube.checker.report import ProvocationReport, Report, RuleReport, report_html
from tests.unit.seen import config_map


def rule(name: str, verdict: str) -> RuleReport:
    provocation = ProvocationReport(f"{name}/ends it", "ends it", "A", verdict, ["because"], 1.0)
    return RuleReport(name, verdict, "A", ["because", "0.1 s watch"], "the source", "a client waits", "wait", [provocation])


def report_in(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', html)
    assert found is not None
    value: dict[str, Any] = json.loads(found[1])
    return value


def test_failures_come_first_and_have_their_trial() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.create(config_map("a"))
        parts = cluster.trace_parts(limit=2_000_000)
    rules = [rule("W1", "pass"), rule("W2", "not exercised"), rule("W3", "warn"), rule("W4", "fail")]
    html = report_html(Report("<op>", rules, traces={"W4/ends it": parts, "baseline": parts}))
    report = report_in(html)
    assert [one["rule"] for one in report["verdicts"]] == ["W4", "W3", "W2", "W1"]
    assert [one["trial"] for one in report["verdicts"]] == ["W4-ends-it", None, None, None]
    assert (report["baseline"], list(report["trials"])) == ("baseline", ["W4-ends-it", "baseline"])
    assert report["trials"]["W4-ends-it"]["kind"] == "Trace"
    failed = report["verdicts"][0]
    assert (failed["reason"], failed["fix"], failed["source"], failed["text"]) == (
        "because",
        "wait",
        "the source",
        "a client waits",
    )
    assert 'id="bodies-W4-ends-it"' in html
    assert 'id="state-baseline"' in html
    assert "<title>fakekube check: &lt;op&gt;</title>" in html


def test_a_report_without_traces(tmp_path: Path) -> None:
    Report("op", [rule("W1", "fail")]).write_html(tmp_path / "report.html")
    report = report_in((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert (report["trials"], report["verdicts"][0]["trial"], report["baseline"]) == ({}, None, None)


def test_reports_of_clients_that_send_lone_surrogates(tmp_path: Path) -> None:
    report = Report("op \ud800", [rule("W1", "fail")])
    report.write_html(tmp_path / "report.html")
    report.write_json(tmp_path / "report.json")
    report.write_summary(tmp_path / "summary.md")
    assert r"op \ud800" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    report.write_junit(tmp_path / "report.xml")
    properties = ElementTree.parse(tmp_path / "report.xml").iter("property")
    assert [one.get("value") for one in properties if one.get("name") == "client"] == ["op \ufffd"]
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["client"] == "op \ud800"

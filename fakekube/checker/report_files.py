"""The forms of a report in files: JUnit XML, SARIF, Markdown, annotations of GitHub workflows, and the page.

Invariant: an accepted failure is no failure in any form, and its reason is shown.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from fakekube.checker.trial import BASELINE
from fakekube.checker.verdict import Outcome
from fakekube.page import trace_document

if TYPE_CHECKING:
    from pathlib import Path

    from fakekube.checker.report_data import CheckResult, ProvocationReport, RuleReport


_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Outcome.FAIL: "error", Outcome.WARN: "warning"}


def write_junit(report: CheckResult, path: Path) -> None:
    """Writes a test case for each provocation; a warning passes and has its reason in system-out. Raises OSError."""
    pairs = [(rule, one) for rule in report.rules for one in rule.provocations]
    failures = sum(one.verdict == Outcome.FAIL and rule.accepted is None for rule, one in pairs)
    suite = ElementTree.Element(
        "testsuite",
        name="fakekube check",
        tests=str(len(pairs)),
        failures=str(failures),
        errors="0",
        skipped=str(sum(one.verdict == Outcome.NOT_EXERCISED for _, one in pairs)),
        time=f"{report.seconds:.1f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("client", report.client), ("seed", str(report.seed)), ("profile", report.profile)):
        ElementTree.SubElement(properties, "property", name=name, value=_valid_xml(value))
    for rule, one in pairs:
        _add_case(suite, rule, one)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _add_case(suite: ElementTree.Element, rule: RuleReport, one: ProvocationReport) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"fakekube.check.{rule.id}", name=f"{one.key}: {one.provocation}", time=f"{one.seconds:.1f}"
    )
    first, text = (one.evidence or ("",))[0], "\n".join(one.evidence)
    if one.verdict == Outcome.FAIL and rule.accepted is None:
        told = "\n".join([text, "", f"rule: {rule.obligation}", f"fix: {rule.advice}", f"source: {rule.source}"])
        ElementTree.SubElement(case, "failure", message=_valid_xml(first)).text = _valid_xml(told)
    elif one.verdict == Outcome.NOT_EXERCISED:
        ElementTree.SubElement(case, "skipped", message=_valid_xml(first))
    elif text:
        verdict = f"accepted ({rule.accepted})" if one.verdict == Outcome.FAIL else one.verdict
        ElementTree.SubElement(case, "system-out").text = _valid_xml(f"{verdict}: {text}")


def _valid_xml(text: str) -> str:
    """Replaces the characters that XML cannot represent."""
    return "".join(letter if letter >= " " or letter in "\t\n\r" else "\ufffd" for letter in text)


def write_sarif(report: CheckResult, path: Path) -> None:
    """Writes SARIF 2.1.0. Raises OSError."""
    path.write_text(json.dumps(sarif(report), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def sarif(report: CheckResult) -> dict[str, Any]:
    """Returns a SARIF log: all rules, and a result for each failure and warning; accepted ones are suppressed.

    A client has no source file that the check knows, so that results have the name of the client as a logical location.
    """
    from fakekube import __version__

    results = [_result(report, rule) for rule in report.rules if rule.verdict in _LEVELS]
    driver = {"name": "fakekube check", "version": __version__, "rules": [_descriptor(rule) for rule in report.rules]}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _descriptor(rule: RuleReport) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.obligation},
        "fullDescription": {"text": f"{rule.obligation}. Source: {rule.source}"},
        "help": {"text": rule.advice},
    }


def _result(report: CheckResult, rule: RuleReport) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": rule.id,
        "level": _LEVELS[Outcome(rule.verdict)],
        "message": {"text": "\n".join(rule.evidence) or rule.obligation},
        "locations": [{"logicalLocations": [{"name": report.client, "kind": "module"}]}],
        "partialFingerprints": {"fakekubeRule/v1": rule.id},
    }
    if rule.accepted is not None and rule.verdict == Outcome.FAIL:
        found["suppressions"] = [{"kind": "external", "justification": rule.accepted}]
    return found


def markdown(report: CheckResult) -> str:
    """Returns a summary in Markdown: the verdict, what is broken and suspected with its fix, and what was not exercised."""
    broken = report.failures
    title = "passed" if report.exit_code == 0 else f"{len(broken)} rules broken" if broken else "not enough exercised"
    lines = [f"### fakekube check: {title}", "", f"`{report.client}`, profile {report.profile}, seed {report.seed}, "]
    lines[-1] += f"{report.seconds:.0f} s"
    counts = ", ".join(f"{len(report.of(outcome))} {outcome}" for outcome in Outcome)
    lines += ["", counts, ""]
    lines += [f"* {remark}" for remark in report.remarks]
    shown = [rule for rule in report.rules if rule.verdict in _LEVELS]
    if shown:
        lines += ["", "| rule | verdict | what happened | what to do |", "|---|---|---|---|"]
        lines += [_table_row(rule) for rule in shown]
    missed = report.of(Outcome.NOT_EXERCISED)
    if missed:
        lines += ["", f"<details><summary>{len(missed)} not exercised</summary>", ""]
        lines += [f"* {rule.id}: {_cell(rule.evidence[0] if rule.evidence else '')}" for rule in missed]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _table_row(rule: RuleReport) -> str:
    verdict = "accepted" if rule.accepted is not None and rule.verdict == Outcome.FAIL else rule.verdict
    reason = rule.evidence[0] if rule.evidence else rule.obligation
    reason = f"same cause as {rule.same_as}: {reason}" if rule.same_as else reason
    again = next((one.key for one in rule.provocations if one.verdict == rule.verdict), rule.id)
    return f"| {rule.id} | {verdict} | {_cell(reason)} | {_cell(rule.accepted or rule.advice)} (`--again {again}`) |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def github_annotations(report: CheckResult) -> list[str]:
    """Returns the workflow commands that make GitHub show failures and warnings at a job."""
    found = []
    for rule in report.rules:
        if rule.verdict not in _LEVELS or rule.same_as:
            continue
        level = "notice" if rule.accepted is not None else _LEVELS[Outcome(rule.verdict)]
        reason = rule.evidence[0] if rule.evidence else rule.obligation
        found.append(f"::{level} title={_property(f'{rule.id} {rule.verdict}')}::{_data(f'{reason} Fix: {rule.advice}')}")
    return found


def _data(text: str) -> str:
    """Escapes the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escapes a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# --- The page: one HTML file with the verdicts, and the traces of the runs that failed or warned -----------------------
# Invariant: the file needs no server, and contains no credentials: its traces are redacted.


#: The order of the verdicts in the page.
_ORDER = (Outcome.FAIL, Outcome.WARN, Outcome.NOT_EXERCISED, Outcome.PASS)


def report_html(report: CheckResult) -> str:
    """Returns the HTML of a report."""
    names = {key: _name_of(key) for key in report.traces}
    packed = {f"{part}-{names[key]}": content for key, parts in report.traces.items() for part, content in parts.pack().items()}
    ordered = sorted(report.rules, key=lambda rule: [str(one) for one in _ORDER].index(rule.verdict))
    data: dict[str, Any] = {
        "client": report.client,
        "command": report.client,
        "seed": report.seed,
        "seconds": round(report.seconds, 1),
        "profile": report.profile,
        "ok": report.ok,
        "remarks": list(report.remarks),
        "verdicts": [_verdict(rule, report, names) for rule in ordered],
        "baseline": names.get(BASELINE),
        "trials": {names[key]: parts.trace for key, parts in report.traces.items()},
    }
    return trace_document("report", {"report": data}, packed, title=f"fakekube check: {report.client}")


def _name_of(key: str) -> str:
    """Returns the key of a provocation as a name of an element."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", key)


def _verdict(rule: RuleReport, report: CheckResult, names: dict[str, str]) -> dict[str, Any]:
    """Returns a row of the page."""
    keys = [one.key for one in rule.provocations if one.key in report.traces]
    best = next((one.key for one in rule.provocations if one.key in keys and one.verdict == rule.verdict), None)
    reason = rule.evidence[0] if rule.evidence else ""
    return {
        "rule": rule.id,
        "verdict": rule.verdict,
        "class": rule.legality,
        "title": rule.obligation,
        "text": rule.obligation,
        "reason": reason,
        "fix": rule.advice,
        "source": rule.source,
        "evidence": list(rule.evidence),
        "sameAs": rule.same_as,
        "accepted": rule.accepted,
        "trial": names[best] if best is not None else names[keys[0]] if keys else None,
        "provocations": [{**one.as_json(), "trial": names.get(one.key)} for one in rule.provocations],
    }

"""The report of a check: its values, a table for the terminal, report.json, and other files.

The files are JUnit XML, SARIF, Markdown, annotations of GitHub workflows, and the page.

Invariants: the values are those of report.json. The reason of a verdict is never shortened. An accepted failure is no failure in
any form, and its reason is shown.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree

from fakekube.checker.rule import IN_EVERY_RUN
from fakekube.checker.trial import BASELINE
from fakekube.checker.verdict import Outcome
from fakekube.page import trace_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fakekube.powers.trace import TraceParts


# --- The values of a report: a check, its rules, and their provocations ----------------------------------------------


@dataclass(slots=True, frozen=True)
class ProvocationReport:
    """The result of one provocation of a rule."""

    key: str
    """The id of the rule and the name of the provocation, as `--again` takes it."""
    provocation: str
    legality: str
    verdict: str
    evidence: Sequence[str]
    seconds: float
    """How long it took, together with a second run."""
    run: str = ""
    """The key of another provocation in whose run it was found; "" if it was not."""
    accepted: str | None = None
    """The reason for which a failure or warning is accepted; None if it is not."""

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "provocation": self.provocation,
            "legality": self.legality,
            "verdict": self.verdict,
            "evidence": list(self.evidence),
            "seconds": self.seconds,
            "accepted": self.accepted,
        }


@dataclass(slots=True, frozen=True)
class RuleReport:
    """The result for one rule id."""

    id: str
    verdict: str
    """pass, fail, warn or not exercised."""
    legality: str
    """The class of the provocation with this verdict: A, B or C."""
    evidence: Sequence[str]
    """The reason first, then lines of the trace."""
    source: str
    obligation: str
    advice: str
    provocations: Sequence[ProvocationReport] = ()
    same_as: str = ""
    """The id of another failed rule with the same cause; "" if there is none."""
    accepted: str | None = None
    """The reason for which a failure or warning is accepted; None if it is not."""
    is_strict: bool = False
    """Whether a warning is a failure."""

    @property
    def is_broken(self) -> bool:
        """Whether the rule failed, and this is not accepted."""
        return self.fails(self)

    def fails(self, one: RuleReport | ProvocationReport) -> bool:
        """Reports whether this rule, or one of its provocations, has a failure that is not accepted."""
        return one.accepted is None and (one.verdict == Outcome.FAIL or (self.is_strict and one.verdict == Outcome.WARN))

    def shows(self, one: ProvocationReport) -> bool:
        """Reports whether the verdict of this rule is that of one of its provocations."""
        return one.verdict == self.verdict and (one.accepted is None) == (self.accepted is None)

    @property
    def shown_verdict(self) -> str:
        """The verdict as people read it: "accepted" for an accepted failure or warning."""
        return "accepted" if self.accepted is not None else self.verdict

    def as_json(self) -> dict[str, Any]:
        """Returns the rule's member of report.json."""
        return {
            "id": self.id,
            "verdict": self.verdict,
            "legality": self.legality,
            "obligation": self.obligation,
            "advice": self.advice,
            "source": self.source,
            "evidence": list(self.evidence),
            "same_as": self.same_as,
            "accepted": self.accepted,
            "provocations": [one.as_json() for one in self.provocations],
        }


@dataclass(slots=True, frozen=True)
class CheckResult:
    """The result of a check."""

    client: str
    rules: Sequence[RuleReport]
    source: str = ""
    """A file of the client, relative to the working directory, or its name: code scanning shows results at a file."""
    seed: int = 0
    seconds: float = 0.0
    """How long the check took."""
    profile: str = "full"
    """fast or full."""
    kubernetes: str = ""
    """The minor of Kubernetes that the clusters emulated."""
    remarks: Sequence[str] = field(default=())
    """What to know beside the verdicts, such as accepted failures that passed."""
    code: int | None = None
    """The exit code of the command, if something other than a broken rule decides it."""
    traces: Mapping[str, TraceParts] = field(default_factory=dict, compare=False, repr=False)
    """Key of a provocation, or `baseline` → the data of a trace file of its last run."""

    @property
    def ok(self) -> bool:
        """Whether no rule is broken, except for accepted failures, and enough rules were exercised."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 if all is well, 1 if a rule is broken, 4 if not enough was exercised."""
        return 1 if any(rule.is_broken for rule in self.rules) else self.code or 0

    @property
    def failures(self) -> list[RuleReport]:
        """The rules that are broken, except for accepted failures."""
        return [rule for rule in self.rules if rule.is_broken]

    def of(self, verdict: str) -> list[RuleReport]:
        """Returns the rules with a verdict."""
        return [rule for rule in self.rules if rule.verdict == verdict]

    def counts(self) -> str:
        """Returns how many rules have each verdict; accepted ones are counted apart."""
        found = Counter(rule.shown_verdict for rule in self.rules)
        accepted = [f"{found['accepted']} accepted"] if found["accepted"] else []
        failed, *others = [f"{found[outcome]} {outcome}" for outcome in Outcome]
        return ", ".join([failed, *accepted, *others])


_WIDTH = 118
#: Where the reasons begin in the table.
_INDENT = 23


@dataclass(slots=True, frozen=True)
class Report(CheckResult):
    """The result of a check, in all its forms."""

    def __getitem__(self, rule: str) -> RuleReport:
        """Returns the result for a rule id. Raises KeyError for a rule that was not checked."""
        for one in self.rules:
            if one.id == rule:
                return one
        raise KeyError(rule)

    def require_ok(self) -> None:
        """Raises AssertionError with the table if a rule is broken, or not enough was exercised."""
        if not self.ok:
            raise AssertionError(f"{len(self.failures)} obligations are broken\n{self}")

    # --- Forms --------------------------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Returns the content of report.json."""
        from fakekube import __version__

        return {
            "client": self.client,
            "version": __version__,
            "kubernetes": self.kubernetes,
            "seed": self.seed,
            "profile": self.profile,
            "seconds": round(self.seconds, 1),
            "exit_code": self.exit_code,
            "remarks": list(self.remarks),
            "rules": [rule.as_json() for rule in self.rules],
        }

    def write_json(self, path: Path | str) -> None:
        """Writes report.json. Raises OSError."""
        write_json(Path(path), self.as_json())

    def write_html(self, path: Path | str) -> None:
        """Writes the report as a page that a browser opens without a server, with the traces of the runs that failed or warned
        if the check made them. Raises OSError."""
        write_text(Path(path), report_html(self))

    def write_junit(self, path: Path | str) -> None:
        """Writes JUnit XML with a test case for each provocation. Raises OSError."""
        write_junit(self, Path(path))

    def write_sarif(self, path: Path | str) -> None:
        """Writes SARIF 2.1.0 with a result for each failure and warning. Raises OSError."""
        write_sarif(self, Path(path))

    def write_summary(self, path: Path | str) -> None:
        """Appends a summary in Markdown to a file, as GitHub expects it. Raises OSError."""
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(markdown(self))

    def table(self) -> str:
        """Returns the verdict and the reason for each rule; broken and suspected rules also have what to do.

        Rules with the cause of another one follow it.
        """
        lines = [f"client: {self.client}", ""]
        followers = {rule.same_as for rule in self.rules if rule.same_as}
        left_out = self._rules_by_reason()
        for rule in self.rules:
            if rule.same_as or any(rule.id in ids for ids in left_out.values()):
                continue
            lines += self._lines(rule)
            if rule.id in followers:
                for one in self.rules:
                    if one.same_as == rule.id:
                        lines += _wrap(f"  {one.id}", one.verdict, one.legality, f"same cause as {rule.id}: {_reason_of(one)}")
        for reason, ids in left_out.items():
            lines += ["", *textwrap.wrap(f"not exercised, {reason}: {', '.join(ids)}", _WIDTH, subsequent_indent="  ")]
        return "\n".join([*lines, "", *self.remarks, f"{self.counts()}; seed {self.seed}, {self.seconds:.0f} s"])

    def _rules_by_reason(self) -> dict[str, list[str]]:
        """Returns the reasons that several rules have for being not exercised, with their ids: one line tells each."""
        found = _ids_by_reason(self.of(Outcome.NOT_EXERCISED))
        return {reason: ids for reason, ids in found.items() if len(ids) > 1}

    @staticmethod
    def _lines(rule: RuleReport) -> list[str]:
        lines = _wrap(rule.id, rule.shown_verdict, rule.legality, _reason_of(rule))
        if rule.verdict in (Outcome.FAIL, Outcome.WARN):
            if rule.accepted:
                lines += _wrap("", "", "", f"accepted: {rule.accepted}")
            for word, text in (("rule:   ", rule.obligation), ("fix:    ", rule.advice), ("source: ", rule.source)):
                lines += _wrap("", "", "", word + text)
        return lines

    def details(self) -> str:
        """Returns the evidence of broken and suspected rules, with the trace."""
        parts = []
        for rule in self.rules:
            if rule.verdict in (Outcome.FAIL, Outcome.WARN) and not rule.same_as:
                shown = "\n".join(f"    {line}" for line in rule.evidence)
                parts.append(f"{rule.id} {rule.shown_verdict}: {rule.obligation}\n{shown}")
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.table(), self.details()) if part)


def _reason_of(rule: RuleReport) -> str:
    return rule.evidence[0] if rule.evidence else rule.obligation


def _ids_by_reason(rules: Iterable[RuleReport]) -> dict[str, list[str]]:
    """Returns the ids of rules by their reasons, in the order of the first of each."""
    found: dict[str, list[str]] = {}
    for rule in rules:
        found.setdefault(_reason_of(rule), []).append(rule.id)
    return found


def _wrap(name: str, verdict: str, legality: str, text: str) -> list[str]:
    """Returns the lines of a row; a long text continues on lines of its own."""
    parts = textwrap.wrap(text, _WIDTH - _INDENT, break_long_words=False) or [""]
    begin = f"{name:<6}{verdict:<14}{legality:<3}"
    return [begin + parts[0], *(" " * _INDENT + part for part in parts[1:])]


# --- The forms of a report in files -----------------------------------------------------------------------------------


def write_text(path: Path, text: str) -> None:
    """Writes a file in UTF-8. Lone surrogates, which clients may send, are written as escapes (`\\ud800`). Raises OSError."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes indented JSON as `write_text` does. Raises OSError."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Outcome.FAIL: "error", Outcome.WARN: "warning"}


def _level(rule: RuleReport) -> str:
    """Returns the level of a failed or suspected rule."""
    return _LEVELS[Outcome.FAIL if rule.is_broken else Outcome(rule.verdict)]


def write_junit(report: CheckResult, path: Path) -> None:
    """Writes a test case for each provocation; a warning passes and has its reason in system-out. Raises OSError."""
    pairs = [(rule, one) for rule in report.rules for one in rule.provocations]
    failures = sum(rule.fails(one) for rule, one in pairs)
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
    if rule.fails(one):
        told = "\n".join([text, "", f"rule: {rule.obligation}", f"fix: {rule.advice}", f"source: {rule.source}"])
        ElementTree.SubElement(case, "failure", message=_valid_xml(first)).text = _valid_xml(told)
    elif one.verdict == Outcome.NOT_EXERCISED:
        ElementTree.SubElement(case, "skipped", message=_valid_xml(first))
    elif text:
        verdict = f"accepted ({one.accepted})" if one.accepted is not None else one.verdict
        ElementTree.SubElement(case, "system-out").text = _valid_xml(f"{verdict}: {text}")


def _valid_xml(text: str) -> str:
    """Replaces the characters that XML cannot represent."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def write_sarif(report: CheckResult, path: Path) -> None:
    """Writes SARIF 2.1.0. Raises OSError."""
    write_json(path, sarif(report))


def sarif(report: CheckResult) -> dict[str, Any]:
    """Returns a SARIF log: all rules, and a result for each failure and warning; accepted ones are suppressed.

    The check does not know which line of the client is wrong; code scanning of GitHub demands one, so that results are shown at
    the first line of its file.
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
        "level": _level(rule),
        "message": {"text": "\n".join(rule.evidence) or rule.obligation},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": quote(report.source)}, "region": {"startLine": 1}},
                "logicalLocations": [{"name": report.client, "kind": "module"}],
            }
        ],
        "partialFingerprints": {"fakekubeRule/v1": rule.id},
    }
    if rule.accepted is not None:
        found["suppressions"] = [{"kind": "external", "justification": rule.accepted}]
    return found


def markdown(report: CheckResult) -> str:
    """Returns a summary in Markdown: the verdict, what is broken and suspected with its fix, and what was not exercised."""
    broken = report.failures
    title = (
        "passed"
        if report.exit_code == 0
        else f"{len(broken)} {'rule' if len(broken) == 1 else 'rules'} broken"
        if broken
        else "not enough exercised"
    )
    lines = [f"### fakekube check: {title}", "", f"`{report.client}`, profile {report.profile}, seed {report.seed}, "]
    lines[-1] += f"{report.seconds:.0f} s"
    lines += ["", report.counts(), ""]
    lines += [f"* {remark}" for remark in report.remarks]
    shown = [rule for rule in report.rules if rule.verdict in _LEVELS]
    if shown:
        lines += ["", "| rule | verdict | what happened | what to do |", "|---|---|---|---|"]
        lines += [_table_row(rule) for rule in shown]
    missed = report.of(Outcome.NOT_EXERCISED)
    if missed:
        lines += ["", f"<details><summary>{len(missed)} not exercised</summary>", ""]
        lines += [f"* {', '.join(ids)}: {_cell(reason)}" for reason, ids in _ids_by_reason(missed).items()]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _table_row(rule: RuleReport) -> str:
    reason = rule.evidence[0] if rule.evidence else rule.obligation
    reason = f"same cause as {rule.same_as}: {reason}" if rule.same_as else reason
    advice = f"{_cell(rule.accepted or rule.advice)} (`{_options_to_repeat(rule)}`)"
    return f"| {rule.id} | {rule.shown_verdict} | {_cell(reason)} | {advice} |"


def _options_to_repeat(rule: RuleReport) -> str:
    """Returns the options with which the check shows the verdict of a rule again. What is looked for in every run needs the rule
    of the run in which it was found."""
    one = next(filter(rule.shows, rule.provocations), None)
    if one is None:
        return f"--rules {rule.id}"
    if not one.provocation.startswith(IN_EVERY_RUN):
        return f"--again {one.key}"
    ids = dict.fromkeys([rule.id, one.run.partition("/")[0]])
    return f"--rules {','.join(filter(None, ids))}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def github_annotations(report: CheckResult) -> list[str]:
    """Returns the workflow commands that make GitHub show failures and warnings at a job, and why too little was exercised."""
    found = []
    for rule in report.rules:
        if rule.verdict not in _LEVELS or rule.same_as:
            continue
        level = "notice" if rule.accepted is not None else _level(rule)
        reason = rule.evidence[0] if rule.evidence else rule.obligation
        found.append(github_annotation(level, f"{rule.id} {rule.verdict}", f"{reason}\nFix: {rule.advice}"))
    if report.exit_code and not report.failures:
        found.append(github_annotation("error", "not enough exercised", "\n".join(report.remarks)))
    return found


def github_annotation(level: str, title: str, message: str) -> str:
    """Returns the workflow command that makes GitHub show a message at a job."""
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Escapes the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escapes a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# --- The page ---------------------------------------------------------------------------------------------------------
# Invariant: the file needs no server, and contains no credentials: its traces are redacted.


#: The order of the verdicts in the page.
_SECTION_ORDER = (Outcome.FAIL, Outcome.WARN, Outcome.NOT_EXERCISED, Outcome.PASS)


def report_html(report: CheckResult) -> str:
    """Returns the HTML of a report."""
    names = {key: _name_of(key) for key in report.traces}
    packed = {f"{part}-{names[key]}": content for key, parts in report.traces.items() for part, content in parts.pack().items()}
    ordered = sorted(report.rules, key=lambda rule: [str(one) for one in _SECTION_ORDER].index(rule.verdict))
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
    best = next((one.key for one in rule.provocations if one.key in keys and rule.shows(one)), None)
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

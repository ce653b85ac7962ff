"""The report of a check: Python values, a table for the terminal, JSON, and JUnit XML.

Invariant: `report.json` has exactly the members client and rules, and each rule has id, verdict, legality, evidence, source.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fakekube.checker.rule import Outcome

__all__ = ["Report", "RuleReport"]

_WIDTH = 118


@dataclass(slots=True, frozen=True)
class RuleReport:
    """The result for one rule id: the worst verdict of its provocations."""

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

    def as_json(self) -> dict[str, Any]:
        """Returns the rule's member of report.json."""
        return {
            "id": self.id,
            "verdict": self.verdict,
            "legality": self.legality,
            "evidence": list(self.evidence),
            "source": self.source,
        }


@dataclass(slots=True, frozen=True)
class Report:
    """The result of a check."""

    client: str
    rules: Sequence[RuleReport]

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
        return not self.failures

    @property
    def failures(self) -> list[RuleReport]:
        """The rules that are broken."""
        return self.of(Outcome.FAIL)

    def of(self, verdict: str) -> list[RuleReport]:
        """Returns the rules with a verdict."""
        return [rule for rule in self.rules if rule.verdict == verdict]

    def __getitem__(self, rule: str) -> RuleReport:
        """Returns the result for a rule id. Raises KeyError for a rule that was not checked."""
        for one in self.rules:
            if one.id == rule:
                return one
        raise KeyError(rule)

    def require_ok(self) -> None:
        """Raises AssertionError with the table if a rule is broken."""
        if not self.ok:
            raise AssertionError(f"{len(self.failures)} obligations are broken\n{self}")

    # ------------------------------------------------------------ forms

    def as_json(self) -> dict[str, Any]:
        """Returns the content of report.json."""
        return {"client": self.client, "rules": [rule.as_json() for rule in self.rules]}

    def write_json(self, path: Path | str) -> None:
        """Writes report.json. Raises OSError."""
        Path(path).write_text(json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def write_junit(self, path: Path | str) -> None:
        """Writes JUnit XML with a test case for each rule; a warning passes and has its reason in system-out. Raises OSError."""
        suite = ElementTree.Element(
            "testsuite",
            name="fakekube check",
            tests=str(len(self.rules)),
            failures=str(len(self.failures)),
            errors="0",
            skipped=str(len(self.of(Outcome.NOT_EXERCISED))),
        )
        for rule in self.rules:
            case = ElementTree.SubElement(
                suite, "testcase", classname=_valid_xml(self.client), name=f"{rule.id} {rule.obligation}"
            )
            first, text = (rule.evidence or ("",))[0], "\n".join(rule.evidence)
            if rule.verdict == Outcome.FAIL:
                ElementTree.SubElement(case, "failure", message=_valid_xml(first)).text = _valid_xml(text)
            elif rule.verdict == Outcome.NOT_EXERCISED:
                ElementTree.SubElement(case, "skipped", message=_valid_xml(first))
            elif text:
                ElementTree.SubElement(case, "system-out").text = _valid_xml(f"{rule.verdict}: {text}")
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)

    def table(self) -> str:
        """Returns a line for each rule; broken and suspected rules also have the obligation, the advice and the source."""
        lines = [f"client: {self.client}", ""]
        for rule in self.rules:
            first = rule.evidence[0] if rule.evidence else rule.obligation
            lines.append(_cut(f"{rule.id:<4}{rule.verdict:<14}{rule.legality:<3}{first}"))
            if rule.verdict in (Outcome.FAIL, Outcome.WARN):
                lines.append(f"{'':<21}rule:   {rule.obligation}")
                lines.append(f"{'':<21}fix:    {rule.advice}")
                lines.append(f"{'':<21}source: {rule.source}")
        counts = ", ".join(f"{len(self.of(outcome))} {outcome}" for outcome in Outcome)
        return "\n".join([*lines, "", counts])

    def details(self) -> str:
        """Returns the evidence of broken and suspected rules, with the trace."""
        parts = []
        for rule in self.rules:
            if rule.verdict in (Outcome.FAIL, Outcome.WARN):
                shown = "\n".join(f"    {line}" for line in rule.evidence)
                parts.append(f"{rule.id} {rule.verdict}: {rule.obligation}\n{shown}")
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.table(), self.details()) if part)


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _valid_xml(text: str) -> str:
    """Replaces the characters that XML cannot represent."""
    return "".join(letter if letter >= " " or letter in "\t\n\r" else "\ufffd" for letter in text)

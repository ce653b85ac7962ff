"""The report of a check: Python values, a table for the terminal, and report.json. Other forms are in `report_files`.

Invariant: the reason of a verdict is never shortened.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakekube.checker import report_files
from fakekube.checker.report_data import CheckResult, RuleReport
from fakekube.checker.verdict import Outcome

_WIDTH = 118
#: Where the reasons begin in the table.
_INDENT = 21


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

    # ------------------------------------------------------------ forms

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
        Path(path).write_text(json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def write_html(self, path: Path | str) -> None:
        """Writes the report as a page that a browser opens without a server, with the traces of the runs that failed or warned
        if the check made them. Raises OSError."""
        from fakekube.checker.report_files import report_html

        Path(path).write_text(report_html(self), encoding="utf-8")

    def write_junit(self, path: Path | str) -> None:
        """Writes JUnit XML with a test case for each provocation. Raises OSError."""
        report_files.write_junit(self, Path(path))

    def write_sarif(self, path: Path | str) -> None:
        """Writes SARIF 2.1.0 with a result for each failure and warning. Raises OSError."""
        report_files.write_sarif(self, Path(path))

    def write_summary(self, path: Path | str) -> None:
        """Appends a summary in Markdown to a file, as GitHub expects it. Raises OSError."""
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(report_files.markdown(self))

    def table(self) -> str:
        """Returns the verdict and the reason for each rule; broken and suspected rules also have what to do.

        Rules with the cause of another one follow it.
        """
        lines = [f"client: {self.client}", ""]
        followers = {rule.same_as for rule in self.rules if rule.same_as}
        for rule in self.rules:
            if rule.same_as:
                continue
            lines += self._lines(rule)
            if rule.id in followers:
                for one in self.rules:
                    if one.same_as == rule.id:
                        lines += _wrap(f"  {one.id}", one.verdict, one.legality, f"same cause as {rule.id}: {_reason_of(one)}")
        counts = ", ".join(f"{len(self.of(outcome))} {outcome}" for outcome in Outcome)
        return "\n".join([*lines, "", *self.remarks, f"{counts}; seed {self.seed}, {self.seconds:.0f} s"])

    @staticmethod
    def _lines(rule: RuleReport) -> list[str]:
        verdict = "accepted" if rule.accepted is not None and rule.verdict == Outcome.FAIL else rule.verdict
        lines = _wrap(rule.id, verdict, rule.legality, _reason_of(rule))
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
                parts.append(f"{rule.id} {rule.verdict}: {rule.obligation}\n{shown}")
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.table(), self.details()) if part)


def _reason_of(rule: RuleReport) -> str:
    return rule.evidence[0] if rule.evidence else rule.obligation


def _wrap(name: str, verdict: str, legality: str, text: str) -> list[str]:
    """Returns the lines of a row; a long text continues on lines of its own."""
    parts = textwrap.wrap(text, _WIDTH - _INDENT, break_long_words=False) or [""]
    begin = f"{name:<4}{verdict:<14}{legality:<3}"
    return [begin + parts[0], *(" " * _INDENT + part for part in parts[1:])]

"""What the owner of a client demands of a check: accepted failures and warnings, required rules, how much must be exercised.

Invariant: a policy changes no verdict. It says which of them are accepted, and which exit code the check has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fakekube.checker.verdict import BLAMED, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fakekube.checker.report import Report, RuleReport

#: The exit code of a check that broke no rule and exercised too little.
NOT_ENOUGH = 4

#: The id of a rule, or the key of one of its provocations.
_NAME = r"[A-Za-z]\d+(?:/[A-Za-z0-9^-]+)?"
#: A line of a file of what is accepted: a name, and the reason.
_LINE = re.compile(rf"(?P<name>{_NAME})\s*[:=\s]\s*(?P<reason>.*)|(?P<alone>{_NAME})")
#: The reason why something is accepted if none is given.
_BY_NAME = "named by --accept"
_NAMES = re.compile(rf"{_NAME}(\s*,\s*{_NAME})*,?")


@dataclass(slots=True, frozen=True)
class Policy:
    """The demands of the owner of a client.

    Args:
        accepted: the rules and provocations whose failures and warnings are accepted, by their ids and keys, with the reasons.
        required: the ids of rules that must be exercised.
        min_exercised: how many rules must be exercised; None if any number is enough.
        strict: whether warnings are failures.
        allow_timeout: whether a timeout may leave rules unexercised.
    """

    accepted: Mapping[str, str] = field(default_factory=dict)
    required: Sequence[str] = ()
    min_exercised: int | None = None
    strict: bool = False
    allow_timeout: bool = False

    def refuse_impossible(self, selected: Iterable[str], left_out: Mapping[str, str]) -> None:
        """Raises ValueError for a demand that no client can fulfil.

        Args:
            selected: the ids of the rules that will run.
            left_out: the ids of other rules, with the reasons why they will not.
        """
        ids = set(selected)
        for one in self.required:
            if one not in ids:
                raise ValueError(f"--require: {one} does not run: {left_out.get(one, 'it is not selected')}")
        if self.min_exercised is not None and self.min_exercised > len(ids):
            raise ValueError(f"--min-exercised: {self.min_exercised} are more than the {len(ids)} rules that run")

    def apply(self, report: Report, *, cut_short: Sequence[str]) -> Report:
        """Returns the report with the reasons of accepted rules, remarks and the exit code.

        Args:
            report: the report of the check.
            cut_short: the ids of the rules for which the timeout left no time.
        """
        rules = [self._judge(rule) for rule in report.rules]
        remarks, shortfalls = self._find_needless_exceptions(rules), self._find_shortfalls(rules, cut_short)
        suspected = [rule.id for rule in rules if rule.is_broken and rule.verdict == Outcome.WARN]
        if suspected:
            remarks.append(f"--strict: the warnings of {', '.join(suspected)} are failures")
        code = NOT_ENOUGH if shortfalls else None
        return replace(report, rules=rules, remarks=[*report.remarks, *remarks, *shortfalls], code=code)

    def _judge(self, rule: RuleReport) -> RuleReport:
        """Returns the report of a rule, with the reasons if failures and warnings of its provocations are accepted."""
        provocations = [
            replace(one, accepted=self.accepted.get(one.key, self.accepted.get(rule.id)) if one.verdict in BLAMED else None)
            for one in rule.provocations
        ]
        reasons = [one.accepted for one in provocations if one.verdict in BLAMED]
        accepted = None if None in reasons or not reasons else "; ".join(dict.fromkeys(filter(None, reasons)))
        return replace(rule, provocations=provocations, accepted=accepted, is_strict=self.strict)

    def _find_needless_exceptions(self, rules: Sequence[RuleReport]) -> list[str]:
        """Returns remarks about accepted rules and provocations that are not broken any more."""
        verdicts = {rule.id: rule.verdict for rule in rules} | {
            one.key: one.verdict for rule in rules for one in rule.provocations
        }
        passing = [one for one in self.accepted if verdicts.get(one) == Outcome.PASS]
        return [f"{one} is accepted as broken, and passes now: remove it from --accept" for one in passing]

    def _find_shortfalls(self, rules: Sequence[RuleReport], cut_short: Sequence[str]) -> list[str]:
        """Returns what should have been exercised and was not."""
        by_id = {rule.id: rule for rule in rules}
        exercised = [rule for rule in rules if rule.verdict != Outcome.NOT_EXERCISED]
        found = []
        for one in self.required:
            rule = by_id.get(one)
            if rule is not None and rule.verdict == Outcome.NOT_EXERCISED:
                reason = next(iter(rule.evidence), "")
                found.append(f"--require: {one} was not exercised: {reason}")
        if not exercised:
            found.append("no rule was exercised")
        if self.min_exercised is not None and len(exercised) < self.min_exercised:
            found.append(f"--min-exercised: fewer than {self.min_exercised} rules were exercised: {len(exercised)}")
        if cut_short and not self.allow_timeout:
            found.append(
                f"--timeout: the time was up before all of {', '.join(cut_short)} had a verdict; --allow-timeout accepts this"
            )
        return found


def parse_accepted(text: str) -> dict[str, str]:
    """Parses the value of `--accept`: ids of rules and keys of provocations, separated by commas, or the name of a file with a
    line `W7: reason` or `W8/slices: reason` for each.

    In the file, empty lines and lines that begin with # are ignored. Raises ValueError.
    """
    if not text.strip():
        raise ValueError("--accept names neither a rule nor a file")
    if _NAMES.fullmatch(text.strip()):
        return {one.strip(): _BY_NAME for one in text.split(",") if one.strip()}
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"--accept: {text} is neither a list of rules nor a file that can be read") from None
    found = {}
    for number, written in enumerate(lines, 1):
        line = written.strip().removeprefix("- ").strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"--accept: line {number} of {text} is not `RULE: reason`")
        found[match["name"] or match["alone"]] = (match["reason"] or "").strip() or _BY_NAME
    return found

"""The values of a report: a check, its rules, and their provocations.

Invariant: the values are those of report.json.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakekube.checker.rule import Rule
from fakekube.checker.verdict import Outcome, Symptom, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fakekube.checker.execution import Run
    from fakekube.powers.trace import TraceParts


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

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "provocation": self.provocation,
            "legality": self.legality,
            "verdict": self.verdict,
            "evidence": list(self.evidence),
            "seconds": self.seconds,
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
    """The reason for which a failure is accepted; None if it is not."""

    @property
    def is_broken(self) -> bool:
        """Whether the rule failed, and this is not accepted."""
        return self.verdict == Outcome.FAIL and self.accepted is None

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


_ORDER = tuple(Outcome)
#: The rules that name a cause best, if several rules fail in the same way.
_NAMING: Mapping[Symptom, Sequence[str]] = {
    Symptom.NO_PAUSE: ("W6", "R2"),
    Symptom.LOOP: ("W6", "R2"),
    Symptom.ENDED: ("W1", "W5", "R2", "W8"),
}


def rows_of(rules: Iterable[Rule], runs: Mapping[Rule, Run]) -> list[RuleReport]:
    """Returns the rows of a report in the order of the rules."""
    by_id: dict[str, list[Rule]] = {}
    for rule in rules:
        by_id.setdefault(rule.id, []).append(rule)
    causes = _causes([(rule, runs[rule].verdict) for some in by_id.values() for rule in some])
    return [_row(some, runs, causes) for some in by_id.values()]


def _row(rules: Sequence[Rule], runs: Mapping[Rule, Run], causes: Mapping[Rule, str]) -> RuleReport:
    worst = min(rules, key=lambda rule: _ORDER.index(runs[rule].verdict.outcome))
    verdict = runs[worst].verdict
    missed = [rule for rule in rules if runs[rule].verdict.outcome is Outcome.NOT_EXERCISED]
    decisive = [rule for rule in rules if rule.decisive]
    if verdict.outcome is Outcome.PASS and decisive and all(rule in missed for rule in decisive):
        worst, verdict = decisive[0], runs[decisive[0]].verdict
    evidence = list(verdict.evidence) or [""]
    if len(rules) > 1 and verdict.outcome is not Outcome.PASS:
        evidence[0] = f"{worst.name} ({worst.provocation}): {evidence[0]}"
    elif missed and verdict.outcome is Outcome.PASS:
        done = ", ".join(rule.name for rule in rules if rule not in missed)
        left = "; ".join(f"{rule.name}: {next(iter(runs[rule].verdict.evidence), '')}" for rule in missed)
        evidence[0] = f"{len(rules) - len(missed)} of {len(rules)} provocations ({done}); not exercised: {left}"
    same = {causes.get(rule, "") for rule in rules if runs[rule].verdict.outcome is Outcome.FAIL}
    return RuleReport(
        id=worst.id,
        verdict=str(verdict.outcome),
        legality=worst.legality,
        evidence=[line for line in evidence if line],
        source=worst.source,
        obligation=worst.obligation,
        advice=worst.advice,
        provocations=[_provocation(rule, runs[rule]) for rule in rules],
        same_as=next(iter(same)) if len(same) == 1 else "",
    )


def _provocation(rule: Rule, run: Run) -> ProvocationReport:
    return ProvocationReport(
        key=rule.key,
        provocation=rule.provocation,
        legality=rule.legality,
        verdict=str(run.verdict.outcome),
        evidence=list(run.verdict.evidence),
        seconds=round(run.seconds, 1),
    )


def _causes(verdicts: Iterable[tuple[Rule, Verdict]]) -> dict[Rule, str]:
    """Returns, for rules that failed in the same way as another one, the id of the rule that names the cause."""
    groups: dict[tuple[Symptom, str], list[Rule]] = {}
    for rule, verdict in verdicts:
        if verdict.outcome is Outcome.FAIL and verdict.symptom is not None and verdict.likeness:
            groups.setdefault((verdict.symptom, verdict.likeness), []).append(rule)
    found: dict[Rule, str] = {}
    for (symptom, _), rules in groups.items():
        ids = list(dict.fromkeys(rule.id for rule in rules))
        leader = next((one for one in _NAMING.get(symptom, ()) if one in ids), ids[0])
        found |= {rule: leader for rule in rules if rule.id != leader}
    return found

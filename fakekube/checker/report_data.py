"""The values of a report: a check, its rules, and their provocations.

Invariant: the values are those of report.json.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakekube.checker.rule import Outcome

if TYPE_CHECKING:
    from fakekube.powers.trace import TraceParts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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

"""The base class of rules: an obligation of clients, a provocation, and a verdict.

Several rules may have the same id and different provocations. They are one row of the report, with the worst of their verdicts.

Invariant: a rule has no state of its own; the state of one run is in its `Trial`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from fakekube.checker.trial import Trial

__all__ = ["NotExercised", "Outcome", "Rule", "Verdict"]


class NotExercised(Exception):
    """A rule does not apply to the client; the text has the reason."""


class Outcome(StrEnum):
    """The verdicts, the worst one first."""

    FAIL = "fail"
    WARN = "warn"
    PASS = "pass"
    NOT_EXERCISED = "not exercised"


@dataclass(slots=True, frozen=True)
class Verdict:
    """The result of one run of a rule.

    `by_time`: the verdict depends on a timeout, so that a second run has to confirm it.
    """

    outcome: Outcome
    evidence: Sequence[str] = ()
    """The reason first, then lines of the trace."""
    by_time: bool = False
    by_chance: bool = False
    """The random choices of a correct client may look like this failure, so that only the second run counts."""

    @classmethod
    def passed(cls, *evidence: str) -> Verdict:
        return cls(Outcome.PASS, evidence)

    @classmethod
    def failed(cls, *evidence: str, by_time: bool = False, by_chance: bool = False) -> Verdict:
        return cls(Outcome.FAIL, evidence, by_time or by_chance, by_chance)

    @classmethod
    def warned(cls, *evidence: str) -> Verdict:
        return cls(Outcome.WARN, evidence)

    @classmethod
    def not_exercised(cls, *evidence: str) -> Verdict:
        return cls(Outcome.NOT_EXERCISED, evidence)

    def suspected(self) -> Verdict:
        """Returns a warning instead of a failure; other verdicts unchanged."""
        return Verdict.warned(*self.evidence) if self.outcome is Outcome.FAIL else self


class Rule:
    """The base class of rules.

    A subclass sets the class attributes and overrides some of the methods, which are called in the order of their definition.
    After `provoke`, if `converges` is set, the runner creates a fresh copy of the sample and waits until the client has reacted
    to all copies. `judge` is called in any case.
    """

    id: ClassVar[str]
    """The id in docs/client-rules.md."""
    provocation: ClassVar[str]
    """A short description, different for each rule with the same id. The seed of the rule's random choices depends on it."""
    obligation: ClassVar[str]
    advice: ClassVar[str]
    """How the author of the client can fix it."""
    source: ClassVar[str]
    """The documentation or source code that specifies the obligation."""
    legality: ClassVar[str] = "A"
    """A: kube-apiserver does it, B: the contract allows it, C: the network does it."""

    at_start: ClassVar[bool] = False
    """Whether the provocation begins before the client starts. Otherwise it begins after the client has reacted to a copy."""
    converges: ClassVar[bool] = True
    """Whether the client must react to a fresh copy afterwards."""
    on_baseline: ClassVar[bool] = False
    """Whether the rule provokes nothing and judges the baseline run."""
    expected_seconds: ClassVar[float] = 5.0
    """About how many seconds the rule takes with a correct client; rules that take longest start first."""
    token_file: ClassVar[bool] = False
    """Whether the kubeconfig refers to a file with the token."""

    fallback: ClassVar[type[Rule] | None] = None
    """The rule to run instead of this one if the client does not react before the provocation."""

    def cluster_arguments(self) -> Mapping[str, Any]:
        """Returns arguments of `Cluster` for this rule."""
        return {}

    def prepare(self, trial: Trial) -> None:
        """Called before the client starts. Raises NotExercised."""

    def provoke(self, trial: Trial) -> None:
        """Called while the client runs. Raises NotExercised."""

    def find_failure(self, trial: Trial) -> Verdict | None:
        """Returns a failure that the trace already shows, so that the run can end early. Called repeatedly after the provocation
        has begun."""
        return None

    def judge(self, trial: Trial) -> Verdict:
        """Returns the verdict: that of `find_failure`, else of the process and of convergence, else of `judge_trace`."""
        return self.find_failure(trial) or trial.common_verdict() or self.judge_trace(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        """Returns the verdict for a client that still runs and has converged."""
        return Verdict.passed(*trial.notes)

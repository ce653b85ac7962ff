"""What a rule is: an obligation with a provocation and a verdict.

A row of the catalogue is one or more rules with the same id, each with another provocation; the row's verdict is the worst of
theirs.

Invariant: a rule keeps no state; what belongs to one run is in the `Spell`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell

__all__ = ["NotExercised", "Rule", "Verdict", "Word"]


class NotExercised(Exception):
    """The client gives no occasion for a rule; the text says why."""


class Word(StrEnum):
    """The words of verdicts, from the worst to the least."""

    FAIL = "fail"
    WARN = "warn"
    PASS = "pass"
    NOT_EXERCISED = "not exercised"


@dataclass(slots=True, frozen=True)
class Verdict:
    """What was found of a rule.

    `by_time`: the verdict rests on how long something took, so that it is confirmed by another run.
    """

    word: Word
    evidence: Sequence[str] = ()
    """The line that matters comes first."""
    by_time: bool = False

    @classmethod
    def passed(cls, *evidence: str) -> Verdict:
        return cls(Word.PASS, evidence)

    @classmethod
    def failed(cls, *evidence: str, by_time: bool = False) -> Verdict:
        return cls(Word.FAIL, evidence, by_time)

    @classmethod
    def warned(cls, *evidence: str) -> Verdict:
        return cls(Word.WARN, evidence)

    @classmethod
    def not_exercised(cls, *evidence: str) -> Verdict:
        return cls(Word.NOT_EXERCISED, evidence)


class Rule:
    """A rule; see the module.

    A subclass sets the class attributes and overrides some of the methods, which are called in their order. The spell then
    makes a fresh copy of the sample and waits until the client has reacted to all copies (`converges`); `judge` is called in
    any case.
    """

    id: ClassVar[str]
    """Of its row in the catalogue."""
    provocation: ClassVar[str]
    """In a few words; tells the rules of a row apart."""
    obligation: ClassVar[str]
    advice: ClassVar[str]
    """What the author of the client is to do."""
    source: ClassVar[str]
    """Where the obligation is written."""
    legality: ClassVar[str] = "A"
    """A: kube-apiserver does it, B: the contract allows it, C: the network does it."""

    at_start: ClassVar[bool] = False
    """The provocation meets the client as it starts; else the client is first seen to react."""
    converges: ClassVar[bool] = True
    """The client must react to a fresh copy afterwards."""
    on_calm: ClassVar[bool] = False
    """Nothing is provoked: the calm run is judged."""
    lasts: ClassVar[float] = 5.0
    """About how many seconds it takes with a good client; the longest begin first."""
    token_file: ClassVar[bool] = False
    """The kubeconfig refers to a file with the token."""

    otherwise: ClassVar[type[Rule] | None] = None
    """The rule to run in place of this one for a client that never comes."""

    def cluster_arguments(self) -> Mapping[str, Any]:
        """Returns arguments of `Cluster` for this rule."""
        return {}

    def prepare(self, spell: Spell) -> None:
        """Called before the client starts. Raises NotExercised."""

    def provoke(self, spell: Spell) -> None:
        """Called when the client runs. Raises NotExercised."""

    def broken(self, spell: Spell) -> Verdict | None:
        """Returns a failure that the trace shows already, so that there is no need to wait longer. Called again and
        again after the provocation began."""
        return None

    def judge(self, spell: Spell) -> Verdict:
        """Returns the verdict: that of `broken`, of the judges of processes and convergence, or of `judge_trace`."""
        return self.broken(spell) or spell.ordinary_verdict() or self.judge_trace(spell)

    def judge_trace(self, spell: Spell) -> Verdict:
        """Called by `judge` for a client that still runs and has converged."""
        return Verdict.passed(*spell.notes)

"""Verdicts: what a rule says about one run of a client.

Invariant: the first line of the evidence is the reason; the others are lines of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class NotExercised(Exception):
    """A rule does not apply to the client; the text has the reason."""


class Outcome(StrEnum):
    """The verdicts, the worst one first."""

    FAIL = "fail"
    WARN = "warn"
    PASS = "pass"
    NOT_EXERCISED = "not exercised"


#: The verdicts against a client.
BLAMED = frozenset({Outcome.FAIL, Outcome.WARN})


class Symptom(StrEnum):
    """What a failure looks like if any rule may show it. A failure with a symptom may be due to a step of the provocation, and
    equal failures of several rules may have one cause."""

    ENDED = "the client ended"
    LOOP = "it sends requests without a pause"
    NO_PAUSE = "no backoff"
    NO_REACTION = "it does not react any more"


@dataclass(slots=True, frozen=True)
class Verdict:
    """The result of one run of a rule."""

    outcome: Outcome
    evidence: Sequence[str] = ()
    """The reason first, then lines of the trace."""
    by_time: bool = False
    """The verdict depends on a timeout, so that a second run has to confirm it."""
    by_chance: bool = False
    """The random choices of a correct client may look like this, so that only the second run counts."""
    symptom: Symptom | None = None
    """None if the evidence is specific to the rule."""
    likeness: str = ""
    """Equal for failures with the same symptom and the same cause, such as the last words of a client that ended."""
    calm: float | None = None
    """For a client that ended: for how many seconds nothing had happened before."""
    run: str = ""
    """The key of the provocation in whose run it was found, if its rule inspects the runs of others."""

    @classmethod
    def success(cls, *evidence: str) -> Verdict:
        return cls(Outcome.PASS, evidence)

    @classmethod
    def failure(
        cls,
        *evidence: str,
        by_time: bool = False,
        by_chance: bool = False,
        symptom: Symptom | None = None,
        likeness: str = "",
        calm: float | None = None,
    ) -> Verdict:
        return cls(Outcome.FAIL, evidence, by_time or by_chance, by_chance, symptom, likeness, calm)

    @classmethod
    def warning(cls, *evidence: str, by_time: bool = False, by_chance: bool = False) -> Verdict:
        return cls(Outcome.WARN, evidence, by_time or by_chance, by_chance)

    @classmethod
    def not_exercised(cls, *evidence: str) -> Verdict:
        return cls(Outcome.NOT_EXERCISED, evidence)

    def as_warning(self) -> Verdict:
        """Returns a warning instead of a failure; other verdicts unchanged."""
        return replace(self, outcome=Outcome.WARN) if self.outcome is Outcome.FAIL else self


@dataclass(slots=True, frozen=True)
class Run:
    """The result of a run of a rule: its verdict, and how many seconds it took."""

    verdict: Verdict
    seconds: float

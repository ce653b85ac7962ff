"""What the rules find that inspect the trace of every run.

Invariant: the first finding of each rule is kept, together with the run in which it was seen.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fakekube.checker.rule import Rule, Verdict

if TYPE_CHECKING:
    from fakekube.checker.trial import Trial

__all__ = ["Inspections"]


class Inspections:
    """The findings of some rules in the runs of a check."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = rules
        self._found: dict[Rule, Verdict] = {}
        self._runs = 0
        self._lock = threading.Lock()

    def inspect(self, trial: Trial) -> None:
        """Inspects the trace of a finished run; `trial` may be that of the baseline."""
        if trial.rule is not None and trial.rule.distorts:
            return
        where = trial.rule.key if trial.rule is not None else "the baseline run"
        with self._lock:
            self._runs += 1
        for rule in self._rules:
            verdict = rule.inspect(trial) if rule not in self._found else None
            if verdict is not None:
                first, *others = verdict.evidence
                with self._lock:
                    self._found.setdefault(rule, replace(verdict, evidence=[f"in {where}: {first}", *others]))

    def verdict(self, rule: Rule) -> Verdict:
        """Returns the verdict of one of the rules."""
        return self._found.get(rule) or Verdict.passed(f"{self._runs} runs")

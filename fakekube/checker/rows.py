"""The rows of a report: what the runs of the provocations say about each rule.

Invariants: a row has the worst verdict of its provocations, and what is accepted counts less than what is not. Rules that fail
for the same cause name the one that tells it best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.checker.report import ProvocationReport, RuleReport
from fakekube.checker.verdict import BLAMED, Outcome, Run, Symptom, Verdict

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from fakekube.checker.rule import Rule


_ORDER = tuple(Outcome)
#: The rules that name a cause best, if several rules fail in the same way.
_NAMING: Mapping[Symptom, Sequence[str]] = {
    Symptom.NO_PAUSE: ("W6", "R2"),
    Symptom.LOOP: ("W6", "R2"),
    Symptom.ENDED: ("W1", "W5", "R2", "W8"),
}


def rows_of(rules: Iterable[Rule], runs: Mapping[Rule, Run], accepted: Container[str] = ()) -> list[RuleReport]:
    """Returns the rows of a report in the order of the rules; what is accepted counts less than what is not.

    Args:
        rules: the rules.
        runs: their runs.
        accepted: the keys of provocations whose failures and warnings are accepted.
    """
    by_id: dict[str, list[Rule]] = {}
    for rule in rules:
        by_id.setdefault(rule.id, []).append(rule)
    causes = _causes([(rule, runs[rule].verdict) for some in by_id.values() for rule in some])
    return [_row(some, runs, causes, accepted) for some in by_id.values()]


def _row(rules: Sequence[Rule], runs: Mapping[Rule, Run], causes: Mapping[Rule, str], accepted: Container[str]) -> RuleReport:
    blamed = [rule for rule in rules if runs[rule].verdict.outcome in BLAMED]
    shown = [rule for rule in blamed if rule.key not in accepted] or blamed or rules
    worst = min(shown, key=lambda rule: _ORDER.index(runs[rule].verdict.outcome))
    verdict = runs[worst].verdict
    missed = [rule for rule in rules if runs[rule].verdict.outcome is Outcome.NOT_EXERCISED]
    decisive = [rule for rule in rules if rule.decisive]
    if verdict.outcome is Outcome.PASS and decisive and all(rule in missed for rule in decisive):
        worst, verdict = decisive[0], runs[decisive[0]].verdict
    evidence = list(verdict.evidence) or [""]
    reasons: dict[str, list[str]] = {}
    for rule in missed:
        reasons.setdefault(next(iter(runs[rule].verdict.evidence), ""), []).append(rule.name)
    if verdict.outcome is Outcome.PASS and missed:
        done = ", ".join(rule.name for rule in rules if rule not in missed)
        left = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        evidence[0] = f"{len(rules) - len(missed)} of {len(rules)} provocations ({done}); not exercised: {left}"
    elif verdict.outcome is not Outcome.PASS and len(rules) > 1 and (len(missed) < len(rules) or len(reasons) > 1):
        evidence[0] = f"{worst.name} ({worst.provocation}): {evidence[0]}"
    same = {causes.get(rule, "") for rule in shown if runs[rule].verdict.outcome is Outcome.FAIL}
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
        run=run.verdict.run,
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

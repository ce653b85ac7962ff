"""Runs a check: the calm run, then every rule on a cluster of its own, several at once.

Invariant: a failure that depends on a timeout is reported only if a second run confirms it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from fakekube.checker.calm import learn
from fakekube.checker.report import Report, RuleReport
from fakekube.checker.rule import NotExercised, Rule, Verdict, Word
from fakekube.checker.rules import in_order
from fakekube.checker.spell import ClientEnded, Decided, HotLoop, Spell

if TYPE_CHECKING:
    from fakekube.checker.bench import Bench

__all__ = ["Progress", "run"]

#: Called with a line of progress.
Progress = Callable[[str], None]

#: How many rules run at once; clients mostly wait.
_AT_ONCE = 16
#: How many second runs, which confirm failures, run at once.
_AT_ONCE_CONFIRMING = 8

_ORDER = tuple(Word)


def run(bench: Bench, rules: Sequence[Rule], progress: Progress, left_out: Sequence[Rule] = ()) -> Report:
    """Runs rules and returns the report; `left_out` are rules that appear in it as not exercised. Raises CalmRunFailed."""
    progress("calm run: observing the client without faults")
    calm = bench.calm = learn(bench)
    reaction = ", ".join(map(str, calm.reaction.visible)) or "no reaction except its watches"
    progress(f"calm run: first request in {calm.start_seconds:.1f} s, reaction in {calm.reaction_seconds:.1f} s: {reaction}")
    verdicts = _run_all(bench, [rule for rule in rules if not rule.on_calm], progress)
    for rule in rules:
        if rule.on_calm:
            verdicts[rule] = _judged(rule, calm.spell)
    for rule in left_out:
        verdicts[rule] = Verdict.not_exercised(f"its provocations are of class {rule.legality}, which was not selected")
    rules = in_order([*rules, *left_out])
    return Report(f"{bench.starter.name} ({calm.agent})" if calm.agent else bench.starter.name, rows(rules, verdicts))


def _confirmed(first: Verdict, second: Verdict) -> Verdict:
    if second.word is Word.FAIL or first.by_chance:
        return second
    return Verdict.warned(f"happened in one of two runs: {first.evidence[0]}", *first.evidence[1:])


def _run_all(bench: Bench, rules: Iterable[Rule], progress: Progress) -> dict[Rule, Verdict]:
    """Runs rules, several at once; the longest start first. A failure that depends on a timeout is confirmed by a second run."""
    ordered = sorted(rules, key=lambda rule: -rule.lasts)
    lock, left = threading.Lock(), len(ordered)
    confirming = threading.BoundedSemaphore(_AT_ONCE_CONFIRMING)

    def run_one(rule: Rule) -> Verdict:
        nonlocal left
        verdict = run_rule(bench, rule)
        if verdict.word is Word.FAIL and verdict.by_time:
            progress(f"{rule.id} ({rule.provocation}): {verdict.evidence[0]}; running it again to confirm")
            with confirming:
                verdict = _confirmed(verdict, run_rule(bench, rule))
        with lock:
            left -= 1
            first = f": {verdict.evidence[0]}" if verdict.evidence and verdict.word is not Word.PASS else ""
            progress(f"{rule.id} ({rule.provocation}): {verdict.word}{first} [{left} to go]")
        return verdict

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fakekube-check") as pool:
        try:
            return dict(zip(ordered, pool.map(run_one, ordered), strict=True))
        except BaseException:  # Ctrl-C: the running rules end when they next check `stopping`
            bench.stopping.set()
            pool.shutdown(cancel_futures=True)
            raise


def run_rule(bench: Bench, rule: Rule) -> Verdict:
    """Runs one rule on a cluster of its own and returns its verdict."""
    spell = Spell(bench, rule)
    try:
        try:
            _cast(rule, spell)
        except _NeverCame:
            return _run_otherwise(bench, rule, spell)
        except Decided:
            pass
        except (ClientEnded, HotLoop):
            if not spell.provoked and rule.otherwise is not None:
                return _run_otherwise(bench, rule, spell)
            if not spell.provoked:
                return Verdict.not_exercised(f"before the provocation: {spell.ended or spell.loop}")
        return _judged(rule, spell)
    except NotExercised as problem:
        return Verdict.not_exercised(str(problem))
    except Exception as problem:  # a bug in a rule must not lose the verdicts of the others
        place = traceback.extract_tb(problem.__traceback__)[-1]
        return Verdict.not_exercised(
            f"the check itself failed: {type(problem).__name__}: {problem} ({Path(place.filename).name}:{place.lineno})"
        )
    finally:
        spell.close()


class _NeverCame(NotExercised):
    """The client did not react to a copy before the provocation."""


def _run_otherwise(bench: Bench, rule: Rule, spell: Spell) -> Verdict:
    """Runs the rule that replaces one to which the client does not react. Raises NotExercised if there is none."""
    if rule.otherwise is None:
        raise NotExercised("the client did not react as in the calm run, before anything was provoked")
    spell.close()
    return run_rule(bench, rule.otherwise())


def _judged(rule: Rule, spell: Spell) -> Verdict:
    try:
        return rule.judge(spell)
    except NotExercised as problem:
        return Verdict.not_exercised(str(problem))
    except ClientEnded as problem:  # in the calm run: this is not a failure of the rule
        return Verdict.not_exercised(str(problem))


def _cast(rule: Rule, spell: Spell) -> None:
    """Starts the client, provokes it, and waits until it converges. Raises NotExercised, Decided, ClientEnded, HotLoop."""
    spell.open()
    rule.prepare(spell)
    if rule.at_start:
        spell.provoke_now()
        spell.start_client()
    else:
        spell.start_client()
        if rule.otherwise is not None and not spell.trace.count_since(-1):
            raise _NeverCame
        spell.stimulate()
        if not spell.await_reaction(spell.copies[0], 20.0 + 5 * spell.calm.reaction_seconds + 3 * spell.calm.start_seconds):
            raise _NeverCame
        spell.provoke_now()
    rule.provoke(spell)
    if rule.converges:
        spell.converge()


def rows(rules: Iterable[Rule], verdicts: dict[Rule, Verdict]) -> list[RuleReport]:
    """Returns the rows of a report: one for each id, with the worst verdict of its rules."""
    by_id: dict[str, list[Rule]] = {}
    for rule in rules:
        by_id.setdefault(rule.id, []).append(rule)
    return [_row(some, verdicts) for some in by_id.values()]


def _row(rules: Sequence[Rule], verdicts: dict[Rule, Verdict]) -> RuleReport:
    worst = min(rules, key=lambda rule: _ORDER.index(verdicts[rule].word))
    verdict = verdicts[worst]
    evidence = list(verdict.evidence)
    if len(rules) > 1 and evidence and verdict.word is not Word.PASS:
        evidence[0] = f"{worst.provocation}: {evidence[0]}"
    return RuleReport(worst.id, str(verdict.word), worst.legality, evidence, worst.source, worst.obligation, worst.advice)

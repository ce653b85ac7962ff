"""Runs a check: the baseline run, then every rule on a cluster of its own, several at once.

Invariant: a failure that depends on a timeout, and any failure or warning of a run in which this process stood still, is reported
only if a second run confirms it.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from fakekube.checker.baseline import learn
from fakekube.checker.client_run import ClientEnded, Decided, HotLoop
from fakekube.checker.report import Report, RuleReport
from fakekube.checker.rule import NotExercised, Outcome, Rule, Verdict
from fakekube.checker.rules import in_order
from fakekube.checker.trial import Trial

if TYPE_CHECKING:
    from fakekube.checker.session import Session

__all__ = ["Progress", "confirmed", "run"]

#: Called with a line of progress.
Progress = Callable[[str], None]

#: How many rules run at once; clients mostly wait.
_AT_ONCE = 16
#: How many second runs, which confirm failures, run at once.
_AT_ONCE_CONFIRMING = 8

#: Seconds for which this process may stand still during a first and a second run whose verdict counts.
_STALLED, _STALLED_AGAIN = 1.5, 4.0

_ORDER = tuple(Outcome)
_BLAMED = frozenset({Outcome.FAIL, Outcome.WARN})


def run(session: Session, rules: Sequence[Rule], progress: Progress, skipped: Sequence[Rule] = ()) -> Report:
    """Runs rules and returns the report; `skipped` are rules that appear in it as not exercised. Raises BaselineFailed."""
    progress("baseline run: observing the client without faults")
    baseline = session.baseline = learn(session)
    reaction = ", ".join(map(str, baseline.reaction.visible)) or "no reaction except its watches"
    progress(
        f"baseline run: first request in {baseline.start_seconds:.1f} s, reacts in {baseline.reaction_seconds:.1f} s: {reaction}"
    )
    with session.stalls.measuring():
        verdicts = _run_all(session, [rule for rule in rules if not rule.on_baseline], progress)
    for rule in rules:
        if rule.on_baseline:
            verdicts[rule] = _judged(rule, baseline.trial)
    for rule in skipped:
        verdicts[rule] = Verdict.not_exercised(f"its provocations are of class {rule.legality}, which was not selected")
    rules = in_order([*rules, *skipped])
    return Report(f"{session.starter.name} ({baseline.agent})" if baseline.agent else session.starter.name, rows(rules, verdicts))


def confirmed(first: Verdict, second: Verdict, *, stalled: bool) -> Verdict:
    """Returns the verdict of two runs; `stalled`: whether this process stood still during the first one, which then does not
    count."""
    if second.outcome is Outcome.FAIL or first.by_chance or stalled:
        return second
    return Verdict.warned(f"happened in one of two runs: {first.evidence[0]}", *first.evidence[1:])


def _run_all(session: Session, rules: Iterable[Rule], progress: Progress) -> dict[Rule, Verdict]:
    """Runs rules, several at once; the longest start first."""
    ordered = sorted(rules, key=lambda rule: -rule.expected_seconds)
    lock, left = threading.Lock(), len(ordered)
    confirming = threading.BoundedSemaphore(_AT_ONCE_CONFIRMING)

    def run_one(rule: Rule) -> Verdict:
        nonlocal left
        begun = time.monotonic()
        verdict = run_rule(session, rule)
        stalled = session.stalls.longest(begun) > _STALLED and verdict.outcome in _BLAMED
        if stalled or (verdict.outcome is Outcome.FAIL and verdict.by_time):
            why = ", because this process stood still" if stalled else " to confirm"
            progress(f"{rule.id} ({rule.provocation}): {verdict.evidence[0]}; running it again{why}")
            with confirming:
                begun = time.monotonic()
                verdict = confirmed(verdict, run_rule(session, rule), stalled=stalled)
            if stalled and verdict.outcome in _BLAMED and (stall := session.stalls.longest(begun)) > _STALLED_AGAIN:
                verdict = Verdict.not_exercised(f"this process stood still for {stall:.1f} s: {verdict.evidence[0]}")
        with lock:
            left -= 1
            first = f": {verdict.evidence[0]}" if verdict.evidence and verdict.outcome is not Outcome.PASS else ""
            progress(f"{rule.id} ({rule.provocation}): {verdict.outcome}{first} [{left} to go]")
        return verdict

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fakekube-check") as pool:
        try:
            return dict(zip(ordered, pool.map(run_one, ordered), strict=True))
        except BaseException:  # Ctrl-C: the running rules end when they next check `stopping`
            session.stopping.set()
            pool.shutdown(cancel_futures=True)
            raise


def run_rule(session: Session, rule: Rule) -> Verdict:
    """Runs one rule on a cluster of its own and returns its verdict."""
    trial = Trial(session, rule)
    try:
        try:
            _run_steps(rule, trial)
        except _NoReaction:
            return _run_fallback(session, rule, trial)
        except Decided:
            pass
        except (ClientEnded, HotLoop):
            if not trial.provoked and rule.fallback is not None:
                return _run_fallback(session, rule, trial)
            if not trial.provoked:
                return Verdict.not_exercised(f"before the provocation: {trial.ended or trial.loop}")
        return _judged(rule, trial)
    except NotExercised as problem:
        return Verdict.not_exercised(str(problem))
    except Exception as problem:  # a bug in a rule must not lose the verdicts of the others
        place = traceback.extract_tb(problem.__traceback__)[-1]
        return Verdict.not_exercised(
            f"the check itself failed: {type(problem).__name__}: {problem} ({Path(place.filename).name}:{place.lineno})"
        )
    finally:
        trial.close()


class _NoReaction(NotExercised):
    """The client did not react to a copy before the provocation."""


def _run_fallback(session: Session, rule: Rule, trial: Trial) -> Verdict:
    """Runs the rule that replaces one to which the client does not react. Raises NotExercised if there is none."""
    if rule.fallback is None:
        raise NotExercised("the client did not react as in the baseline run, before anything was provoked")
    trial.close()
    return run_rule(session, rule.fallback())


def _judged(rule: Rule, trial: Trial) -> Verdict:
    try:
        return rule.judge(trial)
    except NotExercised as problem:
        return Verdict.not_exercised(str(problem))
    except ClientEnded as problem:  # in the baseline run: this is not a failure of the rule
        return Verdict.not_exercised(str(problem))


def _run_steps(rule: Rule, trial: Trial) -> None:
    """Starts the client, provokes it, and waits until it converges. Raises NotExercised, Decided, ClientEnded, HotLoop."""
    trial.open()
    rule.prepare(trial)
    if rule.at_start:
        trial.begin_provocation()
        trial.start_client()
    else:
        trial.start_client()
        if rule.fallback is not None and not trial.trace.count_since(-1):
            raise _NoReaction
        trial.stimulate()
        if not trial.await_reaction(
            trial.copies[0], 20.0 + 5 * trial.baseline.reaction_seconds + 3 * trial.baseline.start_seconds
        ):
            raise _NoReaction
        trial.begin_provocation()
    rule.provoke(trial)
    if rule.converges:
        trial.converge()
        _await_watches(trial)


def _await_watches(trial: Trial) -> None:
    """Waits until the client watches again what it watches in the baseline run: it may end while it reads what it was sent.

    A client whose backoff is longer is not waited for. Raises Decided, ClientEnded, HotLoop.
    """
    usual = {call.stream for call in trial.baseline.trial.trace.open_watches()}
    trial.await_until(lambda: usual <= {call.stream for call in trial.trace.open_watches()}, _WATCHES_WITHIN)
    trial.look_at_client()


#: Seconds within which most clients watch again after they have received all objects.
_WATCHES_WITHIN = 3.0


def rows(rules: Iterable[Rule], verdicts: dict[Rule, Verdict]) -> list[RuleReport]:
    """Returns the rows of a report: one for each id, with the worst verdict of its rules."""
    by_id: dict[str, list[Rule]] = {}
    for rule in rules:
        by_id.setdefault(rule.id, []).append(rule)
    return [_row(some, verdicts) for some in by_id.values()]


def _row(rules: Sequence[Rule], verdicts: dict[Rule, Verdict]) -> RuleReport:
    worst = min(rules, key=lambda rule: _ORDER.index(verdicts[rule].outcome))
    verdict = verdicts[worst]
    evidence = list(verdict.evidence)
    if len(rules) > 1 and evidence and verdict.outcome is not Outcome.PASS:
        evidence[0] = f"{worst.provocation}: {evidence[0]}"
    return RuleReport(worst.id, str(verdict.outcome), worst.legality, evidence, worst.source, worst.obligation, worst.advice)

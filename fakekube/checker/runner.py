"""Runs a check: the baseline run, then every rule on a cluster of its own, several at once, with an estimate of the time left.

What the baseline run and the sample decide starts no client. A failure or warning is reported only if a second run confirms it,
when it depends on a timeout or on chance, or when this process stood still in its run. A client that dies of a step of a
provocation has broken the rule of that step, and not the one that used it.

Invariant: each selected rule gets exactly one verdict.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from heapq import heapify, heapreplace
from statistics import mean
from typing import TYPE_CHECKING

from fakekube.checker.baseline import BaselineFailed, run_baseline
from fakekube.checker.execution import Inspections, judge_safely, keep_run, run_in_turn, run_rule, unmet_requirement
from fakekube.checker.judges import has_lost_its_lease
from fakekube.checker.report import Report
from fakekube.checker.rows import rows_of
from fakekube.checker.rules import group_by_life, in_order, step_rule
from fakekube.checker.session import STALLED
from fakekube.checker.verdict import BLAMED, Outcome, Run, Verdict

if TYPE_CHECKING:
    from fakekube.checker.rule import Rule
    from fakekube.checker.session import Session
    from fakekube.checker.trial import Baseline

#: Called with a line of progress.
Progress = Callable[[str], None]

#: How many rules run at once; clients mostly wait.
_AT_ONCE = 16
#: How many second runs, which confirm failures, run at once.
_AT_ONCE_CONFIRMING = 8

#: A client that only lists does so rarely if it lets pass as many seconds between two lists.
_RARELY = 5.0

#: Seconds for which this process may stand still during a second run whose verdict counts.
_STALLED_AGAIN = 4.0
#: A client that ends by itself in the calm does so after about the same time in each run: at least after this part of it.
_SAME_CALM = 0.7


def run(session: Session, rules: Sequence[Rule], progress: Progress, skipped: Sequence[tuple[Rule, str]] = ()) -> Report:
    """Runs rules and returns the report.

    Args:
        session: the state of the check.
        rules: the rules to run.
        progress: called with a line for each step.
        skipped: rules that appear in the report as not exercised, with the reason.

    Raises BaselineFailed.
    """
    begun = time.monotonic()
    baseline = _learn(session, progress)
    try:
        return _run_rules(baseline, rules, progress, skipped, begun)
    finally:
        baseline.trial.close()
        keep_run(baseline.trial, None)


def _learn(session: Session, progress: Progress) -> Baseline:
    """Performs the baseline run; once more if this process stood still meanwhile: the client may have been seen only in part.

    Raises BaselineFailed.
    """
    progress("baseline run: observing the client without faults")
    with session.stalls.measuring():
        begun = time.monotonic()
        try:
            found = run_baseline(session)
        except BaselineFailed:
            if session.stalls.longest(begun) <= STALLED:
                raise
        else:
            if session.stalls.longest(begun) <= STALLED:
                return found
            found.trial.close()
        progress(
            f"baseline run: this process stood still for {session.stalls.longest(begun):.1f} s; observing the client once more"
        )
        return run_baseline(session)


def _run_rules(
    baseline: Baseline, rules: Sequence[Rule], progress: Progress, skipped: Sequence[tuple[Rule, str]], begun: float
) -> Report:
    """Runs rules after the baseline run, for a check that began at a time of `time.monotonic()`."""
    session = baseline.session
    reaction = ", ".join(map(str, baseline.reaction.visible)) or "no reaction except its watches"
    progress(
        f"baseline run: first request in {baseline.start_seconds:.1f} s, reacts in {baseline.reaction_seconds:.1f} s: {reaction}"
    )
    inspections = Inspections([rule for rule in rules if rule.in_every_run])
    check = _Check(baseline, inspections, progress)
    with session.stalls.measuring():
        runs = check.run_all([rule for rule in rules if not (rule.on_baseline or rule.in_every_run)])
    for rule in rules:
        if rule.on_baseline:
            at = time.monotonic()
            runs[rule] = Run(judge_safely(rule, baseline.trial), time.monotonic() - at)
    inspections.inspect(baseline.trial)
    runs |= {rule: Run(inspections.verdict(rule), 0.0) for rule in rules if rule.in_every_run}
    for rule, reason in skipped:
        runs[rule] = Run(Verdict.not_exercised(reason), 0.0)
    if baseline.trial.has_ended() and not has_lost_its_lease(baseline.trial):
        calm = baseline.trial.calm_seconds()
        runs = {rule: Run(_excuse(one.verdict, calm), one.seconds) for rule, one in runs.items()}
    rows = rows_of(in_order([*rules, *(rule for rule, _ in skipped)]), runs, session.accepted)
    name = f"{session.starter.name} ({baseline.agent})" if baseline.agent else session.starter.name
    return Report(
        name,
        rows,
        source=session.starter.source,
        seed=session.seed,
        seconds=time.monotonic() - begun,
        profile=session.depth,
        kubernetes=session.version,
    )


def confirm(first: Verdict, second: Verdict, *, stalled: bool) -> Verdict:
    """Returns the verdict of two runs. A second run that was not exercised says nothing about the first, and a suspicion that the
    second run does not share is none.

    Args:
        first: the verdict of the first run.
        second: that of the second run.
        stalled: whether this process stood still during the first run, which then does not count.
    """
    if stalled:
        return second
    if second.outcome is Outcome.NOT_EXERCISED:
        return first
    if first.outcome is Outcome.WARN:
        return second.as_warning()
    if second.outcome is Outcome.FAIL or first.by_chance:
        return second
    return Verdict.warning(f"happened in one of two runs: {first.evidence[0]}", *first.evidence[1:])


def lives_of(baseline: Baseline, rules: Sequence[Rule]) -> list[list[Rule]]:
    """Returns the rules that one client undergoes together, for each client; first those that take longest.

    Of a client that lists rarely each rule has one of its own, so that they wait for its next lists at the same time.
    """
    lives = group_by_life(rules) if baseline.poll_seconds() < _RARELY else [[rule] for rule in rules]
    return sorted(lives, key=lambda life: -sum(rule.expected_seconds for rule in life))


class _Check:
    """The runs of one check."""

    def __init__(self, baseline: Baseline, inspections: Inspections, progress: Progress) -> None:
        self._baseline = baseline
        self._session = baseline.session
        self._inspections = inspections
        self._progress = progress
        self._lock = threading.Lock()
        self._first: dict[type[Rule], Future[Run]] = {}
        """The first runs, by class of the rule."""
        self._failed: set[str] = set()
        """The ids of rules that have failed for certain."""
        self._estimate = Estimate(baseline, (), _AT_ONCE)
        self._confirming = threading.BoundedSemaphore(_AT_ONCE_CONFIRMING)

    def run_all(self, rules: Sequence[Rule]) -> dict[Rule, Run]:
        """Runs rules, several at once; those that take longest start first."""
        found: dict[Rule, Run] = {}
        for rule in rules:
            reason = unmet_requirement(self._baseline, rule)
            if reason:
                found[rule] = Run(Verdict.not_exercised(reason), 0.0)
        lives = lives_of(self._baseline, [rule for rule in rules if rule not in found])
        count = sum(map(len, lives))
        self._estimate = Estimate(self._baseline, lives, _AT_ONCE)
        self._progress(f"{count} of {len(rules)} provocations apply to this client; about {self._estimate.seconds():.0f} s")
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fakekube-check") as pool:
            try:
                jobs = {pool.submit(self._run_life, life): life for life in lives}
                while jobs:
                    for job in wait(jobs, return_when=FIRST_COMPLETED).done:
                        life, results = jobs.pop(job), job.result()
                        found |= results
                        left = [rule for rule in life if rule not in results]
                        self._estimate.leave(left)
                        jobs |= {pool.submit(self._run_life, [rule]): [rule] for rule in left}
                return found
            except BaseException:  # Ctrl-C: the running rules end when they next check `stopping`
                self._session.stopping.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _run_life(self, rules: Sequence[Rule]) -> dict[Rule, Run]:
        """Runs rules with one client; returns the results that count."""
        begun = time.monotonic()
        if len(rules) == 1:
            return {rules[0]: self._finish(rules[0], self._run_first(rules[0]), begun)}
        results = run_in_turn(self._baseline, rules, self._inspections, lambda: self._estimate.begin(rules))
        return {rule: self._finish(rule, first, begun) for rule, first in results}

    def _finish(self, rule: Rule, first: Run, begun: float) -> Run:
        """Returns the result of a rule after a second run, if it needs one, and tells it."""
        again = time.monotonic()
        found = Run(self._confirm(rule, first.verdict, begun), first.seconds + time.monotonic() - again)
        self._estimate.record(rule, again)
        verdict = found.verdict
        shown = f": {verdict.evidence[0]}" if verdict.evidence and verdict.outcome is not Outcome.PASS else ""
        self._progress(f"{rule.key} ({rule.provocation}): {verdict.outcome}{shown} [{self._estimate}]")
        return found

    def _confirm(self, rule: Rule, first: Verdict, begun: float) -> Verdict:
        """Returns the verdict of a rule whose first run began at a time, after a second run if it needs one."""
        verdict = self._without_steps(rule, first)
        stalled = self._session.stalls.longest(begun) > STALLED and verdict.outcome in BLAMED
        unsure = verdict.outcome in BLAMED and verdict.by_time and rule.id not in self._failed
        if stalled or unsure:
            verdict = self._run_again(rule, verdict, stalled=stalled)
        if verdict.outcome is Outcome.FAIL:
            self._failed.add(rule.id)
        return verdict

    def _run_first(self, rule: Rule) -> Run:
        """Runs a rule unless it has run already as a step of another one."""
        with self._lock:
            known = self._first.get(type(rule))
            future = self._first.setdefault(type(rule), Future())
        if known is None:
            try:
                future.set_result(self._run_alone(rule))
            except BaseException as problem:
                future.set_exception(problem)
        return future.result()

    def _run_alone(self, rule: Rule) -> Run:
        return run_rule(self._baseline, rule, self._inspections, lambda: self._estimate.begin([rule]))

    def _run_again(self, rule: Rule, verdict: Verdict, *, stalled: bool) -> Verdict:
        why = ", because this process stood still" if stalled else " to confirm"
        self._progress(f"{rule.key} ({rule.provocation}): {verdict.evidence[0]}; running it again{why}")
        with self._confirming:
            begun = time.monotonic()
            second = self._without_steps(rule, self._run_alone(rule).verdict)
            found = confirm(verdict, second, stalled=stalled)
        if stalled and found.outcome in BLAMED and (stall := self._session.stalls.longest(begun)) > _STALLED_AGAIN:
            return Verdict.not_exercised(f"this process stood still for {stall:.1f} s: {found.evidence[0]}")
        return found

    def _without_steps(self, rule: Rule, verdict: Verdict) -> Verdict:
        """Returns "not exercised" for a failure that a step of the provocation explains."""
        if verdict.outcome not in BLAMED or verdict.symptom is None:
            return verdict
        for step in rule.steps:
            other = step_rule(step)
            if unmet_requirement(self._baseline, other):
                continue
            found = self._run_first(other).verdict
            if found.outcome is Outcome.FAIL:
                return Verdict.not_exercised(
                    f"dies of {step}: {other.provocation}, which is a step of this provocation: {found.evidence[0]}"
                )
        return verdict


def _excuse(verdict: Verdict, calm: float) -> Verdict:
    """Returns "not exercised" for a client that ended after the calm after which it also ends when nothing is provoked."""
    if verdict.outcome not in BLAMED or verdict.calm is None or verdict.calm < _SAME_CALM * calm:
        return verdict
    return Verdict.not_exercised(
        f"the client also ends by itself after {calm:.0f} s of calm in the baseline run", *verdict.evidence[:1]
    )


#: How much of a processor a run takes besides the start of its client, in seconds, and how many of the last starts count.
_WORK, _LAST_STARTS = 0.5, 20
#: Until rules have finished, the estimate trusts the expected seconds as if rules of so many seconds had taken what was expected.
_PRIOR = 100.0
#: What a life takes on the average, of the seconds that its rules are expected to take, and what it still takes at least while it
#: runs. It is assumed that 37 % of all lives take longer than expected, and 2 % twice as long (a Rayleigh distribution).
_MEAN, _LEAST_LEFT = 0.89, 0.2


@dataclass(slots=True)
class _Life:
    """Rules that one client undergoes, as far as they have no result."""

    rules: set[Rule]
    begun: float | None = None
    """When the first of them began, by `time.monotonic()`; None until the client has started."""

    def expected_seconds(self) -> float:
        return sum(rule.expected_seconds for rule in self.rules)


class Estimate:
    """The seconds that some rules still take: the time until which all of them have finished with a probability of a half.

    The expected seconds of the rules are scaled by what finished rules have taken, and running ones until now. Lives, the rules
    that one client undergoes, wait for a place among those that run, and for the start of their client.

    Args:
        baseline: the result of the baseline run.
        lives: the rules that will run, those together that run one after the other.
        at_once: how many lives run at the same time.
    """

    def __init__(self, baseline: Baseline, lives: Sequence[Sequence[Rule]], at_once: int) -> None:
        self._starts = baseline.session.starts
        self._lives = [_Life(set(life)) for life in lives]
        self._at_once = at_once
        self._processors = baseline.session.processors
        self._expected = self._squares = _PRIOR
        """Of the finished rules: their expected seconds, and the sum of the squares of those that they took, each divided by the
        expected ones."""
        self._lock = threading.Lock()

    def begin(self, rules: Sequence[Rule]) -> None:
        """Records that the client of the life of some rules has started."""
        with self._lock:
            for life in self._lives:
                if not life.rules.isdisjoint(rules):
                    life.begun = time.monotonic()

    def record(self, rule: Rule, ended: float) -> None:
        """Records that a rule has its result, and when its first run ended, by `time.monotonic()`."""
        with self._lock:
            for life in self._lives:
                if rule in life.rules and life.begun is not None and life.begun < ended:  # else it had a second run
                    self._expected += rule.expected_seconds
                    self._squares += (ended - life.begun) ** 2 / rule.expected_seconds
                    life.begun = ended
            self._take_out([rule])

    def leave(self, rules: Sequence[Rule]) -> None:
        """Records that rules did not run in the life that has ended; each waits for one of its own."""
        with self._lock:
            self._take_out(rules)
            self._lives += [_Life({rule}) for rule in rules]

    def _take_out(self, rules: Sequence[Rule]) -> None:
        for life in self._lives:
            life.rules.difference_update(rules)
        self._lives = [life for life in self._lives if life.rules]

    def seconds(self) -> float:
        """Returns the seconds that are left."""
        with self._lock:
            now = time.monotonic()
            running = [(one.expected_seconds(), now - one.begun) for one in self._lives if one.begun is not None]
            waiting = [one.expected_seconds() for one in self._lives if one.begun is None]
            expected, squares = self._expected, self._squares
        squares += sum(age**2 / usual for usual, age in running)
        scale = math.sqrt(squares / expected)
        left = [(0.0, age, scale * usual) for usual, age in running]
        places = [max(_MEAN * usual - age, _LEAST_LEFT * usual) for _, age, usual in left]
        places += [0.0] * (self._at_once - len(places))
        heapify(places)
        start = (mean(self._starts[-_LAST_STARTS:]) + _WORK) / self._processors
        started = 0.0
        for usual in (scale * one for one in waiting):
            started = max(places[0], started) + start
            heapreplace(places, started + _MEAN * usual)
            left.append((started, 0.0, usual))
        return _median_of_longest(left)

    def __str__(self) -> str:
        with self._lock:
            count = sum(len(life.rules) for life in self._lives)
        return f"{count} to go, about {self.seconds():.0f} s" if count else "done"


def _median_of_longest(lives: Sequence[tuple[float, float, float]]) -> float:
    """Returns the seconds until which all lives have ended with a probability of a half.

    Args:
        lives: for each life in how many seconds it begins, for how many it has run, and how many are expected in all.
    """

    def chance(seconds: float) -> float:
        """Returns the probability that all have ended."""
        ran = (seconds - begins for begins, _, _ in lives)
        return math.prod(
            -math.expm1((age / usual) ** 2 - ((age + more) / usual) ** 2) if more > 0 else 0.0
            for more, (_, age, usual) in zip(ran, lives, strict=True)
        )

    low, high = 0.0, sum(begins + 2 * usual for begins, _, usual in lives)
    while high - low > _EXACT:
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) < _HALF else (low, middle)
    return high


#: How exact an estimate is, in seconds, and the probability of a median.
_EXACT, _HALF = 0.1, 0.5

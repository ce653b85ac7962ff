"""Runs one rule: starts a client on a cluster of its own, provokes it, and judges what it does.

Invariant: whatever happens, the result is a verdict, and neither client nor cluster runs afterwards.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fakekube.checker.client_run import ClientEnded, Decided, HotLoop
from fakekube.checker.rule import NotExercised, Rule, Verdict
from fakekube.checker.trial import Trial

if TYPE_CHECKING:
    from fakekube.checker.session import Session

#: Seconds within which most clients watch again after they have received all objects.
_WATCHES_WITHIN = 3.0


@dataclass(slots=True, frozen=True)
class Run:
    """The result of a run of a rule: its verdict, and how many seconds it took."""

    verdict: Verdict
    seconds: float


def unmet_requirement(session: Session, rule: Rule) -> str:
    """Returns why the baseline run or the sample shows that a rule does not apply to the client; "" if it may apply."""
    baseline = session.baseline
    assert baseline is not None
    if rule.restarts and not session.starter.restartable:
        return "a function cannot be killed and started again; check a command"
    if rule.watches and not baseline.streams:
        return "the client does not watch"
    try:
        rule.require(baseline)
    except NotExercised as problem:
        return str(problem)
    return ""


def run_rule(session: Session, rule: Rule) -> Run:
    """Runs a fresh rule of the same class on a cluster of its own."""
    begun = time.monotonic()
    if session.time_is_up():
        return Run(Verdict.not_exercised(session.TIME_IS_UP), 0.0)
    verdict = _run(session, rule.make_fresh())
    return Run(verdict, time.monotonic() - begun)


def _run(session: Session, rule: Rule) -> Verdict:
    trial = Trial(session, rule)
    verdict = Verdict.not_exercised("aborted")
    try:
        verdict = _exercise(session, rule, trial)
    except NotExercised as problem:
        verdict = Verdict.not_exercised(str(problem))
    except Exception as problem:  # a bug in a rule must not lose the verdicts of the others
        place = traceback.extract_tb(problem.__traceback__)[-1]
        verdict = Verdict.not_exercised(
            f"the check itself failed: {type(problem).__name__}: {problem} ({Path(place.filename).name}:{place.lineno})"
        )
    finally:
        trial.close()
        session.inspections.inspect(trial)
        session.keep(trial, verdict)
    return verdict


def _exercise(session: Session, rule: Rule, trial: Trial) -> Verdict:
    """Returns the verdict of a run. Raises NotExercised."""
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
    return judge_safely(rule, trial)


class _NoReaction(NotExercised):
    """The client did not react to a copy before the provocation."""


def _run_fallback(session: Session, rule: Rule, trial: Trial) -> Verdict:
    """Runs the rule that replaces one to which the client does not react. Raises NotExercised if there is none."""
    if rule.fallback is None:
        raise NotExercised("the client did not react as in the baseline run, before anything was provoked")
    trial.close()
    return _run(session, rule.fallback())


def judge_safely(rule: Rule, trial: Trial) -> Verdict:
    """Returns the verdict of a rule about a run."""
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
    """Waits until the client watches again what it watches in the baseline run.

    It may end while it reads what it was sent, and it may have given up one of several streams.

    Raises Decided, ClientEnded, HotLoop.
    """
    trial.await_until(lambda: not trial.find_unwatched(), _WATCHES_WITHIN)
    if trial.find_unwatched():
        trial.await_until(lambda: not trial.find_unwatched(), trial.reaction_timeout)
        trial.abandoned = trial.find_unwatched()
    trial.look_at_client()

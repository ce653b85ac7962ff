"""Runs one rule: starts a client on a cluster of its own, provokes it, judges what it does, and keeps what the run has shown.

Invariant: whatever happens, the result is a verdict, and neither client nor cluster runs afterwards. A kept trace (`--keep DIR`)
has every request of the client, and says where the provocation began.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fakekube.checker.client_run import ClientEnded, Decided, HotLoop
from fakekube.checker.report import write_json, write_text
from fakekube.checker.session import STALLED
from fakekube.checker.trial import DOES_NOT_WATCH, Baseline, Provocation, Trial
from fakekube.checker.verdict import BLAMED, NotExercised, Outcome, Run, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fakekube.checker.rule import Rule

#: Seconds within which most clients watch again after they have received all objects.
_WATCHES_WITHIN = 3.0


def unmet_requirement(baseline: Baseline, rule: Rule) -> str:
    """Returns why the baseline run or the sample shows that a rule does not apply to the client; "" if it may apply."""
    if rule.restarts and not baseline.session.starter.restartable:
        return "a function cannot be killed and started again; check a command"
    if rule.watches and not baseline.streams:
        return DOES_NOT_WATCH
    try:
        rule.require(baseline)
    except NotExercised as problem:
        return str(problem)
    return ""


def run_rule(baseline: Baseline, rule: Rule, inspections: Inspections, started: Callable[[], None] | None = None) -> Run:
    """Runs a fresh rule of the same class on a cluster of its own."""
    return dict(run_in_turn(baseline, [rule], inspections, started))[rule]


def run_in_turn(
    baseline: Baseline, rules: Sequence[Rule], inspections: Inspections, started: Callable[[], None] | None = None
) -> Iterator[tuple[Rule, Run]]:
    """Runs fresh rules of the same classes one after the other, with one client on one cluster.

    Yields the results that count: that of the first rule, and those of the following ones that the client passes. The others
    have to be run with clients of their own: a rule that is not passed may suffer from what the client has undergone before, and
    what follows a failure is not run. A failure is yielded when the client does not run any more.
    """
    if baseline.session.time_is_up():
        yield rules[0], Run(Verdict.not_exercised(baseline.session.TIME_IS_UP), 0.0)
        return
    life = _Life(baseline, inspections, started or (lambda: None))
    failed: tuple[Rule, Run] | None = None
    try:
        for rule in rules:
            begun = time.monotonic()
            if reason := unmet_requirement(baseline, rule):  # another run has shown this meanwhile
                yield rule, Run(Verdict.not_exercised(reason), 0.0)
                continue
            first = not life.has_begun()
            verdict = life.exercise(rule.make_fresh())
            result = rule, Run(verdict, time.monotonic() - begun)
            if first or verdict.outcome is Outcome.PASS:
                life.keep(verdict)
                if verdict.outcome in BLAMED:
                    failed = result
                else:
                    yield result
            if verdict.outcome in BLAMED or not life.goes_on() or baseline.session.time_is_up():
                break
    finally:
        life.stop()
    if failed is not None:
        yield failed


class _Life:
    """A client on a cluster of its own, from its start to its end, and the rules that it undergoes."""

    def __init__(self, baseline: Baseline, inspections: Inspections, started: Callable[[], None]) -> None:
        self._baseline, self._inspections, self._started = baseline, inspections, started
        self._trial: Trial | None = None
        self._shown: list[tuple[Provocation, Verdict, int]] = []
        """The rules that count, with their verdicts and the marks at which the provocations began."""

    def exercise(self, rule: Rule) -> Verdict:
        """Returns the verdict of a rule about this client, which it starts first if this has not happened."""
        begins = self._trial is None
        if self._trial is None:
            trial = self._trial = Trial(self._baseline.session, rule, self._baseline)
        else:
            trial = self._trial
            trial.go_on(rule)
        try:
            return self._exercise(rule, trial, begins=begins)
        except NotExercised as problem:
            return Verdict.not_exercised(str(problem))
        except Exception as problem:  # a bug in a rule must not lose the verdicts of the others
            place = traceback.extract_tb(problem.__traceback__)[-1]
            return Verdict.not_exercised(
                f"the check itself failed: {type(problem).__name__}: {problem} ({Path(place.filename).name}:{place.lineno})"
            )

    def _exercise(self, rule: Rule, trial: Trial, *, begins: bool) -> Verdict:
        """Returns the verdict of a run. Raises NotExercised."""
        try:
            if begins:
                _begin(rule, trial, self._started)
            else:
                _stimulate(trial)
            _run_steps(rule, trial)
        except _NoReaction:
            return self._run_fallback(rule, "the client did not react as in the baseline run, before anything was provoked")
        except Decided:
            pass
        except (ClientEnded, HotLoop):
            if not trial.provoked:
                return self._run_fallback(rule, f"before the provocation: {trial.ended or trial.loop}")
        return judge_safely(rule, trial)

    def has_begun(self) -> bool:
        """Reports whether a rule has run."""
        return self._trial is not None

    def goes_on(self) -> bool:
        """Reports whether the client still runs as it should."""
        trial = self._trial
        return trial is not None and not (trial.has_ended() or trial.ended or trial.loop)

    def _run_fallback(self, rule: Rule, happened: str) -> Verdict:
        """Runs the rule that replaces one whose client ended or did not react before the provocation.

        Raises NotExercised if there is none.
        """
        trial = self._trial
        assert trial is not None
        if rule.fallback is None:
            raise NotExercised(rule.explain_before(trial, happened))
        self.stop()
        self._trial, self._shown = None, []
        return self.exercise(rule.fallback())

    def keep(self, verdict: Verdict) -> None:
        """Keeps what the run of the last rule has shown, when this client has ended."""
        trial = self._trial
        assert trial is not None
        if trial.rule is not None:
            self._shown.append((trial.rule, verdict, trial.provoked_at))

    def stop(self) -> None:
        """Ends the client and its cluster."""
        trial = self._trial
        if trial is None:
            return
        trial.close()
        at_revision = trial.lists_again_at_revision()
        if at_revision is not None:
            self._baseline.relists.append(at_revision)
        self._inspections.inspect(trial)
        for rule, verdict, provoked_at in self._shown:
            trial.rule, trial.provoked_at = rule, provoked_at
            keep_run(trial, verdict)


class _NoReaction(NotExercised):
    """The client did not react to a copy before the provocation."""


def judge_safely(rule: Rule, trial: Trial) -> Verdict:
    """Returns the verdict of a rule about a run."""
    try:
        return rule.judge(trial)
    except NotExercised as problem:
        return Verdict.not_exercised(str(problem))
    except ClientEnded as problem:  # in the baseline run: this is not a failure of the rule
        return Verdict.not_exercised(str(problem))


def _begin(rule: Rule, trial: Trial, started: Callable[[], None]) -> None:
    """Starts the client, tells that it has started, and makes a copy, unless the provocation begins with the start.

    Raises NotExercised, ClientEnded, HotLoop.
    """
    trial.open()
    rule.prepare(trial)
    if rule.at_start:
        trial.begin_provocation()
    trial.start_client()
    started()
    if rule.at_start:
        return
    if not trial.trace.count_since(-1):
        raise _NoReaction
    _stimulate(trial)


def _stimulate(trial: Trial) -> None:
    """Makes the copy with which a provocation begins, and waits for the reaction. Raises NotExercised, ClientEnded, HotLoop."""
    trial.stimulate()
    if not trial.await_reaction(trial.copies[0], trial.baseline.seconds_to_react(20.0) + 3 * trial.baseline.start_seconds):
        raise _NoReaction
    trial.begin_provocation()


def _run_steps(rule: Rule, trial: Trial) -> None:
    """Provokes the client, and waits until it converges. Raises NotExercised, Decided, ClientEnded, HotLoop."""
    rule.provoke(trial)
    if rule.converges:
        trial.converge()
        _await_watches(trial)


def _await_watches(trial: Trial) -> None:
    """Waits until the client watches again what it watches in the baseline run.

    It may end while it reads what it was sent, and it may have given up one of several streams.

    Raises Decided, ClientEnded, HotLoop.
    """
    mark = trial.trace.mark()
    if not trial.await_until(lambda: not trial.find_unwatched(mark), _WATCHES_WITHIN):
        trial.await_until(lambda: not trial.find_unwatched(mark), trial.reaction_timeout)
        trial.abandoned = trial.find_unwatched(mark)
    trial.look_at_client()


#: The maximum size of the trace of one run for the page, in bytes.
_TRACE_LIMIT = 2_000_000
#: The size up to which trace.html keeps bodies.
_LARGEST = "5MB"
#: A run of a client in a hot loop has more requests, and its trace for the page would take minutes.
_MOST_SHOWN = 10_000


class Inspections:
    """The findings of some rules in the runs of a check."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = rules
        self._found: dict[Rule, Verdict] = {}
        self._runs = 0
        self._lock = threading.Lock()

    def inspect(self, trial: Trial) -> None:
        """Inspects the trace of a finished run, unless this process stood still in it; `trial` may be that of the baseline."""
        if (trial.rule is not None and trial.rule.distorts) or trial.session.stalls.longest(trial.zero) > STALLED:
            return
        where, run = ("the baseline run", "") if trial.rule is None else (trial.key, trial.key)
        with self._lock:
            self._runs += 1
        for rule in self._rules:
            verdict = self._inspect(rule, trial) if rule not in self._found else None
            if verdict is not None:
                first, *others = verdict.evidence
                with self._lock:
                    self._found.setdefault(rule, replace(verdict, evidence=[f"in {where}: {first}", *others], run=run))

    @staticmethod
    def _inspect(rule: Rule, trial: Trial) -> Verdict | None:
        """Inspects a run by one rule; a bug in the rule must not lose the verdicts of the others.

        What may be chance does not count, because no second run can decide.
        """
        try:
            found = rule.inspect(trial)
            return None if found is not None and found.by_chance else found
        except Exception as problem:
            logging.getLogger(__name__).warning("%s did not inspect %s: %r", rule.key, trial.key, problem)
            return None

    def verdict(self, rule: Rule) -> Verdict:
        """Returns the verdict of one of the rules after the last run."""
        none = Verdict.not_exercised("this process stood still in each run")
        return self._found.get(rule) or rule.conclude() or (Verdict.success(f"{self._runs} runs") if self._runs else none)


def keep_run(trial: Trial, verdict: Verdict | None) -> None:
    """Keeps what a closed run has shown: a folder below that of the user, and a trace for the page, if the check makes them.

    Args:
        trial: the run.
        verdict: its verdict; None for the baseline run.

    Raises OSError.
    """
    session = trial.session
    if session.kept is not None:
        _write_run(_new_folder(session.kept, trial.key), trial, verdict)
    shown = verdict is None or verdict.outcome in BLAMED
    if session.traced and shown and trial.trace.count_since(-1) <= _MOST_SHOWN:
        trial.cluster.test = {"id": trial.key, "outcome": str(verdict.outcome) if verdict is not None else "", "message": ""}
        session.traces[trial.key] = trial.cluster.trace_parts(limit=_TRACE_LIMIT)


def _write_run(place: Path, trial: Trial, verdict: Verdict | None) -> None:
    """Writes trace.txt, output.txt and verdict.json into an empty folder, and trace.html unless the client passed."""
    write_text(place / "trace.txt", "\n".join(trial.whole_trace()) + "\n")
    looked_at = verdict is None or verdict.outcome is not Outcome.PASS  # a page costs as much as a tenth of a run
    if looked_at and trial.trace.count_since(-1) <= _MOST_SHOWN:
        trial.cluster.trace(place / "trace.html", limit=_LARGEST)
    write_text(place / "output.txt", trial.output_kept() + "\n")
    if verdict is not None:
        told = {"key": trial.key, "seed": trial.session.seed, "verdict": str(verdict.outcome), "evidence": list(verdict.evidence)}
        write_json(place / "verdict.json", told)


def _new_folder(folder: Path, key: str) -> Path:
    """Makes a folder for a run; a second run of the same provocation gets one with a number."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", key)
    number = 1
    while True:
        place = folder / (name if number == 1 else f"{name}-{number}")
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return place

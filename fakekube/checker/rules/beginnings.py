"""Rules about the first seconds of a client that is started again, in which it has not read all resources yet (S1)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from fakekube.checker.judges import judge_extra_children
from fakekube.checker.reaction import find_differences, states_around
from fakekube.checker.rule import Rule
from fakekube.checker.rules.sieve import StaleChildren, start_timeout
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet
from fakekube.checker.writes import require_writes, writes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial

    _Changes = Mapping[tuple[str, str], Sequence[Call]]


class ListedLate(Rule):
    """The client is started again, and the list of one of its resources comes some seconds after those of the others.

    A copy is made before that: it must be handled in the end. What the client had finished needs no write, apart from what it
    also writes when it is started again and all lists come at once.
    """

    id = StaleChildren.id
    name = "unread"
    provocation = "started again, and the list of one of its resources comes later than the others"
    obligation = StaleChildren.obligation
    advice = "begin to work when all caches have been filled (WaitForCacheSync): what was not read yet is not missing"
    source = "client-go tools/cache (WaitForCacheSync); kube-controller-manager (each controller waits for its informers)"
    watches = True
    restarts = True
    expected_seconds = 25.0

    #: How many seconds a list is held up, and for how many resources at most.
    SECONDS, MOST = 3.0, 2

    def __init__(self) -> None:
        self.verdict: Verdict | None = None

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline)
        self._resources(baseline)

    def _resources(self, baseline: Baseline) -> Sequence[str]:
        """Returns the resources whose lists are held up: first those of children. Raises NotExercised."""
        watched = {baseline.streams[key] for key in baseline.first_streams if key in baseline.streams}
        if len(watched) < 2:
            raise NotExercised("the client watches fewer than two resources from its start on")
        children = baseline.reaction.children
        return sorted(watched, key=lambda one: (one not in children, one))[: self.MOST]

    def provoke(self, trial: Trial) -> None:
        finished = trial.copies[0]
        await_quiet(trial, finished.mark, [finished.token])
        for resource in self._resources(trial.baseline):
            found = self._changes_after_start(trial, resource, finished)
            if found:
                self.verdict = self._judge_changes(trial, resource, found, self._changes_after_start(trial, "", finished))
            if self.verdict is not None:
                return

    @staticmethod
    def _judge_changes(trial: Trial, resource: str, found: _Changes, usual: _Changes) -> Verdict | None:
        """Judges the changes after a start with a late list: a failure for those that it does not make after other starts, a
        warning if it undoes them, too."""
        for key, calls in found.items():
            verb, path = key
            if len(calls) > len(usual.get(key, ())):
                text = f"{verb} {path} before {resource} had been listed: the work was done before the client was started again"
                return Verdict.failure(text, *trial.excerpt())
            if len(calls) > 1 and _are_undone(trial, calls):
                return Verdict.warning(f"{verb} {path} after each start, which another write undoes", *trial.excerpt(calls))
        return None

    def _changes_after_start(self, trial: Trial, resource: str, finished: Copy) -> _Changes:
        """Starts the client again while the lists of a resource are held up, makes a copy, and waits for the reaction to it.

        Returns the writes that have changed what belongs to a copy that was finished before, by verb and path. Raises Decided if
        the reaction does not come.
        """
        trial.kill_client()
        mark, before = trial.trace.mark(), trial.cluster.revision
        with ExitStack() as late:
            if resource:
                late.enter_context(trial.faults.on("list,watch", resource).hang(label="comes late"))
            trial.start_client()
            fresh = trial.stimulate()
            trial.wait(self.SECONDS if resource else 0.0)
        if not trial.await_reaction(fresh, start_timeout(trial)):
            trial.await_all()  # another start would mend what this one has missed
        await_quiet(trial, mark, [finished.token])
        periodic = trial.baseline.periodic_fields()
        others = [one.token for one in trial.copies if one is not finished]  # a write for a pair of copies is new work
        found: dict[tuple[str, str], dict[int, Call]] = {}
        for call in writes_of(trial.trace.since(mark)):
            is_about = call.mentions(finished.token) and not any(map(call.mentions, others))
            if call.succeeded and is_about and call.collection not in periodic:
                revision = call.revision or 0
                if call.verb in ("create", "delete") or revision > before:
                    found.setdefault((call.verb, call.path), {})[revision] = call
        return {key: list(calls.values()) for key, calls in found.items()}

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_extra_children(trial, trial.baseline.reaction.children)

    def judge_trace(self, trial: Trial) -> Verdict:
        return self.verdict or Verdict.success()


def _are_undone(trial: Trial, calls: Sequence[Call]) -> bool:
    """Reports whether the last of some writes to an object leaves it as it was before the first one."""
    first, last = (states_around(trial.cluster, call, call.name) for call in (calls[0], calls[-1]))
    return first is not None and last is not None and not find_differences(first[0], last[1])


RULES: tuple[type[Rule], ...] = (ListedLate,)

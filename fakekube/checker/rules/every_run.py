"""Rules that read the trace of every run, whatever was provoked in it: which revisions watches start from, and lists without a
watch (W5, W11, N3).

Invariant: these rules start no client. A finding names the run in which it was seen, and does not depend on time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.checker.judges import (
    judge_resumption,
    judge_start_of_watch,
    judge_stuck_revision,
    judge_unfollowed_lists,
    judge_unknown_revision,
)
from fakekube.checker.rule import Rule
from fakekube.checker.rules.idle import IdleRequests
from fakekube.checker.rules.watch_ends import NormalEnd
from fakekube.checker.rules.watch_events import RevisionOfList

if TYPE_CHECKING:
    from fakekube.checker.rule import Verdict
    from fakekube.checker.trial import Trial


class Resumption(Rule):
    """A watch ended normally, in any run."""

    id = "W5"
    name = "resumption"
    provocation = "in every run: a watch that ended normally is resumed behind what it delivered"
    obligation = NormalEnd.obligation
    advice = NormalEnd.advice
    source = NormalEnd.source
    in_every_run = True
    fast = True

    def inspect(self, trial: Trial) -> Verdict | None:
        ended = [call for call in trial.trace.since() if call.is_watch and call.ended is not None]
        return judge_resumption(trial, ended, bookmarks=False)


class StuckRevision(Rule):
    """The client watches again and again from one revision and closes each watch after it has delivered newer events."""

    id = "W5"
    name = "stuck"
    provocation = "in every run: one revision is watched again and again, although newer events were delivered"
    obligation = NormalEnd.obligation
    advice = NormalEnd.advice
    source = NormalEnd.source
    in_every_run = True
    fast = True

    def inspect(self, trial: Trial) -> Verdict | None:
        return judge_stuck_revision(trial)


class KnownRevisions(Rule):
    """The client watches from a revision, in any run."""

    id = "W11"
    name = "revisions"
    provocation = "in every run: a watch starts from a revision that no answer had"
    obligation = RevisionOfList.obligation
    advice = RevisionOfList.advice
    source = RevisionOfList.source
    in_every_run = True
    fast = True

    def inspect(self, trial: Trial) -> Verdict | None:
        return judge_unknown_revision(trial)


class StartOfWatch(Rule):
    """The client watches after a list, in any run."""

    id = "W11"
    name = "nowhere"
    provocation = "in every run: the watch after a list has no revision"
    obligation = RevisionOfList.obligation
    advice = RevisionOfList.advice
    source = RevisionOfList.source
    in_every_run = True
    fast = True

    def inspect(self, trial: Trial) -> Verdict | None:
        return judge_start_of_watch(trial)


class UnfollowedLists(Rule):
    """The client lists, in any run."""

    id = "N3"
    name = "lists"
    provocation = "in every run: lists are repeated and no watch follows them"
    obligation = IdleRequests.obligation
    advice = "after a list that was answered, watch from its resourceVersion"
    source = "API conventions; client-go tools/cache/reflector.go"
    in_every_run = True
    fast = True

    def inspect(self, trial: Trial) -> Verdict | None:
        return judge_unfollowed_lists(trial)


RULES = (Resumption, StuckRevision, KnownRevisions, StartOfWatch, UnfollowedLists)

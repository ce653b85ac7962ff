"""Rules about what must not depend on the history of an object: a changed object, and one that has had the same content from the
beginning, have the same effects (S3).

Invariant: a value that the API refuses to change is not judged.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fakekube.checker.alterations import is_content, path_text
from fakekube.checker.comparison import Compared
from fakekube.checker.contents import AMOUNTS, SWITCHES, TEXTS, ZEROS, OtherContents, apply_and_await_quiet, apply_step, make_two
from fakekube.checker.provocations import Budget
from fakekube.checker.reaction import value_at
from fakekube.checker.rule import Rule
from fakekube.checker.rules.deletions import has_own_watch
from fakekube.checker.rules.sieve import MissedChildDeletion, start_timeout
from fakekube.checker.trace import mentions
from fakekube.checker.verdict import Verdict
from fakekube.checker.waits import await_quiet, await_reactions
from fakekube.checker.writes import own_objects, refusable_writes, require_prompt_writes, writes_field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fakekube.checker.alterations import Path
    from fakekube.checker.comparison import Place
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange


class KeptInStep(Rule):
    """All texts, numbers, labels and annotations of a copy are changed: its effects are then those of a copy that had them at
    once."""

    id = "S3"
    name = "in-step"
    fast = True
    provocation = "all texts, numbers, labels and annotations of an object are changed after the client has handled it"
    obligation = MissedChildDeletion.obligation
    advice = "compute all that is wanted from the present object each time, and write what differs: not only what changes most"
    source = "API conventions, level-based behavior; Sieve (sieve-project/sieve): unobserved state"
    expected_seconds = 16.0

    #: The kinds of values that are changed. They are left out, the last one first, while the client does not react to an object
    #: that has them from the beginning.
    KINDS: ClassVar[Sequence[str]] = (TEXTS, AMOUNTS)

    def __init__(self) -> None:
        self.stale: _Stale | None = None
        self.followed = False
        self.only_at_start: Place | None = None
        """An object that has followed the change when the client was started again, and not before."""
        self.never: tuple[Place, Path] | None = None
        """A value of a child that has never followed the change, although nothing else has either."""
        self.behind = ""
        """A status that says another generation than that of its object; "" if there is none."""
        self.changed: Copy | None = None

    def require(self, baseline: Baseline) -> None:
        require_prompt_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        self.change(trial)

    def change(self, trial: Trial) -> tuple[OtherContents, Sequence[Copy]]:
        """Changes a copy, and looks at what has followed. Returns the changes, and two copies that had them from the beginning.

        Raises NotExercised.
        """
        unchanged = trial.copies[0]
        changes = OtherContents(trial, self.KINDS)
        fresh = make_two(trial, changes, "other values")
        changed = self.changed = trial.stimulate()
        await_reactions(trial, [changed])
        for step in changes.steps():
            apply_and_await_quiet(trial, changed, step)

        def compare() -> Compared:
            return Compared(trial, unchanged, fresh, changed)

        def find_behind() -> str:
            return "" if any(_find_other_generation(trial, one) for one in fresh) else _find_other_generation(trial, changed)

        trial.await_until(lambda: self._is_in_step(trial, compare()) and not find_behind(), trial.reaction_timeout)
        compared = compare()
        self.followed, self.behind = bool(compared.find_followers()), find_behind()
        self.stale = self._find_stale(trial, compared)
        if not self.followed and compared.stale() and trial.session.starter.restartable:
            self.only_at_start = self._find_follower_at_start(trial, compare)
        if not self.followed and self.only_at_start is None:
            self.never = self._find_ignored(trial, compare())
        return changes, fresh

    @classmethod
    def _is_in_step(cls, trial: Trial, compared: Compared) -> bool:
        """Reports whether all that can follow the change has done so."""
        return not compared.stale() or (bool(compared.find_followers()) and cls._find_stale(trial, compared) is None)

    @staticmethod
    def _find_follower_at_start(trial: Trial, compare: Callable[[], Compared]) -> Place | None:
        """Starts the client again; returns the first object that follows the change then."""
        trial.restart_client()
        trial.await_reaction(trial.stimulate(), start_timeout(trial))
        trial.await_until(lambda: bool(compare().find_followers()), trial.reaction_timeout)
        return min(compare().find_followers(), default=None)

    @staticmethod
    def _find_ignored(trial: Trial, compared: Compared) -> tuple[Place, Path] | None:
        """Returns the first value of a child that follows from the object when the child is made, and never again, although the
        client watches it; what it does not watch, it may make once on purpose."""
        watched = {resource for resource in trial.baseline.reaction.children if has_own_watch(trial.baseline, resource)}
        for place, path in sorted(compared.stale(), key=str):
            if place[0] in watched and path and is_content(path[0]) and compared.can_change(trial, place, path):
                return place, path
        return None

    @staticmethod
    def _find_stale(trial: Trial, compared: Compared) -> _Stale | None:
        """Returns what has not followed, first what is in an object of which something else has; None if nothing follows."""
        followed = compared.find_followers()
        if not followed:
            return None
        found = sorted(compared.stale(), key=lambda one: (one[0] not in followed, str(one)))
        return next(
            (
                _Stale(place, path, together=place in followed or not path)
                for place, path in found
                if compared.can_change(trial, place, path)
            ),
            None,
        )

    def judge_trace(self, trial: Trial) -> Verdict:
        name = self.changed.names()[0] if self.changed is not None else ""
        if self.only_at_start is not None:
            resource, _ = self.only_at_start
            text = f"{resource} for {name} follows a change only when the client is started again"
            return Verdict.failure(text, *trial.excerpt(), by_time=True)
        if self.behind:
            return Verdict.failure(self.behind, *trial.excerpt(), by_time=True)
        if self.never is not None:
            (resource, _), path = self.never
            text = f"{path_text(path)} of {resource} for {name} is that of before its change"
            text += f": the client watches {resource}, and never changes what it has made"
            return Verdict.warning(text, *trial.excerpt(), by_time=True)
        if self.stale is None:
            if not self.followed:
                return Verdict.not_exercised("nothing that the client writes follows the content of the object")
            return Verdict.success()
        verdict = Verdict.failure(self.stale.describe(name), *trial.excerpt(), by_time=True)
        return verdict if self.stale.together else verdict.as_warning()


@dataclass(slots=True, frozen=True)
class _Stale:
    """A value that has not followed a change of the object that it follows from; with an empty path an object that is missing."""

    place: Place
    path: Path
    together: bool
    """Whether something else in the same object has followed, or the object is missing."""

    def describe(self, name: str) -> str:
        if not self.path:
            return (
                f"{name} has no {self.place[0]} {self.place[1]} since it was changed; an object that had the same content from "
                "the beginning has it"
            )
        shown = path_text(self.path)
        return (
            f"{shown} of {self.place[0]} for {name} is still that of before its change; for an object that had the same content "
            "from the beginning it is another one, or is not there"
        )


class ChangedBack(KeptInStep):
    """All values of a copy are changed, and later changed once more and at once back: its effects are then those of a copy that
    was never changed."""

    name = "back"
    fast = False
    provocation = "all values of an object are changed, numbers to zero; later they are changed again, and at once back"
    advice = "take back what is not wanted any more; look at the object again if it has changed while it was handled"
    source = f"{KeptInStep.source}; client-go util/workqueue (one worker for a key, which is queued again)"
    expected_seconds = 35.0
    KINDS = (TEXTS, AMOUNTS, SWITCHES, ZEROS)

    #: For how many seconds a write of the client is held up after the object has changed back, and at most until then.
    HELD = 0.6

    def __init__(self) -> None:
        super().__init__()
        self.kept = ""
        """What has not followed the change back; "" if all has."""

    def provoke(self, trial: Trial) -> None:
        also = trial.stimulate()
        trial.await_reaction(also)
        changes, fresh = self.change(trial)
        changed, plain = self.changed, trial.copies[0]
        if changed is None or not self.followed or self.behind or self.stale is not None:
            return
        there = Compared(trial, plain, fresh, changed)
        follows = there.find_followed()
        if not follows:
            return
        keeps_old = there.find_leftovers()
        mark = trial.trace.mark()
        self._change_back(trial, changed, changes)
        await_quiet(trial, mark, [changed.token])

        def find_kept() -> str:
            back = Compared(trial, fresh[0], (plain, also), changed)
            for place, path in sorted(follows, key=str):
                if back.differs(place, path) and back.can_change(trial, place, path):
                    return f"{path_text(path)} of {place[0]}"
            left = () if keeps_old else sorted(back.find_leftovers())
            return next((f"{resource} {name.replace('{}', changed.token)}" for resource, name in left), "")

        trial.await_until(lambda: not find_kept(), trial.reaction_timeout)
        self.kept = find_kept()

    def _change_back(self, trial: Trial, changed: Copy, changes: OtherContents) -> None:
        """Changes a copy to other values, and back to those of the sample while a write of the client for it is under way.

        Raises NotExercised if the API refuses it: what has changed must not always change back.
        """
        budget, restored = Budget(1), threading.Event()

        def hold(exchange: Exchange) -> None:
            if mentions(exchange, changed.token) and budget.take(None):
                restored.wait(self.HELD)
                time.sleep(self.HELD)

        with ExitStack() as held:
            held.callback(restored.set)
            for verb, resource in refusable_writes(trial.baseline):
                held.enter_context(trial.faults.on(verb, resource).intercept(hold, label="held up"))
            apply_step(trial, changed, changes.further())
            trial.await_until(lambda: bool(budget.taken), trial.baseline.seconds_to_react(2.0))
            budget.take(None)  # what the client writes from now on is not held up
            apply_step(trial, changed, changes.back())

    def judge_trace(self, trial: Trial) -> Verdict:
        if not self.kept:
            return super().judge_trace(trial)
        assert self.changed is not None
        return Verdict.failure(
            f"{self.kept} for {self.changed.names()[0]} is not that of an object that was never changed, since that was changed "
            "twice, and then back",
            *trial.excerpt(),
            by_time=True,
        )


def _find_other_generation(trial: Trial, copy: Copy) -> str:
    """Returns a status that the client writes and that says another generation than its object has; "" if there is none."""
    for resource, obj in own_objects(trial, copy):
        if not writes_field(trial.baseline, resource, _OBSERVED):
            continue
        observed, generation = value_at(obj, _OBSERVED), obj["metadata"].get("generation")
        if isinstance(observed, int) and observed != generation:
            name = obj["metadata"]["name"]
            return f"{path_text(_OBSERVED)} of {resource}/{name} stays {observed}, though its generation is {generation}"
    return ""


#: Where a status says which generation of its object it describes.
_OBSERVED = ("status", "observedGeneration")


RULES = (KeptInStep, ChangedBack)

"""Rules about switches: booleans, choices of enumerations, numbers that become zero, and fields that are removed. Each may decide
whether something exists at all, so that all other values say little about them (S3, C5).

Invariant: an object whose switch was changed is compared with objects that have had the same value from the beginning. What these
differ in from the sample is what the switch decides; nothing else is judged.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.checker.alterations import patch_of, path_text
from fakekube.checker.client_run import ClientEnded, HotLoop
from fakekube.checker.comparison import OF_OTHERS, Compared, find_unique
from fakekube.checker.contents import (
    AMOUNTS,
    REMOVED,
    SWITCHES,
    TEXTS,
    ZEROS,
    OtherContents,
    OtherValue,
    apply_step,
    find_optional,
)
from fakekube.checker.reaction import EffectKind
from fakekube.checker.rule import Rule
from fakekube.checker.rules.deletions import has_own_watch
from fakekube.checker.rules.history import KeptInStep
from fakekube.checker.rules.identity import Recreated, replace_before_deletes
from fakekube.checker.rules.lifecycles import ForeignChild
from fakekube.checker.sample import new_token
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet, await_reactions
from fakekube.checker.writes import require_children, require_prompt_writes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.alterations import Path
    from fakekube.checker.comparison import Place
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial

#: The parts of an object from which something may go with a switch.
_GOES_WITH_SWITCH = frozenset({"data", "binaryData", "metadata", "spec"})
#: What the name of a switch says that lets a client leave all as it is.
_PAUSES = re.compile(r"paus|suspend|freez|ignor|skip|maintenance|manual|dryrun|unmanaged|\bhold|\bstop", re.IGNORECASE)
#: How many switches are changed at most.
_MOST = 4

_Effects = set[tuple["Place", "Path"]]
"""Values of what a client has made or written; with an empty path whole objects."""


@dataclass(slots=True, frozen=True)
class _Switch:
    """A value of an object of the sample that may decide whether something exists."""

    position: int
    """The position of its object in the sample."""
    value: OtherValue
    steps: tuple[str, str] = ("changed", "changed back")
    """What happens to it, one after the other."""

    def make_switched(self, trial: Trial, token: str = "") -> Copy:
        """Makes a copy that has the other value from the beginning. It need not have the reaction to the sample."""

        def take(obj: Object) -> None:
            change = patch_of(obj, self.value.path, self.value.first)
            obj.update(apply_merge_patch(obj, change))

        made = trial.stimulate(take, only=[self.position], token=token)
        made.judged = False
        return made

    def switch(self, trial: Trial, copy: Copy, new: Any) -> None:
        """Changes the switch of a copy. Raises NotExercised if the API refuses it."""
        change = patch_of(copy.objects[self.position], self.value.path, new)
        apply_step(trial, copy, [change if number == self.position else {} for number in range(len(copy.objects))])


def find_switches(trial: Trial) -> list[_Switch]:
    """Returns the switches of the sample, booleans and choices first. Raises NotExercised if there are none."""
    found = _find_values(trial, SWITCHES, ZEROS)
    if not found:
        raise NotExercised("the sample has no boolean, choice or number whose change decides what a client makes")
    return found[:_MOST]


def _find_values(trial: Trial, *kinds: str) -> list[_Switch]:
    """Returns the values of the sample of some kinds, in their order."""
    found = [_Switch(*one) for one in OtherContents(trial, kinds).values() if not _PAUSES.search(path_text(one[1].path))]
    return sorted(found, key=lambda one: kinds.index(one.value.kind))


def find_optional_fields(trial: Trial) -> list[_Switch]:
    """Returns the fields of the sample that may be removed, and decide something. Raises NotExercised if there are none."""
    found = (
        _Switch(number, OtherValue(REMOVED, path, "", value, None, None), ("removed", "set again"))
        for number, path, value in find_optional(trial)
        if not _PAUSES.search(path_text(path))
    )
    optional = list(islice(found, _MOST))
    if not optional:
        raise NotExercised("the sample has no field that the API lets anybody leave out")
    return optional


class Switched(Rule):
    """Each switch of a copy is changed alone, and later changed back: its effects are those of copies that had each value from
    the beginning."""

    id = "S3"
    name = "switches"
    fast = True
    provocation = "each boolean, choice and number of an object is changed alone, numbers to zero, and changed back"
    obligation = KeptInStep.obligation
    advice = "compute all that is wanted from the present object each time: remove what is not wanted any more, and make it again"
    source = KeptInStep.source
    expected_seconds = 12.0

    def __init__(self) -> None:
        self.found: Verdict | None = None

    def require(self, baseline: Baseline) -> None:
        require_prompt_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        switches = self.find(trial)
        plain = [trial.copies[0], trial.stimulate()]
        try:
            born = [(one.make_switched(trial), one.make_switched(trial)) for one in switches]
            subjects = [trial.stimulate() for _ in switches]
            await_reactions(trial, [*plain, *subjects])
            await_quiet(trial, trial.provoked_at)
        except (ClientEnded, HotLoop):
            raise NotExercised("the client ends or loops when a switch has another value") from None
        for subject in subjects:
            subject.judged = False
        pairs = zip(switches, born, subjects, strict=True)
        decisive = [found for found in (_Flipped(trial, *one, plain=plain) for one in pairs) if self.is_decisive(found)]
        if not decisive:
            raise NotExercised("nothing that the client writes follows a switch")
        for flips in (_Flipped.flip, _Flipped.flip_back):
            for one in decisive:
                flips(one)
            trial.await_until(lambda: not any(one.find_undone() for one in decisive), trial.reaction_timeout)
            self.found = next((verdict for one in decisive if (verdict := one.judge())), None)
            if self.found is not None:
                return

    @staticmethod
    def find(trial: Trial) -> list[_Switch]:
        """Returns what is changed in the sample. Raises NotExercised if there is nothing."""
        return find_switches(trial)

    @staticmethod
    def is_decisive(flipped: _Flipped) -> bool:
        """Reports whether something follows what is changed."""
        return bool(flipped.decided)

    def judge_trace(self, trial: Trial) -> Verdict:
        return self.found or Verdict.success()


class Unset(Switched):
    """Each optional field of a copy is removed alone, and later set again."""

    name = "unset"
    fast = False
    provocation = "each optional field of an object is removed alone, and set again"
    advice = "compute all that is wanted from the present object each time: what a field has brought goes with it"

    @staticmethod
    def find(trial: Trial) -> list[_Switch]:
        return find_optional_fields(trial)

    @staticmethod
    def is_decisive(flipped: _Flipped) -> bool:
        """Reports whether something follows the field. Without one that it needs, a client may leave all as it is."""
        return bool(flipped.decided) and flipped.is_handled()


class _Flipped:
    """A copy whose switch is changed, beside two that were made so, and two that never change.

    Args:
        trial: the run.
        switch: the switch.
        born: the two that were made with its other value.
        subject: the one that is changed.
        plain: the two that are like the sample.
    """

    def __init__(self, trial: Trial, switch: _Switch, born: Sequence[Copy], subject: Copy, *, plain: Sequence[Copy]) -> None:
        self._trial, self._switch, self._subject = trial, switch, subject
        self._now, self._wanted = plain, born
        self._when = switch.steps[0]
        self._unique = find_unique(trial, *plain)
        self.decided = self._find_unlike()
        """What the switch decides: what is to follow its change."""

    def is_handled(self) -> bool:
        """Reports whether the client makes anything for a copy that was made with the other value, or, if it makes nothing for
        others either, writes anything."""
        effects = self._trial.baseline.reaction.effects
        made = [one for one in effects if one.kind is EffectKind.CHILD] or effects
        missing = self._trial.missing_of(self._wanted[0])
        return any(one not in missing for one in made)

    def flip(self) -> None:
        """Changes the switch."""
        self._switch.switch(self._trial, self._subject, self._switch.value.first)

    def flip_back(self) -> None:
        """Changes the switch back; what has followed its change is to follow again."""
        self._now, self._wanted, self._when = self._wanted, self._now, ", and ".join(self._switch.steps)
        self.decided = self._find_unlike()
        try:
            self._switch.switch(self._trial, self._subject, self._switch.value.original)
        except NotExercised:  # the API need not let it change back
            self.decided = set()

    def _compare(self) -> Compared:
        return Compared(self._trial, self._now[0], self._wanted, self._subject, _GOES_WITH_SWITCH)

    def _find_unlike(self) -> _Effects:
        """Returns what is not as in the copies that were made with the wanted value.

        If the API lets nobody change a child as it has to be, a status may say what there is; and so if nothing more is wanted of
        what other controllers change on purpose.
        """
        compared = self._compare()
        stale = compared.stale()
        kept = OF_OTHERS if self._switch.value.kind == REMOVED else ()
        refused = [one for one in stale if one[1] in kept or not compared.can_change(self._trial, *one)]
        followers = (one for one in stale if one not in refused and not (refused and one[1][:1] == ("status",)))
        return {*followers, *((place, ()) for place in compared.find_leftovers() - self._unique)}

    def find_undone(self) -> _Effects:
        """Returns what has not followed the last change of the switch."""
        followers = self._compare().find_followers()
        undone = self._find_unlike() & self.decided
        return {(place, path) for place, path in undone if not path or place in followers or self._is_kept_in_step(place[0])}

    def _is_kept_in_step(self, resource: str) -> bool:
        """Reports whether objects are not what a client may make once on purpose: children that it does not watch."""
        baseline = self._trial.baseline
        return resource not in baseline.reaction.children or has_own_watch(baseline, resource)

    def judge(self) -> Verdict | None:
        """Judges what has not followed, the worst first; None if all has."""
        undone = sorted(self.find_undone(), key=lambda one: (bool(one[1]), str(one)))
        if not undone:
            return None
        compared = self._compare()
        missing = [one for one in compared.stale() if not one[1] and one in self.decided]
        followers = compared.find_followers()
        values = [one for one in undone if one[1]]
        together = [one for one in values if one[0] in followers]
        (resource, name), path = (missing or together or values or undone)[0]
        whose, switch = self._subject.names()[0], path_text(self._switch.value.path)
        what = f"{path_text(path)} of {resource}" if path else f"{resource} {name.replace('{}', self._subject.token)}"
        how = "is not made" if missing else "is as before" if path else "stays"
        text = f"{what} for {whose} {how} when {switch} was {self._when}, unlike that of an object that was made so"
        verdict = Verdict.failure(text, *self._trial.excerpt(), by_time=True)
        return verdict if missing or together else verdict.as_warning()


class ReplacedBeforeSwitch(Recreated):
    """Another client deletes and recreates a child just before the client deletes it because of a switch, or to make it anew."""

    name = "switched"
    provocation = (
        "a child is replaced by somebody else, just before the client deletes it because a value of its owner has changed"
    )

    #: How many values are changed at most, each in a copy of its own.
    MOST = 6

    def require(self, baseline: Baseline) -> None:
        require_children(baseline)

    def provoke(self, trial: Trial) -> None:
        switches = _find_values(trial, SWITCHES, ZEROS, AMOUNTS, TEXTS)[: self.MOST]
        if not switches:
            raise NotExercised("the sample has no value that the API lets anybody change")
        subjects = [trial.stimulate() for _ in switches]
        await_reactions(trial, subjects)
        mark = trial.trace.mark()
        self.replaced = replace_before_deletes(trial, sorted(trial.baseline.reaction.children))
        for switch, subject in zip(switches, subjects, strict=True):
            subject.judged = False
            with suppress(NotExercised):
                switch.switch(trial, subject, switch.value.first)
        await_quiet(trial, mark, [subject.token for subject in subjects])


class ForeignBehindSwitch(ForeignChild):
    """An object that another controller owns has the name of a child that a switch forbids: the client may not delete it."""

    name = "forbidden"
    provocation = "an object of another controller has the name of a child that is not wanted because of a boolean or choice"

    def provoke(self, trial: Trial) -> None:
        switches = find_switches(trial)
        tokens = [new_token(trial.random) for _ in switches]
        self.take_names(trial, *tokens)
        mark = trial.trace.mark()
        for switch, token in zip(switches, tokens, strict=True):
            switch.make_switched(trial, token)
        await_quiet(trial, mark, tokens)


RULES: tuple[type[Rule], ...] = (Switched, Unset, ReplacedBeforeSwitch, ForeignBehindSwitch)

"""Rules about changes that come one by one: each of them is followed, and not only together with others, or when the client is
started again (S3).

Invariant: a value is judged only if it has followed before, with all others or at a start.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakekube.checker.alterations import is_content, is_number, parts_of, path_text
from fakekube.checker.comparison import state_of, values_of_items
from fakekube.checker.contents import AMOUNTS, TEXTS, OtherContents, apply_and_await_quiet, apply_step
from fakekube.checker.reaction import is_time
from fakekube.checker.rule import Rule
from fakekube.checker.rules.history import KeptInStep
from fakekube.checker.rules.sieve import start_timeout
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet, await_reactions
from fakekube.checker.writes import require_copied_values, require_prompt_writes, require_writes, writes_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.alterations import Path
    from fakekube.checker.comparison import Place, State
    from fakekube.checker.contents import OtherValue
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial


Following = tuple[int, "OtherValue", "list[tuple[Place, Path]]"]
"""A changed value with the position of its object in the sample, and what has followed it."""


class ChangedAlone(Rule):
    """All texts and numbers of a copy are changed, and then each one again, alone: what has followed it then follows it now."""

    id = "S3"
    name = "alone"
    provocation = "each text and each number of an object is changed alone"
    obligation = KeptInStep.obligation
    advice = "compare each value that is wanted with the present one, and not only one that changes most"
    source = KeptInStep.source
    expected_seconds = 35.0

    #: How many values are changed alone at most, and the seconds after which no further one is: with a client that writes all the
    #: time each change takes half a minute.
    MOST, SECONDS = 8, 150.0

    ignored: str = ""
    """What has not followed, and what it follows from; "" if all has."""

    def require(self, baseline: Baseline) -> None:
        require_prompt_writes(baseline)
        require_copied_values(baseline)

    def provoke(self, trial: Trial) -> None:
        changes = OtherContents(trial, (TEXTS, AMOUNTS))
        subject, following = self.change_all(trial, changes)
        begun = trial.now
        for position, value, places in following[: self.MOST]:
            if trial.now - begun >= self.SECONDS:
                return
            apply_and_await_quiet(trial, subject, changes.alone(position, value))
            stale = self._await_followers(trial, subject, value, places)
            if stale is not None:
                (resource, _), path = stale
                self.ignored = (
                    f"{path_text(path)} of {resource} for {subject.names()[0]} does not follow {path_text(value.path)} when only "
                    "that is changed; it has followed when other values changed as well"
                )
                return

    @staticmethod
    def change_all(trial: Trial, changes: OtherContents) -> tuple[Copy, list[Following]]:
        """Makes a copy, changes all its values, and returns it with what has followed.

        Raises NotExercised if nothing has within the time in which the client reacts to a copy, and tells the baseline of it.
        """
        subject = trial.stimulate()
        await_reactions(trial, [subject])
        before = state_of(trial, subject)
        apply_and_await_quiet(trial, subject, changes.values_only())
        trial.await_until(
            lambda: bool(find_following(changes.values(), before, state_of(trial, subject))),
            trial.baseline.seconds_to_react(_FOLLOWS_WITHIN),
        )
        await_quiet(trial, subject.mark, [subject.token])
        following = find_following(changes.values(), before, state_of(trial, subject))
        if not following:
            trial.baseline.uncopied = "the client copies no value of the object that is changed"
            raise NotExercised(trial.baseline.uncopied)
        return subject, following

    @staticmethod
    def _await_followers(
        trial: Trial, copy: Copy, value: OtherValue, places: Sequence[tuple[Place, Path]]
    ) -> tuple[Place, Path] | None:
        """Waits until all that has followed a value follows it again; returns the first place that does not, None if all do."""

        def find_stale() -> tuple[Place, Path] | None:
            now = state_of(trial, copy)
            found = ((place, path, now.get(place, {})) for place, path in places)
            return next(
                ((place, path) for place, path, has in found if is_behind(value, has.get(path), values_of_items(has, path))), None
            )

        trial.await_until(lambda: find_stale() is None, trial.reaction_timeout)
        return find_stale()

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.failure(self.ignored, *trial.excerpt(), by_time=True) if self.ignored else Verdict.success()


#: Seconds within which most clients follow a change, after they have been quiet.
_FOLLOWS_WITHIN = 3.0


def find_following(values: Sequence[tuple[int, OtherValue]], before: State, after: State) -> list[Following]:
    """Returns the values that can be told from each other, and have a second other one, with what follows them.

    Args:
        values: the changed values, each with the position of its object in the sample.
        before: the effects of the copy before the change.
        after: those after it.
    """
    changed = [
        (place, path, before.get(place, {}).get(path), now)
        for place, found in after.items()
        for path, now in found.items()
        if now != before.get(place, {}).get(path)
    ]
    pairs = [(value.original, value.first) for _, value in values]
    found = []
    for position, value in values:
        if value.second == value.original or pairs.count((value.original, value.first)) > 1:
            continue
        places = [(place, path) for place, path, old, now in changed if _follows(value, path, old, now)]
        if places:
            found.append((position, value, places))
    return found


def _follows(value: OtherValue, path: Path, old: Any, now: Any) -> bool:
    """Reports whether what has changed follows a value: a text with its mark, or the same number where no others count."""
    if isinstance(now, str) and value.mark in now:
        return True
    return is_content(path[0]) and (old, now) == (value.original, value.first) and type(now) is type(value.first)


def is_behind(value: OtherValue, now: Any, items: Sequence[Any] = ()) -> bool:
    """Reports whether what has followed a value when all were changed is still as it was then, and none of some other items of a
    list has followed."""
    if isinstance(now, str) and value.mark in now:
        return all(f"{value.mark}2" not in str(one) for one in (now, *items))
    return bool(now == value.first)


class SameAfterStart(Rule):
    """Objects of copies are deleted, or refer to those of another copy; then the client is started again, and finds nothing to
    mend."""

    id = "S3"
    name = "anew"
    provocation = "an object of several is deleted, or refers to another one; later the client is started again"
    obligation = KeptInStep.obligation
    advice = "an event concerns all objects that have used the object until now: also those that it named before its change"
    source = KeptInStep.source
    watches = True
    restarts = True
    expected_seconds = 20.0

    late: str = ""
    """What has changed only when the client was started again; "" if nothing."""

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline)
        if len(baseline.sample.stimuli) < 2:
            raise NotExercised("the sample has one object: no other one uses it")

    def provoke(self, trial: Trial) -> None:
        control = trial.copies[0]
        if not self._find_late(trial, control, patient=False):
            return
        for copy, (resource, _), path in self._find_late(trial, control, patient=True)[:1]:
            self.late = (
                f"{path_text(path)} of {resource} for {copy.names()[0]} has changed only when the client was started again: an "
                "object that it follows from had been deleted, or had referred to it before"
            )

    def _find_late(self, trial: Trial, control: Copy, *, patient: bool) -> list[tuple[Copy, Place, Path]]:
        """Changes some copies and starts the client again; returns what has changed in them by that, and not in another copy."""
        copies = self._disturb(trial)
        mark = trial.trace.mark()
        if patient:  # the client may be slow
            trial.await_until(lambda: False, trial.reaction_timeout)
        await_quiet(trial, mark)
        before = [state_of(trial, copy) for copy in (control, *copies)]
        mark = trial.trace.mark()
        trial.restart_client()
        trial.await_reaction(trial.stimulate(), start_timeout(trial))
        await_quiet(trial, mark)
        after = [state_of(trial, copy) for copy in (control, *copies)]
        always, *found = (set(_changed_values(trial.baseline, *pair)) for pair in zip(before, after, strict=True))
        return [(copy, *one) for copy, late in zip(copies, found, strict=True) for one in sorted(late - always, key=str)]

    def _disturb(self, trial: Trial) -> list[Copy]:
        """Makes copies, deletes an object of the first one, and lets the second one refer to the objects of the third one."""
        shortened, moved, target = copies = [trial.stimulate() for _ in range(3)]
        await_reactions(trial, copies)
        used = _only_read(trial.baseline)
        for copy in copies:
            copy.judged = False
        moves = [  # an event of what the client writes to would make it look there
            {} if used and number not in used else _reference_change(obj, moved.token, target.token)
            for number, obj in enumerate(moved.objects)
        ]
        if not used and not any(moves):
            raise NotExercised("the client writes to all objects of the sample, and none refers to another one")
        for number in used[:1]:
            _delete(trial, shortened, number)
        with suppress(NotExercised):  # the API lets nobody change it
            apply_step(trial, moved, moves)
        return copies

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.failure(self.late, *trial.excerpt(), by_time=True) if self.late else Verdict.success()


class UnseenPart(SameAfterStart):
    """An object of a copy is deleted while the client is disconnected, and others stay; later the client is started again."""

    name = "anew-unseen"
    provocation = "an object of several is deleted while the client is disconnected; later the client is started again"
    advice = "compare each list with the cache: what is not in the list any more was deleted, and concerns all that have used it"
    steps = ("W8", "R2")

    def require(self, baseline: Baseline) -> None:
        super().require(baseline)
        if not _only_read(baseline):
            raise NotExercised("the client writes to all objects of the sample")

    def _disturb(self, trial: Trial) -> list[Copy]:
        shortened = trial.stimulate()
        trial.await_reaction(shortened)
        shortened.judged = False
        with trial.disconnect():
            _delete(trial, shortened, _only_read(trial.baseline)[0])
            trial.compact()
        trial.converge()
        return [shortened]


def _only_read(baseline: Baseline) -> list[int]:
    """Returns the positions of the objects of the sample that the client does not write to."""
    return [number for number in range(len(baseline.sample.stimuli)) if number not in baseline.written]


def _delete(trial: Trial, copy: Copy, number: int) -> None:
    metadata = copy.objects[number]["metadata"]
    trial.cluster.delete(copy.resources[number], metadata["name"], namespace=metadata.get("namespace"))


def _reference_change(obj: Object, old: str, new: str) -> Object:
    """Returns a merge patch of the annotations and the content of an object that has the names of another copy."""
    metadata = {"annotations": (obj.get("metadata") or {}).get("annotations") or {}}
    parts = {"metadata": metadata, **dict(parts_of(obj))}
    changed = {part: _with_name(value, old, new) for part, value in parts.items()}
    return {part: value for part, value in changed.items() if value != parts[part]}


def _with_name(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: _with_name(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_name(inner, old, new) for inner in value]
    return value.replace(old, new) if isinstance(value, str) else value


def _changed_values(baseline: Baseline, before: State, after: State) -> Iterator[tuple[Place, Path]]:
    """Yields the values that differ, of what says what is wanted, or is written by the client; not numbers in a status that may
    only grow, and times."""
    for place in before.keys() & after.keys():
        old, new = before[place], after[place]
        for path in old.keys() | new.keys():
            was, now = old.get(path), new.get(path)
            if was == now or is_time(was) or is_time(now):
                continue
            if is_content(path[0]) or _is_written(baseline, place[0], path, was, now):
                yield place, path


def _is_written(baseline: Baseline, resource: str, path: Path, was: Any, now: Any) -> bool:
    """Reports whether the client writes a field, and it is no number that has grown."""
    grows = is_number(was) and is_number(now) and now > was
    return not grows and writes_field(baseline, resource, path)


RULES: tuple[type[Rule], ...] = (ChangedAlone, SameAfterStart, UnseenPart)

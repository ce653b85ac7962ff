"""Rules about objects that are changed again: the last change counts, whatever the client was doing (S3, C7, V1).

Invariant: only texts are judged that the client has copied after each of several changes without a fault.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.checker.alterations import changes_of_all, from_base64, is_content
from fakekube.checker.provocations import Budget
from fakekube.checker.reaction import children_of, leaves_of
from fakekube.checker.rule import Rule
from fakekube.checker.rules.apply import AppliedByOthers, applied_resources, judge_alternating_applies
from fakekube.checker.rules.revisions import MoreDigits
from fakekube.checker.rules.sieve import MissedChange
from fakekube.checker.trace import mentions
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet
from fakekube.checker.writes import own_objects, refusable_writes, require_copied_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange

_Place = tuple[str, tuple[str, ...]]
"""The resource of an object, and the path of a text in it."""


class ChangedMeanwhile(MissedChange):
    """A copy is changed several times in a row, and then while a write of the client is under way."""

    name = "meanwhile"
    provocation = "an object is changed several times in a row, and while a write of the client is under way"
    expected_seconds = 10.0
    steps = ()
    fast = False
    advice = "handle one object at a time, read it when the work begins, and look at it again if it has changed since then"
    source = "client-go util/workqueue (one worker for a key, which is queued again); API conventions, level-based behavior"

    #: How many changes come in a row, and the pause between them in seconds.
    IN_A_ROW, PAUSE = 4, 0.12
    #: How many calm changes show where the client copies a text to.
    CALM = 2
    #: How long a write is under way at most, in seconds.
    UNDER_WAY = 1.2
    #: The client is late after so many seconds, and so many times the longest ones of calm changes.
    LATE, TIMES_LATE = 5.0, 20

    stale: str = ""
    """What has not followed the last change; "" if all has."""
    late: str = ""
    """What has followed it late; "" if nothing has."""
    overtaken: Exchange | None = None
    """A write that was under way while the client sent the same kind of write of the same object with a newer text."""
    refused: str = ""
    """Why a change under a write could not be made; "" if all were made."""
    usual: float = 0.0
    """The seconds after a calm change until the client has copied the text."""

    def require(self, baseline: Baseline) -> None:
        super().require(baseline)
        require_copied_values(baseline)

    def provoke(self, trial: Trial) -> None:
        self.reaction = self.learn(trial)
        subject = trial.copies[0]
        places = self._find_places(trial, subject)
        if self.stale:
            return
        if not places:
            raise NotExercised("the client copies no text of the object that is changed")
        mark = trial.trace.mark()
        for _ in range(self.IN_A_ROW):
            self._alter(trial, subject)
            trial.wait(self.PAUSE)
        if self._follows(trial, subject, places, "in a row"):
            await_quiet(trial, mark, [subject.token])
            self._change_under_writes(trial, subject)
            self._follows(trial, subject, places, "while a write of the client was under way")

    def _find_places(self, trial: Trial, subject: Copy) -> set[_Place]:
        """Returns where the client copies the changed text to, each time."""
        found: set[_Place] | None = None
        for _ in range(self.CALM):
            if found is not None and not found:
                break
            self.mark, begun = trial.trace.mark(), trial.now
            self._alter(trial, subject)
            if not trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout):
                missing = self._missing(trial)[0]
                self.stale = f"no reaction to another change of {subject.names()[0]}: before, the client {missing}"
                return set()
            trial.await_until(lambda: bool(_places_of(trial, subject, self.ending)), trial.baseline.seconds_to_react(1.0))
            self.usual = max(self.usual, trial.now - begun)
            await_quiet(trial, self.mark, [subject.token])
            now = _places_of(trial, subject, self.ending)
            found = now if found is None else found & now
        return found or set()

    def _change_under_writes(self, trial: Trial, subject: Copy) -> None:
        """Changes the copy just before each kind of write for it, and holds the write up, until another one has been sent.

        Raises NotExercised if the API refuses a change.
        """
        budget = Budget(1)

        def change(exchange: Exchange) -> None:
            kind = (exchange.verb, exchange.resource, exchange.subresource)
            if not mentions(exchange, subject.token) or not budget.take(kind):
                return
            mark, before = trial.trace.mark(), self.ending
            try:
                self._alter(trial, subject)
            except NotExercised as problem:
                self.refused = str(problem)
                return
            after = self.ending  # another kind of write may change the object once more
            end = time.monotonic() + self.UNDER_WAY
            while time.monotonic() < end and not _has_written(trial, subject, mark):
                time.sleep(_LOOK)
            if mentions(exchange, before) and any(_replaces(call, exchange, after) for call in trial.trace.since(mark)):
                self.overtaken = self.overtaken or exchange

        with ExitStack() as held:
            for verb, resource in sorted({*refusable_writes(trial.baseline), *self.writes_after_change}):
                held.enter_context(trial.faults.on(verb, resource).intercept(change, label="held up"))
            mark = trial.trace.mark()
            self._alter(trial, subject)
            trial.await_until(lambda: bool(budget.taken), trial.reaction_timeout)
            await_quiet(trial, mark, [subject.token])
        if self.refused:
            raise NotExercised(self.refused)

    def _follows(self, trial: Trial, subject: Copy, places: set[_Place], when: str) -> bool:
        """Waits until all copied texts are those of the last change; returns whether they are."""

        def find_stale() -> set[_Place]:
            return places - _places_of(trial, subject, self.ending)

        def describe(stale: set[_Place]) -> str:
            resource, path = min(stale)
            return f"{'.'.join(path)} of {resource} for {subject.names()[0]}"

        begun, stale = trial.now, find_stale()
        follows = trial.await_until(lambda: not find_stale(), trial.reaction_timeout)
        seconds = trial.now - begun
        if not follows:
            if left := find_stale():
                self.stale = f"{describe(left)} is not that of the last change, made {when}"
        elif stale and seconds > max(self.LATE * trial.session.slowness(), self.TIMES_LATE * self.usual):
            self.late = (
                f"{describe(stale)} follows the last change, made {when}, only {seconds:.0f} s later; usually it takes "
                f"{self.usual:.1f} s"
            )
        return not (self.stale or self.late)

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.success()

    def judge(self, trial: Trial) -> Verdict:
        late = self.overtaken
        if late is not None and late.status is not None and late.status < 400:  # not one that its resourceVersion protects
            return Verdict.failure(
                f"{late.verb} {late.path} was sent with the text of the last change while one with the text before was under "
                "way, and this one came last: two workers handle one object at once",
                *trial.excerpt(),
            )
        found = self.stale or self.late
        if found and not (trial.ended or trial.loop):
            return Verdict.failure(found, *trial.excerpt(), by_time=True, by_chance=bool(self.late))
        return super().judge(trial)


class AppliedAfterChange(MissedChange):
    """A copy is changed: what the client applies then has all that it has applied before."""

    id = "C7"
    name = "changed"
    provocation = "an object is changed, so that the client applies again"
    expected_seconds = 10.0
    obligation = AppliedByOthers.obligation
    advice = "each apply contains all fields that the client wants: the server removes those that are left out"
    source = "Kubernetes docs, server-side apply, managers (fields that are no longer applied are removed)"
    steps = ()
    fast = False

    lost: str = ""

    def require(self, baseline: Baseline) -> None:
        applied_resources(baseline)
        super().require(baseline)

    def provoke(self, trial: Trial) -> None:
        resources = applied_resources(trial.baseline)
        self.reaction = self.learn(trial)
        subject = trial.copies[0]
        self.mark = trial.trace.mark()
        self._alter(trial, subject)
        trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout)
        await_quiet(trial, self.mark, [subject.token])
        fresh = self._make_changed(trial)
        for resource in resources:
            lost = _shapes(trial, fresh, resource) - _shapes(trial, subject, resource)
            if lost:
                path = ".".join(min(lost))
                self.lost = (
                    f"{resource} for {subject.names()[0]} has no {path} any more since that was changed; those for "
                    f"{fresh.names()[0]}, which has had the same texts from the beginning, have it"
                )
                return

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_alternating_applies(trial)

    def _make_changed(self, trial: Trial) -> Copy:
        """Creates a copy that has the change from the beginning, and waits for the reaction."""
        like = trial.copies[0].objects
        objects = [_in_order_of(one, obj) for one, obj in zip(like, trial.sample.copies("check"), strict=True)]
        changed = iter(_with_change(objects, self.change, self.ending, trial.copies[0].altered))

        def take(obj: Object) -> None:
            parts = next(changed)
            obj.update({part: parts[part] for part in ("data", "spec") if part in parts})
            annotations = (parts.get("metadata") or {}).get("annotations")
            if annotations:
                obj["metadata"]["annotations"] = annotations

        fresh = trial.stimulate(take)
        trial.await_reaction(fresh)
        await_quiet(trial, fresh.mark, [fresh.token])
        return fresh

    def judge(self, trial: Trial) -> Verdict:
        if self.lost and not (trial.ended or trial.loop):
            return Verdict.failure(self.lost, *trial.excerpt())
        return super().judge(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.success()


def _has_written(trial: Trial, copy: Copy, mark: int) -> bool:
    """Reports whether a write for a copy that began after a mark has succeeded."""
    return any(call.is_write and call.succeeded and call.mentions(copy.token) for call in trial.trace.since(mark))


def _replaces(call: Call, exchange: Exchange, text: str) -> bool:
    """Reports whether a request is the same kind of write of the same object as one that is under way, with another text."""
    same = (call.verb, call.path) == (exchange.verb, exchange.path)
    return same and call.number != exchange.number and call.succeeded and call.mentions(text)


#: The interval between two looks at the trace, in seconds.
_LOOK = 0.03


def _in_order_of(like: Any, value: Any) -> Any:
    """Returns a value with its fields in the order of another one: the server sorts them, and changes are numbered so."""
    if isinstance(value, dict) and isinstance(like, dict):
        return {key: _in_order_of(like.get(key), value[key]) for key in (*(key for key in like if key in value), *value)}
    if isinstance(value, list) and isinstance(like, list) and len(value) == len(like):
        return [_in_order_of(*pair) for pair in zip(like, value, strict=True)]
    return value


def _with_change(objects: list[Object], number: int, ending: str, times: int) -> list[Object]:
    """Returns objects of which one has a change of `Trial.alter`, told by its number, its ending and how often it was made."""
    index, change = changes_of_all(objects, ending, times)[number]
    return [*objects[:index], apply_merge_patch(objects[index], change), *objects[index + 1 :]]


def _shapes(trial: Trial, copy: Copy, resource: str) -> set[tuple[str, ...]]:
    """Returns the paths of the values in the children of a copy, without their metadata and status."""
    parts = (
        {part: value for part, value in child.items() if is_content(part)} for child in children_of(trial.cluster, copy, resource)
    )
    return {path for one in parts for path, _ in _leaves(one)}


def _places_of(trial: Trial, copy: Copy, text: str) -> set[_Place]:
    """Returns where a text is found that was put into a copy: in its children, and in what is new in its own objects."""
    found = {
        (resource, path)
        for resource in trial.baseline.reaction.children
        for child in children_of(trial.cluster, copy, resource)
        for path, value in _leaves(child)
        if _contains(value, text)
    }
    given = {obj["metadata"]["uid"]: {path for path, _ in _leaves(obj)} for obj in copy.objects}
    for resource, obj in own_objects(trial, copy):
        before = given.get(obj["metadata"]["uid"], set())
        found |= {(resource, path) for path, value in _leaves(obj) if path not in before and _contains(value, text)}
    return {(resource, path) for resource, path in found if path[:2] != ("metadata", "managedFields")}


def _contains(value: Any, text: str) -> bool:
    """Reports whether a string contains a text, also in base64."""
    if not isinstance(value, str):
        return False
    if text in value:
        return True
    return text.encode() in (from_base64(value) or b"")


def _leaves(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields the paths and values of all that is neither an object nor a list; the items of a list share one path."""
    for path, leaf in leaves_of(value):
        yield tuple("[]" if isinstance(part, int) else part for part in path), leaf


class ChangedOverDigits(MissedChange):
    """A copy from before revisions get one digit more is changed after that."""

    id = MoreDigits.id
    name = "change"
    provocation = "an object is changed, and its revision gets one digit more by that"
    obligation = MoreDigits.obligation
    advice = MoreDigits.advice
    source = MoreDigits.source
    steps = ()
    fast = False
    watches = True
    expected_seconds = 8.0

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"first_revision": MoreDigits.BOUNDARY - MoreDigits.BEFORE}

    def provoke(self, trial: Trial) -> None:
        self.reaction = self.learn(trial)
        self._alter(trial, trial.copies[0])
        await_quiet(trial, trial.copies[0].mark, [trial.copies[0].token])
        MoreDigits.approach(trial)
        trial.advance_revisions(MoreDigits.LAST + 1)
        trial.begin_provocation()
        self.mark = trial.trace.mark()
        self._alter(trial, trial.copies[0])
        trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout)


RULES: tuple[type[Rule], ...] = (ChangedMeanwhile, AppliedAfterChange, ChangedOverDigits)

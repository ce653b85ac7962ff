"""Rules about what must not depend on the history of an object: a changed object, and one that has had the same content from the
beginning, have the same effects (S3).

Invariant: only values are judged that two fresh objects have in common, and only if they differ from those of an object that was
never changed. A value that the API refuses to change is not judged.
"""

from __future__ import annotations

import copy as copies
import re
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.checker.alterations import from_base64, to_base64
from fakekube.checker.client_run import ClientEnded, HotLoop
from fakekube.checker.contents import ADDED, AMOUNTS, SWITCHES, TEXTS, ZEROS, OtherContents, collection_of
from fakekube.checker.provocations import Budget
from fakekube.checker.reaction import SYSTEM_FIELDS, children_of, is_time, leaves_of, value_at
from fakekube.checker.rule import Rule
from fakekube.checker.rules.sieve import MissedChildDeletion, lease_seconds
from fakekube.checker.trace import mentions
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet
from fakekube.checker.writes import own_objects, refusable_writes, require_writes, writes_field
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange

Path = tuple[str | int, ...]
Place = tuple[str, str]
"""The resource of an object, and its name with {} in place of the copy's token; `GENERATED` for children with generated names."""
_State = dict[Place, dict[Path, Any]]

#: Metadata that differs between equal objects, or does not follow from the object of another one.
_OWN_METADATA = frozenset({"uid", "creationTimestamp", "selfLink", "name", "generateName", "ownerReferences", "finalizers"})
#: In place of the names of children that the server has made up.
GENERATED = "*"
#: In place of a value that is not there.
_NOTHING = object()
#: Resources whose objects many clients keep when less is wanted, because they hold data.
_KEPT_ON_PURPOSE = frozenset({"persistentvolumeclaims"})


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
    watches = True
    expected_seconds = 12.0

    #: The kinds of values that are changed. They are left out, the last one first, while the client does not react to an object
    #: that has them from the beginning.
    KINDS: ClassVar[Sequence[str]] = (TEXTS, AMOUNTS)

    def __init__(self) -> None:
        self.stale: Stale | None = None
        self.followed = False
        self.only_at_start: Place | None = None
        """An object that has followed the change when the client was started again, and not before."""
        self.behind = ""
        """A status that says another generation than that of its object; "" if there is none."""
        self.changed: Copy | None = None

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        self.change(trial)

    def change(self, trial: Trial) -> tuple[OtherContents, Sequence[Copy]]:
        """Changes a copy, and looks at what has followed. Returns the changes, and two copies that had them from the beginning.

        Raises NotExercised.
        """
        unchanged = trial.copies[0]
        changes = OtherContents(trial, self.KINDS)
        fresh = self._make_two(trial, changes)
        while not fresh:
            if not changes.leave_out():
                raise NotExercised("the client does not react to copies with other texts as to the sample")
            fresh = self._make_two(trial, changes)
        changed = self.changed = trial.stimulate()
        trial.await_reaction(changed)
        await_quiet(trial, changed.mark, [changed.token])
        for step in changes.steps():
            mark = trial.trace.mark()
            apply_step(trial, changed, step)
            await_quiet(trial, mark, [changed.token])

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
        return changes, fresh

    @classmethod
    def _is_in_step(cls, trial: Trial, compared: Compared) -> bool:
        """Reports whether all that can follow the change has done so."""
        return not compared.stale() or (bool(compared.find_followers()) and cls._find_stale(trial, compared) is None)

    @staticmethod
    def _find_follower_at_start(trial: Trial, compare: Callable[[], Compared]) -> Place | None:
        """Starts the client again; returns the first object that follows the change then."""
        trial.restart_client()
        trial.await_reaction(trial.stimulate(), lambda since: trial.reaction_timeout(since) + lease_seconds(trial))
        trial.await_until(lambda: bool(compare().find_followers()), trial.reaction_timeout)
        return min(compare().find_followers(), default=None)

    def _make_two(self, trial: Trial, changes: OtherContents) -> Sequence[Copy]:
        """Makes two copies that have the changes from the beginning, and returns them.

        Returns none, and they are not judged, if the client does not react to them as to the sample. Raises NotExercised if it
        ends or loops: the API accepts values that mean nothing to a client.
        """
        fresh: list[Copy] = []
        for _ in range(2):
            try:
                fresh.append(self._make_fresh(trial, changes))
            except (ClientEnded, HotLoop):
                raise NotExercised("the client ends or loops when a copy has other values") from None
            if trial.missing_of(fresh[-1]):
                for one in fresh:
                    one.judged = False
                return ()
        return fresh

    @staticmethod
    def _make_fresh(trial: Trial, changes: OtherContents) -> Copy:
        """Makes a copy that has the changes from the beginning, and waits for the reaction."""
        fresh = make_with(trial, changes.all())
        trial.await_reaction(fresh, trial.baseline.seconds_to_react(_REACTS_WITHIN * trial.session.slowness()))
        await_quiet(trial, fresh.mark, [fresh.token])
        return fresh

    @staticmethod
    def _find_stale(trial: Trial, compared: Compared) -> Stale | None:
        """Returns what has not followed, first what is in an object of which something else has; None if nothing follows."""
        followed = compared.find_followers()
        if not followed:
            return None
        found = sorted(compared.stale(), key=lambda one: (one[0] not in followed, str(one)))
        return next(
            (
                Stale(place, path, together=place in followed or not path)
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
        if self.stale is None:
            if not self.followed:
                return Verdict.not_exercised("nothing that the client writes follows the content of the object")
            return Verdict.success()
        verdict = Verdict.failure(self.stale.describe(name), *trial.excerpt(), by_time=True)
        return verdict if self.stale.together else verdict.as_warning()


#: In so many seconds most clients react to a copy with other values, if they react to it at all.
_REACTS_WITHIN = 8.0


@dataclass(slots=True, frozen=True)
class Stale:
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
        shown = ".".join(map(str, self.path))
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
    expected_seconds = 20.0
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
                    return f"{'.'.join(map(str, path))} of {place[0]}"
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


def make_with(trial: Trial, changes: Sequence[Object]) -> Copy:
    """Makes a copy that has changes from the beginning, a merge patch for each of its objects."""
    left = iter(changes)

    def take(obj: Object) -> None:
        changed = apply_merge_patch(obj, next(left))
        obj.clear()
        obj.update(changed)

    return trial.stimulate(take)


def apply_step(trial: Trial, copy: Copy, step: Sequence[Object]) -> None:
    """Changes the objects of a copy. Raises NotExercised if the API refuses it: together the changes may be more than it
    accepts."""
    copy.altered += 1
    for resource, obj, change in zip(copy.resources, copy.objects, step, strict=True):
        metadata = obj["metadata"]
        if not change:
            continue
        try:
            trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))
        except ApiError as error:
            if error.code == 404:
                continue
            raise NotExercised(f"the API refuses the changes of {resource}/{metadata['name']}: {error}") from None


def _find_other_generation(trial: Trial, copy: Copy) -> str:
    """Returns a status that the client writes and that says another generation than its object has; "" if there is none."""
    for resource, obj in own_objects(trial, copy):
        if not writes_field(trial.baseline, resource, _OBSERVED):
            continue
        observed, generation = value_at(obj, _OBSERVED), obj["metadata"].get("generation")
        if isinstance(observed, int) and observed != generation:
            name = obj["metadata"]["name"]
            return f"{'.'.join(_OBSERVED)} of {resource}/{name} stays {observed}, though its generation is {generation}"
    return ""


#: Where a status says which generation of its object it describes.
_OBSERVED = ("status", "observedGeneration")


#: The parts of an object that say what is wanted: there is no place for what was wanted before.
_IS_WANTED = frozenset({"data", "spec"})
_WORD = re.compile(r"[^\s,;|]+")


def _has_both(now: Any, old: Any, wanted: Any) -> bool:
    """Reports whether a text has all words of two others, of which the first one has words that the second one does not have."""
    if not (isinstance(now, str) and isinstance(old, str) and isinstance(wanted, str)):
        return False
    words, before, after = (set(_WORD.findall(text)) for text in (now, old, wanted))
    return bool(before - after) and words >= before | after


#: The parts of an object from which something may go when what it follows from changes. Others change with time.
_GOES_WITH_CONTENT = frozenset({"data", "binaryData", "metadata"})


class Compared:
    """The effects of a copy that was never changed, of two that were made with the changes, and of one that was changed.

    Args:
        trial: the run.
        unchanged: the copy that was never changed.
        fresh: the two that were made with the changes.
        changed: the one that was changed.
        goes: the parts of an object from which something may go because of the changes.
    """

    def __init__(
        self, trial: Trial, unchanged: Copy, fresh: Sequence[Copy], changed: Copy, goes: frozenset[str] = _GOES_WITH_CONTENT
    ) -> None:
        self._before, self._after = _state_of(trial, unchanged), _state_of(trial, changed)
        self._wanted, self._other = (_state_of(trial, one) for one in fresh)
        self._changed, self._goes = changed, goes

    def _differences(self) -> Iterator[tuple[Place, Path, Any, Any, Any]]:
        """Yields the places of values that follow from the changes: the value before, the wanted and the present one."""
        for place, wanted in self._wanted.items():
            other, before, after = (one.get(place) for one in (self._other, self._before, self._after))
            if other is None or before is None or after is None:
                continue
            for path, value in wanted.items():
                old = before.get(path, _NOTHING)
                if value != other.get(path, _NOTHING) or value == old or is_time(value):
                    continue
                yield place, path, old, value, after.get(path, _NOTHING)
            for path in before.keys() - wanted.keys() - other.keys():
                if path[0] in self._goes and not is_time(before[path]):
                    yield place, path, before[path], _NOTHING, after.get(path, _NOTHING)

    def stale(self) -> list[tuple[Place, Path]]:
        """Returns the values that are still those of before the change, or have them beside those of after it; and the objects
        that are not there, with an empty path."""
        missing = (self._wanted.keys() & self._other.keys()) - self._before.keys() - self._after.keys()
        return [(place, ()) for place in missing] + [
            (place, path)
            for place, path, old, wanted, now in self._differences()
            if now is old or now == old or (path[0] in _IS_WANTED and _has_both(now, old, wanted))
        ]

    def find_followers(self) -> set[Place]:
        """Returns the objects of which a value has followed the change."""
        return {place for place, _ in self.find_followed()}

    def find_followed(self) -> list[tuple[Place, Path]]:
        """Returns the values that have followed the change."""
        return [(place, path) for place, path, _, wanted, now in self._differences() if now == wanted]

    def find_made(self) -> set[Place]:
        """Returns the objects that are there since the change, and not before it."""
        return (self._wanted.keys() & self._other.keys() & self._after.keys()) - self._before.keys()

    def find_leftovers(self) -> set[Place]:
        """Returns the objects that are there as before the change, and that objects do not have which had its content at once."""
        kept = (self._before.keys() & self._after.keys()) - self._wanted.keys() - self._other.keys()
        return {place for place in kept if place[0] not in _KEPT_ON_PURPOSE}

    def differs(self, place: Place, path: Path) -> bool:
        """Reports whether a value is not the wanted one; not if it is a number in a status, which may only grow."""
        wanted, other, now = (one.get(place, {}).get(path, _NOTHING) for one in (self._wanted, self._other, self._after))
        grows = path[0] == "status" and isinstance(now, int | float) and not isinstance(now, bool)
        return wanted == other and now != wanted and not grows and place in self._after

    def can_change(self, trial: Trial, place: Place, path: Path) -> bool:
        """Reports whether the API would accept the wanted value in the present object, or cannot be asked."""
        resource, name = place
        value = self._wanted.get(place, {}).get(path)
        if path[:1] == ("status",) or not isinstance(value, str | int | float):
            return True
        present = value.replace("{}", self._changed.token) if isinstance(value, str) else value
        for child in children_of(trial.cluster, self._changed, resource):
            if name not in (GENERATED, _normal(child["metadata"]["name"], self._changed.token)):
                continue
            changed = copies.deepcopy(child)
            if not _put(changed, path, present):
                continue
            try:
                collection = collection_of(trial, resource, child)
                trial.cluster.call("PUT", f"{collection}/{child['metadata']['name']}", changed, {"dryRun": "All"})
            except ApiError as error:
                return error.code in (404, 409)
        return True


def _put(obj: Any, path: Path, value: str | float) -> bool:
    """Sets a string, number or boolean in an object; returns whether its place exists."""
    for part in path[:-1]:
        try:
            obj = obj[part]
        except (KeyError, IndexError, TypeError):  # the object has another form than that of the value
            return False
    if not isinstance(obj, dict):
        return False
    old = obj.get(path[-1])
    encodes = isinstance(value, str) and isinstance(old, str) and _decode(old) is not None
    obj[path[-1]] = to_base64(str(value)) if encodes else value
    return True


def _state_of(trial: Trial, copy: Copy) -> _State:
    """Returns the values in the children of a copy, and those in its own objects that it was not made with."""
    found: _State = {}
    for resource in trial.baseline.reaction.children:
        children = children_of(trial.cluster, copy, resource)
        generated: list[dict[Path, Any]] = []
        for child in children:
            name, values = child["metadata"]["name"], _values_of(child, copy.token)
            if copy.token in name and not child["metadata"].get("generateName"):
                found[resource, _normal(name, copy.token)] = values
            else:
                generated.append(values)
        if generated:
            found[resource, GENERATED] = _merge(generated)
    for (resource, obj), made in zip(own_objects(trial, copy), copy.objects, strict=False):
        given = {path for path, _ in leaves_of(made)}
        values = _values_of(obj, copy.token)
        found[resource, _normal(obj["metadata"]["name"], copy.token)] = {
            path: value for path, value in values.items() if path not in given and ADDED not in path
        }
    return found


def _merge(several: Sequence[dict[Path, Any]]) -> dict[Path, Any]:
    """Returns the values of objects that cannot be told apart: those of each path together, if there are several objects."""
    if len(several) == 1:
        return several[0]
    return {path: tuple(sorted(str(one.get(path)) for one in several)) for path in set().union(*several)}


def _values_of(obj: Mapping[str, Any], token: str) -> dict[Path, Any]:
    """Returns the values in an object that may follow from another one, by their paths."""
    system = {path[1] for path in SYSTEM_FIELDS} | _OWN_METADATA
    return {
        path: _normal(value, token)
        for path, value in leaves_of(obj)
        if not (path[0] == "metadata" and len(path) > 1 and path[1] in system)
    }


def _normal(value: Any, token: str) -> Any:
    """Returns a value with {} in place of a token; what is text in base64 is decoded."""
    if not isinstance(value, str):
        return value
    decoded = _decode(value)
    return (value if decoded is None else decoded).replace(token, "{}")


def _decode(value: str) -> str | None:
    """Returns the text that a string has in base64; None if it has none."""
    decoded = from_base64(value)
    try:
        return None if decoded is None else decoded.decode()
    except UnicodeDecodeError:
        return None


RULES = (KeptInStep, ChangedBack)

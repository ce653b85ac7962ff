"""Rules about children that somebody else has touched: one that another client has changed, or changes just before the client
does, an object without an owner that already has the name of a child, and one of another controller that takes the name just
before the create (S3, C1, C2, C5).

Invariant: only values are changed that the client itself has changed before, when the object did that they follow from.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.checker.alterations import is_content, is_encoded, leaves_to_change, other_values, patch_of, path_text, to_base64
from fakekube.checker.comparison import OF_OTHERS, state_of, values_of
from fakekube.checker.contents import AMOUNTS, TEXTS, OtherContents, apply_and_await_quiet, make_two
from fakekube.checker.provocations import Budget
from fakekube.checker.reaction import children_of, filter_by_owner, leaves_of
from fakekube.checker.rule import Rule
from fakekube.checker.rules.conflicts import Conflicts, LostUpdates
from fakekube.checker.rules.deletions import has_own_watch
from fakekube.checker.rules.lifecycles import ForeignChild, find_equal_status, metadata_for
from fakekube.checker.rules.sieve import MissedChange
from fakekube.checker.rules.single_changes import ChangedAlone
from fakekube.checker.sample import new_token
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_reactions
from fakekube.checker.writes import (
    creating_writes,
    learned_writes,
    own_objects,
    require_children,
    require_copied_values,
    require_prompt_writes,
    set_editor,
    touch_objects,
)
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.alterations import Path
    from fakekube.checker.comparison import Place, State
    from fakekube.checker.reaction import Copy, Effect
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange


class ChangedChild(ChangedAlone):
    """Another client changes a value of each child that the client keeps in step with the object; then the object is changed,
    too."""

    name = "set-back"
    fast = True
    provocation = "another client changes what the client has made"
    advice = "compare all that is wanted with the present child, at each event of the child, and write what differs"
    source = "API conventions, level-based behavior; client-go util/workqueue"
    expected_seconds = 10.0

    def __init__(self) -> None:
        self.left = ""
        """What is still as the other client has left it; "" if nothing is."""

    def require(self, baseline: Baseline) -> None:
        require_children(baseline)
        super().require(baseline)

    def provoke(self, trial: Trial) -> None:
        changes = OtherContents(trial, (TEXTS, AMOUNTS))
        subject, following = self.change_all(trial, changes)
        changed = _change_children(trial, subject, {(place[0], path) for _, _, places in following for place, path in places})
        if not changed:
            raise NotExercised("no value of what the client has made follows the object, and may be changed by others")

        def find_left() -> set[str]:
            return {one.resource for one in changed if one.is_left(trial, subject)}

        watched = {one for one in find_left() if has_own_watch(trial.baseline, one)}
        seconds = trial.baseline.seconds_to_react(_SET_BACK_WITHIN)
        if trial.await_until(lambda: not find_left(), seconds if watched else _SOON):
            return
        touch_objects(trial, subject)
        if trial.await_until(lambda: not find_left(), seconds):
            return
        if left := sorted(watched & find_left()):
            self.left = f"watches {left[0]}, and does not set back"
            return
        paths = {(one.resource, one.path) for one in changed}
        others = [one for one in following if paths.isdisjoint((place[0], path) for place, path in one[2])]
        for position, value, _ in others[:1]:
            mark = trial.trace.mark()
            apply_and_await_quiet(trial, subject, changes.alone(position, value))
            trial.await_until(lambda: not find_left(), trial.baseline.seconds_to_react(1.0))
            written = {call.collection for call in trial.trace.since(mark) if call.is_write and call.succeeded}
            if left := sorted(written & find_left()):
                self.left = f"writes {left[0]} again, and leaves"

    def judge_trace(self, trial: Trial) -> Verdict:
        if not self.left:
            return Verdict.success()
        return Verdict.warning(f"{self.left} what another client has changed in it", *trial.excerpt(), by_time=True)


#: Seconds within which a client sets a child back, if it watches it, and if it does not and lists now and then.
_SET_BACK_WITHIN, _SOON = 3.0, 0.5


@dataclass(slots=True, frozen=True)
class _ChangedValue:
    """A value of a child that another client has changed."""

    resource: str
    uid: str
    path: Path
    before: Any
    value: Any

    def is_left(self, trial: Trial, copy: Copy) -> bool:
        """Reports whether the child of a copy still has the value, and no other item of the same list that from before."""
        now = [one for one in children_of(trial.cluster, copy, self.resource) if one["metadata"]["uid"] == self.uid]
        return any((self.path, self.value) in leaves_of(one) and not self._is_beside(one) for one in now)

    def _is_beside(self, child: Object) -> bool:
        same = (value for path, value in leaves_of(child) if (len(path), path[-1]) == (len(self.path), self.path[-1]))
        return _is_in_list(self.path) and self.before in same


def _is_in_list(path: Path) -> bool:
    return any(isinstance(part, int) for part in path)


def _change_children(trial: Trial, copy: Copy, places: Collection[tuple[str, Path]]) -> list[_ChangedValue]:
    """Changes one of some values of each child of a copy, as another client, as far as the API accepts it.

    Args:
        trial: the run.
        copy: the copy.
        places: the resources and the paths of the values.
    """
    found, ending = [], new_token(trial.random)
    for resource in sorted({one for one, _ in places} & trial.baseline.reaction.children.keys()):
        for child in children_of(trial.cluster, copy, resource):
            values = [(path, value) for path, value in leaves_to_change(child) if (resource, path) in places]
            candidates = ((path, value, new) for path, value in values for new in _candidates_for(child, path, value, ending))
            changed = next((one for one in candidates if _change(trial, resource, child, one[0], one[2])), None)
            if changed is not None:
                found.append(_ChangedValue(resource, child["metadata"]["uid"], *changed))
    return found


def _candidates_for(child: Object, path: Path, value: Any, ending: str) -> list[Any]:
    may_be_key = _is_in_list(path) and not isinstance(value, str)  # of an item, as the number of a port is
    if path in OF_OTHERS or may_be_key:
        return []
    return [to_base64(ending)] if is_encoded(child, path) else other_values(value, ending)


def _change(trial: Trial, resource: str, child: Object, path: Path, value: Any) -> bool:
    """Changes a value of a child, as another client; returns whether the API accepts it."""
    metadata, change = child["metadata"], patch_of(child, path, value)
    try:
        trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))
    except ApiError:
        return False
    return True


class ConflictsOnChange(Conflicts):
    """All values of copies are changed, and another editor writes just before the updates that follow: also before those of
    children, which need none when they are made."""

    name = "values"
    fast = False
    provocation = "another editor writes just before each update that follows a change of all values of an object"
    expected_seconds = 14.0

    #: How many copies are changed: a client on a busy machine may repeat a write of one object.
    OBJECTS = 2

    def require(self, baseline: Baseline) -> None:
        require_prompt_writes(baseline)
        require_copied_values(baseline)

    def find_updates(self, baseline: Baseline) -> Sequence[tuple[str, str]]:
        children = [(verb, resource) for resource in baseline.reaction.children for verb in ("update", "patch")]
        return list(dict.fromkeys([*learned_writes(baseline, "update", "patch"), *children]))

    def provoke(self, trial: Trial) -> None:
        changes = OtherContents(trial, (TEXTS, AMOUNTS))
        make_two(trial, changes, "other values")
        subjects = [trial.stimulate() for _ in range(self.OBJECTS)]
        await_reactions(trial, subjects)
        self.meet(trial)
        for subject in subjects:
            apply_and_await_quiet(trial, subject, changes.values_only())
        trial.faults.clear()


class ChangedUnderConflict(MissedChange):
    """A copy is changed, and another editor writes just before each update that follows: also before those of the children."""

    id = "C1"
    name = "changed"
    provocation = "another editor writes just before the updates that follow a change of the object"
    expected_seconds = 5.0
    obligation = Conflicts.obligation
    advice = Conflicts.advice
    source = Conflicts.source
    steps = ()
    fast = False

    def provoke(self, trial: Trial) -> None:
        self.reaction = self.learn(trial)
        updates = sorted(pair for pair in self.writes_after_change if pair[0] in ("update", "patch"))
        if not updates:
            raise NotExercised("the client updates nothing when a copy is changed")
        values, budget = itertools.count(1), Budget(1)

        def edit(obj: Object) -> Object | None:
            return set_editor(obj, str(next(values))) if budget.take(obj["metadata"]["uid"]) else None

        with ExitStack() as edits:
            for verb, resource in updates:
                edits.enter_context(trial.faults.on(verb, resource).conflict(edit, label="another editor"))
            self.mark = trial.trace.mark()
            self._alter(trial, trial.copies[0])
            trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout)
        if not budget.taken:
            raise NotExercised("the client sent no update of an object that exists")

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(call.status == 409 and call.is_write for call in trial.trace.since(self.mark)):
            return Verdict.not_exercised("no update after the change has a resourceVersion, so that none conflicts")
        return super().judge_trace(trial)


class LostUnderChange(ChangedUnderConflict):
    """The same: the change of the other editor has to survive."""

    id = "C2"
    obligation = LostUpdates.obligation
    advice = LostUpdates.advice
    source = LostUpdates.source

    def judge(self, trial: Trial) -> Verdict:
        copy = trial.copies[0]
        children = [(one, child) for one in trial.baseline.reaction.children for child in children_of(trial.cluster, copy, one)]
        for resource, obj in [*own_objects(trial, copy), *children]:
            verdict = LostUpdates.judge_object(trial, resource, obj["metadata"], guarded=False)
            if verdict is not None:
                return verdict
        return Verdict.success() if not (trial.ended or trial.loop) else super().judge(trial)


class Unowned(ForeignChild):
    """An object that nobody owns already has the name of the child, and another content: the client makes it its own, or says
    that it cannot go on."""

    name = "unowned"
    provocation = "an object without an owner already has the name of the child, and another content"
    advice = "take it over as a whole, with an owner reference and all that is wanted, or report that the name is taken"
    source = "client-go and kube-controller-manager (ControllerRefManager); controller-runtime controllerutil (CreateOrUpdate)"

    def __init__(self) -> None:
        super().__init__()
        self.found: Verdict | None = None

    def provoke(self, trial: Trial) -> None:
        token, pattern, also = new_token(trial.random), trial.copies[0], trial.stimulate()
        trial.await_reaction(also)
        self.take_names(trial, token)
        made = {place: values_of(obj, token) for place, obj in self._places(token)}
        taken = _find_differing(trial, made, (pattern, also))
        if not taken:
            raise NotExercised("the client's children have no content of their own")
        subject = trial.stimulate(token=token)
        subject.judged = False
        trial.await_until(lambda: trial.has_received(subject), trial.reaction_timeout)

        def find_left() -> set[tuple[Place, Path]]:
            return _find_differing(trial, state_of(trial, subject), (pattern, also)) & taken

        trial.await_until(lambda: not find_left(), trial.baseline.seconds_to_react(2.0))
        touch_objects(trial, subject)
        trial.await_until(lambda: not find_left(), trial.baseline.seconds_to_react(1.0))
        claimed = find_equal_status(trial.baseline, pattern, state_of(trial, pattern), state_of(trial, subject))
        self.found = self._judge_all(trial, subject, {place for place, _ in taken}, find_left(), claimed)
        trial.delete(subject)  # a client that waits until the name is free tries again now and then

    def _places(self, token: str) -> Iterator[tuple[Place, Object]]:
        """Yields the objects that nobody owns, each with its place in the state of the copy with a token."""
        for resource, obj in self.foreign:
            yield (resource, obj["metadata"]["name"].replace(token, "{}")), obj

    def _judge_all(
        self, trial: Trial, subject: Copy, places: Collection[Place], left: Collection[tuple[Place, Path]], claimed: str
    ) -> Verdict | None:
        """Judges what the client has made of the objects that are still there, each by `_judge_taken`; the first verdict counts.

        Args:
            trial: the run.
            subject: the copy whose children have the names of these objects.
            places: the places at which they had another content.
            left: where they still have it.
            claimed: the resource of the object whose status says that all is well; "" if none does.
        """
        owners = {obj["metadata"]["uid"] for obj in subject.objects}
        for place, obj in self._places(subject.token):
            resource, uid = place[0], obj["metadata"]["uid"]
            same = [one for one in children_of(trial.cluster, subject, resource) if one["metadata"]["uid"] == uid]
            if not same or place not in places:
                continue
            first = min((one for one in left if one[0] == place), key=str, default=None)
            verdict = self._judge_taken(trial, resource, bool(filter_by_owner(same, owners)), first, claimed)
            if verdict is not None:
                return verdict
        return None

    @staticmethod
    def _judge_taken(
        trial: Trial, resource: str, is_owned: bool, left: tuple[Place, Path] | None, claimed: str
    ) -> Verdict | None:
        """Judges what the client has made of an object.

        Args:
            trial: the run.
            resource: the resource of the object.
            is_owned: whether it has become the client's child.
            left: where it is not as the client's children are; None if it is.
            claimed: the resource of the object whose status says that all is well; "" if none does.
        """
        if is_owned and left is not None:
            text = f"takes over {resource} that had no owner, and leaves {path_text(left[1])} of it as it was"
            return Verdict.failure(text, *trial.excerpt(), by_time=True)
        if is_owned:
            return None
        if left is None:
            text = f"writes {resource} that nobody owns, and does not become its owner: it stays when the object is deleted"
            return Verdict.warning(text, *trial.excerpt(), by_time=True)
        if not claimed:
            return None
        text = f"the {resource} with the name of its child has no owner, and yet the status of {claimed} is as usual"
        return Verdict.warning(text, *trial.excerpt())

    @staticmethod
    def _create_owner(trial: Trial) -> Object | None:
        return None

    def judge(self, trial: Trial) -> Verdict:
        return self.found or Rule.judge(self, trial)


class TakenMeanwhile(ForeignChild):
    """Another controller takes the name of a child between the client's look at it and its create."""

    name = "taken"
    provocation = "another controller takes the name of a child just before the client creates it"
    advice = "after 409 AlreadyExists look whose the object is: it is made only if the own object controls it"

    #: How many children find their names taken at most, each that of another copy.
    MOST = 6

    def __init__(self) -> None:
        super().__init__()
        self._met: list[str] = []
        """The tokens of the copies whose child has been created."""

    def require(self, baseline: Baseline) -> None:
        super().require(baseline)
        if not any(verb == "create" for verb, _ in creating_writes(baseline)):  # no apply can be guarded against this
            raise NotExercised("the client makes its children by apply")

    def provoke(self, trial: Trial) -> None:
        owner, creates = self._create_owner(trial), creating_writes(trial.baseline)
        created = (one for one in self.takeable(trial) if ("create", one[0].resource) in creates)
        taken = list(itertools.islice(created, self.MOST))
        subjects = [self._meet(trial, effect, child, owner) for effect, child in taken]
        trial.await_until(lambda: len(self._met) == len(subjects), trial.reaction_timeout)
        if not subjects or len(self.foreign) < len(subjects):
            raise NotExercised("the client creates no object that may belong to another controller")
        self.observe(trial, subjects)

    def _meet(self, trial: Trial, effect: Effect, child: Object, owner: Object | None) -> Copy:
        """Makes a copy whose child of one kind finds its name taken: the first 409 may end the work for a copy."""
        token = new_token(trial.random)
        metadata = metadata_for(effect, token, owner)
        budget = Budget(1)

        def take(exchange: Exchange) -> None:
            name = (exchange.body.get("metadata") or {}).get("name") if isinstance(exchange.body, dict) else ""
            if name == metadata["name"] and budget.take(name):
                self._add_foreign(trial, effect.resource, child, metadata, (trial.copies[0].token, token))
                self._met.append(token)

        trial.faults.on("create", effect.resource).intercept(take, label="its name is taken")
        subject = trial.stimulate(token=token)
        subject.judged = False
        return subject


def _find_differing(trial: Trial, now: State, alike: tuple[Copy, Copy]) -> set[tuple[Place, Path]]:
    """Returns the values of children that are not those of two copies that are alike; items of lists are left out, because others
    may stand beside them."""
    usual, same = (state_of(trial, copy) for copy in alike)
    return {
        (place, path)
        for place in now.keys() & usual.keys() & same.keys()
        for path, value in usual[place].items()
        if is_content(path[0]) and not any(isinstance(part, int) for part in path)
        if same[place].get(path) == value != now[place].get(path)
    }


RULES: tuple[type[Rule], ...] = (ChangedChild, ChangedUnderConflict, LostUnderChange, ConflictsOnChange, Unowned, TakenMeanwhile)

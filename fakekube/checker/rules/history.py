"""A rule about what must not depend on the history of an object: a changed object, and one that has had the same content from the
beginning, have the same effects (S3).

Invariant: only values are judged that two fresh objects have in common, and only if they differ from those of an object that was
never changed. A value that the API refuses to change is not judged.
"""

from __future__ import annotations

import base64
import binascii
import copy as copies
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.checker.reaction import SYSTEM_FIELDS, children_of, is_time, leaves_of
from fakekube.checker.rule import Rule
from fakekube.checker.rules.sieve import MissedChildDeletion, lease_seconds
from fakekube.checker.sample import changes_of_texts, new_token
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet
from fakekube.checker.writes import own_objects, require_writes
from fakekube.controllers.client import ApiError
from fakekube.controllers.client.client import collection_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial

_Path = tuple[str | int, ...]
_Place = tuple[str, str]
"""The resource of an object, and its name with {} in place of the copy's token; "*" for a child with a generated name."""
_State = dict[_Place, dict[_Path, Any]]

#: An annotation and a label that the sample does not have.
_ADDED = "check.fakekube.dev/added"
#: Metadata that differs between equal objects, or does not follow from the object of another one.
_OWN_METADATA = frozenset({"uid", "creationTimestamp", "selfLink", "name", "generateName", "ownerReferences", "finalizers"})
#: In place of a value that is not there.
_NOTHING = object()


class KeptInStep(Rule):
    """All texts, labels and annotations of a copy are changed: its effects are then those of a copy that had them at once."""

    id = "S3"
    name = "in-step"
    fast = True
    provocation = "all texts, labels and annotations of an object are changed after the client has handled it"
    obligation = MissedChildDeletion.obligation
    advice = "compute all that is wanted from the present object each time, and write what differs: not only what changes most"
    source = "API conventions, level-based behavior; Sieve (sieve-project/sieve): unobserved state"
    watches = True
    expected_seconds = 12.0

    def __init__(self) -> None:
        self.stale: tuple[_Place, _Path, bool] | None = None
        """What has not followed the change, and whether something else in the same object has."""
        self.followed = False
        self.only_at_start: _Place | None = None
        """An object that has followed the change when the client was started again, and not before."""
        self.changed: Copy | None = None

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        unchanged = trial.copies[0]
        changes = _Changes(trial)
        fresh = self._make_two(trial, changes)
        if not fresh:  # it may refuse what the texts are now
            changes.keep_metadata_only()
            fresh = self._make_two(trial, changes)
        if not fresh:
            raise NotExercised("the client does not react to copies with other texts as to the sample")
        changed = self.changed = trial.stimulate()
        trial.await_reaction(changed)
        await_quiet(trial, changed.mark, [changed.token])
        for step in changes.steps():
            mark = trial.trace.mark()
            _apply(trial, changed, step)
            await_quiet(trial, mark, [changed.token])

        def compare() -> _Compared:
            return _Compared(trial, unchanged, fresh, changed)

        trial.await_until(lambda: self._is_in_step(trial, compare()), trial.reaction_timeout)
        compared = compare()
        self.followed = bool(compared.find_followers())
        self.stale = self._find_stale(trial, compared)
        if not self.followed and compared.stale() and trial.session.starter.restartable:
            self.only_at_start = self._find_follower_at_start(trial, compare)

    @classmethod
    def _is_in_step(cls, trial: Trial, compared: _Compared) -> bool:
        """Reports whether all that can follow the change has done so."""
        return not compared.stale() or (bool(compared.find_followers()) and cls._find_stale(trial, compared) is None)

    @staticmethod
    def _find_follower_at_start(trial: Trial, compare: Callable[[], _Compared]) -> _Place | None:
        """Starts the client again; returns the first object that follows the change then."""
        trial.restart_client()
        trial.await_reaction(trial.stimulate(), lambda since: trial.reaction_timeout(since) + lease_seconds(trial))
        trial.await_until(lambda: bool(compare().find_followers()), trial.reaction_timeout)
        return min(compare().find_followers(), default=None)

    def _make_two(self, trial: Trial, changes: _Changes) -> Sequence[Copy]:
        """Makes two copies that have the changes from the beginning, and returns them.

        Returns none, and they are not judged, if the client does not react to them as to the sample.
        """
        fresh = [self._make_fresh(trial, changes) for _ in range(2)]
        if not any(trial.missing_of(one) for one in fresh):
            return fresh
        for one in fresh:
            one.judged = False
        return ()

    @staticmethod
    def _make_fresh(trial: Trial, changes: _Changes) -> Copy:
        """Makes a copy that has the changes from the beginning, and waits for the reaction."""
        made = iter(changes.all())

        def take(obj: Object) -> None:
            for change in next(made):
                changed = apply_merge_patch(obj, change)
                obj.clear()
                obj.update(changed)

        fresh = trial.stimulate(take)
        trial.await_reaction(fresh)
        await_quiet(trial, fresh.mark, [fresh.token])
        return fresh

    @staticmethod
    def _find_stale(trial: Trial, compared: _Compared) -> tuple[_Place, _Path, bool] | None:
        """Returns what has not followed, first what is in an object of which something else has; None if nothing follows."""
        followed = compared.find_followers()
        if not followed:
            return None
        found = sorted(compared.stale(), key=lambda one: (one[0] not in followed, str(one)))
        return next(((place, path, place in followed) for place, path in found if compared.can_change(trial, place, path)), None)

    def judge_trace(self, trial: Trial) -> Verdict:
        if self.only_at_start is not None:
            assert self.changed is not None
            resource, _ = self.only_at_start
            text = f"{resource} for {self.changed.names()[0]} follows a change only when the client is started again"
            return Verdict.failure(text, *trial.excerpt(), by_time=True)
        if self.stale is None:
            if not self.followed:
                return Verdict.not_exercised("nothing that the client writes follows the texts of the object")
            return Verdict.success()
        assert self.changed is not None
        (resource, _), path, together = self.stale
        shown = ".".join(map(str, path))
        text = (
            f"{shown} of {resource} for {self.changed.names()[0]} is still that of before its change; for an object that had the "
            "same content from the beginning it is another one"
        )
        verdict = Verdict.failure(text, *trial.excerpt(), by_time=True)
        return verdict if together else verdict.as_warning()


class _Changes:
    """The changes of the objects of a sample that the API accepts, as merge patches: for each object those of its texts, and that
    of its labels and annotations. Texts that name an object of the sample stay."""

    def __init__(self, trial: Trial) -> None:
        ending = new_token(trial.random)
        selected = " ".join(key.label_selector for key in trial.baseline.streams)
        self._texts: list[Sequence[Object]] = []
        self._metadata: list[Sequence[Object]] = []
        self._written = trial.baseline.written
        token = new_token(trial.random)
        for obj in trial.sample.copies(token):
            accepted: list[Object] = []
            for change in changes_of_texts(obj, ending):
                if "metadata" not in change and token not in str(change) and _accepts(trial, obj, [*accepted, change]):
                    accepted.append(change)
            self._texts.append(accepted)
            metadata = [_metadata_change(obj, ending, selected)]
            self._metadata.append(metadata if _accepts(trial, obj, metadata) else [])

    def keep_metadata_only(self) -> None:
        self._texts = [[] for _ in self._texts]

    def all(self) -> list[Sequence[Object]]:
        """Returns all changes of each object."""
        return [[*texts, *metadata] for texts, metadata in zip(self._texts, self._metadata, strict=True)]

    def steps(self) -> list[list[Sequence[Object]]]:
        """Returns the changes in the steps in which they are made, each with those of all objects.

        Nothing may wake a client that does not look at a change: labels and annotations come last, and what the client writes to,
        which it handles at each event, comes before what it only reads.
        """
        numbers = range(len(self._texts))
        parts = [[number for number in numbers if (number in self._written) is first] for first in (True, False)]
        steps = [
            [part[number] if number in chosen else [] for number in numbers]
            for chosen in parts
            for part in (self._texts, self._metadata)
        ]
        return [step for step in steps if any(step)]


def _metadata_change(obj: Object, ending: str, selected: str) -> Object:
    """Returns a change of all labels that no selector names, and of all annotations, with one more of each."""
    metadata = obj.get("metadata") or {}
    labels = {key: f"{value}-{ending}"[-63:] for key, value in (metadata.get("labels") or {}).items() if key not in selected}
    annotations = {key: f"{value}-{ending}" for key, value in (metadata.get("annotations") or {}).items()}
    return {"metadata": {"labels": {**labels, _ADDED: ending}, "annotations": {**annotations, _ADDED: ending}}}


def _accepts(trial: Trial, obj: Object, changes: Sequence[Object]) -> bool:
    """Reports whether the API would create an object with some changes."""
    changed = copies.deepcopy(obj)
    for change in changes:
        changed = apply_merge_patch(changed, change)
    try:
        trial.cluster.call("POST", _collection_of(trial, trial.resource_of(obj), changed), changed, {"dryRun": "All"})
    except ApiError:
        return False
    return True


def _collection_of(trial: Trial, resource: str, obj: Object) -> str:
    """Returns the path of the collection that an object belongs to. Raises UnknownResource."""
    return collection_path(trial.cluster.mapping(resource), obj["metadata"].get("namespace") or "default")


def _apply(trial: Trial, copy: Copy, step: Sequence[Sequence[Object]]) -> None:
    """Changes the objects of a copy."""
    copy.altered = True
    for (resource, obj), changes in zip(own_objects(trial, copy), step, strict=True):
        metadata = obj["metadata"]
        for change in changes:
            with suppress(ApiError):
                trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))


class _Compared:
    """The effects of a copy that was never changed, of two that were made with the changes, and of one that was changed."""

    def __init__(self, trial: Trial, unchanged: Copy, fresh: Sequence[Copy], changed: Copy) -> None:
        self._before, self._after = _state_of(trial, unchanged), _state_of(trial, changed)
        self._wanted, self._other = (_state_of(trial, one) for one in fresh)
        self._changed = changed

    def _differences(self) -> Iterator[tuple[_Place, _Path, Any, Any, Any]]:
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

    def stale(self) -> list[tuple[_Place, _Path]]:
        """Returns the values that are still those of before the change."""
        return [(place, path) for place, path, old, _, now in self._differences() if now is old or now == old]

    def find_followers(self) -> set[_Place]:
        """Returns the objects of which a value has followed the change."""
        return {place for place, _, _, wanted, now in self._differences() if now == wanted}

    def can_change(self, trial: Trial, place: _Place, path: _Path) -> bool:
        """Reports whether the API would accept the wanted value in the present object, or cannot be asked."""
        resource, name = place
        value = self._wanted[place][path]
        if path[0] == "status" or not isinstance(value, str):
            return True
        for child in children_of(trial.cluster, self._changed, resource):
            if name not in ("*", _normal(child["metadata"]["name"], self._changed.token)):
                continue
            changed = copies.deepcopy(child)
            if not _put(changed, path, value.replace("{}", self._changed.token)):
                continue
            try:
                collection = _collection_of(trial, resource, child)
                trial.cluster.call("PUT", f"{collection}/{child['metadata']['name']}", changed, {"dryRun": "All"})
            except ApiError as error:
                return error.code in (404, 409)
        return True


def _put(obj: Any, path: _Path, value: str) -> bool:
    """Sets a string in an object; returns whether its place exists."""
    for part in path[:-1]:
        try:
            obj = obj[part]
        except (KeyError, IndexError, TypeError):  # the object has another form than that of the value
            return False
    if not isinstance(obj, dict):
        return False
    old = obj.get(path[-1])
    obj[path[-1]] = base64.b64encode(value.encode()).decode() if isinstance(old, str) and _decode(old) is not None else value
    return True


def _state_of(trial: Trial, copy: Copy) -> _State:
    """Returns the values in the children of a copy, and those in its own objects that it was not made with."""
    found: _State = {}
    for resource in trial.baseline.reaction.children:
        children = children_of(trial.cluster, copy, resource)
        generated: list[dict[_Path, Any]] = []
        for child in children:
            name, values = child["metadata"]["name"], _values_of(child, copy.token)
            if copy.token in name and not child["metadata"].get("generateName"):
                found[resource, _normal(name, copy.token)] = values
            else:
                generated.append(values)
        if generated:
            found[resource, "*"] = _merge(generated)
    for (resource, obj), made in zip(own_objects(trial, copy), copy.objects, strict=False):
        given = {path for path, _ in leaves_of(made)}
        values = _values_of(obj, copy.token)
        found[resource, _normal(obj["metadata"]["name"], copy.token)] = {
            path: value for path, value in values.items() if path not in given and _ADDED not in path
        }
    return found


def _merge(several: Sequence[dict[_Path, Any]]) -> dict[_Path, Any]:
    """Returns the values of objects that cannot be told apart: those of each path together, if there are several objects."""
    if len(several) == 1:
        return several[0]
    return {path: tuple(sorted(str(one.get(path)) for one in several)) for path in set().union(*several)}


def _values_of(obj: Mapping[str, Any], token: str) -> dict[_Path, Any]:
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
    if len(value) < 4:
        return None
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


RULES = (KeptInStep,)

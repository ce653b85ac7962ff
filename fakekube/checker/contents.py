"""Other contents of the objects of a sample: what another client may write into them, as far as the API accepts it; and copies
that have them.

Invariant: an object with such a content can be created, and each of its values can be changed in one that exists. Names of
objects of the sample stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Protocol

from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.checker.alterations import (
    at_path,
    changes_between,
    choices_of,
    containers_of,
    is_amount,
    is_encoded,
    is_number,
    is_switch,
    keep_added,
    leaves_to_change,
    other_values,
    parts_of,
    patch_of,
    to_base64,
    with_value,
)
from fakekube.checker.client_run import ClientEnded, HotLoop
from fakekube.checker.reaction import leaves_of
from fakekube.checker.sample import LETTERS, new_token
from fakekube.checker.verdict import NotExercised
from fakekube.checker.waits import await_quiet, await_reactions
from fakekube.checker.writes import own_object
from fakekube.controllers.client import ApiError
from fakekube.controllers.client.client import collection_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.alterations import Path
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Trial

#: An annotation and a label that the sample does not have.
ADDED = "check.fakekube.dev/added"
#: Kinds of values. Switches are booleans, also in words, and the choices of enumerations, which may make the client do something
#: else; so may numbers that become zero.
TEXTS, AMOUNTS, SWITCHES, ZEROS, REMOVED = "texts", "amounts", "switches", "zeros", "removed"
_CALM = frozenset({TEXTS, AMOUNTS})


class OtherContents:
    """The changes of the objects of a sample that the API accepts: for each object a merge patch of its values, and another one
    of its labels and annotations. Texts that name an object of the sample stay.

    Args:
        trial: the run.
        kinds: the kinds of values that are changed.
    """

    def __init__(self, trial: Trial, kinds: Sequence[str]) -> None:
        selected = " ".join(key.label_selector for key in trial.baseline.trial.trace.streams())  # those of lists, too
        token, ending = new_token(trial.random), new_token(trial.random)
        self._made = trial.sample.copies(token)
        zeros = ZEROS in kinds
        marks = (f"{ending}{''.join(letters)}" for letters in product(LETTERS, repeat=2))  # one for each value of all objects
        self._found: list[list[OtherValue]] = []
        self._metadata: list[Object] = []
        self._written = trial.baseline.written
        for number, obj in enumerate(self._made):
            existing = own_object(trial, trial.copies[0], number)
            self._found.append([] if existing is None else list(_Finder(trial, obj, existing, token, zeros=zeros).find(marks)))
            metadata = metadata_change(obj, ending, selected)
            collection = collection_of(trial, trial.resource_of(obj), obj)
            refused = existing is None or _refusal(trial, "POST", collection, apply_merge_patch(obj, metadata))
            self._metadata.append({} if refused else metadata)
        present = {one.kind for others in self._found for one in others}
        self._kinds = [kind for kind in kinds if kind in present]

    def leave_out(self) -> bool:
        """Leaves out the values of the last kind that is not left out yet; returns False if there is none."""
        if not self._kinds:
            return False
        self._kinds.pop()
        return True

    def _patches(self, kinds: Sequence[str], pick: Callable[[OtherValue], Any]) -> list[Object]:
        """Returns a merge patch for each object with the values of some kinds."""
        found: list[Object] = []
        for number, others in enumerate(self._found):
            changed = self._with_all(number, kinds, pick)
            patch: Object = {}
            for one in others:
                if one.kind in kinds:
                    patch = apply_merge_patch(patch, patch_of(changed, one.path, pick(one)))
            found.append(patch)
        return found

    def _with_all(self, number: int, kinds: Sequence[str], pick: Callable[[OtherValue], Any]) -> Object:
        """Returns an object of the sample with the values of some kinds."""
        changed = self._made[number]
        for one in self._found[number]:
            if one.kind in kinds:
                changed = with_value(changed, one.path, pick(one))
        return changed

    def all(self) -> list[Object]:
        """Returns all changes of each object."""
        return [apply_merge_patch(*pair) for pair in zip(self._metadata, self.values_only(), strict=True)]

    def values_only(self) -> list[Object]:
        """Returns the changes of each object without its labels and annotations."""
        return self._patches(self._kinds, lambda one: one.first)

    def values(self) -> list[tuple[int, OtherValue]]:
        """Returns the changes of values, each with the position of its object in the sample."""
        return [(number, one) for number, others in enumerate(self._found) for one in others if one.kind in self._kinds]

    def alone(self, position: int, value: OtherValue) -> list[Object]:
        """Returns the changes of each object that change one value again, alone, after those of `values_only`."""
        changed = self._with_all(position, self._kinds, lambda one: one.first)
        change = patch_of(changed, value.path, value.second)
        return [change if number == position else {} for number in range(len(self._made))]

    def further(self) -> list[Object]:
        """Returns changes of each object to values that are neither those of the sample nor those of `all`, if there are some."""
        return self._patches(self._kinds, lambda one: one.second)

    def back(self) -> list[Object]:
        """Returns the changes of each object to the values of the sample."""
        values = self._patches(self._kinds, lambda one: one.original)
        return [apply_merge_patch(undo_of(*pair), value) for *pair, value in zip(self._made, self._metadata, values, strict=True)]

    def steps(self) -> list[list[Object]]:
        """Returns the changes in the steps in which they are made, each with those of all objects.

        Nothing may wake a client that does not look at a change: labels and annotations come last, and what the client writes to,
        which it handles at each event, comes before what it only reads. What may let the client ignore the other changes, such as
        `paused`, comes at the very end.
        """
        numbers = range(len(self._made))
        calm = self._patches([kind for kind in self._kinds if kind in _CALM], lambda one: one.first)
        parts = [[number for number in numbers if (number in self._written) is first] for first in (True, False)]
        steps = [
            [part[number] if number in chosen else {} for number in numbers]
            for chosen in parts
            for part in (calm, self._metadata)
        ]
        if not _CALM.issuperset(self._kinds):
            steps.append(self._patches(self._kinds, lambda one: one.first))
        return [step for step in steps if any(step)]


@dataclass(slots=True, frozen=True)
class OtherValue:
    """The values that replace one of an object, one after the other."""

    kind: str
    path: Path
    mark: str
    """What `first` contains if it is a text, also in base64; then `second` ends with it and "2"."""
    original: Any
    first: Any
    second: Any
    """The one after `first`; `original` if there is none."""


class _Finder:
    """Finds other values for what an object of the sample contains, as far as the API accepts them, also in one that exists.

    Args:
        trial: the run.
        obj: the object of the sample.
        existing: an object that was made like it.
        token: the token in the names of the object and of those that it refers to.
        zeros: numbers become zero, if the API accepts it.
    """

    def __init__(self, trial: Trial, obj: Object, existing: Object, token: str, *, zeros: bool) -> None:
        self._trial, self._obj, self._existing, self._token, self._zeros = trial, obj, existing, token, zeros
        self._resource = trial.resource_of(obj)
        self._changed = obj
        """The object with all changes until now that are calm."""

    def find(self, marks: Iterator[str]) -> Iterator[OtherValue]:
        """Yields other values; texts get a mark each."""
        for mark, (path, value) in zip(marks, islice(leaves_to_change(self._obj), _MOST_VALUES), strict=False):
            if isinstance(value, str) and self._token in value:
                continue
            found = self._find_first(path, value, mark)
            if found is None:
                continue
            kind, first = found
            second = value
            if kind in _CALM:
                self._changed = with_value(self._changed, path, first)
                candidate = next(iter(self._candidates(path, first, f"{mark}2")), value)
                second = value if self._refusal(path, candidate) else candidate
            yield OtherValue(kind, path, mark, value, first, second)

    def _find_first(self, path: Path, value: Any, ending: str) -> tuple[str, Any] | None:
        """Returns the first other value that the API accepts, with its kind; None if it accepts none."""
        in_list = any(isinstance(part, int) for part in path)
        if self._zeros and value and is_number(value) and not in_list and not self._refusal(path, 0):
            return ZEROS, 0
        refusal = ""
        for candidate in self._candidates(path, value, ending):
            refusal = self._refusal(path, candidate)
            if not refusal:
                return SWITCHES if is_switch(value) else AMOUNTS if is_amount(value) else TEXTS, candidate
        choice = next((one for one in choices_of(refusal) if one != value), None)
        return (SWITCHES, choice) if choice is not None and not self._refusal(path, choice) else None

    def _candidates(self, path: Path, value: Any, ending: str) -> list[Any]:
        return [to_base64(ending)] if is_encoded(self._obj, path) else other_values(value, ending)

    def _refusal(self, path: Path, value: Any) -> str:
        """Returns why the API would not create the object with a value, or change the existing one; "" if it would do both."""
        new, changed = with_value(self._changed, path, value), with_value(self._existing, path, value)
        return _refusal_of_either(self._trial, self._resource, new, changed)


#: How many values of an object are changed at most, and how many maps and lists get another entry.
_MOST_VALUES = 24


class MoreEntries:
    """One more entry for each map and list in the objects of a sample, like its last one, as far as the API accepts it.

    Args:
        trial: the run.
    """

    def __init__(self, trial: Trial) -> None:
        token, ending = new_token(trial.random), new_token(trial.random)
        self._made = trial.sample.copies(token)
        self._entries: list[list[_Entry]] = []
        for number, obj in enumerate(self._made):
            existing = own_object(trial, trial.copies[0], number)
            self._entries.append([] if existing is None else list(_find_entries(trial, obj, existing, ending)))

    def __bool__(self) -> bool:
        return any(self._entries)

    def leave_out(self) -> bool:
        """Leaves out the items of lists; returns False if there are none, or nothing else."""
        maps = [[one for one in entries if one.key is not None] for entries in self._entries]
        if maps == self._entries or not any(maps):
            return False
        self._entries = maps
        return True

    def all(self) -> list[Object]:
        """Returns the changes of each object that add the entries."""
        return [changes_between(obj, full) for obj, full in self._pairs()]

    def removals(self) -> list[Object]:
        """Returns the changes of each object that remove the entries."""
        return [changes_between(full, obj) for obj, full in self._pairs()]

    def _pairs(self) -> Iterator[tuple[Object, Object]]:
        """Yields each object without the entries and with them."""
        for obj, entries in zip(self._made, self._entries, strict=True):
            full = obj
            for one in entries:
                full = one.add_to(full)
            yield obj, full


@dataclass(slots=True, frozen=True)
class _Entry:
    """Another entry of a map, or another item of a list."""

    path: Path
    key: str | None
    """None for an item of a list."""
    value: Any

    def add_to(self, obj: Object) -> Object:
        """Returns the object with the entry."""
        container = at_path(obj, self.path)
        more = [*container, self.value] if self.key is None else {**container, self.key: self.value}
        added: Object = with_value(obj, self.path, more)
        return added


def _find_entries(trial: Trial, obj: Object, existing: Object, ending: str) -> Iterator[_Entry]:
    """Yields the entries that the API accepts in an object of the sample, and in one that exists."""
    resource, full, present = trial.resource_of(obj), obj, existing
    for path in islice(containers_of(obj), _MOST_VALUES):
        for entry in _other_entries(obj, path, ending):
            new, changed = entry.add_to(full), entry.add_to(present)
            if not _refusal_of_either(trial, resource, new, changed):
                full, present = new, changed
                yield entry
                break


def _other_entries(obj: Object, path: Path, ending: str) -> list[_Entry]:
    """Returns entries that may follow the last one of a map or a list, the likeliest first."""
    container = at_path(obj, path)
    key, last = (None, container[-1]) if isinstance(container, list) else next(reversed(container.items()))
    new_key = None if key is None else f"{key}2"
    if is_encoded(obj, (*path, "")):
        return [_Entry(path, new_key, to_base64(ending))]
    if not isinstance(last, dict | list):
        return [_Entry(path, new_key, value) for value in other_values(last, ending)]
    changed = last
    for inner, value in leaves_of(last):
        changed = with_value(changed, inner, next(iter(other_values(value, ending)), value))
    return [_Entry(path, new_key, value) for value in (changed, last)]


class _Changes(Protocol):
    """Changes of the objects of a sample."""

    def all(self) -> list[Object]:
        """Returns the changes of each object, a merge patch."""

    def leave_out(self) -> bool:
        """Leaves out some of the changes; returns False if there are none that it could leave out."""


def make_two(trial: Trial, changes: _Changes, what: str) -> Sequence[Copy]:
    """Makes two copies that have changes from the beginning, waits for the reactions to them, and returns them.

    Changes are left out until the client reacts to the copies as to the sample. Copies to which it does not are not judged.

    Args:
        trial: the run.
        changes: the changes.
        what: what the copies have then, for the reasons, such as "other values".

    Raises NotExercised if the client does not react to any, or if it ends or loops: the API accepts values that mean nothing to a
    client.
    """
    while True:
        try:
            made = [_make_with(trial, changes.all()) for _ in range(2)]
            await_reactions(trial, made, trial.baseline.seconds_to_react(_REACTS_WITHIN))
        except (ClientEnded, HotLoop):
            raise NotExercised(f"the client ends or loops when a copy has {what}") from None
        if not any(map(trial.missing_of, made)):
            return made
        for copy in made:
            copy.judged = False
        if not changes.leave_out():
            raise NotExercised(f"the client does not react to copies with {what} as to the sample")


#: In so many seconds most clients react to a copy with other values, if they react to it at all; a slow one is not quiet then.
_REACTS_WITHIN = 3.0


def _make_with(trial: Trial, changes: Sequence[Object]) -> Copy:
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
            _patch_as_it_is(trial, resource, metadata, change)
        except ApiError as error:
            if error.code == 404:
                continue
            raise NotExercised(f"the API refuses the changes of {resource}/{metadata['name']}: {error}") from None


def _patch_as_it_is(trial: Trial, resource: str, metadata: Object, change: Object) -> None:
    """Changes an object by a merge patch; if the API refuses it, by one that keeps what the server has added to items of lists,
    such as the volumeMounts of containers. Raises ApiError."""
    name, namespace = metadata["name"], metadata.get("namespace")
    try:
        trial.cluster.patch(resource, name, change, namespace=namespace)
    except ApiError as error:
        if error.code != 422:
            raise
        now = trial.cluster.get(resource, name, namespace=namespace)
        trial.cluster.patch(resource, name, keep_added(now, change), namespace=namespace)


def apply_and_await_quiet(trial: Trial, copy: Copy, step: Sequence[Object]) -> None:
    """Changes the objects of a copy, and waits until the client sends nothing more that names it. Raises NotExercised."""
    mark = trial.trace.mark()
    apply_step(trial, copy, step)
    await_quiet(trial, mark, [copy.token])


def find_optional(trial: Trial) -> Iterator[tuple[int, Path, Any]]:
    """Yields the fields directly in the spec, the data or other content of objects of the sample that the API lets anybody leave
    out, and remove later: the position of the object, the path, and the value. Those that name an object of the sample stay, and
    booleans."""
    token = new_token(trial.random)
    for number, obj in enumerate(trial.sample.copies(token)):
        existing = own_object(trial, trial.copies[0], number)
        fields = [
            (part, key, value) for part, content in parts_of(obj) if isinstance(content, dict) for key, value in content.items()
        ]
        for part, key, value in fields:
            if existing is None or is_switch(value) or token in str(value):
                continue
            new, changed = (apply_merge_patch(one, {part: {key: None}}) for one in (obj, existing))
            if not _refusal_of_either(trial, trial.resource_of(obj), new, changed):
                yield number, (part, key), value


def _refusal_of_either(trial: Trial, resource: str, new: Object, changed: Object) -> str:
    """Returns why the API would not create an object, or not update one that exists; "" if it would do both."""
    collection = collection_of(trial, resource, new)
    place = f"{collection}/{changed['metadata']['name']}"
    return _refusal(trial, "POST", collection, new) or _refusal(trial, "PUT", place, changed)


def _refusal(trial: Trial, method: str, path: str, obj: Object) -> str:
    """Returns why the API would refuse to write an object; "" if it would not."""
    refusal = ""
    for _ in range(_MOST_ATTEMPTS):
        try:
            trial.cluster.call(method, path, obj, {"dryRun": "All"})
        except ApiError as error:
            refusal = str(error)
            if error.code != 409 or method != "PUT" or not (revision := _revision_now(trial, path, obj)):
                return refusal
            obj = with_value(obj, ("metadata", "resourceVersion"), revision)
        else:
            return ""
    return refusal


#: How often a write is tried whose object a client changes again and again.
_MOST_ATTEMPTS = 100


def _revision_now(trial: Trial, path: str, obj: Object) -> str:
    """Returns the resourceVersion that somebody has given an object meanwhile; "" if it is the same, or the object is gone."""
    try:
        revision = str(trial.cluster.call("GET", path)["metadata"]["resourceVersion"])
    except ApiError:
        return ""
    return "" if revision == obj["metadata"].get("resourceVersion") else revision


def undo_of(obj: Object, change: Object) -> Object:
    """Returns the merge patch that undoes a change of the labels and annotations of an object."""
    before = obj.get("metadata") or {}
    parts = (change.get("metadata") or {}).items()
    return {"metadata": {part: {key: (before.get(part) or {}).get(key) for key in values} for part, values in parts}}


def metadata_change(obj: Object, ending: str, selected: str) -> Object:
    """Returns a change of all labels that no selector names, and of all annotations, with one more of each."""
    metadata = obj.get("metadata") or {}
    labels = {key: f"{value}-{ending}"[-63:] for key, value in (metadata.get("labels") or {}).items() if key not in selected}
    annotations = {key: f"{value}-{ending}" for key, value in (metadata.get("annotations") or {}).items()}
    return {"metadata": {"labels": {**labels, ADDED: ending}, "annotations": {**annotations, ADDED: ending}}}


def collection_of(trial: Trial, resource: str, obj: Object) -> str:
    """Returns the path of the collection that an object belongs to. Raises UnknownResource."""
    return collection_path(trial.cluster.mapping(resource), obj["metadata"].get("namespace") or "default")

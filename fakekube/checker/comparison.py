"""Compares the effects of copies that were changed with those of copies that were not, or that were made with the changes.

Invariant: only values are compared that two copies which were made alike have in common, and only if they differ from those of a
copy that was never changed. Times are not compared.
"""

from __future__ import annotations

import copy as copies
import re
from typing import TYPE_CHECKING, Any

from fakekube.checker.alterations import Path, from_base64, is_number, to_base64
from fakekube.checker.contents import ADDED, collection_of
from fakekube.checker.reaction import SYSTEM_FIELDS, children_of, is_time, leaves_of
from fakekube.checker.writes import own_objects, writes_field
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Trial

Place = tuple[str, str]
"""The resource of an object, and its name with {} in place of the copy's token; `GENERATED` for children with generated names."""
State = dict[Place, dict[Path, Any]]

#: Metadata that differs between equal objects, or does not follow from the object of another one.
_OWN_METADATA = frozenset({"uid", "creationTimestamp", "selfLink", "name", "generateName", "ownerReferences", "finalizers"})
#: In place of the names of children that the server has made up.
GENERATED = "*"
#: In place of a value that is not there.
_NOTHING = object()
#: Resources whose objects many clients keep when less is wanted, because they hold data.
_KEPT_ON_PURPOSE = frozenset({"persistentvolumeclaims"})
#: What other controllers change on purpose in what a client has made: autoscalers.
OF_OTHERS = frozenset({("spec", "replicas")})
#: The parts of an object that say what is wanted: there is no place for what was wanted before.
_IS_WANTED = frozenset({"data", "spec"})
#: The parts of an object that hold data.
_HOLDS_DATA = frozenset({"data", "binaryData"})
_WORD = re.compile(r"[^\s,;|]+")
#: The parts of an object from which something may go when what it follows from changes. Others change with time.
_GOES_WITH_CONTENT = frozenset({"data", "binaryData", "metadata"})


def _has_both(now: Any, old: Any, wanted: Any) -> bool:
    """Reports whether a text has all words of two others, of which the first one has words that the second one does not have."""
    if not (isinstance(now, str) and isinstance(old, str) and isinstance(wanted, str)):
        return False
    words, before, after = (set(_WORD.findall(text)) for text in (now, old, wanted))
    return bool(before - after) and words >= before | after


class Compared:
    """The effects of a copy that was never changed, of two that were made with the changes, and of one that was changed.

    A status counts only if the client writes it: that of a Deployment, which a controller writes, tells its history as well.

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
        self._before, self._after = _effects_of(trial, unchanged), _effects_of(trial, changed)
        self._wanted, self._other = (_effects_of(trial, one) for one in fresh)
        self._trial, self._changed, self._goes = trial, changed, goes
        self._asked: dict[str, frozenset[str | int] | None] = {}
        """The parts of the paths in what the client has created, by resource; None if a body cannot be read."""
        self._own_statuses = {one.resource for one in trial.baseline.reaction.effects if one.detail[:1] == ("status",)}
        self._observed = _observed_otherwise(trial, self._after, self._wanted)

    def _differences(self) -> Iterator[tuple[Place, Path, Any, Any, Any]]:
        """Yields the places of values that follow from the changes: the value before, the wanted and the present one."""
        for place, wanted in self._wanted.items():
            other, before, after = (one.get(place) for one in (self._other, self._before, self._after))
            if other is None or before is None or after is None:
                continue
            for path, value in wanted.items():
                old, now = before.get(path, _NOTHING), after.get(path, _NOTHING)
                if path[0] == "status" and place[0] not in self._own_statuses:
                    continue
                if value != other.get(path, _NOTHING) or value == old or is_time(value) or self._repeats_status(path, now):
                    continue
                yield place, path, old, value, now
            for path in before.keys() - wanted.keys() - other.keys():
                old, now = before[path], after.get(path, _NOTHING)
                if path[0] in self._goes and not is_time(old) and not self._repeats_status(path, now):
                    yield place, path, old, _NOTHING, now

    def _repeats_status(self, path: Path, now: Any) -> bool:
        """Reports whether a value that the client has made says what a controller says now of the changed object."""
        return path[0] != "status" and str(now) in self._observed

    def stale(self) -> list[tuple[Place, Path]]:
        """Returns the values that are still those of before the change, or have them beside those of after it; and the objects
        that are not there, with an empty path."""
        missing = (self._wanted.keys() & self._other.keys()) - self._before.keys() - self._after.keys()
        return [(place, ()) for place in missing] + [
            (place, path)
            for place, path, old, wanted, now in self._differences()
            if now is old or now == old or (path[0] in _IS_WANTED and _has_both(now, old, wanted))
            if wanted not in values_of_items(self._after[place], path) and self._is_asked_for(place[0], path)
        ]

    def _is_asked_for(self, resource: str, path: Path) -> bool:
        """Reports whether a value may be one that the client has asked for when it created objects, and not one that the API has
        set by default: that depends on other values at that time, as imagePullPolicy does on the image, and stays."""
        if path[0] != "spec" or resource not in self._trial.baseline.reaction.children:
            return True
        if resource not in self._asked:
            made = [call.body for call in self._trial.trace.since() if call.status == 201 and call.resource == resource]
            is_readable = all(isinstance(body, dict) for body in made)
            self._asked[resource] = (
                frozenset(part for body in made for one, _ in leaves_of(body) for part in one) if is_readable else None
            )
        asked, name = self._asked[resource], next(part for part in reversed(path) if isinstance(part, str))
        return "{}" in name or asked is None or name in asked

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
        """Reports whether a value is not the wanted one.

        A number in a status may only grow; and what others do not have may stay there, as a condition that has become false.
        """
        wanted, other, now = (one.get(place, {}).get(path, _NOTHING) for one in (self._wanted, self._other, self._after))
        may_stay = path[0] == "status" and (is_number(now) or wanted is _NOTHING)
        return wanted == other and now != wanted and not may_stay and place in self._after

    def can_change(self, trial: Trial, place: Place, path: Path) -> bool:
        """Reports whether the API would accept the wanted value in the present object, or cannot be asked."""
        resource, name = place
        wanted = self._wanted.get(place, {})
        value = wanted.get(path, _NOTHING)
        if not path or path[0] == "status" or not (value is _NOTHING or isinstance(value, str | int | float)):
            return True
        token = self._changed.token
        present: Any = value.replace("{}", token) if isinstance(value, str) else value
        missing = _first_missing(wanted, path)
        for child in children_of(trial.cluster, self._changed, resource):
            if name not in (GENERATED, _normal(child["metadata"]["name"], token)):
                continue
            changed = copies.deepcopy(child)
            if not (_remove(changed, missing, token) if value is _NOTHING else _put(changed, path, present, token)):
                continue
            try:
                collection = collection_of(trial, resource, child)
                trial.cluster.call("PUT", f"{collection}/{child['metadata']['name']}", changed, {"dryRun": "All"})
            except ApiError as error:
                return error.code in (404, 409)
        return True


def _observed_otherwise(trial: Trial, now: State, other: State) -> set[str]:
    """Returns what controllers say in the status of a copy's objects, and not in that of another copy: a Job that has run stays
    complete, whatever is changed later."""
    return {
        str(value)
        for (resource, name), values in now.items()
        for path, value in values.items()
        if path[0] == "status" and path[-1] != "observedGeneration"
        if other.get((resource, name), {}).get(path, _NOTHING) != value
        if not any(writes_field(trial.baseline, resource, path[:length]) for length in range(1, len(path) + 1))
    }


def values_of_items(values: Mapping[Path, Any], path: Path) -> list[Any]:
    """Returns the values at a path in all items of a list in a status, which may contain the past, before or after what there is
    now. Returns nothing for other paths."""
    if path[0] != "status" or not any(isinstance(part, int) for part in path):
        return []
    pattern = _without_positions(path)
    return [value for one, value in values.items() if _without_positions(one) == pattern]


def _without_positions(path: Path) -> Path:
    """Returns a path with 0 in place of all positions in lists."""
    return tuple(0 if isinstance(part, int) else part for part in path)


def _first_missing(values: Mapping[Path, Any], path: Path) -> Path:
    """Returns the first part of a path at which some values have nothing."""
    lengths = range(1, len(path) + 1)
    return next((path[:length] for length in lengths if all(one[:length] != path[:length] for one in values)), path)


def _find(obj: Any, path: Path, token: str) -> tuple[Any, Any]:
    """Returns the map or list that has the last part of a path, and its key or position; None and None if the object has another
    form. An item of a list may have its name in place of its position, with {} in place of the token."""
    for number, written in enumerate(path):
        part: Any = written
        if isinstance(obj, list) and isinstance(written, str):
            name = written.replace("{}", token)
            part = next((at for at, item in enumerate(obj) if isinstance(item, dict) and item.get("name") == name), None)
        if not isinstance(obj, list if isinstance(part, int) else dict):
            break
        if number == len(path) - 1:
            return obj, part
        try:
            obj = obj[part]
        except (KeyError, IndexError):
            break
    return None, None


def _put(obj: Any, path: Path, value: str | float, token: str) -> bool:
    """Sets a string, number or boolean in an object; returns whether its place exists, or is the next one of a list."""
    parent, last = _find(obj, path, token)
    if parent is None or (isinstance(last, int) and last > len(parent)):
        return False
    if isinstance(parent, list) and last == len(parent):
        parent.append(value)
        return True
    old = parent.get(last) if isinstance(parent, dict) else parent[last]
    if isinstance(old, dict | list):
        return False
    encodes = isinstance(value, str) and isinstance(old, str) and _decode(old) is not None
    parent[last] = to_base64(str(value)) if encodes else value
    return True


def _remove(obj: Any, path: Path, token: str) -> bool:
    """Removes what is at a path of an object; returns whether there is something."""
    parent, last = _find(obj, path, token)
    if parent is None or last not in (parent if isinstance(parent, dict) else range(len(parent))):
        return False
    del parent[last]
    return True


def _effects_of(trial: Trial, copy: Copy) -> State:
    """Returns the state of a copy in which items of lists can be compared."""
    return {place: _name_items(values) for place, values in state_of(trial, copy).items()}


def _name_items(values: Mapping[Path, Any]) -> dict[Path, Any]:
    """Returns the values of an object with names in place of positions in the paths of items that have one, such as containers:
    their order says nothing. Conditions of a status have types: one is added when it is first known, and stays, so that its
    position follows from history."""
    names: dict[Path, dict[Path, Any]] = {}
    for path, value in values.items():
        if len(path) > 1 and isinstance(path[-2], int) and path[-1] == ("type" if path[0] == "status" else "name"):
            names.setdefault(path[:-2], {})[path[:-1]] = value
    unique = [found for found in names.values() if len(set(found.values())) == len(found)]
    known = {item: name for found in unique for item, name in found.items() if isinstance(name, str)}
    return {
        tuple(known.get(path[: number + 1], part) if isinstance(part, int) else part for number, part in enumerate(path)): value
        for path, value in values.items()
    }


def find_unique(trial: Trial, one: Copy, other: Copy) -> set[Place]:
    """Returns the objects whose data differ for two copies that were made alike: nobody can make a password or a key again, so
    that many clients keep it."""
    first, second = state_of(trial, one), state_of(trial, other)
    return {
        place
        for place in first.keys() & second.keys()
        if any(path[0] in _HOLDS_DATA and value != second[place].get(path) for path, value in first[place].items())
    }


def state_of(trial: Trial, copy: Copy) -> State:
    """Returns the values in the children of a copy, and those in its own objects that it was not made with.

    The status of a child is what other controllers have seen of it. A child in another namespace may have the name of its object,
    and be of the same resource: then they have one place.
    """
    found: State = {}
    for resource in trial.baseline.reaction.children:
        children = children_of(trial.cluster, copy, resource)
        generated: list[dict[Path, Any]] = []
        for child in children:
            name = child["metadata"]["name"]
            values = {path: value for path, value in values_of(child, copy.token).items() if path[0] != "status"}
            if copy.token in name and not child["metadata"].get("generateName"):
                found[resource, _normal(name, copy.token)] = values
            else:
                generated.append(values)
        if generated:
            found[resource, GENERATED] = _merge(generated)
    made = {obj["metadata"]["uid"]: {path for path, _ in leaves_of(obj)} for obj in copy.objects}
    for resource, obj in own_objects(trial, copy):
        given = made.get(obj["metadata"]["uid"], set())
        values = values_of(obj, copy.token)
        own = {path: value for path, value in values.items() if path not in given and ADDED not in path}
        found.setdefault((resource, _normal(obj["metadata"]["name"], copy.token)), {}).update(own)
    return found


def _merge(several: Sequence[dict[Path, Any]]) -> dict[Path, Any]:
    """Returns the values of objects that cannot be told apart: those of each path together, if there are several objects."""
    if len(several) == 1:
        return several[0]
    return {path: tuple(sorted(str(one.get(path)) for one in several)) for path in set().union(*several)}


def values_of(obj: Mapping[str, Any], token: str) -> dict[Path, Any]:
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

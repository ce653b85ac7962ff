"""The reaction of a client to a copy of the sample: found in the baseline run, expected after a provocation, or by the user.

A reaction consists of effects: objects that the client creates, fields that it writes in the objects of the copy, objects about
several copies, such as a summary, that name the copy, and requests that contain the copy's name. The effects that two copies have
in common are the reaction; names that differ between the copies are "*".

Events are not objects of a reaction: they are best effort, and clients drop, aggregate and limit them. Neither are objects and
fields that the client has removed again, or that are not stored, such as reviews.

Invariant: objects and fields are looked up in the state of the cluster, because a client need not repeat a finished write.
Requests count only if the reaction has no other effects, and writes of an object about several copies never: one may be for all.
An answer or event that was not sent completely has delivered nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from fakekube.apimachinery.codecs import json
from fakekube.checker.trace import LEASES, WRITES
from fakekube.controllers.client import ApiError, UnknownResource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

    from fakekube.base.objects import Object, StoredObject
    from fakekube.checker.trace import Call, Stream
    from fakekube.cluster import Cluster


_PLACE_OF_TOKEN = "{}"
_ANY_NAME = "*"

#: Fields that change with every write.
SYSTEM_FIELDS = (
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
    ("metadata", "generation"),
    ("metadata", "deletionTimestamp"),
)


class EffectKind(StrEnum):
    CHILD = "creates"
    FIELD = "writes"
    MENTION = "names it in"
    REQUEST = "sends"


@dataclass(slots=True, frozen=True)
class Effect:
    """A part of a reaction."""

    kind: EffectKind
    resource: str
    name: str
    """The name, with {} in place of the copy's token; "*" if it differs between copies."""
    detail: tuple[str, ...] = ()
    """The path of a field, or the verb of a request."""

    @property
    def has_name(self) -> bool:
        """Whether the name is the same for all copies, apart from the token."""
        return self.name != _ANY_NAME

    def name_for(self, copy: Copy) -> str:
        """Returns the name of the object for a copy; "*" if it is not fixed."""
        return self.name.replace(_PLACE_OF_TOKEN, copy.token)

    @property
    def is_shared(self) -> bool:
        """Whether the object has the same name for all copies."""
        return bool(self.name) and self.has_name and _PLACE_OF_TOKEN not in self.name

    @property
    def is_state(self) -> bool:
        """Whether the cluster's state shows this effect."""
        return self.kind is not EffectKind.REQUEST

    def __str__(self) -> str:
        detail = ".".join(self.detail)
        if self.kind is EffectKind.REQUEST:
            return f"{self.kind} {detail} {self.resource}/{self.name}"
        return f"{self.kind} {self.resource}/{self.name}" + (f" {detail}" if detail else "")


@dataclass(slots=True)
class Copy:
    """A copy of the sample in a cluster."""

    token: str
    objects: Sequence[Object]
    """The objects as the server returned them from their creation."""
    resources: Sequence[str]
    """The resources of the objects, such as `deployments.apps`."""
    mark: int
    """The mark of the trace before the creation."""
    created_at: float
    """When all objects were created, in seconds of the trial."""
    deleted: bool = False
    judged: bool = True
    """Whether the client must react to this copy."""
    altered: int = 0
    """How many times its objects were changed, so that they contain something else than the sample."""

    def owns(self, resource: str, namespace: str, name: str) -> bool:
        """Reports whether an object is one of the copy's own objects."""
        return any(
            known == resource and obj["metadata"]["name"] == name and obj["metadata"].get("namespace", "") in ("", namespace)
            for known, obj in zip(self.resources, self.objects, strict=True)
        )

    def names(self) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.objects]


@dataclass(slots=True, frozen=True)
class Reaction:
    """The effects that all copies have in common, with their counts."""

    effects: Mapping[Effect, int]

    @classmethod
    def common(cls, *observed: Counter[Effect]) -> Reaction:
        """Returns the effects that several observed reactions have in common."""
        same = observed[0]
        for other in observed[1:]:
            same = same & other
        rests = [_without_names(one - same) for one in observed]
        anonymous = rests[0]
        for rest in rests[1:]:
            anonymous = anonymous & rest
        return cls(dict(same + anonymous))

    def __bool__(self) -> bool:
        return bool(self.effects)

    def lasting(self, cluster: Cluster, copies: Sequence[Copy]) -> Reaction:
        """Returns the reaction without the objects and fields that copies do not have now. An object that names several copies is
        the child of none; any other one that the client creates is not a mention besides."""
        now = {one: min(_count(one, cluster, copy, ()) for copy in copies) for one in self.effects if one.is_state}
        for one in self.effects:
            if one.kind is EffectKind.CHILD and one.is_shared:
                is_common = len(copies) > 1 and len({uid for copy in copies for uid in _uids(one, cluster, copy)}) == 1
                now[one if is_common else Effect(EffectKind.MENTION, one.resource, one.name)] = 0
        return Reaction({one: min(count, now.get(one, count)) for one, count in self.effects.items() if now.get(one, count)})

    @property
    def visible(self) -> Mapping[Effect, int]:
        """The effects that are expected: objects and fields if there are any, else requests, without those that write what is
        about several copies, and without Events beside other writes: a client does not send an Event again that was refused."""
        lasting = {one: count for one, count in self.effects.items() if one.is_state}
        if lasting:
            return lasting
        requests = {one: count for one, count in self.effects.items() if not (one.is_shared and one.detail[0] in WRITES)}
        others = {one: count for one, count in requests.items() if not is_event(one.resource)}
        return others if any(one.detail[0] in WRITES for one in others) else requests

    @property
    def children(self) -> dict[str, int]:
        """How many objects of each resource the client creates for a copy."""
        counts: Counter[str] = Counter()
        for one, count in self.effects.items():
            if one.kind is EffectKind.CHILD:
                counts[one.resource] += count
        return dict(counts)

    def without_names_of_children(self) -> Reaction:
        """Returns the reaction to an object with other contents: the name of a child may follow from them, as a hash does."""
        children = Counter({one: count for one, count in self.effects.items() if one.kind is EffectKind.CHILD})
        others = {one: count for one, count in self.effects.items() if one not in children}
        return Reaction({**others, **_without_names(children)})

    def missing(self, cluster: Cluster, copy: Copy, calls: Sequence[Call]) -> list[Effect]:
        """Returns the missing effects of the reaction to a copy; `calls` are the calls since its creation."""
        return [one for one, count in self.visible.items() if _count(one, cluster, copy, calls) < count]


def _without_names(effects: Counter[Effect]) -> Counter[Effect]:
    found: Counter[Effect] = Counter()
    for one, count in effects.items():
        if one.kind is not EffectKind.MENTION:
            found[Effect(one.kind, one.resource, _ANY_NAME, one.detail)] += count
    return found


def effects_of(cluster: Cluster, copy: Copy, calls: Iterable[Call]) -> Counter[Effect]:
    """Returns the effects of the reaction to a copy in the calls since its creation."""
    found: Counter[Effect] = Counter()
    for call in calls:
        if not call.succeeded or call.is_watch or call.is_list or not call.mentions(copy.token):
            continue
        name = name_of(call)
        template = name.replace(copy.token, _PLACE_OF_TOKEN)
        found[Effect(EffectKind.REQUEST, call.resource, template, (call.verb,))] = 1
        if copy.owns(call.collection, call.namespace, name):
            if call.is_write:
                paths = written_fields(cluster, call, name)
                found.update({Effect(EffectKind.FIELD, call.collection, template, path): 1 for path in paths} - found.keys())
        elif call.is_write and call.verb != "delete" and not is_event(call.resource):
            mention = Effect(EffectKind.MENTION, call.collection, template)
            if mention.is_shared and call.collection != LEASES:
                found[mention] = 1
            if call.status == 201 and "/" not in call.resource:
                found[Effect(EffectKind.CHILD, call.resource, template)] += 1
    return found


def is_event(resource: str) -> bool:
    """Reports whether a resource is that of Events, in either group."""
    return resource.partition(".")[0] == "events"


def name_of(call: Call) -> str:
    """Returns the name of the object of a call, which the answer to a create has; "" if there is none."""
    answer = call.answer
    return call.name or (str((answer.get("metadata") or {}).get("name") or "") if isinstance(answer, dict) else "")


def written_fields(cluster: Cluster, call: Call, name: str) -> list[tuple[str, ...]]:
    """Returns the fields that a write has added or changed in an object that existed."""
    found = states_around(cluster, call, name)
    return [path for path in find_changed_paths(*found) if path[:2] not in SYSTEM_FIELDS] if found is not None else []


def states_around(cluster: Cluster, call: Call, name: str) -> tuple[StoredObject, StoredObject] | None:
    """Returns the states of an object before and after a write; None if the write has not changed an object that existed."""
    if call.revision is None:
        return None
    try:
        return cluster.change(call.collection, name, call.namespace or None, revision=call.revision)
    except (ApiError, UnknownResource):  # its definition is deleted
        return None


def find_changed_paths(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the paths of added and changed values. An added item of a list of strings is the last part of its path."""
    if isinstance(new, dict) and isinstance(old, dict | None):
        for key, value in new.items():
            yield from find_changed_paths((old or {}).get(key), value, (*path, key))
    elif isinstance(new, list) and all(isinstance(item, str) for item in new):
        yield from ((*path, item) for item in new if not isinstance(old, list) or item not in old)
    elif old != new:
        yield path


def leaves_of(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yields the paths and values of all that is neither an object nor a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves_of(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves_of(inner, (*path, number))
    else:
        yield path, value


def find_differences(old: StoredObject, new: StoredObject) -> dict[tuple[str | int, ...], tuple[Any, Any]]:
    """Returns the old and the new value of each place where two states of an object differ, without what the server sets itself.

    A value that is not there is None.
    """
    before, after = dict(leaves_of(old)), dict(leaves_of(new))
    pairs = {path: (before.get(path), after.get(path)) for path in before | after if path[:2] not in SYSTEM_FIELDS}
    return {path: (one, other) for path, (one, other) in pairs.items() if one != other}


def has_controller(obj: Object) -> bool:
    """Reports whether an object has a controller reference."""
    return any(owner.get("controller") for owner in obj["metadata"].get("ownerReferences") or ())


def filter_by_owner(children: Iterable[Object], uids: Set[str]) -> list[Object]:
    """Returns the children whose owner has one of some uids: their controller or, if they have none, one that another owner
    reference, a label or an annotation names by its uid."""
    return [child for child in children if not uids.isdisjoint(_uids_of_owners(child["metadata"]))]


def _uids_of_owners(metadata: Object) -> set[str]:
    owners = metadata.get("ownerReferences") or ()
    marks = (value for part in ("labels", "annotations") for value in (metadata.get(part) or {}).values())
    return {owner["uid"] for owner in owners if owner.get("controller")} or {*(owner["uid"] for owner in owners), *marks}


def is_time(value: Any) -> bool:
    """Reports whether a value is a time, as the API writes it."""
    return isinstance(value, str) and _TIME.match(value) is not None


def _count(effect: Effect, cluster: Cluster, copy: Copy, calls: Sequence[Call]) -> int:
    """Returns how often an effect is found for a copy."""
    name = effect.name_for(copy)
    if effect.kind is EffectKind.REQUEST:
        return sum(
            call.resource == effect.resource
            and call.verb == effect.detail[0]
            and (call.succeeded or call.status == 404)  # an object to delete may be gone
            and call.mentions(copy.token)
            and effect.name in (_ANY_NAME, name_of(call).replace(copy.token, _PLACE_OF_TOKEN))
            for call in calls
        )
    if effect.kind is EffectKind.MENTION:  # a summary may forget it later
        return int(bool(_uids(effect, cluster, copy)) or any(_tells(call, effect, copy) for call in calls))
    found = _objects(cluster, effect.resource)
    if effect.kind is EffectKind.CHILD:
        named = found if effect.name == _ANY_NAME else [one for one in found if one.object["metadata"]["name"] == name]
        if _PLACE_OF_TOKEN in effect.name:
            return len(named)
        return sum(one.is_child(effect.resource, copy) for one in named)  # each copy may have one in a namespace of its own
    return sum(
        has(obj, effect.detail)
        for obj in (one.object for one in found)
        if copy.owns(effect.resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        and effect.name in (_ANY_NAME, obj["metadata"]["name"].replace(copy.token, _PLACE_OF_TOKEN))
    )


def _tells(call: Call, effect: Effect, copy: Copy) -> bool:
    """Reports whether a call has written about a copy into the object of an effect."""
    written = call.is_write and call.succeeded and call.collection == effect.resource and name_of(call) == effect.name
    return written and call.mentions(copy.token)


def _uids(effect: Effect, cluster: Cluster, copy: Copy) -> set[str]:
    """Returns the uids of the objects with the name of an effect that refer to a copy."""
    made = children_of(cluster, copy, effect.resource)
    return {one["metadata"]["uid"] for one in made if one["metadata"]["name"] == effect.name}


def mentions_in(reaction: Reaction, cluster: Cluster, copy: Copy) -> set[Effect]:
    """Returns the effects of a reaction that are objects about several copies, as far as they name a copy now."""
    return {one for one in reaction.effects if one.kind is EffectKind.MENTION and _uids(one, cluster, copy)}


def children_of(cluster: Cluster, copy: Copy, resource: str) -> list[Object]:
    """Returns the objects of a resource that refer to a copy and are not its own objects."""
    return [one.object for one in _objects(cluster, resource) if one.is_child(resource, copy)]


@dataclass(slots=True)
class _Listed:
    """An object of a list, which several conditions look at."""

    object: Object
    text: bytes = b""
    """What it contains, without its managedFields; b"" if nobody has asked yet."""

    def is_child(self, resource: str, copy: Copy) -> bool:
        """Reports whether the object refers to a copy and is not one of its own objects."""
        metadata = self.object["metadata"]
        if copy.owns(resource, metadata.get("namespace", ""), metadata["name"]):
            return False
        self.text = self.text or json.dumps({**self.object, "metadata": {**metadata, "managedFields": None}})
        return copy.token.encode() in self.text


_Lists = dict[str, tuple[int, list[_Listed]]]

#: Cluster → resource → the last list, with the revision of the cluster before it: conditions of waits ask many times for lists
#: that have not changed. Nobody changes the objects.
_LISTS: WeakKeyDictionary[Cluster, _Lists] = WeakKeyDictionary()


def _objects(cluster: Cluster, resource: str) -> list[_Listed]:
    lists, now = _LISTS.setdefault(cluster, {}), cluster.revision
    if resource in lists and lists[resource][0] == now:
        return lists[resource][1]
    try:
        found = [_Listed(obj) for obj in cluster.list(resource)]
    except (ApiError, UnknownResource):
        return []
    lists[resource] = (now, found)
    return found


def has(obj: Any, path: Sequence[str]) -> bool:
    """Reports whether an object has a value at a path of `find_changed_paths`."""
    for part in path:
        if isinstance(obj, dict):
            if part not in obj:
                return False
            obj = obj[part]
        else:
            return isinstance(obj, list) and part in obj
    return True


def value_at(obj: Any, path: Sequence[str]) -> Any:
    """Returns the value at a path of `find_changed_paths`; None if there is none."""
    for part in path:
        if isinstance(obj, dict):
            obj = obj.get(part)
        else:
            return part if isinstance(obj, list) and part in obj else None
    return obj


def has_delivered(stream: Stream, copy: Copy, obj: Object) -> bool:
    """Reports whether a stream has delivered an object of a copy, in an event or a list."""
    name, revision = obj["metadata"]["name"], int(obj["metadata"]["resourceVersion"])
    return any(_lists_object(call, copy, name) or _delivers_object(call, name, revision) for call in reversed(stream.calls))


def _lists_object(call: Call, copy: Copy, name: str) -> bool:
    """Reports whether the answer of a list contains the object."""
    if not call.is_list or call.status != 200:
        return False
    if call.answer_is_lost:  # it was too large to be recorded
        return call.number > copy.mark
    answer = call.exchange.raw_answer or b""
    return name.encode() in (answer if isinstance(answer, bytes) else b"".join(answer))


def _delivers_object(call: Call, name: str, revision: int) -> bool:
    """Reports whether a watch delivered an event of the object, or one as new if the format of the events cannot be read."""
    if not call.is_watch:
        return False
    return any(event.name == name or (not event.type and event.revision >= revision) for event in call.events)


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_FORM = re.compile(r"(?P<resource>[a-z0-9.]+)/(?P<name>[^:/]+)(?::(?P<path>[^=]+)(?:=(?P<value>.*))?)?")
#: A dot without a backslash before it.
_DOT = re.compile(r"(?<!\\)\.")


@dataclass(slots=True, frozen=True)
class Expectation:
    """An object or field that the user expects: `--expect RESOURCE/NAME[:PATH[=VALUE]]`, where `{name}` is the name of a copy.

    Such as `configmaps/{name}-copy` and `widgets.example.com/{name}:status.phase=Ready`.
    """

    resource: str
    name: str
    path: Sequence[str] = ()
    value: str | None = None

    @classmethod
    def parse(cls, text: str) -> Expectation:
        """Parses an expectation. Raises ValueError."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not RESOURCE/NAME[:PATH[=VALUE]]")
        path = tuple(part.replace("\\.", ".") for part in _DOT.split(found["path"])) if found["path"] else ()
        return cls(found["resource"], found["name"], path, found["value"])

    def is_met(self, cluster: Cluster, copy: Copy) -> bool:
        """Reports whether the expected object or field exists for one of the objects of a copy."""
        return any(self._is_there(cluster, obj) for obj in copy.objects)

    def _is_there(self, cluster: Cluster, obj: dict[str, Any]) -> bool:
        metadata = obj["metadata"]
        name = self.name.replace("{name}", metadata["name"])
        try:
            value: Any = cluster.get(self.resource, name, namespace=metadata.get("namespace"))
        except (ApiError, UnknownResource):
            return False
        for part in self.path:
            if isinstance(value, list) and part.isdigit() and int(part) < len(value):
                value = value[int(part)]
            elif isinstance(value, dict) and part in value:
                value = value[part]
            else:
                return False
        return self.value is None or self.value == (str(value).lower() if isinstance(value, bool) else str(value))


@dataclass(slots=True, frozen=True)
class Expectations:
    """All expectations of a check."""

    signs: Sequence[Expectation] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Expectations:
        """Parses expectations. Raises ValueError."""
        return cls([Expectation.parse(text) for text in texts])

    def are_met(self, cluster: Cluster, copy: Copy) -> bool:
        """Reports whether all expectations are met for a copy."""
        return all(sign.is_met(cluster, copy) for sign in self.signs)

"""Reads the history: the versions of one object, the state of the cluster at a revision, and the owners of the fields of an
object.

The owners are `metadata.managedFields` as a map from paths (`fieldpath`) to managers. Each entry is walked together with the
object: `f:NAME` is a member, `k:{…}` the item of a list whose members equal the key, `v:…` the item with that value, `i:N` the
item at a position, and `.` the value itself. The page computes the same (page/static/owners.js).

Invariants: this module changes nothing but how the past is held (`pack_past`); compacted versions are not reconstructed. Fields
that the object does not have any more have no owner.

Specified by: sigs.k8s.io/structured-merge-diff/fieldpath/serialize-pe.go (PathElement).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.codecs.document import Document, compress
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import Client
from fakekube.powers.differences import ABSENT, item_names, member
from fakekube.store import Bucket

if TYPE_CHECKING:
    from fakekube.apis.rest.resource import Resource
    from fakekube.base.clock import Clock
    from fakekube.powers.observation import Observer
    from fakekube.store import Store


@dataclass(slots=True, frozen=True)
class Version:
    """One version of an object."""

    revision: int
    time: datetime
    """When it was written, by the cluster's clock."""
    type: str
    """ADDED, MODIFIED or DELETED."""
    object: Object
    """The object as stored; for a deletion its last state. Must not be changed."""
    changed: Sequence[str]
    """The paths of the fields that differ from the version before, such as `spec.replicas`."""


def history(bucket: Bucket[Document], resource: Resource, key: str, clock: Clock) -> list[Version]:
    """Returns the versions of an object that are not compacted, oldest first."""
    kind = _kind_of(resource)
    now, monotonic = clock.now(), clock.monotonic()
    found: list[Version] = []
    before: Object = {}
    events = bucket.events_of(key)
    first = events[0].previous if events else bucket.get(key)
    if first is not None:
        added = first.created == first.revision
        obj = {**kind, **first.value.object}
        found.append(Version(first.revision, _time_of(obj, now), "ADDED" if added else "MODIFIED", obj, ()))
        before = obj
    for event in events:
        time = now - timedelta(seconds=monotonic - event.time)
        record = event.record
        if record is None:
            found.append(Version(event.revision, time, "DELETED", before, ()))
            before = {}
            continue
        obj = {**kind, **record.value.object}
        type_ = "MODIFIED" if event.previous is not None else "ADDED"
        found.append(Version(event.revision, time, type_, obj, tuple(_changed_paths(before, obj)) if event.previous else ()))
        before = obj
    return found


def change(bucket: Bucket[Document], resource: Resource, key: str, revision: int) -> tuple[Object, Object] | None:
    """Returns an object before and after the write of a revision; None if this is compacted, or did not change an object that
    existed. Takes no longer for an object with a long history."""
    kind = _kind_of(resource)
    for event in bucket.events_of(key, revision):
        if event.previous is not None and event.record is not None:
            return {**kind, **event.previous.value.object}, {**kind, **event.record.value.object}
    return None


def _kind_of(resource: Resource) -> Object:
    """Returns what the stored objects of a resource lack: custom ones have it."""
    return {} if resource.custom else {"kind": resource.kind, "apiVersion": resource.api_version}


def _time_of(obj: Mapping[str, Any], now: datetime) -> datetime:
    """Returns the time of a version whose event is compacted: the creation time of the object."""
    stamp = obj["metadata"].get("creationTimestamp")
    return datetime.fromisoformat(stamp) if stamp else now


def _changed_paths(old: Any, new: Any, path: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            yield from _changed_paths(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _changed_paths(one, other, f"{path}[{index}]")
    elif old != new:
        yield path


class Past:
    """The state of a cluster at a revision, to read.

    Args:
        client: of the cluster.
        revision: of the state.
    """

    def __init__(self, client: Client, revision: int) -> None:
        self._client = client
        self.revision = revision

    def list(
        self, resource: str, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Lists the objects of one namespace, or of all if it is None.

        Raises ApiError (410) if the revision is compacted, and UnknownResource.
        """
        found = self._client.resource(resource)
        query = {
            "resourceVersion": str(self.revision),
            "resourceVersionMatch": "Exact",
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        path = self._client.path(found, namespace)
        answer = self._client.call("GET", path, None, {name: value for name, value in query.items() if value})
        kind = {"kind": found.kind, "apiVersion": found.api_version}
        return [{**kind, **item} for item in answer["items"]]

    def get(self, resource: str, name: str, *, namespace: str | None = None) -> Object:
        """Gets one object; the default namespace is `default`. Raises LookupError if it did not exist, and errors of `list`."""
        found = self.list(resource, namespace=namespace or "default", field_selector=f"metadata.name={name}")
        if not found:
            raise LookupError(f"there was no {resource} {name} at revision {self.revision}")
        return found[0]


# --- Which manager owns which field of an object ----------------------------------------------------------------------


Owners = dict[str, list[dict[str, str]]]

_MEMBERS: Final = ("manager", "operation", "subresource", "time")
#: Members of keys that the API defaults.
_DEFAULTS: Final = {"protocol": "TCP"}


def field_owners(obj: StoredObject) -> Owners:
    """Returns the owners of the fields of an object by path, in the order of managedFields."""
    found: Owners = {}
    entries = (obj.get("metadata") or {}).get("managedFields")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("fieldsV1"), dict):
            _walk(entry["fieldsV1"], obj, "", {name: str(entry.get(name) or "") for name in _MEMBERS}, found)
    return found


def _walk(fields: StoredObject, value: Any, path: str, owner: dict[str, str], found: Owners) -> None:
    if not fields or "." in fields:
        found.setdefault(path, []).append(owner)
    names = item_names(value) if isinstance(value, list) else []
    for element, inner in fields.items():
        place = None if element == "." else _place(element, value)
        if place is None:
            continue
        below = member(path, place) if isinstance(place, str) else path + names[place]
        _walk(inner if isinstance(inner, dict) else {}, value[place], below, owner, found)


def _place(element: str, value: Any) -> str | int | None:
    """Returns the member or position that an element means; None if the value has none."""
    kind, _, text = element.partition(":")
    if kind == "f":
        return text if isinstance(value, dict) and text in value else None
    if not isinstance(value, list):
        return None
    try:
        wanted = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if kind == "i":
        return wanted if isinstance(wanted, int) and 0 <= wanted < len(value) else None
    fits = {"k": _has_key, "v": _equals}.get(kind)
    return None if fits is None else next((place for place, item in enumerate(value) if fits(item, wanted)), None)


def _has_key(item: Any, key: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(key, dict):
        return False
    return all(_equals(item.get(name, _DEFAULTS.get(name, ABSENT)), value) for name, value in key.items())


def _equals(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def pack_past(store: Store[Document], observer: Observer | None) -> None:
    """Packs what only the history of the store and an observer have: for a cluster that rests.

    It is as much as before, and readers unpack what they read. Present objects stay as they are.
    """
    for bucket in store.buckets():
        compress(bucket.list_past())
    if observer is not None:
        kept: dict[str, list[Document]] = {}
        for name, record in observer.journal.records():
            now = store.bucket(name).get(record.key)
            if now is None or now.value is not record.value:
                kept.setdefault(name, []).append(record.value)
        for documents in kept.values():
            compress(documents)
        observer.journal.pack()
        observer.recorder.pack()

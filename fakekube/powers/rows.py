"""Rows for the page and for trace files: requests, changes and objects, as columns (`columns`), without bodies.

`Rows` reads the recorder, the journal and the store of one cluster. Live pages and trace files get the same rows from it.

Invariant: nothing here changes the cluster. A call makes at most `MAX_ROWS` rows, except `objects` for a larger limit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from fakekube.base.objects import Object, group_resource
from fakekube.controllers.client import UnknownResource
from fakekube.powers.columns import Table, revision_value
from fakekube.powers.differences import differences, is_assigned, paths
from fakekube.powers.exchange import exchange_data
from fakekube.powers.health import UNKNOWN, health, sentence
from fakekube.powers.history import field_owners
from fakekube.store import Compacted, FutureRevision

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.powers.exchange import Deliveries, Exchange
    from fakekube.powers.journal import Change
    from fakekube.powers.observation import Observer
    from fakekube.store import Bucket, Record


#: The maximum number of rows of one call, so that no call holds the interpreter for more than about 100 ms.
MAX_ROWS: Final = 5_000
#: The maximum number of changes of one call whose changed paths are computed.
MAX_PATHS: Final = 1_000
#: The characters of a text in a row.
_MAX_TEXT: Final = 300

#: The columns of requests, of changes and of objects (`Table`).
REQUESTS: Final = (
    "number", "began", "time", "ms", "verb*", "resource*", "namespace*", "name*", "path*", "actor*", "side*", "agent*", "user*",
    "own", "code", "fault*", "rev", "writes", "events", "ended*", "sent", "received", "protocol*", "why*",
)  # fmt: skip
CHANGES: Final = (
    "revision", "after", "time", "type*", "resource*", "kind*", "namespace*", "name*", "uid*", "actor*", "side*", "request",
    "verb*", "sub*", "indirect", "reason*", "heartbeat",
)  # fmt: skip
#: Columns of changes about the object after the change, for live pages and trace files.
_STATES: Final = ("state*", "text*", "owner*", "owners", "created", "deleting")
OBJECTS: Final = (
    "kind*", "resource*", "namespace*", "name*", "uid*", "owner*", "owners", "revision", "created", "deleting", "state*", "text*",
    "actor*",
)  # fmt: skip

_Row = TypeVar("_Row")


def _number_of(exchange: Exchange) -> int:
    return exchange.number


def _revision_of(change: Change) -> int:
    return change.revision


class Kind(NamedTuple):
    """What the page knows of the objects of a bucket."""

    resource: str
    """`deployments.apps`."""
    kind: str
    namespaced: bool
    api_version: str


class Rows:
    """The rows of one cluster.

    Args:
        backend: of the cluster.
        observer: its recorder and journal.
    """

    def __init__(self, backend: Backend, observer: Observer) -> None:
        self._backend = backend
        self._observer = observer
        self._known: dict[str, Kind] = {}

    @property
    def revision(self) -> int | str:
        """The revision of the cluster."""
        return revision_value(self._backend.store.revision)

    # --- Requests -----------------------------------------------------------------------------------------------------

    def requests(
        self, since: int = -1, until: int | None = None, before: int | None = None, limit: int = 1_000, *, own: bool = True
    ) -> dict[str, Any]:
        """Returns the rows of requests: those after `since` and up to `until`, or with `before` the last ones before it."""
        every = self._observer.recorder.list_exchanges()
        ordered = every if _is_sorted(every) else sorted(every, key=_number_of)
        oldest = ordered[0].number if ordered else self._observer.recorder.newest + 1
        if not own:
            ordered = [one for one in ordered if not one.own]
        found, more = _select_part(ordered, _number_of, since=since, until=until, before=before, limit=limit)
        table = self.request_table(found)
        return table.data(next=found[-1].number if found else since, more=more, oldest=oldest)

    def request_table(self, exchanges: Iterable[Exchange]) -> Table:
        """Returns the rows of some requests."""
        table = Table(REQUESTS)
        actor_of, start, epoch = self._observer.actors.name_actor, self._observer.began, self._observer.epoch
        for one in exchanges:
            info = one.info
            resource = name = path = namespace = ""
            if info is not None and info.is_resource_request:
                resource = _resource_text(info.resource, info.group, info.subresource)
                namespace, name = info.namespace, info.name or self._created_name(one)
            else:
                path = one.path[:_MAX_TEXT]
            outer, agent, user = one.within, one.agent, one.user
            cause = one.cause
            fault = cause.fault if cause is not None else (outer.fault or "") if outer is not None and one.of_fault else ""
            actor, side = actor_of(agent, user, one.own, fault)
            answer, seconds = one.raw_answer, one.seconds
            table.add(
                one.number,
                round((one.began - start) * 1000, 1),
                round(epoch + one.arrived, 3),
                None if seconds is None else round(seconds * 1000, 2),
                one.verb,
                resource,
                namespace,
                name,
                path,
                actor,
                side,
                agent[:_MAX_TEXT],
                user,
                int(one.own),
                one.status or 0,
                one.fault or "",
                revision_value(one.wrote[0]) if one.wrote else 0,
                len(one.wrote),
                -1 if one.events is None else one.events,
                one.ended or "",
                -1 if answer is None else len(answer),
                len(one.raw_body),
                one.protocol,
                _reason_of(one),
            )
        return table

    @staticmethod
    def _created_name(one: Exchange) -> str:
        """Returns the name of the object that a request created: of its change, else of its body."""
        if one.verb != "create":
            return ""
        if one.cause is not None:
            return one.cause.key.rpartition(" ")[2].rpartition("/")[2]
        return one.name

    # --- Changes ------------------------------------------------------------------------------------------------------

    def changes(
        self,
        since: int = 0,
        until: int | None = None,
        before: int | None = None,
        limit: int = 1_000,
        *,
        resource: str = "",
        namespace: str | None = None,
        name: str = "",
        with_paths: bool = False,
    ) -> dict[str, Any]:
        """Returns the rows of changes, as `requests`; `with_paths` also the paths that each changed, of at most `MAX_PATHS`."""
        every = self.journal()
        oldest = revision_value(every[0].revision if every else self._backend.store.revision + 1)
        if resource or namespace is not None or name:
            every = [change for change in every if self._is_of(change, resource, namespace, name)]
        found, more = _select_part(
            every, _revision_of, since=since, until=until, before=before, limit=min(limit, MAX_PATHS) if with_paths else limit
        )
        data = self.change_table(found).data(
            next=revision_value(found[-1].revision if found else since), more=more, oldest=oldest
        )
        if with_paths:
            data["columns"]["paths"] = [paths(change.before, change.object) for change in found]
        return data

    def journal(self) -> list[Change]:
        """Returns all changes that are kept; opens the journal."""
        self._observer.journal.open(self._backend.store)
        return self._observer.journal.changes()

    def _is_of(self, change: Change, resource: str, namespace: str | None, name: str) -> bool:
        if resource and self.kind(change.bucket).resource != resource:
            return False
        own_namespace, own_name = self.place(change)
        return (namespace is None or namespace == own_namespace) and (not name or name == own_name)

    def place(self, change: Change) -> tuple[str, str]:
        """Returns the namespace and the name of the object of a change."""
        return _place_of(change.key)

    def actor(self, change: Change) -> tuple[str, str]:
        """Returns the actor of a change and its side; ("", "") if no request made it."""
        cause = change.cause
        return ("", "") if cause.number < 0 else self._observer.actors.name_actor(cause.agent, cause.user, cause.own, cause.fault)

    def change_table(self, changes: Iterable[Change], *, with_states: bool = False) -> Table:
        """Returns the rows of some changes; `with_states` with the columns of `objects` about the object after the change."""
        table = Table((*CHANGES, *_STATES) if with_states else CHANGES)
        offset = self._observer.epoch
        for change in changes:
            kind, cause = self.kind(change.bucket), change.cause
            namespace, name = _place_of(change.key)
            actor, side = self.actor(change)
            info = cause.info
            table.add(
                revision_value(change.revision),
                change.after,
                round(offset + change.time, 3),
                change.type,
                kind.resource,
                kind.kind,
                namespace,
                name,
                change.uid,
                actor,
                side,
                cause.number,
                "" if info is None else info.verb,
                "" if info is None else info.subresource,
                int(self.is_indirect(change)),
                cause.reason,
                int(change.heartbeat),
                *(_states_of(change.bucket, change.object or change.before) if with_states else ()),
            )
        return table

    def is_indirect(self, change: Change) -> bool:
        """Reports whether the request of a change was about another object."""
        info = change.cause.info
        if info is None or not info.is_resource_request:
            return False
        if info.verb == "deletecollection":
            return _resource_text(info.resource, info.group) != self.kind(change.bucket).resource
        return f"{change.bucket} {change.key}" != change.cause.key

    # --- Objects ------------------------------------------------------------------------------------------------------

    def objects(
        self,
        at: int | None = None,
        *,
        kinds: Sequence[str] = (),
        namespace: str | None = None,
        after: str = "",
        limit: int = MAX_ROWS,
    ) -> dict[str, Any]:
        """Returns the rows of objects, by resource and key.

        Args:
            at: the revision; by default now. Raises Compacted and FutureRevision.
            kinds: only these resources.
            namespace: only objects of this namespace.
            after: the member `next` of the previous part.
            limit: the maximum number of rows.
        """
        table, place, more = Table(OBJECTS), after, False
        undone = None if at is None else self.undo_to(at)
        revision = self._backend.store.revision if at is None else at
        writers = self._writers()
        for bucket in self._backend.store.buckets():
            if bucket.name < after.partition(" ")[0] or (kinds and self.kind(bucket.name).resource not in kinds):
                continue
            start = after.partition(" ")[2] + "\0" if after.startswith(f"{bucket.name} ") else ""
            prefix = f"{namespace}/" if namespace is not None and self.kind(bucket.name).namespaced else ""
            if namespace is not None and not prefix:
                continue
            left = limit - len(table)
            if undone is None:
                records = bucket.page(prefix, start=start, limit=left).records
            else:
                records = _records_then(bucket, undone, prefix, start)[:left]
            for record in records:
                self._add_object(table, bucket.name, record, writers)
                place = f"{bucket.name} {record.key}"
            if len(table) >= limit:
                more = True
                break
        return table.data(next=place, more=more, revision=revision_value(revision))

    def undo_to(self, at: int) -> dict[tuple[str, str], Record[Document] | None]:
        """Returns the records at a revision of all objects that were written since, by bucket and key; None for absent ones.

        Raises Compacted if the journal does not reach back to the revision, and FutureRevision.
        """
        store, journal = self._backend.store, self._observer.journal
        if at > store.revision:
            raise FutureRevision(store.revision)
        found: dict[tuple[str, str], Record[Document] | None] = {}
        every = self.journal()
        if at < journal.floor:
            raise Compacted(journal.floor)
        for change in reversed(every):
            if change.revision <= at:
                break
            if change.event is None:
                raise Compacted(change.revision)
            found[change.bucket, change.key] = change.event.previous
        return found

    def _writers(self) -> dict[int, str]:
        """Returns the actors of the changes that are kept, by revision."""
        return {change.revision: self.actor(change)[0] for change in self.journal()}

    def _add_object(self, table: Table, bucket: str, record: Record[Document], writers: Mapping[int, str]) -> None:
        kind, obj = self.kind(bucket), record.value.object
        metadata = obj["metadata"]
        state, text, owner, owners, created, deleting = _states_of(bucket, obj)
        table.add(
            kind.kind,
            kind.resource,
            *_place_of(record.key),
            metadata.get("uid", ""),
            owner,
            owners,
            revision_value(record.revision),
            created,
            deleting,
            state,
            text,
            writers.get(record.revision, ""),
        )

    def kind(self, bucket: str) -> Kind:
        """Returns what is known of the objects of a bucket."""
        known = self._known.get(bucket)
        if known is None:
            for resource in self._backend.registry:
                text = _resource_text(resource.plural, resource.group)
                if resource.bucket not in self._known or resource.bucket == text:
                    self._known[resource.bucket] = Kind(text, resource.kind, resource.namespaced, resource.api_version)
            known = self._known.setdefault(bucket, Kind(bucket, bucket.partition(".")[0], True, ""))
        return known

    def resources(self) -> list[dict[str, Any]]:
        """Returns the resources whose objects are stored, as `info` has them."""
        self._known.clear()
        self.kind("pods")
        named = sorted({kind for kind in self._known.values() if kind.api_version})
        return [
            {"name": one.resource, "kind": one.kind, "namespaced": one.namespaced, "apiVersion": one.api_version} for one in named
        ]

    # --- One object or change -----------------------------------------------------------------------------------------

    def request(self, number: int) -> Object | None:
        """Returns one request with its bodies, and the revisions of its changes; None if it is not kept."""
        for one in self._observer.recorder.list_exchanges():
            if one.number == number:
                actor, side = self._observer.actors.name_actor(one.agent, one.user, one.own)
                began = round((one.began - self._observer.began) * 1000, 1)
                wrote = [revision_value(revision) for revision in one.wrote]
                found = {**exchange_data(one), "actor": actor, "side": side, "began": began, "wrote": wrote, "own": one.own}
                return found if one.deliveries is None else {**found, "deliveries": self.deliveries(one.deliveries)}
        return None

    def deliveries(self, found: Deliveries) -> list[tuple[int | str, float]]:
        """Returns what a watch has delivered: revisions, and seconds since the epoch by the clock."""
        epoch = self._observer.epoch
        return [(revision_value(revision), round(epoch + at, 3)) for revision, at in found.list_deliveries()]

    def watches_of(self, revision: int) -> list[Object]:
        """Returns the watches of clients that got a change: number, actor and time of the delivery."""
        found = []
        for one in self._observer.recorder.list_exchanges():
            at = None if one.deliveries is None else one.deliveries.find_time(revision)
            if at is not None:
                actor, _ = self._observer.actors.name_actor(one.agent, one.user, one.own)
                found.append({"request": one.number, "actor": actor, "time": round(self._observer.epoch + at, 3)})
        return found

    def change(self, revision: int) -> Object | None:
        """Returns one change: the object before and after, and what differs; None if it is not kept."""
        self._observer.journal.open(self._backend.store)
        change = self._observer.journal.find(revision)
        if change is None:
            return None
        before, after = self.with_kind(change.bucket, change.before), self.with_kind(change.bucket, change.object)
        found = list(differences(before, after)) if before is not None and after is not None else []
        namespace, name = self.place(change)
        actor, side = self.actor(change)
        kind, info = self.kind(change.bucket), change.cause.info
        told = [one for one in found if not is_assigned(one.path)]
        return {
            "revision": revision_value(change.revision),
            "type": change.type,
            "time": round(self.time_of(change), 3),
            "resource": kind.resource,
            "kind": kind.kind,
            "namespace": namespace,
            "name": name,
            "uid": change.uid,
            "kept": change.event is not None,
            "before": before,
            "after": after,
            "changed": [one.data() for one in found],
            "request": change.cause.number,
            "indirect": self.is_indirect(change),
            "reason": change.cause.reason,
            "actor": actor,
            "side": side,
            "delivered": self.watches_of(change.revision),
            "sentence": sentence(
                actor=actor,
                reason=change.cause.reason,
                type_=change.type,
                kind=kind.kind,
                before=before,
                after=after,
                changed=told,
                subresource="" if info is None else info.subresource,
            ),
        }

    def object(self, resource: str, namespace: str, name: str, at: int | None = None) -> Object | None:
        """Returns an object with the owners of its fields, and who changed each path last; None if it did not exist.

        Args:
            resource: `deployments.apps`.
            namespace, name: of the object.
            at: the revision; by default now. Raises Compacted and FutureRevision.
        """
        bucket = self._bucket_of(resource)
        key = f"{namespace}/{name}" if namespace else name
        record = self._record(bucket, key, at)
        if record is None:
            return None
        obj = self.with_kind(bucket, record.value.object)
        assert obj is not None
        every = [one for one in self.journal() if one.bucket == bucket and one.key == key and one.revision <= record.revision]
        return {
            "object": obj,
            "revision": revision_value(record.revision),
            "owners": field_owners(obj),
            "written": self._last_writes(every),
            "health": dict(zip(("state", "text"), health(bucket, obj), strict=True)),
        }

    def causes(self, revisions: Iterable[int]) -> dict[int, Object]:
        """Returns for each revision who made the change: request, actor, verb and reason."""
        wanted = set(revisions)
        found: dict[int, Object] = {revision: {"request": -1, "actor": "", "verb": "", "reason": ""} for revision in wanted}
        for change in self.journal():
            if change.revision in wanted:
                info = change.cause.info
                found[change.revision] = {
                    "request": change.cause.number,
                    "actor": self.actor(change)[0],
                    "verb": "" if info is None else info.verb,
                    "reason": change.cause.reason,
                }
        return found

    def _last_writes(self, changes: Sequence[Change]) -> dict[str, Object]:
        """Returns for each path its last change: revision, request and actor."""
        found: dict[str, Object] = {}
        for change in changes[-MAX_PATHS:]:
            writer = {"revision": revision_value(change.revision), "request": change.cause.number, "actor": self.actor(change)[0]}
            for path in paths(change.before, change.object):
                found[path] = writer
        return found

    def _bucket_of(self, resource: str) -> str:
        """Returns the bucket of a resource. Raises UnknownResource."""
        self.kind("pods")
        for bucket, kind in self._known.items():
            if kind.resource == resource:
                return bucket
        self._known.clear()
        self.kind("pods")
        found = next((bucket for bucket, kind in self._known.items() if kind.resource == resource), None)
        if found is None:
            raise UnknownResource(resource)
        return found

    def _record(self, bucket: str, key: str, at: int | None) -> Record[Document] | None:
        """Returns a record now or at a revision; the journal reaches further back than the store."""
        store = self._backend.store
        if at is None:
            return store.bucket(bucket).get(key)
        undone = self.undo_to(at)
        return undone[bucket, key] if (bucket, key) in undone else store.bucket(bucket).get(key)

    def with_kind(self, bucket: str, obj: Object | None) -> Object | None:
        """Returns a stored object with its kind and apiVersion."""
        if obj is None or "kind" in obj:
            return obj
        kind = self.kind(bucket)
        return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}

    def time_of(self, change: Change) -> float:
        """Returns the time of a change by the cluster's clock, in seconds since the epoch."""
        return self._observer.epoch + change.time


def _select_part(
    rows: Sequence[_Row], key: Callable[[_Row], int], *, since: int, until: int | None, before: int | None, limit: int
) -> tuple[Sequence[_Row], bool]:
    """Returns a part of sorted rows, and whether there are more in the direction of reading.

    Args:
        rows: the rows.
        key: returns the number by which they are sorted.
        since: the part begins after this number.
        until: it ends with this number, if not before.
        before: the part has the last rows before this number.
        limit: the maximum number of rows.
    """
    limit = max(0, min(limit, MAX_ROWS))
    start = bisect_right(rows, since, key=key)
    if before is not None:
        end = bisect_left(rows, before, key=key)
        first = max(start, end - limit)
        return rows[first:end], first > start
    end = len(rows) if until is None else bisect_right(rows, until, key=key)
    return rows[start : min(end, start + limit)], start + limit < end


def _records_then(
    bucket: Bucket[Document], undone: Mapping[tuple[str, str], Record[Document] | None], prefix: str, start: str
) -> list[Record[Document]]:
    """Returns the records of a bucket at the revision to which changes were undone, by key."""
    now = {record.key: record for record in bucket.page(prefix, start=start).records}
    for (name, key), record in undone.items():
        if name == bucket.name and key.startswith(prefix) and key >= start:
            now.pop(key, None)
            if record is not None:
                now[key] = record
    return [now[key] for key in sorted(now)]


def _is_sorted(exchanges: Sequence[Exchange]) -> bool:
    return all(one.number < other.number for one, other in pairwise(exchanges))


def _resource_text(plural: str, group: str, subresource: str = "") -> str:
    name = group_resource(group, plural)
    return f"{name}/{subresource}" if subresource else name


def _place_of(key: str) -> tuple[str, str]:
    """Returns the namespace and the name in a key of the store."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def _states_of(bucket: str, obj: Object | None) -> tuple[str, str, str, list[str], int, int]:
    """Returns the values of the columns `_STATES`."""
    if obj is None:
        return UNKNOWN, "-", "", [], 0, 0
    metadata = obj["metadata"]
    references = [one for one in metadata.get("ownerReferences") or () if isinstance(one, dict)]
    owners = [str(one.get("uid", "")) for one in references]
    owner = next((str(one.get("uid", "")) for one in references if one.get("controller")), owners[0] if owners else "")
    created = _seconds_of(metadata.get("creationTimestamp"))
    return *health(bucket, obj), owner, owners, created, int("deletionTimestamp" in metadata)


def _seconds_of(stamp: Any) -> int:
    try:
        return int(datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()) if isinstance(stamp, str) else 0
    except ValueError:
        return 0


def _reason_of(one: Exchange) -> str:
    """Returns the reason of the Status with which a request was refused."""
    if one.status is None or one.status < 400:
        return ""
    answer = one.answer
    reason = answer.get("reason") if isinstance(answer, dict) else None
    return reason[:_MAX_TEXT] if isinstance(reason, str) else ""

"""Compares the objects of two revisions: net differences, who made them, and how many writes there were between.

Invariant: an object whose changes cancel each other is not listed, but its writes are counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fakekube.base.objects import Object
from fakekube.powers.columns import revision_value
from fakekube.powers.differences import differences, is_assigned

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.powers.journal import Change
    from fakekube.powers.rows import Rows
    from fakekube.store import Record


#: The maximum number of objects in a comparison.
MAX_OBJECTS: Final = 5_000


@dataclass(slots=True)
class Comparison:
    """The differences of two revisions. Objects are described by resource, kind, namespace, name, revision and actor."""

    first: int
    last: int
    added: list[Object] = field(default_factory=list)
    removed: list[Object] = field(default_factory=list)
    changed: list[Object] = field(default_factory=list)
    """With `changed`: paths with old and new values, the actor who wrote a path last, and the number of writes."""
    reverted: list[Object] = field(default_factory=list)
    """Objects that were written between the revisions, and are equal at both."""
    actors: dict[str, int] = field(default_factory=dict)
    """Actor → the number of writes between the revisions."""
    more: bool = False
    """Whether there are more than `MAX_OBJECTS` objects."""

    def data(self) -> Object:
        """Returns the comparison as plain data."""
        return {
            "from": revision_value(self.first),
            "to": revision_value(self.last),
            "added": self.added,
            "removed": self.removed,
            "changed": self.changed,
            "reverted": self.reverted,
            "actors": self.actors,
            "more": self.more,
        }

    def __str__(self) -> str:
        lines = [f"+ {_name_of(one)}, by {one['actor']}" for one in self.added]
        lines += [f"- {_name_of(one)}, by {one['actor']}" for one in self.removed]
        for one in self.changed:
            paths = ", ".join(f"{part['path']} {part.get('old')!r} → {part.get('new')!r}" for part in one["changed"])
            lines.append(f"~ {_name_of(one)}: {paths}")
        return "\n".join(lines) or "nothing differs"


def _name_of(one: Object) -> str:
    return f"{one['kind']} {one['namespace']}/{one['name']}" if one["namespace"] else f"{one['kind']} {one['name']}"


def compare(rows: Rows, first: int, last: int, *, namespace: str | None = None, resource: str = "", name: str = "") -> Comparison:
    """Compares two revisions, without changes of leases, events and nodes that are only heartbeats.

    Args:
        rows: of the cluster.
        first, last: the revisions; the later one may be the first.
        namespace, resource, name: only these objects; by default all.

    Raises Compacted and FutureRevision.
    """
    start, end = min(first, last), max(first, last)
    rows.undo_to(start)  # raises
    later = rows.undo_to(end)
    between: dict[tuple[str, str], list[Change]] = defaultdict(list)
    found = Comparison(first, last)
    actors: Counter[str] = Counter()
    for change in rows.journal():
        if start < change.revision <= end and not change.heartbeat:
            place = rows.place(change)
            kind = rows.kind(change.bucket).resource
            if namespace in (None, place[0]) and resource in ("", kind) and name in ("", place[1]):
                between[change.bucket, change.key].append(change)
                actors[rows.actor(change)[0] or change.cause.reason] += 1
    found.actors = dict(actors.most_common())
    for place, changes in sorted(between.items()):
        if len(found.added) + len(found.removed) + len(found.changed) + len(found.reverted) >= MAX_OBJECTS:
            found.more = True
            break
        record = later[place] if place in later else _head(changes)
        before = changes[0].event.previous if changes[0].event is not None else None
        _add(found, rows, changes, before, record, backwards=first > last)
    return found


def _head(changes: list[Change]) -> Record[Document] | None:
    event = changes[-1].event
    return None if event is None else event.record


def _add(
    found: Comparison,
    rows: Rows,
    changes: list[Change],
    old: Record[Document] | None,
    new: Record[Document] | None,
    *,
    backwards: bool,
) -> None:
    if backwards:
        old, new = new, old
    last = changes[-1]
    kind, (namespace, name) = rows.kind(last.bucket), rows.place(last)
    shown = {
        "resource": kind.resource,
        "kind": kind.kind,
        "namespace": namespace,
        "name": name,
        "uid": last.uid,
        "revision": revision_value(last.revision),
        "actor": rows.actor(last)[0],
        "writes": len(changes),
    }
    if old is None and new is None:
        found.reverted.append(shown)
    elif old is None or new is None:
        if old is None and not backwards:  # what made it, and not who wrote it last
            made = next((one for one in reversed(changes) if one.type == "ADDED"), last)
            shown |= {"revision": revision_value(made.revision), "actor": rows.actor(made)[0]}
        (found.added if old is None else found.removed).append(shown)
    else:
        parts = [one for one in differences(old.value.object, new.value.object) if not is_assigned(one.path)]
        if not parts:
            found.reverted.append(shown)
            return
        writers, counts = _writers(rows, changes)
        by = [{**one.data(), "actor": writers.get(one.path, ""), "writes": counts[one.path]} for one in parts]
        found.changed.append({**shown, "changed": by})


def _writers(rows: Rows, changes: list[Change]) -> tuple[dict[str, str], Counter[str]]:
    """Returns for each path who wrote it last, and how often it was written."""
    writers: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for change in changes:
        before, after = change.before, change.object
        if before is not None and after is not None:
            for one in differences(before, after):
                writers[one.path] = rows.actor(change)[0]
                counts[one.path] += 1
    return writers, counts

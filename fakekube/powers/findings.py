"""Findings: patterns in the requests and changes of a cluster that are often mistakes, with the rows that show them.

    fight         two actors set the same field in turns
    hot loop      an actor writes one object again and again, or repeats a refused request
    blind retry   after a 409, an update with the same resourceVersion
    no relist     after a 410, a watch without a list before it
    idle fault    an armed fault that never happened
    no effect     many writes that change nothing
    lost watch    an actor has no watch any more of what it watched

They are hints for people, never verdicts: `fakekube check` judges clients. `Evidence` collects what they need of a cluster.

Invariants: findings are functions of requests and changes; the same input has the same findings. There are at most
`MAX_FINDINGS`. The differences of a change are computed once, and only for objects that several actors write in turns.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from fakekube.base.objects import group_resource
from fakekube.powers.differences import ABSENT, differences, is_assigned
from fakekube.powers.exchange import CLIENT

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.journal import Change
    from fakekube.powers.observation import Observer
    from fakekube.powers.rows import Rows


MAX_FINDINGS: Final = 20

#: How often a field alternates between two actors in a fight.
_ALTERNATIONS: Final = 3
#: Writes of one actor to one object without others', in a hot loop.
_HOT_WRITES: Final = 10
#: Repetitions of a refused request, and the changes within which they happen.
_REPETITIONS: Final = 5
_WITHIN: Final = 10
#: Writes without effect.
_IDLE_WRITES: Final = 20
#: Seconds of the clock without a watch.
_WATCH_LOST: Final = 30.0
_MAX_ROWS: Final = 100
_MAX_PATHS: Final = 200
_WRITES: Final = frozenset({"update", "patch"})


@dataclass(slots=True, frozen=True)
class Asked:
    """What the findings need of a request."""

    number: int
    time: float
    """Seconds by the clock of the cluster."""
    verb: str
    resource: str
    """With its subresource: `deployments.apps/scale`."""
    namespace: str
    name: str
    actor: str
    is_client: bool
    code: int
    """0 while it is in flight."""
    wrote: Sequence[int]
    version: str
    """The resourceVersion in the body of an update, or in the query of a watch or list."""
    ended: str
    """Of a watch: why it ended; "" while it is open."""
    ended_at: float
    """Of a watch that has ended: when, by the clock."""
    changes_before: int
    """The number of changes before it."""


@dataclass(slots=True, frozen=True)
class Written:
    """What the findings need of a change."""

    revision: int
    resource: str
    namespace: str
    name: str
    actor: str
    request: int
    is_client: bool
    heartbeat: bool
    values: Mapping[str, tuple[str, str]]
    """Path of a changed field → its old and new value, as short texts."""


@dataclass(slots=True)
class Finding:
    """One pattern that was found."""

    kind: str
    sentence: str
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    actors: Sequence[str] = ()
    requests: list[int] = field(default_factory=list)
    """The numbers of the requests that show it."""
    changes: list[int] = field(default_factory=list)
    """The revisions of the changes that show it."""

    def data(self) -> dict[str, Any]:
        """Returns the finding as plain data."""
        return {
            "kind": self.kind,
            "sentence": self.sentence,
            "resource": self.resource,
            "namespace": self.namespace,
            "name": self.name,
            "path": self.path,
            "actors": list(self.actors),
            "rows": {"requests": self.requests[:_MAX_ROWS], "changes": self.changes[:_MAX_ROWS]},
        }

    def __str__(self) -> str:
        return f"{self.kind}: {self.sentence}"


def find(
    asked: Sequence[Asked], written: Sequence[Written], idle_faults: Iterable[tuple[str, str]] = (), now: float = 0.0
) -> list[Finding]:
    """Returns the findings, those with the most rows first.

    Args:
        asked: the requests, in the order of their numbers.
        written: the changes, in the order of their revisions.
        idle_faults: the faults that never happened, as texts, and the nearest requests of each.
        now: seconds by the clock of the cluster.
    """
    found = [
        *_fights(written),
        *_hot_writes(written),
        *_repeated_refusals(asked),
        *_blind_retries(asked),
        *_no_relists(asked),
        *_writes_without_effect(asked),
        *_lost_watches(asked, now),
        *(Finding("idle fault", " ".join(f"{fault} never happened{near}".split())) for fault, near in idle_faults),
    ]
    return sorted(found, key=lambda one: -len(one.requests) - len(one.changes))[:MAX_FINDINGS]


def _place(one: Asked | Written) -> str:
    return f"{one.resource} {f'{one.namespace}/' if one.namespace else ''}{one.name}"


# --- Changes ----------------------------------------------------------------------------------------------------------


def _fights(written: Sequence[Written]) -> Iterator[Finding]:
    """Finds a field whose writers alternate: A B A B."""
    histories: dict[tuple[str, str, str, str], list[tuple[Written, str]]] = defaultdict(list)
    for one in written:
        if one.actor and not one.heartbeat:
            for path, (_, new) in list(one.values.items())[:_MAX_PATHS]:
                histories[one.resource, one.namespace, one.name, path].append((one, new))
    for (_, _, _, path), writes in histories.items():
        if len(writes) <= _ALTERNATIONS:
            continue
        run = _longest_alternation(writes)
        if len(run) > _ALTERNATIONS:
            first, last = run[0][0], run[-1][0]
            actors = (first.actor, run[1][0].actor)
            yield Finding(
                "fight",
                f"{path} of {_place(first)} alternated between {actors[0]} and {actors[1]} {len(run) - 1} times "
                f"(revisions {first.revision} to {last.revision})",
                first.resource,
                first.namespace,
                first.name,
                path,
                actors,
                [one.request for one, _ in run if one.request >= 0],
                [one.revision for one, _ in run],
            )


def _longest_alternation(writes: Sequence[tuple[Written, str]]) -> Sequence[tuple[Written, str]]:
    """Returns the longest part in which two actors take turns and set what they set before."""
    best: Sequence[tuple[Written, str]] = ()
    start = 0
    for place in range(1, len(writes) + 1):
        if place < len(writes) and _alternates(writes, start, place):
            continue
        if place - start > len(best):
            best = writes[start:place]
        start = place - 1 if place < len(writes) and writes[place - 1][0].actor != writes[place][0].actor else place
    return best


def _alternates(writes: Sequence[tuple[Written, str]], start: int, place: int) -> bool:
    one, value = writes[place]
    if one.actor == writes[place - 1][0].actor:
        return False
    if place - start < 2:
        return True
    again, before = writes[place - 2]
    return again.actor == one.actor and before == value


def _hot_writes(written: Sequence[Written]) -> Iterator[Finding]:
    """Finds an actor that writes one object many times while nobody else does."""
    runs: dict[tuple[str, str, str], list[Written]] = defaultdict(list)

    def report(run: Sequence[Written]) -> Iterator[Finding]:
        if len(run) > _HOT_WRITES and run[0].is_client:
            first = run[0]
            yield Finding(
                "hot loop",
                f"{first.actor} wrote {_place(first)} {len(run)} times in a row "
                f"(revisions {first.revision} to {run[-1].revision})",
                first.resource,
                first.namespace,
                first.name,
                "",
                (first.actor,),
                [one.request for one in run],
                [one.revision for one in run],
            )

    for one in written:
        if one.heartbeat or not one.actor:
            continue
        run = runs[one.resource, one.namespace, one.name]
        if run and run[-1].actor != one.actor:
            yield from report(run)
            run.clear()
        run.append(one)
    for run in runs.values():
        yield from report(run)


# --- Requests ---------------------------------------------------------------------------------------------------------


def _group(asked: Iterable[Asked], key: Callable[[Asked], Any]) -> dict[Any, list[Asked]]:
    groups: dict[Any, list[Asked]] = defaultdict(list)
    for one in asked:
        groups[key(one)].append(one)
    return groups


def _repeated_refusals(asked: Sequence[Asked]) -> Iterator[Finding]:
    """Finds a refused request that is repeated while next to nothing changes."""
    refused = [one for one in asked if one.is_client and one.code >= 400 and one.code not in (404, 410)]
    for group in _group(refused, lambda one: (one.actor, one.verb, one.resource, one.namespace, one.name, one.code)).values():
        best = start = 0
        for place, one in enumerate(group):
            while one.changes_before - group[start].changes_before > _WITHIN:
                start += 1
            best = max(best, place - start + 1)
        if best > _REPETITIONS:
            first = group[0]
            yield Finding(
                "hot loop",
                f"{first.actor} repeated {first.verb} {_place(first)} {best} times "
                f"within {_WITHIN} changes, and got {first.code}",
                first.resource,
                first.namespace,
                first.name,
                "",
                (first.actor,),
                [one.number for one in group],
            )


def _blind_retries(asked: Sequence[Asked]) -> Iterator[Finding]:
    """After a conflict, the same resourceVersion again."""
    writes = [one for one in asked if one.is_client and one.verb in ("update", "patch") and one.version]
    for group in _group(writes, lambda one: (one.actor, one.resource, one.namespace, one.name)).values():
        numbers = []
        for one, following in pairwise(group):
            if one.code == 409 and following.version == one.version:
                numbers += [one.number, following.number]
        if numbers:
            first = group[0]
            yield Finding(
                "blind retry",
                f"{first.actor} repeated an update of {_place(first)} after a conflict with the same resourceVersion, "
                f"{len(numbers) // 2} times",
                first.resource,
                first.namespace,
                first.name,
                "",
                (first.actor,),
                sorted(set(numbers)),
            )


def _no_relists(asked: Sequence[Asked]) -> Iterator[Finding]:
    """After a 410, a watch without a list."""
    reads = [one for one in asked if one.is_client and one.verb in ("watch", "list")]
    for group in _group(reads, lambda one: (one.actor, one.resource, one.namespace)).values():
        for one, following in pairwise(group):
            expired = one.verb == "watch" and (one.code == 410 or "410" in one.ended)
            if expired and following.verb == "watch" and following.version not in ("", "0"):
                yield Finding(
                    "no relist",
                    f"{one.actor} watched {one.resource} again from {following.version} after a 410, without a list",
                    one.resource,
                    one.namespace,
                    "",
                    "",
                    (one.actor,),
                    [one.number, following.number],
                )
                break


def _writes_without_effect(asked: Sequence[Asked]) -> Iterator[Finding]:
    """Many successful writes of an actor that changed nothing."""
    idle = [one for one in asked if one.is_client and one.verb in _WRITES and 200 <= one.code < 300 and not one.wrote]
    for group in _group(idle, lambda one: (one.actor, one.resource)).values():
        if len(group) > _IDLE_WRITES:
            first = group[0]
            yield Finding(
                "no effect",
                f"{first.actor} sent {len(group)} writes of {first.resource} that changed nothing",
                first.resource,
                "",
                "",
                "",
                (first.actor,),
                [one.number for one in group],
            )


def _lost_watches(asked: Sequence[Asked], now: float) -> Iterator[Finding]:
    """Finds an actor that watched a resource and has not done so for a while, though it still sends requests."""
    by_actor = _group((one for one in asked if one.is_client), lambda one: one.actor)
    for actor, requests in by_actor.items():
        latest = requests[-1].time
        watches = [one for one in requests if one.verb == "watch" and one.code == 200]
        for (resource, namespace), group in _group(watches, lambda one: (one.resource, one.namespace)).items():
            if any(not one.ended for one in group):
                continue
            last = max(group, key=lambda one: one.ended_at)
            if now - last.ended_at >= _WATCH_LOST and latest > last.ended_at:
                yield Finding(
                    "lost watch",
                    f"{actor} has not watched {resource} for {now - last.ended_at:.0f} s of the clock; the watch {last.ended}",
                    resource,
                    namespace,
                    "",
                    "",
                    (actor,),
                    [last.number],
                )


# --- What the findings need of the requests and changes of a cluster --------------------------------------------------


#: The numbers of latest requests and changes in which findings are looked for.
_REQUESTS: Final = 10_000
_CHANGES: Final = 10_000
#: Changes of an object by alternating actors from which on their differences are computed.
_TURNS: Final = 3
_MAX_VALUE: Final = 80
_VERSIONED: Final = frozenset({"update", "patch", "watch", "list"})


class Evidence:
    """The findings of one cluster.

    Args:
        observer, rows: of the cluster.
    """

    def __init__(self, observer: Observer, rows: Rows) -> None:
        self._observer, self._rows = observer, rows
        self._values: dict[int, Mapping[str, tuple[str, str]]] = {}
        self._asked: dict[int, Asked] = {}

    def findings(self) -> list[Finding]:
        """Returns the present findings."""
        changes = [change for change in self._rows.journal()[-_CHANGES:] if change.cause.number >= 0]
        kept = self._observer.recorder.list_exchanges()[-_REQUESTS:]
        requests = self._observer.requests
        idle = [(str(fault), requests.nearest(fault.criteria)) for fault in self._observer.faults if not fault.hits]
        afters = [change.after for change in changes]
        asked = [self._ask(one, bisect_left(afters, one.number)) for one in kept if one.is_resource_request]
        return find(asked, self._list_writes(changes), idle, self._observer.clock.now().timestamp())

    # --- Requests -----------------------------------------------------------------------------------------------------

    def _ask(self, one: Exchange, changes_before: int) -> Asked:
        known = self._asked.get(one.number)
        if known is not None:
            return known
        actor, side = self._observer.actors.name_actor(one.agent, one.user, one.own)
        resource = group_resource(one.group, one.resource)
        started = self._observer.epoch + one.arrived
        ended_at = started if one.ended_at is None else started + (one.ended_at - one.began)
        is_client = side == CLIENT
        asked = Asked(
            one.number,
            started,
            "" if "dryRun" in one.query else one.verb,
            f"{resource}/{one.subresource}" if one.subresource else resource,
            one.namespace,
            one.name,
            actor,
            is_client,
            one.status or 0,
            one.wrote,
            _version_of(one) if is_client and one.verb in _VERSIONED else "",
            one.ended or "",
            ended_at,
            changes_before,
        )
        if one.status is not None and (one.events is None or one.ended is not None):
            if len(self._asked) > 2 * _REQUESTS:
                self._asked.clear()
            self._asked[one.number] = asked
        return asked

    # --- Changes ------------------------------------------------------------------------------------------------------

    def _list_writes(self, changes: Sequence[Change]) -> list[Written]:
        contested = self._find_contested(changes)
        found = []
        for change in changes:
            kind = self._rows.kind(change.bucket)
            namespace, name = self._rows.place(change)
            actor, side = self._rows.actor(change)
            values = self._values_of(change) if (change.bucket, change.key) in contested else {}
            found.append(
                Written(
                    change.revision,
                    kind.resource,
                    namespace,
                    name,
                    actor,
                    change.cause.number,
                    side == CLIENT,
                    change.heartbeat,
                    values,
                )
            )
        return found

    def _find_contested(self, changes: Sequence[Change]) -> set[tuple[str, str]]:
        """Returns the objects that several actors write in turns."""
        writers: dict[tuple[str, str], list[str]] = defaultdict(list)
        for change in changes:
            if not change.heartbeat and change.type == "MODIFIED":
                writers[change.bucket, change.key].append(self._rows.actor(change)[0])
        return {place for place, actors in writers.items() if sum(one != other for one, other in pairwise(actors)) >= _TURNS}

    def _values_of(self, change: Change) -> Mapping[str, tuple[str, str]]:
        known = self._values.get(change.revision)
        if known is None:
            before, after = change.before, change.object
            known = {}
            if before is not None and after is not None:
                known = {
                    one.path: (_text(one.old), _text(one.new)) for one in differences(before, after) if not is_assigned(one.path)
                }
            if len(self._values) > 2 * _CHANGES:
                self._values.clear()
            self._values[change.revision] = known
        return known


def _text(value: Any) -> str:
    if value is ABSENT:
        return ""
    try:
        return json.dumps(value, sort_keys=True)[:_MAX_VALUE]
    except (TypeError, RecursionError):
        return "…"


def _version_of(one: Exchange) -> str:
    """Returns the resourceVersion with which a client wrote or read."""
    if one.verb in ("watch", "list"):
        return parse_qs(one.raw_query).get("resourceVersion", [""])[0]
    body = one.body
    metadata = body.get("metadata") if isinstance(body, dict) else None
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""

"""What the findings need of the requests and changes of a cluster, and the findings themselves.

Invariant: the differences of a change are computed once, and only for objects that several actors write in turns.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from fakekube.powers.actors import CLIENT
from fakekube.powers.differences import ABSENT, differences, is_assigned
from fakekube.powers.findings import Asked, Finding, Written, find

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.journal import Change
    from fakekube.powers.observation import Observer
    from fakekube.powers.rows import Rows


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

    # ------------------------------------------------------------ requests

    def _ask(self, one: Exchange, changes_before: int) -> Asked:
        known = self._asked.get(one.number)
        if known is not None:
            return known
        actor, side = self._observer.actors.name_actor(one.agent, one.user, one.own)
        resource = f"{one.resource}.{one.group}" if one.group else one.resource
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

    # ------------------------------------------------------------ changes

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

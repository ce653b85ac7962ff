"""Judges of traces that several rules share.

Invariant: what a judge calls a failure is in the trace; how long something took is not judged here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from fakekube.checker.rule import Verdict
from fakekube.checker.trace import Call, Stream, StreamKey, excerpt, failed

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell

__all__ = [
    "judge_backoff",
    "judge_convergence",
    "judge_doubled",
    "judge_expired",
    "judge_misread",
    "judge_process",
    "judge_resumption",
    "judge_untold",
    "revision_of",
]

#: So many watches from an expired revision are no mistake of timing.
_REPEATED = 2

#: Calls a second on one stream, and so many of them, that are called a hot loop.
_HOT, _LEAST_CALLS = 4.0, 10
#: Seconds of failures that are needed to judge pauses.
_LEAST_SECONDS = 2.0
#: So many attempts in the second half, and such a part of those in the first half, are suspected.
_LEAST_ATTEMPTS, _FLAT = 4, 0.75
#: Seconds between two calls of one attempt.
_TOGETHER = 0.1


def revision_of(call: Call) -> int:
    """Returns the revision from which a call asks; 0 if it does not say."""
    return int(call.asked_revision) if call.asked_revision.isdigit() else 0


def judge_expired(spell: Spell) -> Verdict | None:
    """Says whether a client asks again for revisions that it was told are expired; None if it does not.

    `spell.memory["oldest"]` is the oldest revision that is not expired.
    """
    oldest: int = spell.memory.get("oldest", 0)
    for stream in spell.streams_since().values():
        stale = [call for call in stream.calls if call.resumes and revision_of(call) < oldest]
        for told in filter(was_told_expired, stale):
            expired = max(revision_of(told), told.delivered())
            repeated = [call for call in stale if call.number > told.number and revision_of(call) <= expired]
            if len(repeated) >= _REPEATED:
                return Verdict.failed(
                    f"{len(repeated)} watches of {stream.key} from resourceVersion {repeated[0].asked_revision} "
                    "after it was told that this revision is expired (410)",
                    *excerpt(stream.calls),
                )
    return None


def was_told_expired(call: Call) -> bool:
    """Was a watch answered that its revision is expired?"""
    return call.status == 410 or call.ended == "error 410" or any(event.type == "ERROR" for event in call.events)


def judge_backoff(streams: Sequence[Stream]) -> Verdict | None:
    """Says whether a client pauses longer and longer between attempts that fail; None if it does.

    What comes together is one attempt: a reflector may try a watch, a list and a watch again before it pauses. The second half
    of the time since the first failure is judged, because the first attempt may follow at once.
    """
    suspicion: Verdict | None = None
    for stream in streams:
        first = next((call for call in stream.calls if failed(call)), None)
        if first is None:
            continue
        length = stream.calls[-1].at - first.at
        half = first.at + length / 2
        late = [call for call in stream.calls if call.at >= half]
        if length < _LEAST_SECONDS or not any(map(failed, late)):
            continue
        shown = f"{len(stream.calls)} attempts in {length:.1f} s on {stream.key}, {len(late)} of them in the second half"
        if len(late) >= _LEAST_CALLS and len(late) / (length / 2) > _HOT:
            return Verdict.failed(f"no backoff: {shown}", *excerpt(stream.calls))
        before, after = (_attempts(stream.calls, first.at, half), _attempts(stream.calls, half, stream.calls[-1].at + 1.0))
        if after >= _LEAST_ATTEMPTS and after >= _FLAT * before:
            suspicion = Verdict.warned(f"the pauses do not grow: {shown}", *excerpt(stream.calls))
    return suspicion


def _attempts(calls: Sequence[Call], begin: float, end: float) -> int:
    """Returns how many attempts began within a time."""
    times = [call.at for call in calls if begin <= call.at < end]
    return sum(later - earlier > _TOGETHER for earlier, later in pairwise([-1.0, *times]))


def judge_misread(calls: Sequence[Call], mark: str) -> Verdict | None:
    """Says whether a client takes something that is no object for one: writes with a text that only a Status had, or writes to
    an object without a name; None if it does not."""
    for call in calls:
        nameless = call.verb in ("update", "patch", "delete") and not call.name
        if call.is_write and (nameless or call.status == 405 or call.mentions(mark)):
            return Verdict.failed(f"what is no object was taken for one: {call.verb} {call.path}", *excerpt([call]))
    return None


def judge_resumption(spell: Spell, ended: Sequence[Call], *, bookmarks: bool) -> Verdict | None:
    """Says whether a client resumes watches that have ended normally from before what they have delivered; None if it does not.

    `bookmarks`: whether bookmarks count as delivered.
    """
    for one in ended:
        following = spell.trace.streams()[one.stream].after(one)
        last = one.delivered(bookmarks=bookmarks)
        if following is not None and following.resumes and revision_of(following) < last:
            what = "a bookmark had moved it on to" if bookmarks else "it has delivered events up to"
            return Verdict.failed(
                f"the watch of {one.stream} was resumed from resourceVersion {following.asked_revision}, though {what} {last}",
                *excerpt([one, following]),
            )
    return None


def judge_untold(spell: Spell) -> Verdict | None:
    """Says whether a client watches from a revision that it was not told of this resource: one of another resource, or one that
    it has computed; None if it does not."""
    calls = spell.trace.since()
    told: dict[str, set[int]] = {}
    unreadable: set[str] = set()
    for call in calls:
        known = told.setdefault(call.collection, set())
        known.update(event.revision for event in call.events if call.is_watch)
        if call.revision:
            known.add(call.revision)
        elif call.succeeded and not call.is_watch:
            unreadable.add(call.collection)
    for call in calls:
        asked = revision_of(call)
        if not call.resumes or call.collection in unreadable or asked in told[call.collection]:
            continue
        others = sorted(resource for resource, known in told.items() if asked in known)
        what = f"which it was told of {others[0]} only" if others else "which it was never told"
        return Verdict.failed(
            f"watches {call.stream} from resourceVersion {asked}, {what}", *excerpt(spell.trace.streams()[call.stream].calls)
        )
    return None


def judge_doubled(spell: Spell) -> Verdict | None:
    """Says whether a client keeps more watches of a stream open than on the calm cluster; None if not, or not any more after some
    seconds."""
    usual = Counter(call.stream for call in spell.calm.spell.trace.open_watches())

    def more() -> list[StreamKey]:
        opened = Counter(call.stream for call in spell.trace.open_watches())
        return [key for key, count in opened.items() if count > max(usual[key], 1)]

    if spell.process is None:
        return None
    spell.wait(_BEGINS_WITHIN)
    if spell.await_until(lambda: not more(), _CLOSES_WITHIN):
        return None
    key = more()[0]
    same = [call for call in spell.trace.open_watches() if call.stream == key]
    return Verdict.failed(f"keeps {len(same)} watches of {key} open, where it had {max(usual[key], 1)}", *excerpt(same))


#: Seconds within which a second loop begins to watch.
_BEGINS_WITHIN = 3.0
#: Seconds within which a client closes a watch that it does not read any more.
_CLOSES_WITHIN = 5.0


# ---------------------------------------------------------------- of every spell


def judge_process(spell: Spell) -> Verdict | None:
    """Says whether a client has ended by itself, or was in a hot loop; None if neither."""
    if spell.ended:
        if spell.bench.ends_by_itself:
            return Verdict.not_exercised("the client also ends by itself on a calm cluster", spell.ended)
        if _has_lost_its_lease(spell):
            return Verdict.not_exercised(
                "the client could not renew its lease in time, and ended as a leader has to", spell.ended
            )
        return Verdict.failed(spell.ended, *spell.excerpt(), *(f"printed: {line}" for line in spell.printed))
    return Verdict.failed(f"hot loop: {spell.loop}", *spell.excerpt()) if spell.loop else None


def _has_lost_its_lease(spell: Spell) -> bool:
    """Had a leader that ended not renewed its lease for a good part of the lease's duration? Then it may not go on."""
    renewed = [
        call
        for call in spell.trace
        if call.collection == "leases.coordination.k8s.io" and call.is_write and call.succeeded and call.at >= spell.started_at
    ]
    if not renewed:
        return False
    answer = renewed[-1].answer
    told = (answer.get("spec") or {}).get("leaseDurationSeconds") if isinstance(answer, dict) else None
    return spell.ended_at - renewed[-1].at > _LATE_RENEWAL * (told or _USUAL_DURATION)


#: The part of a lease's duration after which a leader that has not renewed it may stop leading; and the duration, in seconds,
#: of a lease whose format is not read here.
_LATE_RENEWAL, _USUAL_DURATION = 0.5, 15.0


def judge_convergence(spell: Spell) -> Verdict | None:
    """Says what of the reactions did not come; None if all did."""
    if spell.missing:
        copy, elements = spell.missing[0]
        what = f"on a calm cluster the client {', '.join(map(str, elements[:3]))}"
        text = f"no reaction to {copy.names()[0]} within {spell.now - copy.created_at:.0f} s: {what}"
    elif spell.untold:
        copy = spell.untold[0]
        text = (
            f"the client never asked for what it missed: no list or watch has told it of {copy.names()[0]} "
            f"within {spell.now - copy.created_at:.0f} s"
        )
    elif spell.unmet is not None:
        copy = spell.unmet
        text = f"an expected sign for {copy.names()[0]} is not there after {spell.now - copy.created_at:.0f} s"
    else:
        return None
    return Verdict.failed(text, *spell.excerpt(), by_time=not _has_given_up(spell))


def _has_given_up(spell: Spell) -> bool:
    """Has the client not sent anything for so long, with no watch open, that this is no question of time?"""
    latest = max((call.end or spell.now for call in spell.trace.since(spell.provoked_at)), default=0.0)
    return not spell.trace.open_watches() and spell.now - latest > _GIVEN_UP


#: Seconds without any request, and without a watch, after which a client has given up.
_GIVEN_UP = 20.0

"""Functions that judge a trace, shared by several rules. Each returns a verdict, or None if the client did nothing wrong.

Invariant: a failure is visible in the trace. Only `judge_convergence` depends on time.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from fakekube.checker.reaction import Copy, children_of
from fakekube.checker.trace import CLOSED, LEASES, Call, Stream, StreamKey, excerpt, read_number
from fakekube.checker.verdict import Symptom, Verdict
from fakekube.checker.writes import is_apply
from fakekube.controllers.client import ApiError, UnknownResource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fakekube.checker.trial import Trial

#: How many watches from an expired revision are a failure: a single one may be a race.
_REPEATED = 2


def revision_of(call: Call) -> int:
    """Returns the resourceVersion of a request as a number; 0 if it has none."""
    return read_number(call.asked_revision)


def judge_expired(trial: Trial, oldest: int) -> Verdict | None:
    """Judges whether the client watches from a revision again after a 410 for this revision; `oldest` is the oldest revision that
    is not expired."""
    for stream in trial.streams_since().values():
        stale = [call for call in stream.calls if call.resumes and revision_of(call) < oldest]
        for refused in filter(reports_expired, stale):
            expired = max(revision_of(refused), refused.newest_delivered())
            repeated = [call for call in stale if call.number > refused.number and revision_of(call) <= expired]
            if len(repeated) >= _REPEATED * max(trial.baseline.watches.get(stream.key, 1), 1):
                return Verdict.failure(
                    f"{len(repeated)} watches of {stream.key} from resourceVersion {repeated[0].asked_revision} "
                    "after the server answered that this revision is expired (410)",
                    *excerpt(stream.calls),
                )
    return None


def reports_expired(call: Call) -> bool:
    """Reports whether the answer of a watch was that its revision is expired."""
    return call.status == 410 or call.ended == "error 410" or any(event.type == "ERROR" for event in call.events)


def judge_misread_status(trial: Trial, mark: str) -> Verdict | None:
    """Judges whether the client treats a Status or a bookmark as an object of the resource.

    It does if it writes `mark`, a text that only the Status contained, writes to an object without a name, or asks for one with a
    name that nobody has ever used: such as `undefined`, which is what some languages make of a name that is not there.
    """
    what = "a Status or bookmark was treated as an object"
    for call in trial.trace.since(trial.provoked_at):
        nameless = call.verb in ("update", "patch", "delete") and not call.name
        if call.is_write and (nameless or call.status == 405 or call.mentions(mark)):
            return Verdict.failure(f"{what}: {call.verb} {call.path}", *excerpt([call]))
    strange = _find_strange_request(trial)
    if strange is None:
        return None
    verdict = Verdict.failure if strange.name in _NAMES_OF_NOTHING else Verdict.warning
    return verdict(f"{what}: {strange.verb} {strange.path}, a name that nothing has had", *excerpt([strange]))


#: What languages write in a path instead of a name that is not there.
_NAMES_OF_NOTHING = frozenset({"undefined", "null", "None", "none", "nil", "<nil>", "NaN", "[object Object]", "%!s(<nil>)"})


def _find_strange_request(trial: Trial) -> Call | None:
    """Returns a request for an object of a watched resource that does not exist, and whose name was never told to the client,
    written by it, asked for in the baseline run, or made from the name of a copy."""
    watched = set(trial.baseline.streams.values()) - {LEASES}
    tokens = [copy.token for copy in trial.copies]
    usual: set[str] | None = None
    for call in trial.trace.since(trial.provoked_at):
        if call.status != 404 or not call.name or call.collection not in watched or any(token in call.name for token in tokens):
            continue
        if usual is None:
            usual = {one.name for one in trial.baseline.trial.trace.since()}
        others = [one for one in trial.trace.since() if one.succeeded and one.name != call.name]
        told = (one.has_delivered(call.name) or (one.is_write and one.mentions(call.name)) for one in others)
        if call.name not in usual and not any(told):
            return call
    return None


def judge_resumption(trial: Trial, ended: Sequence[Call], *, bookmarks: bool) -> Verdict | None:
    """Judges whether the client resumes watches that ended normally from an older revision than they have delivered.

    Args:
        trial: the run.
        ended: the watches that ended.
        bookmarks: whether the revision of a bookmark counts as delivered.
    """
    for one in ended:
        # after an error it may go back to what it has finished
        if trial.baseline.has_several_watches(one.stream) or not one.ended_normally or _was_silent(trial, one):
            continue
        stream = trial.trace.streams()[one.stream]
        following = stream.next_watch(one) if trial.baseline.is_shared(one.stream) else stream.next_call(one)
        last = one.newest_delivered(bookmarks=bookmarks)
        if following is not None and following.resumes and revision_of(following) < last:
            what = "it has delivered events and bookmarks up to" if bookmarks else "it has delivered events up to"
            return Verdict.failure(
                f"the watch of {one.stream} was resumed from resourceVersion {following.asked_revision}, though {what} {last}",
                *excerpt([one, following]),
            )
    return None


def _was_silent(trial: Trial, watch: Call) -> bool:
    """Reports whether a watch was silent for so long before an event that the client may have given it up unread."""
    times = [watch.at, *(event.at for event in watch.events)]
    return any(after - before > trial.idle_limit() for before, after in pairwise(times))


def judge_unknown_revision(trial: Trial) -> Verdict | None:
    """Judges whether the client watches from a revision that it never received for this resource: one of another resource, or a
    computed one."""
    calls = trial.trace.since()
    received: dict[str, set[int]] = {}
    unreadable: set[str] = set()
    for call in calls:
        known = received.setdefault(call.collection, set())
        known.update(event.revision for event in call.events if call.is_watch)
        if call.revision:
            known.add(call.revision)
        elif call.succeeded and not call.is_watch:
            unreadable.add(call.collection)
    for call in calls:
        asked = revision_of(call)
        if not call.resumes or call.collection in unreadable or asked in received[call.collection]:
            continue
        others = sorted(resource for resource, known in received.items() if asked in known)
        what = f"which it received for {others[0]} only" if others else "which it never received"
        return Verdict.failure(
            f"watches {call.stream} from resourceVersion {asked}, {what}", *excerpt(trial.trace.streams()[call.stream].calls)
        )
    return None


def judge_start_of_watch(trial: Trial) -> Verdict | None:
    """Judges whether the client watches without a revision, or from 0, after a list, or after a watch of what it has listed: it
    misses what was deleted in between. What it only watches, it may watch anew."""
    found: Verdict | None = None
    for stream in trial.trace.streams().values():
        is_listed = any(one.succeeded for one in stream.lists) and not trial.baseline.is_shared(stream.key)
        for before, call in pairwise(stream.calls if is_listed else ()):
            is_first = before.at < trial.started_at <= call.at  # of a client that was started again
            if not call.is_watch or call.resumes or call.sends_initial_events or is_first:
                continue
            follows = before.is_list and before.succeeded and before.number + _BETWEEN > call.number
            if not follows and not before.resumes:
                continue
            text = (
                f"watches {stream.key} from resourceVersion {call.asked_revision or 'unset'} after its "
                f"{'list' if follows else 'watch'}: it misses what is deleted in between"
            )
            if follows:
                return Verdict.failure(text, *trial.excerpt([before, call]))
            found = found or Verdict.warning(text, *trial.excerpt([before, call]))
    return found


#: A watch belongs to the list before it if fewer other requests than this came in between.
_BETWEEN = 10


def judge_stuck_revision(trial: Trial) -> Verdict | None:
    """Judges whether the client watches from one revision again and again, and closes each watch although it has delivered newer
    events."""
    for stream in trial.trace.streams().values():
        if trial.baseline.has_several_watches(stream.key):
            continue
        rejected: dict[str, list[Call]] = {}
        for call in stream.watches:
            if call.resumes and call.ended == CLOSED and call.newest_delivered() > revision_of(call):
                rejected.setdefault(call.asked_revision, []).append(call)
        for revision, calls in rejected.items():
            if len(calls) >= _STUCK:
                return Verdict.failure(
                    f"watches {stream.key} from resourceVersion {revision} {len(calls)} times and closes each watch after it has "
                    f"delivered newer events, up to {calls[-1].newest_delivered()}",
                    *trial.excerpt(calls),
                )
    return None


#: How many times a client closes a watch from one revision before it is stuck.
_STUCK = 4


def judge_unfollowed_lists(trial: Trial) -> Verdict | None:
    """Judges whether the client repeats a whole list of a stream that it watches, without a watch after any of these lists."""
    for key, stream in trial.trace.streams().items():
        if key not in trial.baseline.streams or trial.baseline.is_shared(key):
            continue
        row: list[Call] = []
        for call in stream.calls:
            if call.is_watch:
                row = []
            elif call.status == 200 and not call.query.get("continue") and not stream.is_watched_at(call.at):
                row.append(call)
            if len(row) >= _UNFOLLOWED:
                return Verdict.failure(
                    f"lists {key} {len(row)} times within {row[-1].at - row[0].at:.1f} s, and watches after none of these lists",
                    *trial.excerpt(row),
                )
    return None


#: How many lists without a watch are a failure.
_UNFOLLOWED = 6


def judge_lists_beside_watch(trial: Trial) -> Verdict | None:
    """Judges whether the client repeats a whole list of a stream that it watches, although nothing has changed in between."""
    for key, stream in trial.trace.streams().items():
        if key not in trial.baseline.streams or trial.baseline.has_several_watches(key):
            continue
        row: list[Call] = []
        for call in stream.lists:
            whole = call.status == 200 and not call.query.get("continue") and stream.is_watched_at(call.at)
            if not whole or not row or call.revision is None or call.revision != row[-1].revision:
                row = []
            if whole:
                row.append(call)
            if len(row) >= _BESIDE and not any(one.is_write and row[0].at < one.at < row[-1].at for one in trial.trace):
                often = f"{len(row)} times within {row[-1].at - row[0].at:.1f} s"
                return Verdict.warning(f"lists {key} {often}, while its watch is open and nothing changes", *trial.excerpt(row))
    return None


#: How many lists of the same revision beside an open watch are suspicious.
_BESIDE = 5


def judge_refused_writes(trial: Trial) -> Verdict | None:
    """Judges whether all writes of one kind are refused as invalid in the baseline run, and repeated: they never succeed."""
    if trial.rule is not None:  # a provocation may be the reason
        return None
    kinds: dict[tuple[str, str], list[Call]] = {}
    for call in trial.trace.since():
        if call.is_write:
            kinds.setdefault((call.verb, call.resource), []).append(call)
    for (verb, resource), calls in kinds.items():
        repeated = max(Counter(call.path for call in calls).values())
        if repeated >= _NEVER_ACCEPTED and all(call.status in _INVALID for call in calls):
            message = calls[-1].answer.get("message") if isinstance(calls[-1].answer, dict) else ""
            return Verdict.warning(
                f"each {verb} of {resource} was refused with {calls[-1].status}, {len(calls)} times: {message}",
                *trial.excerpt(calls),
            )
    return None


#: The status codes by which the API says that a request cannot succeed, and how often one write is repeated then.
_INVALID, _NEVER_ACCEPTED = frozenset({400, 422}), 4


def judge_late_reaction(trial: Trial) -> Verdict | None:
    """Judges whether the client reacts to a copy only after it has listed or watched again, although an open watch had delivered
    the copy long before: it has lost the event."""
    if not trial.baseline.reaction.visible:
        return None
    late = max(_LATE, _TIMES_LATE * trial.baseline.reaction_seconds)
    calls = trial.trace.since()
    streams = [stream for key, stream in trial.trace.streams().items() if key in trial.baseline.delivering]
    for copy in trial.copies:
        reaction = next((call for call in calls if call.number > copy.mark and call.is_write and call.mentions(copy.token)), None)
        if reaction is None or not copy.judged or copy.created_at < trial.started_at:
            continue
        for stream in streams:
            told = _find_time_told(stream, copy)
            if told is None or reaction.at - told < late:
                continue
            again = [call for call in stream.calls if told < call.at < reaction.at]
            disturbed = [call for call in calls if told - _DISTURBED < call.at < reaction.at and _is_disturbed(call)]
            if again and not disturbed:
                return Verdict.warning(
                    f"reacts to {copy.names()[0]} {reaction.at - told:.0f} s after {stream.key} had delivered it, and only when "
                    "it has asked again; usually it takes "
                    f"{trial.baseline.reaction_seconds:.1f} s",
                    *trial.excerpt([*again, reaction]),
                    by_time=True,
                )
    return None


def _find_time_told(stream: Stream, copy: Copy) -> float | None:
    """Returns when a watch that was open before a copy was made has delivered it; None if none has."""
    names = copy.names()
    times = (event.at for watch in stream.watches if watch.number <= copy.mark for event in watch.events if event.name in names)
    return next(times, None)


def _is_disturbed(call: Call) -> bool:
    """Reports whether a request was refused or met a fault, so that the client may pause."""
    return call.dropped or (call.status or 0) >= 400 or bool(call.exchange.fault)


#: A reaction is late after so many seconds, and so many times the usual ones. Requests that failed may delay it by so many more.
_LATE, _TIMES_LATE, _DISTURBED = 5.0, 100, 40.0


def judge_lost_conditions(trial: Trial) -> Verdict | None:
    """Judges whether a write of the client has removed a condition from a status that the client has never set itself."""
    writes = [call for call in trial.trace.since() if call.is_write and call.succeeded]
    statuses = [call for call in writes if call.resource != call.collection]  # also other subresources may write conditions
    written = [call for call in statuses if not is_apply(call)]  # which replaces a whole list only if its definition says so
    culprits = {call.revision: call for call in written}
    for resource, name, namespace in {(call.collection, call.name, call.namespace): None for call in written[:_LOOKED_AT]}:
        try:
            versions = trial.cluster.history(resource, name, namespace or None)
        except (ApiError, UnknownResource):  # its definition is deleted
            continue
        types = [_condition_types(version.object) for version in versions]
        own: set[str] = set()
        for number in range(1, len(versions)):
            before, after, call = types[number - 1], types[number], culprits.get(versions[number].revision)
            own |= after - before if call else set()
            lost = sorted(before - after - own)
            if call and lost and versions[number].type == "MODIFIED":
                return Verdict.failure(
                    f"{call.verb} {call.path} has removed the condition {lost[0]}, which others have set", *trial.excerpt([call])
                )
    return None


def _condition_types(obj: Mapping[str, Any]) -> set[str]:
    """Returns the types of the conditions in the status of an object."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return {str(one.get("type")) for one in found if isinstance(one, dict)} if isinstance(found, list) else set()


#: How many writes of a run tell whose conditions are compared.
_LOOKED_AT = 100


def blame_for_owner(trial: Trial, text: str, calls: Sequence[Call]) -> Verdict:
    """Returns the verdict for writes to the child of another owner: a failure if the client's children have controllers, and a
    warning if they only name their owner."""
    verdict = Verdict.failure if trial.baseline.controls_children else Verdict.warning
    return verdict(text, *trial.excerpt(calls))


def judge_extra_children(trial: Trial, resources: Mapping[str, int]) -> Verdict | None:
    """Judges whether a copy has more children than in the baseline run. An object that names several copies is the child of none:
    a client may make something for each pair.

    Args:
        trial: the run.
        resources: the resources of the children to count, with their number in the reaction of the baseline run.
    """
    for resource, count in resources.items():
        found = {copy.token: children_of(trial.cluster, copy, resource) for copy in (*trial.past, *trial.copies)}
        named = Counter(child["metadata"]["uid"] for children in found.values() for child in children)
        for copy in trial.copies:
            children = [] if copy.deleted else [child for child in found[copy.token] if named[child["metadata"]["uid"]] == 1]
            if len(children) <= count or len(children) <= (usual := trial.baseline.usual_children(resource)):
                continue
            names = ", ".join(sorted(child["metadata"]["name"] for child in children)[:4])
            creates = [call for call in trial.trace.since(copy.mark) if call.verb == "create" and call.resource == resource]
            return Verdict.failure(
                f"{len(children)} {resource} for {copy.names()[0]} ({names}); in the baseline run there are {usual}",
                *excerpt(creates),
            )
    return None


def judge_duplicate_watches(trial: Trial) -> Verdict | None:
    """Judges whether the client keeps more watches of a stream open than in the baseline run; extra ones may exist for some
    seconds."""
    usual = trial.baseline.watches

    def find_extra() -> list[StreamKey]:
        opened = Counter(call.stream for call in trial.trace.open_watches())
        return [key for key, count in opened.items() if count > max(usual.get(key, 1), 1)]

    if trial.process is None:
        return None
    trial.wait(_BEGINS_WITHIN)
    if trial.await_until(lambda: not find_extra(), _CLOSES_WITHIN):
        return None
    key = find_extra()[0]
    same = [call for call in trial.trace.open_watches() if call.stream == key]
    return Verdict.failure(f"keeps {len(same)} watches of {key} open, where it had {max(usual.get(key, 1), 1)}", *excerpt(same))


#: Seconds within which a second watch loop would start.
_BEGINS_WITHIN = 3.0
#: Seconds within which the client has to close a watch that it does not read any more.
_CLOSES_WITHIN = 5.0


#: Why a leader may have ended.
LOST_ITS_LEASE = "the client could not renew its lease in time, and ended as a leader must"


def judge_process(trial: Trial) -> Verdict | None:
    """Judges whether the client has ended by itself, or sends requests without a pause."""
    if trial.ended:
        if has_lost_its_lease(trial):
            return Verdict.not_exercised(LOST_ITS_LEASE, trial.ended)
        printed = [f"printed: {line}" for line in trial.printed]
        likeness = _without_numbers(trial.ended) if printed else ""
        return Verdict.failure(
            trial.ended,
            *trial.excerpt(),
            *printed,
            by_chance=trial.was_killed,
            symptom=Symptom.ENDED,
            likeness=likeness,
            calm=trial.calm_seconds(),
        )
    if trial.loop:
        return Verdict.failure(f"hot loop: {trial.loop}", *trial.excerpt(), symptom=Symptom.LOOP, likeness="loop")
    return None


def _without_numbers(text: str) -> str:
    """Returns a text without what differs between equal failures: numbers, and the tokens of copies."""
    return re.sub(r"\b\w*\d\w*\b", "…", text)


def has_lost_its_lease(trial: Trial) -> bool:
    """Reports whether the client was a leader that ended because it had not renewed its lease for too long.

    The answer of the last renewal may have come too late, and the last write may release the lease, so that the pauses before
    count, too. A client that does not say why it ended must also have renewed later than it usually does.
    """
    renewed = [
        call
        for call in trial.trace
        if call.collection == LEASES and call.is_write and call.succeeded and call.at >= trial.started_at
    ]
    if not renewed:
        return False
    answer = renewed[-1].answer
    spec = answer.get("spec") if isinstance(answer, dict) else None
    duration = (spec or {}).get("leaseDurationSeconds") or _USUAL_DURATION
    times = [call.at for call in renewed] + [trial.time_ended()]
    pauses = [after - before for before, after in pairwise(times)]
    usual = median(pauses[:-3]) if len(pauses) > 3 and not _LEADERSHIP.search("\n".join(trial.printed)) else 0.0
    is_silent = not any(trial.printed) and trial.session.slowness() >= _BUSY
    unread = times[-1] - times[-3] if is_silent and len(times) > 2 else 0.0
    return max(pauses[-3:]) > max(_LATE_RENEWAL * duration, _TIMES_USUAL * usual) or unread > _UNREAD * duration


#: What a client prints that ends because it does not lead any more.
_LEADERSHIP = re.compile(r"\b(lease|leader|leading|election|lock)", re.IGNORECASE)
#: The part of a lease's duration, and how many times the usual pause between two renewals, after which a leader may stop leading:
#: it gives up a request that takes too long, and the server has performed it. The duration in seconds that is assumed for a lease
#: whose format cannot be read.
_LATE_RENEWAL, _TIMES_USUAL, _USUAL_DURATION = 0.25, 1.8, 15.0
#: From this slowness on a client that prints nothing may not have read the answer of its last renewal. Then it may stop leading
#: if the renewal before is older than this part of the lease's duration.
_BUSY, _UNREAD = 2.0, 0.5


def judge_convergence(trial: Trial) -> Verdict | None:
    """Judges whether the client has reacted to all copies."""
    if trial.missing:
        copy, effects = trial.missing[0]
        what = f"in the baseline run the client {', '.join(map(str, effects[:3]))}"
        text = f"no reaction to {copy.names()[0]} within {trial.now - copy.created_at:.0f} s: {what}"
    elif trial.not_received:
        copy = trial.not_received[0]
        text = (
            f"the client never asked for the missed objects: no list or watch has delivered {copy.names()[0]} "
            f"within {trial.now - copy.created_at:.0f} s"
        )
    elif trial.unmet is not None:
        copy = trial.unmet
        text = f"an --expect for {copy.names()[0]} is not met after {trial.now - copy.created_at:.0f} s"
    elif trial.abandoned:
        key = trial.abandoned[0]
        text = f"{key} is not watched any more: the client has not asked for it for {_since_last(trial, key):.0f} s"
    else:
        return None
    return Verdict.failure(text, *trial.excerpt(), by_time=not _has_given_up(trial), symptom=Symptom.NO_REACTION)


def _since_last(trial: Trial, key: StreamKey) -> float:
    """Returns for how many seconds there was no request of a stream."""
    stream = trial.trace.streams().get(key)
    return trial.now - (max((call.end or call.at for call in stream.calls), default=0.0) if stream is not None else 0.0)


def _has_given_up(trial: Trial) -> bool:
    """Reports whether the client has no watch open and has sent nothing for so long that waiting longer is useless."""
    latest = max((call.end or trial.now for call in trial.trace.since(trial.provoked_at)), default=0.0)
    return not trial.trace.open_watches() and trial.now - latest > _GIVEN_UP


#: Seconds without a request and without a watch after which a client has given up.
_GIVEN_UP = 20.0

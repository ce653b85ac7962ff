"""Functions that judge the pauses between attempts that fail: of lists and watches, and of writes.

Invariant: a backoff with any usual jitter is right: pauses that are random around a growing length, or up to it.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from fakekube.checker.trace import LEASES, Call, Stream, excerpt, is_failure
from fakekube.checker.verdict import Symptom, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fakekube.checker.trial import Trial

#: A hot loop has more calls a second than this on one stream, and at least so many calls.
_HOT, _LEAST_CALLS = 4.0, 10
#: The pauses are judged if the failures lasted at least so many seconds.
_LEAST_SECONDS = 2.0
#: Pauses do not grow if the second half has at least so many attempts, and at least this part of those in the first half.
_LEAST_ATTEMPTS, _FLAT = 4, 0.75
#: How many times client-go sends a dropped request again, after a second each (rest/with_retry.go).
_BY_LIBRARIES = 10
#: Calls with less than so many seconds between them belong to one attempt, and at most so many after its first one.
_TOGETHER, _AT_ONCE = 0.1, 8


def judge_backoff(streams: Sequence[Stream]) -> Verdict | None:
    """Judges whether the pauses of the client between failing attempts grow.

    Calls that follow each other directly are one attempt: a reflector may try a watch, a list and a watch again before it pauses.
    Only the second half of the time between the first and the last failure is judged, because the first retry may follow at once.
    HTTP libraries repeat a dropped request some times with equal pauses before the client sees an error.
    """
    suspicion: Verdict | None = None
    for stream in streams:
        failures = [call for call in stream.calls if is_failure(call)]
        if not failures:
            continue
        first, last = failures[0], failures[-1]
        within = [call for call in stream.calls if first.at <= call.at <= last.at]
        calls = within[:1] + [call for before, call in pairwise(within) if not _continues(before, call)]
        length = last.at - first.at
        half = first.at + length / 2
        late = [call for call in within if call.at >= half]
        if length < _LEAST_SECONDS:
            continue
        shown = f"{len(within)} attempts in {length:.1f} s on {stream.key}, {len(late)} of them in the second half"
        if len(late) >= _LEAST_CALLS and len(late) / (length / 2) > _HOT:
            return Verdict.failure(
                f"no backoff: {shown}", *excerpt(stream.calls), symptom=Symptom.NO_PAUSE, likeness=str(stream.key)
            )
        before, after = _attempts(calls, first.at, half), _attempts(calls, half, last.at + 1.0)
        pauses = [late - early for early, late in pairwise(call.at for call in calls) if late - early > _TOGETHER]
        if len(pauses) <= _BY_LIBRARIES and all(call.dropped for call in late):
            continue
        if after >= _LEAST_ATTEMPTS and len(pauses) > _LEAST_ATTEMPTS and _are_equal(pauses):
            return Verdict.failure(
                f"equal pauses of {min(pauses):.2f} s, without growth and jitter: {shown}",
                *excerpt(stream.calls),
                symptom=Symptom.NO_PAUSE,
                likeness=str(stream.key),
            )
        if after >= _LEAST_ATTEMPTS and after >= _FLAT * before and not _are_random(pauses):
            certain = len(pauses) >= _CERTAIN and (_are_around(pauses) or after >= _MORE * before)
            verdict = Verdict.failure if certain else Verdict.warning
            suspicion = verdict(f"the pauses do not grow: {shown}", *excerpt(stream.calls), by_chance=True)
    return suspicion


def judge_growth(streams: Sequence[Stream]) -> Verdict | None:
    """Judges whether the pauses between failing attempts grow much faster than a backoff that doubles them, so that the client
    stays away for long after a few failures."""
    for stream in streams:
        pauses = _pauses_between_failures(stream, _TOGETHER)
        for count in range(_STEEP_PAUSES, len(pauses) + 1):
            row = pauses[:count]
            rises = all(late > _RISES * early for early, late in pairwise(row))
            if rises and row[-1] >= _LONG_PAUSE and row[-1] >= _STEEP ** (count - 1) * row[0]:
                shown = ", ".join(f"{pause:.2f}" for pause in row)
                return Verdict.failure(
                    f"the pauses grow too fast: {shown} s on {stream.key}; a backoff doubles them, up to half a minute",
                    *excerpt(stream.calls),
                    by_chance=True,
                )
    return None


#: Pauses grow too fast if at least so many, from the first one, each grow, all together by this factor each, and the last one has
#: at least so many seconds.
_STEEP_PAUSES, _RISES, _STEEP, _LONG_PAUSE = 3, 1.5, 3.5, 3.0


def judge_pauses_after_success(stream: Stream, ended: Sequence[Call]) -> Verdict | None:
    """Judges whether the pauses after watches that have delivered events and ended normally grow, as if they had failed."""
    following = [(one, stream.next_call(one)) for one in ended]
    pauses = [after.at - one.end for one, after in following if after is not None and one.end is not None]
    if len(pauses) < 2 * _APART or pauses[-1] < _LATE_AGAIN:
        return None
    if not all(late >= _RISES * early for early, late in zip(pauses, pauses[_APART:], strict=False)):
        return None
    shown = ", ".join(f"{pause:.2f}" for pause in pauses)
    return Verdict.failure(
        f"the pauses after watches of {stream.key} that ended normally grow, {shown} s: a success does not reset the backoff",
        *excerpt(stream.calls),
        by_chance=True,
    )


#: Each pause is compared with the one that is so many before it, because of the jitter; the last one has at least this length.
_APART, _LATE_AGAIN = 2, 2.5


def judge_jitter(streams: Sequence[Stream]) -> Verdict | None:
    """Judges whether the pauses between failing attempts grow by exactly the same factor: many clients would come together.

    Most clients have one backoff for all their streams, so that they all show it, as far as they have enough pauses. One stream
    alone has to show it for one pause more, because chance has more opportunities then.
    """
    pauses = [(stream, _pauses_between_failures(stream, _SHORTEST_PAUSE)) for stream in streams]
    short = [(stream, _find_equal_factors(some, _FACTORS)) for stream, some in pauses if len(some) > _FACTORS]
    long = [(stream, _find_equal_factors(some, _FACTORS + 1)) for stream, some in pauses]
    rows = short if all(row for _, row in short) else [(stream, row) for stream, row in long if row]
    if not rows:
        return None
    stream, row = rows[0]
    shown = ", ".join(f"{pause:.2f}" for pause in row)
    return Verdict.failure(
        f"no jitter: the pauses on {stream.key} grow by the same factor, {shown} s", *excerpt(stream.calls), by_chance=True
    )


def _pauses_between_failures(stream: Stream, shortest: float) -> list[float]:
    """Returns the pauses between failing attempts in seconds, without those that are too short to be compared."""
    times = [call.at for call in stream.calls if is_failure(call)]
    return [late - early for early, late in pairwise(times) if late - early > shortest]


def _find_equal_factors(pauses: Sequence[float], factors: int) -> Sequence[float]:
    """Returns the first pauses in a row that grow by the same factor so many times; none if there are none."""
    for first in range(len(pauses) - factors):
        row = pauses[first : first + factors + 1]
        factor = median(late / early for early, late in pairwise(row))
        same = all(abs(late - factor * early) < _EQUAL_FACTORS * late + _LATENESS for early, late in pairwise(row))
        if factor > _GROWS and same:
            return row
    return ()


#: Shorter pauses, in seconds, are too short to compare. So many pauses in a row grow by the same factor if they differ by less
#: than a part and the seconds by which a busy machine is late. Random pauses look like this in five of a hundred runs if
#: the client has one stream and a jitter of a fifth, in one of a hundred with the usual jitter of a half, and it has to happen
#: twice.
_SHORTEST_PAUSE, _FACTORS, _EQUAL_FACTORS, _LATENESS, _GROWS = 0.4, 3, 0.03, 0.06, 1.2


def judge_write_backoff(trial: Trial, *, denials: bool = False) -> Verdict | None:
    """Judges whether the client repeats a refused write without a pause, or with equal pauses.

    A few attempts that follow each other within a tenth of a second are one: helpers for conflicts try some times at once. Pauses
    that grow and begin anew are usual, because such helpers run within a queue with growing pauses.

    Args:
        trial: the run.
        denials: a write that admission denies (403, 422) counts as refused, too.
    """
    codes = _REFUSALS | _DENIALS if denials else _REFUSALS
    failed = [call for call in trial.trace.since(trial.provoked_at) if call.dropped or (call.status or 0) in codes]
    found = _judge_repeated(trial, failed, lambda call: (call.verb, call.path, call.name))
    return found or judge_growth(trial.trace.refused_writes(trial.provoked_at))


def judge_repeated_refusals(trial: Trial, code: int) -> Verdict | None:
    """Judges as `judge_write_backoff` whether the client repeats a write unchanged that is refused with a status code, such as a
    create of what is there."""
    failed = [call for call in trial.trace.since() if call.status == code]
    return _judge_repeated(trial, failed, lambda call: (call.verb, call.path, call.exchange.raw_body))


def _judge_repeated(trial: Trial, failed: Iterable[Call], write_of: Callable[[Call], object]) -> Verdict | None:
    """Judges the pauses between calls that are the same write, among calls that have failed."""
    refused: dict[object, list[Call]] = {}
    for call in failed:
        if call.is_write and call.collection != LEASES:
            refused.setdefault(write_of(call), []).append(call)
    for calls in refused.values():
        verb, path = calls[0].verb, calls[0].path
        times = [call.at for call in calls]
        length = times[-1] - times[0]
        if length < _LEAST_SECONDS:
            continue
        half = times[0] + length / 2
        late_pauses = [late - early for early, late in pairwise(times) if late >= half]
        stay_short = _stay_short(late_pauses, length)
        starts = _starts_of_attempts(times)
        if len(starts) < 2 * _LEAST_ATTEMPTS and not stay_short:
            continue
        before, after = sum(at < half for at in starts), sum(at >= half for at in starts)
        shown = f"{verb} {path} was refused {len(calls)} times in {length:.1f} s, {len(late_pauses)} of them in the second half"
        fast = stay_short or (after >= _LEAST_CALLS and after / (length / 2) > _HOT)
        pauses = [late - early for early, late in pairwise(starts)]
        flat = after >= _FLAT * before
        equal = flat and _are_equal(pauses) and not _begin_anew(pauses)
        around = flat and len(pauses) >= _CERTAIN and _are_around(pauses) and not _is_limited(trial, times, len(pauses))
        if fast or equal or around:
            how = "no backoff" if fast else "equal pauses" if equal else "the pauses do not grow"
            return Verdict.failure(
                f"{how}: {shown}",
                *trial.excerpt(calls),
                by_chance=not (fast or equal),  # random lengths that grow (decorrelated jitter) may look like this
                symptom=Symptom.NO_PAUSE,
                likeness=f"{verb} {path.rpartition('/')[0]}",
            )
    return None


def _starts_of_attempts(times: Sequence[float]) -> list[float]:
    """Returns the times of the calls that begin an attempt: all but a few that follow the one before at once."""
    starts: list[float] = []
    together = 0
    for early, late in pairwise([-1.0, *times]):
        together = together + 1 if late - early <= _TOGETHER else 0
        if together == 0 or together > _AT_ONCE:
            starts.append(late)
    return starts


def _stay_short(pauses: Sequence[float], length: float) -> bool:
    """Reports whether the pauses between calls in the second half of a spell are all short for its length.

    If a client repeats a write at once, a limiter of its requests makes the pauses longer, but only once: that of client-go lets
    a burst pass, and then some requests a second.
    """
    return len(pauses) >= _LEAST_CALLS and max(pauses) < min(length / _PARTS, _SHORT)


#: Pauses are short if they have less than this part of the spell, and less than so many seconds. The queues of client-go and
#: controller-runtime double them from 5 ms on (workqueue.DefaultTypedControllerRateLimiter): the last pause has half of the
#: spell. With a factor of 1.2 it still has a sixth.
_PARTS, _SHORT = 8, 0.5


def _is_limited(trial: Trial, times: Sequence[float], writes: int) -> bool:
    """Reports whether a limiter of the client's requests makes the pauses between its repeated writes.

    All its requests, of which these writes are at most half, then have the same distance. The growing pauses of the client cannot
    be seen, because they are shorter.
    """
    all_times = sorted(call.at for call in trial.trace.since() if times[0] <= call.at <= times[-1])
    pauses = [late - early for early, late in pairwise(all_times)]
    return len(pauses) >= 2 * writes and _are_equal(pauses)


def _are_equal(pauses: Sequence[float]) -> bool:
    """Reports whether most pauses are equal to the median one; a busy machine makes some of them longer."""
    usual = median(pauses)
    same = sum(abs(pause - usual) <= _EQUAL_PAUSES * usual + _MEASURED for pause in pauses)
    return same >= _MOST * len(pauses)


def _begin_anew(pauses: Sequence[float]) -> bool:
    """Reports whether more than a tenth of the pauses are more than twice as long as the median one.

    The pauses of a helper within a queue grow and begin anew: the short ones may be equal by chance, but not the longest ones.
    """
    usual = median(pauses)
    return sum(pause > 2 * usual for pause in pauses) > len(pauses) // 10


def _are_random(pauses: Sequence[float]) -> bool:
    """Reports whether pauses differ by more than a jitter around one length makes them: with a backoff of random lengths
    (decorrelated jitter) a later pause may be shorter than those before."""
    return len(pauses) > 1 and min(pauses) >= _LONG_ENOUGH and max(pauses) > _VARIES * min(pauses)


def _are_around(pauses: Sequence[float]) -> bool:
    """Reports whether pauses have one length, apart from a jitter; a busy machine makes some of them longer."""
    usual = sorted(pauses)[: max(round(_MOST * len(pauses)), 1)]
    return min(usual) > _COMPARABLE and max(usual) <= _VARIES * min(usual) and max(pauses) <= 2 * _VARIES * min(usual)


#: Shorter pauses, in seconds, may be those of a helper within a queue, which begins anew each time.
_COMPARABLE = 0.3
#: Pauses surely do not grow if there are so many of them around one length, or so many times more attempts in the second half.
_CERTAIN, _MORE = 6, 2.0


#: A jitter of a half around one length makes the longest pause three times as long as the shortest one. Pauses that do not grow
#: must have at least so many seconds.
_VARIES, _LONG_ENOUGH = 3.2, 0.8

#: The status codes of refused writes after which a client tries again.
_REFUSALS = frozenset({409, 429, 500, 502, 503, 504})
#: The status codes of writes that admission denies.
_DENIALS = frozenset({403, 422})
#: Pauses are equal if they differ from the median by no more than this part and so many seconds; this part of them has to.
_EQUAL_PAUSES, _MEASURED, _MOST = 0.03, 0.03, 0.7


def _continues(before: Call, call: Call) -> bool:
    """Reports whether two calls are one attempt, however long the client takes between them: a watch after a list that was
    answered, and the list instead of initial events that were refused."""
    if call.is_watch:
        return before.is_list and before.succeeded
    return before.is_watch and before.sends_initial_events and is_failure(before)


def _attempts(calls: Sequence[Call], begin: float, end: float) -> int:
    """Returns how many attempts began within a period."""
    times = [call.at for call in calls if begin <= call.at < end]
    return sum(later - earlier > _TOGETHER for earlier, later in pairwise([-1.0, *times]))

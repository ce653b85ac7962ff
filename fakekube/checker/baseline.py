"""The baseline run: finds out what the client does on a cluster without faults.

It starts the client, creates two copies of the sample, and deletes them. The client of the baseline run continues to run
until the end of the check as a control for all other runs: it shows which requests an idle client sends, and whether it ends by
itself.

Invariant: only an effect that both copies have is part of the reaction.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakekube.checker.execution import keep_run
from fakekube.checker.reaction import (
    Copy,
    EffectKind,
    Reaction,
    children_of,
    effects_of,
    filter_by_owner,
    has_controller,
    has_delivered,
    mentions_in,
)
from fakekube.checker.sample import default_sample
from fakekube.checker.trial import Baseline, Trial
from fakekube.checker.verdict import NotExercised
from fakekube.checker.waits import await_quiet
from fakekube.checker.writes import is_finalized, is_finalizer, is_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.session import Session
    from fakekube.checker.trace import StreamKey

#: Seconds after which the client has finished its reaction to the copy that is not deleted.
_AFTER_CONTROL = 3.0
#: A client whose reaction takes longer, in seconds, may never come to rest: it writes all the time.
_RESTLESS = 20.0
#: The longest time between two lists of a client that does not watch, in seconds.
_LONGEST_POLL = 30.0
#: How many requests are looked at to find when the reaction was complete, and the seconds that are assumed if it never was.
_LOOKED_AT, _LONGEST_REACTION = 500, 60.0


class BaselineFailed(Exception):
    """The client sent no request, or did not finish its baseline run."""


def run_baseline(session: Session) -> Baseline:
    """Performs the baseline run. Raises BaselineFailed; what the run has shown is kept then."""
    trial = Trial(session, None)
    try:
        with _failures_of(trial):
            return _observe_client(trial)
    except BaseException as problem:
        trial.close()
        if isinstance(problem, BaselineFailed):
            keep_run(trial, None)
        raise


@contextmanager
def _failures_of(trial: Trial) -> Iterator[None]:
    """Raises BaselineFailed instead of NotExercised, and instead of any exception of a run whose client has ended."""
    try:
        yield
    except (BaselineFailed, NotExercised) as problem:
        early = " before the baseline run had ended" if str(problem) == trial.session.TIME_IS_UP else ""
        raise BaselineFailed(f"{problem}{early}") from None
    except Exception as problem:
        if trial.ended:
            raise BaselineFailed(f"a client has to run until it is stopped; in the baseline run {trial.ended}") from None
        raise problem


def _observe_client(trial: Trial) -> Baseline:
    """Returns what the client does with two copies of the sample, and with a third one, the control, which stays."""
    start_seconds = _start_client(trial)
    _complete_sample(trial)
    watches_at_start = _count_watches(trial)
    copies = (trial.stimulate(), trial.stimulate())
    creation = _observe_creation(trial, copies)
    made = [child for resource in creation.reaction.children for child in children_of(trial.cluster, copies[0], resource)]
    uids = {obj["metadata"]["uid"] for obj in copies[0].objects}
    deletion, deleted_children = _observe_deletion(trial, copies, creation.reaction)
    streams = _observe_streams(trial, copies)
    watches = watches_at_start | _count_watches(trial)
    control = trial.stimulate()
    found = Baseline(
        trial=trial,
        agents=list(dict.fromkeys(call.exchange.agent for call in trial.trace)),
        streams=streams.watched,
        first_streams=frozenset(watches_at_start),
        watches=watches,
        listed_beside=streams.listed_beside,
        delivering=streams.delivering,
        reaction=creation.reaction,
        deletion=deletion,
        forgotten={one for one in creation.reaction.effects if one.kind is EffectKind.MENTION}
        - set().union(*(mentions_in(creation.reaction, trial.cluster, copy) for copy in copies)),
        deleted_children=deleted_children,
        controls_children=any(map(has_controller, made)),
        owns_children=bool(filter_by_owner(made, uids)),
        adds_finalizer=any(map(is_finalizer, creation.reaction.effects)),
        start_seconds=start_seconds,
        reaction_seconds=creation.seconds,
        requests=creation.requests,
        control=control,
        idle_from=trial.now + _AFTER_CONTROL + 3 * creation.seconds,
        written=frozenset(),
        finalized=frozenset(),
    )
    trial.learned = found
    found.written = _find_positions(control, lambda resource, obj: is_written(found, control, resource, obj))
    found.finalized = _find_positions(control, lambda resource, obj: is_finalized(found, control, resource, obj))
    return found


def _start_client(trial: Trial) -> float:
    """Starts the cluster and the client, and waits until it is quiet; returns the seconds until its first request.

    Raises BaselineFailed if there is none.
    """
    trial.open()
    trial.start_client()
    calls = trial.trace.since()
    if not calls:
        raise BaselineFailed(f"the client sent no request within {trial.session.start_timeout:.0f} s{_describe_output(trial)}")
    await_quiet(trial, trial.trace.mark())
    return calls[0].at - trial.started_at


def _complete_sample(trial: Trial) -> None:
    """Makes a sample of what the client watches or lists, if the user has given none. Raises NotExercised."""
    session = trial.session
    if not session.sample.stimuli:
        session.sample = default_sample([(call.collection, call) for call in trial.trace if call.is_watch or call.is_list])
        trial.load_prerequisites(session.sample.prerequisites)


def _count_watches(trial: Trial) -> Counter[StreamKey]:
    """Returns how many watches of each stream are open."""
    return Counter(call.stream for call in trial.trace.open_watches())


@dataclass(slots=True, frozen=True)
class _Creation:
    """What the client does when copies are created: its reaction, how many seconds that takes, and how many requests."""

    reaction: Reaction
    seconds: float
    requests: int


def _observe_creation(trial: Trial, copies: Sequence[Copy]) -> _Creation:
    """Waits until the client has reacted to the copies, and returns what it has done for both."""
    seconds = _await_reactions(trial, copies)
    requests = trial.trace.count_since(copies[0].mark)
    observed = Reaction.common(*(effects_of(trial.cluster, copy, trial.trace.since(copy.mark)) for copy in copies))
    reaction = observed.lasting(trial.cluster, copies)
    if seconds > _RESTLESS:
        seconds = min(seconds, _find_completion(trial, copies, reaction))
    return _Creation(reaction, seconds, requests)


@dataclass(slots=True, frozen=True)
class _Streams:
    """The streams that the client watches, with their resources; those that it lists meanwhile; those that deliver copies."""

    watched: Mapping[StreamKey, str]
    listed_beside: frozenset[StreamKey]
    delivering: Mapping[StreamKey, frozenset[str]]


def _observe_streams(trial: Trial, copies: Sequence[Copy]) -> _Streams:
    """Returns the streams that the client has opened until now."""
    listed_beside = frozenset(
        key
        for key, stream in trial.trace.streams().items()
        if any(call.succeeded and stream.is_watched_at(call.at) for call in stream.lists)
    )
    watched = {call.stream: call.collection for call in trial.trace if call.is_watch}
    return _Streams(watched, listed_beside, _delivering_streams(trial, copies))


def _find_positions(copy: Copy, wanted: Callable[[str, Object], bool]) -> frozenset[int]:
    """Returns the positions in the sample of the objects of a copy that are wanted."""
    pairs = zip(copy.resources, copy.objects, strict=True)
    return frozenset(number for number, (resource, obj) in enumerate(pairs) if wanted(resource, obj))


def _describe_output(trial: Trial) -> str:
    output = trial.process.output() if trial.process is not None else ""
    return f"; it printed: …{' '.join(output[-300:].split())}" if output else ""


def _await_reactions(trial: Trial, copies: Sequence[Copy]) -> float:
    """Waits until the client has reacted to copies; returns how many seconds it took."""
    begun = copies[-1].created_at
    _await_poll(trial, begun)
    if not any(call.is_watch for call in trial.trace):
        begun = min((call.at for call in trial.trace if call.is_list and call.at > begun), default=begun)
    last = await_quiet(trial, copies[0].mark, [copy.token for copy in copies])
    return max(last - begun, 0.0)


def _await_poll(trial: Trial, since: float) -> None:
    """Waits until a client that only lists has listed again after a time, in seconds of the trial."""
    if any(call.is_watch for call in trial.trace) or not any(call.is_list for call in trial.trace):
        return
    trial.await_until(lambda: any(call.is_list and call.at > since and call.end for call in trial.trace), _LONGEST_POLL)


def _find_completion(trial: Trial, copies: Sequence[Copy], reaction: Reaction) -> float:
    """Returns after how many seconds the reaction to all copies was complete, for a client that goes on writing."""
    seconds = 0.0
    for copy in copies:
        left = set(reaction.visible)
        for call in trial.trace.since(copy.mark)[:_LOOKED_AT]:
            left -= effects_of(trial.cluster, copy, [call]).keys()
            if not left:
                seconds = max(seconds, (call.end or call.at) - copy.created_at)
                break
        else:
            return _LONGEST_REACTION
    return seconds


def _delivering_streams(trial: Trial, copies: Sequence[Copy]) -> dict[StreamKey, frozenset[str]]:
    """Returns the streams that delivered objects of all copies, with the resources of these objects.

    A list that the client does not also watch counts only for a client that watches nothing: it may have any purpose.
    """
    found: dict[StreamKey, frozenset[str]] = {}
    streams = trial.trace.streams()
    watches = any(stream.watches for stream in streams.values())
    for key, stream in streams.items():
        if watches and not stream.watches:
            continue
        resources = frozenset(
            resource
            for resource in {name for copy in copies for name in copy.resources}
            if stream.collection == resource
            and all(
                has_delivered(stream, copy, obj)
                for copy in copies
                for name, obj in zip(copy.resources, copy.objects, strict=True)
                if name == resource
            )
        )
        if resources:
            found[key] = resources
    return found


def _observe_deletion(trial: Trial, copies: Sequence[Copy], reaction: Reaction) -> tuple[Reaction, dict[str, int]]:
    """Deletes the copies; returns the requests that the client sends, and how many children are deleted with each copy."""

    def children(copy: Copy) -> dict[str, int]:
        return {resource: len(children_of(trial.cluster, copy, resource)) for resource in reaction.children}

    before = [children(copy) for copy in copies]
    mark = trial.trace.mark()
    for copy in copies:
        trial.delete(copy)
    _await_poll(trial, trial.now)
    await_quiet(trial, mark, [copy.token for copy in copies])
    sent = Reaction.common(*(effects_of(trial.cluster, copy, trial.trace.since(mark)) for copy in copies))
    after = [children(copy) for copy in copies]
    deleted = {one: min(a[one] - b[one] for a, b in zip(before, after, strict=True)) for one in reaction.children}
    deleted = {one: count for one, count in deleted.items() if count > 0}
    return _without_repairs(sent, deleted), deleted


def _without_repairs(sent: Reaction, deleted: Mapping[str, int]) -> Reaction:
    """Returns the reaction to a deletion without what the client does, except deletes, to children that are deleted, too: it may
    make one again when it sees that it is gone, and not yet that its owner is.

    Args:
        sent: what the client sends for both copies.
        deleted: the resources of these children.
    """
    kept = {
        effect: count
        for effect, count in sent.effects.items()
        if effect.resource.partition("/")[0] not in deleted or effect.detail[:1] == ("delete",)
    }
    return Reaction(kept)

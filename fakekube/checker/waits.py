"""Waits of rules: for the client's watches and for requests on them.

Invariant: a wait ends early with the exceptions of `ClientRun.await_until`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fakekube.checker.client_run import ClientEnded, HotLoop
from fakekube.checker.reaction import written_fields
from fakekube.checker.trace import LEASES
from fakekube.checker.verdict import NotExercised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call, StreamKey
    from fakekube.checker.trial import Trial

#: A watch is short below so many seconds.
SHORT = 1.2


def require_resumption(trial: Trial) -> None:
    """Ends the watches normally and waits until the client has opened them again.

    A client that cannot do this is judged by W5, and not by the rule that calls this function.

    Raises NotExercised if the client does not open them again.
    """
    try:
        ended = trial.end_watches()
        if trial.await_until(lambda: _are_resumed(trial, ended), trial.reaction_timeout):
            return
    except (ClientEnded, HotLoop):
        pass
    raise NotExercised("the client does not resume a watch that ended normally")


def _are_resumed(trial: Trial, ended: Iterable[Call]) -> bool:
    opened = {call.stream: call.number for call in trial.trace.open_watches()}
    return all(opened.get(one.stream, 0) > one.number for one in ended)


def await_requests(trial: Trial, ended: Iterable[Call]) -> list[Call]:
    """Waits until the client sends requests for the streams of ended watches; returns these requests."""
    last = {call.stream: call.number for call in ended}

    def found() -> list[Call]:
        streams = trial.streams_since().items()
        return [call for key, stream in streams for call in stream.calls if call.number > last.get(key, 0)]

    trial.await_until(lambda: last.keys() <= {call.stream for call in found()}, trial.reaction_timeout)
    return found()


def await_lists(trial: Trial, condition: Callable[[], bool], mark: int) -> bool:
    """Waits for what can happen only while the client lists again; returns whether it has happened.

    The client does not list any more if all its watches are open again, and it never lists beside them.

    Args:
        trial: the run.
        condition: whether it has happened.
        mark: the mark of the trace before the client may have listed.
    """
    baseline = trial.baseline
    streams: Set[StreamKey] = baseline.first_streams if not baseline.listed_beside else set()

    def watches_again() -> bool:
        lasting = {call.stream for call in trial.trace.open_watches() if call.number > mark and trial.now - call.at > SHORT}
        return bool(streams) and streams <= lasting

    trial.await_until(lambda: condition() or watches_again(), trial.reaction_timeout)
    return condition()


def await_long_watches(trial: Trial) -> None:
    """Waits until all watches are open for some time: after the end of a short watch many clients list."""
    trial.await_until(lambda: all(trial.now - call.at > SHORT for call in trial.require_watch()), 4 * SHORT)


def await_reactions(trial: Trial, copies: Sequence[Copy], seconds: float | None = None) -> None:
    """Waits for the reactions to copies, until one does not come, and then until the client sends nothing more that names them.

    Args:
        trial: the run.
        copies: the copies, in the order in which they were made.
        seconds: the timeout for each; by default `Trial.reaction_timeout`.
    """
    for copy in copies:
        if not trial.await_reaction(copy, seconds):
            break
    await_quiet(trial, copies[0].mark, [copy.token for copy in copies])


def await_quiet(trial: Trial, mark: int, tokens: Sequence[str] = ()) -> float:
    """Waits until the client sends no more requests after a mark that contain one of the tokens; without tokens, no requests
    at all, except watches and those of leases.

    A client that works slowly, or pauses between its writes, is quiet when it has sent nothing for longer than its longest pause
    until now, and has not computed most of that time: it may load modules for its first write. Discovery is part of its work: a
    process that is started for each request, such as kubectl, begins with it. What an idle client writes, too, to tell that it
    lives, is no part of it.

    Returns when the last such request ended, in seconds of the trial, or 0.
    """
    begun = trial.now
    periodic = trial.learned.periodic_fields() if trial.learned is not None else {}
    known: dict[int, bool] = {}
    """Whether the calls with these numbers have written periodic fields only."""

    def tells_life(call: Call) -> bool:
        if not (call.is_write and call.succeeded and call.collection in periodic):
            return False
        if call.number not in known:
            fields = written_fields(trial.cluster, call, call.name)
            known[call.number] = bool(fields) and periodic[call.collection].issuperset(fields)
        return known[call.number]

    def find_calls() -> list[Call]:
        since = trial.trace.since(mark)
        calls = [call for call in since if not (call.is_watch or call.collection == LEASES or tells_life(call))]
        return [call for call in calls if not tokens or not call.resource or any(map(call.mentions, tokens))]

    looks: list[tuple[float, bool]] = []
    """Whether the client was runnable, at each look."""

    def computes(seconds: float) -> bool:
        looks.append((trial.now, trial.is_runnable()))
        recent = [runnable for at, runnable in looks if at >= trial.now - seconds]
        return sum(recent) > _COMPUTES * len(recent)

    def is_quiet() -> bool:
        calls = find_calls()
        periods = [(call.at, call.end or trial.now) for call in calls]
        least = trial.session.quiet * trial.session.slowness()
        pauses = [after[0] - before[1] for before, after in pairwise([(begun, begun), *periods])] if tokens else []
        reacts = not tokens or any(call.resource for call in calls)
        needed = max(least, min(_PAUSES * max(pauses, default=0.0), _LONGEST_PAUSE)) if reacts else _FIRST * least
        busy = computes(least)
        return trial.now - max((end for _, end in periods), default=begun) >= needed and not busy

    trial.await_until(is_quiet, max(_LONGEST, trial.session.seconds))
    return max((call.end or trial.now for call in find_calls()), default=0.0)


#: The longest time to wait until a client is quiet, in seconds.
_LONGEST = 30.0
#: How many times `quiet` the first request of a reaction may take.
_FIRST = 6
#: The part of the looks at which a client that computes is runnable; an idle one is, too, until it gets a processor.
_COMPUTES = 0.75
#: How many times the longest pause of a client the next one may take, and the longest one that is expected, in seconds.
_PAUSES, _LONGEST_PAUSE = 2.5, 8.0


def await_delivery(trial: Trial, resource: str, objects: Iterable[dict[str, Any]]) -> None:
    """Waits until the client's watches of a resource have delivered objects in their present state, and 0.3 s for its
    reaction."""
    newest = max((int(obj["metadata"]["resourceVersion"]) for obj in objects), default=0)

    def is_delivered() -> bool:
        calls = [call for call in trial.trace.since() if call.collection == resource and call.is_watch]
        return any(call.newest_delivered() >= newest for call in calls)

    trial.await_until(is_delivered, 5.0)
    trial.wait(0.3)

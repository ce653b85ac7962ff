"""Rules about unnecessary requests (N3): of an idle client, and of one that has nothing to change.

Invariant: what a client may do to be safe is no failure. Repeated requests are judged by their number in a time, and writes by
whether the server has stored anything.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

from fakekube.checker.reaction import find_differences, is_time, states_around, written_fields
from fakekube.checker.rule import Rule
from fakekube.checker.trace import LEASES
from fakekube.checker.verdict import Verdict
from fakekube.checker.writes import is_apply, require_writes, touch_objects, writes_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial


class RequestEconomy(Rule):
    """The base class of the provocations of N3."""

    id = "N3"
    obligation = "no unnecessary requests: watch instead of polling, and no writes without a change"
    advice = "watch instead of polling; compare before each write; list with a limit or resourceVersion=0"
    source = "API Priority and Fairness; kubernetes/community, controllers.md; client-go rest/config.go (DefaultQPS)"


class IdleRequests(RequestEconomy):
    """Observes the client of the baseline run while nothing changes, and after it has reacted to one more copy."""

    name = "idle"
    decisive = True
    provocation = "idleness"
    fast = True
    on_baseline = True

    #: How many seconds the client is observed in total, and how many equal requests it may send in this time.
    SECONDS, TIMES = 16.0, 3
    #: The least number of seconds to observe after the last copy.
    AFTERWARDS = 5.0
    #: The average seconds between two equal requests: a client with shorter intervals than the first polls, than the second is
    #: suspected.
    POLLS, SUSPECTED = 5.0, 8.0
    #: How many requests a second are too many for a client that only lists: client-go lets no more pass (rest, DefaultQPS).
    TOO_MANY = 5.0
    #: The average seconds between two watches of a stream: a good client may reopen a quiet watch every ten seconds.
    REOPENS = 6.0

    def judge(self, trial: Trial) -> Verdict:
        if trial.has_ended():
            return Verdict.not_exercised("the client ends by itself")
        before = [call for call in trial.trace.since() if call.at >= trial.baseline.idle_from]
        length_before = max(trial.now - trial.baseline.idle_from, 0.0)
        trial.await_reaction(trial.stimulate())
        trial.wait(trial.baseline.seconds_to_react(1.0))
        since = trial.now
        trial.wait(max(self.SECONDS - length_before, self.AFTERWARDS))
        length = trial.now - since
        after = [call for call in trial.trace.since() if call.at >= since]
        return (
            self._judge_repetitions(trial, after, length)
            or self._judge_repetitions(trial, [*before, *after], length_before + length)
            or self._judge_ageing(trial)
            or self._judge_streams(trial)
            or self._judge_connections(trial)
            or Verdict.success(f"{length_before + length:.0f} idle seconds")
        )

    def _judge_repetitions(self, trial: Trial, calls: Sequence[Call], length: float) -> Verdict | None:
        """Judges the requests that the client repeats within `length` idle seconds."""
        # repeating a refused write is necessary
        idle = [call for call in calls if call.collection != LEASES and (not call.is_write or call.succeeded)]
        idle_timeout = trial.session.idle  # the client may list each time it closes a silent watch
        renewed = 0 if idle_timeout is None else length / idle_timeout + 2
        objects = max(sum(not copy.deleted for copy in trial.copies), 1)
        asked = Counter((call.verb, call.stream) for call in idle if not call.is_watch)
        for (verb, key), found in asked.most_common(1):
            equal = [call for call in idle if (call.verb, call.stream) == (verb, key)]
            count: float = found
            if verb == "list":  # it may list for each object
                interval = _regular_interval(equal)
                count = length / interval if interval else found // objects
            shown = f"{verb} {key} {found} times within {length:.0f} idle seconds"
            same = trial.excerpt(equal)
            # watches are an optimization: to read everything in a loop is correct, and costs more
            often = self.TOO_MANY if verb in ("get", "list") and not trial.baseline.streams else 1 / self.POLLS
            if count > max(self.TIMES, length * often, renewed):
                return Verdict.failure(shown, *same)
            if count >= max(self.TIMES, length / self.SUSPECTED, renewed):
                return Verdict.warning(shown, *same)
        watches = Counter(call.stream for call in idle if call.is_watch)
        replicas = trial.baseline.replicas()
        for key, count in watches.most_common(1):
            if count > replicas * max(3, length / self.REOPENS, renewed):
                same = trial.excerpt([call for call in idle if call.stream == key])
                return Verdict.warning(f"opens {key} {count} times within {length:.0f} idle seconds", *same)
        written: dict[tuple[str, str], list[Call]] = {}
        for call in writes_of(idle):
            written.setdefault((call.verb, call.path), []).append(call)
        for (verb, path), same_calls in written.items():
            count = len(same_calls) - len({call.revision for call in same_calls})
            if count > 1:  # a write without a change leaves the revision as it is
                return Verdict.warning(f"{verb} {path} {count + 1} times without a change", *trial.excerpt(same_calls))
        return None

    @staticmethod
    def _judge_ageing(trial: Trial) -> Verdict | None:
        """Judges whether the client closes silent watches and resumes them from the same revision, without bookmarks."""
        for key, stream in trial.trace.streams().items():
            quiet = [
                call
                for call in stream.watches
                if call.resumes and not call.wants_bookmarks and not call.events and call.ended == "closed by the client"
            ]
            if len(quiet) > 1:
                return Verdict.warning(
                    f"ends quiet watches of {key} after {(quiet[-1].end or 0.0) - quiet[-1].at:.0f} s and asks for no bookmarks: "
                    "the revision that it resumes from will expire",
                    *trial.excerpt(quiet),
                )
        return None

    @staticmethod
    def _judge_streams(trial: Trial) -> Verdict | None:
        """Judges whether the client lists without limit and resourceVersion, or has equal watches open."""
        for stream in trial.trace.streams().values():
            for call in stream.lists if stream.watches else ():
                if "limit" not in call.query and not call.asked_revision and "continue" not in call.query:
                    return Verdict.warning(
                        f"lists all of {stream.key} from storage: neither limit nor resourceVersion", str(call)
                    )
        opened = Counter(call.stream for call in trial.trace.open_watches())
        for key, count in opened.most_common(1):
            if count > trial.baseline.replicas():
                same = [call for call in trial.trace.open_watches() if call.stream == key]
                return Verdict.warning(f"keeps {count} equal watches of {key} open", *trial.excerpt(same))
        return None

    #: A client that leaves at least so many connections open, and this part of its requests, does not reuse connections.
    CONNECTIONS, PART = 8, 0.8

    def _judge_connections(self, trial: Trial) -> Verdict | None:
        """Judges whether the client leaves the connections of finished requests open."""
        calls = trial.trace.since()
        idle = trial.cluster.connections - len(trial.trace.open_watches())
        done = sum(not call.is_open for call in calls)
        if idle < self.CONNECTIONS or idle < self.PART * done:
            return None
        return Verdict.warning(f"{idle} idle connections are open after {done} requests")


def _regular_interval(calls: Sequence[Call]) -> float:
    """Returns the average seconds between calls that come regularly; 0 for a few, and for bursts: a call for each object."""
    pauses = [after.at - before.at for before, after in pairwise(calls)]
    regular = len(pauses) >= _LEAST_PAUSES and max(pauses) <= _REGULAR * min(pauses)
    return mean(pauses) if regular else 0.0


#: The pauses between the requests of a client that polls: how many there are at least, and how many times longer than the
#: shortest the longest one is.
_LEAST_PAUSES, _REGULAR = 3, 2.0


class NeedlessWrites(RequestEconomy):
    """Another client annotates the objects of a copy after the client has reacted: the client has nothing to write.

    An apply does not count: it may be made without a read. Neither does what the client does after some of the annotations only.
    """

    name = "needless"
    provocation = "another client annotates an object, which needs no write"
    advice = "compare the present state with the desired one before each write"
    watches = True
    expected_seconds = 8.0

    #: How often the objects are annotated. A client that has not read its own last write yet may repeat it once.
    TIMES = 3

    def __init__(self) -> None:
        self.rounds: list[Mapping[tuple[str, str], Sequence[Call]]] = []
        """The needless writes after each annotation, by verb and path."""

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        trial.wait(trial.baseline.seconds_to_react(1.0))
        for _ in range(self.TIMES):
            mark, before = trial.trace.mark(), trial.cluster.revision
            touched = {
                (resource, obj["metadata"]["name"]): int(obj["metadata"]["resourceVersion"])
                for resource, obj in touch_objects(trial, trial.copies[0])
            }
            trial.wait(trial.baseline.seconds_to_react(1.0))
            calls = writes_of(trial.trace.since(mark))
            needless = _find_needless(calls, touched, before)
            periodic = trial.baseline.periodic_fields()
            for call in calls:
                if call.succeeded and _changes_only_times(trial, call, periodic.get(call.collection, ())):
                    needless.setdefault((call.verb, call.path), []).append(call)
            self.rounds.append(needless)

    def judge_trace(self, trial: Trial) -> Verdict:
        first, *others = self.rounds
        for (verb, path), calls in first.items():
            if all((verb, path) in other for other in others):
                return Verdict.warning(
                    f"{verb} {path} without a change, or only of times, each time after another client had annotated the object",
                    *trial.excerpt([*calls, *(call for other in others for call in other[verb, path])]),
                )
        return Verdict.success(f"{len(self.rounds)} annotations of others")


def _find_needless(
    calls: Sequence[Call], touched: Mapping[tuple[str, str], int], before: int
) -> dict[tuple[str, str], list[Call]]:
    """Returns the writes that have not changed anything, by verb and path.

    Args:
        calls: the calls after another client's write.
        touched: the revisions of the objects that the other client has written, by resource and name.
        before: the revision of the cluster before that; other objects have not been written since.
    """
    found: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        changes = call.verb in ("update", "patch") and call.succeeded and not is_apply(call)
        if changes and 0 < (call.revision or 0) <= touched.get((call.collection, call.name), before):
            found.setdefault((call.verb, call.path), []).append(call)
    return found


def _changes_only_times(trial: Trial, call: Call, periodic: Container[tuple[str, ...]]) -> bool:
    """Reports whether a write has replaced times in an object, and nothing else.

    Args:
        trial: the run.
        call: the write.
        periodic: the fields that an idle client writes, too, to tell that it lives.
    """
    states = states_around(trial.cluster, call, call.name)
    if states is None or all(path in periodic for path in written_fields(trial.cluster, call, call.name)):
        return False
    changed = find_differences(*states).values()
    return bool(changed) and all(is_time(before) and is_time(after) for before, after in changed)


RULES: tuple[type[Rule], ...] = (IdleRequests, NeedlessWrites)

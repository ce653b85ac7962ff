"""The rule about unnecessary requests of an idle client (N3)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fakekube.checker.client_writes import writes_of
from fakekube.checker.rule import Rule, Verdict
from fakekube.checker.trace import LEASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Trial


class IdleRequests(Rule):
    """Observes the client of the baseline run while nothing changes, and after it has reacted to one more copy."""

    id = "N3"
    name = "idle"
    decisive = True
    provocation = "idleness"
    fast = True
    obligation = "no unnecessary requests: watch instead of polling, and no writes without a change"
    advice = "watch instead of polling; compare before each write; list with a limit or resourceVersion=0"
    source = "API conventions; API Priority and Fairness"
    on_baseline = True

    #: How many seconds the client is observed in total, and how many equal requests it may send in this time.
    SECONDS, TIMES = 16.0, 3
    #: The least number of seconds to observe after the last copy.
    AFTERWARDS = 5.0
    #: The average seconds between two equal requests: a client with shorter intervals than the first polls, than the second is
    #: suspected.
    POLLS, SUSPECTED = 5.0, 8.0
    #: The average seconds between two watches of a stream: a good client may reopen a quiet watch every ten seconds.
    REOPENS = 6.0

    def judge(self, trial: Trial) -> Verdict:
        if trial.has_ended():
            return Verdict.not_exercised("the client ends by itself")
        before = [call for call in trial.trace.since() if call.at >= trial.baseline.idle_from]
        length_before = max(trial.now - trial.baseline.idle_from, 0.0)
        trial.await_reaction(trial.stimulate())
        trial.wait(1.0 + 3 * trial.baseline.reaction_seconds)
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
            or Verdict.passed(f"{length_before + length:.0f} idle seconds")
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
            count = found // objects if verb == "list" else found  # it may list for each object
            shown = f"{verb} {key} {found} times within {length:.0f} idle seconds"
            same = trial.excerpt([call for call in idle if (call.verb, call.stream) == (verb, key)])
            if count > max(self.TIMES, length / self.POLLS, renewed):
                return Verdict.failed(shown, *same)
            if count >= max(self.TIMES, length / self.SUSPECTED, renewed):
                return Verdict.warned(shown, *same)
        watches = Counter(call.stream for call in idle if call.is_watch)
        for key, count in watches.most_common(1):
            if count > max(3, length / self.REOPENS, renewed):
                same = trial.excerpt([call for call in idle if call.stream == key])
                return Verdict.warned(f"opens {key} {count} times within {length:.0f} idle seconds", *same)
        written: dict[tuple[str, str], list[Call]] = {}
        for call in writes_of(idle):
            written.setdefault((call.verb, call.path), []).append(call)
        for (verb, path), same_calls in written.items():
            count = len(same_calls) - len({call.revision for call in same_calls})
            if count > 1:  # a write without a change leaves the revision as it is
                return Verdict.warned(f"{verb} {path} {count + 1} times without a change", *trial.excerpt(same_calls))
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
                return Verdict.warned(
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
                    return Verdict.warned(f"lists all of {stream.key} from storage: neither limit nor resourceVersion", str(call))
        opened = Counter(call.stream for call in trial.trace.open_watches())
        for key, count in opened.most_common(1):
            if count > 1:
                same = [call for call in trial.trace.open_watches() if call.stream == key]
                return Verdict.warned(f"keeps {count} equal watches of {key} open", *trial.excerpt(same))
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
        return Verdict.warned(f"{idle} idle connections are open after {done} requests")


RULES = (IdleRequests,)

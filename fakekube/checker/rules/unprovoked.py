"""Rules that provoke nothing. Some read the trace of every run, whatever was provoked in it: which revisions watches start from,
lists without a watch, late reactions, equal pauses (W5, W8, W11, R4, N3). Others judge the baseline run: unnecessary requests of
an idle client (N3), and its User-Agent (N2).

Invariant: these rules start no client. What is found in a run names this run, and does not depend on time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

from fakekube.checker.judges import (
    judge_late_reaction,
    judge_lists_beside_watch,
    judge_lost_conditions,
    judge_resumption,
    judge_start_of_watch,
    judge_stuck_revision,
    judge_unfollowed_lists,
    judge_unknown_revision,
)
from fakekube.checker.rule import Rule
from fakekube.checker.rules.conflicts import ForeignCondition, KeptFields
from fakekube.checker.rules.retries import Jitter
from fakekube.checker.rules.watch_ends import ResumedWatch, WholeEvents
from fakekube.checker.rules.watch_events import WatchAfterList
from fakekube.checker.trace import LEASES, is_failure
from fakekube.checker.verdict import Verdict
from fakekube.checker.writes import writes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Trial
    from fakekube.checker.verdict import Verdict


class RequestEconomy(Rule):
    """The base class of the provocations of N3."""

    id = "N3"
    obligation = "no unnecessary requests: watch instead of polling, and no writes without a change"
    advice = "watch instead of polling; compare before each write; list with a limit or resourceVersion=0"
    source = "API conventions; API Priority and Fairness"


class InEveryRun(Rule):
    """The base class of rules that read the traces of all runs."""

    in_every_run = True
    fast = True


@dataclass(slots=True, frozen=True)
class _Lint:
    """What is looked for in the trace of every run."""

    family: type[Rule]
    """The base class of the provocations with the same id."""
    name: str
    what: str
    """The provocation, without "in every run"."""
    judge: Callable[[Trial], Verdict | None]
    advice: str = ""
    """"" for that of the family; so is `source`."""
    source: str = ""


def _judge_resumption(trial: Trial) -> Verdict | None:
    """Judges whether a watch that ended normally is resumed behind what it delivered."""
    return judge_resumption(trial, [call for call in trial.trace.since() if call.is_watch], bookmarks=False)


_LINTS = (
    _Lint(ResumedWatch, "resumption", "a watch that ended normally is resumed behind what it delivered", _judge_resumption),
    _Lint(
        ResumedWatch,
        "stuck",
        "one revision is watched again and again, although newer events were delivered",
        judge_stuck_revision,
    ),
    _Lint(WatchAfterList, "revisions", "a watch starts from a revision that no answer had", judge_unknown_revision),
    _Lint(WatchAfterList, "nowhere", "the watch after a list has no revision", judge_start_of_watch),
    _Lint(
        RequestEconomy,
        "lists",
        "lists are repeated and no watch follows them",
        judge_unfollowed_lists,
        advice="after a list that was answered, watch from its resourceVersion",
        source="API conventions; client-go tools/cache/reflector.go",
    ),
    _Lint(
        RequestEconomy, "beside", "what is watched is listed again and again, and nothing has changed", judge_lists_beside_watch
    ),
    _Lint(
        KeptFields,
        "conditions",
        "a condition that others have set disappears from the status",
        judge_lost_conditions,
        advice=ForeignCondition.advice,
        source=ForeignCondition.source,
    ),
    _Lint(WholeEvents, "late", "the reaction to an event comes only after another list or watch", judge_late_reaction),
)


def _rule_of(lint: _Lint) -> type[Rule]:
    """Returns the class of the rule for a row of `_LINTS`."""
    return type(
        f"Lint_{lint.name}",
        (InEveryRun, lint.family),
        {
            "__doc__": f"In every run: {lint.what}.",
            "name": lint.name,
            "provocation": f"in every run: {lint.what}",
            "advice": lint.advice or lint.family.advice,
            "source": lint.source or lint.family.source,
            "inspect": lambda self, trial: lint.judge(trial),
        },
    )


class EqualPauses(InEveryRun, Jitter):
    """The first pause after a failure, in any run: is it the same each time?"""

    name = "pauses"
    provocation = "in every run: the first pause after a failure is always the same"
    advice = "add a random part to the pause after each failure, the first one included"

    #: The least number of pauses to compare, and the shortest that is compared, in seconds.
    LEAST, SHORTEST = 10, 0.3
    #: Pauses are equal if this part of them, the shortest ones, differs by no more than a part and some seconds: a busy machine
    #: makes the others longer. Pauses with a random part of a tenth look like this in less than one of a thousand checks.
    PART, EQUAL, MEASURED = 0.8, 0.03, 0.03

    def __init__(self) -> None:
        self._pauses: dict[str, list[float]] = {}
        """The pauses of all runs, by the kind of failure."""

    def inspect(self, trial: Trial) -> Verdict | None:
        if trial.rule is None:
            return None
        for key, stream in trial.trace.streams().items():
            if key not in trial.baseline.streams or trial.baseline.is_shared(key):
                continue
            before: Call | None = None
            for call, following in pairwise(stream.calls):
                kind = _kind_of_failure(call)
                if kind and call.end is not None and (before is None or not _kind_of_failure(before)):
                    self._pauses.setdefault(kind, []).append(following.at - call.end)
                before = call
        return None

    def conclude(self) -> Verdict | None:
        for kind, pauses in self._pauses.items():
            if len(pauses) < self.LEAST:
                continue
            usual = sorted(pauses)[: round(self.PART * len(pauses))]
            if usual[0] < self.SHORTEST:
                continue
            if usual[-1] - usual[0] <= self.EQUAL * usual[0] + self.MEASURED:
                return Verdict.failure(
                    f"no jitter: of {len(pauses)} first pauses after {kind} {len(usual)} took {usual[0]:.2f} to {usual[-1]:.2f} s"
                )
        return None


def _kind_of_failure(call: Call) -> str:
    """Returns how an attempt failed; "" if it did not, if the server has said when to come again, or if it was dropped, after
    which HTTP libraries try again by themselves."""
    if call.dropped or call.retry_after:
        return ""
    if (call.status or 0) >= 500:
        return "a refusal"
    if call.ended == "cut by a fault":
        return "a reset"
    if not is_failure(call) or call.status == 410 or call.ended == "error 410":
        return ""
    return "an ERROR event" if (call.ended or "").startswith("error") else "a watch without events"


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
            if count > max(self.TIMES, length / self.POLLS, renewed):
                return Verdict.failure(shown, *same)
            if count >= max(self.TIMES, length / self.SUSPECTED, renewed):
                return Verdict.warning(shown, *same)
        watches = Counter(call.stream for call in idle if call.is_watch)
        for key, count in watches.most_common(1):
            if count > max(3, length / self.REOPENS, renewed):
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
            if count > 1:
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


#: User-Agent products of HTTP libraries and languages, which do not identify the client.
_HTTP_LIBRARIES = frozenset(
    {
        "python-urllib",
        "python-urllib3",
        "python-requests",
        "python-httpx",
        "python-httpx2",
        "python",
        "urllib3",
        "aiohttp",
        "openapi-generator",
        "swagger-codegen",
        "go-http-client",
        "okhttp",
        "java",
        "java-http-client",
        "apache-httpclient",
        "jersey",
        "axios",
        "node-fetch",
        "node",
        "undici",
        "got",
        "curl",
        "libcurl",
        "wget",
        "ruby",
        "faraday",
        "rest-client",
        "php",
        "guzzlehttp",
        "reqwest",
        "hyper",
        "dart",
        "perl",
        "libwww-perl",
    }
)

#: User-Agent products of client libraries for Kubernetes.
_LIBRARIES = frozenset(
    {"kr8s", "lightkube", "pykube", "pykube-ng", "fabric8-kubernetes-client", "kubernetes-client", "kube-rs", "kubernetesclient"}
)


class UserAgent(Rule):
    """Reads the User-Agents of requests for resources in the baseline run. A library may ask for the version first."""

    id = "N2"
    name = "agent"
    provocation = "nothing: its User-Agent is read"
    fast = True
    obligation = "a User-Agent of its own identifies the client in audit logs, flow schemas and managedFields"
    advice = "set User-Agent to program/version"
    source = "API Priority and Fairness; managedFields (the default manager is the User-Agent's first part)"
    on_baseline = True

    def judge(self, trial: Trial) -> Verdict:
        agents = list(dict.fromkeys(call.exchange.agent for call in trial.trace.since() if call.resource))
        for agent in agents:
            if not agent:
                return Verdict.failure("sends no User-Agent")
            if _product(agent) in _HTTP_LIBRARIES:
                return Verdict.failure(f"sends the default User-Agent of an HTTP library: {agent!r}")
        for agent in agents:
            if _product(agent) in _LIBRARIES:
                return Verdict.warning(f"sends the default User-Agent of a client library: {agent!r}")
        return Verdict.success(", ".join(agents))


def _product(agent: str) -> str:
    """Returns the name of the first product of a User-Agent, in lower case."""
    return re.split(r"[/ ;(]", agent.strip().lower(), maxsplit=1)[0]


RULES: tuple[type[Rule], ...] = (IdleRequests, UserAgent, EqualPauses, *map(_rule_of, _LINTS))

"""Rules that provoke nothing. Some read the trace of every run, whatever was provoked in it: which revisions watches start from,
lists without a watch, late reactions, equal pauses (W5, W8, W11, R4, N3). Another one judges the User-Agent in the baseline run
(N2).

Invariant: these rules start no client. What is found in a run names this run, and does not depend on time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from fakekube.checker.judges import (
    judge_late_reaction,
    judge_lists_beside_watch,
    judge_lost_conditions,
    judge_refused_writes,
    judge_resumption,
    judge_start_of_watch,
    judge_stuck_revision,
    judge_unfollowed_lists,
    judge_unknown_revision,
)
from fakekube.checker.pauses import judge_repeated_refusals
from fakekube.checker.rule import IN_EVERY_RUN, Rule
from fakekube.checker.rules.apply import judge_alternating_applies
from fakekube.checker.rules.changes import AppliedAfterChange
from fakekube.checker.rules.conflicts import ForeignCondition, KeptFields
from fakekube.checker.rules.denials import DeniedForOne
from fakekube.checker.rules.economy import RequestEconomy
from fakekube.checker.rules.identity import AlreadyThere
from fakekube.checker.rules.retries import Jitter
from fakekube.checker.rules.watch_ends import ResumedWatch, WholeEvents
from fakekube.checker.rules.watch_events import WatchAfterList
from fakekube.checker.trace import is_failure
from fakekube.checker.verdict import Verdict

if TYPE_CHECKING:
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Trial


class InEveryRun(Rule):
    """The base class of rules that read the traces of all runs."""

    in_every_run = True
    fast = True
    decisive = False  # a run without what is looked for passes: it has shown nothing of the client


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
    _Lint(WatchAfterList, "nowhere", "the watch after a list, or after another watch, has no revision", judge_start_of_watch),
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
        RequestEconomy,
        "invalid",
        "all writes of one kind are refused as invalid, and repeated",
        judge_refused_writes,
        advice="what is refused with 400 or 422 is never accepted: send what the API asks for",
        source="API conventions, HTTP status codes (400 and 422: do not retry, fix the request)",
    ),
    _Lint(
        KeptFields,
        "conditions",
        "a condition that others have set disappears from the status",
        judge_lost_conditions,
        advice=ForeignCondition.advice,
        source=ForeignCondition.source,
    ),
    _Lint(
        AlreadyThere,
        "conflicts",
        "a write that conflicts is repeated without growing pauses",
        partial(judge_repeated_refusals, code=409),
        advice="after a 409 read the object, and decide again; what cannot succeed is tried again after growing pauses",
        source="API conventions, status codes (409); client-go util/workqueue",
    ),
    _Lint(
        DeniedForOne,
        "invalid",
        "a write that is refused as invalid is repeated without growing pauses",
        partial(judge_repeated_refusals, code=422),
        advice="report in the status what is invalid; try again when the object changes, or after growing pauses",
        source="API conventions, status codes (422); client-go util/workqueue",
    ),
    _Lint(AppliedAfterChange, "parts", "the applies of an object alternate between parts of it", judge_alternating_applies),
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
            "provocation": f"{IN_EVERY_RUN}{lint.what}",
            "advice": lint.advice or lint.family.advice,
            "source": lint.source or lint.family.source,
            "inspect": lambda self, trial: lint.judge(trial),
        },
    )


class EqualPauses(InEveryRun, Jitter):
    """The first pause after a failure, in any run: is it the same each time?"""

    name = "pauses"
    provocation = f"{IN_EVERY_RUN}the first pause after a failure is always the same"
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


RULES: tuple[type[Rule], ...] = (UserAgent, EqualPauses, *map(_rule_of, _LINTS))

"""Rules about outages: writes that are refused for some seconds, a list that is not answered, a server that is not there when
the client starts (C1, R1, R2, R5, R6, S3, A1).

Invariant: an outage ends while the client runs, and the client has to complete its work afterwards.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.apimachinery.errors import status
from fakekube.checker.client_run import ClientEnded
from fakekube.checker.pauses import judge_backoff, judge_write_backoff
from fakekube.checker.provocations import LEADER_CHANGED, BreakUnanswered, Budget, EachWrite, answer_with, arm
from fakekube.checker.rule import Rule
from fakekube.checker.rules.conflicts import Conflicts, judge_conflicts, require_conflicts
from fakekube.checker.rules.credentials import RotatedToken
from fakekube.checker.rules.denials import DeniedForOne
from fakekube.checker.rules.retries import RetryAfter, ServerErrors
from fakekube.checker.rules.sieve import MissedChange, MissedDeletion
from fakekube.checker.sample import new_token
from fakekube.checker.trace import LEASES, WRITES, is_failure, mentions
from fakekube.checker.verdict import NotExercised, Outcome, Verdict
from fakekube.checker.waits import await_quiet, await_reactions, require_resumption
from fakekube.checker.writes import refusable_writes, refuse_apart, refuse_writes, require_kinds_of_writes, require_writes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault


class WriteOutage(Rule):
    """The base class of outages in which the client's writes fail."""

    expected_seconds = 12.0

    #: How long the outage lasts, as a part of the option --seconds.
    PART: ClassVar[float] = 0.5
    #: How many times a write is refused, if there is time: some clients give up after a few attempts.
    ATTEMPTS: ClassVar[int] = 0

    refused: int = 0
    """How many writes were refused."""

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline, *self.verbs())

    def verbs(self) -> tuple[str, ...]:
        """Returns the verbs of the writes that fail."""
        return ("create", "update", "patch", "delete")

    def provoke(self, trial: Trial) -> None:
        with ExitStack() as outage:
            faults = [
                outage.enter_context(self.fault(trial, verb, resource))
                for verb, resource in refusable_writes(trial.baseline, *self.verbs())
            ]
            copy = trial.stimulate()
            self.during(trial)
            trial.await_until(lambda: _is_met(faults) or trial.has_reacted(copy), trial.reaction_timeout)
            trial.wait(self.PART * trial.session.seconds)
            if trial.session.depth == "full":
                trial.await_until(lambda: self._most_attempts(trial) >= self.ATTEMPTS, trial.session.seconds)
            self.refused = sum(fault.hits for fault in faults)
        trial.await_all()

    @staticmethod
    def _most_attempts(trial: Trial) -> int:
        """Returns how many times the write that was refused most often was sent."""
        writes = trial.trace.refused_writes(trial.provoked_at)
        return max((sum(map(is_failure, one.calls)) for one in writes), default=0)

    def during(self, trial: Trial) -> None:
        """Does something else while the writes fail."""

    def fault(self, trial: Trial, verb: str, resource: str) -> Fault:
        """Makes the client's writes fail."""
        return trial.faults.on(verb, resource).status(500, message="etcdserver: leader changed", label="write refused")

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_write_backoff(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        if not self.refused:
            return Verdict.not_exercised("the client sent no write that was refused")
        return Verdict.success(f"{self.refused} refused writes")


def _is_met(faults: Sequence[Fault]) -> bool:
    """Reports whether a write was refused: an outage lasts some seconds from then on, so that a slow client meets it, too."""
    return any(fault.hits for fault in faults)


class FailingWrites(WriteOutage):
    """All writes are answered with 500 for some seconds."""

    id = "R2"
    name = "writes"
    provocation = "writes are answered with 500 for some seconds"
    fast = True
    expected_seconds = 35.0
    ATTEMPTS = 8
    obligation = ServerErrors.obligation
    advice = "keep the object in the queue, and double the pause before each attempt"
    source = "client-go util/workqueue (ItemExponentialFailureRateLimiter)"


class UnansweredWrites(FailingWrites):
    """Writes are not answered for some seconds, and then their connections break."""

    name = "writes-hang"
    provocation = "writes are not answered, and their connections break after some seconds"
    legality = "C"
    fast = False
    expected_seconds = 8.0
    ATTEMPTS = 0

    def fault(self, trial: Trial, verb: str, resource: str) -> Fault:
        return arm(trial.faults.on(verb, resource), BreakUnanswered(), label="not answered")


class EachWriteRefused(FailingWrites):
    """Each kind of write is refused once: those that follow others, too, which an outage does not meet."""

    name = "writes-once"
    provocation = "each kind of write is answered with 500 once"
    expected_seconds = 5.0
    fast = False
    ATTEMPTS = 0

    #: How many writes are refused at most: a client may write for ever.
    MOST: ClassVar[int] = 30

    def __init__(self) -> None:
        self._budget = EachWrite(1, most=self.MOST)

    def provoke(self, trial: Trial) -> None:
        with ExitStack() as refusals:
            for verb, resource in refusable_writes(trial.baseline, *self.verbs()):
                refusals.enter_context(self.fault(trial, verb, resource))
            trial.converge()
        self.refused = self._budget.taken

    def fault(self, trial: Trial, verb: str, resource: str) -> Fault:
        def refuse(exchange: Exchange) -> tuple[int, Any] | None:
            return LEADER_CHANGED if self._budget.take_write(exchange) else None

        return trial.faults.on(verb, resource).intercept(refuse, label="write refused")


class WritesRefusedApart(FailingWrites):
    """One kind of write is refused for each of several copies, and all others succeed."""

    name = "writes-apart"
    provocation = "one kind of write for an object is answered with 500 for some seconds, and all others succeed"
    fast = False
    advice = "return each error of a write, so that the object is queued again; write the status last, and only what is true"
    expected_seconds = WriteOutage.expected_seconds

    def require(self, baseline: Baseline) -> None:
        super().require(baseline)
        require_kinds_of_writes(baseline.reaction)

    def provoke(self, trial: Trial) -> None:
        refused = {new_token(trial.random): one for one in require_kinds_of_writes(trial.baseline.reaction)}
        with refuse_apart(trial, refused) as met:
            for token in refused:
                trial.stimulate(token=token)
            trial.await_until(lambda: met == refused.keys(), trial.reaction_timeout)
            trial.wait(_UNDER_FAULT)
        self.refused = len(met)
        trial.await_all()


class ForgottenFailures(MissedChange):
    """A copy is changed several times, each time the writes that follow fail twice, and then succeed: the pauses begin anew."""

    id = "R2"
    name = "forgets"
    provocation = "the writes for one object fail twice and succeed, again and again"
    fast = False
    steps = ()
    obligation = ServerErrors.obligation
    advice = "when work has succeeded, forget its failures, so that the next pause is the first one again"
    source = "client-go util/workqueue (Forget of ItemExponentialFailureRateLimiter)"
    expected_seconds = 12.0

    #: How many rounds at most, how many writes fail in each, and the seconds after which no further round begins.
    ROUNDS, FAILURES, SECONDS = 6, 2, 30.0
    #: The pauses go on where those of the last round ended if the first pause of each round is at least this part of the last one
    #: of the round before, and the last one so many times the first one, and so many seconds.
    GOES_ON, GROWN, LONG = 0.5, 6.0, 0.8
    #: Below so many seconds pauses cannot be compared; then a pause that has not grown so much shows that nothing goes on.
    SHORT, MORE = 0.15, 1.5

    def __init__(self) -> None:
        self.rounds: list[Sequence[float]] = []
        """The pauses after the failures of each round, in seconds."""

    def provoke(self, trial: Trial) -> None:
        self.reaction = self.learn(trial)
        writes = sorted({*refusable_writes(trial.baseline), *self.writes_after_change})
        subject, begun = trial.copies[0], trial.now
        while len(self.rounds) < self.ROUNDS and trial.now - begun < self.SECONDS:
            budget = Budget(self.FAILURES, most=self.FAILURES)

            def refuse(exchange: Exchange, budget: Budget = budget) -> tuple[int, Any] | None:
                return LEADER_CHANGED if mentions(exchange, subject.token) and budget.take(None) else None

            self.mark = mark = trial.trace.mark()
            with ExitStack() as refusals:
                for verb, resource in writes:
                    refusals.enter_context(trial.faults.on(verb, resource).intercept(refuse, label="write refused"))
                self._alter(trial, subject)
                if not trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout):
                    return
            pauses = _pauses_after_failures(trial, subject, mark)
            if len(pauses) < self.FAILURES:
                raise NotExercised("the client does not repeat a write that failed, one after the other")
            self.rounds.append(pauses)
            await_quiet(trial, mark, [subject.token])
            newest = pauses[0]
            if len(self.rounds) > 1 and newest > self.SHORT and newest < self.MORE * self.rounds[0][0]:
                return

    def _goes_on(self) -> bool:
        """Reports whether the pauses of each round go on where those of the last one ended."""
        return all(after[0] >= self.GOES_ON * before[-1] for before, after in itertools.pairwise(self.rounds))

    def judge_trace(self, trial: Trial) -> Verdict:
        first = [pauses[0] for pauses in self.rounds]
        if len(first) > 2 and self._goes_on() and first[-1] >= max(self.GROWN * first[0], self.LONG):
            shown = ", ".join(f"{pause:.2f}" for pause in first)
            return Verdict.failure(
                f"the failures of {trial.copies[0].names()[0]} are not forgotten when its work succeeds: the first pause of each "
                f"round grows, {shown} s",
                *trial.excerpt(),
                by_chance=True,
            )
        return super().judge_trace(trial)


def _pauses_after_failures(trial: Trial, copy: Copy, mark: int) -> list[float]:
    """Returns the pauses in seconds after the failed writes for a copy, each until the next request about it."""
    calls = [call for call in trial.trace.since(mark) if not call.is_watch and call.mentions(copy.token)]
    return [after.at - (call.end or call.at) for call, after in itertools.pairwise(calls) if call.is_write and is_failure(call)]


class ConflictOutage(WriteOutage):
    """Each write conflicts for some seconds."""

    id = "C1"
    name = "spell"
    provocation = "each update conflicts for some seconds"
    obligation = Conflicts.obligation
    advice = Conflicts.advice
    source = Conflicts.source

    def require(self, baseline: Baseline) -> None:
        require_conflicts(baseline)

    def verbs(self) -> tuple[str, ...]:
        return ("update", "patch")

    def fault(self, trial: Trial, verb: str, resource: str) -> Fault:
        """Refuses writes from a revision, without a write of another client: its events would wake a client each time."""

        def refuse(exchange: Exchange) -> tuple[int, Any] | None:
            body = exchange.body
            if not isinstance(body, dict) or not (body.get("metadata") or {}).get("resourceVersion"):
                return None
            return answer_with(status.conflict(exchange.group, exchange.resource, exchange.name, status.OPTIMISTIC_LOCK_ERROR))

        return trial.faults.on(verb, resource).intercept(refuse, label="another editor")

    def judge_trace(self, trial: Trial) -> Verdict:
        return judge_conflicts(trial)


class RefusedAgainAndAgain(WriteOutage):
    """All writes are refused with 429 for longer than a few attempts."""

    id = "R1"
    name = "writes-again"
    provocation = "writes are refused with 429 again and again"
    expected_seconds = 33.0
    ATTEMPTS = 8
    obligation = RetryAfter.obligation
    advice = RetryAfter.advice
    source = RetryAfter.source

    def fault(self, trial: Trial, verb: str, resource: str) -> Fault:
        return trial.faults.on(verb, resource).status(429, message="too many requests", retry_after=1, label="too many requests")

    def find_failure(self, trial: Trial) -> Verdict | None:
        return None

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.success(f"{self.refused} refused writes") if self.refused else super().judge_trace(trial)


class ChangedUnderFault(MissedChange):
    """A copy is changed while the client's writes fail."""

    name = "under-fault"
    provocation = "an object is changed while the writes of the client fail"
    expected_seconds = 12.0
    steps = ()

    def provoke(self, trial: Trial) -> None:
        self.reaction = self.learn(trial)
        with refuse_writes(trial, sorted({*refusable_writes(trial.baseline), *self.writes_after_change})) as faults:
            self.mark = trial.trace.mark()
            self._alter(trial, trial.copies[0])
            trial.await_until(lambda: _is_met(faults), trial.reaction_timeout)
            trial.wait(_UNDER_FAULT)
        trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout)


#: For how many seconds writes fail after a change or a deletion.
_UNDER_FAULT = 3.0


class ChangedUnderFaultApart(ChangedUnderFault):
    """Copies are changed while one kind of write for each of them fails, and all others succeed."""

    name = "fault-apart"
    provocation = "an object is changed while one kind of write for it fails, and all others succeed"
    fast = False
    advice = WritesRefusedApart.advice

    changed: Sequence[Copy] = ()

    def provoke(self, trial: Trial) -> None:
        self.reaction = self.learn(trial)
        refused = {new_token(trial.random): one for one in require_kinds_of_writes(self.reaction)}
        self.changed = [trial.stimulate(token=token) for token in refused]
        await_reactions(trial, self.changed)
        self.mark = trial.trace.mark()
        with refuse_apart(trial, refused) as met:
            for copy in self.changed:
                self._alter(trial, copy)
            trial.await_until(lambda: met == refused.keys(), trial.reaction_timeout)
            trial.wait(_UNDER_FAULT)
        trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout)

    def subjects(self, trial: Trial) -> Sequence[Copy]:
        return self.changed


class DeletedUnderFault(MissedDeletion):
    """A copy is deleted while the client's writes fail."""

    name = "deletion-fault"
    provocation = "an object is deleted while the writes of the client fail"
    fast = False
    steps = ()

    def miss(self, trial: Trial, subject: Copy) -> None:
        after_deletion = {
            (one.detail[0], one.resource) for one in trial.baseline.deletion.effects if one.detail[:1] and one.detail[0] in WRITES
        }
        writes = {*refusable_writes(trial.baseline), *after_deletion}
        if any(verb == "delete" for verb, _ in after_deletion) and any(verb != "delete" for verb, _ in after_deletion):
            writes = {pair for pair in writes if pair[0] == "delete"}  # so that what follows the deletes succeeds
        with refuse_writes(trial, sorted(writes)) as faults:
            trial.delete(subject)
            if after_deletion:
                trial.await_until(lambda: _is_met(faults), trial.reaction_timeout)
            trial.wait(_UNDER_FAULT)


class UnansweredReads(ServerErrors):
    """Reads are not answered for some seconds, and then their connections break: lists and watches, and the gets of the objects
    that the client handles."""

    name = "hangs"
    provocation = "lists, watches and gets are not answered, and their connections break after some seconds"
    legality = "C"
    fast = False
    is_step = False
    expected_seconds = 12.0
    TIMES = 0.5
    counts = False

    @contextmanager
    def failing(self, trial: Trial) -> Iterator[None]:
        got = {call.collection for call in trial.baseline.trial.trace if call.verb == "get" and call.resource} - {LEASES}
        with ExitStack() as outage:
            outage.enter_context(trial.faults.on("list,watch").hang(label="not answered"))
            for resource in got:
                outage.enter_context(trial.faults.on("get", resource).hang(label="not answered"))
            if got:
                trial.stimulate()
            yield
        trial.faults.on("watch").cut(label="broken").remove()

    def judge_trace(self, trial: Trial) -> Verdict:
        return Rule.judge_trace(self, trial)


class UnauthorizedSpell(Rule):
    """All requests are answered with 401 for some seconds, although the token is valid: the server cannot check it."""

    id = "A1"
    name = "unchanged"
    provocation = "requests are answered with 401 for some seconds, and the token stays the same"
    obligation = RotatedToken.obligation
    advice = "treat a 401 with an unchanged token as a failed request: try again, with backoff"
    source = "client-go tools/cache/reflector.go; Kubernetes docs, authentication webhooks"
    legality = "B"
    steps = ("W5",)
    watches = True
    expected_seconds = 12.0

    #: For how many seconds.
    SECONDS = 5.0
    #: The verbs of the requests that are refused.
    VERBS: ClassVar[str] = "*"

    def judge_trace(self, trial: Trial) -> Verdict:
        loop = judge_backoff(trial.attempts_since())
        return loop if loop is not None and loop.outcome is Outcome.FAIL else Verdict.success()

    def provoke(self, trial: Trial) -> None:
        require_resumption(trial)

        def refuse(exchange: Exchange) -> tuple[int, Any] | None:
            if exchange.resource == "leases":
                return None  # a leader that cannot renew has to end
            return answer_with(self.refusal(exchange))

        with trial.faults.on(self.VERBS).intercept(refuse, label="refused"):
            trial.faults.on("watch").end(label="ended").remove()
            trial.stimulate()
            trial.wait(self.SECONDS)
        trial.await_all()

    @staticmethod
    def refusal(exchange: Exchange) -> status.StatusError:
        """Returns the error of a request that is refused."""
        return status.unauthorized()


class ForbiddenReads(UnauthorizedSpell):
    """Lists and watches are forbidden for some seconds: somebody replaces the role of the client."""

    id = "R6"
    name = "reads"
    provocation = "lists and watches are answered with 403 for some seconds"
    obligation = DeniedForOne.obligation
    advice = "treat a 403 of a list or a watch as a failed request: try again, with backoff"
    source = "client-go tools/cache/reflector.go; Kubernetes docs, RBAC (a roleRef cannot be changed: bindings are replaced)"
    legality = "A"

    VERBS = "list,watch"

    @staticmethod
    def refusal(exchange: Exchange) -> status.StatusError:
        group, resource, namespace = exchange.group, exchange.resource, exchange.namespace
        problem = status.describe_refusal(
            exchange.user, exchange.verb, resource, exchange.subresource, group=group, namespace=namespace
        )
        return status.forbidden(group, resource, exchange.name, problem)


class StartsInOutage(Rule):
    """The client is killed and started again while the server refuses everything."""

    id = "R5"
    name = "restart"
    provocation = "the client is started again while everything is answered with 503"
    obligation = (
        "after a restart, too, a client that is refused tries again with growing pauses, or ends and leaves the pause to others"
    )
    advice = "use the same backoff for the first requests as for later ones"
    source = "client-go tools/cache/reflector.go (backoff); Kubernetes docs, Pod lifecycle (back-off of restarts)"
    restarts = True
    expected_seconds = 20.0

    #: How long everything is refused, as a part of the option --seconds.
    PART = 0.8

    ended_in_outage: str = ""

    def provoke(self, trial: Trial) -> None:
        trial.kill_client()
        everything = (trial.faults.on("*"), trial.faults.on("*", path="*"))
        with ExitStack() as outage:
            for one in everything:
                outage.enter_context(one.status(503, message="apiserver not ready", label="outage"))
            trial.begin_provocation()
            try:
                trial.start_client()
                trial.wait(self.PART * trial.session.seconds)
            except ClientEnded:
                self.ended_in_outage = trial.ended
                trial.ended = ""
                trial.kill_client()
        if self.ended_in_outage:
            trial.start_client()

    def judge_trace(self, trial: Trial) -> Verdict:
        if self.ended_in_outage:
            return Verdict.success(f"{self.ended_in_outage}: its restarts are paced by what starts it")
        refused = [call for call in trial.trace.since(trial.provoked_at) if call.status == 503]
        if not refused:
            raise NotExercised("the client sent no request during the outage")
        return judge_backoff(trial.attempts_since()) or Verdict.success(f"{len(refused)} refused requests")


RULES = (
    FailingWrites,
    UnansweredWrites,
    EachWriteRefused,
    WritesRefusedApart,
    ForgottenFailures,
    ConflictOutage,
    RefusedAgainAndAgain,
    ChangedUnderFault,
    ChangedUnderFaultApart,
    DeletedUnderFault,
    UnansweredReads,
    UnauthorizedSpell,
    ForbiddenReads,
    StartsInOutage,
)

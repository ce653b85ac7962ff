"""Rules about failed requests: Retry-After, server errors, lost answers, reconnects (R1 to R4)."""

from __future__ import annotations

import time
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.apimachinery.errors import status
from fakekube.checker.judges import judge_extra_children
from fakekube.checker.pauses import judge_backoff, judge_growth, judge_jitter
from fakekube.checker.provocations import EachWrite, RefuseEach, RefuseInText, answer_with, arm
from fakekube.checker.rule import Rule
from fakekube.checker.rules.watch_errors import judge_only_failures
from fakekube.checker.trace import excerpt, is_failure
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_requests, require_resumption
from fakekube.checker.writes import creating_writes, generated_children, require_writes, writes_of
from fakekube.controllers.client import ApiError
from fakekube.powers.fault_actions import TOO_MANY_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call, StreamKey
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault

#: The Retry-After of refusals, in seconds: longer than the first pauses of a usual backoff.
_RETRY_AFTER = 4
#: How much too early an attempt may appear, in seconds, because server and client measure from different moments.
_TOLERANCE = 0.15

#: After this error it is unknown whether the request was performed.
_TIMEOUT = status.context_deadline_exceeded()


class RetryAfter(Rule):
    """The base class of the provocations of R1."""

    id = "R1"
    obligation = "429 or 503 with Retry-After: wait at least that long, then retry"
    advice = "read the Retry-After header (or details.retryAfterSeconds) and send the request again no sooner"
    source = "client-go rest/with_retry.go (429 and 5xx); API Priority and Fairness; KEP-4568; apiserver notfoundhandler (503)"
    expected_seconds = 15.0

    def judge_trace(self, trial: Trial) -> Verdict:
        refused = [call for call in trial.trace.since(trial.provoked_at) if _retry_after_of(call)]
        if not refused:
            return Verdict.not_exercised("the client sent no request that was refused")
        if not any(_retry_after_of(call) and following is not None for call, following in _attempts(trial.trace.since())):
            return Verdict.not_exercised("the client did not repeat the refused requests")
        for stream in trial.attempts_since():
            for call, following in pairwise(stream.calls):
                end, retry_after = call.end, _retry_after_of(call)
                if not retry_after or end is None or _is_shared(trial, call):
                    continue
                if following.at - end < retry_after - _TOLERANCE:
                    return Verdict.warning(
                        f"{following.verb} {stream.key} came {following.at - end:.2f} s after a {call.verb} of it was refused "
                        f"with Retry-After: {retry_after}",
                        *trial.excerpt(stream.calls),
                    )
        return Verdict.success(f"{len(refused)} refusals with Retry-After {_retry_after_of(refused[0])} s")

    def find_failure(self, trial: Trial) -> Verdict | None:
        calls = trial.trace.since(trial.provoked_at)
        for call, following in _attempts(calls):
            end, retry_after = call.end, _retry_after_of(call)
            if end is None or following is None or not retry_after or _is_shared(trial, call):
                continue
            pause = following.at - end
            if pause < retry_after - _TOLERANCE and not _is_woken(trial, call, following):
                return Verdict.failure(
                    f"{call.verb} {call.path} was repeated {pause:.2f} s after a {call.status} with Retry-After: {retry_after}",
                    *trial.excerpt([call, following]),
                    *trial.excerpt(),
                    by_chance=call.is_write,  # the client may have read an event of the object late
                )
        return None


def _retry_after_of(call: Call) -> int:
    """Returns the Retry-After of a refused call, in seconds; 0 if there is none."""
    return call.retry_after if call.status in (429, 503) else 0


def _attempts(calls: Sequence[Call]) -> Iterator[tuple[Call, Call | None]]:
    """Yields each call with the next attempt: the next call with the same stream and verb, or the same write."""

    def purpose(call: Call) -> object:
        if call.is_watch or call.is_list:
            return (call.stream, call.is_watch, call.sends_initial_events)
        return (call.verb, call.path, call.exchange.raw_body if call.is_write else b"")

    for number, call in enumerate(calls):
        same = purpose(call)
        yield call, next((one for one in calls[number + 1 :] if purpose(one) == same), None)


def _is_woken(trial: Trial, refused: Call, following: Call) -> bool:
    """Reports whether a refused write and the next attempt may come from different events of the same copy: for many queues the
    second one is new work, and not a repetition.

    An event between them is one reason. Another one is an event from before the refused write, if the next attempt comes at once,
    or if requests about the copy begin at once and lead to it: several workers, or a queue with an entry for each event, may be
    behind. So may be one worker that has written to the copy before: it was busy when the event of that write came. The event of
    the creation of the copy does not count.
    """
    if not refused.is_write:
        return False
    copies = [copy for copy in trial.copies if refused.mentions(copy.token)]
    created = {obj["metadata"]["resourceVersion"] for copy in copies for obj in copy.objects}
    about = _calls_about(trial, copies, following)
    before = [call for call in about if call.number < refused.number]
    begun = min([refused.at - _BEHIND, *(call.at for call in before[-1:])])
    pace = median(_pauses([*before, refused]) or [0.0])
    usual = max(_UNEVEN * pace, _AT_ONCE + _AT_ONCE_LATER * (trial.session.slowness() - 1))
    at_once = all(pause < usual for pause in _pauses([*about[len(before) :], following]))
    return any(
        refused.at < event.at < following.at
        or (at_once and begun < event.at <= refused.at and str(event.revision) not in created)
        for watch in trial.trace.since(-1)
        if watch.is_watch
        for event in watch.events
        if any(copy.token in event.name or copy.token in event.namespace for copy in copies)
    )


def _calls_about(trial: Trial, copies: Sequence[Copy], last: Call) -> list[Call]:
    """Returns the requests about some copies before another one, without watches."""
    return [
        call
        for call in trial.trace.since(-1)
        if not call.is_watch and call.number < last.number and any(call.mentions(copy.token) for copy in copies)
    ]


def _pauses(calls: Sequence[Call]) -> list[float]:
    """Returns the seconds between the end of each call and the next one."""
    return [late.at - (early.end or early.at) for early, late in pairwise(calls)]


#: A client may be so many seconds behind the events; a worker takes the next entry of its queue within so many seconds, and on a
#: busy machine within so many more, or within so many times its usual time between two requests about an object.
_BEHIND, _AT_ONCE, _AT_ONCE_LATER, _UNEVEN = 0.5, 0.1, 0.5, 1.25


def _is_shared(trial: Trial, call: Call) -> bool:
    """Reports whether the client may send such requests for several purposes at once, so that attempts cannot be
    distinguished."""
    baseline = trial.baseline
    if call.is_write:  # several children may have equal bodies, if the server generates their names
        return call.verb == "create" and not call.name and baseline.reaction.children.get(call.resource, 0) > 1
    if not (call.is_watch or call.is_list) or (call.is_list and baseline.streams and call.stream not in baseline.streams):
        return True
    return baseline.has_several_watches(call.stream) if call.is_watch else baseline.is_shared(call.stream)


class RetryAfterAtStart(RetryAfter):
    """The watch cache is not initialized when the client starts."""

    name = "start"
    decisive = True
    provocation = "lists and watches are refused with 429 at the start"
    expected_seconds = 10.0
    fast = True
    at_start = True

    retry_after = _RETRY_AFTER
    #: How many seconds after the client's start lists and watches are refused.
    seconds = 2.0

    refusing: Fault

    def prepare(self, trial: Trial) -> None:
        message = "storage is (re)initializing"
        refusing = trial.faults.on("list,watch").status(429, message=message, retry_after=self.retry_after, label="initializing")
        self.refusing = refusing

    def provoke(self, trial: Trial) -> None:
        trial.wait(self.seconds)
        self.refusing.remove()


class RetryAfterAgainAndAgain(RetryAfterAtStart):
    """Lists and watches are refused for longer than a client with limited retries tries."""

    name = "again"
    decisive = False
    provocation = "lists and watches are refused with 429 again and again"
    fast = False
    retry_after = 1
    seconds = 8.0
    expected_seconds = 15.0


#: For how many seconds a watch is refused again and again.
_SPELL = 3.5


class RetryAfterOnWatch(RetryAfter):
    """A watch ends and is refused: with a Status, as by a server that has not installed all paths yet, and with a text, as by API
    Priority and Fairness."""

    name = "watch"
    decisive = True
    provocation = "a watch that reconnects is refused with 429 and 503"
    watches = True
    steps = ("W5",)
    fast = True

    def provoke(self, trial: Trial) -> None:
        require_resumption(trial)
        with trial.faults.on("list,watch").status(503, message=_NOT_INSTALLED, retry_after=_RETRY_AFTER, label="not installed"):
            await_requests(trial, trial.end_watches())
        trial.converge()
        trial.require_watch()  # a client that receives nothing may still pause
        with arm(trial.faults.on("list,watch"), RefuseInText((503, 429), _TEXT, retry_after=1), label="in text"):
            await_requests(trial, trial.end_watches())
            trial.wait(_SPELL)  # a client may handle one refusal, and not the next one


#: The message for a path that is not installed yet while the server starts.
_NOT_INSTALLED = "the request has been made before all known HTTP paths have been installed, please try again"
#: The text that filters of the API server send instead of a Status.
_TEXT = f"{TOO_MANY_REQUESTS}\n"


class RetryAfterDate(RetryAfter):
    """What refuses requests is no API server: its Retry-After is a date."""

    name = "date"
    provocation = "requests are refused with 503 and a date in Retry-After"
    expected_seconds = 8.0
    legality = "C"
    watches = True
    steps = ("W5",)
    source = "RFC 9110, section 10.2.3 (Retry-After); client-go rest/request.go takes a date for no header"

    #: For how many seconds requests are refused, and how many of them the date is ahead.
    SECONDS, AHEAD = 2.5, 2.0

    def provoke(self, trial: Trial) -> None:
        require_resumption(trial)
        page = "<html><body>Down for maintenance</body></html>\n"
        refusal = RefuseInText((503,), page, "text/html", retry_after=formatdate(time.time() + self.AHEAD, usegmt=True))
        with arm(trial.faults.on("list,watch,create,update,patch"), refusal, label="maintenance"):
            trial.faults.on("watch").end(label="ended").remove()
            trial.stimulate()
            trial.wait(self.SECONDS)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return None

    def judge_trace(self, trial: Trial) -> Verdict:
        refused = sum(call.status == 503 for call in trial.trace.since(trial.provoked_at))
        return Verdict.success(f"{refused} refusals") if refused else Verdict.not_exercised("the client sent no request")


#: How many writes are refused, each of which costs the client the time of Retry-After.
_MOST_REFUSED = 4


class RetryAfterOnWrite(RetryAfter):
    """A write is refused, with a Status and with a text."""

    name = "write"
    provocation = "a write is refused with 429 and 503"
    expected_seconds = 8.0
    fast = True

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        writes = require_writes(trial.baseline)
        budget = EachWrite(1, most=_MOST_REFUSED)

        refusing = RefuseEach(budget, _RETRY_AFTER)
        faults = [arm(trial.faults.on(verb, one), refusing, label="too many requests") for verb, one in writes]
        trial.converge()
        for fault in faults:
            fault.remove()
        refused = RefuseInText((503,), _TEXT, retry_after=_RETRY_AFTER)
        generated = generated_children(trial.baseline)  # their creates cannot be told apart
        for verb, resource in sorted(writes, key=lambda one: one[0] == "create" and one[1] in generated)[:1]:
            arm(trial.faults.on(verb, resource), refused, times=1, label="in text")


class ServerErrors(Rule):
    """All lists and watches fail for some time."""

    id = "R2"
    name = "spell"
    provocation = "a spell of 500 and 503 without Retry-After"
    steps = ("W5",)
    fast = True
    obligation = "server errors without Retry-After: retry without limit, with exponential backoff and jitter"
    advice = "double the pause between attempts from about a second up to half a minute, and add a random part"
    source = "client-go tools/cache/reflector.go (backoff 800 ms to 30 s, jitter 1.0)"
    expected_seconds = 55.0

    #: How long the failures last, as a factor of the option --seconds.
    TIMES = 2.0
    counts: ClassVar[bool] = True
    """Whether the failures last until the client has made several attempts."""

    def provoke(self, trial: Trial) -> None:
        watching = bool(trial.baseline.streams)
        if watching:
            require_resumption(trial)
        with self.failing(trial):
            trial.faults.on("watch").end(label="ended").remove()
            trial.wait(max(self.TIMES * trial.session.seconds, _POLLS * trial.baseline.poll_seconds()))
            if watching and self.counts and trial.session.depth == "full":  # some clients give up after five attempts
                trial.await_until(lambda: self._fewest_attempts(trial) >= _ATTEMPTS, self.TIMES * trial.session.seconds)

    @staticmethod
    def _fewest_attempts(trial: Trial) -> int:
        """Returns how many attempts have failed on the stream with the fewest."""
        return min((sum(map(is_failure, stream.calls)) for stream in trial.streams_since().values()), default=0)

    @contextmanager
    def failing(self, trial: Trial) -> Iterator[None]:
        """Makes all lists and watches fail within the context."""
        reads = trial.faults.on("list,watch")
        with reads.status(500, message="etcdserver: leader changed", every=2), reads.status(503):
            yield

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(map(is_failure, trial.trace.since(trial.provoked_at))):
            return Verdict.not_exercised("the client sent no request that failed")
        streams = trial.attempts_since()
        return judge_backoff(streams) or judge_jitter(streams) or judge_growth(streams) or super().judge_trace(trial)


#: How many attempts the client makes while everything fails, if there is time. If it only lists, everything fails for so
#: many of its pauses between two lists.
_ATTEMPTS, _POLLS = 6, 2.5


class ProxyErrors(ServerErrors):
    """A proxy answers with HTML pages."""

    name = "proxy"
    provocation = "a proxy answers 502 and 504 with a page of HTML"
    fast = False
    steps = ("W5",)
    legality = "C"
    expected_seconds = 15.0
    TIMES = 0.6
    counts = False

    @contextmanager
    def failing(self, trial: Trial) -> Iterator[None]:
        page = "<html><body><h1>502 Bad Gateway</h1>The server did not answer.</body></html>\n"
        with arm(trial.faults.on("list,watch"), RefuseInText((502, 504), page, "text/html"), label="proxy"):
            yield


class RefusedConnections(ServerErrors):
    """Connections are dropped before an answer, as during a restart of the server."""

    name = "dropped"
    provocation = "connections drop before an answer"
    is_step = True
    fast = False
    steps = ("W5",)
    legality = "C"
    expected_seconds = 15.0
    TIMES = 0.6
    counts = False

    @contextmanager
    def failing(self, trial: Trial) -> Iterator[None]:
        with trial.faults.on("list,watch").refuse(label="dropped"):
            yield

    def judge_trace(self, trial: Trial) -> Verdict:
        """Returns a failure for a hot loop only: client-go itself repeats a read every second, up to ten times."""
        return judge_only_failures(trial) or Verdict.success()


class LostAnswer(Rule):
    """A create is performed and its answer is lost."""

    id = "R3"
    name = "lost"
    provocation = "the connection breaks after a create was performed"
    fast = True
    obligation = "a create without an answer may have succeeded: look for the object before creating it again"
    advice = "after a broken connection or a 504 look for the object by label or owner, or use fixed names"
    source = "kubernetes#55860; KEP-4420 (generateName)"
    expected_seconds = 10.0

    #: How many creates of each resource: a client may create several objects for one, and only one carelessly.
    TIMES = 2

    def require(self, baseline: Baseline) -> None:
        _require_creates(baseline)

    def provoke(self, trial: Trial) -> None:
        for verb, resource in _require_creates(trial.baseline):
            trial.faults.on(verb, resource).lose(times=self.TIMES, label="answer lost")

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_extra_children(trial, generated_children(trial.baseline))

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(call.exchange.fault for call in writes_of(trial.trace.since(trial.provoked_at))):
            return Verdict.not_exercised("the client sent no create")
        return Verdict.success()


class TimedOutCreate(LostAnswer):
    """A create is performed and answered with 504."""

    name = "timeout"
    provocation = "a create was performed and is answered with 504"
    fast = False

    def provoke(self, trial: Trial) -> None:
        def perform(exchange: Exchange) -> tuple[int, Any] | None:
            """Performs the same request as another one; the client gets a 504."""
            try:
                if exchange.verb == "create":
                    trial.cluster.call("POST", exchange.path, exchange.body)
                else:
                    trial.cluster.apply(exchange.body, field_manager=exchange.query.get("fieldManager", ""))
            except ApiError:
                return None
            return answer_with(_TIMEOUT)

        for verb, resource in _require_creates(trial.baseline):
            trial.faults.on(verb, resource).intercept(perform, times=self.TIMES, label="timed out")


def _require_creates(baseline: Baseline) -> list[tuple[str, str]]:
    """Returns `creating_writes`. Raises NotExercised if there are none."""
    found = creating_writes(baseline)
    if not found:
        raise NotExercised("the client creates nothing")
    return found


def _are_asked_for(trial: Trial, mark: int, streams: set[StreamKey]) -> bool:
    """Reports whether the client has sent a request of each stream after a mark."""
    return streams <= set(trial.trace.streams(mark))


class Jitter(Rule):
    """The base class of the provocations of R4."""

    id = "R4"
    obligation = "after a connection drop clients resume their watches, or pause for a partly random time before they list"
    advice = "resume the watch, or add a random part to each pause before a reconnect, the first one included"
    source = "kubernetes#6770; client-go reflector (jitter 1.0)"


class ConnectionDrops(Jitter):
    """All connections drop, several times. The pauses of the client show whether many clients would reconnect at the same
    time."""

    name = "resets"
    provocation = "all connections are reset, again and again"
    watches = True
    steps = ("W8",)
    legality = "C"
    expected_seconds = 25.0

    #: How many times the connections drop, each time with a freshly started client.
    ROUNDS = 5
    #: Pauses below `AT_ONCE` seconds are immediate. Pauses that differ by less than the part `EQUAL` count as equal; five random
    #: pauses between 1 s and 2 s do so by chance about once in 500 times.
    AT_ONCE, EQUAL = 0.1, 0.14

    pauses: Sequence[Sequence[float]] = ()
    relists: Sequence[Call] = ()

    restarts = True

    def provoke(self, trial: Trial) -> None:
        trial.require_watch()
        pauses: list[list[float]] = []
        relists: list[Call] = []
        for number in range(self.ROUNDS):
            if number:
                trial.restart_client()
                trial.converge()
                trial.wait(1.2)
            mark = trial.trace.mark()
            dropped_at = trial.now
            streams = {call.stream for call in trial.require_watch()}
            trial.faults.on("watch").cut(label="dropped").remove()
            if not trial.await_until(partial(_are_asked_for, trial, mark, streams), trial.reaction_timeout):
                raise NotExercised("the client does not reconnect after a drop")
            found = trial.trace.streams(mark)
            pauses.append([found[key].calls[0].at - dropped_at for key in streams if key in found])
            first = [found[key].calls[0] for key in streams if key in found]
            relists += [call for call in first if not call.resumes and call.at - dropped_at < self.AT_ONCE][:1]
        self.pauses, self.relists = pauses, relists

    def judge_trace(self, trial: Trial) -> Verdict:
        pauses = [pause for some in self.pauses for pause in some[:1]]
        if len(pauses) < self.ROUNDS:
            return Verdict.not_exercised("the client did not reconnect often enough to be judged")
        shown = ", ".join(f"{pause:.2f}" for pause in pauses)
        relists = self.relists
        if len(relists) >= self.ROUNDS:
            return Verdict.warning(
                f"lists again at once after each drop (after {shown} s): many clients would do it together",
                *excerpt(relists),
                by_chance=True,
            )
        if min(pauses) > self.AT_ONCE and max(pauses) - min(pauses) < self.EQUAL * min(pauses):
            return Verdict.failure(f"no jitter: reconnects after {shown} s", *trial.excerpt(), by_chance=True)
        return Verdict.success(f"reconnects after {shown} s")


RULES = (
    RetryAfterAtStart,
    RetryAfterAgainAndAgain,
    RetryAfterOnWatch,
    RetryAfterOnWrite,
    RetryAfterDate,
    ServerErrors,
    ProxyErrors,
    RefusedConnections,
    LostAnswer,
    TimedOutCreate,
    ConnectionDrops,
)

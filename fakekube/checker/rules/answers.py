"""Rules about answers of which only one half arrives (R7).

Invariant: the server has performed each of these requests; the connection breaks in the middle of the answer, which is shorter
than its Content-Length, or has no end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.checker.judges import judge_extra_children, revision_of
from fakekube.checker.provocations import BreakHalfway, Budget, arm
from fakekube.checker.rule import Rule
from fakekube.checker.rules.lists import judge_deletes, judge_pages, require_lists
from fakekube.checker.sample import new_late_token
from fakekube.checker.trace import LEASES, excerpt
from fakekube.checker.verdict import NotExercised, Symptom, Verdict
from fakekube.checker.waits import await_lists
from fakekube.checker.writes import generated_children, learned_writes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.checker.trace import Call, Stream
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange


class HalfAnswer(Rule):
    """The base class of the provocations of R7."""

    id = "R7"
    legality = "C"
    obligation = "an answer that breaks off is no answer: its first half is never used as the whole"
    advice = (
        "compare the length of a body with its Content-Length, or wait for its last chunk; repeat the request, and change "
        "nothing until the whole answer is there"
    )
    source = "RFC 9112, section 8 (incomplete messages); client-go rest/request.go (errors of a body that is read)"
    expected_seconds = 12.0

    def __init__(self) -> None:
        self.broken: list[Exchange] = []
        """The requests of whose answers only one half was sent."""

    def is_broken(self, call: Call) -> bool:
        """Reports whether only one half of the answer of a request was sent."""
        return any(call.exchange is one for one in self.broken)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_extra_children(trial, generated_children(trial.baseline))

    def judge(self, trial: Trial) -> Verdict:
        """Only suspects a client that ends: it has used no half answer, and what starts it may pace its restarts."""
        verdict = super().judge(trial)
        return verdict.as_warning() if trial.ended and verdict.symptom is Symptom.ENDED else verdict

    def judge_trace(self, trial: Trial) -> Verdict:
        if not self.broken:
            return Verdict.not_exercised("the client sent no request whose answer broke off")
        return Verdict.success(f"{len(self.broken)} answers broke off")


class HalfList(HalfAnswer):
    """A list breaks off, while the client has objects that are in its other half."""

    name = "list"
    decisive = True
    fast = True
    provocation = "lists break off in the middle, after the client could not watch for a moment"
    expected_seconds = 8.0
    steps = ("W8", "R2", "W14", "W1")

    #: How many lists of each resource break off.
    TIMES = 2

    mark: int = -1

    def require(self, baseline: Baseline) -> None:
        calls = list(baseline.trial.trace)
        if not any(call.is_list and call.resource for call in calls) and not any(call.sends_initial_events for call in calls):
            raise NotExercised("the client does not list")

    def prepare(self, trial: Trial) -> None:
        require_lists(trial)

    def provoke(self, trial: Trial) -> None:
        for _ in range(2):
            trial.stimulate()
        trial.await_all()
        budget = Budget(self.TIMES)
        breaking = BreakHalfway(lambda exchange: budget.take(exchange.path), self.broken)
        for resource in sorted(set(trial.baseline.control.resources)):
            arm(trial.faults.on("list", resource), breaking, label="breaks off")
        with trial.disconnect():
            trial.stimulate(token=new_late_token(trial.random))
            trial.compact()
            self.mark = trial.trace.mark()
        await_lists(trial, lambda: bool(self.broken), self.mark)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return (
            super().find_failure(trial)
            or self._judge_watches(trial)
            or judge_deletes(trial, self.mark, "in a list that broke off")
            or judge_pages(trial)
        )

    def _judge_watches(self, trial: Trial) -> Verdict | None:
        """Judges whether the client goes on with a list of which it has only one half, and watches."""
        for key, stream in trial.streams_since().items():
            if trial.baseline.is_shared(key):
                continue
            half: Call | None = None
            for call in stream.calls:
                if call.is_list and call.succeeded:
                    half = call if self.is_broken(call) else None
                elif half is not None and call.is_watch and not self._goes_back(stream, call, half):
                    return Verdict.failure(
                        f"watches {key} from resourceVersion {call.asked_revision or 'unset'} after a list that broke off in the "
                        "middle, without another list",
                        *excerpt([half, call]),
                    )
        return None

    @staticmethod
    def _goes_back(stream: Stream, watch: Call, half: Call) -> bool:
        """Reports whether a watch after a list that broke off begins with the present state, or where the client was before."""
        if watch.resumes:
            return stream.knows(revision_of(watch), half) or revision_of(watch) < (half.revision or 0)
        return watch.sends_initial_events


class HalfObject(HalfAnswer):
    """Each kind of answer with an object breaks off once: to a get, and to a write that is not a create.

    Each kind has a copy of its own: the pauses of the client grow with each failure for the same copy.
    """

    name = "object"
    provocation = "each kind of answer with one object breaks off in the middle once"
    expected_seconds = 5.0
    steps = ("R2",)
    fast = False

    def require(self, baseline: Baseline) -> None:
        if not self._requests(baseline):
            raise NotExercised("the client reads and changes no single objects")

    @staticmethod
    def _requests(baseline: Baseline) -> Sequence[tuple[str, str]]:
        """Returns (verb, resource) of the requests whose answers break off: a create that may have succeeded is for R3."""
        read = {(call.verb, call.resource) for call in baseline.trial.trace if call.verb == "get" and call.resource}
        written = set(learned_writes(baseline, "update", "patch"))
        return sorted(pair for pair in read | written if pair[1] != LEASES)

    def provoke(self, trial: Trial) -> None:
        budget = Budget(1)
        breaking = BreakHalfway(
            lambda exchange: budget.take((exchange.verb, exchange.resource, exchange.subresource)), self.broken
        )
        for verb, resource in self._requests(trial.baseline):
            arm(trial.faults.on(verb, resource), breaking, label="breaks off")
            trial.stimulate()
            trial.await_all()


RULES = (HalfList, HalfObject)

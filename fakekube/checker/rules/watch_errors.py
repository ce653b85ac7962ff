"""Rules about watches and lists that fail: expired and future revisions, ERROR events (W1 to W4, W15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.errors import status
from fakekube.checker.judges import judge_duplicate_watches, judge_expired, judge_misread_status, revision_of
from fakekube.checker.pauses import judge_backoff
from fakekube.checker.provocations import EndExpired, ExpireResumed, answer_with, arm, asked_revision
from fakekube.checker.rule import Rule
from fakekube.checker.verdict import NotExercised, Outcome, Verdict
from fakekube.checker.waits import await_long_watches, await_requests, require_resumption

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange

CONCEPTS = "Kubernetes API concepts, efficient detection of changes"
REFLECTOR = "client-go tools/cache/reflector.go"


class ExpiredInStream(Rule):
    """An open watch ends with 410 after a compaction of the history."""

    id = "W1"
    name = "open"
    provocation = "an open watch ends with 410"
    is_step = True
    watches = True
    fast = True
    obligation = "an ERROR event 410 in a watch: list again and watch from the new revision"
    advice = "on code 410 drop the revision, list, replace the cache and watch from the list's resourceVersion"
    source = f"{CONCEPTS} (410 Gone); {REFLECTOR}"

    oldest: int = 0
    """The oldest revision that is not expired."""

    def provoke(self, trial: Trial) -> None:
        """Expires the watches twice, because some clients handle only the first 410."""
        trial.require_watch()
        self.oldest = expire(trial)
        trial.stimulate()
        trial.await_all()
        trial.require_watch()
        self.oldest = expire(trial)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_expired(trial, self.oldest)

    def judge_trace(self, trial: Trial) -> Verdict:
        return judge_duplicate_watches(trial) or super().judge_trace(trial)


def expire(trial: Trial) -> int:
    """Compacts the history and ends the open watches with 410; returns the oldest revision that is not expired."""
    newest = trial.advance_revisions(1)
    trial.faults.on("watch").gone(label="compacted").remove()
    return newest + 1


def end_expired(trial: Trial, prepare: Callable[[int], object] = lambda oldest: None) -> int:
    """Compacts the history and ends the open watches, until the client watches from an expired revision; returns the oldest
    revision that is not expired.

    Waits until watches are open for some time before it ends them, because many clients list after a short watch.

    Args:
        prepare: called with the oldest revision that is not expired, before the watches end.

    Raises NotExercised if the client never asks for an expired revision.
    """
    require_resumption(trial)
    for _ in range(_ROUNDS):
        trial.stimulate()
        trial.await_all()
        await_long_watches(trial)
        oldest = trial.compact()
        prepare(oldest)
        if any(call.resumes and revision_of(call) < oldest for call in await_requests(trial, trial.end_watches())):
            return oldest
    raise NotExercised("the client does not resume an ended watch from its last revision")


#: How many times the watches are ended until the client resumes one.
_ROUNDS = 3


class ExpiredOnReconnect(ExpiredInStream):
    """The history is compacted while a watch reconnects."""

    name = "reconnect"
    provocation = "the revision of a watch has expired when it reconnects"
    expected_seconds = 10.0
    is_step = False
    steps = ("W5",)
    fast = True

    def provoke(self, trial: Trial) -> None:
        end_expired(trial, self.remember)

    def remember(self, oldest: int) -> None:
        self.oldest = oldest


class ExpiredAgainAndAgain(ExpiredInStream):
    """Every watch ends at once with 410 for some seconds."""

    name = "spell"
    provocation = "every watch ends with 410 at once for some seconds"
    is_step = False
    legality = "B"
    fast = False
    steps = ("W1",)
    advice = "list again, and pause a little longer before each further attempt"
    expected_seconds = 12.0

    #: For how many seconds a watch that begins with the present state is served, before it expires, too.
    SERVED = 0.5

    def provoke(self, trial: Trial) -> None:
        """Expires watches from a revision at once, and others when they have delivered the present state: this cannot expire."""
        trial.require_watch()
        expired: dict[str, Any] = {"code": 410, "reason": "Expired", "message": _MARK}
        begun = trial.now
        with arm(trial.faults.on("watch"), ExpireResumed(**expired), label="expired"):
            while trial.now < begun + min(trial.session.seconds, 6.0):
                trial.faults.on("watch").error_event(**expired, label="expired").remove()
                trial.wait(self.SERVED)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_misread_status(trial, _MARK) or judge_only_failures(trial)


class ExpiredByStatus(ExpiredOnReconnect):
    """The answer to a watch from an expired revision is an HTTP status 410."""

    id = "W2"
    name = "status"
    provocation = "a watch is answered with HTTP status 410"
    fast = False
    steps = ("W5",)
    obligation = "HTTP status 410 for a watch: list again and watch from the new revision"
    advice = "treat HTTP status 410 as the ERROR event with code 410"
    source = f"{CONCEPTS} (410 Gone)"
    legality = "B"

    def provoke(self, trial: Trial) -> None:
        def answer(exchange: Exchange) -> tuple[int, Any] | None:
            oldest = self.oldest
            if 0 < asked_revision(exchange) < oldest and exchange.query.get("sendInitialEvents") not in ("true", "1"):
                return answer_with(status.too_old_resource_version(asked_revision(exchange), oldest))
            return None

        trial.faults.on("watch").intercept(answer, label="HTTP 410")
        end_expired(trial, self.remember)


class ExpiredSilently(Rule):
    """A watch from an expired revision is opened and closed without an error."""

    id = "W3"
    name = "empty"
    provocation = "a watch from an expired revision is answered with 200 and ends at once"
    watches = True
    steps = ("W5",)
    fast = True
    obligation = "a watch that ends again and again without an event: list again, the revision may be expired"
    advice = "after a watch that lasted less than a second and had no events, list before the next one"
    source = f"{REFLECTOR} (VeryShortWatchError); kubernetes/kubernetes#104171"
    legality = "C"
    expected_seconds = 12.0

    def provoke(self, trial: Trial) -> None:
        end_expired(trial, lambda oldest: arm(trial.faults.on("watch"), EndExpired(oldest=oldest), label="empty"))

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_only_failures(trial)


def judge_only_failures(trial: Trial) -> Verdict | None:
    """Returns the verdict about backoff if it is a failure, and not a warning."""
    found = judge_backoff(trial.attempts_since())
    return found if found is not None and found.outcome is Outcome.FAIL else None


class ErrorsInStream(Rule):
    """Watches end with ERROR events with other codes than 410."""

    id = "W4"
    name = "errors"
    provocation = "watches end with ERROR events 500 and 504"
    watches = True
    fast = True
    obligation = "an ERROR event with another code is neither an object nor fatal: try again, with backoff"
    advice = "check for ERROR events first; pause, then watch again or list"
    source = f"{REFLECTOR} (apierrors.FromObject, IsInternalError)"
    expected_seconds = 12.0

    def provoke(self, trial: Trial) -> None:
        trial.require_watch()
        trial.faults.on("watch").error_event(500, message=_MARK, label="error 500").remove()
        with trial.faults.on("watch").error_event(504, message=_MARK, label="error 504"):
            trial.wait(min(trial.session.seconds, 6.0))

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_misread_status(trial, _MARK) or judge_only_failures(trial)


#: The message of the errors, which a client that treats them as objects may write.
_MARK = "the storage of fakekube-check is not available"


#: Why a client is not exercised that asks for no revision when it lists again.
_AT_NO_REVISION = "the client lists without a revision, or with 0"


class FutureRevision(Rule):
    """The server has not reached the revision of a list."""

    id = "W15"
    name = "future"
    provocation = "every list at a revision is answered with 504 Too large resource version"
    watches = True
    steps = ("W1",)
    obligation = '504 "Too large resource version": try again, or list without a revision'
    advice = "after this 504 pause, and list with resourceVersion unset"
    source = f"{REFLECTOR} (isTooLargeResourceVersionError); kubernetes/kubernetes#107133"

    #: A client that has listed again in so many runs, and never at a revision, does not do so in this one.
    RUNS = 5

    refused: bool = False

    def require(self, baseline: Baseline) -> None:
        if len(baseline.relists) >= self.RUNS and not any(baseline.relists):
            raise NotExercised(_AT_NO_REVISION)

    def provoke(self, trial: Trial) -> None:
        trial.require_watch()

        def answer(exchange: Exchange) -> tuple[int, Any] | None:
            revision = asked_revision(exchange)
            initial = exchange.query.get("sendInitialEvents") in ("true", "1")
            if not revision or (exchange.verb == "watch" and not initial) or exchange.query.get("continue"):
                return None
            self.refused = True
            return answer_with(status.too_large_resource_version(revision, revision - 1))

        trial.faults.on("list,watch").intercept(answer, label="lags behind")
        expire(trial)
        trial.stimulate()
        trial.await_all()
        trial.require_watch()
        if not self.refused:  # after a 410 the client lists without a revision, and perhaps not after another error
            trial.faults.on("watch").error_event(500, message=_MARK, label="error 500").remove()
            trial.stimulate()
            trial.await_all()
            trial.require_watch()
        trial.faults.on("watch").cut(label="disconnected").remove()

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_only_failures(trial)

    def judge(self, trial: Trial) -> Verdict:
        if not self.refused:
            raise NotExercised(_AT_NO_REVISION)
        return super().judge(trial)


RULES = (
    ExpiredInStream,
    ExpiredOnReconnect,
    ExpiredAgainAndAgain,
    ExpiredByStatus,
    ExpiredSilently,
    ErrorsInStream,
    FutureRevision,
)

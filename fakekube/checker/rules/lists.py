"""Rules about how a client gets the present state: initial events of a watch (W14), stale lists and pages (W16, P1, P2)."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.apimachinery.errors.status import StatusError
from fakekube.checker.judges import judge_extra_children
from fakekube.checker.provocations import (
    LEADER_CHANGED,
    Budget,
    ExpireContinue,
    IgnoreInitialEvents,
    PlainBookmarkFirst,
    ShortPages,
    answer_with,
    arm,
)
from fakekube.checker.rule import Rule
from fakekube.checker.rules.deletions import MissedDeletions
from fakekube.checker.rules.watch_errors import expire
from fakekube.checker.sample import new_early_token, new_late_token
from fakekube.checker.trace import excerpt
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_lists, await_quiet
from fakekube.checker.writes import delete_with_children, generated_children, require_no_leftovers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault


_CHUNKS = "Kubernetes API concepts, retrieving large results sets in chunks"


class StaleList(Rule):
    """After a restart of the client, an API server with an old cache answers its first list."""

    id = "W16"
    name = "list"
    provocation = "after a restart the client is shown an older state"
    distorts = True
    steps = ("W14",)
    obligation = "a client does not treat an old list as the present state"
    advice = "delete with preconditions (uid, resourceVersion), or read the object again before an irreversible write"
    source = "kubernetes/kubernetes#83520; KEP-5647; Sieve, stale states"
    legality = "B"

    again: Copy | None = None

    restarts = True

    def require(self, baseline: Baseline) -> None:
        calls = list(baseline.trial.trace)
        if not any(call.sends_initial_events or (call.is_list and call.asked_revision == "0") for call in calls):
            raise NotExercised("the client does not list with resourceVersion=0, which may return a stale list")
        require_no_leftovers(baseline)

    def provoke(self, trial: Trial) -> None:
        first = trial.copies[0]
        delete_with_children(trial, first)
        revision = trial.advance_revisions(1)
        again = trial.stimulate(token=first.token)
        trial.require_reaction(again, "an object that was created again under its name")
        self.again = again
        trial.kill_client()
        require_lists(trial)
        trial.begin_provocation()
        by = trial.advance_revisions(1) - revision
        trial.faults.on("list,watch").stale(by=by, label="stale", lasts=3.0)
        trial.start_client()

    def find_failure(self, trial: Trial) -> Verdict | None:
        again = self.again
        if again is None or trial.is_done_with(again):
            return None
        for call in trial.trace.since(trial.provoked_at):
            if call.verb == "delete" and call.succeeded and call.mentions(again.token):
                return Verdict.failure(
                    f"the client deleted {call.path}, which belongs to the present {again.names()[0]}, because of a list with "
                    "an older state",
                    *trial.excerpt(),
                )
        return None

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(call.is_list and call.asked_revision == "0" for call in trial.trace.since(trial.provoked_at)):
            raise NotExercised("the client does not list with resourceVersion=0, which may return a stale list")
        return Verdict.success()


class ExpiredContinue(Rule):
    """A continue token expires between two pages."""

    id = "P1"
    name = "token"
    provocation = "the history is compacted between two pages of a list"
    steps = ("W14",)
    fast = True
    obligation = "410 for a continue token: list again from the start, or continue with the token in the Status"
    advice = (
        "on 410 list again without limit; or take metadata.continue of the Status for the rest of an inconsistent list, and "
        "watch from the revision of its first page"
    )
    source = f"{_CHUNKS}; client-go tools/pager"
    at_start = True

    def require(self, baseline: Baseline) -> None:
        require_limit(baseline)

    def prepare(self, trial: Trial) -> None:
        require_lists(trial)
        for _ in range(5):
            trial.stimulate()
        arm(trial.faults.on("list"), ShortPages(2), label="short pages")
        arm(trial.faults.on("list"), ExpireContinue(), label="token expired", times=1)

    def find_failure(self, trial: Trial) -> Verdict | None:
        refused: dict[str, list[Call]] = {}
        for call in trial.trace.since(trial.provoked_at):
            if call.is_list and call.status == 410 and call.query.get("continue"):
                refused.setdefault(call.query["continue"], []).append(call)
        for calls in refused.values():
            if len(calls) > _TRIES:
                return Verdict.failure("the client repeats an expired continue token", *excerpt(calls))
        return judge_pages(trial) or _judge_inconsistent_list(trial)

    def judge(self, trial: Trial) -> Verdict:
        require_pages(trial)
        return super().judge(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(call.is_list and call.status == 410 for call in trial.trace.since(trial.provoked_at)):
            raise NotExercised("the client did not continue a list")
        return Verdict.success()


class BeganAgain(MissedDeletions):
    """An object of the first page is deleted before the list has to begin again, because its continue token has expired."""

    id = "P1"
    name = "again"
    provocation = "an object of the first page is deleted, and the token for the second page has expired"
    fast = False
    steps = ("W14", "W1")
    obligation = "a list that begins again after a 410 begins with nothing: what the pages before have shown may be gone"
    advice = "start with an empty result each time a list begins"
    source = f"{_CHUNKS}; client-go tools/pager"
    expected_seconds = 6.0

    #: How many seconds a page is held up at most, until controllers have deleted what belongs to the object.
    SETTLES: ClassVar[float] = 2.0

    def require(self, baseline: Baseline) -> None:
        require_limit(baseline)
        super().require(baseline)

    def prepare(self, trial: Trial) -> None:
        require_lists(trial)

    def provoke(self, trial: Trial) -> None:
        trial.require_watch()
        for _ in range(3):
            trial.stimulate(token=new_late_token(trial.random))
        lost = self.lost = trial.stimulate(token=new_early_token(trial.random))
        trial.await_all()
        await_quiet(trial, lost.mark, [lost.token])
        budget = Budget(1)

        def delete(exchange: Exchange) -> None:
            if exchange.query.get("continue") and budget.take(None):
                trial.delete(lost)
                with suppress(TimeoutError):  # what belongs to the object is gone, too, before the history is compacted
                    trial.cluster.settle(self.SETTLES)
                trial.compact()

        delivered = set().union(*trial.baseline.delivering.values())
        arm(trial.faults.on("list"), ShortPages(2), label="short pages")
        for resource in sorted(delivered & set(lost.resources)):
            trial.faults.on("list", resource).intercept(delete, label="token expired")
        mark = self.mark = trial.trace.mark()
        expire(trial)
        if not await_lists(trial, lambda: bool(budget.taken), mark):
            raise NotExercised("the client did not continue a list")
        self.await_reaction(trial)


def require_limit(baseline: Baseline) -> None:
    """Raises NotExercised if the baseline run shows that the client lists without a limit; one that gets initial events may list
    with a limit when they are refused."""
    calls = list(baseline.trial.trace)
    if not any(call.sends_initial_events or (call.is_list and "limit" in call.query) for call in calls):
        raise NotExercised("the client lists without a limit")


def require_pages(trial: Trial) -> None:
    """Raises NotExercised for a client that never lists with a limit."""
    if not any(call.is_list and "limit" in call.query for call in trial.trace.since()):
        raise NotExercised("the client lists without a limit")


#: How many times a client may send an expired token.
_TRIES = 2


def judge_deletes(trial: Trial, mark: int, place: str) -> Verdict | None:
    """Judges whether the client deletes what belongs to an object that exists, but that it has not received in a list.

    Args:
        trial: the run.
        mark: that of the beginning of these lists; -1 if they have not begun.
        place: where the object is instead.
    """
    baseline = trial.baseline
    if mark < 0 or baseline.deletes_copies() or any(effect.detail[:1] == ("delete",) for effect in baseline.reaction.effects):
        return None
    living = [copy for copy in trial.copies if not copy.deleted]
    for call in trial.trace.since(mark):
        if call.verb == "delete" and call.succeeded and any(call.mentions(copy.token) for copy in living):
            return Verdict.failure(f"deletes {call.path}, whose owner is {place}", *trial.excerpt())
    return None


def judge_pages(trial: Trial) -> Verdict | None:
    """Judges whether the client watches from the revision of a page before it has read the rest of the list."""
    for key, stream in trial.streams_since().items():
        if trial.baseline.is_shared(key):
            continue
        page: Call | None = None
        for call in stream.calls:
            if call.is_list and call.status == 200:
                page = call if continue_of(call) else None
            elif page is not None and call.resumes and call.asked_revision == str(page.revision):
                return Verdict.failure(f"the client treated one page of {stream.key} as the whole list", *excerpt([page, call]))
    return None


def _judge_inconsistent_list(trial: Trial) -> Verdict | None:
    """Judges whether the client watches from the newer revision of the rest of a list whose first pages are older: it misses what
    has changed on them in between."""
    for key, stream in trial.streams_since().items():
        if trial.baseline.is_shared(key):
            continue
        first: Call | None = None
        offered, newer = "", 0
        for call in stream.calls:
            token = call.query.get("continue", "")
            if call.is_list and not token:
                first, offered, newer = call, "", 0
            elif call.is_list and call.status == 410:
                offered = continue_of(call)
            elif call.is_list and call.succeeded and (newer or (offered and token == offered)):
                newer = call.revision or 0
            elif first is not None and call.resumes and newer > (first.revision or 0) and call.asked_revision == str(newer):
                return Verdict.failure(
                    f"watches {key} from {newer}, the revision of the rest of an inconsistent list; its first page has "
                    f"{first.revision}, and what has changed on that page since then is missed",
                    *excerpt([one for one in stream.calls if first.number <= one.number <= call.number]),
                )
    return None


def continue_of(listed: Call) -> str:
    """Returns the continue token in the answer of a list; "" if there is none, or if the answer cannot be read."""
    answer = listed.answer
    return str(answer.get("metadata", {}).get("continue") or "") if isinstance(answer, dict) else ""


class ShortPagesOfList(Rule):
    """Pages are shorter than the limit and have no remainingItemCount."""

    id = "P2"
    name = "short"
    provocation = "pages are shorter than their limit, without remainingItemCount"
    steps: ClassVar[Sequence[str]] = ("W14", "W1")
    fast = True
    obligation = "a list is complete when it has no continue token; a request with one has neither resourceVersion nor its match"
    advice = "continue while metadata.continue is set, even after an empty page; send only limit and continue"
    source = f"{_CHUNKS}; kubernetes/kubernetes#85221"
    at_start = True

    def require(self, baseline: Baseline) -> None:
        require_limit(baseline)

    def prepare(self, trial: Trial) -> None:
        require_lists(trial)
        for _ in range(5):
            trial.stimulate()
        arm(trial.faults.on("list"), ShortPages(2), label="short pages")

    def provoke(self, trial: Trial) -> None:
        if not trial.baseline.streams:
            return
        trial.require_watch()
        expire(trial)  # so that the client lists with a resourceVersion, too
        trial.compact()  # otherwise a paginated list may show the state of a revision that watches are refused from

    def find_failure(self, trial: Trial) -> Verdict | None:
        for call in trial.trace.since(trial.provoked_at):
            if call.is_list and call.query.get("continue") and call.status == 400:
                return Verdict.failure(
                    "a continued list is refused with 400, because it has more than limit and continue", *excerpt([call])
                )
        return judge_pages(trial)

    def judge(self, trial: Trial) -> Verdict:
        require_pages(trial)
        return super().judge(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(call.is_list and call.query.get("continue") for call in trial.trace.since(trial.provoked_at)):
            raise NotExercised("the client did not continue a list")
        return Verdict.success()


class EmptyPage(ShortPagesOfList):
    """A page has no items but a continue token."""

    name = "empty"
    provocation = "a page is empty, and not the last one"
    distorts = True
    fast = False
    legality = "B"

    emptied: bool = False

    def provoke(self, trial: Trial) -> None:
        """Does nothing: the first list already has the empty page."""

    def prepare(self, trial: Trial) -> None:
        super().prepare(trial)

        def answer(exchange: Exchange) -> tuple[int, Any] | None:
            token = exchange.query.get("continue")
            if not token or self.emptied or "protobuf" in exchange.headers.get("accept", "").split(",")[0]:
                return None
            self.emptied = True
            page = trial.cluster.call("GET", exchange.path, query={"limit": "1"})
            metadata = {"resourceVersion": page["metadata"]["resourceVersion"], "continue": _same_place(token)}
            return 200, {**page, "metadata": metadata, "items": []}

        trial.faults.on("list").intercept(answer, label="empty page")


class BrokenPage(ShortPagesOfList):
    """The next page of a list is refused, while the client has objects that are not on the first page."""

    name = "broken"
    provocation = "the second page of a list is answered with 500"
    fast = False
    steps = ("W14", "W1", "R2")
    at_start = False
    obligation = "a list of which a page is missing is no list: nothing is missing because it was not on the other pages"
    advice = "use no page of a list before the last one is there; repeat the page, or list again"
    source = f"{_CHUNKS}; client-go tools/pager"
    expected_seconds = 10.0

    #: How many pages of each list are refused.
    TIMES = 2

    mark: int = -1

    def prepare(self, trial: Trial) -> None:
        require_lists(trial)

    def provoke(self, trial: Trial) -> None:
        for _ in range(3):
            trial.stimulate()
        trial.await_all()
        budget = Budget(self.TIMES)
        own = {resource.partition(".")[0] for resource in trial.baseline.control.resources}

        def refuse(exchange: Exchange) -> tuple[int, Any] | None:
            """Refuses pages of the client's own objects only when those of the sample have been refused: two lists of which the
            same part is missing may fit each other."""
            if not exchange.query.get("continue") or (exchange.resource not in own and budget.taken < self.TIMES):
                return None
            return LEADER_CHANGED if budget.take(exchange.path) else None

        arm(trial.faults.on("list"), ShortPages(2), label="short pages")
        trial.faults.on("list").intercept(refuse, label="page refused")
        self.mark = trial.trace.mark()
        if trial.baseline.streams:
            trial.require_watch()
            expire(trial)
        await_lists(trial, lambda: bool(budget.taken), self.mark)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return (
            judge_extra_children(trial, generated_children(trial.baseline))
            or judge_deletes(trial, self.mark, "on a page that was refused")
            or judge_pages(trial)
        )

    def judge_trace(self, trial: Trial) -> Verdict:
        refused = [call for call in trial.trace.since(self.mark) if call.is_list and call.status == 500]
        return Verdict.success() if refused else Verdict.not_exercised("the client did not continue a list")


def _same_place(token: str) -> str:
    """Returns a different continue token for the same position."""
    place = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return base64.urlsafe_b64encode(json.dumps(place, indent=1).encode()).decode().rstrip("=")


_MESSAGE = (
    'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the '
    "WatchList feature gate is enabled"
)


def refuse_initial_events(trial: Trial, code: int = 422, reason: str = "Invalid") -> None:
    """Makes the server answer like one without the feature gate WatchList."""

    def answer(exchange: Exchange) -> tuple[int, Any] | None:
        return answer_with(StatusError(code, reason, _MESSAGE)) if "sendInitialEvents" in exchange.query else None

    trial.faults.on("watch").intercept(answer, label=f"refused {code}")


def require_lists(trial: Trial) -> None:
    """Refuses sendInitialEvents if the client uses it, so that it lists."""
    if any(call.sends_initial_events for call in trial.baseline.trial.trace):
        refuse_initial_events(trial)


class RefusedInitialEvents(Rule):
    """The server does not support sendInitialEvents."""

    id = "W14"
    name = "422"
    decisive = True
    provocation = "sendInitialEvents is refused with 422"
    is_step = True
    fast = True
    obligation = "if a server refuses sendInitialEvents, the client lists"
    advice = "on 400, 403 or 422 for a watch with sendInitialEvents fall back to a list, then watch from its revision"
    source = "KEP-3157 (watch-list); client-go tools/cache/reflector.go (fallback to list)"
    at_start = True
    code = 422
    reason = "Invalid"

    def require(self, baseline: Baseline) -> None:
        if not any(call.sends_initial_events for call in baseline.trial.trace):
            raise NotExercised("the client does not use sendInitialEvents")

    def prepare(self, trial: Trial) -> None:
        trial.stimulate()
        refuse_initial_events(trial, self.code, self.reason)


class BadInitialEvents(RefusedInitialEvents):
    """Another server refuses sendInitialEvents with another code."""

    name = "400"
    decisive = False
    provocation = "sendInitialEvents is refused with 400"
    is_step = False
    fast = False
    legality = "B"
    code = 400
    reason = "BadRequest"


class EarlyBookmark(RefusedInitialEvents):
    """The first event is a bookmark without the annotation, and the watch ends."""

    name = "bookmark"
    decisive = False
    provocation = "a plain bookmark comes before the initial events, and the watch ends"
    is_step = False
    fast = False
    steps = ("W5",)
    obligation = "only the bookmark with the annotation k8s.io/initial-events-end completes the initial events"
    advice = "look for the annotation; start again, or list, if the watch ends before it"
    legality = "B"

    times: int = 0
    fault: Fault

    def prepare(self, trial: Trial) -> None:
        using = {call.stream for call in trial.baseline.trial.trace if call.sends_initial_events}
        trial.stimulate()
        self.disturb(trial, len(using))

    #: How many seconds a disturbed watch stays open; after a shorter watch a client may list.
    OPEN = 3.0
    LABEL = "plain bookmark"

    def disturb(self, trial: Trial, times: int) -> None:
        """Makes the first watches with initial events end early."""
        self.times = times
        self.fault = arm(trial.faults.on("watch"), PlainBookmarkFirst(), label=self.LABEL, times=times)

    def provoke(self, trial: Trial) -> None:
        """Ends each disturbed watch; a client may open the next ones only then."""
        trial.await_until(lambda: self._all_ended(trial), trial.reaction_timeout)

    def _all_ended(self, trial: Trial) -> bool:
        disturbed = [call for call in trial.trace if call.exchange.fault == self.LABEL]
        for call in disturbed:
            if call.is_open and trial.now - call.at >= self.OPEN:
                trial.faults.on("watch", call.resource).end(label="ended").remove()
        ended = sum(call.ended is not None for call in disturbed)  # one that is being answered is neither open nor ended
        return bool(ended >= max(self.fault.hits, self.times))


class IgnoredInitialEvents(EarlyBookmark):
    """A server that does not know sendInitialEvents sends all objects and no bookmark with the annotation, and ends the watch."""

    name = "ignored"
    provocation = "sendInitialEvents is ignored by a server that does not know it, and the watch ends"
    LABEL = "initial events ignored"

    def disturb(self, trial: Trial, times: int) -> None:
        self.times = times
        self.fault = arm(trial.faults.on("watch"), IgnoreInitialEvents(), label=self.LABEL, times=times)


class EarlyEnd(EarlyBookmark):
    """The watch ends between initial events."""

    name = "end"
    provocation = "the watch ends before the initial events are complete"
    fast = False
    legality = "C"

    def provoke(self, trial: Trial) -> None:
        """Does nothing: the fault of `prepare` ends the watch."""

    def disturb(self, trial: Trial, times: int) -> None:
        for token in sorted((new_early_token(trial.random) for _ in range(3)), reverse=True):
            trial.stimulate(token=token)  # the first initial event has the newest revision of all
        trial.faults.on("watch").end(after_events=1, times=times, label="ended early")


RULES = (
    RefusedInitialEvents,
    BadInitialEvents,
    EarlyBookmark,
    IgnoredInitialEvents,
    EarlyEnd,
    StaleList,
    ExpiredContinue,
    BeganAgain,
    ShortPagesOfList,
    EmptyPage,
    BrokenPage,
)

"""Rules about lists: stale lists and pages (W16, P1, P2)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from fakekube.checker.provocations import ExpireContinue, ShortPages, arm
from fakekube.checker.rule import NotExercised, Rule, Verdict
from fakekube.checker.rules.initial_events import require_lists
from fakekube.checker.rules.watch_errors import expire
from fakekube.checker.trace import excerpt

if TYPE_CHECKING:
    from fakekube.checker.baseline import Baseline
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Trial
    from fakekube.powers.exchange import Exchange

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

    def provoke(self, trial: Trial) -> None:
        first = trial.copies[0]
        trial.delete(first)
        revision = trial.advance_revisions(1)
        trial.await_until(lambda: all(self._is_gone(trial, first, number) for number in range(len(first.objects))), 20.0)
        again = trial.stimulate(token=first.token)
        trial.await_all()
        self.again = again
        trial.kill_client()
        require_lists(trial)
        trial.begin_provocation()
        by = trial.advance_revisions(1) - revision
        trial.faults.on("list,watch").stale(by=by, label="stale", lasts=3.0)
        trial.start_client()

    @staticmethod
    def _is_gone(trial: Trial, copy: Any, number: int) -> bool:
        metadata = copy.objects[number]["metadata"]
        found = trial.cluster.list(copy.resources[number], namespace=metadata.get("namespace"))
        return all(obj["metadata"]["name"] != metadata["name"] for obj in found)

    def find_failure(self, trial: Trial) -> Verdict | None:
        again = self.again
        if again is None:
            return None
        for call in trial.trace.since(trial.provoked_at):
            if call.verb == "delete" and call.succeeded and call.mentions(again.token):
                return Verdict.failed(
                    f"the client deleted {call.path}, which belongs to the present {again.names()[0]}, because of a list with "
                    "an older state",
                    *trial.excerpt(),
                )
        return None

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(call.is_list and call.asked_revision == "0" for call in trial.trace.since(trial.provoked_at)):
            raise NotExercised("the client does not list with resourceVersion=0, which may return a stale list")
        return Verdict.passed()


class ExpiredContinue(Rule):
    """A continue token expires between two pages."""

    id = "P1"
    name = "token"
    provocation = "the history is compacted between two pages of a list"
    steps = ("W14",)
    fast = True
    obligation = "410 for a continue token: list again from the start, or continue with the token in the Status"
    advice = "on 410 take metadata.continue of the Status for the rest of an inconsistent list, or list again without limit"
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
                return Verdict.failed("the client repeats an expired continue token", *excerpt(calls))
        return judge_pages(trial)

    def judge(self, trial: Trial) -> Verdict:
        require_pages(trial)
        return super().judge(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(call.is_list and call.status == 410 for call in trial.trace.since(trial.provoked_at)):
            raise NotExercised("the client did not continue a list")
        return Verdict.passed()


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
                return Verdict.failed(f"the client treated one page of {stream.key} as the whole list", *excerpt([page, call]))
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
    steps = ("W14", "W1")
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
        trial.require_watch()
        expire(trial)  # so that the client lists with a resourceVersion, too
        trial.compact()  # otherwise a paginated list may show the state of a revision that watches are refused from

    def find_failure(self, trial: Trial) -> Verdict | None:
        for call in trial.trace.since(trial.provoked_at):
            if call.is_list and call.query.get("continue") and call.status == 400:
                return Verdict.failed(
                    "a continued list is refused with 400, because it has more than limit and continue", *excerpt([call])
                )
        return judge_pages(trial)

    def judge(self, trial: Trial) -> Verdict:
        require_pages(trial)
        return super().judge(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        if not any(call.is_list and call.query.get("continue") for call in trial.trace.since(trial.provoked_at)):
            raise NotExercised("the client did not continue a list")
        return Verdict.passed()


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


def _same_place(token: str) -> str:
    """Returns a different continue token for the same position."""
    place = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return base64.urlsafe_b64encode(json.dumps(place, indent=1).encode()).decode().rstrip("=")


RULES = (StaleList, ExpiredContinue, ShortPagesOfList, EmptyPage)

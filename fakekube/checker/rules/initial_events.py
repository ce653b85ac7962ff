"""Rules about watches that start with the present state, sendInitialEvents (W14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakekube.checker.provocations import PlainBookmarkFirst, arm, status_object
from fakekube.checker.rule import NotExercised, Rule

if TYPE_CHECKING:
    from fakekube.checker.baseline import Baseline
    from fakekube.checker.trial import Trial
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault

_MESSAGE = (
    'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the '
    "WatchList feature gate is enabled"
)


def refuse_initial_events(trial: Trial, code: int = 422, reason: str = "Invalid") -> None:
    """Makes the server answer like one without the feature gate WatchList."""

    def answer(exchange: Exchange) -> tuple[int, Any] | None:
        return (code, status_object(code, reason, _MESSAGE)) if "sendInitialEvents" in exchange.query else None

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
    OPEN = 1.5
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


class EarlyEnd(EarlyBookmark):
    """The watch ends between initial events."""

    name = "end"
    provocation = "the watch ends before the initial events are complete"
    fast = False
    legality = "C"

    def provoke(self, trial: Trial) -> None:
        """Does nothing: the fault of `prepare` ends the watch."""

    def disturb(self, trial: Trial, times: int) -> None:
        trial.stimulate()
        trial.stimulate()
        trial.faults.on("watch").end(after_events=1, times=times, label="ended early")


RULES = (RefusedInitialEvents, BadInitialEvents, EarlyBookmark, EarlyEnd)

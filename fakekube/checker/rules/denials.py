"""Rules about writes that are denied for one object (R6)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.errors.status import StatusError
from fakekube.checker.pauses import judge_write_backoff
from fakekube.checker.provocations import answer_with
from fakekube.checker.rule import Rule
from fakekube.checker.sample import new_early_token
from fakekube.checker.trace import mentions
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.writes import refusable_writes, require_writes

if TYPE_CHECKING:
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange

_DENIAL = 'admission webhook "policy.check.fakekube.dev" denied the request: not allowed'


class DeniedForOne(Rule):
    """The writes for one object are denied for some time, and other objects are created meanwhile."""

    id = "R6"
    name = "denied"
    provocation = "admission denies the writes for one object for some time, and others are created"
    obligation = "a request that is denied delays no other object, and is not repeated without growing pauses"
    advice = "queue the object again with a growing pause of its own, and go on with the next one"
    source = "client-go util/workqueue (ItemExponentialFailureRateLimiter); Kubernetes docs, dynamic admission control"
    expected_seconds = 6.0

    #: How long the writes are denied at least, as a part of the option --seconds, and how many other objects are created.
    PART, OTHERS = 0.4, 2

    held_up: Copy | None = None
    """A copy whose reaction did not come while the writes for the other one were denied."""
    reacts_later: bool = False
    """Whether it came when they were denied no more."""

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        token = new_early_token(trial.random)  # the others come after it, also in a list
        refusal = answer_with(StatusError(403, "Forbidden", _DENIAL))

        def deny(exchange: Exchange) -> tuple[int, Any] | None:
            others = [copy.token for copy in trial.copies if copy.token != token]  # what is written for them may name this one
            return refusal if mentions(exchange, token) and not any(mentions(exchange, one) for one in others) else None

        with ExitStack() as denials:
            faults = [
                denials.enter_context(trial.faults.on(verb, resource).intercept(deny, label="denied"))
                for verb, resource in refusable_writes(trial.baseline)
            ]
            begun = trial.now
            denied = trial.stimulate(token=token)
            denied.judged = False
            if not trial.await_until(lambda: any(fault.hits for fault in faults), trial.reaction_timeout):
                raise NotExercised("the client sent no write that was denied")
            others = [trial.stimulate() for _ in range(self.OTHERS)]
            self.held_up = next((one for one in others if not trial.await_reaction(one)), None)
            trial.wait(max(self.PART * trial.session.seconds - (trial.now - begun), 0.0))
        if self.held_up is not None:
            self.reacts_later = trial.await_reaction(self.held_up)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_write_backoff(trial, denials=True)

    def judge_trace(self, trial: Trial) -> Verdict:
        if self.held_up is not None and self.reacts_later:
            name = self.held_up.names()[0]
            return Verdict.failure(
                f"no reaction to {name} while the writes for another object were denied", *trial.excerpt(), by_time=True
            )
        denied = sum(call.status == 403 for call in trial.trace.since(trial.provoked_at))
        return Verdict.success(f"{denied} denied writes")


RULES = (DeniedForOne,)

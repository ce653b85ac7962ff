"""Computes how long to wait for the reaction of a correct client.

Invariant: the timeout grows with the reaction time of the baseline run, the pauses of the client's backoff, Retry-After, and the
load of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.checker.trace import Stream
    from fakekube.checker.trial import Trial

#: The first pause of a backoff that is assumed for a client that has not paused yet, and the longest one, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0
#: How many times a client that only lists may list before it reacts.
_POLLS = 2
#: How many times longer than the longest pause of a backoff the next one may be: it doubles, and jitter doubles it again.
_GROWTH = 4.5


def reaction_timeout(trial: Trial, since: float) -> float:
    """Returns the timeout, in seconds, for a reaction of a correct client; `since` is the start of the wait.

    The timeout is several times the reaction time of the baseline run. It starts when all streams of the client are connected
    again and its refused writes may be sent again. The next pause of the client may be several times as long as its longest
    pause until now, because the pauses of a backoff grow. A stream that keeps failing since the wait began does not extend
    the timeout.
    """
    calls = trial.trace.since(trial.provoked_at)
    retry_after = max((call.retry_after for call in calls), default=0)
    usual = trial.session.slowness() * (8.0 + 8 * trial.baseline.reaction_seconds) + retry_after
    usual += min(_POLLS * trial.baseline.poll_seconds(), _LONGEST_PAUSE)
    tried = [one for one in _attempts(trial) if not one.keeps_failing(since)]
    longest = max((pause for one in tried for pause in one.pauses()), default=0.0)
    pause = min(_GROWTH * max(longest, _FIRST_PAUSE), _LONGEST_PAUSE)
    ready = max((one.connected_at(pause) for one in tried), default=since)
    return usual + min(max(ready - since, _GROWTH * _FIRST_PAUSE), 1.5 * pause)


def _attempts(trial: Trial) -> list[Stream]:
    """Returns the requests that the client repeats until they succeed: its streams, and its refused writes."""
    streams = [one for key, one in trial.trace.streams().items() if key in trial.baseline.streams or not trial.baseline.streams]
    return [*streams, *trial.trace.refused_writes(trial.provoked_at)]

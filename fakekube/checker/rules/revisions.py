"""Rules about revisions that clients must not compute (V1).

Invariant: the servers of these rules send what a real server may send, except for `LargerRevisions`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fakekube.checker.judges import judge_unknown_revision, revision_of
from fakekube.checker.rule import Rule
from fakekube.checker.verdict import Verdict
from fakekube.checker.waits import require_resumption

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakekube.checker.trial import Trial


class LargeRevisions(Rule):
    """Revisions are too large for a floating point number."""

    id = "V1"
    name = "2^53"
    provocation = "revisions beyond 2^53"
    steps = ("W5",)
    fast = True
    obligation = "a resourceVersion is a string to send back unchanged; since 1.35 clients may compare it as a decimal number"
    advice = "keep resourceVersion as a string; compare only by equality, or as an integer of unlimited size"
    source = "Kubernetes API concepts, resource versions; KEP-5504"
    at_start = True
    expected_seconds = 8.0

    FIRST = (1 << 60) + 1
    ROUNDS = 3

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"first_revision": self.FIRST}

    def provoke(self, trial: Trial) -> None:
        trial.stimulate()
        trial.await_all()
        trial.wait(_READING)
        if trial.baseline.streams:  # others have read them in lists
            trial.require_watch()
            self.resume(trial)

    def resume(self, trial: Trial) -> None:
        """Delivers changes to the client and makes it resume its watches, several times."""
        for _ in range(self.ROUNDS):
            trial.stimulate()
            trial.await_all()
            trial.advance_revisions(1)
            require_resumption(trial)

    def find_failure(self, trial: Trial) -> Verdict | None:
        for key, stream in trial.streams_since().items():
            if trial.baseline.is_shared(key):
                continue
            answered = [call for call in stream.calls if call.status == 200]
            for before, call in pairwise(answered):
                received = before.newest_delivered(bookmarks=False) if before.is_watch and not before.may_be_unread else 0
                if 0 < revision_of(call) < received:
                    return Verdict.failure(
                        f"asks {stream.key} from resourceVersion {call.asked_revision}, though it received {received}: "
                        "it compares revisions wrongly",
                        *trial.excerpt([before, call]),
                    )
        return judge_unknown_revision(trial)


#: Seconds in which a client that cannot read such revisions ends, before its watches do.
_READING = 1.0


class LargerRevisions(LargeRevisions):
    """Revisions are too large for a signed 64-bit integer. Revisions beyond 2^64 are impossible: the server refuses them in an
    update."""

    name = "2^63"
    provocation = "revisions beyond 2^63"
    fast = False
    steps = ("W5",)
    legality = "B"
    FIRST = (1 << 63) + 1


class MoreDigits(LargeRevisions):
    """Revisions grow by one digit."""

    name = "digits"
    provocation = "revisions get one digit more"
    fast = False
    watches = True
    steps = ("W5",)
    at_start = False

    #: The first revision with another digit.
    BOUNDARY = 1_000_000
    #: How many revisions before that one the cluster starts, and the provocation begins.
    BEFORE, LAST = 1_000, 5

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"first_revision": self.BOUNDARY - self.BEFORE}

    def provoke(self, trial: Trial) -> None:
        trial.require_watch()
        self.approach(trial)
        self.resume(trial)

    @classmethod
    def approach(cls, trial: Trial) -> None:
        """Writes until the next revisions have another digit."""
        for _ in range(2 * cls.BEFORE):
            if trial.advance_revisions(1) >= cls.BOUNDARY - cls.LAST:
                break


RULES = (LargeRevisions, LargerRevisions, MoreDigits)

"""Rules about resource versions: clients use those that they received, and do not compute others (V1)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fakekube.checker.judges import judge_untold, revision_of
from fakekube.checker.occasions import require_resumption
from fakekube.checker.rule import Rule, Verdict

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell

__all__ = ["RULES"]


class LargeRevisions(Rule):
    """Revisions are too large for a floating point number."""

    id = "V1"
    provocation = "revisions beyond 2^53"
    obligation = "a resourceVersion is a string to send back unchanged; since 1.35 clients may compare it as a decimal number"
    advice = "keep resourceVersion as a string; compare only by equality, or as an integer of unlimited size"
    source = "Kubernetes API concepts, resource versions; KEP-5504"
    at_start = True
    lasts = 8.0

    FIRST = (1 << 60) + 1
    ROUNDS = 3

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"first_revision": self.FIRST}

    def provoke(self, spell: Spell) -> None:
        spell.stimulate()
        spell.await_all()
        spell.require_watch()
        self.resume(spell)

    def resume(self, spell: Spell) -> None:
        """Delivers changes to the client and makes it resume its watches, several times."""
        for _ in range(self.ROUNDS):
            spell.stimulate()
            spell.await_all()
            spell.advance_revisions(1)
            require_resumption(spell)

    def broken(self, spell: Spell) -> Verdict | None:
        for stream in spell.streams_since().values():
            answered = [call for call in stream.calls if call.status == 200]
            for before, call in pairwise(answered):
                told = before.delivered(bookmarks=False) if before.is_watch and before.ended != "cut by a fault" else 0
                if 0 < revision_of(call) < told:
                    return Verdict.failed(
                        f"asks {stream.key} from resourceVersion {call.asked_revision}, though it received {told}: "
                        "it compares revisions wrongly",
                        *spell.excerpt([before, call]),
                    )
        return judge_untold(spell)


class LargerRevisions(LargeRevisions):
    """Revisions are too large for a signed 64-bit integer. Revisions beyond 2^64 are impossible: the server refuses them in an
    update."""

    provocation = "revisions beyond 2^63"
    legality = "B"
    FIRST = (1 << 63) + 1


class MoreDigits(LargeRevisions):
    """Revisions grow by one digit."""

    provocation = "revisions get one digit more"
    at_start = False

    #: The largest number of writes to get close to the power of ten.
    _MOST = 2_000

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"first_revision": 1_000_000 - 1_000}

    def provoke(self, spell: Spell) -> None:
        spell.require_watch()
        for _ in range(self._MOST):
            if spell.advance_revisions(1) >= 1_000_000 - 5:
                break
        self.resume(spell)


RULES = (LargeRevisions, LargerRevisions, MoreDigits)

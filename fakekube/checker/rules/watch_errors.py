"""Rules about watches that fail: expired revisions, errors in the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.checker.judges import judge_expired
from fakekube.checker.rule import Rule, Verdict

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell

__all__ = ["RULES"]

_CONCEPTS = "Kubernetes API concepts, efficient detection of changes"


class ExpiredInStream(Rule):
    """The history is compacted behind an open watch."""

    id = "W1"
    provocation = "an open watch ends with 410"
    obligation = "an ERROR event 410 in a watch: list again and watch from the new revision"
    advice = "on code 410 drop the revision, list, replace the cache and watch from the list's resourceVersion"
    source = f"{_CONCEPTS} (410 Gone); client-go tools/cache/reflector.go"

    def provoke(self, spell: Spell) -> None:
        spell.require_watch()
        spell.memory["oldest"] = expire(spell)

    def broken(self, spell: Spell) -> Verdict | None:
        return judge_expired(spell)


def expire(spell: Spell) -> int:
    """Ends the open watches with 410 after a true compaction; returns the oldest revision that is not expired."""
    newest = spell.advance_revisions(1)
    spell.faults.on("watch").gone(label="compacted").remove()
    return newest + 1


class ExpiredOnReconnect(ExpiredInStream):
    """The history is compacted while a watch reconnects."""

    provocation = "the revision of a watch has expired when it reconnects"

    def provoke(self, spell: Spell) -> None:
        spell.require_watch()
        with spell.faults.on("watch").refuse(label="disconnected"):
            spell.faults.on("watch").end(label="ended").remove()
            spell.memory["oldest"] = spell.compact()


RULES = (ExpiredInStream, ExpiredOnReconnect)

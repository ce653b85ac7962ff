"""Rules about watches that end without an error: closed, cut, silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.checker.judges import judge_backoff
from fakekube.checker.rule import Rule, Verdict, Word

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call, Stream

__all__ = ["RULES"]


class NormalEnd(Rule):
    """The server ends a watch as it does after timeoutSeconds or --min-request-timeout."""

    id = "W5"
    provocation = "the server ends the watches"
    obligation = "a watch that ends normally is resumed from the last revision that it has delivered"
    advice = "keep the resourceVersion of every event and watch again from it; list again only after a 410"
    source = "Kubernetes API concepts, efficient detection of changes; kube-apiserver --min-request-timeout"

    def provoke(self, spell: Spell) -> None:
        ended = spell.require_watch()
        spell.memory["ended"] = ended
        spell.faults.on("watch").end(label="ended").remove()

    def judge_trace(self, spell: Spell) -> Verdict:
        relisted: list[Call] = []
        for one in spell.memory["ended"]:
            stream = spell.trace.streams()[one.stream]
            following = stream.after(one)
            if following is None:
                continue
            if following.is_list or not following.resumes:
                relisted.append(following)
            elif int(following.asked_revision or 0) < _last_revision(stream, one):
                return Verdict.failed(
                    f"{stream.key} was resumed from resourceVersion {following.asked_revision}, though events up to "
                    f"{one.delivered(bookmarks=False)} were delivered: they are sent again",
                    *spell.excerpt([one, following]),
                )
        if relisted:
            return Verdict.warned(
                f"after a normal end the client lists again ({relisted[0].path}) in place of watching from the last revision: "
                "allowed, and expensive",
                *spell.excerpt(),
            )
        return Verdict.passed()


def _last_revision(stream: Stream, watch: Call) -> int:
    """Returns the revision from which a client goes on that was told all that the watch has delivered."""
    asked = int(watch.asked_revision) if watch.asked_revision.isdigit() else 0
    return max(watch.delivered(bookmarks=False), asked)


class ImmediateEnds(Rule):
    """Every watch is closed as soon as it is open."""

    id = "W6"
    provocation = "every watch is closed at once"
    obligation = "watches that end at once are opened again with growing pauses"
    advice = "wait about 1 s after a watch that brought nothing, twice as long each time, up to 30 s, with jitter"
    source = "client-go tools/cache/reflector.go (backoff 800 ms to 30 s, jitter 1.0)"
    legality = "C"
    lasts = 20.0

    def provoke(self, spell: Spell) -> None:
        spell.require_watch()
        with spell.faults.on("watch").end(label="closed"):
            spell.wait(spell.bench.seconds)

    def broken(self, spell: Spell) -> Verdict | None:
        found = judge_backoff(list(spell.streams_since().values()))
        return found if found is not None and found.word is Word.FAIL else None

    def judge_trace(self, spell: Spell) -> Verdict:
        return judge_backoff(list(spell.streams_since().values())) or Verdict.passed()


RULES = (NormalEnd, ImmediateEnds)

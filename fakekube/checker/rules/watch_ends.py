"""Rules about watches that end without an error: closed, cut, silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakekube.checker.judges import judge_backoff, judge_resumption, judge_untold
from fakekube.checker.occasions import SHORT, asked_again, await_long_watches, own_objects, require_resumption
from fakekube.checker.provocations import JoinEvents, arm
from fakekube.checker.rule import Rule, Verdict
from fakekube.checker.rules.watch_errors import CONCEPTS, REFLECTOR, judge_only_failures
from fakekube.checker.trace import excerpt

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call

__all__ = ["RULES"]


class NormalEnd(Rule):
    """The server ends a watch as it does after timeoutSeconds or --min-request-timeout."""

    id = "W5"
    provocation = "the server ends the watches"
    obligation = "a watch that ends normally is resumed from the last revision that it has delivered"
    advice = "keep the resourceVersion of every event and watch again from it; list again only after a 410"
    source = f"{CONCEPTS}; kube-apiserver --min-request-timeout"

    def provoke(self, spell: Spell) -> None:
        ended: list[Call] = []
        for _ in range(4):
            await_long_watches(spell)  # a short one may well be followed by a list
            spell.stimulate()
            spell.await_all()
            ended += spell.end_watches()
            spell.memory["ended"] = ended

    def broken(self, spell: Spell) -> Verdict | None:
        return judge_resumption(spell, spell.memory.get("ended", ()), bookmarks=False) or judge_untold(spell)

    def judge_trace(self, spell: Spell) -> Verdict:
        relisted: list[Call] = []
        ended = [
            one for one in spell.memory["ended"] if (one.end or one.at) - one.at > SHORT and one.ended != "closed by the client"
        ]
        for one in ended:
            following = spell.trace.streams()[one.stream].after(one)
            if following is not None and not following.resumes and one.delivered(bookmarks=False):
                relisted.append(following)
        if len(relisted) > len(ended) / 2:  # the contract allows it, at a cost
            often = f"{len(relisted)} of {len(ended)}"
            return Verdict.warned(
                f"after {often} normal ends the client read all of {relisted[0].path} again in place of resuming the watch",
                *spell.excerpt(),
            )
        return Verdict.passed()


class ImmediateEnds(Rule):
    """Every watch is closed as soon as it is open."""

    id = "W6"
    provocation = "every watch is closed at once"
    obligation = "watches that end at once are opened again with growing pauses"
    advice = "wait about 1 s after a watch that brought nothing, twice as long each time, up to 30 s, with jitter"
    source = f"{REFLECTOR} (backoff 800 ms to 30 s, jitter 1.0)"
    legality = "C"
    lasts = 25.0

    def provoke(self, spell: Spell) -> None:
        require_resumption(spell)
        with spell.faults.on("watch").end(label="closed"):
            spell.wait(spell.bench.seconds)

    def broken(self, spell: Spell) -> Verdict | None:
        return judge_only_failures(spell)

    def judge_trace(self, spell: Spell) -> Verdict:
        return judge_backoff(list(spell.streams_since().values())) or Verdict.passed()


class HalfOpenPlain(Rule):
    """Nothing arrives any more, and the connection stays."""

    id = "W7"
    provocation = "the watches fall silent, and their connections stay"
    obligation = "a connection that has died without an end is noticed by the client's own idle limit"
    advice = "set a read timeout a little above timeoutSeconds, or HTTP/2 pings; then watch again from the last revision"
    source = "kubernetes/kubernetes#107266; nolar/kopf#1267; golang.org/x/net/http2 ReadIdleTimeout"
    legality = "C"
    lasts = 60.0
    converges = False

    def provoke(self, spell: Spell) -> None:
        over_http2 = any(call.exchange.protocol.startswith("HTTP/2") for call in spell.require_watch())
        spell.faults.on("watch").silence(connection=True, label="silent").remove()
        spell.stimulate()
        told = spell.bench.idle
        guess = spell.memory["guess"] = _GUESS_PINGS if over_http2 else _GUESS
        limit = guess if told is None else 2 * told + 5.0
        spell.memory["back"] = spell.await_until(lambda: spell.has_reacted(spell.copies[-1]), limit)
        if spell.memory["back"]:
            spell.converge()

    def judge_trace(self, spell: Spell) -> Verdict:
        if spell.memory.get("back"):
            return Verdict.passed()
        idle = spell.bench.idle
        if idle is None:
            return Verdict.warned(
                f"{spell.memory['guess']:.0f} s after its watches fell silent the client has not noticed; tell --idle if it does",
                *spell.excerpt(),
            )
        return Verdict.failed(
            f"the client gives up on a silent watch after {idle:.0f} s, it says; it did not within {2 * idle + 5:.0f} s",
            *spell.excerpt(),
            by_time=True,
        )


#: Seconds of silence after which a client that tells no idle limit is suspected; the same where it may send PINGs, which
#: client-go does after 30 s, and waits 15 s for the answer.
_GUESS, _GUESS_PINGS = 25.0, 55.0


class HalfOpen(HalfOpenPlain):
    """The same over TLS, where clients may speak HTTP/2 and notice by its PINGs."""

    otherwise = HalfOpenPlain

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"tls": True}


class BrokenFrames(Rule):
    """The connection is cut in mid-frame and in mid-character, and what comes arrives in slices."""

    id = "W8"
    provocation = "watches arrive in slices and are cut in mid-event"
    obligation = "an event counts when its line is complete, however the bytes arrive; then the watch is resumed"
    advice = "buffer bytes up to the newline (only \\n), decode the whole line as UTF-8, drop what is incomplete"
    source = "RFC 9112 (chunked transfer coding); kubernetes-client/python#1325 and #2087"
    legality = "C"

    def provoke(self, spell: Spell) -> None:
        for size in _CUTS:
            spell.require_watch()
            spell.faults.on("watch").cut(after_bytes=size, label="cut").remove()
            spell.stimulate(_with_text)
            spell.await_all()
        spell.faults.on("watch").slice(_SLICE, label="sliced")
        spell.stimulate(_with_text)
        spell.await_all()
        spell.wait(2.0)
        spell.end_watches()

    def broken(self, spell: Spell) -> Verdict | None:
        closed = [
            call
            for call in spell.trace.since(spell.provoked_at)
            if call.is_watch and call.ended == "closed by the client" and (call.end or 0.0) - call.at < _SOON
        ]
        if len(closed) > 1:
            return Verdict.failed(
                f"the client closed its watch {len(closed)} times soon after it was opened, while events arrived in slices",
                *excerpt(closed),
            )
        return _judge_text(spell)


def _judge_text(spell: Spell) -> Verdict | None:
    """Says whether a client writes the text of an object back with other characters; None if not."""
    for call in spell.trace.since(spell.provoked_at):
        if call.is_write and any(mark in call.exchange.raw_body for mark in _REPLACED):
            return Verdict.failed("writes U+FFFD where the object has other characters", *excerpt([call]))
    for copy in spell.copies:
        for _, obj in own_objects(spell, copy):
            text = (obj["metadata"].get("annotations") or {}).get(_ANNOTATION)
            known = next(one for one in copy.objects if one["metadata"]["name"] == obj["metadata"]["name"])
            if text != (known["metadata"].get("annotations") or {}).get(_ANNOTATION):
                calls = [call for call in spell.trace.since(copy.mark) if call.is_write and call.name == obj["metadata"]["name"]]
                return Verdict.failed(f"{obj['metadata']['name']} has another text than before", *excerpt(calls))
    return None


#: The character that takes the place of what cannot be decoded, in UTF-8 and as JSON may write it.
_REPLACED = ("\ufffd".encode(), b"\\ufffd", b"\\uFFFD")

#: Bytes of an event after which it is cut: in the text below, in mid-character one time at least.
_CUTS = (1500, 1501)
_SLICE = 5
#: Seconds within which no idle limit of a client ends a watch.
_SOON = 1.5
#: Characters of two to four bytes; some libraries take the second and the third one for the end of a line.
_TEXT = "é\u0085\u2028漢😀"


def _with_text(obj: dict[str, Any]) -> None:
    annotations = obj["metadata"].setdefault("annotations", {})
    annotations[_ANNOTATION] = _TEXT * 300
    if obj["kind"] == "ConfigMap" and obj["apiVersion"] == "v1":
        obj.setdefault("data", {})["check.fakekube.dev"] = _TEXT * 100


_ANNOTATION = "a.check.fakekube.dev/text"


class Bursts(Rule):
    """Several events are there when a watch is resumed, and arrive together: in a chunk each, and in one chunk."""

    id = "W8"
    provocation = "several events and a bookmark arrive at once"
    obligation = "what one read returns may hold several events"
    advice = "take every whole line out of the buffer before the next read"
    source = "RFC 9112 (chunked transfer coding); kube-apiserver flushes when no event is waiting"

    EVENTS = 3

    def provoke(self, spell: Spell) -> None:
        for together in (False, True):
            require_resumption(spell)
            if together:
                arm(spell.faults.on("watch"), JoinEvents(), label="in one chunk")
            await_long_watches(spell)
            with spell.faults.on("watch").hang(label="held up"):
                asked_again(spell, spell.end_watches())
                for _ in range(self.EVENTS):
                    spell.stimulate()
            spell.await_all()


RULES = (NormalEnd, ImmediateEnds, HalfOpen, BrokenFrames, Bursts)

"""Rules about what watches deliver: large events, bookmarks, events that come again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakekube.checker.judges import judge_misread, judge_resumption, judge_untold, revision_of
from fakekube.checker.reaction import Copy, Element, ElementKind, children_of
from fakekube.checker.rule import NotExercised, Rule, Verdict
from fakekube.checker.rules.initial_events import require_lists
from fakekube.checker.rules.watch_errors import CONCEPTS, expire

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call

__all__ = ["RULES", "judge_repeats"]


class LargeEvents(Rule):
    """An event is one line of several MiB."""

    id = "W9"
    provocation = "an event of more than a MiB"
    obligation = "an event is one line of any size"
    advice = "read lines without a limit, or with one of 16 MiB; set the buffer of the HTTP library"
    source = "kube-apiserver --max-request-bytes, escaping of encoding/json; nolar/kopf#275"

    def provoke(self, spell: Spell) -> None:
        before = spell.require_watch()
        large = spell.stimulate(_enlarge)
        large.judged = False  # a client may refuse so large an object; it must live on
        targets = list(zip(large.resources, large.objects, strict=True))
        if "configmaps" in spell.calm.reaction.children:
            spell.await_reaction(large, 5.0)
            targets += [("configmaps", child) for child in children_of(spell.cluster, large, "configmaps")]
        for resource, obj in targets:
            for more in _MORE if resource == "configmaps" else ():
                metadata = obj["metadata"]
                spell.cluster.patch(resource, metadata["name"], {"data": more}, namespace=metadata.get("namespace"))
        spell.await_until(lambda: spell.is_told(large), 10.0)
        spell.wait(0.5)
        spell.memory["closed"] = [one for one in before if one.ended == "closed by the client"]

    def judge_trace(self, spell: Spell) -> Verdict:
        closed: list[Call] = spell.memory["closed"]
        if closed:
            return Verdict.warned(
                f"the client closed its watch while a large event was sent, and recovered by other means: {closed[0].path}",
                *spell.excerpt(),
            )
        return Verdict.passed()


def _enlarge(obj: dict[str, Any]) -> None:
    """Fills an object with what JSON escapes: six bytes for each character."""
    if obj["kind"] != "ConfigMap":
        obj["metadata"].setdefault("annotations", {})["check.fakekube.dev/large"] = "<" * 240_000


#: What brings a ConfigMap near its limit of 1 MiB, and its events near 6 MiB, in two requests.
_MORE = ({"check.fakekube.dev": "<" * 490_000}, {"more.check.fakekube.dev": "<" * 490_000})


class UsefulBookmarks(Rule):
    """Bookmarks come often and far ahead, then the watch ends."""

    id = "W10"
    provocation = "bookmarks come often, and far ahead of the last event"
    obligation = "a BOOKMARK moves the revision on and is no object; nobody may rely on one"
    advice = "on BOOKMARK keep metadata.resourceVersion, and nothing else"
    source = f"{CONCEPTS} (watch bookmarks); KEP-956"

    def provoke(self, spell: Spell) -> None:
        asking = [call for call in spell.require_watch() if call.wants_bookmarks]
        if not asking:
            raise NotExercised("the client does not ask for bookmarks (allowWatchBookmarks)")
        spell.faults.on("watch").bookmarks("often", label="bookmarks often")
        spell.stimulate()
        spell.await_all()
        spell.advance_revisions(20)
        watches = [call for call in spell.require_watch() if call.wants_bookmarks]
        spell.faults.on("watch").bookmarks("now", label="bookmark").remove()
        spell.await_until(
            lambda: all(not one.is_open or (one.events[-1:] and one.events[-1].type in ("BOOKMARK", "")) for one in watches), 5.0
        )
        spell.wait(0.5)
        spell.memory["ended"] = [one for one in spell.end_watches() if one in watches]

    def broken(self, spell: Spell) -> Verdict | None:
        misread = judge_misread(spell.trace.since(spell.provoked_at), "k8s.io/initial-events-end")
        return misread or judge_resumption(spell, spell.memory.get("ended", ()), bookmarks=True)


def _ends_in_bookmark(watch: Call) -> bool:
    """Was the last event a bookmark, as far as events can be read?"""
    return bool(watch.events) and watch.events[-1].type in ("BOOKMARK", "")


class NoBookmarks(Rule):
    """No bookmark ever comes."""

    id = "W10"
    provocation = "no bookmark comes"
    obligation = UsefulBookmarks.obligation
    advice = UsefulBookmarks.advice
    source = UsefulBookmarks.source

    def provoke(self, spell: Spell) -> None:
        if not any(call.wants_bookmarks for call in spell.require_watch()):
            raise NotExercised("the client does not ask for bookmarks (allowWatchBookmarks)")
        spell.faults.on("watch").bookmarks("never", label="no bookmarks")
        spell.stimulate()
        spell.await_all()
        spell.memory["ended"] = spell.end_watches()

    def broken(self, spell: Spell) -> Verdict | None:
        return judge_resumption(spell, spell.memory.get("ended", ()), bookmarks=False)


class RevisionOfList(Rule):
    """A list is newer than all its items."""

    id = "W11"
    provocation = "the newest object was deleted before the list"
    obligation = "the watch after a list starts from the list's resourceVersion, not from that of an item"
    advice = "take metadata.resourceVersion of the list; revisions of items are unordered and may be older"
    source = f"{CONCEPTS} (resource versions)"
    at_start = True

    def prepare(self, spell: Spell) -> None:
        require_lists(spell)
        spell.stimulate()
        spell.stimulate()
        spell.delete(spell.stimulate())
        spell.advance_revisions(5)

    def provoke(self, spell: Spell) -> None:
        spell.require_watch()  # the client has listed before there is a newer object

    def judge_trace(self, spell: Spell) -> Verdict:
        compared = False
        for stream in spell.streams_since().values():
            for call in stream.calls:
                before = [one for one in stream.lists if one.number < call.number and one.succeeded and one.revision]
                if not call.resumes or not before:
                    continue
                compared = True
                if not stream.knows(revision_of(call), call) and revision_of(call) in _revisions_of_items(before[-1]):
                    return Verdict.failed(
                        f"the watch of {stream.key} starts from {call.asked_revision}, the revision of an item; "
                        f"that of the list is {before[-1].revision}",
                        *spell.excerpt([before[-1], call]),
                    )
        untold = judge_untold(spell)
        if untold is not None:
            return untold
        if not compared:
            raise NotExercised("the client does not watch from the revision of a list")
        return Verdict.passed()


def _revisions_of_items(listed: Call) -> set[int]:
    answer = listed.answer
    items = (answer.get("items") or ()) if isinstance(answer, Mapping) else ()
    return {int(item["metadata"].get("resourceVersion", "0")) for item in items}


class RepeatedAfterRelist(Rule):
    """All objects are listed again after a 410."""

    id = "W13"
    provocation = "everything is listed again after a 410"
    obligation = "events that come again change nothing: handlers are idempotent"
    advice = "compare with what is there before acting; use fixed names, or look for the child by its owner first"
    source = f"{CONCEPTS} (resourceVersion 0); nolar/kopf#42"

    def provoke(self, spell: Spell) -> None:
        if not spell.calm.reaction.children:
            raise NotExercised("the client makes nothing that could be made twice")
        spell.stimulate()
        spell.await_all()
        spell.memory["oldest"] = expire(spell)

    def judge_trace(self, spell: Spell) -> Verdict:
        return judge_repeats(spell) or Verdict.passed()


class RepeatedAfterRestart(RepeatedAfterRelist):
    """The client starts again and lists everything."""

    provocation = "the client starts again"

    def provoke(self, spell: Spell) -> None:
        if not spell.calm.reaction.children:
            raise NotExercised("the client makes nothing that could be made twice")
        spell.stimulate()
        spell.await_all()
        spell.restart_client()


def judge_repeats(spell: Spell) -> Verdict | None:
    """Says whether more objects were made for a copy than on the calm cluster; None if not."""
    expected = {resource: count for resource, count in spell.calm.reaction.children.items() if not resource.startswith("events")}
    for copy in spell.copies:
        if copy.deleted:
            continue
        for resource, count in expected.items():
            found = children_of(spell.cluster, copy, resource)
            if len(found) > count:
                names = ", ".join(obj["metadata"]["name"] for obj in found[:4])
                return Verdict.failed(
                    f"{len(found)} {resource} for {copy.names()[0]} ({names}); on a calm cluster there are {count}",
                    *spell.excerpt(_creations(spell, copy)),
                )
    return None


def _creations(spell: Spell, copy: Copy) -> list[Call]:
    return [call for call in spell.trace.since(copy.mark) if call.verb == "create" and call.mentions(copy.token)]


class MissedDeletions(Rule):
    """An object is deleted while the client is disconnected, and the event is lost with the history."""

    id = "W12"
    provocation = "an object is deleted while the client cannot watch, and the history is compacted"
    obligation = "what a new list lacks was deleted: the client reacts as to the event"
    advice = "when a list replaces the cache, report the objects that are no longer in it as deleted"
    source = "client-go tools/cache (Reflector Replace, DeltaFIFO)"

    def provoke(self, spell: Spell) -> None:
        if spell.calm.holds:
            raise NotExercised("the client holds objects by a finalizer, so that no deletion can be missed")
        if not any(one.kind is ElementKind.REQUEST for one in spell.calm.deletion.elements):
            raise NotExercised("the client sends nothing when an object is deleted")
        spell.require_watch()
        lost = spell.memory["lost"] = spell.copies[0]
        spell.memory["mark"] = spell.trace.mark()
        with spell.disconnected():
            spell.delete(lost)
            spell.cluster.settle()
            spell.compact()
        spell.await_until(lambda: not self._missing(spell), spell.patience)

    def _missing(self, spell: Spell) -> list[Element]:
        calls = spell.trace.since(spell.memory["mark"])
        return spell.calm.deletion.missing(spell.cluster, spell.memory["lost"], calls)

    def judge_trace(self, spell: Spell) -> Verdict:
        missing = self._missing(spell)
        if missing:
            return Verdict.failed(
                f"no reaction to the deletion of {spell.memory['lost'].names()[0]}: on a calm cluster the client {missing[0]}",
                *spell.excerpt(),
                by_time=True,
            )
        return Verdict.passed()


class MissedDeletionsOfChildren(MissedDeletions):
    """What the client has made is deleted while it is disconnected."""

    provocation = "what the client has made is deleted while it cannot watch, and the history is compacted"

    def provoke(self, spell: Spell) -> None:
        watched = set(spell.calm.streams.values())
        kinds = [resource for resource in spell.calm.reaction.children if resource in watched]
        if not kinds:
            raise NotExercised("the client does not watch what it makes")
        lost = spell.copies[0]
        repaired = [resource for resource in kinds if self._is_repaired(spell, lost, resource)]
        if not repaired:
            raise NotExercised("the client does not make again what was deleted")
        with spell.disconnected():
            for resource in repaired:
                delete_children(spell, lost, resource)
            spell.compact()

    @staticmethod
    def _is_repaired(spell: Spell, copy: Copy, resource: str) -> bool:
        """Does the client make again what is deleted before its eyes?"""
        delete_children(spell, copy, resource)
        expected = spell.calm.reaction.children[resource]
        return spell.await_until(lambda: len(children_of(spell.cluster, copy, resource)) >= expected, 3.0)

    def judge_trace(self, spell: Spell) -> Verdict:
        return Verdict.passed()


def delete_children(spell: Spell, copy: Copy, resource: str) -> None:
    """Deletes what the client has made for a copy."""
    for child in children_of(spell.cluster, copy, resource):
        spell.cluster.delete(resource, child["metadata"]["name"], namespace=child["metadata"].get("namespace"))


RULES = (
    LargeEvents,
    UsefulBookmarks,
    NoBookmarks,
    RevisionOfList,
    MissedDeletions,
    MissedDeletionsOfChildren,
    RepeatedAfterRelist,
    RepeatedAfterRestart,
)

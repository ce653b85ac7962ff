"""Rules about events: large events, bookmarks, revisions of lists, repeated events (W9 to W11, W13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakekube.checker.judges import judge_misread, judge_resumption, judge_untold, revision_of
from fakekube.checker.occasions import own_objects
from fakekube.checker.reaction import SYSTEM_FIELDS, Copy, changed, children_of, value_at
from fakekube.checker.rule import NotExercised, Rule, Verdict
from fakekube.checker.rules.initial_events import require_lists
from fakekube.checker.rules.watch_errors import CONCEPTS, expire

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call
    from fakekube.powers.exchange import Exchange

__all__ = ["RULES", "judge_repeats"]


class LargeEvents(Rule):
    """An event is larger than 1 MiB."""

    id = "W9"
    provocation = "an event of more than a MiB"
    obligation = "an event is one line, which may be large"
    advice = "read lines without a limit, or with one of 16 MiB; set the buffer of the HTTP library"
    source = "kube-apiserver --max-request-bytes, escaping of encoding/json; nolar/kopf#275"

    def provoke(self, spell: Spell) -> None:
        before = spell.require_watch()
        large = spell.stimulate(_enlarge)
        large.judged = False  # writes of the client with so large an object may be refused; the client only has to survive
        targets = list(zip(large.resources, large.objects, strict=True))
        if "configmaps" in spell.calm.reaction.children:
            spell.await_reaction(large, 5.0)
            targets += [("configmaps", child) for child in children_of(spell.cluster, large, "configmaps")]
        for resource, obj in targets:
            for more in _MORE if resource == "configmaps" else ():
                metadata = obj["metadata"]
                spell.cluster.patch(resource, metadata["name"], {"data": more}, namespace=metadata.get("namespace"))
        sent = spell.now
        spell.await_until(lambda: spell.is_told(large), 10.0)
        spell.memory["reacted"] = spell.await_reaction(large)
        spell.wait(0.5)
        carrying = {resource for resource, _ in targets}
        spell.memory["closed"] = [
            one
            for one in before
            if one.ended == "closed by the client"
            and one.collection in carrying
            and (one.end or 0.0) < sent + spell.idle_limit()  # later it may be an idle timeout
        ]

    def judge_trace(self, spell: Spell) -> Verdict:
        closed: list[Call] = spell.memory["closed"]
        if closed:
            return Verdict.warned(
                f"the client closed its watch while a large event was sent, and recovered in another way: {closed[0].path}",
                *spell.excerpt(),
            )
        if not spell.memory["reacted"]:
            return Verdict.warned("no reaction to an object whose event has 1.4 MB", *spell.excerpt())
        return Verdict.passed()


def _enlarge(obj: dict[str, Any]) -> None:
    """Fills an annotation up to its limit with characters that JSON escapes with six bytes."""
    obj["metadata"].setdefault("annotations", {})["check.fakekube.dev/large"] = "<" * 240_000


#: Two patches that bring a ConfigMap near its limit of 1 MiB, and its events near 6 MiB.
_MORE = ({"check.fakekube.dev": "<" * 490_000}, {"more.check.fakekube.dev": "<" * 490_000})


class UsefulBookmarks(Rule):
    """Bookmarks are frequent and much newer than the last event; then the watch ends."""

    id = "W10"
    provocation = "bookmarks come often, and far ahead of the last event"
    obligation = "a BOOKMARK updates the revision and is not an object; a client must not rely on bookmarks"
    advice = "on BOOKMARK store metadata.resourceVersion, and ignore the rest"
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

    def judge_trace(self, spell: Spell) -> Verdict:
        closed = [
            call
            for call in spell.trace
            if call.is_watch
            and call.ended == "closed by the client"
            and (call.end or 0.0) - call.at < spell.idle_limit()  # later it may be an idle timeout
            and _ends_in_bookmark(call)
        ]
        if len(closed) > 1:
            return Verdict.failed(f"closes its watches after bookmarks ({len(closed)} times)", *spell.excerpt(closed))
        return Verdict.passed()


def _ends_in_bookmark(watch: Call) -> bool:
    """Returns whether the last event of a watch was a bookmark, or cannot be read."""
    return bool(watch.events) and watch.events[-1].type in ("BOOKMARK", "")


class NoBookmarks(Rule):
    """The server sends no bookmarks."""

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
    """A list has a newer revision than all its items."""

    id = "W11"
    provocation = "the newest object was deleted before the list"
    obligation = "the watch after a list starts from the list's resourceVersion, not from that of an item"
    advice = "take metadata.resourceVersion of the list; the revisions of the items are unordered and may be older"
    source = f"{CONCEPTS} (resource versions)"
    at_start = True

    def prepare(self, spell: Spell) -> None:
        require_lists(spell)
        spell.stimulate()
        spell.stimulate()
        spell.delete(spell.stimulate())
        spell.advance_revisions(5)

        def write(exchange: Exchange) -> None:
            spell.advance_revisions(1)

        spell.faults.on("list").intercept(write, label="write before list")  # so that all lists have different revisions

    def provoke(self, spell: Spell) -> None:
        spell.require_watch()  # the client lists before a newer object exists

    def judge_trace(self, spell: Spell) -> Verdict:
        compared = False
        anew: list[Call] = []
        for stream in spell.streams_since().values():
            for call in stream.calls:
                before = [one for one in stream.lists if one.number < call.number and one.succeeded and one.revision]
                if before and call.is_watch and not call.resumes and not call.sends_initial_events:
                    anew.append(call)
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
        if anew:
            return Verdict.warned(
                f"watches {anew[0].stream} after its list from resourceVersion {anew[0].asked_revision or 'unset'}: it "
                "misses deletions in between",
                *spell.excerpt(),
            )
        if not compared:
            raise NotExercised("the client does not watch from the revision of a list")
        return Verdict.passed()


def _revisions_of_items(listed: Call) -> set[int]:
    answer = listed.answer
    items = (answer.get("items") or ()) if isinstance(answer, Mapping) else ()
    return {int(item["metadata"].get("resourceVersion", "0")) for item in items}


class RepeatedAfterRelist(Rule):
    """The client lists all objects again after a 410."""

    id = "W13"
    provocation = "everything is listed again after a 410"
    obligation = "repeated events change nothing: handlers are idempotent"
    advice = "compare with the present state before acting; use fixed names, or look for the child by its owner first"
    source = f"{CONCEPTS} (resourceVersion 0); nolar/kopf#42"

    def provoke(self, spell: Spell) -> None:
        if not spell.calm.reaction.children:
            raise NotExercised("the client creates no children that could be created twice")
        self.remember(spell)
        spell.memory["oldest"] = expire(spell)

    @staticmethod
    def remember(spell: Spell) -> None:
        """Stores the state of a copy and its children after the reaction of the client."""
        copy = spell.memory["copy"] = spell.stimulate()
        spell.await_all()
        spell.wait(0.5)
        spell.memory["before"] = _state(spell, copy)

    def judge_trace(self, spell: Spell) -> Verdict:
        return judge_repeats(spell) or _judge_changes(spell) or Verdict.passed()


class RepeatedAfterRestart(RepeatedAfterRelist):
    """The client restarts and lists all objects."""

    provocation = "the client starts again"

    def provoke(self, spell: Spell) -> None:
        if not spell.calm.reaction.children:
            raise NotExercised("the client creates no children that could be created twice")
        self.remember(spell)
        spell.restart_client()


def _state(spell: Spell, copy: Copy) -> dict[str, dict[str, Any]]:
    """Returns the objects of a copy and its children, by uid."""
    found = [obj for _, obj in own_objects(spell, copy)]
    found += [child for resource in spell.calm.reaction.children for child in children_of(spell.cluster, copy, resource)]
    return {obj["metadata"]["uid"]: obj for obj in found}


def _judge_changes(spell: Spell) -> Verdict | None:
    """Judges whether the client changed objects after it received them again: a failure if a counter grew, else a warning."""
    before, after = spell.memory["before"], _state(spell, spell.memory["copy"])
    for uid, old in before.items():
        new = after.get(uid, old)
        name = new["metadata"]["name"]
        for path in changed(old, new):
            if path[:2] in SYSTEM_FIELDS:
                continue
            calls = [call for call in spell.trace.since(spell.provoked_at) if call.is_write and call.mentions(name)]
            values = [value_at(one, path) for one in (old, new)]
            text = f"{name} was delivered again, and {'.'.join(path)} changed from {values[0]} to {values[1]}"
            counts = all(str(value).isdigit() for value in values) and 0 < int(values[1]) - int(values[0]) < _COUNTED
            if counts and calls:
                return Verdict.failed(text, *spell.excerpt(calls))
            if calls:
                return Verdict.warned(text, *spell.excerpt(calls))
    return None


#: A number that grows by less than this counts deliveries; a larger difference is a time.
_COUNTED = 4


def judge_repeats(spell: Spell) -> Verdict | None:
    """Judges whether a copy has more children than in the calm run."""
    expected = {resource: count for resource, count in spell.calm.reaction.children.items() if not resource.startswith("events")}
    for copy in spell.copies:
        if copy.deleted:
            continue
        for resource, count in expected.items():
            found = children_of(spell.cluster, copy, resource)
            if len(found) > count and len(found) > (count := spell.calm.usual_children(resource)):
                names = ", ".join(obj["metadata"]["name"] for obj in found[:4])
                return Verdict.failed(
                    f"{len(found)} {resource} for {copy.names()[0]} ({names}); in the calm run there are {count}",
                    *spell.excerpt(_creations(spell, copy)),
                )
    return None


def _creations(spell: Spell, copy: Copy) -> list[Call]:
    return [call for call in spell.trace.since(copy.mark) if call.verb == "create" and call.mentions(copy.token)]


RULES = (LargeEvents, UsefulBookmarks, NoBookmarks, RevisionOfList, RepeatedAfterRelist, RepeatedAfterRestart)

"""Rules about deletions whose events the client does not receive (W12)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakekube.checker.occasions import asked_again, await_long_watches, await_told, drop_finalizers, own_objects, remove
from fakekube.checker.reaction import Copy, Element, ElementKind, children_of
from fakekube.checker.rule import NotExercised, Rule, Verdict
from fakekube.client import ApiError

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell

__all__ = ["RULES"]


class MissedDeletions(Rule):
    """An object is deleted while the client is disconnected, and the history is compacted."""

    id = "W12"
    provocation = "an object is deleted while the client cannot watch, and the history is compacted"
    obligation = "an object that is missing in a new list was deleted: the client reacts as to a DELETED event"
    advice = "when a list replaces the cache, handle objects that are no longer in it as deleted"
    source = "client-go tools/cache (Reflector Replace, DeltaFIFO)"

    def provoke(self, spell: Spell) -> None:
        if spell.calm.holds:
            raise NotExercised("the client adds a finalizer to objects, so that it cannot miss a deletion")
        if not any(one.kind is ElementKind.REQUEST for one in spell.calm.deletion.elements):
            raise NotExercised("the client sends nothing when an object is deleted")
        spell.require_watch()
        lost = spell.memory["lost"] = spell.copies[0]
        spell.memory["mark"] = spell.trace.mark()
        self.miss(spell, lost)
        spell.await_until(lambda: not self._missing(spell), spell.patience)

    def miss(self, spell: Spell, lost: Copy) -> None:
        """Deletes a copy so that the client does not receive the event."""
        with spell.disconnected():
            spell.delete(lost)
            spell.cluster.settle()
            spell.compact()

    def _missing(self, spell: Spell) -> list[Element]:
        calls = spell.trace.since(spell.memory["mark"])
        return spell.calm.deletion.missing(spell.cluster, spell.memory["lost"], calls)

    def judge_trace(self, spell: Spell) -> Verdict:
        missing = self._missing(spell)
        if missing:
            return Verdict.failed(
                f"no reaction to the deletion of {spell.memory['lost'].names()[0]}: in the calm run the client {missing[0]}",
                *spell.excerpt(),
                by_time=True,
            )
        return Verdict.passed()


class DeletionsBehindExpiry(MissedDeletions):
    """An object is deleted while a watch reconnects; the client receives only that its revision has expired."""

    provocation = "an object is deleted while a watch reconnects, and its revision has expired then"

    def miss(self, spell: Spell, lost: Copy) -> None:
        await_long_watches(spell)
        with spell.faults.on("watch").hang(label="held up"):
            asked_again(spell, spell.end_watches())
            spell.delete(lost)
            spell.cluster.settle()
            spell.compact()


class MissedDeletionsOfChildren(MissedDeletions):
    """The children that the client has created are deleted while it is disconnected."""

    provocation = "what the client has made is deleted while it cannot watch, and the history is compacted"

    def provoke(self, spell: Spell) -> None:
        watched = set(spell.calm.streams.values())
        kinds = [resource for resource in spell.calm.reaction.children if resource in watched]
        if not kinds:
            raise NotExercised("the client does not watch the children that it creates")
        lost = spell.copies[0]
        repaired = [resource for resource in kinds if self._is_repaired(spell, lost, resource)]
        if not repaired:
            raise NotExercised("the client does not recreate deleted children")
        with spell.disconnected():
            for resource in repaired:
                delete_children(spell, lost, resource)
            spell.compact()

    @staticmethod
    def _is_repaired(spell: Spell, copy: Copy, resource: str) -> bool:
        """Returns whether the client recreates children whose deletion it sees."""
        delete_children(spell, copy, resource)
        expected = spell.calm.reaction.children[resource]
        if not spell.await_until(lambda: len(children_of(spell.cluster, copy, resource)) >= expected, 3.0):
            return False
        await_told(spell, resource, children_of(spell.cluster, copy, resource))
        return True

    def judge_trace(self, spell: Spell) -> Verdict:
        return Verdict.passed()


class RemovedOwners(Rule):
    """An object and its children are deleted, regardless of finalizers, while the client is disconnected.

    Later a child with the same name is created and deleted again: a client that kept the object in its cache recreates children.
    """

    id = "W12"
    provocation = "an object is removed while the client cannot watch; later a child of it is made and deleted"
    obligation = MissedDeletions.obligation
    advice = MissedDeletions.advice
    source = MissedDeletions.source

    def provoke(self, spell: Spell) -> None:
        watched = set(spell.calm.streams.values())
        kinds = [resource for resource in spell.calm.reaction.children if resource in watched]
        if not kinds:
            raise NotExercised("the client does not watch the children that it creates")
        lost = spell.copies[0]
        children = [(one, child) for one in kinds for child in children_of(spell.cluster, lost, one)]
        with spell.disconnected():
            lost.deleted = True
            for resource, obj in own_objects(spell, lost):
                metadata = obj["metadata"]
                drop_finalizers(spell, resource, metadata["name"], metadata.get("namespace"))
            spell.delete(lost)
            for resource, child in children:
                self._remove(spell, resource, child)
            spell.compact()
        spell.converge()
        spell.memory["mark"] = spell.trace.mark()
        for resource, child in children:
            self._make(spell, child)
            spell.wait(0.3)
            self._remove(spell, resource, child)
        spell.wait(2.0 + 2 * spell.calm.reaction_seconds)

    @staticmethod
    def _make(spell: Spell, child: dict[str, Any]) -> None:
        """Creates a child again, as another client."""
        metadata = {key: child["metadata"][key] for key in _KEPT if key in child["metadata"]}
        with suppress(ApiError):
            spell.cluster.create({**child, "metadata": metadata})

    @staticmethod
    def _remove(spell: Spell, resource: str, child: dict[str, Any]) -> None:
        with suppress(ApiError):
            remove(spell, resource, child)

    def broken(self, spell: Spell) -> Verdict | None:
        if "mark" not in spell.memory:
            return None
        lost = spell.copies[0]
        made = [
            call
            for call in spell.trace.since(spell.memory["mark"])
            if call.verb == "create" and call.succeeded and call.mentions(lost.token)
        ]
        if not made:
            return None
        return Verdict.failed(f"creates {made[0].collection} for {lost.names()[0]}, which is deleted", *spell.excerpt(made))


#: The metadata of a child that its new version has.
_KEPT = ("name", "namespace", "labels", "annotations", "ownerReferences")


def delete_children(spell: Spell, copy: Copy, resource: str) -> None:
    """Deletes the children of a resource that the client has created for a copy."""
    for child in children_of(spell.cluster, copy, resource):
        spell.cluster.delete(resource, child["metadata"]["name"], namespace=child["metadata"].get("namespace"))


RULES = (MissedDeletions, DeletionsBehindExpiry, MissedDeletionsOfChildren, RemovedOwners)

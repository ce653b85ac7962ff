"""Rules for the failure patterns of sieve-project/sieve: stale, intermediate and unobserved state (W16, S1 to S3).

A controller restarts with an old view of the cluster, is killed between two writes, or misses changes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from fakekube.checker.occasions import LEASES, await_told, generated_children, learned_writes, own_objects
from fakekube.checker.reaction import Copy, Element, ElementKind, Reaction, children_of, elements_of
from fakekube.checker.rule import NotExercised, Rule, Verdict
from fakekube.checker.rules.initial_events import require_lists
from fakekube.checker.rules.retries import judge_duplicates
from fakekube.checker.sample import new_token
from fakekube.checker.spell import ClientEnded, HotLoop
from fakekube.checker.trace import WRITES

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.powers.exchange import Exchange

__all__ = ["RULES"]

_SIEVE = "Sieve (sieve-project/sieve)"


def lease_seconds(spell: Spell) -> float:
    """Returns how many seconds a restarted client may wait until the lease of its previous process has expired."""
    for call in spell.calm.spell.trace.since():
        if call.collection == LEASES and call.is_write and isinstance(call.body, dict):
            return 2.5 * float((call.body.get("spec") or {}).get("leaseDurationSeconds") or 0)
    return 0.0


class StaleRestart(Rule):
    """The client restarts and sees the cluster as it was before a copy was created."""

    id = "W16"
    provocation = "started again on a list of before a copy was made"
    obligation = "after a restart a list may be older than the state that the client saw before: delete nothing because of it"
    advice = "read from storage (no resourceVersion) before a delete, and delete with preconditions"
    source = f"kubernetes PR #83520; KEP-5647; {_SIEVE}: stale state"
    legality = "B"
    lasts = 15.0

    #: How many seconds the client sees the old state.
    SECONDS = 4.0

    def provoke(self, spell: Spell) -> None:
        resources = self.stale_resources(spell)
        spell.require_restartable()
        before = spell.advance_revisions(15)
        spell.advance_revisions(15)
        subject = spell.stimulate()
        spell.await_reaction(subject)
        spell.memory["copy"] = subject
        spell.memory["children"] = {
            child["metadata"]["uid"]: (one, child["metadata"]["name"])
            for one in spell.calm.reaction.children
            for child in children_of(spell.cluster, subject, one)
        }
        spell.kill_client()
        require_lists(spell)  # initial events are never stale
        newest = spell.advance_revisions(1)
        faults = []
        for one in resources:
            old = spell.faults.on("list,get,watch", one).stale(newest - before, label="an old view")
            faults += [old, spell.faults.on("watch", one).silence(label="an old view")]
        spell.provoke_now()
        spell.start_client()
        spell.wait(self.SECONDS + lease_seconds(spell))
        for fault in faults:
            fault.remove()
        spell.faults.on("watch").cut(label="the view is new again").remove()

    def stale_resources(self, spell: Spell) -> list[str]:
        """Returns the resources whose old state the client sees: those of the sample. Raises NotExercised if there are none."""
        if not spell.calm.reaction.children:
            raise NotExercised("the client creates no children that it could delete by mistake")
        return sorted({resource for copy in spell.copies for resource in copy.resources})

    def broken(self, spell: Spell) -> Verdict | None:
        children = spell.memory.get("children", {})
        names = {name for _, name in children.values()}
        deleted = [
            call
            for call in spell.trace.since(spell.provoked_at)
            if call.verb == "delete" and call.succeeded and call.name in names
        ]
        if deleted:
            return Verdict.failed(
                f"deleted {deleted[0].collection}/{deleted[0].name} because of an old list", *spell.excerpt(deleted)
            )
        return None


class StaleChildren(StaleRestart):
    """The client restarts and sees its children as they were before it created the last ones."""

    id = "S1"
    provocation = "started again on a list of before its children were made"
    obligation = "after a restart the cache may lack objects that the client has created: look before creating them again"
    advice = "read from storage before a create with generateName, or derive names from the owner"

    def stale_resources(self, spell: Spell) -> list[str]:
        found = sorted(generated_children(spell))
        if not found:
            raise NotExercised("the client creates no children with generated names")
        return found

    def broken(self, spell: Spell) -> Verdict | None:
        return judge_duplicates(spell)


class Death(Rule):
    """The client is killed after each of its writes for a copy, and restarted."""

    id = "S2"
    provocation = "killed between two of its writes, and started again"
    obligation = "a client finishes interrupted work after a restart, and does nothing twice"
    advice = "derive the remaining work from the cluster's state; write the completion mark last"
    source = f"{_SIEVE}: intermediate state"
    legality = "A"
    lasts = 25.0

    #: The largest number of writes after which the client is killed.
    PLACES = 5

    def provoke(self, spell: Spell) -> None:
        count = len(learned_writes(spell))
        spell.require_restartable()
        if count < 2:
            raise NotExercised("the client's reaction has fewer than two writes")
        places = range(1, count)
        if len(places) > self.PLACES:
            places = range(1, self.PLACES + 1)
        for place in places:
            if not self._die(spell, place) or self.broken(spell):
                return

    @staticmethod
    def _die(spell: Spell, place: int) -> bool:
        """Kills the client just before a write for a fresh copy, after `place` other writes, and restarts it; returns whether it
        completes its reaction."""
        killed = threading.Event()
        counting = threading.Lock()
        done: list[int] = []
        token = new_token(spell.random)

        def count(exchange: Exchange) -> None:
            named = exchange.path + exchange.raw_body.decode(errors="replace")
            if killed.is_set() or token not in named:
                return
            with counting:
                done.append(exchange.number)
                if len(done) > place and not killed.is_set():
                    spell.kill_client()
                    killed.set()

        fault = spell.faults.on("create,update,patch,delete").intercept(count, label="killed")
        subject = spell.stimulate(token=token)
        spell.await_until(killed.is_set, spell.patience)
        fault.remove()
        if not killed.is_set():
            return True
        spell.start_client()
        return spell.await_reaction(subject, lambda since: spell.patience(since) + lease_seconds(spell))

    def broken(self, spell: Spell) -> Verdict | None:
        return judge_duplicates(spell)


class LostChild(Rule):
    """A child is deleted while the client is disconnected, and the history is compacted."""

    id = "S3"
    provocation = "a child is deleted while the client is disconnected, and the events are compacted"
    obligation = "act on the present state, not on events: the client may miss any event"
    advice = "compare desired and present state in each reconcile, and reconcile all objects after a list"
    source = f"{_SIEVE}: unobserved state; client-go reflector (Replace)"
    lasts = 12.0

    def provoke(self, spell: Spell) -> None:
        subject = spell.copies[0]
        resources = [one for one in spell.calm.reaction.children if one != "events"]
        if not resources:
            raise NotExercised("the client creates no children")
        mended = [one for one in resources if self._makes_again(spell, subject, one)]
        if not mended:
            raise NotExercised("the client does not recreate deleted children")
        spell.await_all()
        with spell.disconnected():
            for one in mended:
                self._delete_children(spell, subject, one)
            spell.compact()

    def _makes_again(self, spell: Spell, subject: Copy, resource: str) -> bool:
        """Returns whether the client recreates children whose deletion it sees."""
        if not self._delete_children(spell, subject, resource):
            return False
        if not spell.await_reaction(subject, 6.0 + 4 * spell.calm.reaction_seconds):
            return False
        if resource in spell.calm.streams.values():
            await_told(spell, resource, children_of(spell.cluster, subject, resource))
        return True

    @staticmethod
    def _delete_children(spell: Spell, subject: Copy, resource: str) -> int:
        children = children_of(spell.cluster, subject, resource)
        for child in children:
            metadata = child["metadata"]
            spell.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)
        return len(children)


class MissedDeletion(Rule):
    """A copy is deleted while the client is disconnected, and the history is compacted."""

    id = "S3"
    provocation = "an object is deleted while the client is disconnected, and the events are compacted"
    obligation = LostChild.obligation
    advice = LostChild.advice
    source = LostChild.source
    lasts = 10.0

    def provoke(self, spell: Spell) -> None:
        if not spell.calm.vanishing and not spell.calm.holds:
            raise NotExercised("the client does not clean up when a copy is deleted")
        subject = spell.copies[0]
        with spell.disconnected():
            spell.delete(subject)
            spell.compact()
        spell.memory["gone"] = spell.await_until(lambda: not self._left(spell, subject), spell.patience)
        spell.memory["left"] = self._left(spell, subject)

    @staticmethod
    def _left(spell: Spell, subject: Copy) -> list[str]:
        left = [f"{resource}/{obj['metadata']['name']}" for resource, obj in own_objects(spell, subject)]
        for resource in spell.calm.vanishing:
            left += [f"{resource}/{child['metadata']['name']}" for child in children_of(spell.cluster, subject, resource)]
        return left

    def judge(self, spell: Spell) -> Verdict:
        if not (spell.ended or spell.loop) and spell.memory.get("gone") is False:
            shown = ", ".join(spell.memory["left"][:3])
            return Verdict.failed(f"not cleaned up after the deletion of the copy: {shown}", *spell.excerpt(), by_time=True)
        return super().judge(spell)


class MissedChange(Rule):
    """A copy is changed while the client is disconnected, and the history is compacted."""

    id = "S3"
    provocation = "an object is changed while the client is disconnected, and the events are compacted"
    obligation = LostChild.obligation
    advice = LostChild.advice
    source = LostChild.source
    lasts = 10.0

    def provoke(self, spell: Spell) -> None:
        spell.memory["reaction"] = self._learn(spell)
        spell.memory["mark"] = spell.trace.mark()
        with spell.disconnected():
            self._alter(spell, spell.copies[0])
            spell.compact()
        spell.await_until(lambda: not self._missing(spell), spell.patience)

    @classmethod
    def _learn(cls, spell: Spell) -> Reaction:
        """Returns the writes of the client after it sees changes of copies. Raises NotExercised if there are none."""
        copies = (spell.copies[0], spell.stimulate())
        spell.await_all()
        mark = spell.trace.mark()
        try:
            for copy in copies:
                cls._alter(spell, copy)
            spell.wait(1.0 + spell.bench.quiet + 4 * spell.calm.reaction_seconds)
        except (ClientEnded, HotLoop):
            raise NotExercised("the client ends or loops after a change of a string in a copy") from None
        sent = Reaction.common(*(elements_of(spell.cluster, copy, spell.trace.since(mark)) for copy in copies))
        writes = {
            one: count for one, count in sent.elements.items() if one.kind is ElementKind.REQUEST and one.detail[0] in WRITES
        }
        if not writes:
            raise NotExercised("the client writes nothing when a copy is changed")
        return Reaction(writes)

    @staticmethod
    def _alter(spell: Spell, copy: Copy) -> None:
        if not spell.alter(copy):
            raise NotExercised("the sample has no string that can be changed")

    @staticmethod
    def _missing(spell: Spell) -> list[Element]:
        reaction: Reaction = spell.memory["reaction"]
        return reaction.missing(spell.cluster, spell.copies[0], spell.trace.since(spell.memory["mark"]))

    def judge_trace(self, spell: Spell) -> Verdict:
        missing = self._missing(spell)
        if not missing:
            return Verdict.passed()
        name = spell.copies[0].names()[0]
        text = f"no reaction to the change of {name}: before, the client {missing[0]}"
        return Verdict.failed(text, *spell.excerpt(), by_time=True)


RULES = (StaleRestart, StaleChildren, Death, LostChild, MissedDeletion, MissedChange)

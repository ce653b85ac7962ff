"""The calm run: finds out what the client does on a cluster without faults.

It starts the client, creates two copies of the sample, and deletes them. The client of the calm run continues to run until the
end of the check as a control for all other runs: it shows which requests an idle client sends, and whether it ends by itself.

Invariant: only an effect that both copies have is part of the reaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakekube.checker.reaction import Copy, Reaction, children_of, elements_of
from fakekube.checker.rule import NotExercised
from fakekube.checker.spell import Spell
from fakekube.checker.telling import tells
from fakekube.checker.trace import StreamKey

if TYPE_CHECKING:
    from fakekube.checker.bench import Bench

__all__ = ["Calm", "CalmRunFailed", "learn"]

#: The longest time to wait until a client is quiet, in seconds.
_LONGEST = 15.0
#: Seconds after which the client has finished its reaction to the copy that is not deleted.
_AFTER_CONTROL = 3.0
#: How many times `quiet` the first request of a reaction may take.
_FIRST_SIGN = 3


class CalmRunFailed(Exception):
    """The client sent no request, or did not finish its calm run."""


@dataclass(slots=True)
class Calm:
    """The result of the calm run: what the client does without faults."""

    spell: Spell
    """The calm run itself, whose client still runs."""
    agents: Sequence[str]
    """The User-Agents of the client."""
    streams: Mapping[StreamKey, str]
    """The streams that the client watches, with their resources."""
    told: Mapping[StreamKey, frozenset[str]]
    """The streams that deliver objects of the copies, with the resources of these objects."""
    reaction: Reaction
    """The reaction to the creation of a copy."""
    deletion: Reaction
    """The reaction to the deletion of a copy: the requests that the client sends."""
    vanishing: Mapping[str, int]
    """How many children of each resource are deleted with a copy."""
    holds: bool
    """Whether the client adds a finalizer to objects of the sample."""
    start_seconds: float
    """Seconds from the start to the first request."""
    reaction_seconds: float
    """Seconds from the creation of a copy to the last request of the reaction."""
    control: Copy
    """A copy that is not deleted. It shows how many children the client creates in the long run, because it is older than all
    copies of
    other runs."""
    idle_from: float
    """When the client became idle, in seconds of the spell."""

    @property
    def agent(self) -> str:
        return self.agents[0] if self.agents else ""

    def usual_children(self, resource: str) -> int:
        """Returns how many objects of a resource the client creates for a copy: in its reaction, or until now for `control`."""
        return max(self.reaction.children.get(resource, 0), len(children_of(self.spell.cluster, self.control, resource)))


def learn(bench: Bench) -> Calm:
    """Performs the calm run. Raises CalmRunFailed."""
    spell = Spell(bench, None)
    try:
        return _learn(spell)
    except BaseException:
        spell.close()
        raise


def _learn(spell: Spell) -> Calm:
    bench = spell.bench
    try:
        spell.open()
        spell.start_client()
        if not len(spell.trace.since()):
            raise CalmRunFailed(f"the client sent no request within {bench.start_patience:.0f} s{_printed(spell)}")
        start_seconds = spell.trace.since()[0].at - spell.started_at
        _await_quiet(spell, spell.trace.mark())
        if not bench.sample.stimuli:
            bench.sample = bench.default_sample(spell)
            spell.load_prerequisites(bench.sample.prerequisites)
        copies = (spell.stimulate(), spell.stimulate())
        reaction_seconds = _await_reactions(spell, copies)
        reaction = Reaction.common(*(elements_of(spell.cluster, copy, spell.trace.since(copy.mark)) for copy in copies))
        told = _told(spell, copies)
        streams = {call.stream: call.collection for call in spell.trace if call.is_watch}
        holds = any(element.detail[:2] == ("metadata", "finalizers") for element in reaction.elements)
        deletion, vanishing = _observe_deletion(spell, copies, reaction)
        control = spell.stimulate()
    except NotExercised as problem:
        raise CalmRunFailed(str(problem)) from None
    except Exception as problem:
        if spell.ended:
            raise CalmRunFailed(spell.ended) from None
        raise problem
    agents = list(dict.fromkeys(call.exchange.agent for call in spell.trace))
    idle_from = spell.now + _AFTER_CONTROL + 3 * reaction_seconds
    learned = (streams, told, reaction, deletion, vanishing, holds, start_seconds, reaction_seconds)
    return Calm(spell, agents, *learned, control, idle_from)


def _printed(spell: Spell) -> str:
    output = spell.process.output() if spell.process is not None else ""
    return f"; it printed: …{' '.join(output[-300:].split())}" if output else ""


def _await_quiet(spell: Spell, mark: int, tokens: Sequence[str] = ()) -> float:
    """Waits until the client sends no more requests that contain one of the tokens; without tokens, no requests at all.

    Returns when the last such request ended, in seconds of the spell, or 0.
    """
    begun = spell.now

    def last() -> float:
        calls = [call for call in spell.trace.since(mark) if not call.is_watch]
        named = [call for call in calls if not tokens or any(call.mentions(token) for token in tokens)]
        return max((call.end or spell.now for call in named), default=0.0)

    def is_quiet() -> bool:
        latest = last()
        return spell.now - max(latest, begun) >= spell.bench.quiet * (_FIRST_SIGN if tokens and not latest else 1)

    spell.await_until(is_quiet, max(_LONGEST, spell.bench.seconds))
    return last()


def _await_reactions(spell: Spell, copies: Sequence[Copy]) -> float:
    """Waits until the client has reacted to copies; returns how many seconds it took."""
    last = _await_quiet(spell, copies[0].mark, [copy.token for copy in copies])
    spell.bench.busiest = spell.trace.count_since(copies[0].mark)
    return max(last - copies[-1].created_at, 0.0)


def _told(spell: Spell, copies: Sequence[Copy]) -> dict[StreamKey, frozenset[str]]:
    """Returns the streams that delivered objects of all copies, with the resources of these objects."""
    found: dict[StreamKey, frozenset[str]] = {}
    for key, stream in spell.trace.streams().items():
        resources = frozenset(
            resource
            for resource in {name for copy in copies for name in copy.resources}
            if stream.collection == resource
            and all(
                tells(stream, copy, obj)
                for copy in copies
                for name, obj in zip(copy.resources, copy.objects, strict=True)
                if name == resource
            )
        )
        if resources:
            found[key] = resources
    return found


def _observe_deletion(spell: Spell, copies: Sequence[Copy], reaction: Reaction) -> tuple[Reaction, dict[str, int]]:
    """Deletes the copies; returns the requests that the client sends, and how many children are deleted with each copy."""

    def children(copy: Copy) -> dict[str, int]:
        return {resource: len(children_of(spell.cluster, copy, resource)) for resource in reaction.children}

    before = [children(copy) for copy in copies]
    mark = spell.trace.mark()
    for copy in copies:
        spell.delete(copy)
    _await_quiet(spell, mark, [copy.token for copy in copies])
    sent = Reaction.common(*(elements_of(spell.cluster, copy, spell.trace.since(mark)) for copy in copies))
    after = [children(copy) for copy in copies]
    vanished = {one: min(a[one] - b[one] for a, b in zip(before, after, strict=True)) for one in reaction.children}
    return sent, {one: count for one, count in vanished.items() if count > 0}

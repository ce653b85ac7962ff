"""The writes of a client: those that the baseline run has shown, and those among the calls of a run.

Invariant: a rule applies only to behavior that the baseline run has shown; `require_writes` raises `NotExercised` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fakekube.checker.reaction import Copy, Effect, EffectKind, is_event
from fakekube.checker.rule import NotExercised
from fakekube.checker.trace import LEASES

if TYPE_CHECKING:
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Trial

__all__ = [
    "generated_children",
    "is_apply",
    "learned_writes",
    "named_children",
    "names_of_children",
    "require_writes",
    "writes_of",
]

_WRITES = ("create", "update", "patch", "delete")


def learned_writes(trial: Trial, *verbs: str) -> list[tuple[str, str]]:
    """Returns (verb, resource) of the writes that are part of the reaction to a copy, in the order in which the client sent
    them; without those of Events."""
    known = {
        (effect.detail[0], effect.resource)
        for effect in trial.baseline.reaction.effects
        if effect.kind is EffectKind.REQUEST and effect.detail[0] in (verbs or _WRITES) and not is_event(effect.resource)
    }
    order = {(call.verb, call.resource): call.number for call in reversed(trial.baseline.trial.trace.since())}
    return sorted(known, key=lambda pair: order.get(pair, 0))


def require_writes(trial: Trial, *verbs: str) -> list[tuple[str, str]]:
    """Returns `learned_writes`. Raises NotExercised if there are none."""
    found = learned_writes(trial, *verbs)
    if not found:
        raise NotExercised(f"the client's reaction has no {' or '.join(verbs) or 'write'}")
    return found


def generated_children(trial: Trial) -> dict[str, int]:
    """Returns how many children with generated names the client creates for a copy, by resource."""
    return _children(trial, lambda effect: not effect.has_name)


def named_children(trial: Trial) -> dict[str, int]:
    """Returns how many children with fixed names the client creates for a copy, by resource."""
    return _children(trial, lambda effect: effect.has_name)


def names_of_children(trial: Trial, copy: Copy) -> set[tuple[str, str]]:
    """Returns (resource, name) of the children with fixed names that the client creates for a copy."""
    effects = trial.baseline.reaction.effects
    return {(one.resource, one.name_for(copy)) for one in effects if one.kind is EffectKind.CHILD and one.has_name}


def _children(trial: Trial, wanted: Callable[[Effect], bool]) -> dict[str, int]:
    found: dict[str, int] = {}
    for effect, count in trial.baseline.reaction.effects.items():
        if effect.kind is EffectKind.CHILD and wanted(effect):
            found[effect.resource] = found.get(effect.resource, 0) + count
    return found


def writes_of(calls: Iterable[Call]) -> list[Call]:
    """Returns the writes among calls, without those of events, reviews and leases."""
    return [
        call
        for call in calls
        if call.is_write
        and not is_event(call.collection)
        and not call.collection.partition(".")[0].endswith("reviews")
        and call.collection != LEASES
    ]


def is_apply(call: Call) -> bool:
    """Returns whether a call is a server-side apply."""
    return call.verb == "patch" and "apply-patch" in call.exchange.content_type

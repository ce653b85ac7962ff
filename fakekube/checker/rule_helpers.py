"""Helpers of rules: what the client wrote in the baseline run, waiting for its watches, and changes of objects in the cluster.

Invariant: a rule applies only to behavior that the baseline run has shown; otherwise it raises `NotExercised`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fakekube.checker.client_run import ClientEnded, HotLoop
from fakekube.checker.reaction import Copy, EffectKind, children_of
from fakekube.checker.rule import NotExercised
from fakekube.checker.trace import LEASES
from fakekube.client import ApiError

if TYPE_CHECKING:
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Trial

__all__ = [
    "EDITOR",
    "SHORT",
    "await_delivery",
    "await_long_watches",
    "await_requests",
    "delete_children",
    "drop_finalizers",
    "edited",
    "generated_children",
    "is_apply",
    "learned_writes",
    "named_children",
    "own_objects",
    "remove",
    "require_resumption",
    "require_writes",
    "writes_of",
]

Object = dict[str, Any]

#: The annotation that the simulated other editor writes.
EDITOR = "check.fakekube.dev/editor"

_WRITES = ("create", "update", "patch", "delete")


def learned_writes(trial: Trial, *verbs: str) -> list[tuple[str, str]]:
    """Returns (verb, resource) of the writes that are part of the reaction to a copy, in the order in which the client sent
    them."""
    known = {
        (effect.detail[0], effect.resource)
        for effect in trial.baseline.reaction.effects
        if effect.kind is EffectKind.REQUEST and effect.detail[0] in (verbs or _WRITES)
    }
    order = {(call.verb, call.resource): call.number for call in reversed(trial.baseline.trial.trace.since())}
    return sorted(known, key=lambda pair: order.get(pair, 0))


def require_writes(trial: Trial, *verbs: str) -> list[tuple[str, str]]:
    """Returns `learned_writes`. Raises NotExercised if there are none."""
    found = learned_writes(trial, *verbs)
    if not found:
        raise NotExercised(f"the client's reaction has no {' or '.join(verbs) or 'write'}")
    return found


def require_resumption(trial: Trial) -> None:
    """Ends the watches normally and waits until the client has opened them again.

    A client that cannot do this is judged by W5, and not by the rule that calls this function.

    Raises NotExercised if the client does not open them again.
    """
    try:
        ended = trial.end_watches()
        if trial.await_until(lambda: _are_resumed(trial, ended), trial.reaction_timeout):
            return
    except (ClientEnded, HotLoop):
        pass
    raise NotExercised("the client does not resume a watch that ended normally")


def _are_resumed(trial: Trial, ended: Iterable[Call]) -> bool:
    opened = {call.stream: call.number for call in trial.trace.open_watches()}
    return all(opened.get(one.stream, 0) > one.number for one in ended)


def await_requests(trial: Trial, ended: Iterable[Call]) -> list[Call]:
    """Waits until the client sends requests for the streams of ended watches; returns these requests."""
    last = {call.stream: call.number for call in ended}

    def found() -> list[Call]:
        streams = trial.streams_since().items()
        return [call for key, stream in streams for call in stream.calls if call.number > last.get(key, 0)]

    trial.await_until(lambda: last.keys() <= {call.stream for call in found()}, trial.reaction_timeout)
    return found()


def await_long_watches(trial: Trial) -> None:
    """Waits until all watches are open for some time: after the end of a short watch many clients list."""
    trial.await_until(lambda: all(trial.now - call.at > SHORT for call in trial.require_watch()), 4 * SHORT)


#: A watch is short below so many seconds.
SHORT = 1.2


def await_delivery(trial: Trial, resource: str, objects: Iterable[Object]) -> None:
    """Waits until the client's watches of a resource have delivered objects in their present state, and 0.3 s for its
    reaction."""
    newest = max((int(obj["metadata"]["resourceVersion"]) for obj in objects), default=0)

    def delivered() -> bool:
        calls = [call for call in trial.trace.since() if call.collection == resource and call.is_watch]
        return any(call.delivered() >= newest for call in calls)

    trial.await_until(delivered, 5.0)
    trial.wait(0.3)


def generated_children(trial: Trial) -> dict[str, int]:
    """Returns how many children with generated names the client creates for a copy, by resource."""
    return _children(trial, lambda name: name == "*")


def named_children(trial: Trial) -> dict[str, int]:
    """Returns how many children with fixed names the client creates for a copy, by resource."""
    return _children(trial, lambda name: name != "*")


def _children(trial: Trial, wanted: Callable[[str], bool]) -> dict[str, int]:
    found: dict[str, int] = {}
    for effect, count in trial.baseline.reaction.effects.items():
        if effect.kind is EffectKind.CHILD and wanted(effect.name) and effect.resource != "events":
            found[effect.resource] = found.get(effect.resource, 0) + count
    return found


def writes_of(calls: Iterable[Call], *, leases: bool = False) -> list[Call]:
    """Returns the writes among calls, without those of events and reviews, and without those of leases unless `leases`."""
    return [
        call
        for call in calls
        if call.is_write
        and not call.collection.startswith("events")
        and not call.collection.partition(".")[0].endswith("reviews")
        and (leases or call.collection != LEASES)
    ]


def own_objects(trial: Trial, copy: Copy) -> list[tuple[str, Object]]:
    """Returns the present state of the objects of a copy, with their resources; deleted objects are left out."""
    found = []
    for resource, obj in zip(copy.resources, copy.objects, strict=True):
        metadata = obj["metadata"]
        try:
            found.append((resource, trial.cluster.get(resource, metadata["name"], namespace=metadata.get("namespace"))))
        except ApiError as error:
            if error.code != 404:
                raise
    return found


def is_apply(call: Call) -> bool:
    """Returns whether a call is a server-side apply."""
    return call.verb == "patch" and "apply-patch" in call.exchange.content_type


def edited(obj: Object, value: str) -> Object:
    """Sets the annotation of another editor in an object, and returns the object."""
    annotations = obj.setdefault("metadata", {}).setdefault("annotations", {})
    annotations[EDITOR] = value
    return obj


def drop_finalizers(trial: Trial, resource: str, obj: Object) -> None:
    """Removes all finalizers of an object; does nothing if the object does not exist."""
    metadata = obj["metadata"]
    try:
        trial.cluster.patch(resource, metadata["name"], {"metadata": {"finalizers": None}}, namespace=metadata.get("namespace"))
    except ApiError as error:
        if error.code != 404:
            raise


def remove(trial: Trial, resource: str, obj: Object) -> None:
    """Deletes an object immediately, together with its finalizers. Raises ApiError."""
    metadata = obj["metadata"]
    drop_finalizers(trial, resource, obj)
    trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)


def delete_children(trial: Trial, copy: Copy, resource: str, **options: Any) -> int:
    """Deletes the children of a resource that the client has created for a copy, and returns their number.

    `options`: the DeleteOptions.
    """
    children = children_of(trial.cluster, copy, resource)
    for child in children:
        metadata = child["metadata"]
        trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), **options)
    return len(children)

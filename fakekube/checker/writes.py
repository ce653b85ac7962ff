"""The writes of a client, those that the baseline run has shown and those of a run; and the writes of other clients meanwhile.

What other clients change are the objects of a copy and its children, while the client runs.

Invariant: a rule applies only to behavior that the baseline run has shown; `require_writes` raises `NotExercised` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from fakekube.checker.provocations import LEADER_CHANGED
from fakekube.checker.reaction import Copy, Effect, EffectKind, children_of, is_event
from fakekube.checker.sample import new_token
from fakekube.checker.trace import LEASES, mentions
from fakekube.checker.verdict import NotExercised
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Reaction
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault


_WRITES = ("create", "update", "patch", "delete")
_CHANGES = ("update", "patch")


def learned_writes(baseline: Baseline, *verbs: str) -> list[tuple[str, str]]:
    """Returns (verb, resource) of the writes that are part of the reaction to a copy, in the order in which the client sent
    them; without those of Events."""
    known = {
        (effect.detail[0], effect.resource)
        for effect in baseline.reaction.effects
        if effect.kind is EffectKind.REQUEST and effect.detail[0] in (verbs or _WRITES) and not is_event(effect.resource)
    }
    order = {(call.verb, call.resource): call.number for call in reversed(baseline.trial.trace.since())}
    return sorted(known, key=lambda pair: order.get(pair, 0))


def refusable_writes(baseline: Baseline, *verbs: str) -> list[tuple[str, str]]:
    """Returns the `learned_writes` that a provocation may refuse or hold up: not those of leases, so that a leader stays one."""
    return [pair for pair in learned_writes(baseline, *verbs) if pair[1] != LEASES]


def require_writes(baseline: Baseline, *verbs: str) -> list[tuple[str, str]]:
    """Returns `learned_writes`. Raises NotExercised if there are none."""
    found = learned_writes(baseline, *verbs)
    if not found:
        raise NotExercised(f"the client's reaction has no {' or '.join(verbs) or 'write'}")
    return found


def require_prompt_writes(baseline: Baseline) -> None:
    """Raises NotExercised if there are no `learned_writes`, or if the client only lists, and seldom: each of several changes
    would wait for its next list."""
    require_writes(baseline)
    seconds = baseline.poll_seconds()
    if seconds > _SELDOM:
        raise NotExercised(f"the client lists only every {seconds:.0f} s")


#: The longest time between two lists of a client that only lists, in seconds, for rules that change an object several times.
_SELDOM = 4.0


def require_copied_values(baseline: Baseline) -> None:
    """Raises NotExercised if a run has shown that the client follows no change of a value of a copy."""
    if baseline.uncopied:
        raise NotExercised(baseline.uncopied)


def creating_writes(baseline: Baseline) -> list[tuple[str, str]]:
    """Returns (verb, resource) of the writes that create children: POST, or an apply of what does not exist."""
    made = {
        (call.verb, call.resource)
        for call in baseline.trial.trace.since()
        if call.status == 201 and (call.verb == "create" or is_apply(call)) and "/" not in call.resource
    }
    known = learned_writes(baseline, "create")
    applied = [pair for pair in learned_writes(baseline, "patch") if pair in made and pair[1] in baseline.reaction.children]
    return [pair for pair in known if "/" not in pair[1]] + applied


def generated_children(baseline: Baseline) -> dict[str, int]:
    """Returns how many children with generated names the client creates for a copy, by resource."""
    return _children(baseline, lambda effect: not effect.has_name)


def named_children(baseline: Baseline) -> dict[str, int]:
    """Returns how many children with fixed names the client creates for a copy, by resource."""
    return _children(baseline, lambda effect: effect.has_name)


def names_of_children(baseline: Baseline, copy: Copy) -> set[tuple[str, str]]:
    """Returns (resource, name) of the children with fixed names that the client creates for a copy."""
    effects = baseline.reaction.effects
    return {(one.resource, one.name_for(copy)) for one in effects if one.kind is EffectKind.CHILD and one.has_name}


def handled_children(baseline: Baseline) -> set[str]:
    """Returns the resources of the children that the client also handles for their own sake, whoever owns them: it writes their
    status, as only the controller of a kind does, or makes children of theirs."""
    control, cluster = baseline.control, baseline.trial.cluster
    found = {one for one in baseline.reaction.children if learned_writes_to(baseline, f"{one}/status")}
    uids: dict[str, str] = {}
    owners: set[str] = set()
    for resource in baseline.reaction.children:
        for child in children_of(cluster, control, resource):
            uids[child["metadata"]["uid"]] = resource
            owners.update(owner["uid"] for owner in child["metadata"].get("ownerReferences") or () if owner.get("controller"))
    return found | {uids[uid] for uid in owners if uid in uids}


def is_taken_over(path: Sequence[str]) -> bool:
    """Reports whether a written field belongs to the owner of an object: another client may label and annotate it, write its
    status, and keep it with a finalizer."""
    return path[0] not in ("metadata", "status") or path[:2] == ("metadata", "ownerReferences")


def learned_writes_to(baseline: Baseline, resource: str) -> list[tuple[str, str]]:
    """Returns the `learned_writes` of one resource, such as `deployments.apps/status`."""
    return [pair for pair in learned_writes(baseline) if pair[1] == resource]


def _children(baseline: Baseline, wanted: Callable[[Effect], bool]) -> dict[str, int]:
    found: dict[str, int] = {}
    for effect, count in baseline.reaction.effects.items():
        if effect.kind is EffectKind.CHILD and wanted(effect):
            found[effect.resource] = found.get(effect.resource, 0) + count
    return found


def require_children(baseline: Baseline) -> None:
    """Raises NotExercised if the client creates no objects for a copy."""
    if not baseline.reaction.children:
        raise NotExercised("the client creates no children")


def require_controlled_children(baseline: Baseline) -> None:
    """Raises NotExercised if the client creates no objects for a copy that have a controller reference."""
    require_children(baseline)
    if not baseline.controls_children:
        raise NotExercised("the client's children have no controller reference")


def require_owned_children(baseline: Baseline) -> None:
    """Raises NotExercised if the client creates no objects for a copy that say who their owner is: by a controller reference, or
    by the uid of the copy."""
    require_children(baseline)
    if not (baseline.controls_children or baseline.owns_children):
        raise NotExercised("the client's children do not name their owner by its uid")


def require_generated_children(baseline: Baseline) -> None:
    """Raises NotExercised if the client creates no objects with generated names for a copy."""
    if not generated_children(baseline):
        raise NotExercised("the client creates no children with generated names")


def require_named_children(baseline: Baseline) -> None:
    """Raises NotExercised if the client creates no objects with fixed names for a copy."""
    if not named_children(baseline):
        raise NotExercised("the client creates no objects with fixed names")


def require_own_writes(baseline: Baseline) -> None:
    """Raises NotExercised if the client writes to no object of the sample."""
    if not baseline.written:
        raise NotExercised("the client does not write to the objects of the sample")


def is_written(baseline: Baseline, copy: Copy, resource: str, obj: Mapping[str, Any]) -> bool:
    """Reports whether the baseline run shows that the client writes to this object of the sample."""
    return _has_effect(
        baseline,
        copy,
        resource,
        obj,
        lambda effect: effect.kind is EffectKind.FIELD or (effect.kind is EffectKind.REQUEST and effect.detail[0] in _CHANGES),
    )


def is_finalized(baseline: Baseline, copy: Copy, resource: str, obj: Mapping[str, Any]) -> bool:
    """Reports whether the baseline run shows that the client adds a finalizer to this object of the sample."""
    return _has_effect(baseline, copy, resource, obj, is_finalizer)


def writes_field(baseline: Baseline, resource: str, path: Sequence[str | int]) -> bool:
    """Reports whether the baseline run shows that the client writes a field of objects of a resource of the sample."""
    detail = tuple(map(str, path))
    return any(
        effect.kind is EffectKind.FIELD and effect.resource == resource and effect.detail == detail
        for effect in baseline.reaction.effects
    )


def is_finalizer(effect: Effect) -> bool:
    """Reports whether an effect is a finalizer that the client adds."""
    return effect.detail[:2] == ("metadata", "finalizers")


def _has_effect(baseline: Baseline, copy: Copy, resource: str, obj: Mapping[str, Any], wanted: Callable[[Effect], bool]) -> bool:
    name = obj["metadata"]["name"]
    return any(
        effect.resource.partition("/")[0] == resource
        and (not effect.has_name or effect.name_for(copy) == name)
        and wanted(effect)
        for effect in baseline.reaction.effects
    )


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
    """Reports whether a call is a server-side apply."""
    return call.verb == "patch" and "apply-patch" in call.exchange.content_type


@contextmanager
def refuse_writes(trial: Trial, writes: Iterable[tuple[str, str]]) -> Iterator[list[Fault]]:
    """Refuses writes, each a verb and a resource, within the context, which has the faults."""
    with ExitStack() as outage:
        yield [
            outage.enter_context(
                trial.faults.on(verb, resource).status(503, message="the server is shutting down", label="write refused")
            )
            for verb, resource in writes
        ]


def require_kinds_of_writes(reaction: Reaction) -> list[Effect]:
    """Returns the writes of a reaction that are for one copy alone, each verb and object once; not those of Events and leases.

    Raises NotExercised if there are no two kinds, of which one may fail and the other one succeed.
    """
    found = [
        one
        for one in reaction.effects
        if one.kind is EffectKind.REQUEST
        and one.detail[0] in _WRITES
        and not (is_event(one.resource) or one.resource == LEASES or one.is_shared)
    ]
    if len(found) < 2:
        raise NotExercised("the client does not send two kinds of writes for an object")
    return found[:_MOST_KINDS]


#: How many kinds of writes are refused apart from each other at most.
_MOST_KINDS = 6


@contextmanager
def refuse_apart(trial: Trial, refused: Mapping[str, Effect]) -> Iterator[set[str]]:
    """Refuses one kind of write for each of several copies, by their tokens, within the context; all others succeed. What names
    several copies is not refused: it is not about one of them.

    The context has the tokens for which a write was refused until now.
    """
    met: set[str] = set()

    def refuse_for(token: str, exchange: Exchange) -> tuple[int, Any] | None:
        if [one for one in refused if mentions(exchange, one)] != [token]:
            return None
        met.add(token)
        return LEADER_CHANGED

    with ExitStack() as refusals:
        for token, effect in refused.items():
            name = effect.name.replace("{}", token) if effect.name and effect.has_name else None
            selector = trial.faults.on(effect.detail[0], effect.resource, name=name)
            refusals.enter_context(selector.intercept(partial(refuse_for, token), label="write refused"))
        yield met


# --- Changes that other clients make to the objects of a copy and to its children, while the client runs -------------


#: The annotation that the simulated other editor writes.
EDITOR = "check.fakekube.dev/editor"
#: A label that another client has set.
OTHERS_LABEL = "check.fakekube.dev/other"
#: The annotation that another client changes so that the object is delivered again.
TOUCHED = "check.fakekube.dev/touched"


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


def own_object(trial: Trial, copy: Copy, number: int) -> Object | None:
    """Returns the present state of one object of a copy; None if it is deleted, or another one has its name."""
    metadata = copy.objects[number]["metadata"]
    found = [one for _, one in own_objects(trial, copy) if one["metadata"]["uid"] == metadata["uid"]]
    return found[0] if found else None


def set_editor(obj: Object, value: str) -> Object:
    """Sets the annotation of another editor in an object, and returns the object."""
    annotations = obj.setdefault("metadata", {}).setdefault("annotations", {})
    annotations[EDITOR] = value
    return obj


def create_owner(trial: Trial, name: str) -> Object:
    """Creates an object of another client, in the default namespace, and returns the owner reference to it."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name}
    made = trial.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    return {**reference, "uid": made["metadata"]["uid"]}


def touch_objects(trial: Trial, copy: Copy) -> list[tuple[str, Object]]:
    """Sets an annotation of another client in the objects of a copy; returns the new states with their resources."""
    found = []
    change = {"metadata": {"annotations": {TOUCHED: new_token(trial.random)}}}
    for resource, obj in own_objects(trial, copy):
        metadata = obj["metadata"]
        with suppress(ApiError):
            found.append((resource, trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))))
    return found


def add_finalizer(trial: Trial, resource: str, obj: Object, name: str) -> None:
    """Adds a finalizer to an object; does nothing if the object does not exist, or is being deleted."""
    metadata = obj["metadata"]
    change = {"metadata": {"finalizers": [*(metadata.get("finalizers") or ()), name]}}
    with suppress(ApiError):
        trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))


def drop_finalizers(trial: Trial, resource: str, obj: Object) -> None:
    """Removes all finalizers of an object; does nothing if the object does not exist."""
    metadata = obj["metadata"]
    try:
        trial.cluster.patch(resource, metadata["name"], {"metadata": {"finalizers": None}}, namespace=metadata.get("namespace"))
    except ApiError as error:
        if error.code != 404:
            raise


def end_grace(trial: Trial, copy: Copy) -> None:
    """Deletes the objects of a deleted copy that wait only for a kubelet: the node of a pod may have none."""
    for resource, obj in own_objects(trial, copy):
        metadata = obj["metadata"]
        if metadata.get("deletionGracePeriodSeconds") and not metadata.get("finalizers"):
            with suppress(ApiError):
                trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)


def delete_with_children(trial: Trial, copy: Copy) -> None:
    """Deletes a copy and waits until the children of the client are gone, too, so that others may have their names.

    Raises NotExercised if the objects or the children stay.
    """
    trial.delete(copy)
    end_grace(trial, copy)
    if not trial.await_until(lambda: not own_objects(trial, copy), trial.reaction_timeout):
        raise NotExercised("the client does not let go of a deleted object")
    resources = trial.baseline.reaction.children
    gone = trial.await_until(
        lambda: not any(children_of(trial.cluster, copy, one) for one in resources), trial.baseline.seconds_to_react(5.0)
    )
    if not gone:  # the client does not use owner references; its children would count for a new object
        raise NotExercised(_LEFTOVERS)
    trial.wait(0.5)  # the client's other watches have told it, too


def require_no_leftovers(baseline: Baseline) -> None:
    """Raises NotExercised if children of the copies that were deleted in the baseline run are still there."""
    cluster = baseline.trial.cluster
    deleted = [copy for copy in baseline.trial.copies if copy.deleted]
    if any(children_of(cluster, copy, resource) for copy in deleted for resource in baseline.reaction.children):
        raise NotExercised(_LEFTOVERS)


#: Why no object is created under the name of a deleted one.
_LEFTOVERS = "the children of a deleted object stay"


def remove(trial: Trial, resource: str, obj: Object) -> None:
    """Deletes an object immediately, together with its finalizers. Raises ApiError."""
    metadata = obj["metadata"]
    drop_finalizers(trial, resource, obj)
    trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)


def delete_children(trial: Trial, copy: Copy, resource: str, spared: Container[str] = ()) -> int:
    """Deletes the children of a resource that the client has created for a copy, at once, and returns their number.

    With a grace period, pods would still exist while they terminate, and count as children.

    Args:
        trial: the run.
        copy: the copy.
        resource: the resource of the children.
        spared: the uids of owners whose children stay.
    """
    children = [
        child
        for child in children_of(trial.cluster, copy, resource)
        if not any(owner["uid"] in spared for owner in child["metadata"].get("ownerReferences") or ())
    ]
    for child in children:
        metadata = child["metadata"]
        try:
            trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)
        except ApiError as error:
            if error.code != 404:  # it may have been the child of another one
                raise
    return len(children)

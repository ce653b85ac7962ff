"""Rules about the identity of objects: uids, objects that are deleted or exist already (C5, C6)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakekube.checker.judges import blame_for_owner
from fakekube.checker.reaction import Copy, children_of, filter_by_owner, written_fields
from fakekube.checker.rule import Rule
from fakekube.checker.sample import new_token
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.writes import (
    creating_writes,
    drop_finalizers,
    generated_children,
    handled_children,
    is_taken_over,
    learned_writes,
    named_children,
    names_of_children,
    own_objects,
    remove,
    require_children,
    require_own_writes,
    writes_of,
)
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from fakekube.base.objects import Object
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange

_GC = "Kubernetes docs, garbage collection and owner references"

#: The label of deletes before which somebody else has created another object under the name.
REPLACED = "created again by somebody else"
#: How many equal refusals of one request are an error loop; a client that reads from a cache needs fewer.
_LOOP = 8


class Recreated(Rule):
    """Another client deletes and recreates a child just before the client deletes it."""

    id = "C5"
    name = "child"
    provocation = "a child is deleted and created again by somebody else, just before the client deletes it"
    obligation = "another object may have the same name by now: delete with preconditions.uid"
    advice = "send DeleteOptions with preconditions.uid of the object that the client has read"
    source = f"{_GC}; meta/v1 Preconditions"
    expected_seconds = 6.0

    replaced: Sequence[tuple[str, Object]] = ()
    """The new objects with their resources."""

    def require(self, baseline: Baseline) -> None:
        _deleted_children(baseline)

    def provoke(self, trial: Trial) -> None:
        resources = _deleted_children(trial.baseline)
        subject = trial.copies[0]
        self.replaced = replace_before_deletes(trial, resources)
        trial.delete(subject)

        def are_deleted() -> bool:
            deletes = [call for call in trial.trace.since(trial.provoked_at) if call.verb == "delete" and call.end is not None]
            return {call.resource for call in deletes}.issuperset(resources) and not own_objects(trial, subject)

        trial.await_until(are_deleted, trial.reaction_timeout)

    def judge(self, trial: Trial) -> Verdict:
        verdict = _judge_replaced(trial, self.replaced)
        if verdict is not None:
            return verdict
        return super().judge(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        return (
            Verdict.success() if self.replaced else Verdict.not_exercised("no object that the client deletes could be replaced")
        )


def replace_before_deletes(trial: Trial, resources: Sequence[str]) -> list[tuple[str, Object]]:
    """Lets somebody else delete an object of each resource just before the client deletes it, and create another one of its name.

    Returns the new objects with their resources, a list that grows as this happens.
    """
    replaced: list[tuple[str, Object]] = []

    def replace(exchange: Exchange) -> None:
        path, resource = exchange.path, _resource_of(exchange)
        try:
            old = trial.cluster.call("GET", path)
            remove(trial, resource, old)
            metadata = {"name": old["metadata"]["name"], "namespace": old["metadata"].get("namespace")}
            new = {**old, "metadata": {key: value for key, value in metadata.items() if value}}
            new.pop("status", None)
            replaced.append((resource, trial.cluster.create(new)))
        except ApiError:
            return

    for resource in resources:
        trial.faults.on("delete", resource).intercept(replace, times=1, label=REPLACED)
    return replaced


def _judge_replaced(trial: Trial, replaced: Sequence[tuple[str, Object]]) -> Verdict | None:
    """Judges whether the client has deleted objects that somebody else had created under the name of what it wanted to delete."""
    for resource, obj in replaced:
        metadata = obj["metadata"]
        try:
            now = trial.cluster.get(resource, metadata["name"], namespace=metadata.get("namespace"))
        except ApiError:
            now = None
        if now is None or now["metadata"]["uid"] != metadata["uid"] or now["metadata"].get("deletionTimestamp"):
            since = trial.trace.since(trial.provoked_at)
            calls = [call for call in since if call.verb == "delete" and call.name == metadata["name"]]
            if any(call.succeeded for call in calls):
                return Verdict.failure(
                    f"deleted {resource}/{metadata['name']}, which is a new object (uid {metadata['uid']})", *trial.excerpt(calls)
                )
    return None


def _resource_of(exchange: Exchange) -> str:
    return f"{exchange.resource}.{exchange.group}" if exchange.group else exchange.resource


def _deleted_children(baseline: Baseline) -> list[str]:
    """Returns the resources of the children that the client itself deletes with a copy. Raises NotExercised."""
    sent = {effect.resource for effect in baseline.deletion.effects if effect.detail[:1] == ("delete",)}
    if not sent:
        raise NotExercised("the client deletes nothing when a copy is deleted")
    return sorted(sent)


class RecreatedOwner(Rule):
    """A copy is deleted and created again while the client is disconnected; the old children still exist.

    If the client deletes one of them, somebody else has just created another object under its name.
    """

    id = "C5"
    name = "owner"
    provocation = "an object is deleted and created again under its name while the client is disconnected"
    steps = ("W8", "R2")
    fast = True
    obligation = "children belong to the owner's uid: children of an older object with the same name belong to that object"
    advice = "compare ownerReferences[].uid with metadata.uid, and adopt only objects without a controller"
    source = _GC
    expected_seconds = 10.0
    converges = False

    #: How many seconds the children of the old object exist besides the new one.
    KEPT = 5.0

    new: Copy
    lacks: Sequence[str] = ()
    """The resources of which the new object has no children."""
    verdict: Verdict | None = None
    replaced: Sequence[tuple[str, Object]] = ()
    """What somebody else has created in place of old children, with their resources."""

    def __init__(self) -> None:
        self.old: dict[str, tuple[str, Object]] = {}
        """The children of the old object with their resources, by uid."""

    def require(self, baseline: Baseline) -> None:
        require_children(baseline)
        if not baseline.owns_children:
            raise NotExercised("the client creates no children that name the object as their owner, by its uid")

    def cluster_arguments(self) -> dict[str, Any]:
        return {"profile": "apiserver"}  # without the garbage collector, so that the old children still exist

    def provoke(self, trial: Trial) -> None:
        resources = sorted(trial.baseline.reaction.children)
        old = trial.copies[0]
        uids = {obj["metadata"]["uid"] for obj in old.objects}
        children = {one: filter_by_owner(children_of(trial.cluster, old, one), uids) for one in resources}
        self.old = {child["metadata"]["uid"]: (one, child) for one, some in children.items() for child in some}
        with trial.disconnect():
            trial.delete(old)
            for resource, obj in own_objects(trial, old):
                drop_finalizers(trial, resource, obj)
            new = trial.stimulate(token=old.token)
            if not generated_children(trial.baseline):  # with the same content the client has no reason to write old children
                trial.alter(new, trial.baseline.change[0] if trial.baseline.change is not None else 0)
            trial.compact()
            self.replaced = replace_before_deletes(trial, resources)
        generated = [one for one in generated_children(trial.baseline) if children.get(one)]
        self.new = new
        self.lacks = []
        trial.await_until(lambda: bool(trial.trace.open_watches()), trial.reaction_timeout)
        trial.wait(self.KEPT)
        self.verdict = self._judge_children(trial)
        if generated:
            self._collect_named(trial, new)
            trial.await_until(lambda: not self._lacking(trial, new, generated), trial.reaction_timeout)
            self.lacks = self._lacking(trial, new, generated)

    def _collect_named(self, trial: Trial, new: Copy) -> None:
        """Deletes old children with fixed names, as the garbage collector would: a client may wait until their names are free."""
        names = names_of_children(trial.baseline, new)
        for resource, child in self.old.values():
            now = [one for one in children_of(trial.cluster, new, resource) if _has_same_uid(one, child)]
            owners = {str(owner.get("uid")) for owner in child["metadata"].get("ownerReferences") or ()}
            if (resource, child["metadata"]["name"]) in names and filter_by_owner(now, owners):
                with suppress(ApiError):
                    remove(trial, resource, child)

    @staticmethod
    def _lacking(trial: Trial, new: Copy, resources: list[str]) -> list[str]:
        uids = {obj["metadata"]["uid"] for obj in new.objects}
        return [one for one in resources if not filter_by_owner(children_of(trial.cluster, new, one), uids)]

    def judge(self, trial: Trial) -> Verdict:
        verdict = self.verdict or self._judge_children(trial) or _judge_replaced(trial, self.replaced)
        if verdict is not None:
            return verdict
        if trial.ended or trial.loop:
            return super().judge(trial)
        lacks = self.lacks
        if lacks:
            dead = {obj["metadata"]["uid"] for obj in trial.copies[0].objects}
            created = [call for call in find_creates(trial, self.new.mark, dead) if call.collection in lacks]
            reason = "it creates them for the deleted one" if created else "it uses the children of the old one"
            return Verdict.failure(
                f"creates no {lacks[0]} for the new {self.new.names()[0]}: {reason}",
                *trial.excerpt(created or None),
                by_time=True,
            )
        return Verdict.success()

    def _judge_children(self, trial: Trial) -> Verdict | None:
        old = self.old.values()
        return next(filter(None, (self._judge_child(trial, resource, child) for resource, child in old)), None)

    def _judge_child(self, trial: Trial, resource: str, child: Object) -> Verdict | None:
        """Judges whether the client has changed a child of the old object; it may delete or adopt it, and go on with what it does
        for the child's own sake."""
        metadata = child["metadata"]
        handled = resource in handled_children(trial.baseline)
        revisions = [
            version.revision
            for version in trial.cluster.history(resource, metadata["name"], metadata.get("namespace"))
            if version.type == "MODIFIED" and version.object["metadata"]["uid"] == metadata["uid"]
        ]
        for call in trial.trace.since(trial.provoked_at):
            if (
                call.verb in ("update", "patch")
                and call.succeeded
                and call.name == metadata["name"]
                and call.exchange.revision in revisions
            ):
                fields = written_fields(trial.cluster, call, metadata["name"])
                if self.new.mark < call.number and (not handled or any(map(is_taken_over, fields))):
                    now = next((one for one in children_of(trial.cluster, self.new, resource) if _has_same_uid(one, child)), None)
                    uids = {obj["metadata"]["uid"] for obj in self.new.objects}
                    if now is None or filter_by_owner([now], uids):
                        continue  # adopted or deleted since
                    text = f"writes {resource}/{metadata['name']}, which belongs to a deleted owner"
                    return blame_for_owner(trial, text, [call])
        return None


def find_creates(trial: Trial, mark: int, uids: AbstractSet[str]) -> list[Call]:
    """Returns the creates since a mark that mention one of some uids, without Events, which may tell of the dead."""
    return [call for call in writes_of(trial.trace.since(mark)) if call.status == 201 and any(map(call.mentions, uids))]


def _has_same_uid(one: Object, other: Object) -> bool:
    return bool(one["metadata"]["uid"] == other["metadata"]["uid"])


class AlreadyGone(Rule):
    """A child is deleted just before the client deletes it."""

    id = "C6"
    name = "gone"
    provocation = "a child is gone just before the client deletes it"
    fast = True
    obligation = "404 for a delete means that the object is already deleted"
    advice = "ignore NotFound when deleting"
    source = "API conventions; client.IgnoreNotFound of controller-runtime"
    expected_seconds = 6.0

    gone: bool | None = None

    def require(self, baseline: Baseline) -> None:
        _deleted_children(baseline)

    def provoke(self, trial: Trial) -> None:
        resources = _deleted_children(trial.baseline)
        subject = trial.copies[0]

        def take_away(exchange: Exchange) -> None:
            try:
                remove(trial, _resource_of(exchange), trial.cluster.call("GET", exchange.path))
            except ApiError:
                return

        for resource in resources:
            trial.faults.on("delete", resource).intercept(take_away, times=2, label="gone already")
        trial.delete(subject)
        self.gone = trial.await_until(lambda: not own_objects(trial, subject), trial.reaction_timeout)
        await_slow_loop(trial, 404)

    def judge(self, trial: Trial) -> Verdict:
        if not (trial.ended or trial.loop) and self.gone is False:
            return Verdict.failure(
                f"{trial.copies[0].names()[0]} still exists: the client did not continue after a delete was answered with 404",
                *trial.excerpt(),
                by_time=True,
            )
        return super().judge(trial)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_loop(trial, 404)


class AlreadyThere(Rule):
    """A child is created just before the client creates it."""

    id = "C6"
    name = "there"
    provocation = "a child is there just before the client creates it"
    fast = True
    obligation = "409 AlreadyExists for a create: read the existing object, and continue"
    advice = "read the object, compare its owner, and treat it as created if the owner is right"
    source = "API conventions"
    expected_seconds = 6.0

    def require(self, baseline: Baseline) -> None:
        if not self._writes(baseline):
            raise NotExercised("the client creates no named objects")

    @staticmethod
    def _writes(baseline: Baseline) -> list[tuple[str, str]]:
        named = named_children(baseline)
        return [pair for pair in creating_writes(baseline) if pair[1] in named]

    def provoke(self, trial: Trial) -> None:
        def create(exchange: Exchange) -> None:
            collection = exchange.path if exchange.verb == "create" else exchange.path.rpartition("/")[0]
            with suppress(ApiError):
                trial.cluster.call("POST", collection, exchange.body)  # the body need not have a kind

        for verb, resource in self._writes(trial.baseline):
            trial.faults.on(verb, resource).intercept(create, times=1, label="there already")
        trial.await_reaction(trial.stimulate())
        await_slow_loop(trial, 409)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_loop(trial, 409)


class VanishedMeanwhile(Rule):
    """An object is deleted just before the client updates it."""

    id = "C6"
    name = "vanished"
    provocation = "an object is gone just before the client updates it"
    fast = True
    obligation = "404 for an update: the object was deleted, and the client stops working on it"
    advice = "drop the key when the object is gone; neither exit nor retry forever"
    source = "API conventions"
    expected_seconds = 6.0

    def require(self, baseline: Baseline) -> None:
        require_own_writes(baseline)

    @staticmethod
    def _pairs(baseline: Baseline) -> list[tuple[str, str]]:
        own = set(baseline.control.resources)
        return [pair for pair in learned_writes(baseline, "update", "patch") if pair[1].partition("/")[0] in own]

    def provoke(self, trial: Trial) -> None:
        for verb, resource in self._pairs(trial.baseline):
            self._remove_before(trial, verb, resource)
        await_slow_loop(trial, 404)

    def __init__(self) -> None:
        self.removed: set[str] = set()
        """The paths of the deleted objects."""

    def _remove_before(self, trial: Trial, verb: str, resource: str) -> None:
        """Creates a copy, and deletes it just before the client writes to it."""
        token, removed = new_token(trial.random), list[str]()
        own = {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in trial.sample.copies(token)}

        def take_away(exchange: Exchange) -> None:
            if not own.isdisjoint({("", exchange.name), (exchange.namespace, exchange.name)}) and not removed:
                removed.append(exchange.path)
                suffix = f"/{exchange.subresource}" if exchange.subresource else ""
                self.removed.add(exchange.path.removesuffix(suffix))
                with suppress(ApiError):
                    remove(trial, _resource_of(exchange), trial.cluster.call("GET", exchange.path.removesuffix(suffix)))

        with trial.faults.on(verb, resource).intercept(take_away, label="deleted"):
            subject = trial.stimulate(token=token)
            subject.judged = False
            trial.await_until(lambda: bool(removed), trial.reaction_timeout)
        subject.deleted = bool(removed)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_loop(trial, 404) or self._created_again(trial)

    def _created_again(self, trial: Trial) -> Verdict | None:
        """Judges whether a write has created the deleted object again: an apply, a PUT, or a create after the 404."""
        for call in trial.trace.since(trial.provoked_at):
            if call.is_write and call.status == 201 and _path_of(call).removesuffix("/status") in self.removed:
                return Verdict.failure(
                    f"{call.verb} {call.path} created the object again, which somebody had deleted", *trial.excerpt([call])
                )
        return None


#: Seconds within which a client repeats a refused write for the first time, in which a slow loop is recognized, and after which a
#: client that has not repeated the write again is in none.
_BEGINS_TO_REPEAT, _LOOPS_WITHIN, _PAUSES_AT_MOST = 2.5, 9.0, 2.5


def await_slow_loop(trial: Trial, code: int) -> None:
    """Waits until a client that repeats a refused write, with a second between, has shown whether it goes on for ever."""
    trial.wait(_BEGINS_TO_REPEAT)

    def is_decided() -> bool:
        recent = trial.now - _PAUSES_AT_MOST * trial.session.slowness()
        repeated = [calls for calls in _refusals(trial, code).values() if len(calls) > 1]
        return all(calls[-1].at < recent for calls in repeated) or any(len(calls) >= _LOOP for calls in repeated)

    trial.await_until(is_decided, _LOOPS_WITHIN)


def _refusals(trial: Trial, code: int) -> dict[tuple[str, str], list[Call]]:
    """Returns the writes since the provocation that were refused with a status code, by verb and path.

    A create that is always refused without a provocation, too, does not count: its namespace does not exist.
    """
    usual: dict[str, set[int | None]] = {}
    for call in trial.baseline.trial.trace.since():
        if call.verb == "create":
            usual.setdefault(call.path, set()).add(call.status)
    found: dict[tuple[str, str], list[Call]] = {}
    for call in writes_of(trial.trace.since(trial.provoked_at)):
        if call.status == code and not (call.verb == "create" and usual.get(call.path) == {code}):
            found.setdefault(_purpose_of(call), []).append(call)
    return found


def _purpose_of(call: Call) -> tuple[str, str]:
    """Returns the verb and the path of a write."""
    return (call.verb, _path_of(call))


def _path_of(call: Call) -> str:
    """Returns the path of a write, with the name of what is created as far as the client chooses it."""
    return f"{call.path}/{call.name}" if call.verb == "create" and call.name else call.path


def judge_loop(trial: Trial, code: int) -> Verdict | None:
    """Judges whether the client repeats a write that is always refused with the same status code."""
    key, refused = max(_refusals(trial, code).items(), key=lambda item: len(item[1]), default=(("", ""), []))
    if len(refused) < _LOOP:
        return None
    return Verdict.failure(
        f"{key[0]} {key[1]} was repeated though it was answered with {code} {len(refused)} times", *trial.excerpt(refused)
    )


RULES = (Recreated, RecreatedOwner, AlreadyGone, AlreadyThere, VanishedMeanwhile)

"""Rules about finalizers, and about objects at the edges of their lives: seen for the first time while they are being deleted,
created again under the same name, or under the name that a child would get (C4, C5)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from fakekube.checker.alterations import changes_of_texts, leaves_to_change
from fakekube.checker.comparison import state_of
from fakekube.checker.judges import blame_for_owner
from fakekube.checker.reaction import (
    Copy,
    EffectKind,
    children_of,
    filter_by_owner,
    has_controller,
    is_time,
    name_of,
    written_fields,
)
from fakekube.checker.rule import Rule
from fakekube.checker.rules.identity import REPLACED, Recreated, RecreatedOwner, find_creates, judge_loop, replace_before_deletes
from fakekube.checker.sample import new_token, release_addresses
from fakekube.checker.verdict import NotExercised, Symptom, Verdict
from fakekube.checker.writes import (
    create_owner,
    delete_with_children,
    drop_finalizers,
    is_taken_over,
    own_object,
    own_objects,
    require_controlled_children,
    require_named_children,
    require_no_leftovers,
    require_own_writes,
    require_owned_children,
    touch_objects,
    writes_field,
    writes_of,
)
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.comparison import State
    from fakekube.checker.reaction import Effect
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial


class Finalizers(Rule):
    """The objects that the client writes to have another finalizer before the client's own."""

    id = "C4"
    name = "kept"
    decisive = True
    provocation = "objects with a finalizer of somebody else"
    fast = True
    obligation = "add and remove only the client's own finalizer, guarded by resourceVersion or a JSON patch test"
    advice = "read, change metadata.finalizers and update with the resourceVersion; retry on conflict"
    source = "Kubernetes docs, finalizers; kubernetes#111643"
    expected_seconds = 8.0

    FINALIZER = "check.fakekube.dev/other"

    copy: Copy
    lost: str = ""
    """What the client did with the finalizer of somebody else; "" if nothing."""

    def require(self, baseline: Baseline) -> None:
        require_own_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        baseline = trial.baseline
        subject = self.copy = trial.stimulate(self._foreign, only=baseline.written)
        trial.await_reaction(subject)
        self._judge_kept(trial, subject, baseline.written, "before its deletion")
        if not baseline.finalized or self.lost:
            return
        before = self._present(trial, subject, baseline.finalized)
        own = {name for _, names in before for name in names} - {self.FINALIZER}
        trial.delete(subject)
        trial.await_until(
            lambda: not any(own & set(names) for _, names in self._present(trial, subject, baseline.finalized)),
            trial.reaction_timeout,
        )
        self._judge_kept(trial, subject, baseline.finalized, "when the client removed its own")
        for resource, obj in own_objects(trial, subject):
            drop_finalizers(trial, resource, obj)

    def _foreign(self, obj: Object) -> None:
        obj["metadata"].setdefault("finalizers", []).insert(0, self.FINALIZER)

    @staticmethod
    def _present(trial: Trial, subject: Copy, positions: Iterable[int]) -> list[tuple[str, Sequence[str]]]:
        """Returns the existing objects at some positions of the sample, with their finalizers."""
        found = []
        for number in sorted(positions):
            obj = own_object(trial, subject, number)
            if obj is not None:
                found.append((f"{subject.resources[number]}/{obj['metadata']['name']}", obj["metadata"].get("finalizers") or ()))
        return found

    def _judge_kept(self, trial: Trial, subject: Copy, positions: Iterable[int], when: str) -> None:
        """Notes which object at these positions has lost the finalizer of somebody else, or is gone although it had one."""
        kept = {name for name, finalizers in self._present(trial, subject, positions) if self.FINALIZER in finalizers}
        for number in sorted(positions):
            name = f"{subject.resources[number]}/{subject.objects[number]['metadata']['name']}"
            if name not in kept and not self.lost:
                self.lost = f"{name} lost the finalizer {self.FINALIZER} of another client {when}"

    def judge(self, trial: Trial) -> Verdict:
        if self.lost:
            calls = [call for call in trial.trace.since(self.copy.mark) if call.is_write]
            return Verdict.failure(self.lost, *trial.excerpt(calls))
        return super().judge(trial)


class AddedFinalizer(Finalizers):
    """Another finalizer is added between the client's read and its write."""

    name = "added"
    decisive = False
    provocation = "somebody else adds a finalizer just before the client adds its own"

    def require(self, baseline: Baseline) -> None:
        if not baseline.finalized:
            raise NotExercised("the client adds no finalizer")

    def provoke(self, trial: Trial) -> None:
        added: set[str] = set()

        def add(obj: Object) -> Object | None:
            metadata = obj["metadata"]
            if metadata["uid"] in added or metadata.get("deletionTimestamp"):
                return None
            added.add(metadata["uid"])
            metadata["finalizers"] = [*(metadata.get("finalizers") or ()), self.FINALIZER]
            return obj

        token = new_token(trial.random)
        copies = trial.sample.copies(token)
        faults = [
            trial.faults.on("update,patch", trial.resource_of(copies[number]), name=copies[number]["metadata"]["name"]).conflict(
                add, label="another finalizer is added"
            )
            for number in trial.baseline.finalized
        ]
        subject = self.copy = trial.stimulate(token=token)
        trial.await_reaction(subject)
        for fault in faults:
            fault.remove()
        met = [number for number in trial.baseline.finalized if subject.objects[number]["metadata"]["uid"] in added]
        if met:
            self._judge_kept(trial, subject, met, "when the client added its own")
        for resource, obj in own_objects(trial, subject):
            metadata = obj["metadata"]
            kept = [name for name in metadata.get("finalizers") or () if name != self.FINALIZER]
            if kept != metadata.get("finalizers", []):
                change = {"metadata": {"finalizers": kept}}
                trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))


class RemovedFinalizer(AddedFinalizer):
    """The other finalizer is removed just before the client removes its own."""

    name = "removed"
    provocation = "the finalizer of somebody else is removed in between"
    fast = False

    def provoke(self, trial: Trial) -> None:
        finalized = trial.baseline.finalized
        subject = self.copy = trial.stimulate(self._foreign, only=finalized)
        trial.await_reaction(subject)

        def drop_foreign(obj: Object) -> Object:
            metadata = obj["metadata"]
            if metadata.get("deletionTimestamp"):
                metadata["finalizers"] = [name for name in metadata.get("finalizers") or () if name != self.FINALIZER]
            return obj

        faults = [
            trial.faults.on("update,patch", subject.resources[number], name=subject.objects[number]["metadata"]["name"]).conflict(
                drop_foreign, label="another finalizer is removed"
            )
            for number in finalized
        ]
        trial.delete(subject)
        if trial.await_until(lambda: not self._present(trial, subject, finalized), trial.reaction_timeout):
            return
        left = ", ".join(name for name, _ in self._present(trial, subject, finalized))
        if any(fault.hits for fault in faults):
            self.lost = f"{left} still exists: the client did not remove its finalizer after a conflict"
        else:
            raise NotExercised("the client did not write to the deleted object")


class FirstSeenDeleting(Rule):
    """The client sees an object for the first time when it is being deleted, and somebody else's finalizer keeps it."""

    id = "C4"
    name = "deleting"
    provocation = "an object is seen for the first time while it is being deleted"
    fast = True
    obligation = Finalizers.obligation
    advice = "look at metadata.deletionTimestamp before anything else; a deleted object accepts no new finalizers"
    source = "Kubernetes docs, finalizers; API conventions"
    steps = ("W8", "R2")
    watches = True
    expected_seconds = 10.0

    FINALIZER = Finalizers.FINALIZER

    copy: Copy | None = None

    def require(self, baseline: Baseline) -> None:
        if not baseline.reaction.effects:
            raise NotExercised("the client does not react to objects")

    def provoke(self, trial: Trial) -> None:
        with trial.disconnect():
            subject = self.copy = trial.stimulate(self._add_finalizer)
            subject.judged = False
            trial.delete(subject)
        trial.await_until(lambda: trial.has_received(subject), trial.reaction_timeout)
        trial.wait(trial.baseline.seconds_to_react(2.0))
        for resource, obj in own_objects(trial, subject):
            drop_finalizers(trial, resource, obj)

    def _add_finalizer(self, obj: Object) -> None:
        obj["metadata"].setdefault("finalizers", []).append(self.FINALIZER)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return self._judge_added(trial) or judge_loop(trial, 422) or judge_loop(trial, 403)

    def _judge_added(self, trial: Trial) -> Verdict | None:
        """Judges whether the client adds its finalizer again although the server refuses it: the object was never without its
        deletionTimestamp."""
        names = self.copy.names() if self.copy is not None else ()
        refused = [
            call
            for call in trial.trace.since(trial.provoked_at)
            if call.is_write and call.status == 422 and call.name in names and _NO_NEW_FINALIZERS in str(call.answer)
        ]
        if len(refused) < _ADDED_AGAIN:
            return None
        return Verdict.failure(
            f"adds a finalizer to {refused[0].name}, which is being deleted: refused {len(refused)} times",
            *trial.excerpt(refused),
        )


#: A part of the refusal of a finalizer, and how many of them show that the client does not look at the deletionTimestamp.
_NO_NEW_FINALIZERS, _ADDED_AGAIN = "no new finalizers can be added if the object is being deleted", 2


class RecreatedObject(Rule):
    """An object is deleted, and another one is created under its name; the client sees both."""

    id = "C5"
    name = "again"
    provocation = "an object is deleted and created again under its name while the client watches"
    fast = True
    obligation = RecreatedOwner.obligation
    advice = "key what the client remembers of an object by its uid, and forget it when the object is deleted"
    source = RecreatedOwner.source
    expected_seconds = 10.0
    converges = False

    old: Copy | None = None
    new: Copy | None = None
    missing: Sequence[str] = ()
    """The missing parts of the reaction to the new object."""

    def require(self, baseline: Baseline) -> None:
        if not baseline.reaction.effects:
            raise NotExercised("the client does not react to objects")
        require_no_leftovers(baseline)

    def provoke(self, trial: Trial) -> None:
        old = self.old = trial.copies[0]
        delete_with_children(trial, old)
        new = self.new = trial.stimulate(token=old.token)
        reacted = trial.await_until(lambda: trial.has_reacted(new), trial.reaction_timeout)
        if not reacted:
            self.missing = [str(effect) for effect in trial.missing_of(new)] or ["receives it"]
        trial.await_until(lambda: not self._find_made_for_dead(trial, new), trial.reaction_timeout)

    def judge(self, trial: Trial) -> Verdict:
        if self.new is None or trial.ended or trial.loop:
            return super().judge(trial)
        name = self.new.names()[0]
        dead = self._judge_dead_owner(trial, self.new)
        if dead is not None:
            return dead
        if self.missing:
            text = f"no full reaction to the new {name}, which was created under the name of a deleted object"
            return Verdict.failure(
                f"{text}: it {self.missing[0]} usually", *trial.excerpt(), by_time=True, symptom=Symptom.NO_REACTION
            )
        return Verdict.success()

    def _judge_dead_owner(self, trial: Trial, new: Copy) -> Verdict | None:
        """Judges whether children that were created after the new object refer to the uid of the old one, and stay."""
        created = self._find_made_for_dead(trial, new)
        if not created:
            return None
        return Verdict.failure(
            f"creates {created[0].collection} for the new {new.names()[0]} with the uid of the deleted object",
            *trial.excerpt(created),
            by_chance=True,
        )

    def _find_made_for_dead(self, trial: Trial, new: Copy) -> list[Call]:
        """Returns the creates for the old object that began after the new one was there, if the client has not created such an
        object for the new one since.

        A client on a busy machine finishes what it had begun: it has not read yet that the old object is deleted.
        """
        assert self.old is not None
        alive = {obj["metadata"]["uid"] for obj in new.objects}
        dead = {obj["metadata"]["uid"] for obj in self.old.objects} - alive
        writes = writes_of(trial.trace.since(new.mark))
        mended = {call.collection: call.number for call in writes if call.succeeded and any(map(call.mentions, alive))}
        return [call for call in find_creates(trial, new.mark, dead) if mended.get(call.collection, -1) < call.number]


class RecreatedCopy(Recreated):
    """Somebody else deletes an object of the sample that the client is about to delete, and creates another one, without labels
    and annotations. The client may delete that later, when it has read it."""

    name = "copy"
    provocation = (
        "an object is deleted and created again by somebody else, just before the client deletes it because of its content"
    )
    fast = True
    expected_seconds = 3.0

    def require(self, baseline: Baseline) -> None:
        if not baseline.deletes_copies():
            raise NotExercised("the client does not delete the object itself")

    def provoke(self, trial: Trial) -> None:
        self.replaced = replace_before_deletes(trial, sorted(set(trial.copies[0].resources)))
        subject = trial.stimulate()
        subject.judged = False
        trial.await_until(lambda: bool(self.replaced) or trial.has_deleted(subject), trial.reaction_timeout)

    def judge(self, trial: Trial) -> Verdict:
        new = {(resource, obj["metadata"]["name"]) for resource, obj in self.replaced}
        for call in trial.trace.since(trial.provoked_at):
            if call.succeeded and REPLACED in call.exchange.faults and (call.collection, call.name) in new:
                text = f"deleted {call.collection}/{call.name}, which is a new object that the client had not read"
                return Verdict.failure(text, *trial.excerpt([call]))
        return Rule.judge(self, trial)


class ForeignChild(Rule):
    """An object that another controller owns already has the name of the child."""

    id = "C5"
    name = "foreign"
    provocation = "an object of another controller already has the name of the child"
    obligation = RecreatedOwner.obligation
    advice = "check that a found child is controlled by the own object before writing to it; report the conflict otherwise"
    source = "API conventions, controllerRef; metav1.IsControlledBy; SetControllerReference of controller-runtime"
    expected_seconds = 8.0

    forbids_deletion: ClassVar[bool] = True
    """Whether the client may not delete the object either."""

    def __init__(self) -> None:
        self.foreign: list[tuple[str, Object]] = []
        """The objects of the other controller with their resources."""
        self._content: dict[str, set[tuple[str, ...]]] = {}
        """The labels and annotations that the client gives its children, by resource."""
        self._claimed = ""
        """The object whose status says that all is well, although another controller owns its child; "" if there is none."""

    def require(self, baseline: Baseline) -> None:
        require_named_children(baseline)
        require_owned_children(baseline)

    def provoke(self, trial: Trial) -> None:
        token = new_token(trial.random)
        self.take_names(trial, token)
        subject = trial.stimulate(token=token)
        subject.judged = False
        trial.await_until(lambda: trial.has_received(subject), trial.reaction_timeout)
        self.observe(trial, [subject])

    def observe(self, trial: Trial, subjects: Sequence[Copy]) -> None:
        """Waits for what the client says of copies whose children have taken names, and does when they are deleted."""
        pattern = trial.copies[0]
        trial.wait(trial.baseline.seconds_to_react(2.0))
        states = [state_of(trial, subject) for subject in subjects]
        claimed = (find_equal_status(trial.baseline, pattern, state_of(trial, pattern), now) for now in states)
        self._claimed = next(filter(None, claimed), "")
        if any(effect.detail[:1] == ("delete",) for effect in trial.baseline.deletion.effects):
            for subject in subjects:
                trial.delete(subject)  # the client deletes its children itself, and must not delete this one
            trial.wait(trial.baseline.seconds_to_react(2.0))

    def takeable(self, trial: Trial) -> Iterator[tuple[Effect, Object]]:
        """Yields the children of the first copy that have names and may belong to another controller, with their effects."""
        pattern = trial.copies[0]
        for effect in trial.baseline.reaction.effects:
            if effect.kind is EffectKind.CHILD and effect.has_name:
                for child in children_of(trial.cluster, pattern, effect.resource):
                    if child["metadata"]["name"] == effect.name_for(pattern) and self._can_belong_to_another(child, pattern):
                        yield effect, child

    def take_names(self, trial: Trial, *tokens: str) -> None:
        """Creates foreign objects under the names that the children of copies with some tokens would have.

        Raises NotExercised if there are none.
        """
        owner, pattern = self._create_owner(trial), trial.copies[0]
        for effect, child in self.takeable(trial):
            for token in tokens:
                self._add_foreign(trial, effect.resource, child, metadata_for(effect, token, owner), (pattern.token, token))
        if not self.foreign:
            raise NotExercised("no object could be created under the name of a child")

    @staticmethod
    def _create_owner(trial: Trial) -> Object | None:
        """Creates the object of which the foreign objects are children, and returns the controller reference to it; None if they
        have no owner."""
        return {**create_owner(trial, "check-another-owner"), "controller": True}

    @staticmethod
    def _can_belong_to_another(child: Object, copy: Copy) -> bool:
        """Reports whether a child of a copy says who its owner is, and is in the namespace of the other owner or in none."""
        says = has_controller(child) or filter_by_owner([child], {obj["metadata"]["uid"] for obj in copy.objects})
        return bool(says) and child["metadata"].get("namespace", "default") == "default"

    def _add_foreign(self, trial: Trial, resource: str, child: Object, metadata: Object, tokens: tuple[str, str]) -> None:
        """Creates a foreign object in the namespace of a child (see `_create`), if the API accepts it."""
        if "namespace" in child["metadata"]:
            metadata = {**metadata, "namespace": child["metadata"]["namespace"]}
        with suppress(ApiError):
            self.foreign.append((resource, self._create(trial, resource, child, metadata, tokens)))

    @staticmethod
    def _find_body(trial: Trial, resource: str, name: str) -> Object | None:
        """Returns what the client has sent to create a child; the child itself has fields that the server sets, and refuses."""
        for call in trial.trace.since():
            if call.is_write and call.status == 201 and call.resource == resource and name_of(call) == name:
                return call.body if isinstance(call.body, dict) else None
        return None

    def _create(self, trial: Trial, resource: str, child: Object, metadata: Object, tokens: tuple[str, str]) -> Object:
        """Creates an object like a child under other metadata, with the token of another copy and other texts: a client
        may compare only some of them. Raises ApiError."""
        sent = self._find_body(trial, resource, child["metadata"]["name"]) or child
        given = sent.get("metadata") or {}
        paths = {("metadata", part, key) for part in ("labels", "annotations") for key in given.get(part) or ()}
        self._content.setdefault(resource, set()).update(paths)
        kept = {"apiVersion": child.get("apiVersion"), "kind": child.get("kind"), **sent}
        bare = {key: value for key, value in kept.items() if key not in ("status", "metadata")}
        new: Object = json.loads(json.dumps(bare).replace(*tokens))
        if new.get("kind") == "Service":
            release_addresses(new.get("spec") or {})
        made = trial.cluster.create({**new, "metadata": metadata})
        for number in range(_MOST_CHANGED):
            changes = changes_of_texts(new, "other")[number : number + 1]
            if not changes:
                break
            with suppress(ApiError):
                made = trial.cluster.patch(resource, metadata["name"], changes[0], namespace=metadata.get("namespace"))
                new = _merge(new, changes[0])
        return made

    def judge(self, trial: Trial) -> Verdict:
        for resource, obj in self.foreign:
            metadata = obj["metadata"]
            calls = [
                call
                for call in trial.trace.since(trial.provoked_at)
                if call.is_write and call.succeeded and (call.collection, call.name) == (resource, metadata["name"])
            ]
            for call in calls:
                written = written_fields(trial.cluster, call, metadata["name"])
                content = self._content.get(resource, set())
                taken = (call.verb == "delete" and self.forbids_deletion) or any(
                    is_taken_over(path) or path in content for path in written
                )
                if taken:
                    text = f"{call.verb} of {resource}/{metadata['name']}, which another controller owns"
                    return blame_for_owner(trial, text, calls)
        return super().judge(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        if not self._claimed:
            return super().judge_trace(trial)
        return Verdict.warning(
            f"writes the same status of {self._claimed} as usual, although another controller owns the object with the name of "
            "its child",
            *trial.excerpt(),
        )


def find_equal_status(baseline: Baseline, copy: Copy, usual: State, now: State) -> str:
    """Returns the resource of an object whose status has all that the client writes into that of another copy; "" for none.

    Numbers, and texts that name the object or repeat what it contains, may be written before anything is made.
    """
    contained = {value for obj in copy.objects for _, value in leaves_to_change(obj) if isinstance(value, str)}
    for place, values in usual.items():
        written = {
            path: value
            for path, value in values.items()
            if path[0] == "status" and not is_time(value) and writes_field(baseline, place[0], path)
        }
        says = any(
            value not in contained and "{}" not in value if isinstance(value, str) else isinstance(value, bool)
            for value in written.values()
        )
        if says and all(now.get(place, {}).get(path) == value for path, value in written.items()):
            return place[0]
    return ""


class LabelledForeign(ForeignChild):
    """An object that another controller owns has the labels of the children of a copy.

    A client may delete what has its own labels and belongs to nothing that it handles, but not take it over.
    """

    name = "labelled"
    provocation = "an object of another controller has the labels of the client's children"
    advice = "change only what the own object controls; adopt only what has no controller"
    source = "client-go and kube-controller-manager (ControllerRefManager: claims only what has no controller); API conventions"

    forbids_deletion = False

    def require(self, baseline: Baseline) -> None:
        require_controlled_children(baseline)

    def provoke(self, trial: Trial) -> None:
        pattern = trial.copies[0]
        owner = self._create_owner(trial)
        for resource in trial.baseline.reaction.children:
            candidates = (
                one for one in children_of(trial.cluster, pattern, resource) if self._can_belong_to_another(one, pattern)
            )
            child = next((one for one in candidates if one["metadata"].get("labels")), None)
            if child is not None:
                name, labels = f"check-another-{new_token(trial.random)}", child["metadata"]["labels"]
                metadata = {"name": name, "labels": labels, "ownerReferences": [owner]}
                self._add_foreign(trial, resource, child, metadata, (pattern.token, pattern.token))
        if not self.foreign:
            raise NotExercised("the children that the client controls have no labels")
        trial.wait(trial.baseline.seconds_to_react(1.0))
        touch_objects(trial, pattern)
        trial.wait(trial.baseline.seconds_to_react(1.0))


def metadata_for(effect: Effect, token: str, owner: Object | None) -> Object:
    """Returns the metadata of a foreign object that has the name of a child of the copy with a token.

    `owner`: the owner reference of the object, if it has one.
    """
    return {"name": effect.name.replace("{}", token), "ownerReferences": [owner] if owner else []}


#: How many texts of the object of another controller are changed at most.
_MOST_CHANGED = 12


def _merge(obj: Object, change: Object) -> Object:
    """Returns an object after a merge patch that removes nothing."""
    return {**obj, **{key: _merge(obj[key], one) if isinstance(one, dict) else one for key, one in change.items()}}


RULES = (
    Finalizers,
    AddedFinalizer,
    RemovedFinalizer,
    FirstSeenDeleting,
    RecreatedObject,
    RecreatedCopy,
    ForeignChild,
    LabelledForeign,
)

"""Rules about objects with several writers: conflicts, lost updates, fields and finalizers of others (C1 to C4)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.checker.occasions import EDITOR, LEASES, drop_finalizers, edited, learned_writes, own_objects, require_writes
from fakekube.checker.reaction import Copy, ElementKind, children_of
from fakekube.checker.rule import NotExercised, Rule, Verdict
from fakekube.checker.sample import new_token
from fakekube.client import ApiError

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call

__all__ = ["RULES"]

Object = dict[str, Any]
_Path = tuple[str, ...]

_CONVENTIONS = "API conventions, concurrency control and consistency"

#: How many times a client may repeat a write that cannot succeed. A client that reads from a cache needs a few attempts until the
#: cache is up to date; more are an error loop.
_MANY = 10


class Conflicts(Rule):
    """Another editor writes the objects just before the client writes them."""

    id = "C1"
    provocation = "another editor writes just before the client's update"
    obligation = "409 Conflict: read the object again, apply the change to it, and retry with a growing pause"
    advice = "use a helper like RetryOnConflict around read, change and update; never send the same body again"
    source = f"{_CONVENTIONS}; client-go util/retry"
    lasts = 8.0

    every: ClassVar[int] = 2
    """Every nth write of the client has a conflict."""

    def provoke(self, spell: Spell) -> None:
        self.meet(spell)

    def meet(self, spell: Spell) -> None:
        """Changes objects as another editor just before the client's updates."""
        values = itertools.count(1)

        def edit(obj: Object) -> Object:
            return edited(obj, str(next(values)))

        for verb, resource in require_writes(spell, "update", "patch"):
            if resource == LEASES or resource.startswith("events"):
                continue
            spell.faults.on(verb, resource).conflict(edit, times=2, every=self.every, label="another editor")

    def judge_trace(self, spell: Spell) -> Verdict:
        refused = [call for call in spell.trace.since(spell.provoked_at) if call.status == 409 and call.is_write]
        if not refused:
            return Verdict.not_exercised("no write of the client has a resourceVersion, so that none conflicts")
        return Verdict.passed(f"{len(refused)} conflicts")

    def broken(self, spell: Spell) -> Verdict | None:
        refused: dict[tuple[str, bytes], list[Call]] = {}
        for call in spell.trace.since(spell.provoked_at):
            if call.status == 409 and call.verb in ("update", "patch") and call.collection != LEASES:
                refused.setdefault((call.path, call.exchange.raw_body), []).append(call)
        worst = max(refused.values(), key=len, default=[])
        if len(worst) < _MANY:
            return None
        return Verdict.failed(
            f"{worst[0].verb} {worst[0].path} was sent {len(worst)} times with the same stale body", *spell.excerpt(worst)
        )


class LostUpdates(Conflicts):
    """Another editor writes the objects before the client's updates, as for C1; its change must survive."""

    id = "C2"
    provocation = "another editor writes between the client's read and its update"
    obligation = "an update has the resourceVersion that the client read, so that no change of others is lost"
    every = 1

    def provoke(self, spell: Spell) -> None:
        self.meet(spell)
        spell.stimulate(_edited_before)  # a stale update would restore this value
        spell.await_all()

    advice = "keep metadata.resourceVersion of the object that was read, or send a patch with the client's own fields only"
    source = _CONVENTIONS

    def broken(self, spell: Spell) -> Verdict | None:
        return None

    def judge(self, spell: Spell) -> Verdict:
        for subject in spell.copies:
            for resource, obj in zip(subject.resources, subject.objects, strict=True):
                verdict = self._judge_object(spell, resource, obj["metadata"])
                if verdict is not None:
                    return verdict
        return Verdict.passed() if not (spell.ended or spell.loop or spell.missing) else super().judge(spell)

    @staticmethod
    def _judge_object(spell: Spell, resource: str, metadata: Object) -> Verdict | None:
        """Judges whether a version of an object lacks the annotation that the other editor wrote before."""
        written = ""
        for version in spell.cluster.history(resource, metadata["name"], metadata.get("namespace")):
            if version.type == "DELETED" or version.object["metadata"]["uid"] != metadata["uid"]:
                continue
            found = (version.object["metadata"].get("annotations") or {}).get(EDITOR, "")
            if written and (not found or int(found) < int(written)):
                culprit = [
                    call
                    for call in spell.trace.since(spell.provoked_at)
                    if call.is_write and call.exchange.revision == version.revision
                ]
                lost = f"{metadata['name']} lost the annotation {EDITOR}: {written} of another editor"
                return Verdict.failed(f"{lost} at revision {version.revision}", *spell.excerpt(culprit))
            written = found or written
        return None

    def judge_trace(self, spell: Spell) -> Verdict:
        return Verdict.passed()


def _edited_before(obj: Object) -> None:
    edited(obj, "0")


class ForeignFields(Rule):
    """Copies have fields that the client does not know, and labels and annotations of others."""

    id = "C3"
    provocation = "objects with labels, annotations and fields of others"
    obligation = "a read-modify-write keeps fields that the client does not know"
    advice = "change the object as received, not a typed model of it; or patch or apply the client's own fields only"
    source = "API conventions, compatibility of unknown fields; kubernetes#111703"
    lasts = 6.0

    #: A field that the client's version of the definition does not have.
    FIELD = "checkOfNewerVersion"

    def prepare(self, spell: Spell) -> None:
        for definition in spell.sample.definitions:
            _add_field(spell, definition["metadata"]["name"], self.FIELD)
        spell.cluster.settle(timeout=20.0)

    def provoke(self, spell: Spell) -> None:
        require_writes(spell, "update", "patch")
        spell.stimulate(self._foreign)

    def _foreign(self, obj: Object) -> None:
        metadata = obj["metadata"]
        metadata.setdefault("labels", {}).update({_OTHER: "kept", f"{_OTHER}-empty": ""})
        metadata.setdefault("annotations", {}).update({EDITOR: "später: \u0085\U0001f680", f"{EDITOR}-empty": ""})
        if "." in obj["apiVersion"].partition("/")[0] and isinstance(obj.get("spec"), dict):
            obj["spec"][self.FIELD] = {"kept": True, "off": False, "none": 0, "empty": {}, "text": ""}
        if obj["kind"] == "ConfigMap" and obj["apiVersion"] == "v1":
            obj["binaryData"] = {"check": "3q2+7w=="}

    def judge(self, spell: Spell) -> Verdict:
        written = _written_paths(spell)
        for subject in spell.copies:
            for resource, now in own_objects(spell, subject):
                for before in subject.objects:
                    if before["metadata"]["uid"] != now["metadata"]["uid"]:
                        continue
                    lost = [
                        path
                        for path in _lost(before, now)
                        if not any(path[: len(one)] == one for one in written.get(resource, ()))
                    ]
                    if lost:
                        name = before["metadata"]["name"]
                        calls = [call for call in spell.trace.since(subject.mark) if call.is_write and call.name == name]
                        shown = ", ".join(".".join(path) for path in lost[:3])
                        return Verdict.failed(
                            f"{resource}/{name} has lost {shown}, which the client does not write", *spell.excerpt(calls)
                        )
        return super().judge(spell)


#: The label of somebody else.
_OTHER = "check.fakekube.dev/other"


def _add_field(spell: Spell, name: str, field: str) -> None:
    """Adds a field to the spec schema of all versions of a definition."""
    definition = spell.cluster.get("customresourcedefinitions", name)
    for version in definition["spec"]["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        properties = ((schema.get("properties") or {}).get("spec") or {}).get("properties")
        if isinstance(properties, dict):
            properties[field] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {"versions": definition["spec"]["versions"]}
    try:
        spell.cluster.patch("customresourcedefinitions", name, {"spec": spec})
    except ApiError as error:
        raise NotExercised(f"no field can be added to the definition {name}: {error}") from None


def _written_paths(spell: Spell) -> dict[str, list[_Path]]:
    """Returns the fields that the client writes in the calm run, by resource."""
    found: dict[str, list[_Path]] = {}
    for element in spell.calm.reaction.elements:
        if element.kind is ElementKind.FIELD:
            found.setdefault(element.resource, []).append(element.detail)
    return found


def _lost(before: Any, now: Any, path: _Path = ()) -> Iterator[_Path]:
    """Yields the paths of removed and changed values."""
    if path in {("metadata", "managedFields"), ("metadata", "resourceVersion"), ("metadata", "generation"), ("status",)}:
        return
    if isinstance(before, dict):
        for key, value in before.items():
            if not isinstance(now, dict) or key not in now:
                yield (*path, key)
            else:
                yield from _lost(value, now[key], (*path, key))
    elif isinstance(before, list) and all(isinstance(item, str) for item in before):
        yield from ((*path, item) for item in before if not isinstance(now, list) or item not in now)
    elif before != now:
        yield path


class ForeignFieldsOfChildren(Rule):
    """Another client labels and annotates the children that the client has created."""

    id = "C3"
    provocation = "labels and annotations of others on what the client has made"
    obligation = ForeignFields.obligation
    advice = ForeignFields.advice
    source = ForeignFields.source
    lasts = 6.0

    def provoke(self, spell: Spell) -> None:
        resources = [one for one in spell.calm.reaction.children if not one.startswith("events")]
        subject = spell.copies[0]
        children = [(one, child) for one in resources for child in children_of(spell.cluster, subject, one)]
        if not children:
            raise NotExercised("the client creates no children")
        change = {"metadata": {"labels": {_OTHER: "kept"}, "annotations": {EDITOR: "kept"}}}
        for resource, child in children:
            metadata = child["metadata"]
            with suppress(ApiError):
                spell.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))
        spell.memory["children"] = children
        touch = {"metadata": {"annotations": {"check.fakekube.dev/touched": "yes"}}}
        for resource, obj in own_objects(spell, subject):
            spell.cluster.patch(resource, obj["metadata"]["name"], touch, namespace=obj["metadata"].get("namespace"))
        spell.wait(1.0 + 4 * spell.calm.reaction_seconds)

    def judge_trace(self, spell: Spell) -> Verdict:
        for resource, child in spell.memory["children"]:
            for now in children_of(spell.cluster, spell.copies[0], resource):
                metadata = now["metadata"]
                kept = _OTHER in (metadata.get("labels") or {}) and EDITOR in (metadata.get("annotations") or {})
                if metadata["uid"] == child["metadata"]["uid"] and not kept:
                    calls = [
                        call for call in spell.trace.since(spell.provoked_at) if call.is_write and call.name == metadata["name"]
                    ]
                    text = f"{resource}/{metadata['name']}, which the client created, has lost labels or annotations of others"
                    return Verdict.warned(text, *spell.excerpt(calls))
        return Verdict.passed()


class Finalizers(Rule):
    """The objects have another finalizer before the client's own."""

    id = "C4"
    provocation = "objects with a finalizer of somebody else"
    obligation = "add and remove only the client's own finalizer, guarded by resourceVersion or a JSON patch test"
    advice = "read, change metadata.finalizers and update with the resourceVersion; retry on conflict"
    source = "Kubernetes docs, finalizers; kubernetes#111643"
    lasts = 8.0

    FINALIZER = "check.fakekube.dev/other"

    def provoke(self, spell: Spell) -> None:
        if not learned_writes(spell, "update", "patch"):
            raise NotExercised("the client's reaction has no update or patch")
        subject = spell.stimulate(self._foreign)
        spell.memory["copy"] = subject
        spell.memory["reacted"] = spell.await_reaction(subject)
        self._judge_kept(spell, subject, "before its deletion")
        if not spell.calm.holds or spell.memory.get("lost"):
            return
        spell.delete(subject)
        own = {name for _, names in self._finalizers(spell, subject) for name in names} - {self.FINALIZER}
        spell.await_until(lambda: not any(own & set(names) for _, names in self._finalizers(spell, subject)), spell.patience)
        self._judge_kept(spell, subject, "when the client removed its own")
        for resource, obj in own_objects(spell, subject):
            drop_finalizers(spell, resource, obj["metadata"]["name"], obj["metadata"].get("namespace"))

    def _foreign(self, obj: Object) -> None:
        obj["metadata"].setdefault("finalizers", []).insert(0, self.FINALIZER)

    def _finalizers(self, spell: Spell, subject: Copy) -> list[tuple[str, Sequence[str]]]:
        return [(obj["metadata"]["name"], obj["metadata"].get("finalizers") or ()) for _, obj in own_objects(spell, subject)]

    def _judge_kept(self, spell: Spell, subject: Copy, when: str) -> None:
        found = self._finalizers(spell, subject)
        lost = not all(self.FINALIZER in names for _, names in found)
        if len(found) < len(subject.objects) or lost:
            spell.memory["lost"] = f"{subject.names()[0]} lost the finalizer {self.FINALIZER} of another client {when}"

    def judge(self, spell: Spell) -> Verdict:
        if spell.memory.get("lost"):
            calls = [call for call in spell.trace.since(spell.memory["copy"].mark) if call.is_write]
            return Verdict.failed(spell.memory["lost"], *spell.excerpt(calls))
        return super().judge(spell)


class AddedFinalizer(Finalizers):
    """Another finalizer is added between the client's read and its write."""

    provocation = "somebody else adds a finalizer just before the client adds its own"

    def provoke(self, spell: Spell) -> None:
        if not spell.calm.holds:
            raise NotExercised("the client adds no finalizer")

        added: set[str] = set()

        def add(obj: Object) -> Object | None:
            metadata = obj["metadata"]
            if metadata["uid"] in added or metadata.get("deletionTimestamp"):
                return None
            added.add(metadata["uid"])
            metadata["finalizers"] = [*(metadata.get("finalizers") or ()), self.FINALIZER]
            return obj

        token = new_token(spell.random)
        faults = [
            spell.faults.on("update,patch", name=obj["metadata"]["name"]).conflict(add, label="another finalizer is added")
            for obj in spell.sample.copies(token)
        ]
        subject = spell.memory["copy"] = spell.stimulate(token=token)
        spell.await_reaction(subject)
        for fault in faults:
            fault.remove()
        if any(fault.hits for fault in faults):
            self._judge_kept(spell, subject, "when the client added its own")
        for resource, obj in own_objects(spell, subject):
            metadata = obj["metadata"]
            kept = [name for name in metadata.get("finalizers") or () if name != self.FINALIZER]
            spell.cluster.patch(
                resource, metadata["name"], {"metadata": {"finalizers": kept}}, namespace=metadata.get("namespace")
            )


class RemovedFinalizer(Finalizers):
    """The other finalizer is removed just before the client removes its own."""

    provocation = "the finalizer of somebody else is removed in between"

    def provoke(self, spell: Spell) -> None:
        if not spell.calm.holds:
            raise NotExercised("the client adds no finalizer")
        subject = spell.stimulate(self._foreign)
        spell.memory["copy"] = subject
        spell.await_reaction(subject)

        def without(obj: Object) -> Object:
            metadata = obj["metadata"]
            if metadata.get("deletionTimestamp"):
                metadata["finalizers"] = [name for name in metadata.get("finalizers") or () if name != self.FINALIZER]
            return obj

        for name in subject.names():
            spell.faults.on("update,patch", name=name).conflict(without, label="another finalizer is removed")
        spell.delete(subject)
        gone = spell.await_until(lambda: not own_objects(spell, subject), spell.patience)
        if not gone:
            spell.memory["lost"] = f"{subject.names()[0]} still exists: the client did not remove its finalizer after a conflict"


RULES = (Conflicts, LostUpdates, ForeignFields, ForeignFieldsOfChildren, Finalizers, AddedFinalizer, RemovedFinalizer)

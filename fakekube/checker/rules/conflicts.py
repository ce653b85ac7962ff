"""Rules about objects with several writers: conflicts, lost updates, fields of others (C1 to C3).

Invariant: what another editor writes is told apart from what the client writes by annotations and labels that only rules use.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.checker.judges import judge_lost_conditions
from fakekube.checker.provocations import Budget
from fakekube.checker.reaction import EffectKind, children_of, states_around
from fakekube.checker.rule import Rule
from fakekube.checker.trace import LEASES, read_number
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet
from fakekube.checker.writes import (
    EDITOR,
    OTHERS_LABEL,
    create_owner,
    learned_writes,
    own_objects,
    require_children,
    require_writes,
    set_editor,
    touch_objects,
    writes_of,
)
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial

_Path = tuple[str, ...]

_CONVENTIONS = "API conventions, concurrency control and consistency"

#: How many conflicts each object has: a client may write it several times, and only one of the writes may be careless.
_CONFLICTS = 4

#: A client that reads from a cache repeats a stale write until the watch has delivered the newer object, and it has read the
#: event. On a busy machine this may happen once: so many equal writes, of which so many come so many seconds after the event, are
#: a failure if they are seen for so many objects.
_SEVERAL, _KNOWINGLY, _READ_WITHIN, _OBJECTS = 4, 2, 0.1, 2

#: How many times a client may repeat a write that cannot succeed. A client that reads from a cache needs a few attempts until the
#: cache is up to date; more are an error loop.
_MANY = 10

#: Seconds within which most clients have written what they want in spite of conflicts.
_SOON = 3.0


class Conflicts(Rule):
    """Another editor writes the objects just before the client writes them."""

    id = "C1"
    name = "conflict"
    provocation = "another editor writes just before the client's update"
    fast = True
    obligation = "409 Conflict: read the object again, apply the change to it, and retry with a growing pause"
    advice = "use a helper like RetryOnConflict around read, change and update; never send the same body again"
    source = f"{_CONVENTIONS}; client-go util/retry"
    expected_seconds = 8.0

    every: ClassVar[int] = 2
    """Every nth write of an object has a conflict, from the first one on."""

    def __init__(self) -> None:
        self.edited: dict[str, tuple[str, Object]] = {}
        """The resource and the metadata of the objects that the other editor has changed, by uid."""

    def require(self, baseline: Baseline) -> None:
        require_conflicts(baseline)

    def provoke(self, trial: Trial) -> None:
        self.meet(trial)
        for _ in range(_OBJECTS):
            trial.await_reaction(trial.stimulate())

    def meet(self, trial: Trial) -> None:
        """Changes objects as another editor just before the client's updates."""
        values, budget, written = itertools.count(1), Budget(_CONFLICTS), Counter[str]()

        def edit(obj: Object, resource: str) -> Object | None:
            uid = obj["metadata"]["uid"]
            written[uid] += 1
            meets = written[uid] % self.every == 1 % self.every  # the first write conflicts
            if not meets or not budget.take(uid):
                return None
            self.edited[uid] = (resource.partition("/")[0], obj["metadata"])
            return set_editor(obj, str(next(values)))

        for verb, resource in self.find_updates(trial.baseline):
            if resource != LEASES:
                trial.faults.on(verb, resource).conflict(partial(edit, resource=resource), label="another editor")

    def find_updates(self, baseline: Baseline) -> Sequence[tuple[str, str]]:
        """Returns (verb, resource) of the writes that may conflict. Raises NotExercised if there are none."""
        return require_writes(baseline, "update", "patch")

    def judge_trace(self, trial: Trial) -> Verdict:
        return _judge_at_once(trial) or judge_conflicts(trial)

    def find_failure(self, trial: Trial) -> Verdict | None:
        refused = _equal_refused(trial)
        many = next((calls for calls in refused if len(calls) >= _MANY), None)
        stale = [calls for calls in refused if _is_repeated_knowingly(trial, calls)]
        if many is None and len({calls[0].path for calls in stale}) < _OBJECTS:
            return None
        worst = stale[0] if many is None else many
        return Verdict.failure(
            f"{worst[0].verb} {worst[0].path} was sent {len(worst)} times within {worst[-1].at - worst[0].at:.1f} s "
            "with the same stale body",
            *trial.excerpt(worst),
            by_time=many is None,
        )


def _equal_refused(trial: Trial) -> list[list[Call]]:
    """Returns the updates and patches since the provocation that conflicted, those that are equal together."""
    refused: dict[tuple[str, bytes], list[Call]] = {}
    for call in trial.trace.since(trial.provoked_at):
        if call.status == 409 and call.verb in ("update", "patch") and call.collection != LEASES:
            refused.setdefault((call.path, call.exchange.raw_body), []).append(call)
    return list(refused.values())


def _judge_at_once(trial: Trial) -> Verdict | None:
    """Judges whether the client sends refused writes again without a pause, and without having read the object."""
    repeated = [calls for calls in _equal_refused(trial) if _is_repeated_at_once(calls)]
    if len({calls[0].path for calls in repeated}) < _OBJECTS:
        return None
    calls = repeated[0]
    return Verdict.warning(
        f"{calls[0].verb} {calls[0].path} was sent {len(calls)} times with the same stale body, without a pause",
        *trial.excerpt(calls),
        by_time=True,
    )


def _is_repeated_at_once(calls: Sequence[Call]) -> bool:
    """Reports whether of some equal writes that were refused several were sent at once after the answer to the one before."""
    pauses = [after.at - (before.end or after.at) for before, after in pairwise(calls)]
    return any(max(pauses[first : first + _SEVERAL - 1]) < _AT_ONCE for first in range(len(pauses) - _SEVERAL + 2))


#: A client has not paused if its next request comes within so many seconds of an answer: client-go's RetryOnConflict waits for
#: 10 ms, and its queues for 5 ms and then twice as long each time.
_AT_ONCE = 0.008

#: Why a client is not exercised whose writes cannot conflict.
_NO_CONFLICT = "no write of the client has a resourceVersion, so that none conflicts"


def require_conflicts(baseline: Baseline) -> None:
    """Raises NotExercised unless an update or patch of the client may conflict: its body may have a resourceVersion."""
    require_writes(baseline, "update", "patch")
    sent = [call for call in writes_of(baseline.trial.trace.since()) if call.verb in ("update", "patch")]
    if not any(_has_revision(call) or not isinstance(call.body, dict) for call in sent):
        raise NotExercised(_NO_CONFLICT)


def judge_conflicts(trial: Trial) -> Verdict:
    """Returns the verdict for a client that has converged: it is not exercised if none of its writes conflicted."""
    refused = [call for call in trial.trace.since(trial.provoked_at) if call.status == 409 and call.is_write]
    return Verdict.success(f"{len(refused)} conflicts") if refused else Verdict.not_exercised(_NO_CONFLICT)


def _is_repeated_knowingly(trial: Trial, refused: Sequence[Call]) -> bool:
    """Reports whether equal writes were sent again when the client had been told of a newer state of the object."""
    if len(refused) < _SEVERAL:
        return False
    told = _newer_delivered_at(trial, refused[0])
    return sum(call.at > told + _READ_WITHIN for call in refused) >= _KNOWINGLY


def _newer_delivered_at(trial: Trial, refused: Call) -> float:
    """Returns when the client was told of a newer state of the object of a refused write: by an event, or by the refusal if it
    does not watch the object."""
    body = refused.body if isinstance(refused.body, dict) else {}
    written = read_number(str((body.get("metadata") or {}).get("resourceVersion") or ""))
    watches = [call for call in trial.trace if call.is_watch and call.collection == refused.collection]
    told = [
        event.at
        for watch in watches
        for event in watch.events
        if event.name == refused.name and event.namespace == refused.namespace and event.revision > written
    ]
    return min(told) if told else math.inf if watches else refused.at


class LostUpdates(Conflicts):
    """Another editor writes the objects before the client's updates, as for C1; its change must survive."""

    id = "C2"
    name = "update"
    provocation = "another editor writes between the client's read and its update"
    expected_seconds = 12.0
    obligation = "an update has the resourceVersion that the client read, so that no change of others is lost"
    every = 1
    advice = "keep metadata.resourceVersion of the object that was read, or send a patch with the client's own fields only"
    source = _CONVENTIONS

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline, "update", "patch")

    def provoke(self, trial: Trial) -> None:
        self.meet(trial)
        subject = trial.stimulate(_set_first_editor)  # a stale update would restore this value
        if not trial.await_reaction(subject, trial.baseline.seconds_to_react(_SOON)):
            touch_objects(trial, subject)  # else the client may pause for long after several conflicts
        trial.await_all()
        trial.faults.clear()

    def find_failure(self, trial: Trial) -> Verdict | None:
        return None

    def judge(self, trial: Trial) -> Verdict:
        own = [
            (resource, obj["metadata"])
            for subject in trial.copies
            for resource, obj in zip(subject.resources, subject.objects, strict=True)
        ]
        uids = {metadata["uid"] for _, metadata in own}
        others = [pair for uid, pair in list(self.edited.items()) if uid not in uids]  # children, and what copies share
        for resource, metadata in [*own, *others]:
            verdict = self.judge_object(trial, resource, metadata, guarded=metadata["uid"] in uids)
            if verdict is not None:
                return verdict
        return Verdict.success() if not (trial.ended or trial.loop or trial.missing) else super().judge(trial)

    @staticmethod
    def judge_object(trial: Trial, resource: str, metadata: Object, *, guarded: bool = True) -> Verdict | None:
        """Judges whether a version of an object lacks the annotation that the other editor wrote before.

        Args:
            trial: the run.
            resource: the resource of the object.
            metadata: its metadata.
            guarded: whether a write with the resourceVersion counts, too: it drops the annotation knowingly.
        """
        written = ""
        for version in trial.cluster.history(resource, metadata["name"], metadata.get("namespace")):
            if version.type == "DELETED" or version.object["metadata"]["uid"] != metadata["uid"]:
                continue
            found = (version.object["metadata"].get("annotations") or {}).get(EDITOR, "")
            if written and (not found or int(found) < int(written)):
                culprit = [
                    call
                    for call in trial.trace.since(trial.provoked_at)
                    if call.is_write and call.exchange.revision == version.revision
                ]
                if not guarded and any(map(_has_revision, culprit)):
                    written = found
                    continue
                lost = f"{metadata['name']} lost the annotation {EDITOR}: {written} of another editor"
                return Verdict.failure(f"{lost} at revision {version.revision}", *trial.excerpt(culprit))
            written = found or written
        return None

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.success()


def _has_revision(call: Call) -> bool:
    """Reports whether the body of a write has a resourceVersion."""
    return isinstance(call.body, dict) and bool((call.body.get("metadata") or {}).get("resourceVersion"))


def _set_first_editor(obj: Object) -> None:
    set_editor(obj, "0")


class KeptFields(Rule):
    """The base class of the provocations of C3."""

    id = "C3"
    obligation = "a read-modify-write keeps fields that the client does not know"
    advice = "change the object as received, not a typed model of it; or patch or apply the client's own fields only"
    source = "API conventions, compatibility of unknown fields; kubernetes#111703"
    expected_seconds = 6.0


class ForeignFields(KeptFields):
    """Copies have fields that the client does not know, and labels and annotations of others."""

    name = "objects"
    decisive = True
    provocation = "objects with labels, annotations and fields of others"
    steps = ("W8",)
    fast = True

    #: A field that the client's version of the definition does not have.
    FIELD = "checkOfNewerVersion"

    def require(self, baseline: Baseline) -> None:
        require_writes(baseline, "update", "patch")

    def prepare(self, trial: Trial) -> None:
        for definition in trial.sample.definitions:
            _add_field(trial, definition["metadata"]["name"], self.FIELD)
        trial.cluster.settle(timeout=20.0)

    def provoke(self, trial: Trial) -> None:
        trial.stimulate(self._add_foreign_fields)

    def _add_foreign_fields(self, obj: Object) -> None:
        metadata = obj["metadata"]
        metadata.setdefault("labels", {}).update({OTHERS_LABEL: "kept", f"{OTHERS_LABEL}-empty": ""})
        metadata.setdefault("annotations", {}).update({EDITOR: "später: \u0085\U0001f680", f"{EDITOR}-empty": ""})
        if "." in obj["apiVersion"].partition("/")[0] and isinstance(obj.get("spec"), dict):
            obj["spec"][self.FIELD] = {"kept": True, "off": False, "none": 0, "empty": {}, "text": ""}
        if obj["kind"] == "ConfigMap" and obj["apiVersion"] == "v1":
            obj["binaryData"] = {"check": "3q2+7w=="}

    def judge(self, trial: Trial) -> Verdict:
        written = _written_paths(trial)
        for subject in trial.copies:
            made = {obj["metadata"]["uid"]: obj for obj in subject.objects}
            for resource, now in own_objects(trial, subject):
                before, own = made.get(now["metadata"]["uid"]), written.get(resource, ())
                if before is None:
                    continue
                lost = [path for path in _find_lost_paths(before, now) if not any(path[: len(one)] == one for one in own)]
                if not lost:
                    continue
                name = now["metadata"]["name"]
                calls = [call for call in trial.trace.since(subject.mark) if call.is_write and call.name == name]
                culprits = [call for call in calls if call.collection == resource and _loses(trial, call, lost)]
                if culprits:
                    shown = ", ".join(".".join(path) for path in lost[:3])
                    return Verdict.failure(
                        f"{resource}/{name} has lost {shown}, which the client does not write", *trial.excerpt(culprits)
                    )
        return super().judge(trial)


def _add_field(trial: Trial, name: str, field: str) -> None:
    """Adds a field to the spec schema of all versions of a definition."""
    definition = trial.cluster.get("customresourcedefinitions", name)
    for version in definition["spec"]["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        properties = ((schema.get("properties") or {}).get("spec") or {}).get("properties")
        if isinstance(properties, dict):
            properties[field] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {"versions": definition["spec"]["versions"]}
    try:
        trial.cluster.patch("customresourcedefinitions", name, {"spec": spec})
    except ApiError as error:
        raise NotExercised(f"no field can be added to the definition {name}: {error}") from None


def _written_paths(trial: Trial) -> dict[str, list[_Path]]:
    """Returns the fields that the client writes in the baseline run, by resource."""
    found: dict[str, list[_Path]] = {}
    for effect in trial.baseline.reaction.effects:
        if effect.kind is EffectKind.FIELD:
            found.setdefault(effect.resource, []).append(effect.detail)
    return found


def _find_lost_paths(before: Any, now: Any, path: _Path = ()) -> Iterator[_Path]:
    """Yields the paths of removed and changed values."""
    if path in {("metadata", "managedFields"), ("metadata", "resourceVersion"), ("metadata", "generation"), ("status",)}:
        return
    if isinstance(before, dict):
        for key, value in before.items():
            if not isinstance(now, dict) or key not in now:
                yield (*path, key)
            else:
                yield from _find_lost_paths(value, now[key], (*path, key))
    elif isinstance(before, list) and all(isinstance(item, str) for item in before):
        yield from ((*path, item) for item in before if not isinstance(now, list) or item not in now)
    elif before != now:
        yield path


def _loses(trial: Trial, call: Call, lost: Sequence[_Path]) -> bool:
    """Reports whether it was a write that has removed or changed one of some values: controllers change objects, too."""
    states = states_around(trial.cluster, call, call.name)
    if states is None:
        return False
    return any(path[: len(one)] == one[: len(path)] for path in _find_lost_paths(*states) for one in lost)


class ForeignFieldsOfChildren(KeptFields):
    """Another client labels and annotates the children that the client has created, and lets them have another owner, too."""

    name = "children"
    provocation = "labels, annotations and owner references of others on what the client has made"

    changed: Sequence[tuple[str, Object]] = ()
    """The children of a copy that the other client has changed, with their resources, as they were then."""

    def require(self, baseline: Baseline) -> None:
        require_children(baseline)

    def provoke(self, trial: Trial) -> None:
        subject = trial.copies[0]
        self.changed = list(self._change_children(trial, subject))
        touch_objects(trial, subject)
        trial.wait(trial.baseline.seconds_to_react(1.0))
        _alter_repeatedly(trial, subject)  # many clients write a child again only when its owner has changed

    @staticmethod
    def _change_children(trial: Trial, copy: Copy) -> Iterator[tuple[str, Object]]:
        """Changes the children of a copy, as far as the API accepts it, and yields them with their resources."""
        owner = create_owner(trial, _OTHER_OWNER)
        for resource in trial.baseline.reaction.children:
            for child in children_of(trial.cluster, copy, resource):
                metadata = child["metadata"]
                change: Object = {"labels": {OTHERS_LABEL: "kept"}, "annotations": {EDITOR: "kept"}}
                namespace = metadata.get("namespace")
                if namespace == "default":
                    change["ownerReferences"] = [*(metadata.get("ownerReferences") or ()), owner]
                with suppress(ApiError):
                    yield resource, trial.cluster.patch(resource, metadata["name"], {"metadata": change}, namespace=namespace)

    def judge_trace(self, trial: Trial) -> Verdict:
        for resource, child in self.changed:
            for now in children_of(trial.cluster, trial.copies[0], resource):
                metadata = now["metadata"]
                lost = next((part for part, get in _OF_OTHERS.items() if not get(child["metadata"]) <= get(metadata)), "")
                if metadata["uid"] == child["metadata"]["uid"] and lost:
                    calls = [
                        call for call in trial.trace.since(trial.provoked_at) if call.is_write and call.name == metadata["name"]
                    ]
                    text = f"{resource}/{metadata['name']}, which the client created, has lost {lost} of others"
                    return Verdict.warning(text, *trial.excerpt(calls))
        return Verdict.success()


#: Another owner of the children of the client.
_OTHER_OWNER = "check-also-owner"
#: What others have in the metadata of an object, by the name of the field.
_OF_OTHERS: Mapping[str, Callable[[Object], Set[str]]] = {
    "labels": lambda metadata: {OTHERS_LABEL} & (metadata.get("labels") or {}).keys(),
    "annotations": lambda metadata: {EDITOR} & (metadata.get("annotations") or {}).keys(),
    "owner references": lambda metadata: {_OTHER_OWNER} & {one["name"] for one in metadata.get("ownerReferences") or ()},
}


#: How many strings of an object are changed, so that the client writes its children or its status again.
_CHANGES = 3


def _alter_repeatedly(trial: Trial, subject: Copy) -> None:
    """Changes strings of the objects of a copy one after the other, until the client does not handle them any more."""
    first = 0
    for _ in range(_CHANGES):
        number = trial.alter(subject, first)
        if number is None:
            break
        first = number + 1
        trial.wait(trial.baseline.seconds_to_react(1.0))
        if trial.missing_of(subject):  # this string decides whether the client handles the object
            subject.judged = False
            break


_CONDITIONS = ("status", "conditions")
_NO_CONDITIONS = "the status has no conditions that others could share"


def _shared_conditions(trial: Trial, copy: Copy) -> list[tuple[str, Object]]:
    """Returns the objects of a copy whose status has conditions, with their resources."""
    return [(resource, obj) for resource, obj in own_objects(trial, copy) if (obj.get("status") or {}).get("conditions")]


class ForeignCondition(KeptFields):
    """Another client sets a condition in the status of an object; then the object is changed."""

    name = "status"
    provocation = "another client sets a condition in the status that the client writes"
    advice = "patch the own condition by strategic merge or apply, or update the whole status with its resourceVersion"
    source = "API conventions, typical status properties"

    #: The condition of the other client.
    CONDITION: ClassVar[Object] = {
        "type": "check.fakekube.dev/Other",
        "status": "True",
        "reason": "Checked",
        "message": "set by another client",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }

    mark: int = -1
    """The number of the last request before the changes."""

    def require(self, baseline: Baseline) -> None:
        if not self._statuses(baseline):
            raise NotExercised("the client writes no status of an object of the sample")
        written = any(one.kind is EffectKind.FIELD and one.detail[:2] == _CONDITIONS for one in baseline.reaction.effects)
        if not written and not _shared_conditions(baseline.trial, baseline.control):  # a controller may have set them
            raise NotExercised(_NO_CONDITIONS)

    @staticmethod
    def _statuses(baseline: Baseline) -> set[str]:
        """Returns the resources of the sample whose status the client writes: by the subresource of this name, or by another one
        that changes conditions, such as the approval of a CertificateSigningRequest."""
        written = {resource for _, resource in learned_writes(baseline, "update", "patch")}
        written |= {
            f"{effect.resource}/status"
            for effect in baseline.reaction.effects
            if effect.kind is EffectKind.FIELD and effect.detail[:2] == _CONDITIONS
        }
        return {resource for resource in baseline.control.resources if f"{resource}/status" in written}

    def provoke(self, trial: Trial) -> None:
        subject = trial.copies[0]
        await_quiet(trial, subject.mark, [subject.token])
        shared = _shared_conditions(trial, subject)
        if not sum(self._set_condition(trial, *pair) for pair in shared):  # the client may replace a status without conditions
            raise NotExercised(_NO_CONDITIONS)
        self.mark = trial.trace.mark()
        _alter_repeatedly(trial, subject)
        self._set_before_first_write(trial)

    def _set_before_first_write(self, trial: Trial) -> None:
        """Refuses the first writes of the status of a fresh copy, and sets the condition meanwhile."""
        statuses = self._statuses(trial.baseline)
        writes = [
            (verb, resource)
            for verb, resource in learned_writes(trial.baseline, "update", "patch")
            if resource.partition("/")[0] in statuses and "/" in resource
        ]
        with ExitStack() as refusals:
            refused = [
                refusals.enter_context(trial.faults.on(*write).status(503, message="try again", label="status refused"))
                for write in writes
            ]
            copy = trial.stimulate()
            trial.await_until(lambda: any(fault.hits for fault in refused), trial.reaction_timeout)
            for resource, obj in own_objects(trial, copy):
                self._set_condition(trial, resource, obj)

    def _set_condition(self, trial: Trial, resource: str, obj: Object) -> bool:
        """Adds the condition to the status of an object; returns whether it is there then."""
        conditions = (obj.get("status") or {}).get("conditions") or []
        metadata = obj["metadata"]
        if resource not in self._statuses(trial.baseline) or not isinstance(conditions, list):
            return False
        change = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "status": {"conditions": [self.CONDITION, *conditions]},  # a client may take the first one for its own
        }
        place = {"namespace": metadata.get("namespace"), "subresource": "status"}
        with suppress(ApiError):
            changed = trial.cluster.patch(resource, metadata["name"], change, **place)
            return self.CONDITION["type"] in str((changed.get("status") or {}).get("conditions"))
        return False

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_lost_conditions(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        statuses = self._statuses(trial.baseline)
        writes = [call for call in trial.trace.since(self.mark) if call.is_write and call.succeeded]
        again = [call for call in writes if call.collection in statuses and call.collection != call.resource]
        return Verdict.success() if again else Verdict.not_exercised("the client did not write the status again")


RULES = (Conflicts, LostUpdates, ForeignFields, ForeignFieldsOfChildren, ForeignCondition)

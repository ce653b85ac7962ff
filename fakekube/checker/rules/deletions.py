"""Rules about deletions whose events the client does not receive (W12)."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.checker.reaction import Copy, EffectKind, children_of, mentions_in
from fakekube.checker.rule import Rule
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_delivery, await_long_watches, await_quiet, await_requests
from fakekube.checker.writes import delete_children, drop_finalizers, own_objects, remove, writes_of
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial


class MissedDeletions(Rule):
    """An object is deleted while the client is disconnected, and the history is compacted."""

    id = "W12"
    name = "offline"
    provocation = "an object is deleted while the client cannot watch, and the history is compacted"
    watches = True
    steps: ClassVar[Sequence[str]] = ("W8", "R2")
    fast = True
    obligation = "an object that is missing in a new list was deleted: the client reacts as to a DELETED event"
    advice = "when a list replaces the cache, handle objects that are no longer in it as deleted"
    source = "client-go tools/cache (Reflector Replace, DeltaFIFO)"

    lost: Copy
    mark: int = -1

    def require(self, baseline: Baseline) -> None:
        if baseline.adds_finalizer:
            raise NotExercised("the client adds a finalizer to objects, so that it cannot miss a deletion")
        if not baseline.forgotten and not any(one.kind is EffectKind.REQUEST for one in baseline.deletion.effects):
            raise NotExercised("the client sends nothing when an object is deleted")

    def provoke(self, trial: Trial) -> None:
        trial.require_watch()
        lost = self.lost = trial.copies[0]
        self.mark = trial.trace.mark()
        self.miss(trial, lost)
        self.await_reaction(trial)

    def await_reaction(self, trial: Trial) -> None:
        """Waits for the reaction to the deletion."""
        trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout)

    def miss(self, trial: Trial, lost: Copy) -> None:
        """Deletes a copy so that the client does not receive the event."""
        with trial.disconnect():
            trial.delete(lost)
            trial.cluster.settle()
            trial.compact()

    def _missing(self, trial: Trial) -> list[str]:
        """Returns what the client has done in the baseline run, and not now."""
        baseline, cluster = trial.baseline, trial.cluster
        named = baseline.forgotten & mentions_in(baseline.reaction, cluster, self.lost)
        kept = [f"takes its name out of {one.resource}/{one.name}" for one in sorted(named, key=str)]
        return kept + [str(one) for one in baseline.deletion.missing(cluster, self.lost, trial.trace.since(self.mark))]

    def judge_trace(self, trial: Trial) -> Verdict:
        missing = self._missing(trial)
        if missing:
            return Verdict.failure(
                f"no reaction to the deletion of {self.lost.names()[0]}: in the baseline run the client {missing[0]}",
                *trial.excerpt(),
                by_time=True,
            )
        return Verdict.success()


class DeletionsBehindExpiry(MissedDeletions):
    """An object is deleted while a watch reconnects; the client receives only that its revision has expired."""

    name = "expiry"
    provocation = "an object is deleted while a watch reconnects, and its revision has expired then"
    fast = False
    steps = ("W5", "W1")

    def miss(self, trial: Trial, lost: Copy) -> None:
        await_long_watches(trial)
        with trial.faults.on("watch").hang(label="held up"):
            await_requests(trial, trial.end_watches())
            trial.delete(lost)
            trial.cluster.settle()
            trial.compact()


class DeletionsBehindEnd(MissedDeletions):
    """An object is deleted while a watch that ended normally reconnects; the resumed watch delivers the event."""

    name = "end"
    provocation = "an object is deleted while a watch that ended normally reconnects"
    steps = ("W5",)
    fast = False

    def miss(self, trial: Trial, lost: Copy) -> None:
        await_long_watches(trial)
        with trial.faults.on("watch").hang(label="held up"):
            await_requests(trial, trial.end_watches())
            trial.delete(lost)
            trial.cluster.settle()


class ChildDeletionsBehindEnd(MissedDeletions):
    """A child is deleted while a watch that ended normally reconnects."""

    name = "child-end"
    provocation = "what the client has made is deleted while a watch that ended normally reconnects"
    fast = False

    def require(self, baseline: Baseline) -> None:
        watched_children(baseline)

    def provoke(self, trial: Trial) -> None:
        lost = trial.copies[0]
        repaired = require_repaired(trial, lost, watched_children(trial.baseline))
        await_long_watches(trial)
        with trial.faults.on("watch").hang(label="held up"):
            await_requests(trial, trial.end_watches())
            for resource in repaired:
                delete_children(trial, lost, resource)

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.success()


class MissedDeletionsOfChildren(MissedDeletions):
    """The children that the client has created are deleted while it cannot list and watch them."""

    name = "children"
    provocation = "what the client has made is deleted while it cannot watch, and the history is compacted"
    fast = False
    steps = ("W8", "R2")

    def require(self, baseline: Baseline) -> None:
        watched_children(baseline)

    def provoke(self, trial: Trial) -> None:
        lost = trial.copies[0]
        repaired = require_repaired(trial, lost, watched_children(trial.baseline))
        with ExitStack() as disconnected:  # only the children: a list of their owners would make the client look at them anyway
            for resource in repaired:
                disconnected.enter_context(trial.faults.on("list,watch", resource).refuse(label="disconnected"))
                trial.faults.on("watch", resource).cut(label="disconnected").remove()
            for resource in repaired:
                delete_children(trial, lost, resource)
            trial.compact()

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.success()


class RemovedOwners(Rule):
    """An object and its children are deleted, regardless of finalizers, while the client is disconnected.

    Later a child with the same name is created and deleted again: a client that kept the object in its cache recreates children.
    """

    id = "W12"
    name = "owner"
    provocation = "an object is removed while the client cannot watch; later a child of it is made and deleted"
    steps = ("W8", "R2")
    obligation = MissedDeletions.obligation
    advice = MissedDeletions.advice
    source = MissedDeletions.source

    mark: int | None = None

    def require(self, baseline: Baseline) -> None:
        watched_children(baseline)

    def provoke(self, trial: Trial) -> None:
        kinds = watched_children(trial.baseline)
        lost = trial.copies[0]
        children = [(one, child) for one in kinds for child in children_of(trial.cluster, lost, one)]
        with trial.disconnect():
            lost.deleted = True
            for resource, obj in own_objects(trial, lost):
                drop_finalizers(trial, resource, obj)
            trial.delete(lost)
            for resource, child in children:
                self._remove(trial, resource, child)
            trial.compact()
        trial.converge()
        self.mark = trial.trace.mark()
        for resource, child in children:
            self._make(trial, child)
            trial.wait(0.3)
            self._remove(trial, resource, child)
        trial.wait(trial.baseline.seconds_to_react(2.0))

    @staticmethod
    def _make(trial: Trial, child: dict[str, Any]) -> None:
        """Creates a child again, as another client."""
        metadata = {key: child["metadata"][key] for key in _KEPT if key in child["metadata"]}
        with suppress(ApiError):
            trial.cluster.create({**child, "metadata": metadata})

    @staticmethod
    def _remove(trial: Trial, resource: str, child: dict[str, Any]) -> None:
        with suppress(ApiError):
            remove(trial, resource, child)

    def find_failure(self, trial: Trial) -> Verdict | None:
        if self.mark is None:
            return None
        lost = trial.copies[0]
        uids = {obj["metadata"]["uid"] for obj in lost.objects}
        made = [
            call
            for call in writes_of(trial.trace.since(self.mark))
            if call.status == 201 and call.mentions(lost.token) and not _is_for_another(call, uids)
        ]
        if not made:
            return None
        return Verdict.failure(f"creates {made[0].collection} for {lost.names()[0]}, which is deleted", *trial.excerpt(made))


def _is_for_another(call: Call, uids: set[str]) -> bool:
    """Reports whether a create names other owners than those with some uids: a client that handles the children, too, makes
    objects for them."""
    metadata = call.body.get("metadata") if isinstance(call.body, dict) else None
    owners = {owner.get("uid") for owner in (metadata or {}).get("ownerReferences") or ()}
    return bool(owners) and not owners & uids


#: The metadata of a child that its new version has.
_KEPT = ("name", "namespace", "labels", "annotations", "ownerReferences")


def watched_children(baseline: Baseline) -> list[str]:
    """Returns the resources of the children that the client creates and watches. Raises NotExercised if there are none."""
    watched = set(baseline.streams.values())
    found = [resource for resource in baseline.reaction.children if resource in watched]
    if not found:
        raise NotExercised("the client does not watch the children that it creates")
    return found


def has_own_watch(baseline: Baseline, resource: str) -> bool:
    """Reports whether the client watches children by a stream that delivers no objects of the sample; not if the children run to
    completion, because a client need not recreate those."""
    streams = baseline.streams.items()
    return resource not in _RUN_ONCE and any(one == resource and key not in baseline.delivering for key, one in streams)


#: Resources whose objects run to completion, or do their work once.
_RUN_ONCE = frozenset({"pods", "jobs.batch", "certificatesigningrequests.certificates.k8s.io"})


def _is_repaired(trial: Trial, copy: Copy, resource: str) -> bool:
    """Reports whether the client recreates children whose deletion it sees: each time, because once may be a coincidence.

    Children that the client does not watch are not deleted, unless it only lists: it might never make them again.

    Raises ClientEnded, HotLoop and Decided.
    """
    watched = trial.baseline.streams.values()
    if watched and resource not in watched:
        return False
    if resource in trial.baseline.repaired:
        return bool(children_of(trial.cluster, copy, resource))
    mark = copy.mark
    for _ in range(_REPAIRS):
        await_quiet(trial, mark, [copy.token])
        mark = trial.trace.mark()
        if not delete_children(trial, copy, resource):
            return False
        if not trial.await_reaction(copy, trial.baseline.seconds_to_react(_REPAIRED_WITHIN)):
            return False
    trial.baseline.repaired.add(resource)
    if resource in watched:
        await_delivery(trial, resource, children_of(trial.cluster, copy, resource))
    return True


#: How many times a child is deleted before the client is believed to recreate it, and the seconds within which it does.
_REPAIRS, _REPAIRED_WITHIN = 2, 3.0


def require_repaired(trial: Trial, copy: Copy, resources: Iterable[str]) -> list[str]:
    """Returns those of some resources whose children the client recreates when they are deleted.

    Raises NotExercised if there are none, and ClientEnded, HotLoop and Decided.
    """
    found = [one for one in resources if _is_repaired(trial, copy, one)]
    if not found:
        raise NotExercised("the client does not recreate deleted children")
    return found


RULES = (
    MissedDeletions,
    DeletionsBehindExpiry,
    DeletionsBehindEnd,
    ChildDeletionsBehindEnd,
    MissedDeletionsOfChildren,
    RemovedOwners,
)

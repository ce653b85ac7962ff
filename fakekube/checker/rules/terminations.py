"""Rules about objects that are being deleted, and exist until their finalizers are gone (C4, C6)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fakekube.checker.pauses import judge_write_backoff
from fakekube.checker.reaction import children_of
from fakekube.checker.rule import Rule
from fakekube.checker.rules.deletions import require_repaired
from fakekube.checker.rules.identity import AlreadyThere
from fakekube.checker.rules.lifecycles import Finalizers
from fakekube.checker.verdict import Verdict
from fakekube.checker.waits import await_delivery, await_quiet
from fakekube.checker.writes import (
    add_finalizer,
    delete_children,
    drop_finalizers,
    named_children,
    own_objects,
    require_controlled_children,
    require_named_children,
)
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from fakekube.checker.trial import Baseline, Trial


class ChildTerminates(Rule):
    """A child is deleted, and somebody else's finalizer keeps it for some seconds: its name is not free yet."""

    id = "C6"
    name = "terminating"
    provocation = "what the client has made is deleted, and a finalizer of somebody else keeps it for some seconds"
    obligation = AlreadyThere.obligation
    advice = "an object with a deletionTimestamp still has its name: wait until it is gone, or try again with growing pauses"
    source = "Kubernetes docs, finalizers; API conventions, metadata (deletionTimestamp)"
    expected_seconds = 10.0

    FINALIZER = Finalizers.FINALIZER
    #: How many seconds the children are kept.
    SECONDS = 4.0

    def require(self, baseline: Baseline) -> None:
        require_named_children(baseline)

    def provoke(self, trial: Trial) -> None:
        subject = trial.copies[0]
        resources = require_repaired(trial, subject, named_children(trial.baseline))
        kept = [(one, child) for one in resources for child in children_of(trial.cluster, subject, one)]
        for resource, child in kept:
            add_finalizer(trial, resource, child, self.FINALIZER)
        trial.wait(trial.baseline.seconds_to_react(0.5))  # it may undo what others have changed
        for resource, child in kept:
            metadata = child["metadata"]
            with suppress(ApiError):
                trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)
        trial.wait(self.SECONDS)
        for resource, child in kept:
            drop_finalizers(trial, resource, child)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_write_backoff(trial)


class ChildrenOfTerminating(Rule):
    """A copy is being deleted, and somebody else's finalizer keeps it, as foreground deletion does; its children are deleted."""

    id = Finalizers.id
    name = "terminating"
    provocation = "an object is being deleted, somebody else's finalizer keeps it, and its children are deleted"
    obligation = "an object with a deletionTimestamp gets no new children: in a foreground deletion it waits until it has none"
    advice = "look at metadata.deletionTimestamp before anything else, and create nothing for an object that has one"
    source = "Kubernetes docs, garbage collection (foreground cascading deletion); kube-controller-manager (ReplicaSet)"
    watches = True
    expected_seconds = 15.0

    FINALIZER = Finalizers.FINALIZER
    #: How many times the children are deleted. They may be created again once: what tells of them may come first.
    TIMES = 2

    def __init__(self) -> None:
        self.mark = -1

    def require(self, baseline: Baseline) -> None:
        require_controlled_children(baseline)

    def provoke(self, trial: Trial) -> None:
        subject = trial.copies[0]
        mended = require_repaired(trial, subject, trial.baseline.reaction.children)
        trial.await_all()
        for resource, obj in own_objects(trial, subject):
            add_finalizer(trial, resource, obj, self.FINALIZER)
        await_quiet(trial, trial.trace.mark(), [subject.token])
        trial.delete(subject)
        for resource, obj in own_objects(trial, subject):
            await_delivery(trial, resource, [obj])
        await_quiet(trial, trial.trace.mark(), [subject.token])
        self.mark = trial.trace.mark()
        for _ in range(self.TIMES):
            for resource in mended:
                delete_children(trial, subject, resource)
            trial.wait(trial.baseline.seconds_to_react(1.0))
        for resource, obj in own_objects(trial, subject):
            drop_finalizers(trial, resource, obj)

    def find_failure(self, trial: Trial) -> Verdict | None:
        if self.mark < 0:
            return None
        subject, children = trial.copies[0], trial.baseline.reaction.children
        created = [call for call in trial.trace.since(self.mark) if call.status == 201 and call.mentions(subject.token)]
        for resource, count in children.items():
            made = [call for call in created if call.resource == resource]
            if len(made) > count:
                text = f"creates {resource} again for {subject.names()[0]}, which is being deleted: {len(made)} times"
                return Verdict.failure(text, *trial.excerpt(made))
        return None


RULES: tuple[type[Rule], ...] = (ChildTerminates, ChildrenOfTerminating)

"""Rules about objects that are being deleted, and exist until their finalizers are gone: a child, or an owner whose deletion
waits for its children (C4, C6)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fakekube.checker.judges import judge_write_backoff
from fakekube.checker.reaction import children_of
from fakekube.checker.rule import Rule
from fakekube.checker.rules.deletions import is_repaired, require_repaired
from fakekube.checker.rules.identity import AlreadyThere
from fakekube.checker.rules.lifecycles import Finalizers
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.writes import drop_finalizers, named_children, own_objects, require_children, require_named_children
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call
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
        resources = [one for one in named_children(trial.baseline) if is_repaired(trial, subject, one)]
        require_repaired(resources)
        kept = [(one, child) for one in resources for child in children_of(trial.cluster, subject, one)]
        for resource, child in kept:
            self._keep(trial, resource, child)
        trial.wait(trial.baseline.seconds_to_react(0.5))  # it may undo what others have changed
        for resource, child in kept:
            metadata = child["metadata"]
            with suppress(ApiError):
                trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)
        trial.wait(self.SECONDS)
        for resource, child in kept:
            drop_finalizers(trial, resource, child)

    def _keep(self, trial: Trial, resource: str, child: Object) -> None:
        """Adds a finalizer to a child."""
        metadata = child["metadata"]
        change = {"metadata": {"finalizers": [*(metadata.get("finalizers") or ()), self.FINALIZER]}}
        with suppress(ApiError):
            trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_write_backoff(trial)


class ForegroundDeletion(Rule):
    """A copy is deleted in the foreground: it exists until its children are gone."""

    id = "C4"
    name = "foreground"
    provocation = "an object is deleted in the foreground, so that it exists until its children are deleted"
    obligation = "an object that is being deleted gets no new children"
    advice = "look at metadata.deletionTimestamp before anything is created for an object"
    source = "Kubernetes docs, garbage collection (foreground cascading deletion)"
    expected_seconds = 6.0

    #: How many times all children may be created while the object is being deleted: the first ones are a race.
    TIMES = 2

    copy: Copy | None = None

    def require(self, baseline: Baseline) -> None:
        require_children(baseline)
        if not baseline.controls_children:
            raise NotExercised("no child refers to its owner, so that the deletion of the owner does not wait for it")

    def provoke(self, trial: Trial) -> None:
        subject = self.copy = trial.copies[0]
        subject.deleted = True
        for resource, obj in reversed(own_objects(trial, subject)):
            metadata = obj["metadata"]
            with suppress(ApiError):
                trial.cluster.delete(
                    resource, metadata["name"], namespace=metadata.get("namespace"), propagationPolicy="Foreground"
                )
        trial.await_until(lambda: not own_objects(trial, subject), trial.baseline.seconds_to_react(6.0))

    def find_failure(self, trial: Trial) -> Verdict | None:
        if self.copy is None or not own_objects(trial, self.copy):
            return None
        made = self._find_made(trial, self.copy)
        if len(made) <= self.TIMES * sum(trial.baseline.reaction.children.values()):
            return None
        return Verdict.failure(
            f"creates {made[0].collection} for {self.copy.names()[0]} again and again, which is being deleted and waits until "
            "its children are gone",
            *trial.excerpt(made),
        )

    @staticmethod
    def _find_made(trial: Trial, copy: Copy) -> list[Call]:
        """Returns the creates of children for a copy since its deletion."""
        children = trial.baseline.reaction.children
        return [
            call
            for call in trial.trace.since(trial.provoked_at)
            if call.is_write and call.status == 201 and call.collection in children and call.mentions(copy.token)
        ]


RULES = (ChildTerminates, ForegroundDeletion)

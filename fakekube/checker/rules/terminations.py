"""Rules about children that are being deleted, and exist until their finalizers are gone (C6)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fakekube.checker.pauses import judge_write_backoff
from fakekube.checker.reaction import children_of
from fakekube.checker.rule import Rule
from fakekube.checker.rules.deletions import is_repaired, require_repaired
from fakekube.checker.rules.identity import AlreadyThere
from fakekube.checker.rules.lifecycles import Finalizers
from fakekube.checker.writes import drop_finalizers, named_children, require_named_children
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from fakekube.base.objects import Object
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.checker.verdict import Verdict


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


RULES = (ChildTerminates,)

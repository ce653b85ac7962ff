"""One walk over the replicas of a StatefulSet: make what is missing, delete what is too many, replace what is outdated.

With podManagementPolicy OrderedReady the walk ends at the first pod that is not ready yet (or was just made or deleted):
so pods come one by one, from the lowest ordinal up, and go from the highest down. With Parallel it goes on. Either way
outdated pods are replaced one by one, from the highest ordinal down to the partition, each when all above it are available.

Specified by: pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fakekube.client import ApiError
from fakekube.controllers.pods import is_available, phase_of
from fakekube.controllers.statefulset.identity import (
    identity_matches,
    in_range,
    is_created,
    is_running_and_ready,
    is_unavailable,
    made_pod,
    ordinal_of,
    revision_of,
    start_ordinal,
    storage_matches,
)
from fakekube.controllers.statefulset.pod_control import StatefulPodControl

__all__ = ["Update"]

Object = dict[str, Any]


@dataclass(slots=True)
class Update:
    """The walk.

    Args:
        control: writes pods and claims.
        stateful_set: as it stands.
        current: the ControllerRevision that the pods below the partition have.
        update: the ControllerRevision of the present template.
        now: what availability is counted to.
    """

    control: StatefulPodControl
    stateful_set: Object
    current: Object
    update: Object
    now: datetime
    deleted_outdated: int = 0

    @property
    def _ordered(self) -> bool:
        return bool(self.stateful_set["spec"].get("podManagementPolicy") != "Parallel")

    @property
    def _min_ready_seconds(self) -> int:
        return self.stateful_set["spec"].get("minReadySeconds", 0)  # type: ignore[no-any-return]

    def run(self, pods: Iterable[Object]) -> tuple[Object, ApiError | None]:
        """Walk once.

        Args:
            pods: of the StatefulSet.

        Returns:
            The numbers of the status, and the error that ended the walk.
        """
        replicas, condemned = self._sorted(pods)
        present = [pod for pod in replicas if is_created(pod)]
        if "deletionTimestamp" in self.stateful_set["metadata"]:
            return self.counted([*present, *condemned]), None
        failure = None
        try:
            if not self._keep(replicas) and not self._remove(replicas, condemned):
                self._replace_outdated(replicas)
        except ApiError as error:
            failure = error
        status = self.counted([*replicas, *condemned])
        status["currentReplicas"] -= self.deleted_outdated
        return status, failure

    def _sorted(self, pods: Iterable[Object]) -> tuple[list[Object], list[Object]]:
        """The replicas by ordinal, where one is missing a new one; and the pods that are to go, the highest first."""
        pods = list(pods)
        by_ordinal = {ordinal_of(pod): pod for pod in pods if in_range(pod, self.stateful_set)}
        condemned = [pod for pod in pods if ordinal_of(pod) >= 0 and not in_range(pod, self.stateful_set)]
        start = start_ordinal(self.stateful_set)
        ordinals = range(start, start + self.stateful_set["spec"].get("replicas", 0))
        replicas = [by_ordinal.get(ordinal) or self._made(ordinal) for ordinal in ordinals]
        return replicas, sorted(condemned, key=ordinal_of, reverse=True)

    def _made(self, ordinal: int) -> Object:
        """A new pod of the present template or, below the partition, of the former one."""
        strategy = self.stateful_set["spec"].get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate")
        if rolling is not None:
            kept = rolling.get("partition", 0)
        elif strategy.get("type") == "RollingUpdate":
            kept = (self.stateful_set.get("status") or {}).get("currentReplicas", 0)
        else:
            kept = 0
        former = ordinal < start_ordinal(self.stateful_set) + kept
        revision = self.current if former else self.update
        template = {name: part for name, part in revision["data"]["spec"]["template"].items() if name != "$patch"}
        versioned = {**self.stateful_set, "spec": {**self.stateful_set["spec"], "template": template}}
        return made_pod(versioned, ordinal, revision["metadata"]["name"])

    # ---- the steps

    def _for_all(self, pods: list[Object], step: Callable[[int], bool]) -> bool:
        """Do a step for each pod. Ordered, the first that says so ends the walk; else only a failure does, after its batch."""
        if self._ordered:
            return any(step(index) for index in range(len(pods)))
        start, size = 0, 1
        while start < len(pods):
            failure = None
            for index in range(start, min(start + size, len(pods))):
                try:
                    step(index)
                except ApiError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            start, size = start + size, size * 2
        return False

    def _keep(self, replicas: list[Object]) -> bool:
        """Make and mend the replicas; is the walk over?"""
        return self._for_all(replicas, lambda index: self._keep_one(replicas, index))

    def _keep_one(self, replicas: list[Object], index: int) -> bool:
        pod, ordered = replicas[index], self._ordered
        if phase_of(pod) in ("Failed", "Succeeded"):
            if "deletionTimestamp" not in pod["metadata"]:
                self.control.delete(pod)
            return True
        if not is_created(pod):
            if self.control.claim_is_stale(pod):
                return True
            created = self.control.create(pod)
            if ordered:
                return True
            pod = replicas[index] = {**created, "status": {}}  # the walk counts what it saw before
        if phase_of(pod) == "Pending":
            self.control.create_missing_claims(pod)
        if ordered:
            available = is_available(pod, self._min_ready_seconds, self.now)
            if "deletionTimestamp" in pod["metadata"] or not is_running_and_ready(pod) or not available:
                return True
        matching = identity_matches(pod, self.stateful_set) and storage_matches(pod, self.stateful_set)
        if not matching or not self.control.claims_match(pod):
            self.control.update(pod)
        return False

    def _remove(self, replicas: list[Object], condemned: list[Object]) -> bool:
        """Delete the pods that are to go; is the walk over?"""
        first = self._first_unavailable(replicas, condemned)
        self._for_all(condemned, lambda index: self._mend_claims(condemned[index]))
        return self._for_all(condemned, lambda index: self._remove_one(condemned[index], first))

    def _first_unavailable(self, replicas: list[Object], condemned: list[Object]) -> Object | None:
        lowest_first = [*replicas, *reversed(condemned)]
        return next((pod for pod in lowest_first if is_unavailable(pod, self._min_ready_seconds, self.now)), None)

    def _mend_claims(self, pod: Object) -> bool:
        if not self.control.claims_match(pod):
            self.control.update_claims(pod)
        return False

    def _remove_one(self, pod: Object, first_unavailable: Object | None) -> bool:
        if "deletionTimestamp" in pod["metadata"]:
            return self._ordered
        available = is_running_and_ready(pod) and is_available(pod, self._min_ready_seconds, self.now)
        if self._ordered and not available and pod is not first_unavailable:
            return True
        self.control.delete(pod)
        return True

    def _replace_outdated(self, replicas: list[Object]) -> None:
        """Delete the highest outdated pod, if all above it are available."""
        strategy = self.stateful_set["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        lowest = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for pod in reversed(replicas[lowest:]):
            if revision_of(pod) != self.update["metadata"]["name"] and "deletionTimestamp" not in pod["metadata"]:
                self.control.delete(pod)
                self.deleted_outdated = 1
                return
            if is_unavailable(pod, self._min_ready_seconds, self.now):
                return

    # ---- status

    def counted(self, pods: Iterable[Object]) -> Object:
        """The numbers of the status."""
        created = [pod for pod in pods if is_created(pod)]
        ready = [pod for pod in created if is_running_and_ready(pod)]
        revisions = [revision_of(pod) for pod in created if "deletionTimestamp" not in pod["metadata"]]
        return {
            "replicas": len(created),
            "readyReplicas": len(ready),
            "availableReplicas": sum(is_available(pod, self._min_ready_seconds, self.now) for pod in ready),
            "currentReplicas": revisions.count(self.current["metadata"]["name"]),
            "updatedReplicas": revisions.count(self.update["metadata"]["name"]),
        }

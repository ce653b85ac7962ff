"""What workload controllers ask of pods, and how they make and delete them.

A pod is *active* while it has not ended and is not being deleted, *ready* when its Ready condition is True, *available* when
it has been ready for minReadySeconds. The order in which surplus pods are deleted is a comparison of many aspects; where
ages decide they do so by powers of two, so that of pods that are about as old a random one goes.

Specified by: pkg/controller/controller_utils.go (ActivePodsWithRanks, FindMinNextPodAvailabilityCheck, RealPodControl),
pkg/api/v1/pod/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cmp_to_key
from math import log2
from typing import Any

from fakekube.client import ApiError, Client
from fakekube.controllers.owners import controller_reference

__all__ = [
    "PodControl",
    "count_ready",
    "deletion_order",
    "is_active",
    "is_available",
    "is_ready",
    "is_terminal",
    "is_terminating",
    "moment",
    "namespace_is_terminating",
    "next_availability",
    "pod_from_template",
]

Object = dict[str, Any]

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_MAX_NAME = 253
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_MAX_INT32 = 2**31 - 1


def moment(text: str) -> datetime:
    """A time as objects hold it."""
    return datetime.fromisoformat(text).astimezone(UTC)


# ---------------------------------------------------------------- states


def ready_condition(pod: Object) -> Mapping[str, Any] | None:
    """The condition of type Ready."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return condition  # type: ignore[no-any-return]
    return None


def is_ready(pod: Object) -> bool:
    """Is the Ready condition True?"""
    condition = ready_condition(pod)
    return condition is not None and condition.get("status") == "True"


def is_available(pod: Object, min_ready_seconds: int, now: datetime) -> bool:
    """Has it been ready for so many seconds?"""
    condition = ready_condition(pod)
    if condition is None or condition.get("status") != "True":
        return False
    if not min_ready_seconds:
        return True
    since = condition.get("lastTransitionTime")
    return since is not None and moment(since) + timedelta(seconds=min_ready_seconds) <= now


def phase_of(pod: Object) -> str:
    """status.phase, "" if it is absent."""
    return pod.get("status", {}).get("phase", "")  # type: ignore[no-any-return]


def is_terminal(pod: Object) -> bool:
    """Has it failed or succeeded?"""
    return phase_of(pod) in ("Failed", "Succeeded")


def is_active(pod: Object) -> bool:
    """Neither ended nor being deleted."""
    return "deletionTimestamp" not in pod["metadata"] and not is_terminal(pod)


def is_terminating(pod: Object) -> bool:
    """Being deleted, and not ended yet."""
    return "deletionTimestamp" in pod["metadata"] and not is_terminal(pod)


def count_ready(pods: Iterable[Object], min_ready_seconds: int, now: datetime) -> tuple[int, int]:
    """How many are ready, and how many available."""
    ready = [pod for pod in pods if is_ready(pod)]
    if not min_ready_seconds:
        return len(ready), len(ready)
    return len(ready), sum(is_available(pod, min_ready_seconds, now) for pod in ready)


def next_availability(pods: Iterable[Object], min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until the next of the ready pods becomes available; None if time makes none available."""
    waits = []
    for pod in pods:
        condition = ready_condition(pod)
        if condition is None or condition.get("status") != "True" or not condition.get("lastTransitionTime"):
            continue
        wait = moment(condition["lastTransitionTime"]) + timedelta(seconds=min_ready_seconds) - now
        if wait > timedelta():
            waits.append(wait.total_seconds())
    return min(waits, default=None)


# ---------------------------------------------------------------- which pods are deleted first


def deletion_order(pods: Sequence[Object], ranks: Sequence[int], now: datetime) -> list[Object]:
    """The pods, those that are to be deleted first in front.

    Args:
        pods: active pods of one controller.
        ranks: for each pod, how many related pods are on its node: of equal pods the one on the fuller node goes first.
        now: what ages are counted to.
    """
    aspects = [_Aspects.of(pod, rank, now) for pod, rank in zip(pods, ranks, strict=True)]
    aspects.sort(key=cmp_to_key(_compare))
    return [one.pod for one in aspects]


@dataclass(slots=True)
class _Aspects:
    """What decides about a pod. The fields of `first` are compared in order; the smaller goes first."""

    pod: Object
    first: tuple[bool, int, bool, int, int]
    ready_age: float | None
    restarts: tuple[int, int]
    age: float | None
    uid: str

    @classmethod
    def of(cls, pod: Object, rank: int, now: datetime) -> _Aspects:
        condition = ready_condition(pod)
        ready = condition is not None and condition.get("status") == "True"
        since = condition.get("lastTransitionTime") if condition is not None and ready else None
        created = pod["metadata"].get("creationTimestamp")
        return cls(
            pod,
            (bool(pod["spec"].get("nodeName")), _PHASES.get(phase_of(pod), 0), ready, _deletion_cost(pod), -rank),
            _seconds(since, now),
            _restarts(pod),
            _seconds(created, now),
            pod["metadata"]["uid"],
        )


def _compare(one: _Aspects, other: _Aspects) -> int:
    if one.first != other.first:
        return -1 if one.first < other.first else 1
    if one.first[2] and one.ready_age != other.ready_age:
        return _compare_ages(one.ready_age, other.ready_age, one.uid, other.uid)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.age != other.age:
        return _compare_ages(one.age, other.age, one.uid, other.uid)
    return 0


def _compare_ages(one: float | None, other: float | None, uid: str, other_uid: str) -> int:
    """The pod without a time goes first, then the one whose age has the smaller power of two, then the smaller uid."""
    if one is None or other is None:
        return -1 if one is None else 1
    difference = _power(one) - _power(other)
    if difference:
        return difference
    return -1 if uid < other_uid else 1


def _power(seconds: float) -> int:
    return int(log2(seconds * 1e9)) if seconds > 0 else -1


def _seconds(since: str | None, now: datetime) -> float | None:
    return None if since is None else (now - moment(since)).total_seconds()


def _deletion_cost(pod: Object) -> int:
    """The cost that an annotation gives; 0 where it is absent or malformed (a sign `+` and leading zeros are)."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        cost = int(text)
    except ValueError:
        return 0
    well_formed = str(cost) == text and -_MAX_INT32 - 1 <= cost <= _MAX_INT32
    return cost if well_formed else 0


def _restarts(pod: Object) -> tuple[int, int]:
    """The most restarts of a container, and of a sidecar."""
    status = pod.get("status", {})
    containers = max((one.get("restartCount", 0) for one in status.get("containerStatuses") or ()), default=0)
    names = {one["name"] for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"}
    sidecars = [one.get("restartCount", 0) for one in status.get("initContainerStatuses") or () if one["name"] in names]
    return containers, max(sidecars, default=0)


# ---------------------------------------------------------------- making and deleting


def pod_from_template(template: Object, owner: Object) -> Object:
    """A pod of a template that the owner controls, without a name."""
    metadata = template.get("metadata") or {}
    name = owner["metadata"]["name"]
    prefix = f"{name}-" if len(name) < _MAX_NAME else name
    made = {"generateName": prefix, "namespace": owner["metadata"]["namespace"]}
    for field in ("labels", "annotations"):
        if metadata.get(field):
            made[field] = dict(metadata[field])
    made["ownerReferences"] = [controller_reference(owner)]
    if metadata.get("finalizers"):
        made["finalizers"] = list(metadata["finalizers"])
    return {"kind": "Pod", "apiVersion": "v1", "metadata": made, "spec": template.get("spec") or {}}


def namespace_is_terminating(error: ApiError) -> bool:
    """Was a creation refused because the namespace is being deleted?"""
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


@dataclass(slots=True)
class PodControl:
    """Creates and deletes pods for a controller, with the events that say so.

    Args:
        client: writes.
        recorder: records the events, about the owner of the pods.
    """

    client: Client
    recorder: Any

    def create(self, pod: Object, owner: Object) -> Object:
        """Raises ApiError, after an event unless the namespace is being deleted."""
        try:
            made = self.client.create(pod)
        except ApiError as error:
            if not namespace_is_terminating(error):
                self.recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self.recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
        return made

    def delete(self, pod: Object, owner: Object) -> None:
        """Raises ApiError, after an event unless the pod is gone."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            self.client.delete("pods", name, namespace=namespace)
        except ApiError as error:
            if error.code != 404:
                self.recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise
        self.recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

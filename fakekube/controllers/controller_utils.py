"""Functions that workload controllers share: states of pods, the order of their deletion, creation and deletion.

A pod is *active* if it has not terminated and is not being deleted, *ready* if its condition Ready is True, and *available*
if it has been ready for minReadySeconds. `sort_for_deletion` compares ages by powers of two, so that among pods of about the
same age the one to delete is random.

Specified by: pkg/controller/controller_utils.go (ActivePodsWithRanks, FindMinNextPodAvailabilityCheck, RealPodControl),
pkg/api/v1/pod/util.go,
k8s.io/apimachinery/pkg/util/intstr/intstr.go (GetScaledValueFromIntOrPercent).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cmp_to_key
from math import log2
from typing import Any, Final

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import POD_DELETION_COST
from fakekube.base.golang.strconv import MAX_INT32, parse_int, parse_uint
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.informers import new_controller_ref
from fakekube.controllers.recorder import MAX_NAME

POD_PREFIX: Final = "/pod/"

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def parse_time(text: str) -> datetime:
    """Parses a timestamp of an object."""
    return datetime.fromisoformat(text).astimezone(UTC)


def get_pod_ready_condition(pod: StoredObject) -> Mapping[str, Any] | None:
    """Returns the condition Ready; None if there is none."""
    return find_condition(pod.get("status") or {}, "Ready")


def is_pod_ready(pod: StoredObject) -> bool:
    """Reports whether the condition Ready is True."""
    condition = get_pod_ready_condition(pod)
    return condition is not None and condition.get("status") == "True"


def is_pod_available(pod: Object, min_ready_seconds: int, now: datetime) -> bool:
    """Reports whether the pod has been ready for so many seconds."""
    condition = get_pod_ready_condition(pod)
    if condition is None or condition.get("status") != "True":
        return False
    if not min_ready_seconds:
        return True
    since = condition.get("lastTransitionTime")
    return since is not None and parse_time(since) + timedelta(seconds=min_ready_seconds) <= now


def phase_of(pod: StoredObject) -> str:
    """Returns status.phase; "" if it is absent."""
    return pod.get("status", {}).get("phase", "")  # type: ignore[no-any-return]


def is_pod_terminal(pod: StoredObject) -> bool:
    """Reports whether the pod has failed or succeeded."""
    return phase_of(pod) in ("Failed", "Succeeded")


def is_pod_active(pod: Object) -> bool:
    """Reports whether the pod has not terminated and is not being deleted."""
    return "deletionTimestamp" not in pod["metadata"] and not is_pod_terminal(pod)


def is_pod_terminating(pod: Object) -> bool:
    """Reports whether the pod is being deleted and has not terminated yet."""
    return "deletionTimestamp" in pod["metadata"] and not is_pod_terminal(pod)


def count_ready(pods: Iterable[Object], min_ready_seconds: int, now: datetime) -> tuple[int, int]:
    """Returns the numbers of ready and of available pods."""
    ready = [pod for pod in pods if is_pod_ready(pod)]
    if not min_ready_seconds:
        return len(ready), len(ready)
    return len(ready), sum(is_pod_available(pod, min_ready_seconds, now) for pod in ready)


def find_min_next_pod_availability_check(pods: Iterable[Object], min_ready_seconds: int, now: datetime) -> float | None:
    """Returns the seconds until the next ready pod becomes available; None if none will."""
    waits = []
    for pod in pods:
        condition = get_pod_ready_condition(pod)
        if condition is None or condition.get("status") != "True" or not condition.get("lastTransitionTime"):
            continue
        wait = parse_time(condition["lastTransitionTime"]) + timedelta(seconds=min_ready_seconds) - now
        if wait > timedelta():
            waits.append(wait.total_seconds())
    return min(waits, default=None)


def sort_for_deletion(pods: Sequence[Object], ranks: Sequence[int], now: datetime) -> list[Object]:
    """Sorts pods so that those to delete come first (ActivePodsWithRanks).

    Args:
        pods: active pods of one controller.
        ranks: for each pod the number of related pods on its node; of otherwise equal pods the one with the higher rank
            is first.
        now: the time from which ages are calculated.
    """
    ranked = [_RankedPod.rank(pod, rank, now) for pod, rank in zip(pods, ranks, strict=True)]
    ranked.sort(key=cmp_to_key(_compare_for_deletion))
    return [one.pod for one in ranked]


@dataclass(slots=True)
class _RankedPod:
    """What the order depends on. The fields of `first` are compared in order; the smaller comes first."""

    pod: Object
    first: tuple[bool, int, bool, int, int]
    ready_age: float | None
    restarts: tuple[int, int]
    age: float | None
    uid: str

    @classmethod
    def rank(cls, pod: Object, rank: int, now: datetime) -> _RankedPod:
        condition = get_pod_ready_condition(pod)
        ready = condition is not None and condition.get("status") == "True"
        since = condition.get("lastTransitionTime") if condition is not None and ready else None
        created = pod["metadata"].get("creationTimestamp")
        return cls(
            pod,
            (bool(pod["spec"].get("nodeName")), _PHASES.get(phase_of(pod), 0), ready, _deletion_cost(pod), -rank),
            _seconds_since(since, now),
            _max_container_restarts(pod),
            _seconds_since(created, now),
            pod["metadata"]["uid"],
        )


def _compare_for_deletion(one: _RankedPod, other: _RankedPod) -> int:
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
    """Compares ages: no time is first, then the age with the smaller power of two, then the smaller uid."""
    if one is None or other is None:
        return -1 if one is None else 1
    difference = _logarithmic_rank(one) - _logarithmic_rank(other)
    if difference:
        return difference
    return -1 if uid < other_uid else 1


def _logarithmic_rank(seconds: float) -> int:
    return int(log2(seconds * 1e9)) if seconds > 0 else -1


def _seconds_since(since: str | None, now: datetime) -> float | None:
    return None if since is None else (now - parse_time(since)).total_seconds()


def _deletion_cost(pod: Object) -> int:
    """Returns the cost in the annotation; 0 if it is absent or malformed, as with a sign `+` or leading zeros."""
    text = (pod["metadata"].get("annotations") or {}).get(POD_DELETION_COST, "0")
    try:
        cost = int(text)
    except ValueError:
        return 0
    well_formed = str(cost) == text and -MAX_INT32 - 1 <= cost <= MAX_INT32
    return cost if well_formed else 0


def _max_container_restarts(pod: Object) -> tuple[int, int]:
    """Returns the highest number of restarts of a container, and of a sidecar."""
    status = pod.get("status", {})
    containers = max((one.get("restartCount", 0) for one in status.get("containerStatuses") or ()), default=0)
    names = {one["name"] for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"}
    sidecars = [one.get("restartCount", 0) for one in status.get("initContainerStatuses") or () if one["name"] in names]
    return containers, max(sidecars, default=0)


def get_pod_from_template(template: Object, owner: Object) -> Object:
    """Returns a new pod of a template, controlled by the owner and with generateName (GetPodFromTemplate)."""
    metadata = template.get("metadata") or {}
    name = owner["metadata"]["name"]
    prefix = f"{name}-" if len(name) < MAX_NAME else name
    made = {"generateName": prefix, "namespace": owner["metadata"]["namespace"]}
    for field in ("labels", "annotations"):
        if metadata.get(field):
            made[field] = dict(metadata[field])
    made["ownerReferences"] = [new_controller_ref(owner)]
    if metadata.get("finalizers"):
        made["finalizers"] = list(metadata["finalizers"])
    return {"kind": "Pod", "apiVersion": "v1", "metadata": made, "spec": template.get("spec") or {}}


def is_namespace_terminating(error: ApiError) -> bool:
    """Reports whether a creation was rejected because the namespace is being deleted."""
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


@dataclass(slots=True)
class PodControl:
    """Creates and deletes pods for a controller, and records events about the owner (RealPodControl).

    Args:
        client: the client of the controller.
        recorder: the recorder of the controller.
    """

    client: Client
    recorder: Any

    def create(self, pod: Object, owner: Object) -> Object:
        """Creates a pod. Raises ApiError, after an event unless the namespace is being deleted."""
        try:
            created = self.client.create(pod)
        except ApiError as error:
            if not is_namespace_terminating(error):
                self.recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self.recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")
        return created

    def delete(self, pod: Object, owner: Object) -> None:
        """Deletes a pod. Raises ApiError, after an event unless the pod is not found."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            self.client.delete("pods", name, namespace=namespace)
        except ApiError as error:
            if error.code != 404:
                self.recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise
        self.recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")


def get_scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Returns the number that an IntOrString stands for (GetScaledValueFromIntOrPercent).

    Args:
        value: a number, or a percentage such as "25%"; None stands for 0.
        total: the number that a percentage refers to.
        round_up: whether a fraction is rounded up or down.

    Raises:
        ValueError: the text is not a percentage.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    share = parse_int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100


def get_non_negative_annotation(obj: StoredObject, name: str) -> int | None:
    """Returns the number from 0 to MAX_INT32 in an annotation; None if it is absent or malformed."""
    try:
        number = parse_uint((obj["metadata"].get("annotations") or {}).get(name, ""))
    except ValueError:
        return None
    return number if number <= MAX_INT32 else None


# --- Finalizers that protect objects which others use ----------------------------------------------------------------
# Specified by: pkg/controller/volume/protectionutil/utils.go.


def is_deletion_candidate(obj: StoredObject, finalizer: str) -> bool:
    """Reports whether the object is being deleted and has the finalizer (IsDeletionCandidate)."""
    metadata = obj["metadata"]
    return "deletionTimestamp" in metadata and finalizer in metadata.get("finalizers", ())


def needs_finalizer(obj: StoredObject, finalizer: str) -> bool:
    """Reports whether the object is not being deleted and lacks the finalizer (NeedToAddFinalizer)."""
    metadata = obj["metadata"]
    return "deletionTimestamp" not in metadata and finalizer not in metadata.get("finalizers", ())


def needs_protection_sync(obj: StoredObject, finalizer: str) -> bool:
    """Reports whether the finalizer has to be added, or may have to be removed."""
    return is_deletion_candidate(obj, finalizer) or needs_finalizer(obj, finalizer)


def add_finalizer(obj: Object, finalizer: str) -> Object:
    """Returns the object with a finalizer."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "finalizers": [*metadata.get("finalizers", ()), finalizer]}}


def remove_finalizer(obj: Object, finalizer: str) -> Object:
    """Returns the object without a finalizer."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "finalizers": [one for one in metadata["finalizers"] if one != finalizer]}}

"""What the scheduler tells of pods: their status, and events in events.k8s.io/v1.

The status is written with strategic merge patches.

The recorder aggregates equal events into a series. An event is equal to an earlier one if all of its fields are, and the
resourceVersion of the object. The second one adds a series to the first; later ones are counted in memory only.

Specified by: pkg/scheduler/util/utils.go (PatchPodStatus), pkg/api/v1/pod/util.go (UpdatePodCondition),
k8s.io/client-go/tools/events/{event_recorder,event_broadcaster}.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apis.validation.conditions import find_condition
from fakekube.base.clock import Clock
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.objects import Object, StoredObject
from fakekube.controllers.recorder import generate_event_name, get_reference

__all__ = ["SeriesRecorder", "condition_patch", "patch_status"]


def condition_patch(pod: StoredObject, type_: str, content: tuple[str, str, str], now: str) -> dict[str, Any] | None:
    """Returns a patch of the status that sets a condition; None if the pod has the condition already.

    Args:
        pod: the pod.
        type_: the type of the condition.
        content: its status, reason and message.
        now: the time of a transition.
    """
    status, reason, message = content
    old = find_condition(pod.get("status") or {}, type_)
    since = now
    if old is not None and old.get("status") == status:
        since = old.get("lastTransitionTime") or now
    condition = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    if old is not None and all(old.get(name) == value for name, value in condition.items()):
        return None
    return {"conditions": [{"lastProbeTime": None, **condition}]}


def patch_status(client: Client, pod: StoredObject, status: Mapping[str, Any]) -> None:
    """Patches the status of a pod, if its uid is still the same. Raises ApiError."""
    metadata = pod["metadata"]
    body = {"metadata": {"uid": metadata["uid"]}, "status": status}
    client.strategic_patch("pods", metadata["name"], body, namespace=metadata["namespace"], subresource="status")


#: Entries of the cache.
CACHED: Final = 4096
#: Seconds after the last event of a series at which it ends (finishTime).
SERIES_ENDS: Final = 360.0
#: Characters of a note (noteLengthLimit).
NOTE_LIMIT: Final = 1024
ELLIPSIS: Final = " ..."


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    last: float


class SeriesRecorder:
    """Writes the events of one component.

    Args:
        client: the client of the component.
        clock: the clock of the cluster.
        controller: the reporting controller, e.g. "default-scheduler".
        instance: the reporting instance.
    """

    def __init__(self, client: Client, clock: Clock, controller: str, instance: str) -> None:
        self._client, self._clock = client, clock
        self._controller, self._instance = controller, instance
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()

    def event(
        self, regarding: Object, event_type: str, reason: str, action: str, note: str, *, related: Object | None = None
    ) -> None:
        """Records an event about an object. Errors of the API server are ignored."""
        if len(note) > NOTE_LIMIT:
            note = note[: NOTE_LIMIT - len(ELLIPSIS)] + ELLIPSIS
        about = get_reference(regarding)
        key = (event_type, action, reason, note, *about.values())
        now = self._clock.monotonic()
        known = self._series.get(key)
        if known is not None and now - known.last <= SERIES_ENDS:
            self._increment_series(known, now)
            return
        name = generate_event_name(about["name"], self._clock.now())
        namespace = about.get("namespace") or "default"
        event = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": self._micro_time_now(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "regarding": about,
            "note": note,
            "type": event_type,
        }
        if related is not None:
            event["related"] = get_reference(related)
        self._series[key] = _Series(name, namespace, 1, now)
        if len(self._series) > CACHED:
            self._series.popitem(last=False)
        try:
            self._client.create(event, namespace=namespace)
        except ApiError:
            return

    def _increment_series(self, series: _Series, now: float) -> None:
        series.count += 1
        series.last = now
        if series.count != 2:
            return
        patch = {"series": {"count": 2, "lastObservedTime": self._micro_time_now()}}
        try:
            self._client.patch("events.events.k8s.io", series.name, patch, namespace=series.namespace)
        except ApiError:
            return

    def _micro_time_now(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

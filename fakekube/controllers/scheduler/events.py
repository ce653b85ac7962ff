"""The recorder of events in events.k8s.io/v1, which aggregates equal events into a series.

An event is equal to an earlier one if all of its fields are, and the resourceVersion of the object. The second one adds a series
to the first; later ones are counted in memory only.

Specified by: k8s.io/client-go/tools/events/{event_recorder,event_broadcaster}.go.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from fakekube.base.clock import Clock
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.objects import Object
from fakekube.controllers.recorder import generate_event_name, get_reference

__all__ = ["SeriesRecorder"]


#: Entries of the cache.
CACHED = 4096
#: Seconds after the last event of a series at which it ends (finishTime).
SERIES_ENDS = 360.0
#: Characters of a note (noteLengthLimit).
NOTE_LIMIT = 1024
ELLIPSIS = " ..."


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    last: float


class SeriesRecorder:
    """Writes the events of one component.

    Args:
        client: The client of the component.
        clock: The clock of the cluster.
        controller: The reporting controller, e.g. "default-scheduler".
        instance: The reporting instance.
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
            self._increment(known, now)
            return
        name = generate_event_name(about["name"], self._clock.now())
        namespace = about.get("namespace") or "default"
        event = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": self._now(),
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

    def _increment(self, series: _Series, now: float) -> None:
        series.count += 1
        series.last = now
        if series.count != 2:
            return
        patch = {"series": {"count": 2, "lastObservedTime": self._now()}}
        try:
            self._client.patch("events.events.k8s.io", series.name, patch, namespace=series.namespace)
        except ApiError:
            return

    def _now(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

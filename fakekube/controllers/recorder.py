"""Events, as controllers write them: repeated ones are counted up, similar ones gathered, too many dropped.

* An event equal to a recent one raises that one's count.
* After ten events within ten minutes that differ only in their message, further ones become one event with the message
  "(combined from similar events): …", whose count is raised.
* Of one source, object and type, 25 events pass in a burst, then one in five minutes; what only raises a count counts,
  too.

What the API refuses (an event in a namespace that ends) is dropped.

Specified by: k8s.io/client-go/tools/record (event.go, events_cache.go).
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fakekube.client import ApiError, Client
from fakekube.clock import Clock

__all__ = ["Recorder", "event_name", "reference"]

Object = dict[str, Any]

CACHED = 4096
SIMILAR = 10
SIMILAR_SECONDS = 600.0
BURST = 25.0
REFILL_PER_SECOND = 1 / 300.0
ROUNDING = 1e-6
MAX_NAME = 253
COMBINED = "(combined from similar events): "

_number = itertools.count()
_SUBJECT = ("kind", "namespace", "name", "uid", "apiVersion")
_REFERENCE = (*_SUBJECT, "resourceVersion", "fieldPath")


def reference(obj: Object) -> dict[str, str]:
    """The ObjectReference to an object (tools/reference.GetReference)."""
    metadata = obj["metadata"]
    found = {
        "kind": obj["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "apiVersion": obj["apiVersion"],
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
    return {name: value for name, value in found.items() if value}


@dataclass(slots=True)
class _Similar:
    """The messages of events that differ in nothing else."""

    messages: set[str] = field(default_factory=set)
    last: float = 0.0


@dataclass(slots=True)
class _Logged:
    """An event that was written."""

    count: int = 0
    first: str = ""
    name: str = ""


@dataclass(slots=True)
class _Bucket:
    """The tokens of one source for one object."""

    tokens: float
    at: float


class Recorder:
    """Writes the events of one component.

    Args:
        client: of the component.
        clock: of the cluster.
        component: who says it, e.g. "replicaset-controller".
    """

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._logged: OrderedDict[tuple[str, ...], _Logged] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, ...], _Bucket] = OrderedDict()

    def event(self, obj: Object, event_type: str, reason: str, message: str, *, host: str = "") -> None:
        """Say something about an object.

        Args:
            obj: with kind and apiVersion, or a reference to an object (`reference`, with a fieldPath if need be).
            event_type: Normal or Warning.
            reason, message: as the event shows them.
            host: of the source.
        """
        involved = reference(obj) if "metadata" in obj else {name: obj[name] for name in _REFERENCE if name in obj}
        now = self._clock.now()
        subject = (self._component, host, *(involved.get(name, "") for name in _SUBJECT), event_type)
        group = (*subject, reason)
        combined = self._is_one_of_many(group, message)
        if combined:
            message = COMBINED + message
        whole = (*group, involved.get("fieldPath", ""), "" if combined else message)
        logged = _recent(self._logged, whole, _Logged)
        logged.count += 1
        if self._passes(subject):
            time = self._client.now()
            logged.first = logged.first or time
            self._write(
                logged,
                {
                    "kind": "Event",
                    "apiVersion": "v1",
                    "metadata": {"name": event_name(involved["name"], now), "namespace": involved.get("namespace") or "default"},
                    "involvedObject": involved,
                    "reason": reason,
                    "message": message,
                    "type": event_type,
                    "source": {"component": self._component, **({"host": host} if host else {})},
                    "firstTimestamp": logged.first,
                    "lastTimestamp": time,
                    "count": logged.count,
                    "reportingComponent": "" if combined else self._component,
                    "reportingInstance": host,
                },
            )

    def _is_one_of_many(self, group: tuple[str, ...], message: str) -> bool:
        now = self._clock.monotonic()
        similar = _recent(self._similar, group, _Similar)
        if now - similar.last > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.messages.add(message)
        similar.last = now
        if len(similar.messages) < SIMILAR:
            return False
        similar.messages.pop()
        return True

    def _passes(self, subject: tuple[str, ...]) -> bool:
        now = self._clock.monotonic()
        bucket = _recent(self._buckets, subject, lambda: _Bucket(BURST, now))
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.at) * REFILL_PER_SECOND)
        bucket.at = now
        if bucket.tokens < 1 - ROUNDING:
            return False
        bucket.tokens -= 1
        return True

    def _write(self, logged: _Logged, event: Object) -> None:
        namespace = event["metadata"]["namespace"]
        try:
            if logged.name:
                patch = {name: event[name] for name in ("count", "lastTimestamp", "message")}
                self._client.patch("events", logged.name, patch, namespace=namespace)
                return
        except ApiError as error:
            if error.code != 404:
                return
        logged.name = event["metadata"]["name"]
        try:
            self._client.create(event, namespace=namespace)
        except ApiError:
            return


def event_name(subject: str, now: datetime) -> str:
    """GenerateEventName: the time in nanoseconds, and a number that tells events of one moment apart."""
    nanoseconds = int(now.timestamp() * 1_000_000) * 1000 + next(_number) % 1000
    return f"{subject[: MAX_NAME - 17]}.{nanoseconds:x}"


def _recent(cache: OrderedDict[tuple[str, ...], Any], key: tuple[str, ...], make: Any) -> Any:
    """The entry of a cache that keeps what was asked for last."""
    found = cache.get(key)
    if found is None:
        found = cache[key] = make()
        if len(cache) > CACHED:
            cache.popitem(last=False)
    else:
        cache.move_to_end(key)
    return found

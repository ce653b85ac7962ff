"""The event recorder of controllers: counts repeated events, aggregates similar ones, and limits the rate.

* An event equal to a recent one increments the count of that one.
* After ten events within ten minutes that differ in the message only, further ones become a single event with the message
  "(combined from similar events): …" and a count.
* For each source, object and type, a burst of 25 events is written, then one every five minutes. Increments of a count are
  limited, too.

Events that the API server rejects (for example in a terminating namespace) are dropped. What is known of an object's events goes
with the object; a real recorder keeps it until 4,096 other entries have replaced it.

Specified by: k8s.io/client-go/tools/record (event.go, events_cache.go).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from fakekube.base.clock import Clock
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError, Client

#: The number of objects whose events are known, and the entries of each of their caches (maxLruCacheEntries).
CACHED: Final = 4096
#: Similar events after which further ones are combined (defaultAggregateMaxEvents).
SIMILAR: Final = 10
#: Seconds (defaultAggregateIntervalInSeconds).
SIMILAR_SECONDS: Final = 600.0
#: Events of one source for one object (defaultSpamBurst, defaultSpamQPS).
BURST: Final = 25.0
REFILL_PER_SECOND: Final = 1 / 300.0
#: What tokens may be short of one because of the rounding of floats.
ROUNDING: Final = 1e-6
MAX_NAME: Final = 253
COMBINED: Final = "(combined from similar events): "

T = TypeVar("T")

_SUBJECT: Final = ("kind", "namespace", "name", "uid", "apiVersion")
_REFERENCE: Final = (*_SUBJECT, "resourceVersion", "fieldPath")


def get_reference(obj: StoredObject) -> dict[str, str]:
    """Returns the ObjectReference of an object (tools/reference.GetReference)."""
    metadata = obj["metadata"]
    fields = {
        "kind": obj["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "apiVersion": obj["apiVersion"],
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
    return {name: value for name, value in fields.items() if value}


@dataclass(slots=True)
class _AggregateRecord:
    """The messages of events that are equal otherwise."""

    messages: set[str] = field(default_factory=set)
    last: float = 0.0


@dataclass(slots=True)
class _EventLog:
    """An event that was written."""

    count: int = 0
    first: str = ""
    name: str = ""


@dataclass(slots=True)
class _TokenBucket:
    """The tokens of one source for one object."""

    tokens: float
    at: float


_Entries = OrderedDict[tuple[str, ...], Any]


@dataclass(slots=True)
class _Subject:
    """What is known of the events of one object."""

    aggregates: _Entries = field(default_factory=OrderedDict)
    """The `_AggregateRecord` of similar events."""
    logs: _Entries = field(default_factory=OrderedDict)
    """The `_EventLog` of equal events."""
    buckets: _Entries = field(default_factory=OrderedDict)
    """The `_TokenBucket` of a source and a type."""


class Recorder:
    """Writes the events of one component.

    Args:
        client: the client of the component.
        clock: the clock of the cluster.
        component: the source of the events, e.g. "replicaset-controller".
        numbers: see `Context.event_numbers`.
    """

    def __init__(self, client: Client, clock: Clock, component: str, numbers: Iterator[int]) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._numbers = numbers
        self._subjects: OrderedDict[tuple[str, ...], _Subject] = OrderedDict()

    def event(self, obj: StoredObject, event_type: str, reason: str, message: str, *, host: str = "") -> None:
        """Records an event about an object.

        Args:
            obj: the object, with kind and apiVersion, or a reference to it (see `get_reference`), which may have a fieldPath.
            event_type: Normal or Warning.
            reason: the reason, in CamelCase.
            message: the message.
            host: the host of the source.
        """
        involved = get_reference(obj) if "metadata" in obj else {name: obj[name] for name in _REFERENCE if name in obj}
        now = self._clock.now()
        subject = get_or_create_recent(self._subjects, subject_of(involved), _Subject)
        combined = self._should_aggregate(subject, (host, event_type, reason), message)
        if combined:
            message = COMBINED + message
        event_key = (host, event_type, reason, involved.get("fieldPath", ""), "" if combined else message)
        logged = get_or_create_recent(subject.logs, event_key, _EventLog)
        logged.count += 1
        if self._take_token(subject, (host, event_type)):
            time = self._client.now()
            logged.first = logged.first or time
            self._write_event(
                logged,
                {
                    "kind": "Event",
                    "apiVersion": "v1",
                    "metadata": {
                        "name": generate_event_name(involved["name"], now, self._numbers),
                        "namespace": involved.get("namespace") or "default",
                    },
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

    def forget(self, obj: StoredObject) -> None:
        """Forgets the events of an object that was deleted."""
        self._subjects.pop(subject_of(get_reference(obj)), None)

    def _should_aggregate(self, subject: _Subject, key: tuple[str, ...], message: str) -> bool:
        """Counts a message. Returns whether the event is to be combined with similar ones (EventAggregator)."""
        now = self._clock.monotonic()
        similar = get_or_create_recent(subject.aggregates, key, _AggregateRecord)
        if now - similar.last > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.messages.add(message)
        similar.last = now
        if len(similar.messages) < SIMILAR:
            return False
        similar.messages.pop()
        return True

    def _take_token(self, subject: _Subject, key: tuple[str, ...]) -> bool:
        """Reports whether the rate limit admits an event (EventSourceObjectSpamFilter)."""
        now = self._clock.monotonic()
        bucket = get_or_create_recent(subject.buckets, key, lambda: _TokenBucket(BURST, now))
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.at) * REFILL_PER_SECOND)
        bucket.at = now
        if bucket.tokens < 1 - ROUNDING:
            return False
        bucket.tokens -= 1
        return True

    def _write_event(self, logged: _EventLog, event: Object) -> None:
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


def generate_event_name(subject: str, now: datetime, numbers: Iterator[int]) -> str:
    """Returns the name of an event (GenerateEventName): the time in nanoseconds, with a number below the microseconds."""
    nanoseconds = int(now.timestamp() * 1_000_000) * 1000 + next(numbers) % 1000
    return f"{subject[: MAX_NAME - 17]}.{nanoseconds:x}"


def subject_of(reference: Mapping[str, str]) -> tuple[str, ...]:
    """Returns what tells the object of a reference from others."""
    return tuple(reference.get(name, "") for name in _SUBJECT)


def get_or_create_recent(cache: OrderedDict[tuple[str, ...], T], key: tuple[str, ...], make: Callable[[], T]) -> T:
    """Returns the entry of a cache of the most recently used entries."""
    found = cache.get(key)
    if found is None:
        found = cache[key] = make()
        if len(cache) > CACHED:
            cache.popitem(last=False)
    else:
        cache.move_to_end(key)
    return found

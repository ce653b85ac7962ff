"""A cache of a resource that list and watch keep up to date, like client-go's Reflector.

Specified by: staging/src/k8s.io/client-go/tools/cache/reflector.go.

Invariant: the cache is complete up to `revision`, so that a watch may always start there. A cache that may have missed events is
replaced by a list, and the handlers receive the differences as DELETED, ADDED and MODIFIED.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from defects import active
from transport import Api, ApiError, Broken, crash

Object = dict[str, Any]
#: A change: its type, the object, and its previous version.
Handler = Callable[[str, Object, Object | None], None]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: The bounds of a watch's timeoutSeconds.
WATCH_TIMEOUT = (300, 600)
PAGE_SIZE = 500


class Backoff:
    """Pauses from 0.8 s, doubled up to 30 s, each with jitter up to twice as long; reset after two minutes without failures."""

    first, cap, reset = 0.8, 30.0, 120.0

    def __init__(self) -> None:
        self._delay = self.first
        self._asked = time.monotonic()

    def next(self) -> float:
        now = time.monotonic()
        if now - self._asked > self.reset:
            self._delay = self.first
        self._asked = now
        delay, self._delay = self._delay, min(self._delay * (5 if active("R2-fivefold") else 2), self.cap)
        if active("R4-no-jitter"):
            return 1.0
        if active("R2-none", "W6-hot", "W4-hot"):
            return 0.0
        if active("R2-flat"):
            return 0.2
        if active("W6-flat"):
            return 0.05
        return delay * (1 + random.random())


class Stopped(Exception):
    """A defect: the reflector stops watching."""


class VeryShortWatch(Exception):
    """A watch ended within a second and without an event."""


def key_of(obj: Object) -> str:
    metadata = obj.get("metadata") or {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


class Reflector:
    """Keeps `items` by list and watch, in a thread of its own.

    Args:
        api: whom to ask.
        locate: gives the path of the collection. It may raise ApiError or Broken, and is asked again after a 404.
        selector: a label selector, or "".
        handler: called with each change, in the reflector's thread.
        idle: after how many seconds of silence a stream is given up; None leaves it to timeoutSeconds.
        initial_events: ask for the initial state as events of a watch, and list only if that is refused.
        page: the limit of a list from storage.
    """

    def __init__(
        self,
        api: Api,
        locate: Callable[[], str],
        selector: str,
        handler: Handler,
        *,
        forget: Callable[[], None] = lambda: None,
        idle: float | None = None,
        initial_events: bool = True,
        page: int = PAGE_SIZE,
    ) -> None:
        self.items: dict[str, Object] = {}
        self.synced = threading.Event()
        self._api = api
        self._locate = locate
        self._forget = forget
        self._selector = selector
        self._handler = handler
        self._idle = None if active("W7-forever") else idle
        self._initial_events = initial_events
        self._page = page
        self._paged = page != PAGE_SIZE
        self.revision = ""
        self._unavailable = False
        self._expired = 0
        self.backoff = Backoff()

    def start(self) -> None:
        for _ in range(2 if active("N3-twice") else 1):
            threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                self._list_and_watch()
            except Stopped as stopped:
                print(f"stop: {stopped}", flush=True)
                return
            except VeryShortWatch:
                pass
            except ApiError as error:
                print(f"list and watch: {error}", flush=True)
                if error.code == 404:
                    self._forget()
                    if active("D1-stuck") and self.synced.is_set():
                        return
                if active("R2-stop") and error.code >= 500:
                    return
            except Broken as broken:
                print(f"list and watch: {broken}", flush=True)
                if active("R2-dropped"):
                    continue
            time.sleep(self.backoff.next())

    def _list_and_watch(self) -> None:
        if active("N3-polls"):
            while True:
                self._list()
                time.sleep(1.0)
        events = None
        if self._initial_events:
            try:
                events = self._watch_list()
            except ApiError as error:
                print(f"initial events: {error}", flush=True)
                if active("W14-crash"):
                    crash(str(error))
                if active("W14-wait"):
                    raise
            except (Broken, VeryShortWatch) as broken:
                print(f"initial events: {broken}", flush=True)
        if events is None:
            self._list()
        self.synced.set()
        self._watch(events)

    # Lists

    def _list(self) -> None:
        start = "" if self._unavailable else self.revision or "0"
        try:
            items, revision = self._pages(start)
        except ApiError as error:
            if not (error.expired or error.too_large_revision):
                raise
            if error.too_large_revision and active("W15-endless"):
                raise
            if error.too_large_revision and active("W15-crash"):
                crash(str(error))
            self._unavailable = True
            items, revision = self._pages("")
        self._unavailable = False
        self._replace(items)
        if active("W11-items"):
            revision = str(max((int(item["metadata"]["resourceVersion"]) for item in items), default=int(revision)))
        if active("W11-other"):
            revision = self._api.request("GET", "/api/v1/services", {"limit": "1"})["metadata"]["resourceVersion"]
        if active("W11-last") and items:
            revision = items[-1]["metadata"]["resourceVersion"]
        self._advance(revision)

    def _pages(self, start: str) -> tuple[list[Object], str]:
        """Returns all items and the list's revision. If a continue token expires, it lists again without pages."""
        page = 0 if start not in {"", "0"} and not self._paged else self._page
        items: list[Object] = []
        revision = ""
        query = {"resourceVersion": start} if start else {}
        while True:
            try:
                answer = self._get_list({**query, **({"limit": str(page)} if page else {})})
            except ApiError as error:
                if not error.expired or "continue" not in query:
                    raise
                if active("P1-crash"):
                    crash(str(error))
                if active("P1-same-token"):
                    time.sleep(0.5)
                    continue
                if active("P1-part"):
                    return items, revision
                page, items, query = 0, [], {"resourceVersion": start} if start else {}
                continue
            found = answer.get("items") or []
            items += found
            metadata = answer.get("metadata") or {}
            revision = metadata.get("resourceVersion", "")
            token = metadata.get("continue")
            short = (active("P2-short") and len(found) < page) or (active("P2-empty") and not found)
            if short or (active("P2-remaining") and "remainingItemCount" not in metadata):
                token = None
            if not token:
                return items, revision
            query = {"continue": token}
            if active("P2-keeps-revision"):
                query["resourceVersion"] = start or revision

    def _get_list(self, query: dict[str, str]) -> Object:
        return self._api.request("GET", self._locate(), self._selected(query))

    def _selected(self, query: dict[str, str]) -> dict[str, str]:
        return {**query, "labelSelector": self._selector} if self._selector else query

    # Watches

    def _open(self, **query: str) -> Iterator[Object]:
        """Opens a watch and yields its events. Raises an ERROR event as an exception."""
        timeout = random.randint(*WATCH_TIMEOUT)
        sent = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout), **query}
        lines = self._api.stream(self._locate(), self._selected(sent), self._idle)
        try:
            for line in lines:
                event = _event(line)
                if event is None:
                    continue
                if event["type"] == "ERROR" and not active("W4-object"):
                    raise ApiError(event["object"], int(event["object"].get("code", 500)), in_stream=True)
                yield event
        except Broken:
            if active("W8-crash"):
                crash("the stream broke")
            raise

    def _watch_list(self) -> Iterator[Object]:
        """Continues a watch whose initial events have replaced the items."""
        while True:
            revision = "" if self._unavailable else self.revision
            events = self._open(sendInitialEvents="true", resourceVersionMatch="NotOlderThan", resourceVersion=revision)
            found: dict[str, Object] = {}
            try:
                end = self._initial(events, found)
            except (ApiError, Broken) as error:
                if _retriable(error):
                    time.sleep(self.backoff.next())
                    continue
                if isinstance(error, ApiError) and (error.expired or error.too_large_revision):
                    self._unavailable = True
                    continue
                raise
            if end is not None:
                self._unavailable = False
                self._replace(list(found.values()))
                self._advance(end)
                return events
            raise VeryShortWatch  # the watch ended before the bookmark: list instead

    @staticmethod
    def _initial(events: Iterator[Object], found: dict[str, Object]) -> str | None:
        """Reads the initial events up to their final bookmark; returns its revision."""
        for event in events:
            obj = event["object"]
            metadata = obj.get("metadata") or {}
            if event["type"] == "BOOKMARK":
                if (metadata.get("annotations") or {}).get(INITIAL_EVENTS_END) == "true" or active("W14-any"):
                    return str(metadata["resourceVersion"])
            elif event["type"] == "DELETED":
                found.pop(key_of(obj), None)
            else:
                found[key_of(obj)] = obj
        return None

    def _watch(self, events: Iterator[Object] | None) -> None:
        while True:
            began, count = time.monotonic(), 0
            try:
                first = self.revision
                opened = self._open(resourceVersion=first) if events is None else events
                events = None
                for event in opened:
                    count += 1
                    self._take(event)
                if active("W5-stop"):
                    raise Stopped("the stream ended")
                if active("W5-relist"):
                    return
                if active("W5-first-revision") and first:
                    self.revision = first
                if count == 0 and time.monotonic() - began < 1.0 and not active("W3-endless"):
                    raise VeryShortWatch
                if count == 0 and active("W3-endless"):
                    time.sleep(self.backoff.next())
            except (ApiError, Broken) as error:
                if not self._survives(error):
                    return

    def _survives(self, error: ApiError | Broken) -> bool:
        """Returns whether the watch may resume from the same revision."""
        if isinstance(error, Broken):
            if active("W8-skip") and not error.refused:
                self.revision = self._get_list({"limit": "1"})["metadata"]["resourceVersion"]
                return True
            if error.refused:
                time.sleep(self.backoff.next())
            else:
                print(f"watch: {error}", flush=True)
            return error.refused
        self._expired += error.expired
        if active("W1-once") and self._expired > 1:
            crash(str(error))
        rule = ("W1" if error.in_stream else "W2") if error.expired else "W4" if error.in_stream else ""
        if active(f"{rule}-crash"):
            crash(str(error))
        if active(f"{rule}-stop"):
            raise Stopped(str(error))
        if active(f"{rule}-same-revision"):
            time.sleep(self.backoff.next())
            return True
        if active("W4-hot") and rule == "W4":
            return True
        if active("R2-stop") and error.code >= 500:
            raise Stopped(str(error))
        if error.code == 429:
            time.sleep(self.backoff.next())
            return True
        if error.code == 404:
            self._forget()
        print(f"watch: {error}", flush=True)
        return False

    # The cache

    def _take(self, event: Object) -> None:
        kind, obj = event["type"], event["object"]
        metadata = obj.get("metadata") or {}
        revision = str(metadata.get("resourceVersion", ""))
        if kind == "BOOKMARK" and not active("W10-object"):
            if active("W10-crash") and "spec" not in obj and "data" not in obj:
                crash("a bookmark without a spec")
            self._advance(revision)
            if active("W10-closes"):
                raise Broken(ValueError("a bookmark"))
            return
        if active("V1-older") and self.revision and float(revision) <= float(self.revision):
            return
        if active("V1-digits") and revision <= self.revision:
            return
        key = key_of(obj)
        old = self.items.get(key)
        if kind == "DELETED":
            self.items.pop(key, None)
        elif kind in {"ADDED", "MODIFIED", "BOOKMARK", "ERROR"}:
            self.items[key] = obj
        else:
            if active("N1-event-type"):
                crash(f"unexpected event {kind}")
            print(f"unknown event {kind}", flush=True)
            return
        self._handler(kind, obj, old)
        if not active("W10-rely"):
            self._advance(revision)

    def _replace(self, items: list[Object]) -> None:
        fresh = {key_of(item): item for item in items}
        if not active("W12-ghosts"):
            for key in [key for key in self.items if key not in fresh]:
                obj = self.items.pop(key)
                if not active("S3-edges"):
                    self._handler("DELETED", obj, obj)
        for key, obj in fresh.items():
            old = self.items.get(key)
            self.items[key] = obj
            changed = old is not None and old["metadata"].get("resourceVersion") != obj["metadata"].get("resourceVersion")
            if old is None or (changed and not active("S3-new")):
                self._handler("ADDED" if old is None else "MODIFIED", obj, old)

    def _advance(self, revision: str) -> None:
        if active("V1-float") and revision:
            revision = str(int(float(revision)))
        if active("V1-next") and revision:
            revision = str(int(revision) + 1)
        if active("V1-int64") and revision and int(revision) >= 1 << 63:
            crash(f"revision out of range: {revision}")
        self.revision = revision


def _retriable(error: ApiError | Broken) -> bool:
    return error.refused if isinstance(error, Broken) else error.code == 429


def _event(line: bytes) -> Object | None:
    """Returns the event in a line; None if it cannot be decoded."""
    try:
        event = json.loads(line)
        return event if isinstance(event["object"], dict) and isinstance(event["type"], str) else None
    except (ValueError, KeyError, TypeError):
        print(f"cannot understand {line[:80]!r}", flush=True)
        return None

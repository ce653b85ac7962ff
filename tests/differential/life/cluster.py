"""A living cluster, as the scenarios' player sees it: how it comes to rest, how its time passes, and what happened in it.

There are two: one behind a socket, the reference or a running fakekube, and one in this process, whose clock is held and
moved to what its controllers wait for. Both are watched, so that a scenario can ask what came and went.
"""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson

from fakekube import Cluster
from tests.differential.client import JSON, Client, encode_query
from tests.differential.life.manifests import KINDS, SHARED_NODE, UNWATCHED, condition, node_named, root
from tests.differential.transports import HttpTransport, InProcessTransport, Reply, Transport

#: Seconds without a change after which a server that cannot tell counts as settled.
QUIET = 2.5
#: What is due within so many seconds of the cluster's clock is waited for.
HORIZON = 3.0

Change = tuple[str, str, Any]
"""Kind, type of the watch event, object."""

_ID = re.compile(r"d-[0-9a-f]{8}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_WATCHED = {kind: root(version, plural, None) for kind, (version, plural, _) in KINDS.items() if plural not in UNWATCHED}


class BareClient(Client):
    """A client without a namespace of its own, of which nothing is recorded."""

    def set_up(self) -> None:
        self.lock = threading.Lock()

    def request(self, *args: Any, **kw: Any) -> Reply:
        with self.lock:
            return super().request(*args, **{**kw, "silent": True})


class LivingCluster:
    """What both have in common."""

    moves_clock = False
    """Settling tells when there is nothing left to do, and `advance` takes no time."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self.connect = connect
        self.client = BareClient(connect())
        self.history: dict[str, list[Change]] = collections.defaultdict(list)
        """What changed, by namespace, or by the id of the scenario in the names of cluster-wide objects."""
        self.moved: dict[str, float] = collections.defaultdict(float)
        self._known: dict[str, Any] = {}

    def settle(self, places: list[str], timeout: float) -> bool:
        """Wait until the controllers have nothing to do about these places; False after so many real seconds."""
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        """Let the cluster's time pass."""
        raise NotImplementedError

    def happened(self, place: str) -> list[Change]:
        """What changed in a place so far; order counts within a kind only."""
        return list(self.history[place])

    def close(self) -> None:
        """Watch no more."""

    def seen(self, kind: str, type_: str, obj: Any) -> None:
        """Note a change. Events that are only counted up, and nodes of which only a time changed, are none."""
        meta = obj["metadata"]
        before = self._known.get(meta["uid"])
        self._known[meta["uid"]] = obj
        if type_ == "MODIFIED" and kind == "Event":
            return
        if type_ == "MODIFIED" and kind == "Node" and before and _without_times(before) == _without_times(obj):
            return
        if place := _place(kind, meta):
            self.moved[place] = time.monotonic()
            self.history[place].append((kind, type_, obj))

    def no_nodes(self) -> None:
        """Delete all nodes."""
        for attempt in range(60):
            nodes = self.client.get("/api/v1/nodes").get("items", default=[])
            if not nodes:
                return
            if attempt:
                time.sleep(0.1)
            for node in nodes:
                self.client.delete(f"/api/v1/nodes/{node['metadata']['name']}")

    def shared_node(self) -> None:
        """Make the node that scenarios share, and wait until it is ready."""
        self.client.post("/api/v1/nodes", node_named(SHARED_NODE, {"cpu": "64", "memory": "256Gi", "pods": "500"}))
        for _ in range(100):
            if condition(self.client.get(f"/api/v1/nodes/{SHARED_NODE}").json, "Ready") == "True":
                break
            self.advance(0.1)
        self.settle(["nodes"], 20)


def _place(kind: str, meta: dict[str, Any]) -> str | None:
    if meta.get("namespace") not in (None, "default"):
        return str(meta["namespace"])
    found = _ID.search(meta.get("name", ""))
    return found[0] if found else "nodes" if kind == "Node" else None


def _without_times(obj: dict[str, Any]) -> str:
    still = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "", "managedFields": []}}
    return _TIME.sub("", json.dumps(still, sort_keys=True))


class RemoteCluster(LivingCluster):
    """Behind a socket. One without `/fakekube/v1` counts as settled when nothing changed for a while."""

    def __init__(self, url: str, quiet: float = QUIET) -> None:
        super().__init__(lambda: HttpTransport(url))
        self.url, self.quiet = url, quiet
        self.lock = threading.Lock()
        self.stopped = False
        self.moves_clock = self._has("settle", {"timeout": 5, "horizon": HORIZON}) and self._has("clock/advance", {"seconds": 0})
        for kind, path in _WATCHED.items():
            threading.Thread(target=self._watch, args=(kind, path), daemon=True).start()

    def _has(self, path: str, body: Any) -> bool:
        return self.client.post(f"/fakekube/v1/{path}", body).status == 200

    def settle(self, places: list[str], timeout: float) -> bool:
        if self.moves_clock:
            return BareClient(self.connect()).post("/fakekube/v1/settle", {"timeout": timeout, "horizon": HORIZON}).status == 200
        start, end = time.monotonic(), time.monotonic() + timeout
        while time.monotonic() < end:
            with self.lock:
                last = max([start, *(self.moved[place] for place in places)])
            left = last + self.quiet - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left + 0.01, 0.5))
        return False

    def advance(self, seconds: float) -> None:
        if self.moves_clock:
            BareClient(self.connect()).post("/fakekube/v1/clock/advance", {"seconds": seconds})
        else:
            time.sleep(seconds)

    def happened(self, place: str) -> list[Change]:
        time.sleep(0.3)  # what was written a moment ago is on its way
        with self.lock:
            return super().happened(place)

    def close(self) -> None:
        self.stopped = True

    def seen(self, kind: str, type_: str, obj: Any) -> None:
        with self.lock:
            super().seen(kind, type_, obj)

    def _watch(self, kind: str, path: str) -> None:
        transport = HttpTransport(self.url)
        client = BareClient(transport)
        while not self.stopped:
            connection = transport.connect(timeout=3600)
            with contextlib.suppress(OSError, ValueError, KeyError, http.client.HTTPException):
                listed = client.get(path).get("metadata", "resourceVersion", default="")
                query = encode_query({"watch": "1", "resourceVersion": listed})
                connection.request("GET", f"{path}?{query}", headers=transport.authorized({"Accept": JSON}))
                answer = connection.getresponse()
                while answer.status == 200 and (line := answer.readline()):
                    event = json.loads(line)
                    if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
                        break
                    self.seen(kind, event["type"], event["object"])
            connection.close()
            time.sleep(0.2)


class LocalCluster(LivingCluster):
    """In this process, with its clock held."""

    moves_clock = True
    STEP = 0.25
    """Seconds of the clock between two looks at what the controllers wait for."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        super().__init__(lambda: InProcessTransport(cluster))
        transport = InProcessTransport(cluster)
        self._streams = {
            kind: transport.stream(f"{path}?watch=1&timeoutSeconds=100000", {"Accept": JSON}) for kind, path in _WATCHED.items()
        }
        self._read()  # what is there at the start

    def settle(self, places: list[str], timeout: float) -> bool:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                self.cluster.settle(timeout=max(end - time.monotonic(), 0.1))
            except TimeoutError:
                return False
            if not self.cluster.working(HORIZON):
                return True
            self.cluster.clock.advance(seconds=self.STEP)
        return False

    def advance(self, seconds: float) -> None:
        self.cluster.clock.advance(seconds=seconds)

    def happened(self, place: str) -> list[Change]:
        self._read()
        return super().happened(place)

    def _read(self) -> None:
        for kind, stream in self._streams.items():
            while frames := stream.take():
                for line in b"".join(frames).splitlines():
                    event = orjson.loads(line)
                    if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                        self.seen(kind, event["type"], event["object"])

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()

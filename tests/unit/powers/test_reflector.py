"""Under any faults, a correct client converges: it lists, watches, retries, and lists again after a 410.

The client is the smallest correct one: it watches from the revision it has, applies the events it receives, and lists again
when its revision has expired (410 Gone).
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakekube import Cluster

PATH = "/api/v1/namespaces/default/configmaps"
NAMES = ("a", "b", "c")
TIMEOUT = 60.0


class Reflector:
    """Follows the ConfigMaps of a cluster in a thread."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.known: dict[str, str] = {}
        self.problems: list[str] = []
        self.changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._thread.join(TIMEOUT)

    def wait_for(self, expected: dict[str, str]) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.known == expected, TIMEOUT)

    def _run(self) -> None:
        revision = ""
        while not self._stopped:
            try:
                revision = self._watch(revision) if revision else self._list()
            except (OSError, http.client.HTTPException, ValueError):
                continue  # the network: try again from where we are

    @contextmanager
    def _get(self, query: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=0.3)
        try:
            connection.request("GET", f"{PATH}{query}")
            with connection.getresponse() as response:
                yield response
        finally:
            connection.close()

    def _list(self) -> str:
        with self._get("") as response:
            body = json.loads(response.read())
        if response.status != 200:
            return ""
        with self.changed:
            self.known = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in body["items"]}
            self.changed.notify_all()
        return str(body["metadata"]["resourceVersion"])

    def _watch(self, revision: str) -> str:
        query = f"?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={revision}"
        with suppress(OSError, http.client.HTTPException, ValueError), self._get(query) as response:
            if response.status != 200:
                return "" if response.status == 410 else revision
            while line := response.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return "" if event["object"]["code"] == 410 else revision
                revision = self._take(event)
        return revision

    def _take(self, event: dict[str, Any]) -> str:
        metadata = event["object"]["metadata"]
        name, revision = metadata.get("name", ""), metadata["resourceVersion"]
        with self.changed:
            if event["type"] == "DELETED":
                if self.known.pop(name, None) is None:
                    self.problems.append(f"{name} is deleted twice")
            elif event["type"] in ("ADDED", "MODIFIED"):
                if (event["type"] == "ADDED") is (name in self.known):
                    self.problems.append(f"{name} is {event['type']} out of turn")
                self.known[name] = revision
            self.changed.notify_all()
        return str(revision)


FAULTS = st.sampled_from(
    [
        ("watch", "gone", {}),
        ("watch", "end", {"after_events": 1}),
        ("watch", "cut", {"after_bytes": 700}),
        ("watch", "slice", {"size": 11}),
        ("watch", "cut", {}),
        ("watch", "error_event", {"code": 500}),
        ("watch", "bookmarks", {"when": "often"}),
        ("list", "refuse", {}),
        ("list", "lose", {}),
        ("list", "status", {"code": 500}),
        ("watch", "status", {"code": 429, "retry_after": 1}),
        ("list", "slice", {"size": 9}),
        ("list", "cut", {"after_bytes": 50}),
        ("watch", "refuse", {}),
        ("watch", "malformed", {}),
        ("list", "malformed", {}),
        ("list,watch", "stale", {"by": 3}),
        ("watch", "cut", {"after_events": 1}),
    ]
)
STEPS = st.lists(st.one_of(st.tuples(st.just("write"), st.sampled_from(NAMES)), st.tuples(st.just("fault"), FAULTS)), max_size=14)


def write(cluster: Cluster, name: str, number: int) -> None:
    """Create, change or delete an object, in turn."""
    there = name in {item["metadata"]["name"] for item in cluster.list("configmaps", namespace="default")}
    if not there:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    elif number % 3:
        cluster.patch("configmaps", name, {"data": {"n": str(number)}})
    else:
        cluster.delete("configmaps", name)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_reflector_converges_under_faults(steps: list[tuple[str, Any]]) -> None:
    with Cluster(profile="apiserver") as cluster:
        reflector = Reflector(cluster.port)
        try:
            for number, (what, argument) in enumerate(steps):
                if what == "write":
                    write(cluster, argument, number)
                else:
                    verb, action, arguments = argument
                    cluster.faults.on(verb, "configmaps").arm(action, times=2, **arguments)
            cluster.faults.clear()
            expected = {
                item["metadata"]["name"]: item["metadata"]["resourceVersion"]
                for item in cluster.list("configmaps", namespace="default")
            }
            assert reflector.wait_for(expected), (reflector.known, expected)
            assert not reflector.problems
        finally:
            reflector.stop()

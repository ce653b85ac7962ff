"""How long a cluster takes to live: the same work on any cluster, in seconds.

    python -m tests.benchmarks.life_bench URL [--replicas 500] [--nodes 10] [--only WORD]

URL may carry a token: https://admin-token@127.0.0.1:22000. The reference is `tests/differential/life/stack.py`, ours is
`fakekube serve --tls`. It waits by watches, not by polls. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.differential.client import JSON, MERGE
from tests.differential.life.cluster import BareClient
from tests.differential.life.manifests import condition, node_named, template
from tests.differential.transports import HttpTransport

#: Seconds after which a measurement is given up.
PATIENCE = 280.0
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "500"}
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
#: What fills a namespace: path of the collection, and the object but for its name.
MIXED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/api/v1/namespaces/{}/configmaps", {}),
    ("/api/v1/namespaces/{}/secrets", {}),
    ("/api/v1/namespaces/{}/serviceaccounts", {}),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles", {"rules": []}),
    ("/apis/coordination.k8s.io/v1/namespaces/{}/leases", {}),
)


class Api(BareClient):
    """A client that raises for what is refused, and waits by watches."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(HttpTransport(url))

    def must(self, method: str, path: str, body: Any = None, query: Any = None, ctype: str = JSON) -> Any:
        """The answer's body. Raises RuntimeError for a refusal."""
        reply = self.request(method, path, body, query, ctype=ctype)
        if reply.status not in range(200, 300):
            raise RuntimeError(f"{method} {path}: {reply.status} {reply.body.decode(errors='replace')}")
        return reply.json

    def until(self, path: str, name: str, true: Callable[[Any], bool]) -> None:
        """Watch one object of a collection until it is as wanted (None: gone). Raises TimeoutError."""
        selector = {"fieldSelector": f"metadata.name={name}"}
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            listed = self.must("GET", path, None, selector)
            if true(listed["items"][0] if listed["items"] else None) or self._seen(path, selector, listed, true):
                return
        raise TimeoutError(f"{path} {name} after {PATIENCE:.0f} s")

    def _seen(self, path: str, selector: dict[str, str], listed: Any, true: Callable[[Any], bool]) -> bool:
        version = listed["metadata"]["resourceVersion"]
        query = f"watch=1&fieldSelector={selector['fieldSelector']}&resourceVersion={version}&timeoutSeconds=20"
        transport = HttpTransport(self.url)
        connection = transport.connect(timeout=PATIENCE)
        connection.request("GET", f"{path}?{query}", headers=transport.authorized({"Accept": JSON}))
        answer = connection.getresponse()
        try:
            for event in map(json.loads, answer):
                if event["type"] == "ERROR":
                    return False
                if true(None if event["type"] == "DELETED" else event["object"]):
                    return True
            return False
        finally:
            connection.close()


class Work:
    """The measured pieces of work, in a namespace of their own."""

    def __init__(self, url: str, only: str) -> None:
        self.api, self.url, self.only = Api(url), url, only
        self.space = f"bench-{int(time.time())}"
        self.deployments = f"/apis/apps/v1/namespaces/{self.space}/deployments"
        self.api.must("POST", "/api/v1/namespaces", {"metadata": {"name": self.space}})

    def nodes(self, count: int) -> None:
        """Make nodes, and wait for the last one."""
        for number in range(count):
            self.api.post("/api/v1/nodes", node_named(f"bench-{number}", ROOM))
        self.api.until("/api/v1/nodes", f"bench-{count - 1}", lambda node: condition(node, "Ready") == "True")

    def measured(self, label: str, prepare: Callable[[], None], work: Callable[[], None]) -> None:
        """Print how long a piece of work takes."""
        if self.only in label:
            prepare()
            began = time.monotonic()
            work()
            print(f"{label:50} {time.monotonic() - began:9.2f} s", flush=True)

    def deploy(self, name: str, count: int) -> None:
        """A Deployment, until all its pods are available."""
        spec = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template({"app": name}, "a:1")}
        self.api.must("POST", self.deployments, {"metadata": {"name": name}, "spec": spec})
        self.api.until(self.deployments, name, _available(count))

    def roll(self) -> None:
        """A rolling update of 100 pods."""
        self.api.must("PATCH", f"{self.deployments}/roll", {"spec": {"template": template({"app": "roll"}, "a:2")}}, ctype=MERGE)
        self.api.until(self.deployments, "roll", _available(100))

    def fill(self) -> None:
        """A namespace with 1,000 objects of several kinds."""
        space = f"{self.space}-full"
        self.api.must("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        self._many(1000, lambda i: (MIXED[i % 5][0].format(space), {"metadata": {"name": f"n{i}"}, **MIXED[i % 5][1]}))

    def empty(self) -> None:
        """Delete that namespace."""
        self.api.must("DELETE", f"/api/v1/namespaces/{self.space}-full")
        self.api.until("/api/v1/namespaces", f"{self.space}-full", lambda namespace: namespace is None)

    def own(self) -> None:
        """5,000 Secrets with one owner."""
        made = self.api.must("POST", f"/api/v1/namespaces/{self.space}/configmaps", {"metadata": {"name": "owner"}})
        owner = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": made["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        secrets = f"/api/v1/namespaces/{self.space}/secrets"
        self._many(5000, lambda i: (secrets, {"metadata": {"name": f"s{i}", "ownerReferences": [owner]}}))
        time.sleep(2)

    def disown(self) -> None:
        """Delete the owner in the foreground."""
        path = f"/api/v1/namespaces/{self.space}/configmaps"
        self.api.must("DELETE", f"{path}/owner", {"propagationPolicy": "Foreground"})
        self.api.until(path, "owner", lambda owner: owner is None)

    def _many(self, count: int, make: Callable[[int], tuple[str, Any]]) -> None:
        def part(start: int) -> None:
            api = Api(self.url)
            for number in range(start, count, 4):
                api.must("POST", *make(number))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(part, range(4)))


def _available(count: int) -> Callable[[Any], bool]:
    def true(found: Any) -> bool:
        status = (found or {}).get("status") or {}
        seen = found is not None and status.get("observedGeneration") == found["metadata"]["generation"]
        return seen and all(status.get(name, 0) == count for name in COUNTS)

    return true


def main() -> None:
    """The command; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--replicas", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--only", default="", metavar="WORD")
    options = parser.parse_args()
    work = Work(options.url, options.only)
    work.nodes(options.nodes)
    label = f"deployment of {options.replicas} on {options.nodes} nodes, all ready"
    work.measured(label, lambda: None, lambda: work.deploy("big", options.replicas))
    work.measured("rolling update of 100", lambda: work.deploy("roll", 100), work.roll)
    work.measured("namespace of 1,000 mixed objects gone", work.fill, work.empty)
    work.measured("5,000 dependents of one owner collected, foreground", work.own, work.disown)


if __name__ == "__main__":
    main()

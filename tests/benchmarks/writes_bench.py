"""CPU of single writes, in process: `python tests/benchmarks/writes_bench.py [--profile NAME]`.

Each request goes through the WSGI application as a client sends it (JSON bytes in, JSON bytes out), without a socket.
Printed is the minimum over batches in microseconds of CPU of this thread, which a busy machine disturbs least.
`--profile NAME` prints what one of the requests spends its time on instead.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import pstats
import time
from collections.abc import Callable
from typing import Any

from fakekube.cluster import Cluster

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"labels": {"app": "web", "tier": "front"}, "annotations": {"example.com/team": "a"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "nginx:1.27",
                "ports": [{"containerPort": 80, "name": "http"}],
                "env": [{"name": "A", "value": "1"}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": "web"}}],
    },
}
SETTINGS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"labels": {"app": "web"}},
    "data": {"a": "1", "b": "2"},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "default": 1}, "name": {"type": "string"}},
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
WIDGET: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"labels": {"app": "web"}},
    "spec": {"name": "x"},
}

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY, JSON = "application/apply-patch+yaml", "application/json"


class Bench:
    """One cluster, and the requests that are timed."""

    def __init__(self) -> None:
        self.cluster = Cluster(profile="apiserver")
        self.cluster.create(DEFINITION)
        self.count = 0

    def ask(self, method: str, path: str, body: Any = None, content_type: str = JSON, query: str = "") -> dict[str, Any]:
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        return self.send(method, path, data, content_type, query)

    def send(self, method: str, path: str, data: bytes, content_type: str = JSON, query: str = "") -> dict[str, Any]:
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": content_type,
            "CONTENT_LENGTH": str(len(data)),
            "wsgi.input": io.BytesIO(data),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_ACCEPT": JSON,
            "HTTP_USER_AGENT": "bench",
            "wsgi.url_scheme": "http",
        }
        codes: list[str] = []
        answer = b"".join(self.cluster.application(environ, lambda status, headers: codes.append(status)))
        assert codes[0][0] == "2", (codes, answer)
        found: dict[str, Any] = json.loads(answer) if method == "GET" else {}
        return found

    def named(self, obj: dict[str, Any]) -> bytes:
        self.count += 1
        return json.dumps({**obj, "metadata": {**obj["metadata"], "name": f"x{self.count}"}}, separators=(",", ":")).encode()


def requests(bench: Bench) -> dict[str, Callable[[int], Callable[[], None]]]:
    """Name of a request → what prepares a batch of so many of them and returns what is timed."""
    core, custom = "/api/v1/namespaces/default", "/apis/example.com/v1/namespaces/default/widgets"

    def creates(path: str, obj: dict[str, Any]) -> Callable[[int], Callable[[], None]]:
        def prepare(size: int) -> Callable[[], None]:
            bodies = [bench.named(obj) for _ in range(size)]
            return lambda: [bench.send("POST", path, body) for body in bodies] and None

        return prepare

    def updates(path: str, name: str) -> Callable[[int], Callable[[], None]]:
        def prepare(size: int) -> Callable[[], None]:
            obj = bench.ask("GET", f"{path}/{name}")
            obj["metadata"].pop("resourceVersion")
            bodies = []
            for _ in range(size):
                bench.count += 1
                obj["metadata"]["labels"]["n"] = str(bench.count)
                bodies.append(json.dumps(obj, separators=(",", ":")).encode())
            return lambda: [bench.send("PUT", f"{path}/{name}", body) for body in bodies] and None

        return prepare

    def patches(
        path: str, name: str, patch: Callable[[int], Any], kind: str, query: str = ""
    ) -> Callable[[int], Callable[[], None]]:
        def prepare(size: int) -> Callable[[], None]:
            bodies = []
            for _ in range(size):
                bench.count += 1
                bodies.append(json.dumps(patch(bench.count), separators=(",", ":")).encode())
            return lambda: [bench.send("PATCH", f"{path}/{name}", body, kind, query) for body in bodies] and None

        return prepare

    def applied(obj: dict[str, Any]) -> Callable[[int], Any]:
        return lambda n: {**obj, "metadata": {**obj["metadata"], "name": "applied", "labels": {"n": str(n)}}}

    for path, obj in ((f"{core}/configmaps", SETTINGS), (f"{core}/pods", POD), (custom, WIDGET)):
        bench.ask("POST", path, {**obj, "metadata": {**obj["metadata"], "name": "kept"}})
        bench.ask("PATCH", f"{path}/applied", applied(obj)(0), APPLY, "fieldManager=m")
    return {
        "create configmap": creates(f"{core}/configmaps", SETTINGS),
        "create pod": creates(f"{core}/pods", POD),
        "create custom": creates(custom, WIDGET),
        "update configmap": updates(f"{core}/configmaps", "kept"),
        "update pod": updates(f"{core}/pods", "kept"),
        "merge patch configmap": patches(f"{core}/configmaps", "kept", lambda n: {"data": {"a": str(n)}}, MERGE),
        "merge patch pod": patches(f"{core}/pods", "kept", lambda n: {"metadata": {"labels": {"n": str(n)}}}, MERGE),
        "strategic patch pod": patches(f"{core}/pods", "kept", lambda n: {"metadata": {"labels": {"n": str(n)}}}, STRATEGIC),
        "status patch pod": patches(f"{core}/pods", "kept/status", lambda n: {"status": {"message": str(n)}}, MERGE),
        "merge patch custom": patches(custom, "kept", lambda n: {"spec": {"size": n}}, MERGE),
        "apply pod": patches(f"{core}/pods", "applied", applied(POD), APPLY, "fieldManager=m"),
        "apply pod, no change": patches(f"{core}/pods", "applied", lambda n: applied(POD)(0), APPLY, "fieldManager=m"),
        "apply custom": patches(custom, "applied", applied(WIDGET), APPLY, "fieldManager=m"),
    }


def measure(prepare: Callable[[int], Callable[[], None]], *, size: int = 40, batches: int = 20) -> float:
    """Microseconds of CPU a request."""
    took = []
    for _ in range(batches):
        run = prepare(size)
        begin = time.thread_time()
        run()
        took.append((time.thread_time() - begin) / size * 1e6)
    return min(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", metavar="NAME")
    chosen = parser.parse_args().profile
    found = requests(Bench())
    if chosen:
        found[chosen](100)()
        run, profile = found[chosen](400), cProfile.Profile()
        profile.runcall(run)
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        return
    total = 0.0
    for name, prepare in found.items():
        cost = measure(prepare)
        total += cost
        print(f"{name:24} {cost:7.0f} us")
    print(f"{'sum':24} {total:7.0f} us")


if __name__ == "__main__":
    main()

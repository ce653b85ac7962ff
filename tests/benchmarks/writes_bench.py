"""CPU of single requests, in process: `python tests/benchmarks/writes_bench.py [--instructions] [--profile NAME]`.

Each request goes through the WSGI application as a client sends it (JSON bytes in, JSON bytes out), without a socket.
Printed is the minimum over batches in microseconds of CPU of this thread, which a busy machine disturbs least.

`--instructions` prints thousands of instructions instead, which other work on the machine does not change. It needs
valgrind, which runs this file again and counts while a batch runs (callgrind). To compare another state of the project,
run this file with PYTHONPATH set to a checkout of it: `PYTHONPATH=CHECKOUT python tests/benchmarks/writes_bench.py …`.
`--profile NAME` prints what one of the requests spends its time on.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import io
import json
import os
import pstats
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
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

AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

GET, LIST, DISCOVERY, FRESH = "get pod", "list of 20 pods", "aggregated discovery", "fresh cluster, create, get"
NOT_WRITES = (GET, LIST, DISCOVERY, FRESH)

#: What callgrind writes into the dump of a batch: its size and name, and the number of instructions.
_NAME = re.compile(r"^desc: Trigger: dump (\d+) (.+)$", re.MULTILINE)
_TOTAL = re.compile(r"^totals: (\d+)", re.MULTILINE)


class Bench:
    """One cluster, and the requests that are timed."""

    def __init__(self) -> None:
        self.cluster = Cluster(profile="apiserver")
        self.cluster.create(DEFINITION)
        self.count = 0

    def ask(self, method: str, path: str, body: Any = None, content_type: str = JSON, query: str = "") -> dict[str, Any]:
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        answer: dict[str, Any] = json.loads(self.send(method, path, data, content_type, query))
        return answer

    def send(
        self, method: str, path: str, data: bytes, content_type: str = JSON, query: str = "", *, accept: str = JSON
    ) -> bytes:
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": content_type,
            "CONTENT_LENGTH": str(len(data)),
            "wsgi.input": io.BytesIO(data),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_ACCEPT": accept,
            "HTTP_USER_AGENT": "bench",
            "wsgi.url_scheme": "http",
        }
        codes: list[str] = []
        answer = b"".join(self.cluster.application(environ, lambda status, headers: codes.append(status)))
        assert codes[0][0] == "2", (codes, answer)
        return answer

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


def reads(bench: Bench) -> dict[str, Callable[[int], Callable[[], None]]]:
    """Like `requests`, which has made the objects."""

    def gets(path: str, query: str = "", accept: str = JSON) -> Callable[[int], Callable[[], None]]:
        return lambda size: lambda: [bench.send("GET", path, b"", query=query, accept=accept) for _ in range(size)] and None

    pods = "/api/v1/namespaces/default/pods"
    return {GET: gets(f"{pods}/kept"), LIST: gets(pods, "limit=20"), DISCOVERY: gets("/apis", accept=AGGREGATED)}


def fresh_clusters(size: int) -> Callable[[], None]:
    """What a test with a cluster of its own does: it creates and gets one object."""
    named = {**SETTINGS, "metadata": {"name": "a", "namespace": "default"}}

    def run() -> None:
        for _ in range(size):
            cluster = Cluster()
            try:
                cluster.create(named)
                cluster.get("configmaps", "a")
            finally:
                cluster.stop()

    return run


def count_instructions(*, warm_up: int = 30, size: int = 40) -> None:
    """Runs within valgrind: has the instructions of one batch of each request dumped.

    The garbage collector is off, since what it finds depends on what ran before.
    """

    def control(*arguments: str) -> None:
        subprocess.run(["callgrind_control", *arguments, str(os.getpid())], stdout=subprocess.DEVNULL, check=True)

    gc.disable()
    bench = Bench()
    found = {**requests(bench), **reads(bench), FRESH: fresh_clusters}
    for prepare in found.values():
        prepare(warm_up)()
    for name, prepare in found.items():
        run = prepare(size)
        control("--zero")
        control("--instr=on")
        run()
        control("--instr=off")
        control(f"--dump={size} {name.replace(' ', '_')}")


def instructions() -> dict[str, float]:
    """Thousands of instructions a request, by its name."""
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=counts"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        command = [*valgrind, sys.executable, str(Path(__file__).resolve()), "--within-valgrind"]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        counts = {}
        for dump in sorted(Path(folder).glob("counts.*"), key=lambda path: int(path.suffix[1:])):
            text = dump.read_text()
            name, total = _NAME.search(text), _TOTAL.search(text)
            if name and total:
                counts[name[2].replace("_", " ")] = int(total[1]) / int(name[1]) / 1000
    return counts


def show(costs: Iterable[tuple[str, float]], unit: str) -> None:
    """Prints costs as they come, and the sum of those of writes."""
    total = 0.0
    for name, cost in costs:
        total += cost if name not in NOT_WRITES else 0
        print(f"{name:26} {cost:9.1f} {unit}", flush=True)
    print(f"{'sum of the writes':26} {total:9.1f} {unit}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", metavar="NAME")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--within-valgrind", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    chosen = arguments.profile
    if arguments.instructions:
        show(instructions().items(), "k")
        return
    if arguments.within_valgrind:
        count_instructions()
        return
    found = requests(Bench())
    if chosen:
        found[chosen](100)()
        run, profile = found[chosen](400), cProfile.Profile()
        profile.runcall(run)
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        return
    show(((name, measure(prepare)) for name, prepare in found.items()), "us")


if __name__ == "__main__":
    main()

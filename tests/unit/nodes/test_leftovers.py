"""What belongs to an object goes with the object: after a namespace is gone, nothing of it is in memory but what has a maximum.

That is the history of the API, which a compaction ends, the requests that were read last, and caches.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.base.caches import forget_all

#: What caches with a maximum keep that are not emptied: parts of the latest requests; and what is made once of a built-in type,
#: when the first object needs it.
CACHED = {"Labels", "RequestInfo", "Query", "Fields", "Request", "_Step", "Frame"}
#: What the server and the store keep of the names of definitions.
NAMED = {
    "fakekube.apiserver.admission.chain._Halves",
    "fakekube.store.bucket.Bucket",
    "fakekube.store.bucket.Contents",
    "fakekube.store.bucket._Reading",
    "fakekube.store.history.History",
    "fakekube.store.history.Indexes",
    "fakekube.store.versions.SortedKeys",
    "fakekube.store.versions.Versions",
}

#: Timers that threads may still hold of their last work. A namespace here has eight pods.
HELD = {"fakekube.base.clock.Timer": 2}
#: Real seconds in which threads end on any machine.
_GUARD = 60.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(keep_requests=0) as made:
        made.clock.hold()
        yield made


def pod(name: str, image: str, *command: str, probe: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, **({"command": list(command)} if command else {})}
    if probe is not None:
        container["readinessProbe"] = {**probe, "periodSeconds": 1}
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def define(name: str, kind: str) -> dict[str, Any]:
    """Returns a definition with a rule."""
    properties = {"x": {"type": "string", "maxLength": 9}}
    checked = {"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": f"self.x != '{name}'"}]}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": checked}}},
    }
    names = {"plural": f"{name}s", "singular": name, "kind": kind}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{name}s.example.com"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


def live_through(cluster: Cluster, namespace: str) -> None:
    """Runs programs in the pods of a namespace, and deletes it; then hours pass, in which what has a time expires."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    kind = namespace.title()
    definition = cluster.create(define(namespace, kind))
    cluster.settle()
    cluster.create(
        {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"x": "y"}}, namespace=namespace
    )
    sleeps = {"containers": [{"name": "main", "image": "busybox", "command": ["sleep", "3600"]}]}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": sleeps}
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    for made in (
        pod("loop", "busybox", "sh", "-c", "trap 'exit 0' TERM; while true; do echo tick; sleep 1; done", probe={"exec": {"command": ["true"]}}),
        pod("done", "busybox", "sh", "-c", "echo a > /tmp/x", restartPolicy="Never"),
        pod("crash", "busybox", "sh", "-c", "sleep 1; exit 3"),
        pod("web", "nginx", probe={"httpGet": {"path": "/", "port": 80}}),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template},
        },
    ):  # fmt: skip
        cluster.create(made, namespace=namespace)
    cluster.settle()
    cluster.clock.advance(seconds=3)
    cluster.settle()
    loop = cluster.pods.get("loop", namespace=namespace)
    assert "tick" in loop.logs()
    assert "nginx" in loop.exec("sleep 4000 & wget -qO- http://web").stdout
    cluster.delete("customresourcedefinitions", definition["metadata"]["name"])
    cluster.delete("namespaces", namespace)
    for hours in (0.02, 3):
        cluster.settle()
        cluster.clock.advance(hours=hours)
    cluster.settle()
    assert namespace not in [one["metadata"]["name"] for one in cluster.list("namespaces")]


def count_objects(cluster: Cluster) -> Counter[str]:
    """Returns the numbers of live objects of ours by type, without the history of the API and what caches keep."""
    cluster.compact()
    for bucket in cluster._machinery.backend.store.buckets():
        bucket.forget()
    cluster.pack_past()
    forget_all()
    gc.collect()
    types = Counter(map(type, gc.get_objects()))
    ours = ((one, count) for one, count in types.items() if str(one.__module__).startswith("fakekube."))
    found = ((f"{one.__module__}.{one.__qualname__}", count) for one, count in ours if one.__name__ not in CACHED)
    return Counter({name: count for name, count in found if name not in NAMED})


def test_a_namespace_leaves_nothing_in_memory(cluster: Cluster) -> None:
    for name in ("first", "second"):  # after which all that is made once is there
        live_through(cluster, name)
    before = count_objects(cluster)
    live_through(cluster, "third")
    assert find_more(cluster, before) == {}


def find_more(cluster: Cluster, before: Counter[str]) -> dict[str, tuple[int, int]]:
    """Returns the types of which there are more objects than before, once the threads of connections have ended."""
    end = time.monotonic() + _GUARD
    while True:
        after = count_objects(cluster)
        more = {name: (before[name], count) for name, count in after.items() if count > before[name] + HELD.get(name, 0)}
        if not more or time.monotonic() > end:
            return more
        time.sleep(0.05)

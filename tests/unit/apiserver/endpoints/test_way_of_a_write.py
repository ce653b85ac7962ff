"""What a write does, counted: a body is decoded once, a spec is encoded once for all that is remembered of it.

The counts are those of warm requests, without the server's sockets.
"""

from __future__ import annotations

import collections
import io
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from fakekube.apimachinery.codecs import document
from fakekube.apimachinery.patch.apply import FieldManager, managed_fields
from fakekube.apiserver.registry.generic import writes
from fakekube.cluster import Cluster

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    # A process with many objects packs an old one with each new one, which is no encoding of the write itself.
    monkeypatch.setattr(document, "_recent", collections.deque())
    with Cluster(profile="apiserver") as found:
        yield found


def send(cluster: Cluster, method: str, path: str, body: Any, content_type: str = "application/json", query: str = "") -> None:
    data, answers = json.dumps(body).encode(), []
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(len(data)),
        "wsgi.input": io.BytesIO(data),
        "wsgi.url_scheme": "http",
    }
    list(cluster.application(environ, lambda status, headers: answers.append(status)))
    assert answers[0][0] == "2"


def pod(name: str) -> dict[str, Any]:
    containers = [{"name": "web", "image": "nginx", "ports": [{"containerPort": 80}]}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


def image(text: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "web", "image": text}]}}


def counts(act: Callable[[], None]) -> collections.Counter[str]:
    """Returns the number of calls in this thread: of encoders and decoders of JSON, of functions, and changes of module."""
    found: collections.Counter[str] = collections.Counter()
    module = ""

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal module
        if event == "c_call" and argument.__name__ in ("dumps", "loads"):
            found[argument.__name__] += 1
        elif event == "call" and "/fakekube/" in (name := frame.f_code.co_filename):
            found["calls"] += 1
            found["changes"] += name != module
            module = name

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return found


def test_create_of_a_pod_like_others(cluster: Cluster) -> None:
    for number in range(4):
        send(cluster, "POST", PODS, pod(f"warm-{number}"))
    found = counts(lambda: send(cluster, "POST", PODS, pod("seen")))
    # the body, to look for doubled members; three forms of the spec; the answer
    assert found["dumps"] <= 5
    assert found["loads"] == 2  # the body, and the known form of the spec
    assert found["calls"] <= 243  # the server's sockets, with TLS, add 35 calls and 23 changes of module
    assert found["changes"] <= 141


def test_changes_of_a_config_map_like_others(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.clock.hold()  # else the last write may be of another second than the one before
    send(cluster, "POST", CONFIG_MAPS, {"metadata": {"name": "warm"}, "data": {"a": "1"}})

    def patch(text: str) -> None:
        send(cluster, "PATCH", f"{CONFIG_MAPS}/warm", {"data": {"a": text}}, "application/merge-patch+json")

    def put(text: str) -> None:
        send(cluster, "PUT", f"{CONFIG_MAPS}/warm", {**stored, "data": {"a": text}})

    for change, calls in ((patch, 232), (put, 231)):
        for text in "23":
            stored = {**cluster.get("configmaps", "warm")}
            change(text)
        stored = {**cluster.get("configmaps", "warm")}
        with monkeypatch.context() as patched:
            patched.setattr(managed_fields, "decode", lambda _: pytest.fail("entries were decoded again"))
            found = counts(partial(change, "seen"))
        assert found["calls"] <= calls


def test_managed_fields_of_an_object_like_others_are_known_also_in_another_version_than_the_stored_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {"eventTime": "2026-01-01T00:00:00.000000Z", "action": "a", "reason": "r", "type": "Normal", "note": "n"}
    event |= {"reportingController": "example.com/c", "reportingInstance": "i"}
    send(cluster, "POST", path, {**event, "metadata": {"name": "warm"}})
    monkeypatch.setattr(FieldManager, "update", lambda *_: pytest.fail("they were computed again"))
    send(cluster, "POST", path, {**event, "metadata": {"name": "seen"}})
    warm, seen = (cluster.get("events", name)["metadata"]["managedFields"] for name in ("warm", "seen"))
    assert "f:note" in warm[0]["fieldsV1"]
    assert seen[0]["fieldsV1"] == warm[0]["fieldsV1"]


def test_managed_fields_of_a_custom_resource_like_others_are_known(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"plural": "widgets", "kind": "Widget"}
    definition = {"spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}}
    cluster.create({**definition, **_of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com")})
    path = "/apis/example.com/v1/namespaces/default/widgets"
    send(cluster, "POST", path, {**_of("example.com/v1", "Widget", "warm"), "spec": {"a": [1]}, "more": {"b": 1}})
    monkeypatch.setattr(FieldManager, "update", lambda *_: pytest.fail("they were computed again"))
    send(cluster, "POST", path, {**_of("example.com/v1", "Widget", "seen"), "spec": {"a": [1]}, "more": {"b": 2}})
    warm, seen = (cluster.get("widgets", name)["metadata"]["managedFields"] for name in ("warm", "seen"))
    assert warm[0]["fieldsV1"] == {"f:more": {".": {}, "f:b": {}}, "f:spec": {".": {}, "f:a": {}}}
    assert seen[0]["fieldsV1"] == warm[0]["fieldsV1"]


def _of(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def test_apply_that_left_an_object_as_it_is_is_not_made_again_until_something_is_written(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = {**pod("applied"), "metadata": {"name": "applied", "labels": {"a": "1"}}}
    attempts: list[str] = []
    commit = writes.commit
    monkeypatch.setattr(writes, "commit", lambda scope, *rest: attempts.append(scope.name) or commit(scope, *rest))

    def apply(among: Cluster, query: str = "fieldManager=m") -> int:
        """Returns how often the pod was prepared and validated for it."""
        attempts.clear()
        send(among, "PATCH", f"{PODS}/applied", applied, "application/apply-patch+yaml", query)
        return len(attempts)

    assert [apply(cluster) for _ in range(4)] == [1, 1, 0, 0]  # the second one finds that it changes nothing
    assert apply(cluster, "fieldManager=m&dryRun=All") == 1
    assert [apply(cluster) for _ in range(2)] == [1, 0]
    with cluster.fork() as other:
        assert [apply(other) for _ in range(2)] == [1, 0]
    send(cluster, "POST", CONFIG_MAPS, {"metadata": {"name": "more"}})
    assert [apply(cluster) for _ in range(2)] == [1, 0]
    applied["metadata"]["labels"] = {"a": "2"}
    assert [apply(cluster) for _ in range(3)] == [1, 1, 0]
    assert cluster.get("pods", "applied")["metadata"]["labels"] == {"a": "2"}


def test_strategic_patch_with_a_spec_that_was_not_seen_before(cluster: Cluster) -> None:
    for number in range(4):
        send(cluster, "POST", PODS, pod(f"warm-{number}"))
        send(cluster, "PATCH", f"{PODS}/warm-{number}", image("nginx:2"), STRATEGIC)
    found = counts(lambda: send(cluster, "PATCH", f"{PODS}/warm-1", image("nginx:3"), STRATEGIC))
    # the body, to look for doubled members; the patch, to look for large numbers; the spec; the changed fields; the answer
    assert found["dumps"] <= 5

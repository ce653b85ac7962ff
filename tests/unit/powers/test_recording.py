"""Recordings: written and read in the format of kwokctl, played back by the clock, with uids of the new cluster."""

from __future__ import annotations

import io
import json
import math
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apimachinery.patch import strategic
from fakekube.apimachinery.schema.builtin import kind_type
from fakekube.controllers.client.remote import RemoteClient
from fakekube.powers.recording import RecordingError, RemoteRecorder, read

#: As `kwokctl snapshot record` writes it, with uids of another cluster.
KWOK = b"""apiVersion: v1
kind: Namespace
metadata: {name: team, uid: u-team}
spec: {finalizers: [kubernetes]}
status: {phase: Active}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: owner, namespace: team, uid: u-owner}
---
apiVersion: v1
items: []
kind: List
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
durationNanosecond: 20000000000
kind: ResourcePatch
method: patch
resource: {resource: pods, version: v1}
target: {name: web, namespace: team}
template:
  status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
  spec: {nodeName: n1}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
durationNanosecond: 10000000000
kind: ResourcePatch
method: create
resource: {resource: pods, version: v1}
target: {name: web, namespace: team}
template:
  apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: team, uid: u-web, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: u-owner}]}
  spec: {containers: [{name: c, image: i}]}
  status: {phase: Pending}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
durationNanosecond: 30000000000
kind: ResourcePatch
method: delete
resource: {resource: pods, version: v1}
target: {name: web, namespace: team}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
durationNanosecond: 31000000000
kind: ResourcePatch
method: create
resource: {group: example.com, resource: things, version: v1}
target: {name: web}
template: {apiVersion: example.com/v1, kind: Thing, metadata: {name: web}}
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as made:
        made.clock.hold()
        yield made


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def test_kwok_recording_is_replayed_by_the_clock(cluster: Cluster) -> None:
    replay = cluster.replay(KWOK, speed=2)
    owner = cluster.get("cm", "owner", namespace="team")
    assert owner["metadata"]["uid"] != "u-owner"
    assert cluster.list("pods") == []
    cluster.clock.advance(seconds=5)
    (pod,) = cluster.list("pods")
    assert pod["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    cluster.clock.advance(seconds=5)
    now = cluster.get("pods", "web", namespace="team")
    assert (now["status"]["phase"], now["spec"]["nodeName"]) == ("Running", "n1")
    assert now["metadata"]["uid"] == pod["metadata"]["uid"]
    assert [one.type for one in cluster.history("pods", "web", "team")] == ["ADDED", "MODIFIED"]
    assert not replay.finished
    cluster.clock.advance(seconds=60)
    assert cluster.list("pods") == []
    assert (replay.finished, replay.applied, replay.total) == (True, 3, 4)
    assert "things" in replay.skipped[0]


def test_replay_with_infinite_speed_and_invalid_speeds(cluster: Cluster) -> None:
    assert cluster.replay(KWOK, speed=math.inf).wait(1).finished
    replay = cluster.replay(KWOK)
    with pytest.raises(TimeoutError, match="0 of 4"):
        replay.wait(0.01)
    replay.stop()
    cluster.clock.advance(hours=1)
    assert cluster.list("pods") == []
    for speed in (0, -1, math.nan, "x", True):
        with pytest.raises((ValueError, TypeError)):
            cluster.replay(KWOK, speed=speed)  # type: ignore[arg-type]


def test_recorded_changes_are_replayed_in_another_cluster(cluster: Cluster, tmp_path: Path) -> None:
    cluster.load(definition())
    cluster.create(config_map("before", x="1"))
    cluster.create(config_map("gone"))
    with cluster.record(tmp_path / "recording.yaml") as recording:
        cluster.clock.advance(seconds=10)
        cluster.patch("cm", "before", {"data": {"x": None, "y": "2"}})
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"list": [1, 2]}}
        cluster.create(thing)
        cluster.clock.advance(seconds=10)
        cluster.patch("things", "t", {"spec": {"list": [3], "more": {"a": None, "b": 1}}})
        cluster.delete("cm", "gone")
        cluster.create(
            {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        )
    assert recording.changes == 4
    cluster.create(config_map("after"))
    with Cluster(profile="apiserver") as other:
        other.clock.hold()
        replay = other.replay(tmp_path / "recording.yaml")
        assert {one["metadata"]["name"] for one in other.list("cm", namespace="default")} == {"before", "gone"}
        other.clock.advance(seconds=10)
        assert other.get("things", "t")["spec"] == {"list": [1, 2]}
        other.clock.advance(seconds=10)
        assert replay.finished
        assert not replay.skipped
        assert other.get("things", "t")["spec"] == {"list": [3], "more": {"b": 1}}
        assert [one["data"] for one in other.list("cm", namespace="default")] == [{"y": "2"}]
        other.create(config_map("later"))  # the replayed definitions and objects are like any others
        assert other.patch("things", "t", {"spec": {"x": 1}})["spec"]["x"] == 1


def test_restore_is_recorded_as_creates_and_deletes(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    saved = cluster.snapshot()
    target = io.BytesIO()
    with cluster.record(target, kinds=["cm"], namespace="default"):
        cluster.delete("cm", "a")
        cluster.create(config_map("b"))
        cluster.restore(saved)
        cluster.create(config_map("c"))
    methods = [(patch.method, patch.name) for patch in read(target.getvalue()).patches]
    assert methods in (
        [("delete", "a"), ("create", "b"), ("delete", "b"), ("create", "a"), ("create", "c")],
        [("delete", "a"), ("create", "b"), ("delete", "b"), ("create", "c"), ("create", "a")],
        [("delete", "a"), ("create", "b"), ("delete", "b"), ("create", "a"), ("create", "c")],
    )


def test_long_recordings_are_flushed_incrementally(cluster: Cluster) -> None:
    target = io.BytesIO()
    with cluster.record(target, kinds=["cm"]) as recording:
        for n in range(600):
            cluster.create(config_map(f"c{n}"))
        assert len(recording._recorder._queue) < 600
    assert len(read(target.getvalue()).patches) == recording.changes == 600


def test_redact_removes_secret_values_from_recordings(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "c2VjcmV0"}})
    target = io.BytesIO()
    with cluster.record(target, kinds=["secrets"], redact=True):
        cluster.patch("secrets", "s", {"data": {"l": "c2VjcmV0"}})
    assert b"c2VjcmV0" not in target.getvalue()
    assert b"l:" in target.getvalue()


def test_remote_cluster_is_recorded_by_its_kubeconfig(cluster: Cluster) -> None:
    cluster.clock.release()
    cluster.create(config_map("a", x="1"))
    written = threading.Event()

    class Target(io.BytesIO):
        def flush(self) -> None:
            if self.getvalue().count(b"kind: ResourcePatch") >= 2:
                written.set()

    target = Target()
    recorder = RemoteRecorder(RemoteClient.of_kubeconfig(cluster.kubeconfig), target, kinds=["cm", "pods"], namespace="default")
    cluster.requests.where(verb="watch", resource="configmaps").wait(1)
    cluster.patch("cm", "a", {"data": {"x": "2"}})
    cluster.requests.where(verb="watch", resource="configmaps").wait(1)
    cluster.restart(cold=0)  # the recorder opens its watches again
    cluster.delete("cm", "a")
    assert written.wait(60)
    recorder.stop()
    found = read(target.getvalue())
    assert [one["data"] for one in found.objects] == [{"x": "1"}]
    assert [(one.method, one.name) for one in found.patches] == [("patch", "a"), ("delete", "a")]
    assert found.patches[0].template["data"] == {"x": "2"}


@pytest.mark.parametrize(
    "text",
    [
        b"[1, 2]",
        b"a: {",
        b"kind: Pod\napiVersion: v1\n",
        b"kind: Pod\nmetadata: {name: a}\n",
        KWOK.replace(b"method: patch", b"method: eat"),
        KWOK.replace(b"durationNanosecond: 2", b"durationNanosecond: -2"),
        KWOK.replace(b"durationNanosecond: 20000000000", b"durationNanosecond: soon"),
        KWOK.replace(b"target: {name: web, namespace: team}", b"target: 5"),
        KWOK.replace(b"target: {name: web, namespace: team}", b"target: {name: 5}"),
    ],
)
def test_invalid_recordings_are_rejected(cluster: Cluster, text: bytes) -> None:
    with pytest.raises(RecordingError):
        cluster.replay(text)


def test_replay_skips_patches_of_unknown_objects(cluster: Cluster) -> None:
    replay = cluster.replay(KWOK.replace(b"method: create", b"method: patch"), speed=math.inf)
    assert (replay.applied, replay.skipped_count, replay.finished) == (0, 4, True)


def test_recording_and_replay_over_http(cluster: Cluster) -> None:
    def ask(method: str, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(f"{cluster.url}/fakekube/v1/{path}", body, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
            return json.loads(text) if "json" in response.headers["Content-Type"] else text

    assert ask("POST", "recording", b'{"kinds": ["cm"], "namespace": "default"}')["changes"] == 0
    cluster.create(config_map("a"))
    assert ask("GET", "recording")["changes"] == 1
    recorded = ask("DELETE", "recording")
    cluster.delete("cm", "a")
    started = ask("POST", "replay?speed=10", recorded)
    assert started["total"] == 1
    cluster.clock.advance(seconds=10)
    assert ask("GET", "replay")["finished"]
    assert cluster.get("cm", "a")
    assert ask("DELETE", "replay")["applied"] == 1
    for method, path, body in (
        ("GET", "recording", None),
        ("DELETE", "replay", None),
        ("POST", "replay?speed=0", recorded),
        ("POST", "replay?speed=x", recorded),
        ("POST", "replay", b"- 1"),
        ("POST", "recording", b'{"kinds": "cm"}'),
        ("POST", "recording", b'{"kinds": ["nothings"]}'),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(method, path, body)
        refused.value.close()
        assert refused.value.code in (400, 404)


def test_strategic_diff_applied_to_the_old_object_yields_the_new_one() -> None:
    type_ = kind_type("", "v1", "Pod")
    assert type_ is not None
    states: list[dict[str, Any]] = [
        {},
        {
            "metadata": {"finalizers": ["a", "b"], "ownerReferences": [{"uid": "1"}], "labels": {"x": "1"}},
            "spec": {"tolerations": [{"key": "k"}]},
        },
        {
            "metadata": {"finalizers": ["c", "b"], "labels": {"y": "1"}},
            "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1}]}, {"name": "d"}]},
        },
        {
            "spec": {
                "containers": [{"name": "d", "image": "i"}, {"name": "c", "ports": [{"containerPort": 1}, {"containerPort": 2}]}]
            }
        },
        {
            "spec": {"containers": [{"name": "d"}, {"name": "d"}], "hostNetwork": True},
            "status": {"conditions": [{"type": "Ready"}]},
        },
    ]
    for old in states:
        for new in states:
            assert strategic.merge(type_, old, strategic.create(type_, old, new)) == new


def test_reset_ends_recordings_and_replays(cluster: Cluster) -> None:
    target = io.BytesIO()
    recording = cluster.record(target, kinds=["cm"])
    replay = cluster.replay(KWOK)
    cluster.reset()
    assert recording.finished
    assert replay.finished
    cluster.clock.advance(minutes=1)
    assert cluster.list("pods") == []
    for _ in range(5):
        cluster.replay(KWOK, speed=math.inf)
    assert len(cluster._recordings) == 1

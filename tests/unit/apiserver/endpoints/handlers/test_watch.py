"""Resource versions of bookmarks, and when bookmarks are sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakekube import Cluster


@pytest.mark.parametrize(("resource_version", "is_the_last_change"), [("0", True), ("1", True), ("", False)])
def test_initial_events_bookmark_revision_of_cached_and_consistent_reads(resource_version: str, is_the_last_change: bool) -> None:
    cluster = Cluster(profile="apiserver")

    def create(kind: str) -> int:
        obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "one", "namespace": "default"}}
        return int(cluster.create(obj)["metadata"]["resourceVersion"])

    changed, elsewhere = create("ConfigMap"), create("Secret")
    query = {
        "resourceVersion": resource_version,
        "resourceVersionMatch": "NotOlderThan",
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
    }
    events = [orjson.loads(frame) for frame in cluster.watch("/api/v1/namespaces/default/configmaps", query).take()]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    revision = int(events[-1]["object"]["metadata"]["resourceVersion"])
    assert revision == (changed if is_the_last_change else elsewhere)
    cluster.stop()


def test_bookmarks_are_sent_only_for_changes_of_the_watched_resource() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.clock.hold()

        def create(kind: str, name: str) -> int:
            obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}}
            return int(cluster.create(obj)["metadata"]["resourceVersion"])

        query = {"resourceVersion": str(create("ConfigMap", "one")), "allowWatchBookmarks": "true", "labelSelector": "none"}
        stream = cluster.watch("/api/v1/namespaces/default/configmaps", query)
        create("Secret", "one")
        cluster.clock.advance(minutes=1)
        assert stream.take() == []
        changed = create("ConfigMap", "two")
        create("Secret", "two")
        stream.take()
        cluster.clock.advance(minutes=1)
        (bookmark,) = map(orjson.loads, stream.take())
        assert (bookmark["type"], bookmark["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", str(changed))


def test_a_first_bookmark_has_the_revision_from_which_the_watch_starts() -> None:
    with Cluster(profile="apiserver") as cluster:

        def create(name: str) -> int:
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
            return int(cluster.create(obj)["metadata"]["resourceVersion"])

        begin = create("one")
        query = {"resourceVersion": str(begin), "allowWatchBookmarks": "true"}
        stream: Any = cluster.watch("/api/v1/namespaces/default/configmaps", query)
        changed = create("two")
        stream.set_bookmarks("first")
        events = [orjson.loads(frame) for frame in [*stream.take(), *stream.take()]]
        revisions = [(event["type"], int(event["object"]["metadata"]["resourceVersion"])) for event in events]
        assert revisions == [("BOOKMARK", begin), ("ADDED", changed)]


def test_take_stops_in_a_long_search_and_is_due_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that do not match cost a client's stream a bounded time at once, whatever their number."""
    now = [0.0]

    def tick() -> float:
        now[0] += 0.0006
        return now[0]

    monkeypatch.setattr("fakekube.apiserver.endpoints.handlers.watch.time.monotonic", tick)
    with Cluster(profile="apiserver") as cluster:

        def create(name: str) -> int:
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
            return int(cluster.create(obj)["metadata"]["resourceVersion"])

        query = {"resourceVersion": str(create("first")), "fieldSelector": "metadata.name=last"}
        stream = cluster.watch("/api/v1/namespaces/default/configmaps", query)
        for number in range(600):
            create(f"foreign-{number}")
        create("last")
        deadlines: list[float | None] = []
        frames: list[bytes] = []
        while not frames:
            frames = stream.take()
            if not frames:
                deadlines.append(stream.deadline)
        assert [orjson.loads(frame)["object"]["metadata"]["name"] for frame in frames] == ["last"]
        assert len(deadlines) > 3
        assert len(set(deadlines)) == len(deadlines)
        assert all(deadline is not None and deadline < cluster.clock.monotonic() for deadline in deadlines)
        assert stream.take() == []
        assert stream.deadline is not None
        assert stream.deadline > cluster.clock.monotonic()


def test_watches_that_send_the_same_frames_share_them() -> None:
    with Cluster(profile="apiserver") as cluster:

        def create(name: str, namespace: str = "default") -> int:
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
            return int(cluster.create(obj)["metadata"]["resourceVersion"])

        query = {"resourceVersion": str(create("begin"))}
        path = "/api/v1/namespaces/default/configmaps"
        first, second, third = (cluster.watch(path, query) for _ in range(3))
        other = cluster.watch("/api/v1/namespaces/kube-system/configmaps", query)
        everywhere = cluster.watch("/api/v1/configmaps", query)
        selecting = cluster.watch(path, {**query, "labelSelector": "!a"})
        create("one")
        create("two", "kube-system")
        create("three")

        def names(frames: list[bytes]) -> list[str]:
            return [orjson.loads(frame)["object"]["metadata"]["name"] for frame in frames]

        taken = [stream.take() for stream in (first, second, third)]
        assert [names(frames) for frames in taken] == [["one", "three"]] * 3
        assert taken[2] is taken[1]
        assert first.is_drained
        assert third.is_drained
        assert names(other.take()) == ["two"]
        assert names(everywhere.take()) == ["one", "two", "three"]
        assert names(selecting.take()) == ["one", "three"]
        create("four")
        assert [names(stream.take()) for stream in (first, second, third)] == [["four"]] * 3
        create("five")
        assert [names(stream.take()) for stream in (first, second)] == [["five"]] * 2
        create("six")  # after the others have made a batch
        assert names(third.take()) == ["five"]
        assert not third.is_drained
        assert names(third.take()) == ["six"]
        assert third.is_drained


def test_a_watch_is_not_drained_while_a_bookmark_is_due() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.clock.hold()
        path, query = "/api/v1/namespaces/default/configmaps", {"allowWatchBookmarks": "true", "timeoutSeconds": "600"}
        stream: Any = cluster.watch(path, query)
        while stream.take():
            pass

        def create(name: str) -> None:
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})

        create("one")
        assert len(stream.take()) == 1
        assert stream.is_drained
        create("two")
        cluster.clock.advance(seconds=stream.deadline - cluster.clock.monotonic())
        assert len(stream.take()) == 1
        assert not stream.is_drained
        assert orjson.loads(stream.take()[0])["type"] == "BOOKMARK"


@pytest.mark.parametrize("start", ["initial events", "changes"])
def test_take_returns_few_large_events(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher that does not read keeps what was taken for it."""
    monkeypatch.setattr("fakekube.apiserver.endpoints.handlers.watch.time.monotonic", lambda: 0.0)
    with Cluster(profile="apiserver") as cluster:
        begin = int(
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})["metadata"]["resourceVersion"]
        )
        names = [f"c-{number:03}" for number in range(120)]
        for name in names:
            cluster.create(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": name, "labels": {"large": ""}},
                    "data": {"a": "x" * 50_000},
                }
            )
        query = {"labelSelector": "large", "resourceVersion": "" if start == "initial events" else str(begin)}
        stream = cluster.watch("/api/v1/namespaces/default/configmaps", query)
        found: list[str] = []
        while frames := stream.take():
            assert sum(map(len, frames)) < 1 << 20
            found += [orjson.loads(frame)["object"]["metadata"]["name"] for frame in frames]
        assert found == names

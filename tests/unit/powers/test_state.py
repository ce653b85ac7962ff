"""History, reads at a past revision, saved states, reset, restart, outage, and the first revision."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fakekube import ApiError, Cluster
from fakekube.powers.state import LIMIT, MAX_VALUES, StateError

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as made:
        yield made


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def ask(cluster: Cluster, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_history_of_an_object(cluster: Cluster) -> None:
    made = cluster.create(config_map("a", x="1", y="1"))
    cluster.patch("cm", "a", {"data": {"x": "2"}})
    cluster.delete("cm", "a")
    versions = cluster.history("configmaps", "a")
    assert [one.type for one in versions] == ["ADDED", "MODIFIED", "DELETED"]
    assert versions[0].revision == int(made["metadata"]["resourceVersion"])
    assert "data.x" in versions[1].changed
    assert "data.y" not in versions[1].changed
    assert versions[2].object["data"] == {"x": "2", "y": "1"}
    assert versions[0].time <= versions[2].time
    assert cluster.history("configmaps", "other") == []


def test_the_change_of_one_write(cluster: Cluster) -> None:
    cluster.create(config_map("b"))
    made, changed, again = (
        int(one["metadata"]["resourceVersion"])
        for one in (
            cluster.create(config_map("a", x="1")),
            cluster.patch("cm", "a", {"data": {"x": "2"}}),
            cluster.patch("cm", "b", {"data": {"x": "3"}}),
        )
    )
    versions = cluster.history("cm", "a")
    assert cluster.change("cm", "a", revision=changed) == (versions[0].object, versions[1].object)
    assert [cluster.change("cm", "a", revision=one) for one in (made, again, changed - 1, again + 9)] == [None] * 4
    cluster.delete("cm", "a")
    assert cluster.change("cm", "a", revision=cluster.history("cm", "a")[-1].revision) is None
    cluster.compact()
    assert cluster.change("cm", "a", revision=changed) is None


def test_history_and_reads_after_compaction(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    cluster.patch("cm", "a", {"data": {"x": "2"}})
    cluster.compact()
    assert [one.type for one in cluster.history("cm", "a")][-1] == "MODIFIED"
    with pytest.raises(ApiError) as error:
        cluster.at(201).list("configmaps")
    assert error.value.code == 410


def test_at_reads_the_cluster_at_a_revision(cluster: Cluster) -> None:
    first = cluster.create(config_map("a", x="1"))
    cluster.patch("cm", "a", {"data": {"x": "2"}})
    cluster.create(config_map("b"))
    past = cluster.at(int(first["metadata"]["resourceVersion"]))
    assert past.get("cm", "a")["data"] == {"x": "1"}
    assert [one["metadata"]["name"] for one in past.list("cm", namespace="default")] == ["a"]
    with pytest.raises(LookupError):
        past.get("cm", "b")


def test_saved_state_keeps_uids_and_resource_versions(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create(config_map("a", x="1"))
    kept = cluster.patch("cm", "a", {"data": {"x": "2"}})
    file = tmp_path / "state.yaml"
    cluster.save(file)
    with Cluster(profile="apiserver") as other:
        for n in range(30):
            other.create(config_map(f"other-{n}"))
        before = other.list("cm", namespace="default")
        assert len(before) == 30
        other.load(file)
        assert other.get("cm", "a") == kept
        assert [one["metadata"]["name"] for one in other.list("cm", namespace="default")] == ["a"]
        newer = other.create(config_map("b"))
        assert int(newer["metadata"]["resourceVersion"]) > max(int(one["metadata"]["resourceVersion"]) for one in before)


@pytest.mark.parametrize("compact", [False, True])
def test_saved_history_is_available_after_load(cluster: Cluster, tmp_path: Path, compact: bool) -> None:
    first = cluster.create(config_map("a", x="1"))
    second = cluster.patch("cm", "a", {"data": {"x": "2"}})
    cluster.create(config_map("b"))
    cluster.delete("cm", "b")
    revisions = [int(one["metadata"]["resourceVersion"]) for one in (first, second)]
    file = tmp_path / "state"
    cluster.save(file, compact=compact, history=True)
    with Cluster(profile="apiserver") as other:
        other.load(file)
        assert [(one.type, one.revision) for one in other.history("cm", "a")] == list(
            zip(("ADDED", "MODIFIED"), revisions, strict=True)
        )
        assert [one.type for one in other.history("cm", "b")] == ["ADDED", "DELETED"]
        assert other.at(revisions[0]).get("cm", "a")["data"] == {"x": "1"}
        assert other.at(revisions[1]).get("cm", "a")["data"] == {"x": "2"}
        watch = other.watch(MAPS, {"resourceVersion": str(revisions[0])})
        types = [json.loads(frame)["type"] for frame in watch.take()]
        assert types == ["MODIFIED", "ADDED", "DELETED"]
        other.patch("cm", "a", {"data": {"x": "3"}})
        assert [json.loads(frame)["type"] for frame in watch.take()] == ["MODIFIED"]
        watch.close()
        assert len(other.history("cm", "a")) == 3
        other.compact()
        with pytest.raises(ApiError):
            other.at(revisions[0]).list("cm")


def test_saved_history_is_dropped_when_loaded_into_a_used_cluster(cluster: Cluster, tmp_path: Path) -> None:
    first = cluster.create(config_map("a", x="1"))
    cluster.patch("cm", "a", {"data": {"x": "2"}})
    cluster.save(tmp_path / "state", history=True)
    with Cluster(profile="apiserver") as other:
        for n in range(9):
            other.create(config_map(f"c{n}"))
        other.load(tmp_path / "state")
        assert [one["metadata"]["name"] for one in other.list("cm", namespace="default")] == ["a"]
        assert [one.type for one in other.history("cm", "a")] == ["MODIFIED"]
        with pytest.raises(ApiError) as error:
            other.at(int(first["metadata"]["resourceVersion"])).list("cm")
        assert error.value.code == 410


def test_compact_state_file_holds_the_same_objects(cluster: Cluster, tmp_path: Path) -> None:
    for n in range(50):
        cluster.create(config_map(f"c{n}"))
    cluster.save(tmp_path / "state.yaml")
    cluster.save(tmp_path / "state.gz", compact=True)
    assert (tmp_path / "state.gz").stat().st_size * 5 < (tmp_path / "state.yaml").stat().st_size
    before = cluster.list("cm")
    cluster.reset()
    cluster.load((tmp_path / "state.gz").read_bytes())
    assert cluster.list("cm") == before


def test_large_resource_versions_survive_save_and_load(tmp_path: Path) -> None:
    with Cluster(profile="apiserver", first_revision=2**100) as cluster:
        made = cluster.create(config_map("a"))
        for compact in (False, True):
            cluster.save(tmp_path / "state", compact=compact, history=True)
            with Cluster(profile="apiserver") as other:
                other.load(tmp_path / "state")
                assert other.get("cm", "a") == made


def test_manifest_mentioning_cluster_state_is_loaded_as_a_manifest(cluster: Cluster) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    apiVersion: fakekube.dev/v1\n    kind: ClusterState\n"
    cluster.load(text)
    assert "ClusterState" in cluster.get("cm", "a")["data"]["x"]


def test_damaged_state_files_are_rejected(cluster: Cluster) -> None:
    good = "apiVersion: fakekube.dev/v1\nkind: ClusterState\nversion: '1.36'\nrevision: 9\n"
    row = "{key: default/a, created: 5, revision: 5, object: {metadata: {name: a}}}"
    for text in (
        good + "resources: {configmaps: 5}\n",
        good + "resources: {configmaps: [{key: default/a}]}\n",
        good + f"resources: {{configmaps: [{row.replace('revision: 5', 'revision: 50')}]}}\n",
        good + "resources: {}\nhistory: {since: 1}\n",
        good
        + "resources: {}\nhistory: {since: 1, resources: {configmaps: {floor: 1, before: [], events: [{key: a, revision: 3, age: 1}]}}}\n",
        b"\x1f\x8bnothing",
        "apiVersion: fakekube.dev/v1\nkind: ClusterState\nversion: '1.2'\n",
        "apiVersion: fakekube.dev/v1\nkind: ClusterState\nversion: '1.36'\nrevision: x\nresources: {}\n",
    ):
        with pytest.raises(ValueError, match="state"):
            cluster.load(text)


def test_reset_restores_the_initial_state(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    cluster.keep_initial()
    cluster.create(config_map("b"))
    cluster.faults.on("get").status(500)
    cluster.reset()
    assert [one["metadata"]["name"] for one in cluster.list("cm", namespace="default")] == ["a"]
    assert not len(cluster.faults)
    assert not len(cluster.requests.where(own=True).where(verb="create"))
    fresh = Cluster(profile="apiserver")
    fresh.create(config_map("c"))
    fresh.reset()
    assert fresh.list("cm", namespace="default") == []


def test_restart_drops_connections_and_cold_cache_returns_429(cluster: Cluster) -> None:
    cluster.clock.hold()
    cluster.create(config_map("a"))
    watch = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    watch.request("GET", f"{MAPS}?watch=1")
    response = watch.getresponse()
    response.readline()
    cluster.restart(cold=5)
    with suppress(http.client.IncompleteRead, OSError):  # it ends in good order, or not
        assert response.read() == b""
    code, answer = ask(cluster, MAPS)
    assert (code, answer["message"]) == (429, "storage is (re)initializing")
    assert ask(cluster, f"{MAPS}?limit=1")[0] == 200
    assert ask(cluster, f"{MAPS}/a")[0] == 200
    cluster.clock.advance(seconds=6)
    assert ask(cluster, MAPS)[0] == 200
    watch.close()


def test_connections_are_refused_during_an_outage(cluster: Cluster) -> None:
    port = cluster.port
    cluster.clock.hold()
    cluster.outage(3)
    with pytest.raises(ConnectionRefusedError):
        ask(cluster, MAPS)
    cluster.clock.advance(seconds=4)
    assert ask(cluster, MAPS)[0] == 200
    with cluster.outage(), pytest.raises(ConnectionRefusedError):
        ask(cluster, MAPS)
    assert ask(cluster, MAPS)[0] == 200
    assert cluster.port == port


def test_overlapping_outages_end_with_the_last_one(cluster: Cluster) -> None:
    assert cluster.port
    cluster.clock.hold()
    cluster.outage(10)
    cluster.outage(3)
    cluster.clock.advance(seconds=4)
    with pytest.raises(ConnectionRefusedError):
        ask(cluster, MAPS)
    with cluster.outage():
        cluster.clock.advance(seconds=7)
        with pytest.raises(ConnectionRefusedError):
            ask(cluster, MAPS)
    assert ask(cluster, MAPS)[0] == 200


@pytest.mark.parametrize("first", [2**53 + 1, 2**64, 2**100])
def test_first_revision_sets_the_initial_resource_version(first: int) -> None:
    cluster = Cluster(profile="apiserver", first_revision=first)
    assert int(cluster.create(config_map("a"))["metadata"]["resourceVersion"]) == first + 1


def test_large_revisions_are_accepted_in_updates_reads_and_watches() -> None:
    with Cluster(profile="apiserver", first_revision=2**64) as cluster:
        cluster._settings.too_large_resource_version_wait = 0.01  # as nothing is written meanwhile, it need not be 3 s
        made = cluster.create(config_map("a"))
        updated = cluster.update({**made, "data": {"x": "1"}})
        with pytest.raises(ApiError, match="the object has been modified"):
            cluster.update({**made, "data": {"x": "2"}})
        old, path = made["metadata"]["resourceVersion"], "/api/v1/namespaces/default/configmaps"
        exact = cluster.call("GET", path, query={"resourceVersion": old, "resourceVersionMatch": "Exact"})
        assert [one["metadata"]["resourceVersion"] for one in exact["items"]] == [old]
        watch = cluster.watch(path, {"resourceVersion": old})
        (line,) = watch.take()
        assert json.loads(line)["object"]["metadata"]["resourceVersion"] == updated["metadata"]["resourceVersion"]
        watch.close()
        cluster.create(config_map("b"))
        first = cluster.call("GET", path, query={"limit": "1"})
        rest = cluster.call("GET", path, query={"limit": "1", "continue": first["metadata"]["continue"]})
        assert [one["metadata"]["name"] for one in rest["items"]] == ["b"]
        assert cluster.request("GET", path, query={"resourceVersion": str(2**70)}).status == 504
    with Cluster(profile="apiserver") as small:
        small.create(config_map("a"))
        with pytest.raises(ApiError, match="value out of range"):
            small.update(config_map("a") | {"metadata": {"name": "a", "resourceVersion": str(2**64)}})


def test_exported_objects_can_be_loaded_into_another_cluster(cluster: Cluster) -> None:
    cluster.create(config_map("a", x="1"))
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}})
    exported = cluster.export(namespace="default", kinds=["cm", "secrets"], redact=True)
    assert [(one["kind"], one["data"]) for one in exported] == [("ConfigMap", {"x": "1"}), ("Secret", {"k": ""})]
    with Cluster(profile="apiserver") as other:
        other.load(exported)
        assert other.get("cm", "a")["data"] == {"x": "1"}
    owner = cluster.get("cm", "a")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["metadata"]["uid"]}
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "0", "ownerReferences": [reference]}})
    with Cluster(profile="apiserver") as third:
        third.load(cluster.export(namespace="default", kinds=["cm"]))
        (linked,) = third.get("cm", "0")["metadata"]["ownerReferences"]
        assert linked["uid"] == third.get("cm", "a")["metadata"]["uid"] != owner["metadata"]["uid"]
    assert {one["kind"] for one in cluster.export()} >= {"Namespace", "ClusterRole", "ConfigMap"}


def test_scaled_clock_runs_faster() -> None:
    clock = Cluster(profile="apiserver").clock
    clock.scale(3600.0)
    before = clock.now()
    fired: list[float] = []
    clock.call_at(clock.monotonic() + 30, lambda: fired.append(1))
    while (clock.now() - before).total_seconds() < 60:
        pass
    clock.hold()
    stood = clock.now()
    assert clock.now() == stood
    clock.release()
    assert clock.now() >= stood
    with pytest.raises(ValueError, match="positive"):
        clock.scale(0)


def test_snapshots_hold_objects_without_history(cluster: Cluster) -> None:
    cluster.create(config_map("a", x="0"))
    kept = []
    for n in range(1, 200):
        kept.append(cluster.snapshot())
        cluster.patch("cm", "a", {"data": {"x": str(n)}})
    assert [len(one.contents["configmaps"].history.all()) for one in kept] == [0] * len(kept)
    assert max(len(one.contents["configmaps"].versions.heads) for one in kept) == len(cluster.list("cm"))
    twin = cluster.fork()
    for n in (150, 7):
        cluster.restore(kept[n])
        assert cluster.get("cm", "a")["data"] == {"x": str(n)}
        twin.restore(kept[n])
        assert twin.get("cm", "a")["data"] == {"x": str(n)}
    same = cluster.snapshot()
    assert cluster.snapshot().contents["configmaps"] is same.contents["configmaps"]
    cluster.patch("cm", "a", {"data": {"x": "end"}})
    cluster.restore(same)
    assert cluster.get("cm", "a")["data"] == {"x": "7"}


def test_recorded_requests_are_bounded() -> None:
    small = Cluster(profile="apiserver", keep_requests=10)
    small.create(config_map("a"))
    for _ in range(50):
        small.get("cm", "a")
    assert len(small.requests.where(own=True)) == 10
    assert small.requests.mark() == 50
    small.stop()


HEAD = '{"apiVersion":"fakekube.dev/v1","kind":"ClusterState","version":"1.36","revision":%s,"resources":{"configmaps":[%s]}}'
ROW = '{"key":%s,"created":%s,"revision":%s,"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":%s}}'
NAMED = '{"name":"a","namespace":"default","uid":"u"}'


def post(cluster: Cluster, path: str, body: bytes) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    try:
        connection.request("POST", path, body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.fixture
def controlled() -> Iterator[Cluster]:
    with Cluster(profile="apiserver", control=True) as made:
        made.create(config_map("before"))
        yield made


@pytest.mark.parametrize(
    "state",
    [
        HEAD % (500, ROW % ('"default/a"', 1, 300, '{"name":"a","namespace":"default"}')),
        HEAD % (500, ROW % ('"default/a"', 1, 300, '{"namespace":"default","uid":"u"}')),
        HEAD % (500, ROW % ('"default/a"', 301, 300, NAMED)),
        HEAD % (500, ROW % ("7", 1, 300, NAMED)),
        HEAD % (500, ROW % ('"default/a"', 1, "300.5", NAMED)),
        HEAD % (500, ROW % ('"default/a"', 1, "-1", NAMED)),
        HEAD % (500, ",".join([ROW % ('"default/a"', 1, 300, NAMED)] * 2)),
        HEAD % ("9" * 200_000, ROW % ('"default/a"', 1, 300, NAMED)),
        HEAD % ('"' + "9" * 200_000 + '"', ROW % ('"default/a"', 1, 300, NAMED)),
        HEAD % (500, '{"a":' * 5_000 + "1" + "}" * 5_000),
        HEAD % (500, ROW % ('"default/a"', 1, 300, '{"name":"a","uid":"u","x":' + "[" * 1100 + "1" * 5000 + "]" * 1100 + "}")),
    ],
)
@pytest.mark.parametrize("compact", [False, True])
def test_invalid_states_change_nothing(controlled: Cluster, state: str, compact: bool) -> None:
    body = gzip.compress(state.encode()) if compact else state.encode()
    status, answer = post(controlled, "/fakekube/v1/load", body)
    assert status == 400, answer
    assert len(answer["error"]) < 1000
    assert controlled.get("configmaps", "before")["metadata"]["name"] == "before"


@pytest.mark.parametrize("plain", [b" " * (LIMIT + 1), b"[" + b"[]," * (MAX_VALUES // 2 + 1)])
def test_states_that_inflate_to_too_much_are_refused(controlled: Cluster, plain: bytes) -> None:
    status, answer = post(controlled, "/fakekube/v1/load", gzip.compress(plain, compresslevel=1))
    assert (status, "more than" in answer["error"]) == (413, True)


def test_a_deeply_nested_recording_is_refused(controlled: Cluster) -> None:
    document = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
    nested = document + "".join(f"{' ' * level}a:\n" for level in range(1, 3001)) + " " * 3001 + "b: c\n"
    status, answer = post(controlled, "/fakekube/v1/replay", nested.encode())
    assert (status, "nested" in answer["error"]) == (400, True)


def test_state_of_a_newer_minor_loses_fields_that_an_older_one_does_not_know(tmp_path: Path) -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "d"}, "spec": {}}
    with Cluster(profile="apiserver", version="1.37") as newer:
        made = newer.create(driver)
        newer.save(tmp_path / "state", history=True)
    assert "preventPodSchedulingIfMissing" in made["spec"]
    with Cluster(profile="apiserver", version="1.33") as older:
        older.load(tmp_path / "state")
        found = older.get("csidrivers", "d")
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert "preventPodSchedulingIfMissing" not in found["spec"]
        groups = [group["name"] for group in ask(older, "/apis")[1]["groups"]]
        assert "storage.k8s.io" in groups
        assert "storagemigration.k8s.io" not in groups


def test_state_of_an_older_minor_gets_what_a_newer_server_makes_at_its_start(tmp_path: Path) -> None:
    with Cluster(profile="apiserver", version="1.34") as older:
        made = older.create(config_map("a", x="1"))
        older.save(tmp_path / "state", compact=True)
    with Cluster(profile="apiserver", version="1.37") as newer:
        newer.load(tmp_path / "state")
        assert newer.get("configmaps", "a") == made
        assert newer.get("apiservices", "v1.storagemigration.k8s.io")["spec"]["versionPriority"] == 15
        assert ask(newer, "/apis/storagemigration.k8s.io/v1/storageversionmigrations")[0] == 200


def test_state_with_kinds_that_a_minor_does_not_know_is_refused(tmp_path: Path) -> None:
    rule = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
    with Cluster(profile="apiserver", version="1.37") as newer:
        newer.create({**rule, "spec": {"taint": {"key": "example.com/a", "effect": "NoSchedule"}}})
        newer.save(tmp_path / "state")
    with Cluster(profile="apiserver", version="1.36") as older:
        with pytest.raises(StateError, match=r"^Kubernetes 1\.36 does not serve devicetaintrules\.resource\.k8s\.io \(r\)$"):
            older.load(tmp_path / "state")
        assert older.get("namespaces", "default")["metadata"]["name"] == "default"


def test_state_of_an_older_minor_is_read_with_the_defaults_of_the_newer_one(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"serviceName": "db", "selector": {"matchLabels": {"a": "b"}}, "template": template}
    with Cluster(profile="apiserver", version="1.36") as older:
        older.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec})
        older.save(tmp_path / "state")
    with Cluster(profile="apiserver", version="1.37") as newer:
        newer.load(tmp_path / "state")
        assert newer.get("statefulsets", "db")["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0, "maxUnavailable": 1}

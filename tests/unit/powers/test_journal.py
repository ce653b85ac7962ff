"""Causes and the journal: which request made which change, in which order, and how far back it reaches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.powers import journal as journals
from fakekube.powers.journal import Journal
from tests.unit.seen import columns, config_map, deployment


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as started:
        yield started


def test_a_change_names_its_request(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    cluster.patch("configmaps", "a", {"data": {"x": "1"}})
    cluster.delete("configmaps", "a")
    rows = columns(cluster.rows.changes(resource="configmaps", name="a"))
    assert [row["type"] for row in rows] == ["ADDED", "MODIFIED", "DELETED"]
    assert [row["verb"] for row in rows] == ["create", "patch", "delete"]
    assert [row["actor"] for row in rows] == ["fakekube"] * 3
    requests = {row["number"]: row for row in columns(cluster.rows.requests())}
    for row in rows:
        assert requests[row["request"]]["rev"] == row["revision"]
        assert requests[row["request"]]["writes"] == 1


def test_a_refused_request_has_no_change(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    with pytest.raises(Exception, match="already exists"):
        cluster.create(config_map("a"))
    refused = columns(cluster.rows.requests())[-1]
    assert (refused["code"], refused["why"], refused["rev"], refused["writes"], refused["name"]) == (
        409,
        "AlreadyExists",
        0,
        0,
        "a",
    )


def test_a_deletecollection_has_several_direct_changes(cluster: Cluster) -> None:
    for name in "abc":
        cluster.create(config_map(name))
    cluster.call("DELETE", "/api/v1/namespaces/default/configmaps")
    request = columns(cluster.rows.requests())[-1]
    assert request["writes"] == 3
    rows = [row for row in columns(cluster.rows.changes()) if row["request"] == request["number"]]
    assert [(row["type"], row["indirect"]) for row in rows] == [("DELETED", 0)] * 3


def test_changes_of_another_object_are_indirect(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"plural": "widgets", "kind": "Widget"},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        }
    )
    number = columns(cluster.rows.requests())[-1]["number"]
    rows = [row for row in columns(cluster.rows.changes()) if row["request"] == number]
    assert {(row["resource"], row["indirect"]) for row in rows} >= {("customresourcedefinitions.apiextensions.k8s.io", 0)}
    assert all(row["indirect"] for row in rows if row["resource"] != "customresourcedefinitions.apiextensions.k8s.io")


def test_every_change_of_a_rollout_has_a_cause_or_a_reason() -> None:
    with Cluster() as cluster:
        cluster.create(deployment("web"))
        cluster.settle()
        rows = columns(cluster.rows.changes())
        assert all(row["actor"] or row["reason"] in ("initial", "cluster") for row in rows)
        assert {"deployment-controller", "replicaset-controller", "scheduler", "kubelet", "fakekube"} <= {
            row["actor"] for row in rows
        }
        assert [row["revision"] for row in rows] == sorted(row["revision"] for row in rows)


def test_load_replay_and_restore_are_reasons(cluster: Cluster, tmp_path: Any) -> None:
    with cluster.record(tmp_path / "recording.yaml", kinds=["configmaps"]):
        cluster.create(config_map("recorded"))
    with Cluster(profile="apiserver") as other:
        other.replay(tmp_path / "recording.yaml", speed=float("inf")).wait()
        row = columns(other.rows.changes(resource="configmaps", name="recorded"))[0]
        assert (row["reason"], row["request"], row["actor"]) == ("replay", -1, "")


def test_the_write_of_a_fault_is_that_of_the_fault(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    cluster.faults.on("update", "configmaps", own=True).conflict(label="clash", times=1)
    read = cluster.get("configmaps", "a")
    with pytest.raises(Exception, match="modified"):
        cluster.update(read)
    rows = columns(cluster.rows.changes(resource="configmaps", name="a"))
    assert rows[-1]["actor"] == "fault clash"
    assert rows[-1]["side"] == "fault"


def test_the_journal_reaches_further_back_than_the_compaction(cluster: Cluster) -> None:
    cluster.rows.journal()
    created = cluster.create(config_map("a", x="0"))
    revision = int(created["metadata"]["resourceVersion"])
    cluster.patch("configmaps", "a", {"data": {"x": "1"}})
    cluster.compact()
    found = cluster.rows.object("configmaps", "default", "a", revision)
    assert found is not None
    assert found["object"]["data"] == {"x": "0"}
    assert len(cluster.rows.changes(resource="configmaps", name="a")["columns"]["revision"]) == 2


def test_concurrent_writes_are_in_the_order_of_their_revisions(cluster: Cluster) -> None:
    cluster.rows.journal()
    threads = [
        threading.Thread(target=lambda part=part: [cluster.create(config_map(f"{part}-{number}")) for number in range(25)])
        for part in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [row for row in columns(cluster.rows.changes(resource="configmaps")) if row["reason"] != "initial"]
    assert len(rows) == 100
    assert [row["revision"] for row in rows] == sorted(row["revision"] for row in rows)
    requests = {row["number"]: row["name"] for row in columns(cluster.rows.requests())}
    assert all(requests[row["request"]] == row["name"] for row in rows)


def test_the_number_of_changes_is_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "KEPT_EVENTS", 5)
    cluster.rows.journal()
    for number in range(12):
        cluster.create(config_map(f"a-{number}"))
    changes = cluster.rows.journal()
    assert sum(change.event is not None for change in changes) == 5
    assert changes[-1].event is not None
    light = next(change for change in changes if change.key == "default/a-0")
    assert (light.object, light.type, light.cause.number) == (None, "ADDED", 0)
    assert cluster.rows.change(light.revision)["kept"] is False  # type: ignore[index]


def test_changes_stay_in_order_when_many_come_between_two_readings(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "KEPT_EVENTS", 5)
    for number in range(24):
        cluster.create(config_map(f"a-{number}"))
        if number in (0, 3, 4):
            cluster.rows.journal()
    revisions = [change.revision for change in cluster.rows.journal()]
    assert revisions == sorted(revisions)
    assert len(cluster.rows.changes(resource="configmaps", name="a-3")["columns"]["revision"]) == 1


def test_a_restored_history_comes_after_the_changes_before(cluster: Cluster, tmp_path: Any) -> None:
    with Cluster(profile="apiserver", first_revision=5_000) as other:
        other.create(config_map("restored"))
        other.save(tmp_path / "state", history=True)
    cluster.create(config_map("before"))
    cluster.rows.journal()
    cluster.load(tmp_path / "state")
    cluster.create(config_map("after"))
    revisions = [change.revision for change in cluster.rows.journal()]
    assert revisions == sorted(revisions)
    assert {change.key for change in cluster.rows.journal()} >= {"default/before", "default/restored", "default/after"}


@pytest.mark.parametrize("read", [True, False])
def test_the_bytes_of_objects_are_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, read: bool) -> None:
    monkeypatch.setattr(journals, "KEPT_BYTES", 20_000)
    monkeypatch.setattr(journals, "_COUNT_INTERVAL", 1)
    cluster.rows.journal()
    for number in range(20):
        cluster.create(config_map(f"a-{number}", x="x" * 3_000))
        if read:
            cluster.rows.journal()
    kept = [change.key for change in cluster.rows.journal() if change.event is not None]
    assert kept[-1] == "default/a-19"
    assert 1 <= len(kept) <= 10


def test_an_open_journal_is_not_opened_again() -> None:
    journal = Journal([])
    assert not journal.is_open
    assert journal.find(5) is None

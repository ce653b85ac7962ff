"""The events of kubelets about their node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakekube import Cluster

HEALTHY = ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"]
STARTED = ["Starting", "NodeAllocatableEnforced", *HEALTHY]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=0) as made:
        made.clock.hold()
        made.pace = 1.0
        yield made


def reasons(cluster: Cluster) -> list[str]:
    """The reasons of the events of kubelets, in their order; empties the events."""
    found = [one for one in cluster.list("events") if one["source"].get("component") == "kubelet"]
    found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
    for one in found:
        cluster.delete("events", one["metadata"]["name"])
    return [one["reason"] for one in found]


def test_a_kubelet_records_that_it_starts_and_that_its_node_is_healthy(cluster: Cluster) -> None:
    cluster.nodes.add("n")
    cluster.settle()
    messages = {one["reason"]: one["message"] for one in cluster.list("events") if one["source"].get("host") == "n"}
    assert messages["Starting"] == "Starting kubelet."
    assert messages["NodeReady"] == "Node n status is now: NodeReady"
    assert reasons(cluster) == STARTED
    cluster.clock.advance(seconds=60)
    cluster.settle()
    assert reasons(cluster) == []


def test_a_kubelet_sees_that_its_node_is_cordoned_when_it_syncs_the_status(cluster: Cluster) -> None:
    cluster.nodes.add("n")
    cluster.settle()
    reasons(cluster)
    for change, reason in ((cluster.nodes.cordon, "NodeNotSchedulable"), (cluster.nodes.uncordon, "NodeSchedulable")):
        change("n")
        cluster.settle()
        assert reasons(cluster) == []
        cluster.clock.advance(seconds=60)
        cluster.settle()
        assert reasons(cluster) == [reason]


def test_a_kubelet_that_starts_again_records_it_again(cluster: Cluster) -> None:
    cluster.nodes.add("n")
    cluster.settle()
    cluster.nodes.fail("n")
    cluster.settle()
    cluster.clock.advance(seconds=60)
    cluster.settle()
    reasons(cluster)
    cluster.nodes.recover("n")
    cluster.settle()
    assert reasons(cluster) == STARTED


def test_a_node_that_becomes_ready_again_has_events_about_what_has_changed(cluster: Cluster) -> None:
    cluster.nodes.add("n")
    cluster.settle()
    reasons(cluster)
    conditions = cluster.nodes["n"]["status"]["conditions"]
    changed = [one | {"status": "Unknown"} if one["type"] in ("Ready", "DiskPressure") else one for one in conditions]
    cluster.patch("nodes", "n", {"status": {"conditions": changed}}, subresource="status")
    cluster.settle()
    assert reasons(cluster) == ["NodeHasNoDiskPressure", "NodeReady"]


def test_kubelets_record_nothing_about_nodes_without_a_pace(cluster: Cluster) -> None:
    cluster.pace = 0.0
    cluster.nodes.add("n")
    cluster.settle()
    assert reasons(cluster) == []


@pytest.mark.parametrize(("version", "api_version", "uid"), [("1.34", None, "name"), ("1.36", "v1", None), ("1.37", "v1", "uid")])
def test_how_a_kubelet_refers_to_its_node_depends_on_the_minor(version: str, api_version: str | None, uid: str | None) -> None:
    with Cluster(nodes=0, version=version) as cluster:
        cluster.clock.hold()
        cluster.pace = 1.0
        metadata = cluster.nodes.add("n")["metadata"]
        cluster.settle()
        about = next(one["involvedObject"] for one in cluster.list("events") if one["reason"] == "Starting")
        assert (about.get("apiVersion"), about.get("uid")) == (api_version, metadata[uid] if uid else None)

"""The public surface of the package: what it shows, and that a cluster can be used in any order."""

from __future__ import annotations

import gc
import weakref

import pytest

import fakekube
from fakekube import Cluster
from fakekube.store.values import VISITED
from tests.differential.client import TABLE
from tests.differential.sample_objects import widget_definition


def test_dir_of_the_package_equals_all() -> None:
    assert dir(fakekube) == sorted(fakekube.__all__)
    assert all(getattr(fakekube, name) for name in dir(fakekube))
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        fakekube.other  # noqa: B018


def test_unknown_minor_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"Kubernetes 1\.2 is not known; known: .*1\.36"):
        Cluster(version="1.2")


def test_cluster_start_and_stop_are_idempotent() -> None:
    cluster = Cluster(profile="apiserver")
    with pytest.raises(RuntimeError, match="not started"):
        cluster.url  # noqa: B018
    assert cluster.start() is cluster
    url = cluster.url
    assert cluster.start().url == url
    cluster.stop()
    cluster.stop()
    for use in (lambda: cluster.url, cluster.start):
        with pytest.raises(RuntimeError, match="stopped"):
            use()
    with cluster.fork() as twin:
        assert twin.url != url


def test_fork_keeps_the_compaction_interval() -> None:
    cluster = Cluster(profile="apiserver", compaction_interval=7.0)
    assert cluster.fork().fork()._retention.compaction_interval == 7.0


def references(cluster: Cluster) -> list[weakref.ref[object]]:
    backend = cluster._machinery.backend
    return [weakref.ref(part) for part in (cluster, backend.registry, backend.store, cluster._machinery.application)]


def test_stopped_cluster_is_freed() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        cluster.delete("configmaps", "a")
        assert cluster.port
        parts = references(cluster)
    del cluster
    gc.collect()
    assert [part() for part in parts] == [None] * 4


def test_stopped_cluster_with_a_large_store_is_freed() -> None:
    """The cyclic collector does not visit what a large store holds: nothing of it refers to the store."""
    with Cluster(profile="apiserver") as cluster:
        cluster.keep_changes()
        cluster.create(widget_definition("widgets", "Widget", "example.com"))
        for number in range(VISITED + 20):
            cluster.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"a-{number}"}})
        for number in range(20):
            cluster.patch("widgets", f"a-{number}", {"metadata": {"labels": {"changed": "1"}}})
        assert cluster.request("GET", "/apis/example.com/v1/widgets", headers={"Accept": TABLE}).status == 200
        assert len(cluster.list("widgets")) == VISITED + 20
        parts = references(cluster)
    del cluster
    gc.collect()
    assert [part() for part in parts] == [None] * 4

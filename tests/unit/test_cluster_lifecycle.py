"""The life cycle of clusters: operations in any order and twice, checked against a model; memory of stopped clusters."""

from __future__ import annotations

import gc
import ssl
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from fakekube import Cluster
from fakekube.apimachinery.codecs import document

NAMES = frozenset("abcd")


class ModelledCluster:
    """A cluster, the names of the ConfigMaps that it should have, and whether it should be started or stopped."""

    def __init__(self, cluster: Cluster, names: frozenset[str]) -> None:
        self.cluster, self.names, self.initial = cluster, names, names
        self.state = "not started"

    def check(self) -> None:
        found = {one["metadata"]["name"] for one in self.cluster.list("configmaps", namespace="default")}
        assert found & NAMES == self.names


class LifeCycle(RuleBasedStateMachine):
    """Starts, stops, forks, snapshots, restores and resets clusters of one family."""

    clusters: Bundle[ModelledCluster] = Bundle("clusters")
    snapshots: Bundle[tuple[Any, frozenset[str]]] = Bundle("snapshots")

    def __init__(self) -> None:
        super().__init__()
        self.made: list[ModelledCluster] = []

    def _model(self, cluster: Cluster, names: frozenset[str]) -> ModelledCluster:
        self.made.append(ModelledCluster(cluster, names))
        return self.made[-1]

    @initialize(target=clusters)
    def first(self) -> ModelledCluster:
        return self._model(Cluster(profile="apiserver"), frozenset())

    @rule(target=clusters, one=clusters)
    def fork(self, one: ModelledCluster) -> ModelledCluster:
        return self._model(one.cluster.fork(), one.names)

    @rule(one=clusters)
    def start(self, one: ModelledCluster) -> None:
        if one.state == "stopped":
            with pytest.raises(RuntimeError, match="the cluster is stopped"):
                one.cluster.start()
        else:
            assert one.cluster.start() is one.cluster
            one.state = "started"

    @rule(one=clusters)
    def stop(self, one: ModelledCluster) -> None:
        one.cluster.stop()
        one.state = "stopped"

    @rule(one=clusters)
    def read_address(self, one: ModelledCluster) -> None:
        if one.state == "started":
            assert one.cluster.url == one.cluster.url
            assert one.cluster.kubeconfig.is_file()
        else:
            for read in (lambda: one.cluster.url, lambda: one.cluster.kubeconfig, one.cluster.outage):
                with pytest.raises(RuntimeError, match=f"the cluster is {one.state}"):
                    read()

    @rule(one=clusters)
    def write(self, one: ModelledCluster) -> None:
        if NAMES - one.names:
            name = min(NAMES - one.names)
            one.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
            one.names |= {name}
        else:
            one.cluster.delete("configmaps", "a")
            one.names -= {"a"}

    @rule(target=snapshots, one=clusters)
    def snapshot(self, one: ModelledCluster) -> tuple[Any, frozenset[str]]:
        return one.cluster.snapshot(), one.names

    @rule(one=clusters, snapshot=snapshots)
    def restore(self, one: ModelledCluster, snapshot: tuple[Any, frozenset[str]]) -> None:
        before = one.cluster.snapshot().revision
        for _ in range(2):
            one.cluster.restore(snapshot[0])
        one.names = snapshot[1]
        assert one.cluster.snapshot().revision >= before

    @rule(one=clusters)
    def reset(self, one: ModelledCluster) -> None:
        one.cluster.reset()
        one.names = one.initial

    @rule()
    def check(self) -> None:
        for one in self.made:
            one.check()

    def teardown(self) -> None:
        self.check()
        for one in self.made:
            one.cluster.stop()
            one.cluster.stop()
            one.check()


LifeCycle.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None, derandomize=True)
test_life_cycle = LifeCycle.TestCase


def test_a_fork_of_a_strict_cluster_is_strict() -> None:
    with pytest.raises(AssertionError), Cluster(profile="apiserver", strict=True).fork() as twin:
        twin.faults.on("get", "pods").status(500)


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collector")
@pytest.mark.parametrize("scheme", ["", "http", "https"])
@pytest.mark.parametrize("profile", ["apiserver", "cluster"])
def test_stopped_cluster_is_freed_without_the_garbage_collector(profile: str, scheme: str) -> None:
    freed = threading.Semaphore(0)
    with Cluster(profile=profile, tls=scheme == "https") as cluster:
        for part in (cluster, cluster.application, cluster._machinery.backend.store, cluster._manager):
            weakref.finalize(part, freed.release)
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        if scheme:
            address, context = ("127.0.0.1", cluster.port), ssl._create_unverified_context()
            with closing(
                HTTPSConnection(*address, context=context) if scheme == "https" else HTTPConnection(*address)
            ) as connection:
                connection.request("POST", "/api/v1/namespaces", "{}", {"Authorization": "Bearer admin-token"})
                assert connection.getresponse().status == 422
    del cluster, part
    assert all(freed.acquire(timeout=60) for _ in range(4)), "the thread that served the connection may free it"


def stop_200_clusters() -> None:
    """Asserts that stopped clusters leave nothing behind in this process."""

    def live() -> list[weakref.ref[Any]]:
        with Cluster(profile="apiserver") as cluster:
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
            fork = cluster.fork()
            fork.restore(cluster.snapshot())
            parts: list[Any] = [cluster, fork]
            return [
                weakref.ref(part)
                for one in parts
                for part in (one, one._machinery.backend.registry, one._machinery.application, one._manager)
            ]

    def count_objects() -> Counter[str]:
        gc.collect()
        found = Counter(type(one).__name__ for one in gc.get_objects())
        return found - Counter({"ReferenceType": len(document._recent)})  # which has a bound of its own

    live()
    before, threads = count_objects(), threading.active_count()
    left = [part for _ in range(200) for part in live()]
    gc.collect()
    assert [part() for part in left if part() is not None] == []
    del left
    after = count_objects()
    grown = (after - before).most_common(8)
    assert after.total() - before.total() < 200, f"less than one object a cluster; {grown}"
    assert threading.active_count() <= threads + 1


def test_200_stopped_clusters_leak_no_memory() -> None:
    """In a process of its own: clusters of other tests may be running in this one."""
    code = "from tests.unit.test_cluster_lifecycle import stop_200_clusters; stop_200_clusters()"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

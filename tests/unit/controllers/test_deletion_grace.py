"""The profile envtest: namespaces end and dependents are collected, but not before a suite could do so itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import fakekube


@pytest.fixture
def cluster() -> Iterator[fakekube.Cluster]:
    with fakekube.Cluster(profile="envtest") as found:
        found.clock.hold()
        yield found


def config_map(name: str, *owners: tuple[str, str]) -> dict[str, Any]:
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid} for owner, uid in owners]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": references}}


def names(cluster: fakekube.Cluster, resource: str = "configmaps") -> list[str]:
    return [obj["metadata"]["name"] for obj in cluster.list(resource, namespace="default" if resource == "configmaps" else None)]


def test_a_dependent_stays_for_a_second_after_its_owner(cluster: fakekube.Cluster) -> None:
    owner = cluster.create(config_map("owner"))["metadata"]["uid"]
    cluster.create(config_map("dependent", ("owner", owner)))
    cluster.delete("configmaps", "owner")
    cluster.settle()
    assert names(cluster) == ["dependent"]
    cluster.clock.advance(seconds=1)
    cluster.settle()
    assert names(cluster) == []


def test_a_dependent_of_an_owner_that_never_existed_stays(cluster: fakekube.Cluster) -> None:
    owner = cluster.create(config_map("owner"))["metadata"]["uid"]
    cluster.create(config_map("a", ("made-up", "123")))
    cluster.create(config_map("b", ("made-up", "123"), ("owner", owner)))
    cluster.delete("configmaps", "owner")
    cluster.clock.advance(seconds=10)
    cluster.settle()
    assert names(cluster) == ["a", "b"]
    assert [one["uid"] for one in cluster.get("configmaps", "b")["metadata"]["ownerReferences"]] == ["123"]


def test_a_namespace_stays_for_a_second(cluster: fakekube.Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    cluster.delete("namespaces", "a")
    cluster.settle()
    assert cluster.get("namespaces", "a")["status"]["phase"] == "Terminating"
    cluster.clock.advance(seconds=1)
    cluster.settle()
    assert "a" not in names(cluster, "namespaces")


def test_other_profiles_do_not_wait() -> None:
    with fakekube.Cluster(profile="apiserver", controllers=["garbage-collector-controller"]) as cluster:
        cluster.clock.hold()
        cluster.create(config_map("a", ("made-up", "123")))
        cluster.settle()
        assert names(cluster) == []

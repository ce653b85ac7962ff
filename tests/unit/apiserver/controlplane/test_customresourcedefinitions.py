"""Definitions become resources in the thread that writes them, and go with their last object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import ApiError, Cluster
from fakekube.apiextensions.definition import conditions as states
from fakekube.controllers.client import UnknownResource

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural: str = "widgets", kind: str = "Widget", *versions: str) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": ANY}}
                for name in versions or ("v1",)
            ],
        },
    }


def widget(name: str, *finalizers: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "finalizers": list(finalizers)}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(profile="apiserver")
    yield cluster
    cluster.stop()


def is_served(cluster: Cluster, resource: str = "widgets.example.com") -> bool:
    try:
        cluster.list(resource)
    except UnknownResource:
        return False
    return True


def test_a_definition_is_served_after_its_creation(cluster: Cluster) -> None:
    cluster.create(definition())
    assert cluster.create(widget("one"))["metadata"]["generation"] == 1
    conditions = cluster.get("crd", "widgets.example.com")["status"]["conditions"]
    assert {c["type"]: c["status"] for c in conditions} == {"NamesAccepted": "True", "Established": "True"}


def test_names_are_accepted_when_the_conflicting_definition_is_deleted(cluster: Cluster) -> None:
    cluster.create(definition())
    cluster.create(definition("gadgets"))
    assert not is_served(cluster, "gadgets.example.com")
    cluster.delete("crd", "widgets.example.com")
    assert is_served(cluster, "gadgets.example.com")
    assert not is_served(cluster)


def test_objects_are_deleted_with_their_definition(cluster: Cluster) -> None:
    cluster.create(definition())
    cluster.create(widget("one"))
    cluster.delete("crd", "widgets.example.com")
    assert not is_served(cluster)
    cluster.create(definition())
    assert cluster.list("widgets") == []


def test_a_finalizer_of_an_object_keeps_the_definition(cluster: Cluster) -> None:
    cluster.create(definition())
    cluster.create(widget("held", "example.com/hold"))
    cluster.create(widget("free"))
    cluster.delete("crd", "widgets.example.com")
    assert [item["metadata"]["name"] for item in cluster.list("widgets")] == ["held"]
    with pytest.raises(ApiError, match="create not allowed while custom resource definition is terminating"):
        cluster.create(widget("late"))
    cluster.patch("widgets", "held", {"metadata": {"finalizers": None}})
    assert not is_served(cluster)
    assert cluster.list("crd") == []


def test_versions_are_added_and_removed(cluster: Cluster) -> None:
    cluster.create(definition())
    cluster.create(widget("one"))
    cluster.patch("crd", "widgets.example.com", {"spec": definition("widgets", "Widget", "v1", "v2")["spec"]})
    assert cluster.get("widgets", "one")["apiVersion"] in ("example.com/v1", "example.com/v2")
    served = {r.version for r in cluster._machinery.backend.registry if r.group == "example.com"}
    assert served == {"v1", "v2"}
    cluster.patch("crd", "widgets.example.com", {"spec": definition()["spec"]})
    assert {r.version for r in cluster._machinery.backend.registry if r.group == "example.com"} == {"v1"}


def test_a_fork_serves_its_own_definitions(cluster: Cluster) -> None:
    cluster.create(definition())
    cluster.create(widget("one"))
    twin = cluster.fork()
    cluster.delete("crd", "widgets.example.com")
    assert [item["metadata"]["name"] for item in twin.list("widgets")] == ["one"]
    twin.create(definition("gadgets", "Gadget"))
    assert is_served(twin, "gadgets.example.com")
    assert not is_served(cluster, "gadgets.example.com")
    twin.stop()


def test_a_restored_cluster_serves_its_definitions(cluster: Cluster) -> None:
    cluster.create(definition())
    cluster.create(widget("one"))
    snapshot = cluster.snapshot()
    cluster.delete("crd", "widgets.example.com")
    cluster.create(definition("gadgets", "Gadget"))
    for _ in range(2):
        cluster.restore(snapshot)
        assert [item["metadata"]["name"] for item in cluster.list("widgets")] == ["one"]
        assert not is_served(cluster, "gadgets.example.com")
        cluster.create(widget("two"))


def test_a_change_whose_processing_was_interrupted_is_processed_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A RecursionError lets the loop start again with a deep stack: it has not forgotten what has changed."""
    next_state, failures = states.next_state, [RecursionError]

    def fails_once(*args: Any) -> Any:
        if failures:
            raise failures.pop()
        return next_state(*args)

    monkeypatch.setattr(states, "next_state", fails_once)
    cluster.create(definition())
    assert not failures
    assert is_served(cluster)


def test_a_definition_that_was_deleted_without_its_finalizer_leaves_nothing_to_its_successor(cluster: Cluster) -> None:
    cluster.create(definition())
    cluster.create(widget("one", "example.com/held"))
    cluster.delete("crd", "widgets.example.com")
    cluster.patch("crd", "widgets.example.com", {"metadata": {"finalizers": None}})
    assert not is_served(cluster)
    cluster.create(definition())
    cluster.patch("widgets", "one", {"metadata": {"finalizers": None}})
    assert cluster.list("widgets") == []
    conditions = cluster.get("crd", "widgets.example.com")["status"]["conditions"]
    assert {c["type"]: c["status"] for c in conditions} == {"NamesAccepted": "True", "Established": "True"}

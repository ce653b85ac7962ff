"""The garbage collector: single rules, and owner graphs with random deletions that end as a naive model says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube import ApiError, Cluster
from fakekube.controllers.client import Client
from fakekube.controllers.informers import Cache

ONLY = "garbage-collector-controller"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers=ONLY)
    yield cluster
    cluster.stop()


def owner(obj: dict[str, Any], *, block: bool = False, **changed: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "blockOwnerDeletion": block,
        **changed,
    }


def make(
    cluster: Cluster, name: str, *owners: dict[str, Any], namespace: str = "default", kind: str = "ConfigMap", **metadata: Any
) -> dict[str, Any]:
    return cluster.create(
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "ownerReferences": list(owners), **metadata},
        }
    )


def names(cluster: Cluster, resource: str = "configmaps") -> list[str]:
    return [obj["metadata"]["name"] for obj in cluster.list(resource, namespace="default")]


def references(cluster: Cluster, name: str) -> list[str]:
    return [one["name"] for one in cluster.get("configmaps", name)["metadata"].get("ownerReferences", ())]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_dependents_are_deleted_with_their_owner(cluster: Cluster, policy: str) -> None:
    top = make(cluster, "top")
    under = make(cluster, "under", owner(top, block=True))
    make(cluster, "leaf", owner(under), kind="Secret")
    make(cluster, "free")
    cluster.delete("configmaps", "top", propagationPolicy=policy)
    cluster.settle()
    assert names(cluster) == ["free"]
    assert names(cluster, "secrets") == []


def test_foreground_deletion_waits_for_blocking_dependents(cluster: Cluster) -> None:
    top = make(cluster, "top")
    make(cluster, "blocks", owner(top, block=True), finalizers=["example.com/wait"])
    make(cluster, "other", owner(top), finalizers=["example.com/wait"])
    cluster.delete("configmaps", "top", propagationPolicy="Foreground")
    cluster.settle()
    assert cluster.get("configmaps", "top")["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert all("deletionTimestamp" in cluster.get("configmaps", name)["metadata"] for name in ("blocks", "other"))
    cluster.patch("configmaps", "blocks", {"metadata": {"finalizers": None}})
    cluster.settle()
    assert names(cluster) == ["other"]


def test_an_owner_is_deleted_when_no_dependent_blocks_it_any_more(cluster: Cluster) -> None:
    top = make(cluster, "top")
    make(cluster, "blocks", owner(top, block=True), finalizers=["example.com/wait"])
    cluster.delete("configmaps", "top", propagationPolicy="Foreground")
    cluster.settle()
    cluster.patch("configmaps", "blocks", {"metadata": {"ownerReferences": [owner(top, block=False)]}})
    cluster.settle()
    assert names(cluster) == ["blocks"]


def test_orphaning_removes_only_the_reference_to_the_deleted_owner(cluster: Cluster) -> None:
    one, two = make(cluster, "one"), make(cluster, "two")
    make(cluster, "both", owner(one), owner(two))
    make(cluster, "single", owner(one))
    cluster.delete("configmaps", "one", propagationPolicy="Orphan")
    cluster.settle()
    assert names(cluster) == ["both", "single", "two"]
    assert (references(cluster, "both"), references(cluster, "single")) == (["two"], [])


@pytest.mark.parametrize("changed", [{"name": "never"}, {"uid": "11111111-2222-3333-4444-555555555555"}, {"kind": "Secret"}])
def test_a_dependent_of_an_owner_that_never_existed_is_deleted(cluster: Cluster, changed: dict[str, str]) -> None:
    top = make(cluster, "top")
    make(cluster, "child", owner(top, **changed))
    cluster.settle()
    assert names(cluster) == ["top"]


def test_the_server_says_whether_an_owner_is_absent_that_the_cache_does_not_contain(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached, call = Cache.get, Client.call
    read: list[str] = []
    monkeypatch.setattr(
        Cache, "get", lambda self, resource, namespace, name: None if name == "top" else cached(self, resource, namespace, name)
    )
    monkeypatch.setattr(Client, "call", lambda self, method, path, *rest: read.append(path) or call(self, method, path, *rest))
    top = make(cluster, "top")
    make(cluster, "child", owner(top))
    for name in "abc":
        make(cluster, name, owner(top, name="gone"))
    cluster.settle()
    assert names(cluster) == ["child", "top"]
    assert [path.rpartition("/")[2] for path in read].count("gone") == 1


@pytest.mark.parametrize("changed", [{"kind": "Nothing"}, {"apiVersion": "example.com/v1"}])
def test_a_dependent_of_an_unserved_kind_is_kept(cluster: Cluster, changed: dict[str, str]) -> None:
    top = make(cluster, "top")
    make(cluster, "child", owner(top, **changed))
    cluster.settle(horizon=1)
    assert names(cluster) == ["child", "top"]


def test_a_dependent_is_checked_when_the_kind_is_served(cluster: Cluster) -> None:
    top = make(cluster, "top")
    make(cluster, "child", owner(top, apiVersion="example.com/v1", kind="Widget"))
    cluster.settle()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        }
    )
    cluster.settle()
    assert names(cluster) == ["top"]
    widget = cluster.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}})
    other = make(cluster, "other")
    under = cluster.create(
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "under", "namespace": "default", "ownerReferences": [owner(widget), owner(other)]},
        }
    )
    make(cluster, "leaf", owner(under))
    cluster.delete("widgets", "w")
    cluster.settle()
    assert [one["name"] for one in cluster.get("widgets", "under")["metadata"]["ownerReferences"]] == ["other"]
    cluster.delete("configmaps", "other", propagationPolicy="Foreground")
    cluster.settle()
    assert (names(cluster), names(cluster, "widgets")) == (["top"], [])


def test_an_owner_in_another_namespace_counts_as_absent_and_causes_an_event(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    top = make(cluster, "top", namespace="other")
    make(cluster, "child", owner(top))
    cluster.settle()
    assert names(cluster) == []
    (event,) = cluster.list("events", namespace="default")
    reference = f"[v1/ConfigMap, namespace: default, name: top, uid: {top['metadata']['uid']}]"
    assert event["message"] == f'ownerRef {reference} does not exist in namespace "default"'
    assert (event["reason"], event["type"], event["source"]) == (
        "OwnerRefInvalidNamespace",
        "Warning",
        {"component": "garbage-collector-controller"},
    )


def test_a_cluster_scoped_dependent_of_a_namespaced_owner_is_kept(cluster: Cluster) -> None:
    top = make(cluster, "top")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "child", "ownerReferences": [owner(top)]}})
    cluster.delete("configmaps", "top")
    cluster.settle()
    assert cluster.get("namespaces", "child")


def test_an_owner_created_before_the_collector_starts_is_found(cluster: Cluster) -> None:
    space = cluster.get("namespaces", "default")
    make(cluster, "child", owner(space))
    cluster.settle()
    assert names(cluster) == ["child"]


def test_a_dependent_that_has_another_owner_by_now_is_not_deleted(cluster: Cluster) -> None:
    """A reference that is put right after the collector has looked stays."""
    top, two = make(cluster, "top"), make(cluster, "two")
    make(cluster, "child", owner(top))
    cluster.settle()
    cluster.delete("configmaps", "top")
    cluster.patch("configmaps", "child", {"metadata": {"ownerReferences": [owner(two)]}})
    cluster.settle()
    assert (names(cluster), references(cluster, "child")) == (["child", "two"], ["two"])


# ---------------------------------------------------------------- against a model

NAMES = "abcdefg"


@dataclass
class Model:
    """Who owns whom, by name and incarnation: an object goes when it has owners and none of them is there."""

    owners: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    incarnations: dict[str, int] = field(default_factory=dict)

    def is_there(self, identity: tuple[str, int]) -> bool:
        name, incarnation = identity
        return name in self.owners and self.incarnations[name] == incarnation

    def collect(self) -> None:
        while True:
            gone = [name for name, owners in self.owners.items() if owners and not any(map(self.is_there, owners))]
            if not gone:
                break
            for name in gone:
                del self.owners[name]
        self.owners = {name: [one for one in owners if self.is_there(one)] for name, owners in self.owners.items()}


Step = tuple[str, str, list[str], bool]
steps = st.lists(
    st.tuples(
        st.sampled_from(["make", "make", "adopt", "Background", "Foreground", "Orphan"]),
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(NAMES), max_size=3, unique=True),
        st.booleans(),
    ),
    max_size=25,
)


def play(cluster: Cluster, model: Model, known: dict[tuple[str, int], dict[str, Any]], step: Step) -> None:
    action, name, others, flag = step
    chosen = [(other, model.incarnations[other]) for other in others if other in model.incarnations]
    if action == "make" and name not in model.owners:
        model.incarnations[name] = model.incarnations.get(name, 0) + 1
        known[name, model.incarnations[name]] = make(cluster, name, *(owner(known[one], block=flag) for one in chosen))
        model.owners[name] = chosen
    elif action == "adopt" and name in model.owners:
        owners = [owner(known[one], block=flag) for one in chosen]
        cluster.patch("configmaps", name, {"metadata": {"ownerReferences": owners}})
        model.owners[name] = chosen
    elif action in ("Background", "Foreground", "Orphan") and name in model.owners:
        cluster.delete("configmaps", name, propagationPolicy=action)
        gone = (name, model.incarnations[name])
        del model.owners[name]
        if action == "Orphan":
            model.owners = {one: [ref for ref in owners if ref != gone] for one, owners in model.owners.items()}
    cluster.settle()
    model.collect()


@given(steps)
def test_random_owner_graphs_match_the_model(story: list[Step]) -> None:
    cluster = Cluster(controllers=ONLY)
    try:
        model, known = Model(), {}
        for step in story:
            play(cluster, model, known, step)
            found = {
                obj["metadata"]["name"]: sorted(one["uid"] for one in obj["metadata"].get("ownerReferences", ()))
                for obj in cluster.list("configmaps", namespace="default")
            }
            expected = {name: sorted(known[one]["metadata"]["uid"] for one in owners) for name, owners in model.owners.items()}
            assert found == expected
    finally:
        cluster.stop()


def test_a_refused_deletion_is_retried(cluster: Cluster) -> None:
    """Deleting is refused by a policy that is taken away."""
    top = make(cluster, "top")
    make(cluster, "child", owner(top))
    expression = "oldObject.metadata.name != 'child'"
    admission = "admissionregistration.k8s.io/v1"
    cluster.create(
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "keep"},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
                    ]
                },
                "validations": [{"expression": expression}],
            },
        }
    )
    cluster.create(
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "keep"},
            "spec": {"policyName": "keep", "validationActions": ["Deny"]},
        }
    )
    cluster.clock.hold()
    cluster.delete("configmaps", "top")
    cluster.settle()
    try:
        cluster.get("configmaps", "child")
    except ApiError:
        pytest.skip("policies are not in force")
    cluster.delete("validatingadmissionpolicybindings", "keep")
    cluster.clock.advance(minutes=20)
    assert names(cluster) == []

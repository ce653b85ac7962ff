"""Discovery documents follow from the registry, and from its changes."""

from __future__ import annotations

import pytest

from fakekube.api.discovery import Documents
from fakekube.registry.resource import GVK, Registry, Resource
from fakekube.registry.subresource import Subresource

ALL = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})


def resource(group: str, version: str, plural: str, *, custom: bool = False, **more: object) -> Resource:
    kind = plural[:-1].title()
    return Resource(
        group=group, version=version, plural=plural, singular=plural[:-1], kind=kind, namespaced=True, verbs=ALL,
        bucket=plural, storage_version=version, custom=custom,
        strategy_factory=lambda: None, type_factory=lambda: None, **more,  # type: ignore[arg-type, return-value]
    )  # fmt: skip


def below(name: str, group: str, version: str, kind: str) -> Subresource:
    verbs = frozenset({"update", "get"})
    return Subresource(name, GVK(group, version, kind), verbs, None, None)  # type: ignore[arg-type]


@pytest.fixture
def registry() -> Registry:
    scale = below("scale", "autoscaling", "v1", "Scale")
    status = below("status", "apps", "v1", "Deployment")
    return Registry([
        resource("", "v1", "pods", short_names=("po",), categories=("all",), storage_version_hash="abc="),
        resource("apps", "v1", "deployments", subresources={"status": status, "scale": scale}),
    ])  # fmt: skip


@pytest.fixture
def documents(registry: Registry) -> Documents:
    return Documents(registry, ["batch", "apps"])


def test_nothing_is_made_twice(documents: Documents, registry: Registry) -> None:
    first = documents.current()
    assert documents.current() is first
    registry.replace((), [resource("example.com", "v1", "things", custom=True)])
    second = documents.current()
    assert second is not first
    registry.replace([("example.com", "v1", "things")], [])
    assert documents.current().groups == first.groups
    assert second.group_names == ["apps", "example.com"]


def test_the_core_list_has_no_api_version(documents: Documents) -> None:
    document = documents.current().resources("", "v1")
    assert document == {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{
            "name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": sorted(ALL),
            "shortNames": ["po"], "categories": ["all"], "storageVersionHash": "abc=",
        }],
    }  # fmt: skip


def test_subresources_tell_a_foreign_kind(documents: Documents) -> None:
    document = documents.current().resources("apps", "v1")
    assert document is not None
    assert document["apiVersion"] == "v1"
    main, scale, status = document["resources"]
    assert main["name"] == "deployments"
    assert scale == {
        "name": "deployments/scale", "singularName": "", "namespaced": True, "group": "autoscaling", "version": "v1",
        "kind": "Scale", "verbs": ["get", "update"],
    }  # fmt: skip
    assert "group" not in status


def test_versions_of_custom_groups_are_preferred_by_stability(documents: Documents, registry: Registry) -> None:
    for version in ("v1alpha1", "v2", "v1", "v1beta2"):
        registry.replace((), [resource("example.com", version, "things", custom=True)])
    group = documents.current().group("example.com")
    assert group is not None
    assert [entry["version"] for entry in group["versions"]] == ["v2", "v1", "v1beta2", "v1alpha1"]
    assert group["preferredVersion"] == {"groupVersion": "example.com/v2", "version": "v2"}


def test_custom_verbs_have_an_order_of_their_own(documents: Documents, registry: Registry) -> None:
    registry.replace((), [resource("example.com", "v1", "things", custom=True)])
    document = documents.current().resources("example.com", "v1")
    assert document is not None
    expected = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert document["resources"][0]["verbs"] == expected


def test_the_aggregated_form(documents: Documents, registry: Registry) -> None:
    registry.replace((), [resource("example.com", "v1", "things", custom=True)])
    current = documents.current()
    items = current.aggregated(current.group_names)["items"]
    assert [item["metadata"]["name"] for item in items] == ["apps", "example.com"]
    builtin, custom = (item["versions"][0]["resources"][0] for item in items)
    assert builtin["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}
    assert builtin["subresources"][0]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert builtin["subresources"][1]["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}
    assert custom["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Thing"}
    assert current.aggregated([""])["items"][0]["metadata"] == {}


def test_what_is_not_served_has_no_document(documents: Documents) -> None:
    current = documents.current()
    assert current.group("") is None
    assert current.group("nope") is None
    assert current.resources("apps", "v2") is None
    assert current.versions("nope") == []

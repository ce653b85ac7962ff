"""Discovery documents follow from the registry, and from its changes."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apis.rest.resource import GVK, Registry, Resource
from fakekube.apis.rest.strategy import Subresource
from fakekube.apiserver.http import responses
from fakekube.apiserver.http.discovery import Documents, GroupVersionPriority

ALL = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})


def resource(group: str, version: str, plural: str, *, custom: bool = False, **more: object) -> Resource:
    kind = plural[:-1].title()
    return Resource(
        group=group, version=version, plural=plural, singular=plural[:-1], kind=kind, namespaced=True, verbs=ALL,
        bucket=plural, custom=custom,
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


class _Registrations:
    """The APIServices, as a test sets them."""

    def __init__(self) -> None:
        self.state: tuple[int, object] = (0, None)
        self.registered: list[GroupVersionPriority] = []
        self.elsewhere: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, *service: Any, served: dict[str, Any] | None = None) -> None:
        self.registered.append(GroupVersionPriority(*service))
        if served is not None:
            self.elsewhere[service[0], service[1]] = served
        self.state = (self.state[0] + 1, None)

    def services(self) -> tuple[GroupVersionPriority, ...]:
        return tuple(self.registered)

    def remotes(self) -> dict[tuple[str, str], dict[str, Any]]:
        return dict(self.elsewhere)


@pytest.fixture
def registrations() -> _Registrations:
    return _Registrations()


@pytest.fixture
def documents(registry: Registry, registrations: _Registrations) -> Documents:
    return Documents(registry, registrations, "1.36")  # type: ignore[arg-type]


def test_discovery_documents_are_cached(documents: Documents, registry: Registry) -> None:
    first = documents.current()
    assert documents.current() is first
    registry.replace((), [resource("example.com", "v1", "things", custom=True)])
    second = documents.current()
    assert second is not first
    registry.replace([("example.com", "v1", "things")], [])
    assert documents.current().groups == first.groups
    assert second.group_names == ["apps", "example.com"]


def test_core_resource_list_has_no_api_version(documents: Documents) -> None:
    document = documents.current().resources("", "v1")
    assert document == {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{
            "name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": sorted(ALL),
            "shortNames": ["po"], "categories": ["all"], "storageVersionHash": "abc=",
        }],
    }  # fmt: skip


def test_subresources_show_group_and_version_of_foreign_kinds(documents: Documents) -> None:
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


def test_custom_group_versions_are_ordered_by_stability(documents: Documents, registry: Registry) -> None:
    for version in ("v1alpha1", "v2", "v1", "v1beta2"):
        registry.replace((), [resource("example.com", version, "things", custom=True)])
    group = documents.current().group("example.com")
    assert group is not None
    assert [entry["version"] for entry in group["versions"]] == ["v2", "v1", "v1beta2", "v1alpha1"]
    assert group["preferredVersion"] == {"groupVersion": "example.com/v2", "version": "v2"}


def test_verbs_of_custom_resources_are_in_fixed_order(documents: Documents, registry: Registry) -> None:
    registry.replace((), [resource("example.com", "v1", "things", custom=True)])
    document = documents.current().resources("example.com", "v1")
    assert document is not None
    expected = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert document["resources"][0]["verbs"] == expected


def test_aggregated_discovery(documents: Documents, registry: Registry) -> None:
    registry.replace((), [resource("example.com", "v1", "things", custom=True)])
    current = documents.current()
    items = current.aggregate(current.group_names)["items"]
    assert [item["metadata"]["name"] for item in items] == ["apps", "example.com"]
    builtin, custom = (item["versions"][0]["resources"][0] for item in items)
    assert builtin["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}
    assert builtin["subresources"][0]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert builtin["subresources"][1]["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}
    assert custom["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Thing"}
    assert current.aggregate([""])["items"][0]["metadata"] == {}


def test_unserved_groups_have_no_document(documents: Documents) -> None:
    current = documents.current()
    assert current.group("") is None
    assert current.group("nope") is None
    assert current.resources("apps", "v2") is None
    assert ("nope", "v1") not in set(current.paths())


def test_group_list_follows_the_apiservices(documents: Documents, registrations: _Registrations) -> None:
    before = documents.current()
    assert before.groups["groups"] == []
    registrations.add("example.com", "v1beta1", 900, 15)
    registrations.add("apps", "v1", 800, 15)
    registrations.add("example.com", "v1", 100, 15)
    assert [group["name"] for group in documents.current().groups["groups"]] == ["example.com", "apps"]
    group = documents.current().group("example.com")
    assert group is not None
    assert [entry["version"] for entry in group["versions"]] == ["v1", "v1beta1"]


def test_versions_of_extension_servers_are_ordered_by_priority(documents: Documents, registrations: _Registrations) -> None:
    there = {"version": "v9", "freshness": "Stale"}
    registrations.add("apps", "v9", 20000, 1, served=there)
    current = documents.current()
    assert current.aggregate(["apps"])["items"][0]["versions"][1] == there
    registrations.registered[0] = GroupVersionPriority("apps", "v9", 20000, 100)
    registrations.state = (9, None)
    assert documents.current().aggregate(["apps"])["items"][0]["versions"][0] == there


def test_irrelevant_apiservice_change_keeps_the_documents(documents: Documents, registrations: _Registrations) -> None:
    first = documents.current()
    registrations.state = (7, None)
    assert documents.current() is first


def test_clusters_with_equal_resources_share_documents(registry: Registry) -> None:
    def current(registry: Registry) -> Any:
        return Documents(registry, _Registrations(), "1.36").current()  # type: ignore[arg-type]

    shared = current(registry)
    assert current(registry.copy()) is shared
    other = Registry([*registry, resource("example.com", "v1", "widgets", custom=True)])
    assert current(other) is not shared
    assert current(other) is not current(other)
    assert current(registry) is shared


@pytest.mark.parametrize("path", ["/apis", "/apis/apps", "/apis/apps/v1", "/api/v1"])
def test_plain_documents_are_encoded_once_per_format(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = responses.encode_object

    def counted(obj: dict[str, Any], go_type: str, chosen: Any) -> bytes:
        encoded.append(chosen.media_type)
        return encode(obj, go_type, chosen)

    with Cluster(profile="apiserver") as cluster:
        asked = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        }
        cluster.create(definition)  # its documents belong to this cluster alone
        monkeypatch.setattr(responses, "encode_object", counted)
        bodies = [cluster.request("GET", path, headers={"Accept": accept}).body for accept in asked * 2]
        assert encoded == asked
        assert bodies[:3] == bodies[3:]
        assert len(set(bodies)) == 3


def test_versions_that_are_not_served_are_not_remembered(registry: Registry) -> None:
    snapshot = Documents(registry, _Registrations(), "1.37").current()
    for number in range(10):
        assert snapshot.resources("apps", f"v{number + 5}") is None
    assert not snapshot._resources
    assert snapshot.resources("apps", "v1") is snapshot.resources("apps", "v1")

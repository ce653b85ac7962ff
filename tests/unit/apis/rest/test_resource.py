"""The registry of resources: adding, replacing and removing versions."""

from __future__ import annotations

from typing import Any

from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.registry import builtin


def resource(version: str, plural: str = "widgets") -> Resource:
    unused: Any = None
    return Resource(
        group="example.com",
        version=version,
        plural=plural,
        singular="",
        kind="Widget",
        namespaced=True,
        verbs=frozenset(),
        bucket=f"{plural}.example.com",
        strategy_factory=unused,
        type_factory=unused,
    )


def path(version: str, plural: str = "widgets") -> tuple[str, str, str]:
    return "example.com", version, plural


def versions(registry: Registry) -> list[str]:
    return [found.version for found in registry.versions("example.com", "widgets")]


def test_replace_removes_and_adds_versions() -> None:
    registry = Registry([resource("v1"), resource("v2"), resource("v1", "gadgets")])
    registry.replace([path("v1"), path("v9")], [resource("v3")])
    assert versions(registry) == ["v2", "v3"]
    assert registry.get(*path("v1")) is None
    assert [found.plural for found in registry] == ["widgets", "gadgets", "widgets"]


def test_replace_overwrites_an_existing_version() -> None:
    registry, new = Registry([resource("v1")]), resource("v1")
    registry.replace([path("v1")], [new])
    assert list(registry.versions("example.com", "widgets")) == [registry.get(*path("v1"))] == [new]
    registry.replace([], [again := resource("v1")])
    assert list(registry.versions("example.com", "widgets")) == [registry.get(*path("v1"))] == [again]


def test_removed_resource_is_not_found() -> None:
    registry = Registry([resource("v1")])
    registry.replace([path("v1")], [])
    assert registry.any_version("example.com", "widgets") is None
    assert list(registry) == versions(registry) == []


def test_copy_is_independent_of_the_original() -> None:
    registry = Registry([resource("v1")])
    twin = registry.copy()
    twin.replace([path("v1")], [resource("v2")])
    assert (versions(registry), versions(twin)) == (["v1"], ["v2"])


def test_replaced_versions_are_the_last_ones() -> None:
    registry = Registry([resource("v1"), resource("v2"), resource("v3")])
    registry.replace([path("v2"), path("v9")], [resource("v1"), resource("v4")])
    assert versions(registry) == ["v3", "v1", "v4"]


def test_versions_are_not_compared_with_each_other() -> None:
    class Name(str):
        __slots__ = ()
        comparisons = 0

        def __eq__(self, other: object) -> bool:
            Name.comparisons += 1
            return str.__eq__(self, other)

        def __ne__(self, other: object) -> bool:
            Name.comparisons += 1
            return str.__ne__(self, other)

        __hash__ = str.__hash__

    added = [resource(Name(f"v{number}")) for number in range(200)]
    registry = Registry(())
    Name.comparisons = 0
    registry.replace((), added)
    assert Name.comparisons < 10 * len(added)
    assert len(versions(registry)) == len(added)


def test_definitions_may_contain_floats_and_config_maps_may_not() -> None:
    registry = Registry(builtin.resources())
    kinds = [("apiextensions.k8s.io", "customresourcedefinitions"), ("", "configmaps")]
    found = [registry.any_version(*kind) for kind in kinds]
    assert [one.has_floats for one in found if one] == [True, False]

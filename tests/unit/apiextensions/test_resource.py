"""The resources of a definition."""

from __future__ import annotations

from typing import Any

from fakekube.apiextensions.resource import resources_of
from fakekube.apimachinery.features import DEFAULT


def no_call(*_given: Any) -> Any:
    raise AssertionError("no webhook converts")


def test_versions_share_the_set_of_known_versions() -> None:
    """A set for each of thousands of versions would fill the memory."""
    versions = [{"name": f"v{number}", "served": True, "storage": number == 1} for number in (1, 2, 3)]
    spec = {"group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"}, "versions": versions}
    first, *others = resources_of({"metadata": {"generation": 2}, "spec": spec}, no_call, DEFAULT)
    assert first.known_versions == {"example.com/v1", "example.com/v2", "example.com/v3"}
    assert all(other.known_versions is first.known_versions for other in others)

"""Objects are examined once for versions that a changed definition does not have, not in each list."""

from __future__ import annotations

import pytest

from fakekube import Cluster
from fakekube.apimachinery.codecs.document import Document
from fakekube.apiserver.registry.generic import corrupt_objects

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def test_lists_of_unchanged_objects_examine_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }  # fmt: skip
    examined = []

    def api_version(document: Document) -> str:
        examined.append(document)
        return "example.com/v1"

    monkeypatch.setattr(corrupt_objects, "_api_version", api_version)
    with Cluster(profile="apiserver") as cluster:
        cluster.create(definition)
        cluster.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
        cluster.request("GET", WIDGETS)
        assert examined == [], "the first spec of a definition fits all objects"
        cluster.patch("customresourcedefinitions", "widgets.example.com", {"spec": {"names": {"shortNames": ["w"]}}})
        for path in (WIDGETS, f"{WIDGETS}?fieldSelector=metadata.name%3Da", WIDGETS):
            assert cluster.request("GET", path).status == 200
        assert len(examined) == 1
        cluster.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}})
        cluster.request("GET", WIDGETS)
        assert len(examined) == 3

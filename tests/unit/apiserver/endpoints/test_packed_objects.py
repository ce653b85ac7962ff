"""Lists of all objects, and the deletion of a collection, leave old objects packed."""

from __future__ import annotations

import collections
import gc
from typing import Any

import orjson
import pytest

from fakekube import Cluster
from fakekube.apimachinery.codecs import document as document_module
from fakekube.apimachinery.codecs.document import Document

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PATH = "/api/v1/namespaces/default/configmaps"
OBJECTS = 12


def _has_tree(document: Document) -> bool:
    try:
        Document.__dict__["object"].__get__(document)
    except AttributeError:
        return False
    return True


def _unpacked() -> int:
    """Returns the number of ConfigMaps of the test that are held as trees."""
    trees = [one for one in gc.get_objects() if type(one) is Document and _has_tree(one)]
    return sum(str(one.object.get("data", {}).get("n", "")).startswith("packed-") for one in trees)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(document_module, "_MAX_RECENT", 2)
    monkeypatch.setattr(document_module, "_recent", collections.deque())
    with Cluster(profile="apiserver") as cluster:
        for number in range(OBJECTS):
            metadata = {"name": f"c{number:02}", "namespace": "default", "labels": {"odd": str(number % 2)}}
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": f"packed-{number}"}})
        yield cluster


def _list(cluster: Cluster, query: str = "", accept: str = "application/json") -> Any:
    return orjson.loads(cluster.request("GET", PATH + query, headers={"Accept": accept}).body)


def test_lists_leave_old_objects_packed(cluster: Cluster) -> None:
    names = [f"c{number:02}" for number in range(OBJECTS)]
    assert _unpacked() <= 2
    for _ in range(2):
        rows = _list(cluster, accept=TABLE)["rows"]
        assert [row["cells"][0] for row in rows] == [row["object"]["metadata"]["name"] for row in rows]
        listed = [item for accept in ("application/json", PARTIAL) for item in _list(cluster, accept=accept)["items"]]
        assert [item["metadata"]["name"] for item in listed][-OBJECTS:] == [row["cells"][0] for row in rows][-OBJECTS:]
        found = _list(cluster, "?labelSelector=odd%20notin%20(0)")["items"]
        assert [item["metadata"]["name"] for item in found if item["metadata"]["name"] in names] == names[1::2]
    assert _unpacked() <= 2


def test_a_deleted_collection_leaves_no_trees(cluster: Cluster) -> None:
    deleted = orjson.loads(cluster.request("DELETE", PATH + "?labelSelector=odd").body)
    assert [item["data"]["n"] for item in deleted["items"]] == [f"packed-{number}" for number in range(OBJECTS)]
    assert not [item for item in _list(cluster)["items"] if "odd" in item["metadata"].get("labels", {})]
    assert _unpacked() <= 2

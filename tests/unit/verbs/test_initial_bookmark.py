"""The revision that the bookmark after the initial events tells."""

from __future__ import annotations

import orjson
import pytest

from fakekube import Cluster
from fakekube.client import Client


@pytest.mark.parametrize(("resource_version", "is_the_last_change"), [("0", True), ("1", True), ("", False)])
def test_the_cache_knows_its_own_changes_and_the_store_all(resource_version: str, is_the_last_change: bool) -> None:
    cluster = Cluster(profile="apiserver")
    client: Client = cluster._client

    def create(kind: str) -> int:
        obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "one", "namespace": "default"}}
        return int(cluster.create(obj)["metadata"]["resourceVersion"])

    changed, elsewhere = create("ConfigMap"), create("Secret")
    query = {"resourceVersion": resource_version, "resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true",
             "allowWatchBookmarks": "true"}
    events = [orjson.loads(frame) for frame in client.watch("/api/v1/namespaces/default/configmaps", query).take()]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    told = int(events[-1]["object"]["metadata"]["resourceVersion"])
    assert told == (changed if is_the_last_change else elsewhere)
    cluster.stop()

"""The pace of a cluster: what is finalized is to be seen as terminating for a while."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request

import pytest

from fakekube import ApiError, Cluster

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ws.e.io"},
    "spec": {
        "group": "e.io",
        "names": {"plural": "ws", "kind": "W"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
}


def test_client_that_watches_after_its_delete_sees_the_end_of_a_definition() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.pace = 3600
        cluster.create(DEFINITION)
        cluster.create({"apiVersion": "e.io/v1", "kind": "W", "metadata": {"name": "a"}})
        cluster.delete("customresourcedefinitions", "ws.e.io")
        found = cluster.get("customresourcedefinitions", "ws.e.io")
        assert found["metadata"]["deletionTimestamp"]
        assert "Terminating" in [one["type"] for one in found["status"]["conditions"]]
        watch = cluster.watch("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        assert [json.loads(line)["type"] for line in watch.take()] == ["ADDED"]
        cluster.clock.advance(hours=1)
        assert [json.loads(line)["type"] for line in watch.take()] == ["DELETED"]
        watch.close()


def test_settle_waits_for_the_pace_and_a_held_clock_has_none() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.pace = 0.2
        cluster.create(DEFINITION)
        cluster.delete("customresourcedefinitions", "ws.e.io")
        cluster.settle()
        with pytest.raises(ApiError):
            cluster.get("customresourcedefinitions", "ws.e.io")
        cluster.clock.hold()
        cluster.create(DEFINITION)
        cluster.delete("customresourcedefinitions", "ws.e.io")
        with pytest.raises(ApiError):
            cluster.get("customresourcedefinitions", "ws.e.io")


def test_namespace_is_terminating_for_a_while() -> None:
    with Cluster() as cluster:
        cluster.pace = 3600
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        cluster.delete("namespaces", "team")
        assert cluster.get("namespaces", "team")["status"]["phase"] == "Terminating"
        cluster.clock.advance(hours=20)
        cluster.settle()
        with pytest.raises(ApiError):
            cluster.get("namespaces", "team")


def test_what_is_deleted_after_its_namespace_is_still_there_and_settle_waits() -> None:
    with Cluster() as cluster:
        cluster.pace = 3600
        for obj in (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}},
        ):
            cluster.create(obj)
        cluster.delete("namespaces", "team")
        cluster.clock.advance(hours=19)
        cluster.delete("configmaps", "a", namespace="team")
        assert cluster.working() == ["namespace-controller"]
        with pytest.raises(TimeoutError, match="namespace-controller"):
            cluster.settle(timeout=0.01)
        cluster.clock.advance(hours=1)
        cluster.settle()
        assert cluster.working() == []
        with pytest.raises(ApiError):
            cluster.get("namespaces", "team")


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}


def _delete_pod(url: str) -> None:
    request = urllib.request.Request(f"{url}/api/v1/namespaces/default/pods/a", method="DELETE")
    urllib.request.urlopen(request).close()


def test_deletion_without_a_grace_period_is_seen_by_others_before_it_is_over() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.create(POD)
        cluster.pace = 300
        client = threading.Thread(target=_delete_pod, args=(cluster.url,), daemon=True)
        with urllib.request.urlopen(f"{cluster.url}/api/v1/namespaces/default/pods?watch=true") as watch:
            assert json.loads(watch.readline())["type"] == "ADDED"
            client.start()
            event = json.loads(watch.readline())
            assert (event["type"], event["object"]["metadata"]["deletionGracePeriodSeconds"]) == ("MODIFIED", 0)
            assert cluster.get("pods", "a")["metadata"]["deletionTimestamp"]
            while client.is_alive():  # the timer is set after the first write
                cluster.clock.advance(minutes=1)
                client.join(0.01)
            assert json.loads(watch.readline())["type"] == "DELETED"


def test_deletion_without_a_grace_period_waits_neither_for_a_held_clock_nor_in_the_process() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.pace = 3600
        cluster.create(POD)
        cluster.delete("pods", "a")
        cluster.clock.hold()
        cluster.create(POD)
        _delete_pod(cluster.url)
        assert not cluster.list("pods", namespace="default")


def test_deletion_without_a_grace_period_succeeds_if_another_component_is_faster() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.create(POD)
        cluster.pace = 300
        codes: list[int] = []

        def delete() -> None:
            request = urllib.request.Request(f"{cluster.url}/api/v1/namespaces/default/pods/a", method="DELETE")
            try:
                codes.append(urllib.request.urlopen(request).status)
            except urllib.error.HTTPError as error:
                codes.append(error.code)

        client = threading.Thread(target=delete, daemon=True)
        with urllib.request.urlopen(f"{cluster.url}/api/v1/namespaces/default/pods?watch=true") as watch:
            assert json.loads(watch.readline())["type"] == "ADDED"
            client.start()
            assert json.loads(watch.readline())["type"] == "MODIFIED"
            cluster.delete("pods", "a")
        while client.is_alive():
            cluster.clock.advance(minutes=1)
            client.join(0.01)
        assert codes == [200]

"""The objects that belong to the API server come back when a client deletes or changes them, and events expire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import ApiError, Cluster

AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
RESTORING = "restoring objects of the API server"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        made.settle()
        yield made


def names(cluster: Cluster, resource: str) -> set[str]:
    return {one["metadata"]["name"] for one in cluster.list(resource)}


def without_times(obj: Any) -> Any:
    if isinstance(obj, dict):
        return {key: without_times(value) for key, value in obj.items() if key not in ("lastTransitionTime", "metadata")}
    return [without_times(one) for one in obj] if isinstance(obj, list) else obj


def test_nothing_waits_while_nobody_has_touched_them(cluster: Cluster) -> None:
    assert RESTORING not in [timer.what for timer in cluster.clock.pending()]


@pytest.mark.parametrize(
    ("resource", "name", "seconds"),
    [
        ("services", "kubernetes", 10),
        ("endpoints", "kubernetes", 10),
        ("endpointslices", "kubernetes", 10),
        ("flowschemas", "catch-all", 60),
        ("flowschemas", "system-nodes", 60),
        ("prioritylevelconfigurations", "exempt", 60),
        ("prioritylevelconfigurations", "workload-low", 60),
    ],
)
def test_deleted_object_comes_back(cluster: Cluster, resource: str, name: str, seconds: int) -> None:
    before = cluster.get(resource, name)
    cluster.delete(resource, name)
    cluster.settle()
    with pytest.raises(ApiError):
        cluster.get(resource, name)
    cluster.clock.advance(seconds=seconds)
    after = cluster.get(resource, name)
    assert without_times(after) == without_times(before)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert RESTORING not in [timer.what for timer in cluster.clock.pending()]


def test_service_comes_back_with_its_address(cluster: Cluster) -> None:
    cluster.delete("services", "kubernetes")
    assert "10.0.0.1" not in names(cluster, "ipaddresses")
    cluster.clock.advance(seconds=10)
    assert cluster.get("ipaddresses", "10.0.0.1")["spec"]["parentRef"]["name"] == "kubernetes"


def test_service_waits_for_its_address_if_another_one_has_taken_it(cluster: Cluster) -> None:
    cluster.delete("services", "kubernetes")
    spec = {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "thief"}, "spec": spec})
    cluster.clock.advance(seconds=30)
    assert "kubernetes" not in names(cluster, "services")
    cluster.delete("services", "thief")
    cluster.clock.advance(seconds=10)
    assert cluster.get("services", "kubernetes")["spec"]["clusterIP"] == "10.0.0.1"


def test_lease_of_the_identity_comes_back_and_keeps_its_labels(cluster: Cluster) -> None:
    (lease,) = cluster.list("leases", namespace="kube-system", label_selector="apiserver.kubernetes.io/identity")
    name = lease["metadata"]["name"]
    cluster.delete("leases", name, namespace="kube-system")
    cluster.clock.advance(seconds=10)
    restored = cluster.get("leases", name, namespace="kube-system")
    assert restored["spec"]["renewTime"] > lease["spec"]["renewTime"]
    change = {"metadata": {"labels": {"apiserver.kubernetes.io/identity": None, "x": "y"}}, "spec": {"holderIdentity": "me"}}
    cluster.patch("leases", name, change, namespace="kube-system")
    cluster.clock.advance(seconds=10)
    changed = cluster.get("leases", name, namespace="kube-system")
    assert changed["metadata"]["labels"] == {**lease["metadata"]["labels"], "x": "y"}
    assert changed["spec"]["holderIdentity"] == "me"


def test_addresses_are_restored_and_ports_are_not(cluster: Cluster) -> None:
    service, before = (
        cluster.patch("services", "kubernetes", {"spec": {"sessionAffinity": "ClientIP"}}),
        cluster.get("endpoints", "kubernetes"),
    )
    cluster.patch(
        "endpoints", "kubernetes", {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"name": "q", "port": 1}]}]}
    )
    cluster.patch("endpointslices", "kubernetes", {"endpoints": [], "metadata": {"labels": {"x": "y"}}})
    cluster.clock.advance(seconds=10)
    (subset,) = cluster.get("endpoints", "kubernetes")["subsets"]
    assert subset["addresses"] == before["subsets"][0]["addresses"]
    assert subset["ports"][0]["name"] == "q"
    found = cluster.get("endpointslices", "kubernetes")
    assert found["endpoints"][0]["addresses"] == [before["subsets"][0]["addresses"][0]["ip"]]
    assert found["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
    assert cluster.get("services", "kubernetes")["spec"] == service["spec"]


def test_suggested_flow_schemas_are_the_users_if_the_annotation_says_so(cluster: Cluster) -> None:
    own, changed, unmarked = "system-nodes", "kube-scheduler", "system-node-high"
    cluster.patch("flowschemas", own, {"metadata": {"annotations": {AUTO_UPDATE: "false"}}, "spec": {"matchingPrecedence": 501}})
    first = cluster.get("flowschemas", changed)["spec"]
    cluster.patch("flowschemas", changed, {"spec": {"matchingPrecedence": 502}})
    cluster.patch(
        "flowschemas", unmarked, {"metadata": {"annotations": {AUTO_UPDATE: None}}, "spec": {"matchingPrecedence": 503}}
    )
    cluster.patch("prioritylevelconfigurations", "exempt", {"spec": {"exempt": {"nominalConcurrencyShares": 7}}})
    for name, marks in (("claims", {AUTO_UPDATE: "true"}), ("plain", {})):
        spec = {"priorityLevelConfiguration": {"name": "system"}, "matchingPrecedence": 700}
        metadata = {"name": name, "annotations": marks}
        cluster.create(
            {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": metadata, "spec": spec}
        )
    cluster.clock.advance(seconds=60)
    assert cluster.get("flowschemas", own)["spec"]["matchingPrecedence"] == 501
    assert cluster.get("flowschemas", changed)["spec"] == first
    marked = cluster.get("flowschemas", unmarked)
    assert (marked["spec"]["matchingPrecedence"], marked["metadata"]["annotations"][AUTO_UPDATE]) == (503, "false")
    assert cluster.get("prioritylevelconfigurations", "exempt")["spec"]["exempt"]["nominalConcurrencyShares"] == 7
    assert {"plain"} == {"plain", "claims"} & names(cluster, "flowschemas")


def event(name: str) -> dict[str, Any]:
    involved = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": involved,
        "reason": "r",
        "type": "Normal",
    }


def test_events_expire_an_hour_after_their_last_write() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.clock.hold()
        cluster.create(event("a"))
        cluster.create(event("b"))
        cluster.clock.advance(minutes=59)
        cluster.patch("events", "b", {"count": 2}, namespace="default")
        watch = cluster.watch("/api/v1/events", {"resourceVersion": cluster.get("events", "b")["metadata"]["resourceVersion"]})
        assert names(cluster, "events") == {"a", "b"}
        cluster.clock.advance(minutes=2)
        assert names(cluster, "events") == {"b"}
        (line,) = watch.take()
        deleted = json.loads(line)
        assert (deleted["type"], deleted["object"]["metadata"]["name"]) == ("DELETED", "a")
        watch.close()
        cluster.clock.advance(minutes=59)
        assert names(cluster, "events") == set()
        assert cluster.clock.pending() == []


def test_flag_event_ttl() -> None:
    cluster = Cluster(profile="apiserver", event_ttl=60)
    cluster.clock.hold()
    cluster.create(event("a"))
    cluster.clock.advance(seconds=61)
    assert names(cluster, "events") == set()
    forever = Cluster(profile="apiserver", event_ttl=0)
    forever.clock.hold()
    forever.create(event("a"))
    forever.clock.advance(days=30)
    assert names(forever, "events") == {"a"}


@pytest.mark.parametrize(("profile", "status"), [("cluster", "True"), ("apiserver", "False")])
def test_component_statuses_are_those_of_the_components_that_run(profile: str, status: str) -> None:
    cluster = Cluster(profile=profile)
    found = {one["metadata"]["name"]: one["conditions"][0]["status"] for one in cluster.list("componentstatuses")}
    assert found == {"etcd-0": "True", "scheduler": status, "controller-manager": status}

"""Endpoints and EndpointSlices: how endpoints are packed, and that they follow pods."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube import Cluster
from fakekube.controllers.endpoints.service_reconciler import repack_subsets
from fakekube.controllers.endpoints.slice_controller import DesiredEndpoints, reconcile_by_port_mapping

Object = dict[str, Any]


def endpoint(number: int, ready: bool = True) -> Object:
    return {"addresses": [f"10.0.0.{number}"], "conditions": {"ready": ready}, "targetRef": {"name": f"p{number}"}}


def group(numbers: Any) -> DesiredEndpoints:
    made = DesiredEndpoints([])
    for number in numbers:
        made.add(endpoint(number))
    return made


STEPS = st.lists(st.sets(st.integers(0, 40), max_size=30), min_size=1, max_size=6)


@given(STEPS, st.integers(2, 12))
def test_each_endpoint_is_in_one_slice_that_is_not_too_large(steps: list[set[int]], limit: int) -> None:
    slices: dict[str, Object] = {}
    names = (f"s{number}" for number in count())
    for wanted in steps:
        made = reconcile_by_port_mapping(
            list(slices.values()), group(wanted), lambda found: {"endpoints": found}, lambda slice_: None, limit
        )
        for one in made.delete:
            del slices[one["name"]]
        for one in made.update:
            slices[one["name"]] = one
        for one in made.create:
            name = next(names)
            slices[name] = {**one, "name": name}
        found = [one["addresses"][0] for slice_ in slices.values() for one in slice_["endpoints"]]
        assert sorted(found) == sorted(f"10.0.0.{number}" for number in wanted)
        assert all(0 < len(slice_["endpoints"]) <= limit for slice_ in slices.values())


def test_unchanged_slices_are_not_written() -> None:
    slices = [{"name": "a", "endpoints": [endpoint(1), endpoint(2)]}]
    made = reconcile_by_port_mapping(slices, group([1, 2]), lambda found: {"endpoints": found}, lambda slice_: None, 10)
    assert (made.create, made.update, made.delete, made.unchanged) == ([], [], [], slices)


def test_repack_subsets_joins_addresses_with_equal_ports() -> None:
    port, other = {"port": 80, "protocol": "TCP"}, {"port": 90, "protocol": "TCP"}
    subsets = [
        {"addresses": [{"ip": "10.0.0.2"}], "ports": [port]},
        {"addresses": [{"ip": "10.0.0.1"}], "ports": [port]},
        {"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [other]},
    ]
    assert repack_subsets(subsets) == [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [port, other]}]
    both = [{"addresses": [{"ip": "10.0.0.1"}], "notReadyAddresses": [{"ip": "10.0.0.1"}], "ports": [port]}]
    assert repack_subsets(both) == [{"notReadyAddresses": [{"ip": "10.0.0.1"}], "ports": [port]}]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.stop()


def service(name: str, **spec: Any) -> Object:
    return {"kind": "Service", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def pod(name: str, app: str) -> Object:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }


def slices_of(cluster: Cluster, name: str) -> list[Object]:
    return cluster.list("endpointslices", namespace="default", label_selector=f"kubernetes.io/service-name={name}")


def test_endpoints_have_the_pods_of_the_service(cluster: Cluster) -> None:
    cluster.create(service("s", selector={"app": "a"}))
    cluster.settle()
    (empty,) = slices_of(cluster, "s")
    assert (empty["endpoints"], empty["ports"]) == (None, None)
    cluster.create(pod("p", "a"))
    cluster.create(pod("q", "b"))
    cluster.settle()
    (slice_,) = slices_of(cluster, "s")
    ip = cluster.get("pods", "p")["status"]["podIP"]
    assert [one["addresses"] for one in slice_["endpoints"]] == [[ip]]
    assert cluster.get("endpoints", "s")["subsets"][0]["addresses"][0]["ip"] == ip
    assert slice_["metadata"]["name"] == empty["metadata"]["name"]
    cluster.delete("services", "s")
    cluster.settle()
    assert "s" not in [one["metadata"]["name"] for one in cluster.list("endpoints", namespace="default")]


def test_many_pods_need_several_slices(cluster: Cluster) -> None:
    cluster.create(service("s", selector={"app": "a"}))
    for number in range(104):
        cluster.create(pod(f"p{number}", "a"))
    cluster.settle()
    assert sorted(len(one["endpoints"]) for one in slices_of(cluster, "s")) == [4, 100]


def test_traffic_distribution_sets_hints_of_zone_and_node(cluster: Cluster) -> None:
    cluster.patch("nodes", "node-1", {"metadata": {"labels": {"topology.kubernetes.io/zone": "z"}}})
    cluster.create(service("s", selector={"app": "a"}, trafficDistribution="PreferSameNode"))
    cluster.create(pod("p", "a"))
    cluster.settle()
    ((found,),) = [one["endpoints"] for one in slices_of(cluster, "s")]
    assert (found["zone"], found["hints"]) == ("z", {"forZones": [{"name": "z"}], "forNodes": [{"name": "node-1"}]})


def test_endpoints_without_selector_are_mirrored(cluster: Cluster) -> None:
    cluster.create(service("s"))
    subsets = [{"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}], "ports": [{"port": 1}]}]
    cluster.create({"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "s"}, "subsets": subsets})
    cluster.settle()
    assert sorted(one["addressType"] for one in slices_of(cluster, "s")) == ["IPv4", "IPv6"]
    cluster.patch("endpoints", "s", {"subsets": None})
    cluster.settle()
    assert slices_of(cluster, "s") == []

"""Service cluster IP and node port ranges: flags, and clusters with other ranges."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

import fakekube
from fakekube.apis.rest.cluster_access import ServiceRanges, parse_networks, parse_ports


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        ("10.0.0.0/24", ("10.0.0.0/24",)),
        ("10.0.0.9/24", ("10.0.0.0/24",)),
        ("fd00::/108,10.0.0.0/24", ("fd00::/108", "10.0.0.0/24")),
    ],
)
def test_parse_networks(text: str, networks: tuple[str, ...]) -> None:
    assert parse_networks(text) == networks


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", "service-cluster-ip-range[0] is not a valid cidr"),
        ("10.0.0.0/24,x", "service-cluster-ip-range[1] is not an ip net"),
        (
            "10.0.0.0/24,10.1.0.0/24",
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
        ),
        ("10.0.0.0/24,fd00::/108,10.1.0.0/24", "--service-cluster-ip-range must not contain more than two entries"),
        (
            "10.0.0.0/30",
            "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP addresses",
        ),
    ],
)
def test_invalid_networks_are_rejected(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_networks(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "ports"),
    [("30000-32767", range(30000, 32768)), ("80+2", range(80, 83)), (" 80 ", range(80, 81)), ("80-80", range(80, 81))],
)
def test_parse_node_port_range(text: str, ports: range) -> None:
    assert parse_ports(text) == ports


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", 'strconv.Atoi: parsing "x": invalid syntax'),
        ("1-2+3", "unable to parse port range: 1-2+3"),
        ("2-1", "end port cannot be less than start port: 2-1"),
        ("1-65536", "the port range cannot be greater than 65535: 1-65536"),
        ("65536+0", "the port range cannot be greater than 65535: 65536+0"),
    ],
)
def test_invalid_node_port_ranges_are_rejected(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_ports(text)
    assert str(caught.value) == reason


def test_number_of_static_node_ports() -> None:
    assert ServiceRanges().static_ports == 86
    assert ServiceRanges(node_ports=range(80, 96)).static_ports == 0
    assert ServiceRanges(node_ports=range(1, 65536)).static_ports == 128


@pytest.mark.parametrize(
    ("networks", "address"),
    [(("10.0.0.0/16",), "10.0.0.10"), (("10.1.2.0/29",), "10.1.2.6"), (("fd00::/108", "10.0.0.0/16"), "fd00::a")],
)
def test_address_of_the_dns_server(networks: tuple[str, ...], address: str) -> None:
    assert ServiceRanges(networks).dns_address == address


def test_cluster_with_custom_service_ranges() -> None:
    with fakekube.Cluster(
        profile="apiserver", service_cluster_ip_range="10.96.0.0/12", service_node_port_range="80-81"
    ) as cluster:
        assert cluster.get("services", "kubernetes")["spec"]["clusterIP"] == "10.96.0.1"
        assert cluster.get("servicecidrs", "kubernetes")["spec"]["cidrs"] == ["10.96.0.0/12"]
        assert [obj["metadata"]["name"] for obj in cluster.list("ipaddresses")] == ["10.96.0.1"]
        made = cluster.create(service("a", type="NodePort"))["spec"]
        assert ipaddress.ip_address(made["clusterIP"]) in ipaddress.ip_network("10.96.0.0/12")
        assert made["ports"][0]["nodePort"] in (80, 81)
        with pytest.raises(fakekube.ApiError, match=r"The range of valid ports is 80-81"):
            cluster.create(service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30000}]))
        cluster.reset()
        assert cluster.get("services", "kubernetes")["spec"]["clusterIP"] == "10.96.0.1"


def test_dual_stack_cluster() -> None:
    with fakekube.Cluster(profile="apiserver", service_cluster_ip_range="10.1.0.0/24,fd00::/108") as cluster:
        made = cluster.create(service("a", ipFamilyPolicy="RequireDualStack"))["spec"]
        assert made["ipFamilies"] == ["IPv4", "IPv6"]
        assert [ipaddress.ip_address(address).version for address in made["clusterIPs"]] == [4, 6]
        assert cluster.create(service("b", ipFamilies=["IPv6"]))["spec"]["clusterIP"].startswith("fd00::")


def test_invalid_service_range_raises_option_error() -> None:
    with pytest.raises(fakekube.OptionError, match="is not a valid cidr"):
        fakekube.Cluster(service_cluster_ip_range="x")

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apimachinery.printers.rows import cells

INGRESS = {"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "a.b"}, {"ip": "1.1.1.1"}, {}]}}

SERVICES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "protocol": "TCP"}]}, {}, ["10.0.0.1", "<none>", "80/TCP", "<none>"]),
    ({"type": "ClusterIP", "clusterIPs": ["None"], "selector": {"b": "1", "a": "2"}}, {}, ["None", "<none>", "<none>", "a=2,b=1"]),
    (
        {
            "type": "NodePort", "externalIPs": ["9.9.9.9", "8.8.8.8"],
            "ports": [{"port": 80, "nodePort": 30001, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
        },
        {},
        ["<none>", "9.9.9.9,8.8.8.8", "80:30001/TCP,53/UDP", "<none>"],
    ),
    ({"type": "LoadBalancer"}, {}, ["<none>", "<pending>", "<none>", "<none>"]),
    ({"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]}, INGRESS, ["<none>", "1.1.1.1,2.2.2.2,a.b,9.9.9.9", "<none>", "<none>"]),
    ({"type": "ExternalName", "externalName": "x.y"}, {}, ["<none>", "x.y", "<none>", "<none>"]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "status", "expected"), SERVICES)
def test_services(spec: dict[str, Any], status: dict[str, Any], expected: list[str]) -> None:
    cluster_ip, external, ports, selector = expected
    assert cells("/v1/services", {"spec": spec, "status": status}) == [
        "x",
        spec["type"],
        cluster_ip,
        external,
        ports,
        "60m",
        selector,
    ]


@pytest.mark.parametrize(
    ("subsets", "expected"),
    [
        ([], "<none>"),
        ([{"addresses": [{"ip": "1.1.1.1"}]}], "1.1.1.1"),
        (
            [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 80}, {"port": 81}]}],
            "1.1.1.1:80,[::1]:80,1.1.1.1:81 + 1 more...",
        ),
        ([{"notReadyAddresses": [{"ip": "1.1.1.1"}]}], ""),
    ],
)
def test_endpoints(subsets: list[dict[str, Any]], expected: str) -> None:
    assert cells("/v1/endpoints", {"subsets": subsets}) == ["x", expected, "60m"]


def test_endpoint_slices() -> None:
    ports = [{"port": 1, "name": "q"}, {"name": "w"}, {"port": 2}, {"port": 4}]
    endpoints = [{"addresses": [f"1.1.1.{number}"]} for number in range(1, 6)]
    obj = {"addressType": "IPv4", "ports": ports, "endpoints": endpoints}
    assert cells("discovery.k8s.io/v1/endpointslices", obj) == [
        "x",
        "IPv4",
        "1,w,2 + 1 more...",
        "1.1.1.1,1.1.1.2,1.1.1.3 + 2 more...",
        "60m",
    ]
    assert cells("discovery.k8s.io/v1/endpointslices", {"addressType": "IPv4"}) == ["x", "IPv4", "<unset>", "<unset>", "60m"]


def test_ingresses() -> None:
    rules = [{"host": host} for host in ("a.b", "c.d", "e.f", "g.h", "i.j")]
    obj = {"spec": {"ingressClassName": "k", "rules": rules, "tls": [{}]}, "status": INGRESS}
    assert cells("networking.k8s.io/v1/ingresses", obj) == [
        "x",
        "k",
        "a.b,c.d,e.f + 2 more...",
        "1.1.1.1,2.2.2.2,a.b",
        "80, 443",
        "60m",
    ]
    assert cells("networking.k8s.io/v1/ingresses", {"spec": {"rules": [{}, {"host": "c.d"}]}}) == [
        "x",
        "<none>",
        "c.d",
        "",
        "80",
        "60m",
    ]
    assert cells("networking.k8s.io/v1/ingresses", {})[2] == "*"


def test_ingress_classes() -> None:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    obj = {"spec": {"controller": "a.b/c", "parameters": {"apiGroup": "x.y", "kind": "K", "name": "n"}}}
    assert cells("networking.k8s.io/v1/ingressclasses", obj, annotations=annotations) == [
        "x (default)",
        "a.b/c",
        "K.x.y/n",
        "60m",
    ]
    obj = {"spec": {"controller": "a.b/c", "parameters": {"kind": "K", "name": "n"}}}
    assert cells("networking.k8s.io/v1/ingressclasses", obj) == ["x", "a.b/c", "K/n", "60m"]
    assert cells("networking.k8s.io/v1/ingressclasses", {}) == ["x", "", "<none>", "60m"]


def test_network_policies_service_cidrs_and_ip_addresses() -> None:
    assert cells("networking.k8s.io/v1/networkpolicies", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}) == [
        "x",
        "a=b",
        "60m",
    ]
    assert cells("networking.k8s.io/v1/networkpolicies", {}) == ["x", "<none>", "60m"]
    assert cells("networking.k8s.io/v1/servicecidrs", {"spec": {"cidrs": ["1.0.0.0/8", "fd::/64"]}}) == [
        "x",
        "1.0.0.0/8,fd::/64",
        "60m",
    ]
    parent = {"group": "", "resource": "services", "namespace": "n", "name": "s"}
    assert cells("networking.k8s.io/v1/ipaddresses", {"spec": {"parentRef": parent}}) == ["x", "services/n/s", "60m"]
    parent = {"group": "G", "resource": "things", "name": "s"}
    assert cells("networking.k8s.io/v1/ipaddresses", {"spec": {"parentRef": parent}}) == ["x", "things.g/s", "60m"]

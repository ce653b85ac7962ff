"""NetworkPolicies that are in force: which pods reach each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture(scope="module")
def base() -> Iterator[Cluster]:
    with Cluster() as made:
        made.network_policies = True
        made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "b"}}})
        made.settle()
        start(made, "server", {"app": "server"})
        start(made, "friend", {"app": "friend"})
        start(made, "stranger", {"app": "stranger"})
        start(made, "foreign", {"app": "friend"}, namespace="other")
        made.settle()
        address = made.get("pods", "server")["status"]["podIP"]  # its program may need a moment to listen
        made.pods.get("friend").exec(f"until /agnhost connect {address}:80; do sleep 0.1; done", timeout=60)
        yield made


@pytest.fixture
def cluster(base: Cluster) -> Iterator[Cluster]:
    yield base
    for policy in base.list("networkpolicies"):
        base.delete("networkpolicies", policy["metadata"]["name"], namespace=policy["metadata"]["namespace"])


def start(cluster: Cluster, name: str, labels: dict[str, str], namespace: str = "default") -> None:
    ports = [{"name": "web", "containerPort": 80}]
    container = {"name": "main", "image": "agnhost", "args": ["netexec", "--http-port=80"], "ports": ports}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})


def policy(cluster: Cluster, app: str | None = "server", namespace: str = "default", **spec: Any) -> None:
    selector = {"matchLabels": {"app": app}} if app else {}
    cluster.create(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "p", "namespace": namespace},
            "spec": {"podSelector": selector, **spec},
        }
    )


def who_reaches(cluster: Cluster, port: int = 80, protocol: str = "tcp") -> set[str]:
    """The pods that reach the server."""
    address = cluster.get("pods", "server")["status"]["podIP"]
    clients = {"friend": "default", "stranger": "default", "foreign": "other"}
    found = set()
    for name, namespace in clients.items():
        command = f"/agnhost connect {address}:{port} --protocol={protocol} --timeout=1s"
        result = cluster.pods.get(name, namespace=namespace).exec(command)
        assert result.code == 0 or result.stderr == "TIMEOUT\n"
        found |= {name} if result.code == 0 else set()
    return found


EVERYONE = {"friend", "stranger", "foreign"}


def test_pods_without_a_policy_reach_each_other(cluster: Cluster) -> None:
    assert who_reaches(cluster) == EVERYONE


def test_a_policy_without_rules_isolates(cluster: Cluster) -> None:
    policy(cluster, None)
    assert who_reaches(cluster) == set()


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        ([{"podSelector": {"matchLabels": {"app": "friend"}}}], {"friend"}),
        ([{"namespaceSelector": {"matchLabels": {"team": "b"}}}], {"foreign"}),
        ([{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "friend"}}}], {"friend", "foreign"}),
        ([{"podSelector": {}}, {"namespaceSelector": {"matchLabels": {"team": "b"}}}], EVERYONE),
        ([{"ipBlock": {"cidr": "10.244.0.0/16"}}], EVERYONE),
        ([{"ipBlock": {"cidr": "10.244.0.0/16", "except": ["10.244.0.0/17"]}}], set()),
        ([], EVERYONE),
    ],
)
def test_ingress_comes_from_the_peers_of_a_rule(cluster: Cluster, peers: list[dict[str, Any]], expected: set[str]) -> None:
    policy(cluster, ingress=[{"from": peers}])
    assert who_reaches(cluster) == expected


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        ({"port": 80}, EVERYONE),
        ({"port": "web"}, EVERYONE),
        ({"port": "other"}, set()),
        ({"port": 81}, set()),
        ({"port": 70, "endPort": 90}, EVERYONE),
        ({"port": 80, "protocol": "UDP"}, set()),
        ({}, EVERYONE),
    ],
)
def test_ingress_goes_to_the_ports_of_a_rule(cluster: Cluster, port: dict[str, Any], expected: set[str]) -> None:
    policy(cluster, ingress=[{"ports": [port]}])
    assert who_reaches(cluster) == expected


def test_udp_has_ports_of_its_own(cluster: Cluster) -> None:
    policy(cluster, ingress=[{"ports": [{"protocol": "UDP", "port": 8081}]}])
    assert who_reaches(cluster, 8081, "udp") == EVERYONE


def test_egress_isolates_the_source(cluster: Cluster) -> None:
    policy(cluster, "friend", policyTypes=["Egress"])
    assert who_reaches(cluster) == {"stranger", "foreign"}


def test_egress_to_a_service_is_that_to_its_endpoint(cluster: Cluster) -> None:
    service = {"selector": {"app": "server"}, "ports": [{"port": 8000, "targetPort": 80}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": service})
    cluster.settle()
    policy(cluster, "friend", policyTypes=["Egress"], egress=[{"ports": [{"port": 80}]}])
    assert cluster.pods.get("friend").exec("wget -q -O - http://s:8000/hostname").stdout == "server"


def test_a_policy_is_not_in_force_by_default(cluster: Cluster) -> None:
    policy(cluster, None)
    cluster.network_policies = False
    try:
        assert who_reaches(cluster) == EVERYONE
    finally:
        cluster.network_policies = True


def test_the_node_of_a_pod_reaches_it(cluster: Cluster) -> None:
    policy(cluster, None)
    found = cluster.request("GET", "/api/v1/namespaces/default/pods/server:80/proxy/hostname")
    assert found.text == "server"

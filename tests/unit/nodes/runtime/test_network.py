"""The network between containers: names, Services, and the resolver configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def start(cluster: Cluster, name: str, **spec: Any) -> Any:
    containers = [{"name": "main", "image": "alpine", "ports": [{"containerPort": 80}]}]
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}})
    cluster.settle()
    return cluster.pods.get(name)


def test_a_service_reaches_the_addresses_of_slices_without_references(cluster: Cluster) -> None:
    client = start(cluster, "client")
    start(cluster, "server")
    ports = [{"port": 8080}]
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}})
    cluster.create(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "s"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [cluster.get("pods", "server")["status"]["podIP"]]}],
            "ports": [{"name": "", "port": 80}],
        }
    )
    found = client.exec("curl -q -s -g --interface eth0 http://s:8080/")
    assert (found.code, found.stderr) == (0, "")
    assert "Welcome to alpine!" in found.stdout


@pytest.fixture
def two_nodes() -> Iterator[Cluster]:
    """A cluster with a server on the first of two nodes, and a client on each."""
    with Cluster(nodes=2) as made:
        made.clock.hold()
        start(made, "server", nodeName="node-1")
        made.patch("pods", "server", {"metadata": {"labels": {"app": "server"}}})
        for node in ("node-1", "node-2"):
            start(made, f"on-{node}", nodeName=node)
        yield made


def serve(cluster: Cluster, **spec: Any) -> Any:
    """Makes a Service of the server, and returns its spec."""
    spec = {"selector": {"app": "server"}, "ports": [{"port": 80}], **spec}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec})
    cluster.settle()
    return cluster.get("services", "s")["spec"]


def curl(cluster: Cluster, client: str, host: str, port: int) -> bool:
    return bool(cluster.pods.get(client).exec(f"curl -s http://{host}:{port}/").code == 0)


def addresses_of_nodes(cluster: Cluster) -> list[str]:
    return [cluster.get("nodes", name)["status"]["addresses"][0]["address"] for name in ("node-1", "node-2")]


def test_external_traffic_stays_on_its_node_if_the_service_says_so(two_nodes: Cluster) -> None:
    port = serve(two_nodes, type="NodePort", externalTrafficPolicy="Local")["ports"][0]["nodePort"]
    first, second = addresses_of_nodes(two_nodes)
    assert curl(two_nodes, "on-node-1", first, port)
    assert curl(two_nodes, "on-node-2", first, port)
    assert not curl(two_nodes, "on-node-1", second, port)
    assert curl(two_nodes, "on-node-2", second, port)  # from a pod to its own node


def test_internal_traffic_stays_on_its_node_if_the_service_says_so(two_nodes: Cluster) -> None:
    address = serve(two_nodes, internalTrafficPolicy="Local")["clusterIP"]
    assert curl(two_nodes, "on-node-1", address, 80)
    assert not curl(two_nodes, "on-node-2", address, 80)


def test_a_health_check_node_port_tells_whether_its_node_has_endpoints(two_nodes: Cluster) -> None:
    port = serve(two_nodes, type="LoadBalancer", externalTrafficPolicy="Local")["healthCheckNodePort"]
    client = two_nodes.pods.get("on-node-2")
    for address, status, count in zip(addresses_of_nodes(two_nodes), ("200 OK", "503 Service Unavailable"), (1, 0), strict=True):
        found = client.exec(f"curl -s -i http://{address}:{port}/").stdout.replace("\r", "")
        head, _, body = found.partition("\n\n")
        assert head.splitlines()[0] == f"HTTP/1.1 {status}"
        assert f"X-Load-Balancing-Endpoint-Weight: {count}" in head.splitlines()
        service = {"namespace": "default", "name": "s"}
        assert json.loads(body) == {"service": service, "localEndpoints": count, "serviceProxyHealthy": True}


CLUSTER_DNS = "search default.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n"
OWN = {
    "nameservers": ["192.0.2.1"],
    "searches": ["ns1.svc.example", "cluster.local"],
    "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, CLUSTER_DNS),
        (
            {"dnsPolicy": "None", "dnsConfig": OWN},
            "search ns1.svc.example cluster.local\nnameserver 192.0.2.1\noptions ndots:2 edns0\n",
        ),
        ({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.1"]}}, "nameserver 192.0.2.1\n"),
        (
            {"dnsConfig": OWN},
            "search default.svc.cluster.local svc.cluster.local cluster.local ns1.svc.example\n"
            "nameserver 10.0.0.10\nnameserver 192.0.2.1\noptions ndots:2 edns0\n",
        ),
    ],
    ids=["cluster", "none", "none without searches", "both"],
)
def test_the_resolver_configuration_of_a_pod(cluster: Cluster, spec: dict[str, Any], expected: str) -> None:
    assert start(cluster, "p", **spec).exec("cat /etc/resolv.conf").stdout == expected


def test_the_name_server_of_pods_is_the_tenth_address_of_the_range_of_services() -> None:
    with Cluster(service_cluster_ip_range="10.4.0.0/24") as cluster:
        cluster.clock.hold()
        pod = start(cluster, "p")
        assert "nameserver 10.4.0.10\n" in pod.exec("cat /etc/resolv.conf").stdout
        assert "Server:\t\t10.4.0.10\n" in pod.exec("nslookup kubernetes.default").stdout
        configuration = json.loads(cluster.request("GET", "/api/v1/nodes/node-1/proxy/configz").body)["kubeletconfig"]
        assert configuration["clusterDNS"] == ["10.4.0.10"]


def test_the_kubelet_of_a_node_answers_those_whom_the_api_server_allows() -> None:
    with Cluster() as cluster:
        cluster.clock.hold()
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "c", "image": "alpine", "command": ["sleep", "1000"]}]},
            }
        )
        cluster.settle()
        node = cluster.get("nodes", cluster.get("pods", "p")["spec"]["nodeName"])
        address = next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP")
        url = f"https://{address}:10250"
        token = "Authorization: Bearer $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"

        def curl(words: str) -> str:
            return str(cluster.pods.get("p").exec(["sh", "-c", f"curl -sk -w '%{{http_code}}' {words}"]).stdout)

        assert curl(f"{url}/metrics") == "Unauthorized401"
        assert curl(f'-H "Authorization: Bearer x" {url}/metrics') == "Unauthorized401"
        user = "system:serviceaccount:default:default"
        refused = f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[metrics])403"
        assert curl(f'-H "{token}" {url}/metrics') == refused
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "m"}}
        cluster.create({**role, "rules": [{"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]}]})
        subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "m"}
        cluster.create({**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]})
        assert "kubelet_" in curl(f'-H "{token}" {url}/metrics')
        assert curl(f'-H "{token}" {url}/pods').endswith("subresource(s)=[pods proxy])403")
        assert cluster.pods.get("p").exec(["sh", "-c", f"curl -sk {url[:-5]}10255/"]).code == 7

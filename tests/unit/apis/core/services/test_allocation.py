"""Allocation of cluster IPs and node ports: each belongs to one Service, and none leaks."""

from __future__ import annotations

import threading
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fakekube.apiserver import server as assembly
from fakekube.base.clock import Clock
from tests.unit import stories

SERVICES = "/api/v1/namespaces/default/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
MERGE = "application/merge-patch+json"

TYPES = st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])
NAMES = st.sampled_from(["a", "b", "c", "d"])
NODE_PORTS = st.sampled_from([0, 0, 31000, 31001, 31002])
CLUSTER_IPS = st.sampled_from(["", "", "10.0.9.1", "10.0.9.2", "None"])


class Cluster:
    """A server of its own, and what it holds."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.machinery = assembly.build(clock=self.clock, settings=stories.recorded_settings(), profile="apiserver")
        self._ask = stories.of_application(self.machinery.application)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = stories.JSON) -> tuple[int, Any]:
        code, _, text = self._ask(method, path, body, content_type)
        return code, stories.json.loads(text)

    def services(self) -> list[dict[str, Any]]:
        _, answer = self.ask("GET", "/api/v1/services")
        return [item["spec"] for item in answer["items"]]

    def held_addresses(self) -> list[str]:
        _, answer = self.ask("GET", ADDRESSES)
        return sorted(item["metadata"]["name"] for item in answer["items"])

    def held_ports(self) -> list[int]:
        return sorted(int(record.key) for record in self.machinery.backend.store.bucket("nodeports").page("").records)


def addresses_of(services: list[dict[str, Any]]) -> list[str]:
    return sorted(ip for spec in services for ip in spec.get("clusterIPs") or () if ip != "None")


def ports_of(services: list[dict[str, Any]]) -> list[int]:
    used = [{port["nodePort"] for port in spec.get("ports") or () if "nodePort" in port} for spec in services]
    checks = [spec["healthCheckNodePort"] for spec in services if "healthCheckNodePort" in spec]
    return sorted([number for ports in used for number in ports] + checks)


class Allocations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()

    def teardown(self) -> None:
        self.cluster.clock.close()

    @rule(name=NAMES, kind=TYPES, ip=CLUSTER_IPS, port=NODE_PORTS, local=st.booleans(), dry=st.booleans())
    def create(self, name: str, kind: str, ip: str, port: int, local: bool, dry: bool) -> None:
        spec: dict[str, Any] = {"type": kind, "ports": [{"name": "x", "port": 80}, {"name": "y", "port": 81}]}
        if kind == "ExternalName":
            spec["externalName"] = "x.example.com"
        elif ip:
            spec["clusterIP"] = ip
        if kind in ("NodePort", "LoadBalancer"):
            spec["externalTrafficPolicy"] = "Local" if local else "Cluster"
            if port:
                spec["ports"][0]["nodePort"] = port
        code, _ = self.cluster.ask("POST", SERVICES + "?dryRun=All" * dry, {"metadata": {"name": name}, "spec": spec})
        assert code in (201, 409, 422)

    @rule(name=NAMES, kind=TYPES, port=NODE_PORTS, dry=st.booleans())
    def change_type(self, name: str, kind: str, port: int, dry: bool) -> None:
        spec: dict[str, Any] = {"type": kind, "externalName": "x.example.com" if kind == "ExternalName" else None}
        if port and kind in ("NodePort", "LoadBalancer"):
            spec["ports"] = [{"name": "x", "port": 80, "nodePort": port}]
        code, _ = self.cluster.ask("PATCH", f"{SERVICES}/{name}{'?dryRun=All' * dry}", {"spec": spec}, MERGE)
        assert code in (200, 404, 422)

    @rule(name=NAMES, dry=st.booleans())
    def delete(self, name: str, dry: bool) -> None:
        self.cluster.ask("DELETE", f"{SERVICES}/{name}{'?dryRun=All' * dry}")

    @invariant()
    def every_address_has_one_service(self) -> None:
        assert self.cluster.held_addresses() == addresses_of(self.cluster.services())

    @invariant()
    def every_port_has_one_service(self) -> None:
        held = self.cluster.held_ports()
        assert held == ports_of(self.cluster.services())
        assert len(set(held)) == len(held)


Allocations.TestCase.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestAllocations = Allocations.TestCase


def test_concurrent_services_get_distinct_addresses_and_ports() -> None:
    cluster = Cluster()

    def make(number: int) -> None:
        for index in range(10):
            body = {"metadata": {"name": f"s{number}-{index}"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
            assert cluster.ask("POST", SERVICES, body)[0] == 201

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    services = cluster.services()
    assert len(set(addresses_of(services))) == len(addresses_of(services)) == 81
    assert len(set(ports_of(services))) == len(ports_of(services)) == 80
    cluster.clock.close()


def test_concurrently_requested_node_port_is_allocated_once() -> None:
    cluster = Cluster()
    codes: list[int] = []

    def make(number: int) -> None:
        spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 32000}]}
        codes.append(cluster.ask("POST", SERVICES, {"metadata": {"name": f"s{number}"}, "spec": spec})[0])

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [201] + [422] * 7
    assert len(cluster.held_addresses()) == 2  # of the winner, and of the service kubernetes
    cluster.clock.close()


def test_last_free_node_port_is_allocated() -> None:
    cluster = Cluster()
    bucket = cluster.machinery.backend.services
    for number in range(30000, 32768):
        if number != 30007:
            assert bucket.reserve("nodeports", str(number))
    body = {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    code, answer = cluster.ask("POST", SERVICES, body)
    assert (code, answer["spec"]["ports"][0]["nodePort"]) == (201, 30007)
    code, answer = cluster.ask("POST", SERVICES, {**body, "metadata": {"name": "b"}})
    assert (code, answer["message"]) == (500, "Internal error occurred: failed to allocate a nodePort: range is full")
    assert len(cluster.held_addresses()) == 2
    cluster.clock.close()

"""The validation of objects with very many items takes time in proportion to them.

What is counted does not depend on the machine: comparisons of texts (`Text` counts them), or calls of functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apis.certificates import certificatesigningrequests
from fakekube.apis.core import resourcequotas
from fakekube.apis.core.pods import containers, spec, status_validation, warnings
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.core.services import validation as services
from fakekube.apis.storage import csi
from fakekube.apis.validation import selectors
from fakekube.apiserver.admission.chain import Attributes
from fakekube.apiserver.admission.optional_plugins import ExtendedResourceToleration
from fakekube.apiserver.registry.store_access import StoreAccess
from tests.unit.call_counts import calls_of

MANY = 400


class Text(str):
    """A text that counts how often one is compared with another."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Text.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def addresses(second: int) -> list[Text]:
    return [Text(f"10.{second}.{number // 250}.{number % 250}") for number in range(MANY)]


def external_ips() -> None:
    new, old = ({"spec": {"type": "ClusterIP", "externalIPs": addresses(n)}, "metadata": {}} for n in (1, 2))
    services.validate_service(new, old)


def source_ranges() -> None:
    new, old = ({"type": "LoadBalancer", "loadBalancerSourceRanges": [Text(f"{ip}/32") for ip in addresses(n)]} for n in (1, 2))
    services.validate_service({"spec": new, "metadata": {}}, {"spec": old, "metadata": {}})


def ingress_points() -> None:
    new, old = ({"ingress": [{"ip": ip, "ipMode": "VIP"} for ip in addresses(n)]} for n in (1, 2))
    services.validate_load_balancer_status(new, old, "status.loadBalancer", services.LOAD_BALANCER)


def pod_ips() -> None:
    new, old = ({"podIPs": [{"ip": ip} for ip in addresses(n)]} for n in (1, 2))
    status_validation._validate_addresses(new, old, "podIPs", "PodIP")


def terminated_containers() -> None:
    ended, runs = ({state: {"exitCode": 0}} for state in ("terminated", "running"))
    old, new = ({"containerStatuses": [{"name": Text(f"c{n}"), "state": state} for n in range(MANY)]} for state in (ended, runs))
    assert len(status_validation._validate_transitions(new, old, {"restartPolicy": "Never"})) == MANY


def allocated_resources() -> None:
    claims = [{"name": Text(f"r{number}")} for number in range(MANY)]
    items = [{"name": Text(f"claim:r{number}")} for number in range(MANY)]
    names = [Text(f"c{number}") for number in range(MANY)]
    spec = {"containers": [{"name": name, "resources": {"claims": claims if name == "c0" else claims[:1]}} for name in names]}
    states = [{"name": name, "allocatedResourcesStatus": items if name == "c0" else items[:1]} for name in names]
    assert status_validation._validate_containers({"containerStatuses": states}, spec) == []


def volume_devices() -> None:
    mounts = [{"name": f"m{number}", "mountPath": Text(f"/m{number}")} for number in range(MANY)]
    devices = [{"name": f"d{number}", "devicePath": Text(f"/d{number}")} for number in range(MANY)]
    containers.validate_volume_devices({"volumeMounts": mounts, "volumeDevices": devices}, {}, "spec")


def conditions_of_signing_requests() -> None:
    old = [{"type": Text(f"t{number}"), "status": "True"} for number in range(MANY)]
    certificatesigningrequests._validate_conditions([*old, *old, *({"status": "True"} for _ in range(MANY))], old)


def drivers_of_nodes() -> None:
    new, old = ({"drivers": [{"name": Text(f"d{number}")} for number in range(MANY)]} for _ in range(2))
    csi._validate_driver_updates(new, old)


@pytest.mark.parametrize(
    "validate",
    [
        external_ips,
        source_ranges,
        ingress_points,
        pod_ips,
        terminated_containers,
        allocated_resources,
        volume_devices,
        conditions_of_signing_requests,
        drivers_of_nodes,
    ],
    ids=lambda function: function.__name__,
)
def test_items_are_not_compared_with_every_old_one(validate: Callable[[], None]) -> None:
    Text.comparisons = 0
    validate()
    assert Text.comparisons < 20 * MANY


def file_paths() -> list[str]:
    items = [{"key": "k", "path": f"p{number}"} for number in range(MANY)]
    return warnings._warn_of_overlapping_paths([{"name": "v", "configMap": {"name": "m", "items": items}}])


def projected_paths() -> list[str]:
    items = [{"key": "k", "path": f"p{number}"} for number in range(MANY)]
    sources = [{"configMap": {"name": "m", "items": [item]}} for item in items]
    return warnings._warn_of_overlapping_paths([{"name": "v", "projected": {"sources": sources}}])


def host_ports() -> list[str]:
    ports = [{"containerPort": 80, "hostPort": number + 1} for number in range(MANY)]
    return warnings._warn_of_ports([({"ports": ports}, "spec.containers[0]")])


@pytest.mark.parametrize("warn", [file_paths, projected_paths, host_ports], ids=lambda function: function.__name__)
def test_warnings_do_not_look_at_pairs(warn: Callable[[], list[str]]) -> None:
    found: list[str] = []
    assert calls_of(lambda: found.extend(warn())) < 20 * MANY
    assert found == []


def test_old_spread_constraints_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Any] = []
    label_keys = selectors.label_keys
    monkeypatch.setattr(selectors, "label_keys", lambda *given: looked_at.append(given) or label_keys(*given))
    items = [
        {
            "topologyKey": f"k{number}",
            "whenUnsatisfiable": "DoNotSchedule",
            "maxSkew": 1,
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
        for number in range(MANY)
    ]
    options = ValidationOptions({"topologySpreadConstraints": items}, {}, of_pod=True)
    assert spec.validate_topology_spread_constraints(items, "spec", options) == []
    assert len(looked_at) < 3 * MANY


def test_scope_selectors_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    to_internal = resourcequotas.to_internal
    monkeypatch.setattr(resourcequotas, "to_internal", lambda *given: shown.append(given) or to_internal(*given))
    selector = {"matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}] * MANY}
    errors = resourcequotas._validate_selector(selector, [], ["requests.cpu", "pods"], "spec")
    assert len(errors) == MANY
    assert len(shown) == 1


def test_resources_of_a_quota_are_read_once_for_all_scopes() -> None:
    class Names(list[str]):
        read = 0

        def __iter__(self) -> Iterator[str]:
            self.read += 1
            return super().__iter__()

    hard = Names(["requests.cpu", "pods"])
    scopes = ["BestEffort"] * MANY
    assert len(resourcequotas._validate_scopes(scopes, hard, "spec.scopes")) == MANY
    assert hard.read == 1


def test_extended_resources_are_tolerated_once() -> None:
    requests = {f"example.com/r{number:03}": "1" for number in range(MANY)}
    held = [{"key": "example.com/r001", "operator": "Exists", "effect": "NoSchedule"}]
    pod: dict[str, Any] = {"spec": {"containers": [{"resources": {"requests": requests}}], "tolerations": held}}
    attributes = Attributes.__new__(Attributes)
    attributes.object = pod
    ExtendedResourceToleration().admit(attributes)
    assert len(pod["spec"]["tolerations"]) == MANY
    assert pod["spec"]["tolerations"][:3] == [*held, *({**held[0], "key": f"example.com/r00{n}"} for n in (0, 2))]


def test_a_service_tries_each_node_port_once(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0
    reserve = StoreAccess.reserve

    def count(self: StoreAccess, pool: str, value: str) -> bool:
        nonlocal attempts
        attempts += 1
        return reserve(self, pool, value)

    monkeypatch.setattr(StoreAccess, "reserve", count)
    cluster = Cluster(profile="apiserver")
    ports = [{"name": f"p{number}", "port": number + 1} for number in range(2000)]
    body = {"metadata": {"name": "wide"}, "spec": {"type": "NodePort", "ports": ports}}
    made = cluster.request("POST", "/api/v1/namespaces/default/services", body)
    cluster.stop()
    assert made.status == 201
    assert attempts == len(ports)


def test_a_dry_run_numbers_node_ports_upwards() -> None:
    cluster = Cluster(profile="apiserver")
    ports = [{"name": f"p{number}", "port": number + 1} for number in range(3)]
    ports[1]["nodePort"] = 32770
    body = {"metadata": {"name": "dry"}, "spec": {"type": "NodePort", "ports": ports}}
    made = cluster.request("POST", "/api/v1/namespaces/default/services", body, query={"dryRun": "All"})
    cluster.stop()
    assert [port["nodePort"] for port in json.loads(made.body)["spec"]["ports"]] == [32769, 32770, 32771]

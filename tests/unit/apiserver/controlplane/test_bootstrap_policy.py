"""The bootstrap policy by gates; tests/differential/scenarios/rules_gates.py has what the real server makes of gates."""

from __future__ import annotations

import pytest

from fakekube.apimachinery import data
from fakekube.apimachinery.features import emulation
from fakekube.apiserver.controlplane.bootstrap_policy import bootstrap_objects

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def rules_of(version: str, name: str, **gates: bool) -> list[dict[str, object]] | None:
    roles = bootstrap_objects(emulation(version, gates))[ROLES]
    return next((role["rules"] for role in roles if role["metadata"]["name"] == name), None)


@pytest.mark.parametrize("version", data.RELEASES)
def test_default_gates_make_the_objects_of_a_fresh_server(version: str) -> None:
    said = emulation(version, {"APIResponseCompression": True})  # its default, so that the policy is computed
    assert not said.gates.are_default
    assert bootstrap_objects(said) == data.minor(version).bootstrap


def test_gate_that_is_off_takes_roles_and_rules_away() -> None:
    assert rules_of("1.37", "system:cluster-trust-bundle-discovery") is not None
    assert (
        rules_of("1.37", "system:cluster-trust-bundle-discovery", ClusterTrustBundle=False, ClusterTrustBundleProjection=False)
        is None
    )
    nodes = rules_of("1.37", "system:node", PodCertificateRequest=False)
    assert nodes is not None
    assert not any("podcertificaterequests" in (rule.get("resources") or ()) for rule in nodes)


def test_gate_of_a_url() -> None:
    rules = rules_of("1.37", "system:monitoring", ComponentFlagz=False)
    assert rules is not None
    assert "/flagz" not in rules[0]["nonResourceURLs"]
    assert "/statusz" in rules[0]["nonResourceURLs"]


def test_gate_that_is_on_adds_an_object() -> None:
    name = "system:controller:storage-version-migrator-controller"
    assert rules_of("1.36", name) is None
    roles = bootstrap_objects(emulation("1.36", {"StorageVersionMigrator": True}))[ROLES]
    role = next(role for role in roles if role["metadata"]["name"] == name)
    assert role["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"
    assert len(role["rules"]) == 4

"""Tokens in Secrets, their clean-up, bootstrap tokens, and roles that aggregate others."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.bootstrap import compute_detached_signature

TOKEN = "kubernetes.io/service-account-token"
NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers="*,bootstrap-signer-controller,token-cleaner-controller,-kubelet,-kube-scheduler")
    yield cluster
    cluster.stop()


def secret(
    cluster: Cluster, name: str, kind: str, namespace: str = "default", data: dict[str, str] | None = None, **metadata: Any
) -> dict[str, Any]:
    return cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": kind,
            "stringData": data or {},
            "metadata": {"name": name, "namespace": namespace, **metadata},
        }
    )


def account(cluster: Cluster, name: str, **more: Any) -> dict[str, Any]:
    return cluster.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}, **more}
    )


def names(cluster: Cluster, resource: str, namespace: str | None = "default") -> list[str]:
    return [obj["metadata"]["name"] for obj in cluster.list(resource, namespace=namespace)]


def test_a_token_secret_gets_a_valid_token(cluster: Cluster) -> None:
    uid = account(cluster, "robot")["metadata"]["uid"]
    secret(cluster, "t", TOKEN, annotations={NAME: "robot"})
    cluster.settle()
    found = cluster.get("secrets", "t")
    assert found["metadata"]["annotations"] == {NAME: "robot", UID: uid}
    data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
    assert data["namespace"] == "default"
    assert data["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    review = cluster.create({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": data["token"]}})
    assert review["status"]["user"]["username"] == "system:serviceaccount:default:robot"
    cluster.delete("serviceaccounts", "robot")
    cluster.settle()
    assert "t" not in names(cluster, "secrets")


@pytest.mark.parametrize("notes", [{NAME: "nobody"}, {NAME: "default", UID: "11111111-2222-3333-4444-555555555555"}])
def test_a_token_secret_without_a_service_account_is_deleted(cluster: Cluster, notes: dict[str, str]) -> None:
    secret(cluster, "t", TOKEN, annotations=notes)
    cluster.settle()
    assert names(cluster, "secrets") == []


def test_a_deleted_token_secret_is_removed_from_the_service_account(cluster: Cluster) -> None:
    account(cluster, "robot", secrets=[{"name": "t"}, {"name": "other"}])
    secret(cluster, "t", TOKEN, annotations={NAME: "robot"})
    cluster.settle()
    cluster.delete("secrets", "t")
    cluster.settle()
    assert cluster.get("serviceaccounts", "robot")["secrets"] == [{"name": "other"}]


def test_unused_tokens_are_invalidated_then_deleted(cluster: Cluster) -> None:
    cluster.clock.hold()
    account(cluster, "robot", secrets=[{"name": "auto"}])
    for name in ("auto", "manual"):
        secret(cluster, name, TOKEN, annotations={NAME: "robot"})
    cluster.settle()
    cluster.clock.advance(days=367)
    labels = cluster.get("secrets", "auto")["metadata"].get("labels", {})
    assert "kubernetes.io/legacy-token-invalid-since" in labels
    cluster.clock.advance(days=367)
    assert names(cluster, "secrets") == ["manual"]


def bootstrap_token(cluster: Cluster, token: str, **data: str) -> None:
    content = {"token-id": token, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", **data}
    secret(cluster, f"bootstrap-token-{token}", "bootstrap.kubernetes.io/token", "kube-system", content)


def test_bootstrap_tokens_sign_the_cluster_info_and_expire(cluster: Cluster) -> None:
    cluster.clock.hold()
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-info", "namespace": "kube-public"},
            "data": {"kubeconfig": "text", "jws-kubeconfig-gone00": "old"},
        }
    )
    bootstrap_token(cluster, "abcdef")
    bootstrap_token(cluster, "short1", expiration=cluster.clock.now().replace(year=2100).isoformat())
    bootstrap_token(cluster, "unused", **{"usage-bootstrap-signing": "false"})
    bootstrap_token(cluster, "wrong1", expiration="tomorrow")
    cluster.settle()
    data = cluster.get("configmaps", "cluster-info", namespace="kube-public")["data"]
    assert data == {
        "kubeconfig": "text",
        **{
            f"jws-kubeconfig-{token}": compute_detached_signature("text", token, "0123456789abcdef")
            for token in ("abcdef", "short1")
        },
    }
    assert "bootstrap-token-wrong1" not in names(cluster, "secrets", "kube-system")
    cluster.clock.advance(days=36525)
    assert set(names(cluster, "secrets", "kube-system")) >= {"bootstrap-token-abcdef", "bootstrap-token-unused"}
    assert "bootstrap-token-short1" not in names(cluster, "secrets", "kube-system")


def test_a_signature_is_a_detached_token() -> None:
    header, body, digest = compute_detached_signature("content", "abcdef", "secret").split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "HS256", "kid": "abcdef"}
    assert (body, len(digest)) == ("", 43)


def role(
    name: str, rules: list[dict[str, list[str]]], selectors: list[dict[str, Any]] | None = None, **labels: str
) -> dict[str, Any]:
    rule = {"aggregationRule": {"clusterRoleSelectors": selectors}} if selectors else {}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": rules,
        **rule,
    }


def test_roles_aggregate_in_the_order_of_selectors_and_names(cluster: Cluster) -> None:
    rules = {name: {"apiGroups": [""], "resources": [name], "verbs": ["get"]} for name in ("pods", "secrets", "nodes")}
    cluster.create(role("sum", [], [{"matchLabels": {"in": "yes"}}, {"matchLabels": {"in": "also"}}]))
    cluster.create(role("b", [rules["pods"], rules["secrets"], rules["pods"]], **{"in": "yes"}))
    cluster.create(role("a", [rules["secrets"]], **{"in": "yes"}))
    cluster.create(role("0", [rules["nodes"]], **{"in": "also"}))
    cluster.settle()
    found = cluster.get("clusterroles", "sum")
    assert found["rules"] == [rules["secrets"], rules["pods"], rules["nodes"]]
    assert found["metadata"]["managedFields"][0]["manager"] == "clusterrole-aggregation-controller"
    cluster.delete("clusterroles", "a")
    cluster.patch("clusterroles", "b", {"metadata": {"labels": None}})
    cluster.delete("clusterroles", "0")
    cluster.settle()
    assert cluster.get("clusterroles", "sum")["rules"] is None


def test_a_new_cluster_has_aggregated_roles(cluster: Cluster) -> None:
    before = cluster.get("clusterroles", "view")["metadata"]["resourceVersion"]
    cluster.create(role("none", []))
    cluster.settle()
    assert cluster.get("clusterroles", "view")["metadata"]["resourceVersion"] == before

"""The image sample-apiserver: an extension API server in a pod, which an APIService reaches by a Service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.cluster.testing.object_client import Response
from fakekube.net.streams import BrokenStreamError

GROUP = "wardle.example.com"
BASE = f"/apis/{GROUP}"
FLUNDERS = f"{BASE}/v1alpha1/namespaces/default/flunders"


def deploy(cluster: Cluster) -> None:
    cluster.clock.hold()  # probes wait longer for a busy machine while the clock stands still
    issued = cluster.services.certificate("default/sample-api")
    data = {"tls.crt": issued.certificate, "tls.key": issued.key}
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "certs"}, "stringData": data})
    server = {
        "name": "sample-apiserver",
        "image": "registry.k8s.io/e2e-test-images/sample-apiserver:1.29.2",
        "args": ["--etcd-servers=http://127.0.0.1:2379", "--tls-cert-file=/c/tls.crt", "--tls-private-key-file=/c/tls.key"],
        "volumeMounts": [{"name": "c", "mountPath": "/c"}],
        "readinessProbe": {"httpGet": {"scheme": "HTTPS", "port": 443, "path": "/readyz"}, "periodSeconds": 1},
    }
    url = "http://127.0.0.1:2379"
    etcd = {
        "name": "etcd",
        "image": "registry.k8s.io/etcd:3.6.8-0",
        "command": ["/usr/local/bin/etcd", "--listen-client-urls", url, "--advertise-client-urls", url],
    }
    spec = {"containers": [server, etcd], "volumes": [{"name": "c", "secret": {"secretName": "certs"}}]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sample", "labels": {"app": "sample"}}, "spec": spec})
    service = {"selector": {"app": "sample"}, "ports": [{"port": 7443, "targetPort": 443}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "sample-api"}, "spec": service})
    for role in ("system:auth-delegator", "view"):
        bind(cluster, role, {"kind": "ServiceAccount", "name": "default", "namespace": "default"})
    for version in ("v1alpha1", "v1beta1"):
        reference = {"namespace": "default", "name": "sample-api", "port": 7443}
        one = {"service": reference, "group": GROUP, "version": version, "caBundle": issued.ca_bundle}
        one |= {"groupPriorityMinimum": 2000, "versionPriority": 200 if version == "v1alpha1" else 100}
        name = f"{version}.{GROUP}"
        cluster.create({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": one})
    for _ in range(60):
        cluster.settle()
        services = [cluster.get("apiservices", f"{version}.{GROUP}") for version in ("v1alpha1", "v1beta1")]
        conditions = [one for service in services for one in service.get("status", {}).get("conditions", ())]
        if len(conditions) == 2 and all(one["status"] == "True" for one in conditions):
            return
        cluster.clock.advance(seconds=5)
    raise AssertionError(conditions)


def bind(cluster: Cluster, role: str, subject: dict[str, str]) -> None:
    group = "rbac.authorization.k8s.io"
    if subject["kind"] != "ServiceAccount":
        subject = {**subject, "apiGroup": group}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": role}
    name = f"{role}-{subject['name']}".replace(":", "-")
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    cluster.create({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", **binding})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(tls=True) as made:
        deploy(made)
        yield made


def flunder(name: str, version: str = "v1alpha1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Flunder", "metadata": {"name": name}, "spec": spec}


def message(answer: Response) -> tuple[int, str]:
    return answer.status, json.loads(answer.body)["message"]


def test_the_group_is_discovered(cluster: Cluster) -> None:
    found = json.loads(cluster.request("GET", BASE).body)
    assert [one["version"] for one in found["versions"]] == ["v1alpha1", "v1beta1"]
    resources = json.loads(cluster.request("GET", f"{BASE}/v1alpha1").body)["resources"]
    assert [(one["name"], one["namespaced"]) for one in resources] == [("flunders", True), ("fischers", False)]
    documents = json.loads(cluster.request("GET", "/openapi/v3").body)["paths"]
    assert {name for name in documents if GROUP in name} == {f"apis/{GROUP}/v1alpha1", f"apis/{GROUP}/v1beta1"}


def test_versions_are_converted(cluster: Cluster) -> None:
    made = cluster.create(flunder("converted", reference="other"))
    assert (made["spec"], made["status"]) == ({"reference": "other", "referenceType": "Flunder"}, {})
    shown = json.loads(cluster.request("GET", f"{FLUNDERS.replace('v1alpha1', 'v1beta1')}/converted").body)
    assert (shown["apiVersion"], shown["spec"]) == (f"{GROUP}/v1beta1", {"flunderReference": "other", "referenceType": "Flunder"})


def test_bodies_may_lack_their_kind(cluster: Cluster) -> None:
    answer = cluster.request("POST", f"{FLUNDERS}?dryRun=All", {"metadata": {"name": "plain"}})
    assert (answer.status, json.loads(answer.body)["kind"]) == (201, "Flunder")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"referenceType": "X"}, 'spec.referenceType: Invalid value: "X": must be Flunder or Fischer'),
        ({"referenceType": "Fischer"}, 'spec.fischerReference: Invalid value: "": cannot be empty if referenceType is Fischer'),
        (
            {"flunderReference": "a", "fischerReference": "b"},
            'spec.fischerReference: Invalid value: "b": cannot be set with flunderReference at the same time',
        ),
    ],
)
def test_references_are_checked(cluster: Cluster, spec: dict[str, str], problem: str) -> None:
    answer = cluster.request("POST", FLUNDERS.replace("v1alpha1", "v1beta1"), flunder("bad", "v1beta1", **spec))
    assert message(answer) == (422, f'Flunder.{GROUP} "bad" is invalid: {problem}')


def test_fischers_forbid_names(cluster: Cluster) -> None:
    cluster.create(
        {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Fischer", "metadata": {"name": "f"}, "disallowedFlunders": ["forbidden"]}
    )
    assert message(cluster.request("POST", FLUNDERS, flunder("forbidden"))) == (
        403,
        f'flunders.{GROUP} "forbidden" is forbidden: this name may not be used, please change the resource name',
    )


def test_the_namespaces_are_those_of_the_cluster(cluster: Cluster) -> None:
    answer = cluster.request("POST", FLUNDERS.replace("default", "nowhere"), flunder("lost"))
    assert message(answer) == (404, 'namespaces "nowhere" not found')
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "passing"}})
    cluster.create(flunder("passing"), namespace="passing")
    cluster.delete("namespaces", "passing")
    cluster.settle()
    assert json.loads(cluster.request("GET", FLUNDERS.replace("default", "passing")).body)["items"] == []


def test_watches_follow_the_changes_and_end_with_the_pod(cluster: Cluster) -> None:
    with Cluster(tls=True) as other:
        deploy(other)
        stream = other.watch(FLUNDERS)
        other.create(flunder("seen"))
        events = iter(stream)
        assert json.loads(next(events))["object"]["metadata"]["name"] == "seen"
        other.delete("pods", "sample", gracePeriodSeconds=0)
        other.settle()
        with pytest.raises(BrokenStreamError):
            next(events)


def test_the_api_server_of_the_cluster_decides_who_may(cluster: Cluster) -> None:
    container = {"name": "c", "image": "agnhost", "args": ["pause"]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client"}, "spec": {"containers": [container]}})
    cluster.settle()
    client = cluster.pods.get("client")
    token = "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
    for header, user in (
        ("", "system:anonymous"),
        (f'-H "Authorization: Bearer {token}"', "system:serviceaccount:default:default"),
        ('-H "X-Remote-User: admin" -H "X-Remote-Group: system:masters"', "system:anonymous"),
    ):
        found = json.loads(client.exec(f"curl -sk {header} https://sample-api:7443{FLUNDERS}").stdout)["message"]
        assert f'User "{user}" cannot list resource "flunders" in API group "{GROUP}" in the namespace "default"' in found

"""Certificates of pods: what the kubelet asks for, what a signer answers, what the pod gets."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from fakekube import Cluster
from fakekube.apis.certificates import clustertrustbundles

SIGNER = "example.com/pods"
REQUESTS = "podcertificaterequests.certificates.k8s.io"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="cluster", nodes=1) as cluster:
        cluster.clock.hold()
        cluster.settle()
        yield cluster


def pod(key_type: str = "ED25519", **source: Any) -> dict[str, Any]:
    certificate = {"signerName": SIGNER, "keyType": key_type, "credentialBundlePath": "both.pem", **source}
    volume = {"name": "tls", "projected": {"sources": [{"podCertificate": certificate}]}}
    container = {"name": "c", "image": "busybox", "command": ["sleep", "1000"]}
    container["volumeMounts"] = [{"name": "tls", "mountPath": "/tls"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [container], "volumes": [volume]},
    }


def request_of(cluster: Cluster) -> dict[str, Any]:
    return cluster.list(REQUESTS, namespace="default")[-1]


def issue(cluster: Cluster, request: dict[str, Any], hours: float = 24) -> None:
    """Plays the signer: signs the key of a request with a key of its own."""
    now = cluster.clock.now().replace(microsecond=0)
    stub = x509.load_der_x509_csr(base64.b64decode(request["spec"]["stubPKCS10Request"]))
    issuer, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    end = now + datetime.timedelta(hours=hours)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(stub.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now).not_valid_after(end)
    chain = made.sign(issuer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    status = {
        "certificateChain": chain,
        "notBefore": f"{now:%FT%TZ}",
        "notAfter": f"{end:%FT%TZ}",
        "beginRefreshAt": f"{now + datetime.timedelta(hours=hours / 2):%FT%TZ}",
    }
    answer(cluster, request, "Issued", "Signed", status)


def answer(cluster: Cluster, request: dict[str, Any], type_: str, reason: str, status: dict[str, Any]) -> None:
    condition = {"type": type_, "status": "True", "reason": reason, "message": "by the test"}
    condition["lastTransitionTime"] = f"{cluster.clock.now():%FT%TZ}"
    name = request["metadata"]["name"]
    cluster.patch(REQUESTS, name, {"status": {**status, "conditions": [condition]}}, namespace="default", subresource="status")
    cluster.settle()


def test_certificate_is_requested_and_mounted(cluster: Cluster) -> None:
    cluster.create(pod(maxExpirationSeconds=7200, userAnnotations={"example.com/a": "b"}))
    cluster.settle()
    found = cluster.get("pods", "p", namespace="default")
    assert found["status"]["phase"] == "Pending"
    request = request_of(cluster)
    account = cluster.get("serviceaccounts", "default", namespace="default")
    node = cluster.list("nodes")[0]
    spec = dict(request["spec"])
    del spec["stubPKCS10Request"]
    assert spec == {
        "signerName": SIGNER,
        "podName": "p",
        "podUID": found["metadata"]["uid"],
        "serviceAccountName": "default",
        "serviceAccountUID": account["metadata"]["uid"],
        "nodeName": node["metadata"]["name"],
        "nodeUID": node["metadata"]["uid"],
        "maxExpirationSeconds": 7200,
        "unverifiedUserAnnotations": {"example.com/a": "b"},
    }
    assert [one["name"] for one in request["metadata"]["ownerReferences"]] == ["p"]
    issue(cluster, request, hours=2)
    assert cluster.get("pods", "p", namespace="default")["status"]["phase"] == "Running"
    content = cluster.pods.get("p").exec("cat /tls/both.pem").stdout.encode()
    key = serialization.load_pem_private_key(content, None)
    assert isinstance(key, ed25519.Ed25519PrivateKey)
    assert x509.load_pem_x509_certificate(content[content.index(b"-----BEGIN CERT") :]).public_key() == key.public_key()


def test_refused_request_keeps_the_pod_waiting(cluster: Cluster) -> None:
    cluster.create(pod())
    cluster.settle()
    request = request_of(cluster)
    answer(cluster, request, "Denied", "Unwanted", {})
    name = request["metadata"]["name"]
    events = {one["reason"]: one["message"] for one in cluster.list("events", namespace="default")}
    text = f'PodCertificateRequest default/{name} was denied, reason="Unwanted", message="by the test"'
    assert events["Denied"] == f"Unwanted%!(EXTRA string={text})"
    assert cluster.get("pods", "p", namespace="default")["status"]["phase"] == "Pending"
    assert len(cluster.list(REQUESTS, namespace="default")) == 1


def test_certificate_is_refreshed(cluster: Cluster) -> None:
    cluster.create(pod("ECDSAP256"))
    cluster.settle()
    first = request_of(cluster)
    issue(cluster, first)
    cluster.clock.advance(hours=11)
    cluster.settle()
    assert cluster.list(REQUESTS, namespace="default") == []  # the request is old, and the certificate is not
    cluster.clock.advance(hours=1, minutes=1)
    cluster.settle()
    second = request_of(cluster)
    assert second["spec"]["stubPKCS10Request"] != first["spec"]["stubPKCS10Request"]
    issue(cluster, second)
    cluster.clock.advance(hours=1)
    cluster.settle()
    assert cluster.list(REQUESTS, namespace="default") == []
    assert cluster.list("pods", namespace="default")[0]["status"]["phase"] == "Running"


def test_late_refresh_and_expiry_are_told(cluster: Cluster) -> None:
    cluster.create(pod())
    cluster.settle()
    issue(cluster, request_of(cluster))
    cluster.clock.advance(hours=12, minutes=11)
    cluster.settle()
    cluster.clock.advance(hours=12)
    cluster.settle()
    reasons = {one["reason"] for one in cluster.list("events", namespace="default")}
    assert "CertificateExpired" in reasons


def test_authority_of_the_server_is_published_without_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustertrustbundles, "_problem_with_block", None)
    with Cluster(profile="cluster", tls=True) as cluster:
        cluster.settle()
        (bundle,) = cluster.list("clustertrustbundles")
        assert bundle["spec"]["signerName"] == "kubernetes.io/kube-apiserver-serving"
        authority = cluster.get("configmaps", "kube-root-ca.crt", namespace="default")["data"]["ca.crt"]
        assert bundle["spec"]["trustBundle"] == authority
        cluster.delete("clustertrustbundles", bundle["metadata"]["name"])
        cluster.settle()
        assert [one["metadata"]["name"] for one in cluster.list("clustertrustbundles")] == [bundle["metadata"]["name"]]


def test_without_its_gate_no_bundle_is_published(caplog: pytest.LogCaptureFixture) -> None:
    with Cluster(version="1.35", tls=True) as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        cluster.settle()
        assert cluster.get("configmaps", "kube-root-ca.crt", namespace="n")
    assert not caplog.records

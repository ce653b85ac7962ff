"""Certificate signing requests: approval, signing, refusal, clean-up."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fakekube import Cluster
from fakekube.controllers.certificates import names_of, parse, validate_kubelet_client, validate_kubelet_serving
from fakekube.net.certificates import authority

CLIENT, KUBELET, SERVING = (
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
)
KUBELET_USAGES = ["digital signature", "client auth"]
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    rows = ("approving", "signing", "cleaner")
    cluster = Cluster(controllers=[f"certificatesigningrequest-{row}-controller" for row in rows])
    cluster.clock.hold()
    yield cluster
    cluster.stop()


def request_for(name: str, *organizations: str, others: list[x509.GeneralName] | None = None) -> str:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    if others:
        builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
    return base64.b64encode(builder.sign(KEY, SHA256()).public_bytes(Encoding.PEM)).decode()


def ask(cluster: Cluster, request: str, signer: str = CLIENT, usages: list[str] | None = None, **spec: Any) -> None:
    cluster.create(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": "r"},
            "spec": {"request": request, "signerName": signer, "usages": usages or ["client auth"], **spec},
        }
    )
    cluster.settle()


def decide(cluster: Cluster, kind: str = "Approved") -> None:
    condition = {"type": kind, "status": "True", "reason": "ByHand", "message": "decided"}
    cluster.patch("csr", "r", {"status": {"conditions": [condition]}}, subresource="approval")
    cluster.settle()


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("csr", "r").get("status", {})
    return found


def certificate(cluster: Cluster) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(status(cluster)["certificate"]))


def test_an_approved_request_of_a_client_is_signed(cluster: Cluster) -> None:
    ask(cluster, request_for("jane", "team-a"), expirationSeconds=3600)
    assert "certificate" not in status(cluster)
    decide(cluster)
    found = certificate(cluster)
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority().pem.encode()))
    assert found.subject.rfc4514_string() == "CN=jane,O=team-a"
    usage = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    ends = cluster.clock.now().replace(microsecond=0).timestamp() + 3600
    assert found.not_valid_after_utc.timestamp() == pytest.approx(ends, abs=1)


def test_a_denied_request_is_not_signed_and_deleted_after_an_hour(cluster: Cluster) -> None:
    ask(cluster, request_for("jane"))
    decide(cluster, "Denied")
    assert "certificate" not in status(cluster)
    cluster.clock.advance(minutes=59)
    assert cluster.list("csr")
    cluster.clock.advance(minutes=2)
    assert cluster.list("csr") == []


@pytest.mark.parametrize(("approved", "hours"), [(False, 24), (True, 1)])
def test_how_long_a_request_is_kept(cluster: Cluster, approved: bool, hours: int) -> None:
    ask(cluster, request_for("jane"))
    if approved:
        decide(cluster)
    cluster.clock.advance(hours=hours, seconds=-5)
    assert cluster.list("csr")
    cluster.clock.advance(seconds=10)
    assert cluster.list("csr") == []


def test_a_kubelets_own_certificate_is_approved(cluster: Cluster) -> None:
    ask(cluster, request_for("system:node:n", "system:nodes"), KUBELET, KUBELET_USAGES)
    (condition,) = status(cluster)["conditions"]
    assert (condition["type"], condition["reason"]) == ("Approved", "AutoApproved")
    assert condition["message"] == "Auto approving kubelet client certificate after SubjectAccessReview."
    assert certificate(cluster).subject.rfc4514_string() == "CN=system:node:n,O=system:nodes"


def test_a_request_is_approved_once_its_user_is_authorized(cluster: Cluster) -> None:
    alice = cluster.as_user("alice")
    cluster.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "ask"},
            "rules": [{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]}],
        }
    )

    def bind(role: str) -> None:
        cluster.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"alice-{role[-8:]}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
            }
        )

    bind("ask")
    alice.create(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": "r"},
            "spec": {"request": request_for("system:node:n", "system:nodes"), "signerName": KUBELET, "usages": KUBELET_USAGES},
        }
    )
    cluster.settle()
    assert "conditions" not in status(cluster)
    bind("system:certificates.k8s.io:certificatesigningrequests:nodeclient")
    cluster.settle()
    assert "certificate" in status(cluster)


@pytest.mark.parametrize(
    ("signer", "usages", "text"),
    [
        (CLIENT, ["server auth"], "invalid usage for client certificate: server auth"),
        (CLIENT, ["digital signature"], "missing required usage for client certificate: client auth"),
        (SERVING, ["digital signature", "server auth"], "subject organization is not system:nodes"),
    ],
)
def test_an_invalid_request_gets_the_condition_failed(cluster: Cluster, signer: str, usages: list[str], text: str) -> None:
    ask(cluster, request_for("jane"), signer, usages)
    decide(cluster)
    failed = status(cluster)["conditions"][1]
    assert (failed["type"], failed["reason"], failed["message"]) == ("Failed", "SignerValidationFailure", text)
    assert failed["lastUpdateTime"]


def test_requests_for_other_signers_are_ignored(cluster: Cluster) -> None:
    ask(cluster, request_for("jane"), "example.com/signer")
    decide(cluster)
    assert len(status(cluster)["conditions"]) == 1


@pytest.mark.parametrize(
    ("names", "client", "serving"),
    [
        (("system:node:n", "system:nodes"), "", "DNS or IP subjectAltName is required"),
        (("n", "system:nodes"), "subject common name does not begin with system:node:", "DNS or IP subjectAltName is required"),
        (("system:node:n", "other"), "subject organization is not system:nodes", "subject organization is not system:nodes"),
    ],
)
def test_valid_and_invalid_kubelet_requests(names: tuple[str, ...], client: str, serving: str) -> None:
    parsed = parse({"spec": {"request": request_for(*names)}})
    assert parsed is not None
    assert validate_kubelet_client(names_of(parsed), set(KUBELET_USAGES)) == client
    assert validate_kubelet_serving(names_of(parsed), {"digital signature", "server auth"}) == serving


@pytest.mark.parametrize(
    ("other", "client", "serving"),
    [
        (x509.DNSName("n"), "DNS subjectAltNames are not allowed", ""),
        (x509.IPAddress(ipaddress.ip_address("10.0.0.1")), "IP subjectAltNames are not allowed", ""),
        (x509.RFC822Name("a@b.c"), "Email subjectAltNames are not allowed", "DNS or IP subjectAltName is required"),
        (x509.UniformResourceIdentifier("a://b"), "URI subjectAltNames are not allowed", "DNS or IP subjectAltName is required"),
    ],
)
def test_alternative_names_of_kubelet_requests(other: x509.GeneralName, client: str, serving: str) -> None:
    parsed = parse({"spec": {"request": request_for("system:node:n", "system:nodes", others=[other])}})
    assert parsed is not None
    assert validate_kubelet_client(names_of(parsed), set(KUBELET_USAGES)) == client
    assert validate_kubelet_serving(names_of(parsed), {"digital signature", "server auth"}) == serving
    assert validate_kubelet_client(names_of(parsed), {"any"}) == client


def test_usages_of_kubelet_certificates() -> None:
    parsed = parse({"spec": {"request": request_for("system:node:n", "system:nodes")}})
    assert parsed is not None
    text = "usages did not match [client auth digital signature key encipherment]"
    assert validate_kubelet_client(names_of(parsed), {"any"}) == text
    assert parse({"spec": {"request": base64.b64encode(b"nothing").decode()}}) is None

"""Default admission that depends on the user: approval and signing of CertificateSigningRequests."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.behaviour.conftest import Api, Reply

MERGE = "application/merge-patch+json"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def pem(groups: Sequence[str]) -> str:
    """A certificate request for groups of users."""
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "somebody")]
    names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    signed = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def request(api: Api, signer: str, groups: Sequence[str] = ()) -> Reply:
    spec = {"signerName": signer, "usages": ["client auth"], "request": pem(groups)}
    return api.post(REQUESTS, {"metadata": {"name": api.name("csr")}, "spec": spec})


def condition(kind: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "r"}]}}


@pytest.fixture
def clerk(api: Api) -> Iterator[dict[str, str]]:
    """Headers of a user who may write certificate requests, and approve and sign for example.com/good."""
    name = api.name("clerk")
    group = "certificates.k8s.io"
    rules = [
        {
            "apiGroups": [group],
            "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"],
            "verbs": ["*"],
        },
        {
            "apiGroups": [group],
            "resources": ["signers"],
            "resourceNames": ["example.com/good", "example.org/*"],
            "verbs": ["approve", "sign"],
        },
    ]
    api.post(ROLES, {"metadata": {"name": name}, "rules": rules})
    subjects = [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]
    role = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    api.post(BINDINGS, {"metadata": {"name": name}, "subjects": subjects, "roleRef": role})
    headers = {"Impersonate-User": name}
    question = {
        "spec": {"resourceAttributes": {"group": group, "resource": "signers", "name": "example.com/good", "verb": "sign"}}
    }
    while not api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", question, headers=headers).at(
        "status", "allowed"
    ):
        pass  # a real server hears of roles in its own time
    yield headers
    for path in (f"{BINDINGS}/{name}", f"{ROLES}/{name}", f"{REQUESTS}/{api.name('csr')}"):
        api.delete(path)


@pytest.mark.parametrize(("signer", "may"), [("example.com/good", True), ("example.org/any", True), ("example.com/other", False)])
@pytest.mark.parametrize(("subresource", "verb", "kind"), [("approval", "approve", "Approved"), ("status", "sign", "Failed")])
def test_csr_approval_and_signing_require_signer_permission(
    api: Api, clerk: dict[str, str], signer: str, may: bool, subresource: str, verb: str, kind: str
) -> None:
    request(api, signer)
    path = f"{REQUESTS}/{api.name('csr')}/{subresource}"
    reply = api.patch(path, condition(kind), MERGE, headers=clerk)
    if may:
        assert (reply.status, reply.at("status", "conditions", 0, "type")) == (200, kind)
    else:
        who = f'certificatesigningrequests.certificates.k8s.io "{api.name("csr")}" is forbidden'
        text = f'{who}: user not permitted to {verb} requests with signerName "{signer}"'
        assert (reply.status, reply.at("message")) == (403, text)


def test_csr_status_patch_without_certificate_requires_no_sign_permission(api: Api, clerk: dict[str, str]) -> None:
    request(api, "example.com/other")
    reply = api.patch(f"{REQUESTS}/{api.name('csr')}/status", {"metadata": {"labels": {"a": "b"}}}, MERGE, headers=clerk)
    assert reply.status == 200


def test_csr_with_system_masters_group_is_forbidden_for_client_signer(api: Api, clerk: dict[str, str]) -> None:
    reply = request(api, CLIENT_SIGNER, ["developers", "system:masters"])
    text = f"use of {CLIENT_SIGNER} signer with system:masters group is not allowed"
    assert (reply.status, reply.at("reason")) == (403, "Forbidden")
    assert reply.at("message").endswith(text)
    assert request(api, CLIENT_SIGNER, ["developers"]).status == 201

"""Verification of client certificate chains."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fakekube.apiserver.auth.certificates import CertificateVerifier, RequestHeaders, certificates_of
from fakekube.apiserver.auth.identities import BadCredentialsError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Authority:
    """Issues certificates; made by another one, or by itself."""

    def __init__(self, name: str, issuer: Authority | None = None, *, ca: bool = True, path_length: int | None = None) -> None:
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=ca, path_length=path_length if ca else None)
        self.pem = (issuer or self).issue(self.name, self.key, extensions=[constraints])

    def issue(
        self,
        subject: x509.Name,
        key: Any = None,
        *,
        begins: datetime = NOW - DAY,
        ends: datetime = NOW + DAY,
        extensions: Sequence[x509.ExtensionType] = (),
    ) -> str:
        public = (key or ec.generate_private_key(ec.SECP256R1())).public_key()
        builder = x509.CertificateBuilder(self.name, subject, public, x509.random_serial_number(), begins, ends)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, SHA256()).public_bytes(Encoding.PEM).decode()

    def client(self, name: str = "carol", usage: Any = ExtendedKeyUsageOID.CLIENT_AUTH, **options: Any) -> str:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self.issue(subject, extensions=[x509.ExtendedKeyUsage([usage])] if usage else [], **options)


@pytest.fixture(scope="module")
def root() -> Authority:
    return Authority("root")


def problem(root: Authority, *chain: str, now: datetime = NOW) -> str:
    try:
        CertificateVerifier(root.pem).check(chain, now)
    except BadCredentialsError as error:
        return str(error)
    return ""


UNKNOWN = "x509: certificate signed by unknown authority"
EXPIRED = "x509: certificate has expired or is not yet valid"


def test_client_certificate_must_be_signed_by_the_ca_for_client_auth(root: Authority) -> None:
    assert problem(root, root.client()) == ""
    assert problem(root, root.client(usage=None)) == ""
    assert problem(root, root.client(usage=ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)) == ""
    assert problem(root, root.client(usage=ExtendedKeyUsageOID.SERVER_AUTH)) == UNKNOWN
    assert problem(root, Authority("root").client()) == UNKNOWN
    assert problem(root, root.pem) == ""
    assert problem(root, "no certificate") == UNKNOWN


def test_certificate_validity_is_checked_per_request(root: Authority) -> None:
    verifier, chain = CertificateVerifier(root.pem), (root.client(ends=NOW + DAY / 2),)
    verifier.check(chain, NOW)
    for moment in (NOW + DAY * 2 / 3, NOW - 2 * DAY):
        with pytest.raises(BadCredentialsError, match=EXPIRED):
            verifier.check(chain, moment)


def test_intermediate_authorities(root: Authority) -> None:
    middle = Authority("middle", root)
    leaf = middle.client()
    assert problem(root, leaf) == UNKNOWN
    assert problem(root, leaf, middle.pem) == ""
    assert problem(root, leaf, root.client(), middle.pem) == ""
    no_authority = Authority("no authority", root, ca=False)
    assert problem(root, no_authority.client(), no_authority.pem) == UNKNOWN


def test_path_length_constraint(root: Authority) -> None:
    short = Authority("short", root, path_length=0)
    below = Authority("below", short)
    assert problem(root, short.client(), short.pem) == ""
    assert problem(root, below.client(), below.pem, short.pem) == UNKNOWN


def test_circular_certificate_chain_is_rejected(root: Authority) -> None:
    one = Authority("one")
    two = Authority("two", one)
    again = two.issue(one.name, one.key, extensions=[x509.BasicConstraints(ca=True, path_length=None)])
    assert problem(root, one.client(), again, two.pem, one.pem) == UNKNOWN


def test_certificates_from_the_wsgi_environment() -> None:
    assert certificates_of({}) == ()
    shown = {"SSL_CLIENT_CERT": "a", "SSL_CLIENT_CERT_CHAIN_0": "b", "SSL_CLIENT_CERT_CHAIN_1": "c"}
    assert certificates_of(shown) == ("a", "b", "c")


# ---------------------------------------------------------------- front proxies


def proxies(root: Authority, *names: str) -> RequestHeaders:
    return RequestHeaders(
        CertificateVerifier(root.pem),
        names,
        ("X-Remote-User", "X-User"),
        ("X-Remote-Uid",),
        ("X-Remote-Group", "X-Group"),
        ("X-Remote-Extra-",),
    )


def test_front_proxy_headers(root: Authority) -> None:
    environment = {
        "HTTP_X_USER": "CN=a,O=b",
        "HTTP_X_REMOTE_GROUP": "one, two",
        "HTTP_X_GROUP": "three",
        "HTTP_X_REMOTE_UID": "7",
        "HTTP_X_REMOTE_EXTRA_ACME.COM%2FPROJECT": "x,y",
        "HTTP_X_REMOTE_EXTRA_ODD%": "z",
    }
    user = proxies(root, "proxy").user_of(environment, (root.client("proxy"),), NOW)
    assert user is not None
    assert (user.name, user.uid, user.groups) == ("CN=a,O=b", "7", ("one", "two", "three", "system:authenticated"))
    assert user.extra == {"acme.com/project": ["x", "y"], "odd%": ["z"]}


def test_front_proxy_client_certificate_is_verified(root: Authority) -> None:
    environment = {"HTTP_X_REMOTE_USER": "a"}
    assert proxies(root, "proxy").user_of(environment, (), NOW) is None
    assert proxies(root, "proxy").user_of({}, (root.client("proxy"),), NOW) is None
    assert proxies(root).user_of(environment, (root.client("any"),), NOW) is not None
    with pytest.raises(BadCredentialsError, match="subject with cn=other is not in the allowed list"):
        proxies(root, "proxy").user_of(environment, (root.client("other"),), NOW)
    with pytest.raises(BadCredentialsError):
        proxies(root).user_of(environment, (Authority("root").client(),), NOW)

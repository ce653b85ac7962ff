"""Generates certificates: a CA, certificates of servers, and client certificates of users.

They pass strict verification (the default of Python 3.13, Go): the CA has critical basicConstraints and keyUsage, other
certificates have an authority key identifier, and addresses as IP SANs. Keys are P-256, which are fast to generate and to use.
All clusters of a process share one CA and one administrator certificate.
"""

from __future__ import annotations

import functools
import ipaddress
import ssl
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from fakekube.net.tls import server_context

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec


_ADMIN_NAME = "kubernetes-admin"
_ADMIN_GROUPS = ("system:masters", "kubeadm:cluster-admins")

_SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_SERVER_ADDRESSES = ("127.0.0.1", "::1")
_LIFETIME = timedelta(days=3650)
_BACKDATED = timedelta(days=1)
"""Certificates are valid from this time before now, for machines whose clocks are late."""

_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Credentials:
    """The certificates and keys of a server and its administrator, in PEM."""

    ca_certificate: str
    server_certificate: str
    server_key: str
    client_certificate: str
    """The client certificate of `_ADMIN_NAME` in `_ADMIN_GROUPS`."""
    client_key: str
    context: ssl.SSLContext
    """The context for `Server(tls=…)`."""


def credentials(host: str = "127.0.0.1", *, http2: bool = False) -> Credentials:
    """Returns the credentials of a server; the same ones for the same arguments.

    Args:
        host: a name or address that clients use, in addition to localhost and the names of the Service kubernetes.
        http2: whether the context offers HTTP/2.
    """
    with _lock:
        return _credentials(host, http2)


@functools.cache
def _credentials(host: str, http2: bool) -> Credentials:
    authority = _authority()
    server = _server(host)
    administrator = _administrator()
    return Credentials(
        ca_certificate=authority.pem,
        server_certificate=server.pem,
        server_key=server.key_pem,
        client_certificate=administrator.pem,
        client_key=administrator.key_pem,
        context=server_context(server.pem, server.key_pem, authority.pem, http2=http2),
    )


@functools.lru_cache(maxsize=256)
def client_credentials(user: str, groups: tuple[str, ...] = ()) -> tuple[str, str]:
    """Returns certificate and key, in PEM, of a user; signed by the CA of this process."""
    with _lock:
        authority = _authority()
    issued = authority.issue_client(user, groups)
    return issued.pem, issued.key_pem


def authority() -> Authority:
    """Returns the CA of this process."""
    with _lock:
        return _authority()


@functools.cache
def _authority() -> Authority:
    return Authority()


@functools.lru_cache(maxsize=256)
def _server(host: str) -> _Issued:
    return _authority().issue_server(host)


@functools.cache
def _administrator() -> _Issued:
    return _authority().issue_client(_ADMIN_NAME, _ADMIN_GROUPS)


@dataclass(frozen=True, slots=True)
class _Issued:
    """A certificate and its key, in PEM."""

    pem: str
    key_pem: str


class Authority:
    """A certificate authority."""

    def __init__(self) -> None:
        from cryptography import x509

        self._key = _new_key()
        self._name = _name("kubernetes")
        self._ends = datetime.now(UTC) + _LIFETIME
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        builder = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
        )
        self.pem = self._sign(builder)

    def issue_server(self, *hosts: str) -> _Issued:
        """Issues a certificate for an API server with these names or addresses, in addition to the default ones."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        names = dict.fromkeys(_SERVER_NAMES)
        addresses = dict.fromkeys(map(ipaddress.ip_address, _SERVER_ADDRESSES))
        for host in hosts:
            try:
                addresses[ipaddress.ip_address(host)] = None
            except ValueError:
                names[host] = None
        alternatives = x509.SubjectAlternativeName([*map(x509.DNSName, names), *map(x509.IPAddress, addresses)])
        return self._issue(_name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def issue_client(self, user: str, groups: tuple[str, ...]) -> _Issued:
        """Issues a certificate that authenticates a user: the name is the CN, the groups are the Os."""
        from cryptography.x509.oid import ExtendedKeyUsageOID

        return self._issue(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def sign_request(
        self,
        request: x509.CertificateSigningRequest,
        extensions: Iterable[tuple[x509.ExtensionType, bool]],
        begins: datetime,
        ends: datetime,
    ) -> str:
        """Signs a certificate signing request, and returns the certificate in PEM.

        Args:
            request: has the subject and the public key.
            extensions: the extensions of the certificate, each with whether it is critical; the CA's key identifier is added.
            begins: the beginning of its validity.
            ends: the end of its validity, at most that of the CA.
        """
        from cryptography import x509

        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._name)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(min(ends, self._ends))
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return self._sign(builder.add_extension(self._identifier, critical=False))

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, *alternatives: x509.SubjectAlternativeName) -> _Issued:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = _new_key()
        builder = (
            self._builder(subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(self._identifier, critical=False)
        )
        for extension in alternatives:
            builder = builder.add_extension(extension, critical=False)
        # As k3s writes them: some clients guess the algorithm from the label of the PEM block, which PKCS#8 does not tell.
        key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
        return _Issued(self._sign(builder), key_pem)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        from cryptography import x509

        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )

    def _sign(self, builder: x509.CertificateBuilder) -> str:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import Encoding

        return builder.sign(self._key, SHA256()).public_bytes(Encoding.PEM).decode()


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str, organizations: tuple[str, ...] = ()) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    organization_names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*organization_names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )

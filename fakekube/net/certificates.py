"""Generates certificates: a CA, certificates of servers, and client certificates of users.

They pass strict verification (the default of Python 3.13, Go): the CA has critical basicConstraints and keyUsage, other
certificates have an authority key identifier, and addresses as IP SANs. Keys are P-256, which are fast to generate and to use.
All clusters of a process share one CA and one administrator certificate. A process that only serves lets a child make the first
ones (`make_in_child`).
"""

from __future__ import annotations

import functools
import ipaddress
import os
import ssl
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

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
    made = _await_child()
    return Authority(made.authority if made else None)


@functools.lru_cache(maxsize=256)
def _server(host: str) -> _Issued:
    made = _await_child()
    return made.server if made and made.host == host else _authority().issue_server(host)


@functools.cache
def _administrator() -> _Issued:
    made = _await_child()
    return made.administrator if made else _authority().issue_client(_ADMIN_NAME, _ADMIN_GROUPS)


@dataclass(frozen=True, slots=True)
class _Issued:
    """A certificate and its key, in PEM."""

    pem: str
    key_pem: str


# --- A child process that makes certificates --------------------------------------------------------------------------
# The package cryptography takes 11 MiB, and as long to import as half of the cluster. A server needs no more of it than its first
# certificates, unless a client presents one, or something else is signed or validated.


@dataclass(frozen=True, slots=True)
class _Made:
    """What a child process has made."""

    host: str
    authority: _Issued
    server: _Issued
    administrator: _Issued


_children: Final[list[_Child]] = []
"""The child process, if there is one."""


def make_in_child(host: str) -> None:
    """Lets a child process make the credentials of a server, while this process does other things.

    Has no effect where a process has no children or may have no more, in one with threads, which a child would lack, and if there
    is a CA already. If the child fails or is killed, this process makes them.
    """
    if hasattr(os, "fork") and threading.active_count() == 1 and not _authority.cache_info().currsize and not _children:
        with suppress(OSError):  # another process or pipe is refused
            _children.append(_Child(host))


def _await_child() -> _Made | None:
    """Waits for the child process. Returns None if there is none, or it has failed."""
    return _children[0].made if _children else None


class _Child:
    """A child process that makes the credentials of a server, and ends."""

    def __init__(self, host: str) -> None:
        """Raises OSError if it cannot be started."""
        self._host = host
        self._reader, writer = os.pipe()
        try:
            self._process = os.fork()
        except OSError:
            os.close(self._reader)
            os.close(writer)
            raise
        if not self._process:
            try:
                authority = _make_authority()
                issuer = Authority(authority)
                made = authority, issuer.issue_server(host), issuer.issue_client(_ADMIN_NAME, _ADMIN_GROUPS)
                with open(writer, "w", encoding="ascii") as file:
                    file.write("\0".join(text for issued in made for text in (issued.pem, issued.key_pem)))
            finally:
                os._exit(0)  # without what this process does at its end
        os.close(writer)

    @functools.cached_property
    def made(self) -> _Made | None:
        with open(self._reader, encoding="ascii") as file:
            texts = file.read().split("\0")
        with suppress(ChildProcessError):  # where SIGCHLD is ignored, as whatever started this process may leave it
            os.waitpid(self._process, 0)
        return _Made(self._host, *map(_Issued, texts[::2], texts[1::2])) if len(texts) > 1 else None


# --- Authorities ------------------------------------------------------------------------------------------------------


def _make_authority() -> _Issued:
    from cryptography import x509

    key, name = _new_key(), _name("kubernetes")
    builder = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return _Issued(_sign(builder, key), _key_pem(key))


class Authority:
    """A certificate authority.

    Args:
        issued: its own certificate and key, which are read when it first signs something; None: new ones.
    """

    def __init__(self, issued: _Issued | None = None) -> None:
        own = issued or _make_authority()
        self.pem, self._key_pem = own.pem, own.key_pem

    @functools.cached_property
    def _certificate(self) -> x509.Certificate:
        from cryptography import x509

        return x509.load_pem_x509_certificate(self.pem.encode())

    @functools.cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self._key_pem.encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    @functools.cached_property
    def _identifier(self) -> x509.AuthorityKeyIdentifier:
        from cryptography import x509

        own = self._certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own.value)

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
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(min(ends, self._certificate.not_valid_after_utc))
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return _sign(builder.add_extension(self._identifier, critical=False), self._key)

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, *alternatives: x509.SubjectAlternativeName) -> _Issued:
        from cryptography import x509

        key = _new_key()
        builder = (
            _builder(subject, self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(self._identifier, critical=False)
        )
        for extension in alternatives:
            builder = builder.add_extension(extension, critical=False)
        return _Issued(_sign(builder, self._key), _key_pem(key))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding

    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """Returns a key as k3s writes them: some clients guess the algorithm from the label, which PKCS#8 does not tell."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


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

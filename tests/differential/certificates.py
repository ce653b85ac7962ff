"""Certificates of scenarios: of the servers that an API server calls, and of clients that show one.

    python -m tests.differential.certificates DIR

makes those of clients. DIR/clients.crt is the authority of clients, DIR/front.crt that of front proxies, DIR/proxy.crt a
front proxy's own certificate. A kube-apiserver that is to be asked with them runs with these flags:

    --client-ca-file=DIR/clients.crt
    --requestheader-client-ca-file=DIR/front.crt --requestheader-allowed-names=front-proxy
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group
    --requestheader-uid-headers=X-Remote-Uid --requestheader-extra-headers-prefix=X-Remote-Extra-
    --proxy-client-cert-file=DIR/proxy.crt --proxy-client-key-file=DIR/proxy.key
"""

from __future__ import annotations

import atexit
import base64
import functools
import ipaddress
import shutil
import ssl
import sys
import tempfile
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

#: The attribute of a subject that kube-apiserver takes for the user's uid.
USER_UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")
ORGANIZATION, COMMON_NAME = NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
AUTHORITIES = ("clients", "front", "strangers")


@dataclass(frozen=True, slots=True)
class Shown:
    """A certificate that a client shows."""

    authority: str
    subject: tuple[tuple[ObjectIdentifier, str], ...]
    use: ObjectIdentifier = CLIENT
    expired: bool = False


_CAROL = ((COMMON_NAME, "carol"),)
SHOWN = {
    "plain": Shown("clients", _CAROL),
    "grouped": Shown("clients", ((ORGANIZATION, "team-b"), (ORGANIZATION, "team-c"), *_CAROL)),
    "master": Shown("clients", ((ORGANIZATION, "system:masters"), (COMMON_NAME, "root"))),
    "uid": Shown("clients", ((ORGANIZATION, "team-b"), *_CAROL, (USER_UID, "c-1"))),
    "nameless": Shown("clients", ((ORGANIZATION, "team-b"),)),
    "expired": Shown("clients", _CAROL, expired=True),
    "server": Shown("clients", _CAROL, use=SERVER),
    "stranger": Shown("strangers", _CAROL),
    "proxy": Shown("front", ((COMMON_NAME, "front-proxy"),)),
    "impostor": Shown("front", ((COMMON_NAME, "another"),)),
}


class Authority:
    """Signs certificates; `certificate` and `key` are its own."""

    def __init__(self, name: str, *alternatives: x509.GeneralName) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(COMMON_NAME, name)])
        builder = _builder(self.subject, self.subject, self.key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
        if not alternatives:
            builder = builder.add_extension(_usage(signs=True), critical=True)
        else:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        self.certificate = builder.sign(self.key, hashes.SHA256())

    def issue(self, shown: Shown) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """A certificate with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in shown.subject])
        ends = datetime(2021, 1, 1, tzinfo=UTC) if shown.expired else None
        builder = _builder(subject, self.subject, key.public_key(), ends)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([shown.use]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return builder.add_extension(issuer, critical=False).sign(self.key, hashes.SHA256()), key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, ends: datetime | None = None
) -> x509.CertificateBuilder:
    ends = ends or datetime.now(UTC) + timedelta(days=3650)
    begins = min(datetime.now(UTC), ends) - timedelta(days=1)
    return x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), begins, ends)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


_signing = threading.Lock()


def self_signed(*names: str) -> tuple[ssl.SSLContext, str]:
    """A server's certificate for 127.0.0.1 and the names: a context that shows it, and the text for caBundle.

    Asked for again, it is the same one.
    """
    with _signing:  # a scenario must not find the certificate of another thread in the place of its own
        return _self_signed(*names)


def temporary_folder(prefix: str) -> Path:
    """Creates a folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _self_signed(*names: str) -> tuple[ssl.SSLContext, str]:
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    authority = Authority("scenario", *addresses, *map(x509.DNSName, names))
    text = _pem(authority.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # the ssl module reads keys from files only
        file.write(_key_pem(authority.key) + text)
        file.flush()
        context.load_cert_chain(file.name)
    return context, base64.b64encode(text).decode()


def make(folder: Path) -> None:
    """Write the certificates of `SHOWN`, their authorities and all keys into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    authorities = {name: Authority(name) for name in AUTHORITIES}
    made = {name: (authority.certificate, authority.key) for name, authority in authorities.items()}
    made |= {name: authorities[shown.authority].issue(shown) for name, shown in SHOWN.items()}
    for name, (certificate, key) in made.items():
        write(folder, name, certificate, key)


def write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a certificate and its key, NAME.crt and NAME.key."""
    (folder / f"{name}.crt").write_bytes(_pem(certificate))
    (folder / f"{name}.key").write_bytes(_key_pem(key))


if __name__ == "__main__":
    make(Path(sys.argv[1]))

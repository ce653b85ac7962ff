"""Authenticates by client certificates: of users, and of front proxies, which send their users in headers.

A chain leads from the client certificate over the intermediates that the client sends to a certificate authority. Every
certificate must be valid at the cluster's time and, if it has extended key usages, allow client authentication. Verified
chains are cached by the bytes of the certificates; only the time is checked again. A front proxy needs a client certificate of
the requestheader CA with an allowed common name.

Specified by: k8s.io/apiserver/pkg/authentication/request/{x509/x509.go,headerrequest/requestheader.go} and crypto/x509 of Go
(Certificate.Verify).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from fakekube.apimachinery import features
from fakekube.apiserver.auth import identities
from fakekube.apiserver.auth.identities import BadCredentialsError, with_authenticated
from fakekube.apiserver.endpoints.request import User
from fakekube.base.golang.strings import text_of
from fakekube.base.golang.urls import INVALID_ESCAPE
from fakekube.net.wsgi import Headers

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


_LONGEST_CHAIN: Final = 8
_KEPT: Final = 256
_UID_OID: Final = "1.3.6.1.4.1.57683.2"


def certificates_of(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the client certificates of a WSGI environment as PEM, the leaf first; () if there are none."""
    own = environment.get("SSL_CLIENT_CERT")
    if not own:
        return ()
    others: list[str] = []
    while (other := environment.get(f"SSL_CLIENT_CERT_CHAIN_{len(others)}")) is not None:
        others.append(other)
    return (own, *others)


@dataclass(slots=True, frozen=True)
class _Chain:
    """The validity period of a whole chain."""

    begins: datetime
    ends: datetime


class CertificateVerifier:
    """Verifies client certificates with some certificate authorities.

    Args:
        authorities: the CA bundle, PEM.
    """

    def __init__(self, authorities: str) -> None:
        self._authorities = authorities
        self._chains = lru_cache(_KEPT)(self._chains_of)

    @cached_property
    def roots(self) -> Sequence[Certificate]:
        """The certificates of the bundle, read for the first client that presents one. Raises ValueError for invalid ones."""
        from cryptography import x509

        return x509.load_pem_x509_certificates(self._authorities.encode())

    def check(self, certificates: tuple[str, ...], now: datetime) -> None:
        """Raises BadCredentialsError if no chain leads from the first certificate to an authority."""
        chains = self._chains(certificates)
        if not chains:
            raise BadCredentialsError("x509: certificate signed by unknown authority")
        if not any(chain.begins <= now <= chain.ends for chain in chains):
            raise BadCredentialsError("x509: certificate has expired or is not yet valid")

    def _chains_of(self, certificates: tuple[str, ...]) -> Sequence[_Chain]:
        try:
            leaf, *others = map(_load_certificate, certificates)
        except ValueError:
            return ()
        found: list[_Chain] = []
        self._extend([leaf], others, found)
        return found

    def _extend(self, chain: list[Certificate], others: Sequence[Certificate], found: list[_Chain]) -> None:
        """Adds the chains that continue a partial chain."""
        if not _for_clients(chain[-1]):
            return
        last = chain[-1]
        if last in self.roots:
            found.append(_span(chain))
            return
        issuers = [root for root in self.roots if _has_issued(root, last, len(chain) - 1) and _for_clients(root)]
        found += [_span([*chain, root]) for root in issuers]
        if len(chain) < _LONGEST_CHAIN:
            for other in others:
                if other not in chain and _has_issued(other, last, len(chain) - 1):
                    self._extend([*chain, other], others, found)


def _load_certificate(pem: str) -> Certificate:
    from cryptography import x509

    return x509.load_pem_x509_certificate(pem.encode())


def _span(chain: Sequence[Certificate]) -> _Chain:
    return _Chain(
        max(certificate.not_valid_before_utc for certificate in chain),
        min(certificate.not_valid_after_utc for certificate in chain),
    )


def _for_clients(certificate: Certificate) -> bool:
    """Reports whether a certificate allows client authentication. Without extended key usages it allows all."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages


def _has_issued(authority: Certificate, certificate: Certificate, between: int) -> bool:
    """Reports whether a CA certificate issued a certificate. `between`: the number of intermediates below the CA."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    if authority.subject != certificate.issuer:
        return False
    try:
        constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return False
    if not constraints.ca or (constraints.path_length is not None and constraints.path_length < between):
        return False
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


# --- Users ------------------------------------------------------------------------------------------------------------


@lru_cache(_KEPT)
def common_name(pem: str) -> str:
    """Returns the common name of a certificate's subject, or ""."""
    from cryptography.x509.oid import NameOID

    names = [str(name.value) for name in _load_certificate(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return names[-1] if names else ""


@lru_cache(_KEPT)
def user_of_certificate(pem: str) -> User | None:
    """Returns the user of a certificate: name from the common name, groups from the organizations; None without a common name.

    Raises BadCredentialsError for invalid uids.
    """
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    name = common_name(pem)
    if not name:
        return None
    import hashlib
    import ssl

    der = ssl.PEM_cert_to_DER_cert(pem)
    subject = x509.load_der_x509_certificate(der).subject
    groups = tuple(str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    extra = {identities.CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    uid = _uid(subject) if features.current().enabled("AllowParsingUserUIDFromCertAuth") else ""
    return with_authenticated(User(name, uid, groups, extra))


def _uid(subject: Any) -> str:
    """Returns the uid in a certificate's subject, if any."""
    uids = [str(attribute.value) for attribute in subject if attribute.oid.dotted_string == _UID_OID]
    if len(uids) > 1:
        raise BadCredentialsError(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if uids == [""]:
        raise BadCredentialsError("UID cannot be an empty string")
    return uids[0] if uids else ""


@dataclass(slots=True, frozen=True)
class RequestHeaders:
    """Authenticates requests of front proxies. Names of headers are those of the flags."""

    verifier: CertificateVerifier
    allowed_names: Sequence[str]
    """Common names of the proxies' certificates; empty: any."""
    username_headers: Sequence[str]
    uid_headers: Sequence[str]
    group_headers: Sequence[str]
    extra_prefixes: Sequence[str]

    def user_of(self, environment: Mapping[str, Any], certificates: tuple[str, ...], now: datetime) -> User | None:
        """Returns the user in the headers; None without a user or a certificate. Raises BadCredentialsError."""
        if not certificates:
            return None
        self.verifier.check(certificates, now)
        name = common_name(certificates[0])
        if self.allowed_names and name not in self.allowed_names:
            raise BadCredentialsError(f"x509: subject with cn={name} is not in the allowed list")
        headers = Headers(environment)
        username = _first_value(headers, self.username_headers)
        if not username:
            return None
        groups = tuple(value for name in self.group_headers for value in headers.all(name) if value)
        return with_authenticated(User(username, _first_value(headers, self.uid_headers), groups, self._read_extra(headers)))

    def _read_extra(self, headers: Headers) -> Mapping[str, Sequence[str]]:
        extra: dict[str, list[str]] = {}
        for prefix in map(str.lower, self.extra_prefixes):
            for name in headers:
                if name.startswith(prefix):
                    extra.setdefault(unescape_extra_key(name.removeprefix(prefix)), []).extend(headers.all(name))
        return extra


def unescape_extra_key(key: str) -> str:
    """Unescapes the key of an extra header; an invalid escape leaves it unchanged."""
    if "%" not in key or INVALID_ESCAPE.search(key):
        return key
    return text_of(unquote_to_bytes(key))


def _first_value(headers: Headers, names: Sequence[str]) -> str:
    """Returns the first non-empty value of these headers; values may contain commas."""
    return next((value for name in names if (value := headers.get(name))), "")

"""The authentication and authorization flags of kube-apiserver, and the files, keys and certificates they refer to.

`AuthenticationOptions` and `AuthorizationOptions` have a field for each flag, under its name with underscores. The
files are read once, when a cluster is created, so that an invalid file is reported there.

Specified by: k8s.io/kubernetes/pkg/kubeapiserver/options (authentication.go, authorization.go) and
k8s.io/apiserver/pkg/authentication/token/tokenfile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakekube.apiserver.auth.authentication import DEFAULT_TOKENS
from fakekube.apiserver.auth.certificates import CertificateVerifier, RequestHeaders
from fakekube.apiserver.auth.service_accounts import DEFAULT_ISSUER, Signer
from fakekube.apiserver.endpoints.request import User

if TYPE_CHECKING:
    from fakekube.apiserver.auth.jose import PrivateKey, PublicKey


class OptionError(ValueError):
    """A flag, or the file that it refers to, is invalid; the text contains the flag and the reason."""


@dataclass(slots=True, frozen=True)
class AuthenticationOptions:
    """The authentication flags. Files are paths; "" means that a flag is not set."""

    client_ca_file: str = ""
    """Authorities of client certificates, beside the cluster's own."""
    token_auth_file: str = ""
    """Static tokens: lines of token, user, uid and groups."""
    service_account_key_file: Sequence[str] = ()
    """Keys that verify service account tokens, public or private; by default the signing key."""
    service_account_signing_key_file: str = ""
    service_account_issuer: Sequence[str] = (DEFAULT_ISSUER,)
    """The issuers of service account tokens; the first one signs."""
    api_audiences: Sequence[str] = ()
    """Audiences of the API server; by default the issuers."""
    anonymous_auth: bool | None = None
    """Whether requests without credentials are anonymous; by default they are."""
    authentication_config: str = ""
    """The path of an AuthenticationConfiguration: JWT authenticators, and conditions for anonymous requests."""
    requestheader_client_ca_file: str = ""
    requestheader_allowed_names: Sequence[str] = ()
    requestheader_username_headers: Sequence[str] = ("x-remote-user",)
    requestheader_uid_headers: Sequence[str] = ()
    requestheader_group_headers: Sequence[str] = ("x-remote-group",)
    requestheader_extra_headers_prefix: Sequence[str] = ("x-remote-extra-",)
    allowed_hosts: Sequence[str] = ()
    """Further names that clients without credentials may use for the server (not a flag of kube-apiserver); `.example.com`
    stands for all names below it. See `browsers`."""
    insecure_anonymous_admin: bool = False
    """Plain HTTP requests without credentials are an administrator's, although other hosts can reach the server (not a flag of
    kube-apiserver)."""

    def tokens(self, *, well_known: bool = True) -> dict[str, User]:
        """Returns the static tokens: the well-known ones, if they are asked for, and those of the file. Raises OptionError."""
        given = _token_file(self.token_auth_file) if self.token_auth_file else {}
        return {**DEFAULT_TOKENS, **given} if well_known else given

    def signer(self) -> Signer:
        """Returns the signer of service account tokens. Raises OptionError."""
        keys = [key for path in self.service_account_key_file for key in _public_keys(path)]
        path = self.service_account_signing_key_file
        return Signer(self.service_account_issuer, _private_key(path) if path else None, keys)

    def authorities(self, own: str = "") -> str:
        """Returns the certificate authorities of clients, PEM; `own` is the cluster's. Raises OptionError."""
        given = read_text(self.client_ca_file, "client-ca-file")
        if given:
            _verifier(given, self.client_ca_file)
        return "\n".join(filter(None, (own, given)))

    def certificates(self, own: str = "") -> CertificateVerifier | None:
        """Returns the verifier of client certificates; None without a certificate authority. Raises OptionError."""
        authorities = self.authorities(own)
        return _shared_verifier(authorities) if authorities else None

    def request_headers(self) -> RequestHeaders | None:
        """Returns the authenticator of front proxies; None without a certificate authority. Raises OptionError."""
        path = self.requestheader_client_ca_file
        if not path:
            return None
        return RequestHeaders(
            _verifier(read_text(path, "requestheader-client-ca-file"), path),
            self.requestheader_allowed_names,
            self.requestheader_username_headers,
            self.requestheader_uid_headers,
            self.requestheader_group_headers,
            self.requestheader_extra_headers_prefix,
        )


@dataclass(slots=True, frozen=True)
class AuthorizationOptions:
    """The authorization flags."""

    authorization_mode: Sequence[str] = ("RBAC",)
    """The authorization modes in order: AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook."""
    authorization_config: str = ""
    """The path of an AuthorizationConfiguration, instead of the modes."""
    authorization_webhook_config_file: str = ""
    """The path of the kubeconfig of the webhook of the mode Webhook."""
    authorization_webhook_version: str = "v1beta1"
    authorization_webhook_cache_authorized_ttl: float = 300.0
    """Seconds."""
    authorization_webhook_cache_unauthorized_ttl: float = 30.0
    """Seconds."""


# --- Files ------------------------------------------------------------------------------------------------------------


def read_text(path: str, flag: str) -> str:
    """Returns the text of the file of a flag; "" if the flag is not set. Raises OptionError."""
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise OptionError(f"--{flag}: open {path}: {reason}") from None


def _verifier(authorities: str, path: str) -> CertificateVerifier:
    """Returns the verifier of the authorities in a file, which must be valid. Raises OptionError."""
    verifier = _shared_verifier(authorities)
    try:
        verifier.roots  # noqa: B018
    except ValueError:
        raise OptionError(f"{path}: data does not contain any valid RSA or ECDSA certificates") from None
    return verifier


@lru_cache(4)
def _shared_verifier(authorities: str) -> CertificateVerifier:
    """Returns the verifier of these authorities: those of most clusters of a process are the same."""
    return CertificateVerifier(authorities)


def _token_file(path: str) -> dict[str, User]:
    users = {}
    import csv

    for record in csv.reader(read_text(path, "token-auth-file").splitlines(), skipinitialspace=False):
        if not record:
            continue
        if len(record) < 3:
            raise OptionError(
                f"token file '{path}' must have at least 3 columns (token, user name, user uid), found {len(record)}"
            )
        token, name, uid, *more = record
        if token:
            users[token] = User(name, uid, tuple(more[0].split(",")) if more else ())
    return users


def _private_key(path: str) -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = read_text(path, "service-account-signing-key-file")
    try:
        key = load_pem_private_key(text.encode(), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise OptionError(f"service-account-signing-key-file {path}: data does not contain a valid RSA or ECDSA private key")
    return key


def _public_keys(path: str) -> list[PublicKey]:
    """Returns the public keys of a PEM file: of public keys, private keys and certificates."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    found: list[PublicKey] = []
    for block in _blocks(read_text(path, "service-account-key-file")):
        try:
            if b"PRIVATE" in block:
                key: Any = load_pem_private_key(block, None).public_key()
            elif b"CERTIFICATE" in block:
                key = x509.load_pem_x509_certificate(block).public_key()
            else:
                key = load_pem_public_key(block)
        except (ValueError, TypeError):
            continue
        if isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
            found.append(key)
    if not found:
        raise OptionError(f"{path}: data does not contain any valid RSA or ECDSA public keys")
    return found


def _blocks(text: str) -> list[bytes]:
    parts = text.split("-----BEGIN ")
    return [f"-----BEGIN {part}".encode() for part in parts[1:]]

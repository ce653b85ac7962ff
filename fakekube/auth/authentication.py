"""Who is asking: credentials of a request become a `User`, bad ones a 401, none at all whoever stands for
nobody.

Credentials are tried in the order of the real server: the client's certificate, the bearer token, the
bearer token that a WebSocket client hides in a subprotocol. One good one is enough; if none is good and one
is bad, the request is refused; without any the caller is anonymous. A fake on loopback is used without
credentials more often than not, so a request over plain http that does not even have an Authorization
header counts as `nobody`, by default an admin.

Specified by: k8s.io/kubernetes/pkg/kubeapiserver/authenticator/config.go, pkg/serviceaccount (claims.go,
jwt.go) and k8s.io/apiserver/pkg/authentication/request.
"""

from __future__ import annotations

import hashlib
import ssl
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Protocol

from fakekube.auth import identities
from fakekube.auth.identities import ADMIN, ANONYMOUS, with_authenticated
from fakekube.auth.tokens import InvalidSignatureError, Signer, issuer_of
from fakekube.clock import Clock
from fakekube.errors import status
from fakekube.golang.quoting import go_quote
from fakekube.registry.request import User

__all__ = ["DEFAULT_TOKENS", "AuthenticatedToken", "Authenticator", "BadCredentialsError", "Getter"]

#: The tokens that the reference server is given, too.
DEFAULT_TOKENS: Final[Mapping[str, User]] = {"admin-token": ADMIN, "user-token": User("alice", "alice", ("team-a",))}

_INVALID_TOKEN: Final = "invalid bearer token"
_WEB_SOCKET_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
_EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
_EXTRA: Final = "authentication.kubernetes.io/"
#: How far the clocks of signer and checker may be apart.
_LEEWAY: Final = timedelta(minutes=1)
_KEPT_TOKENS: Final = 1024


class BadCredentialsError(Exception):
    """Credentials that are no good; the text tells a TokenReview why."""


class Getter(Protocol):
    """Looks objects up; `registry.cluster_access.Services` is one."""

    def get(self, group: str, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The stored object, or None."""


@dataclass(slots=True, frozen=True)
class AuthenticatedToken:
    """Whose token it is, and for which of the audiences asked for."""

    user: User
    audiences: tuple[str, ...]


class Authenticator:
    """Knows the credentials of one cluster.

    Args:
        objects: where service accounts, and what their tokens are bound to, are looked up.
        signer: verifies service account tokens.
        clock: for when tokens expire.
        tokens: static bearer tokens and their users.
        nobody: who asks over plain http without an Authorization header.
    """

    def __init__(
        self,
        objects: Getter,
        signer: Signer,
        clock: Clock,
        *,
        tokens: Mapping[str, User] = DEFAULT_TOKENS,
        nobody: User = ADMIN,
    ) -> None:
        self._objects = objects
        self._signer = signer
        self._clock = clock
        self._nobody = nobody
        self._static = {token: with_authenticated(user) for token, user in tokens.items()}
        self._by_header = {f"Bearer {token}": user for token, user in self._static.items()}
        self._verified = lru_cache(_KEPT_TOKENS)(signer.verify)

    @property
    def audience(self) -> str:
        """The audience of tokens for this server."""
        return self._signer.issuer

    def user_of(self, environment: MutableMapping[str, Any], warnings: list[str] | None = None) -> User:
        """Who makes the request of this WSGI environment; `warnings` takes the texts of Warning headers.

        A good token among its WebSocket subprotocols is taken out of it: what is left is what the client speaks.

        Raises StatusError 401.
        """
        authorization = environment.get("HTTP_AUTHORIZATION")
        certificate = environment.get("SSL_CLIENT_CERT")
        if certificate is None:
            if authorization is None and _WEB_SOCKET_PREFIX not in environment.get("HTTP_SEC_WEBSOCKET_PROTOCOL", ""):
                return self._nobody if environment["wsgi.url_scheme"] == "http" else ANONYMOUS
            user = self._by_header.get(authorization) if authorization else None
            if user is not None:
                return user
        if authorization and warnings is not None and _has_extra_space(authorization):
            warnings.append(_EXTRA_SPACE)
        try:
            return self._first_good(certificate, authorization or "", environment)
        except BadCredentialsError:
            raise status.unauthorized() from None

    def authenticate_token(self, token: str, audiences: Sequence[str] = ()) -> AuthenticatedToken:
        """The user of a bearer token that is for one of these audiences (none: this server).

        Raises BadCredentialsError with the reasons in the words of a TokenReview.
        """
        wanted = tuple(audiences) or (self.audience,)
        user = self._static.get(token)
        if user is not None:
            if self.audience not in wanted:
                raise BadCredentialsError(_INVALID_TOKEN)
            return AuthenticatedToken(user, (self.audience,))
        if issuer_of(token) != self._signer.issuer:
            raise BadCredentialsError(_INVALID_TOKEN)
        try:
            return self._authenticate_service_account(token, wanted)
        except (BadCredentialsError, InvalidSignatureError) as problem:
            raise BadCredentialsError(f"[{_INVALID_TOKEN}, {problem}]") from None

    def _first_good(self, certificate: str | None, authorization: str, environment: MutableMapping[str, Any]) -> User:
        problem: BadCredentialsError | None = None
        ways: tuple[Callable[[], User | None], ...] = (
            lambda: _certificate_user(certificate) if certificate else None,
            lambda: self._token_user(_bearer_token(authorization)),
            lambda: self._web_socket_user(environment),
        )
        for way in ways:
            try:
                user = way()
            except BadCredentialsError as bad:
                problem = bad
                continue
            if user is not None:
                return user
        if problem is not None:
            raise problem
        return ANONYMOUS

    def _token_user(self, token: str) -> User | None:
        return self.authenticate_token(token).user if token else None

    def _web_socket_user(self, environment: MutableMapping[str, Any]) -> User | None:
        user = self._token_user(_web_socket_token(environment))
        if user is not None:
            protocols = [protocol.strip() for protocol in environment["HTTP_SEC_WEBSOCKET_PROTOCOL"].split(",")]
            spoken = [protocol for protocol in protocols if not protocol.startswith(_WEB_SOCKET_PREFIX)]
            environment["HTTP_SEC_WEBSOCKET_PROTOCOL"] = ",".join(spoken)
        return user

    # ------------------------------------------------------------ service accounts

    def _authenticate_service_account(self, token: str, wanted: tuple[str, ...]) -> AuthenticatedToken:
        claims = self._verified(token)
        audience = claims.get("aud") or (self.audience,)
        given = (audience,) if isinstance(audience, str) else tuple(audience)
        common = tuple(name for name in wanted if name in given)
        if not common:
            problem = f"token audiences {_go_list(given)} is invalid for the target audiences {_go_list(wanted)}"
            raise BadCredentialsError(problem)
        _check_times(claims, self._clock.now())
        private = claims.get("kubernetes.io") or {}
        namespace = private.get("namespace", "")
        account = private.get("serviceaccount") or {}
        self._check_account(namespace, account.get("name", ""), account.get("uid", ""))
        self._check_bound_objects(namespace, private)
        return AuthenticatedToken(_service_account_user(namespace, account, private, claims.get("jti")), common)

    def _check_account(self, namespace: str, name: str, uid: str) -> None:
        found = self._objects.get("", "serviceaccounts", namespace, name)
        if found is None:
            raise BadCredentialsError(status.not_found("", "serviceaccounts", name).message)
        found_uid = found["metadata"]["uid"]
        if found_uid != uid:
            raise BadCredentialsError(f"service account UID ({found_uid}) does not match claim ({uid})")
        if self._gone(found):
            raise BadCredentialsError(f"service account {namespace}/{name} has been deleted")

    def _check_bound_objects(self, namespace: str, private: Mapping[str, Any]) -> None:
        """A token ends with the object that it is bound to; a pod's node is only noted."""
        for kind, plural in (("secret", "secrets"), ("pod", "pods"), ("node", "nodes")):
            reference = private.get(kind)
            if reference is None or (kind == "node" and "pod" in private):
                continue
            found = self._objects.get("", plural, "" if kind == "node" else namespace, reference["name"])
            if found is None:
                raise BadCredentialsError("service account token has been invalidated")
            uid = found["metadata"]["uid"]
            if uid != reference["uid"]:
                raise BadCredentialsError(
                    f"{kind} UID ({uid}) does not match service account {kind} ref claim ({reference['uid']})"
                )
            if self._gone(found):
                raise BadCredentialsError("service account token has been invalidated")

    def _gone(self, obj: Mapping[str, Any]) -> bool:
        """Was it to be deleted longer ago than the leeway?"""
        deleted = obj["metadata"].get("deletionTimestamp")
        return deleted is not None and datetime.fromisoformat(deleted) < self._clock.now() - _LEEWAY


def _check_times(claims: Mapping[str, Any], now: datetime) -> None:
    moment, leeway = now.timestamp(), _LEEWAY.total_seconds()
    if moment - leeway > claims.get("exp", moment):
        raise BadCredentialsError("service account token has expired")
    if moment + leeway < claims.get("nbf", moment):
        raise BadCredentialsError("service account token is not valid yet")
    if moment + leeway < claims.get("iat", moment):
        raise BadCredentialsError("service account token is issued in the future")


def _service_account_user(
    namespace: str, account: Mapping[str, Any], private: Mapping[str, Any], token_id: str | None
) -> User:
    extra: dict[str, Sequence[str]] = {}
    for kind in ("pod", "node"):
        reference = private.get(kind)
        if reference:
            extra[f"{_EXTRA}{kind}-name"] = (reference["name"],)
            if reference.get("uid"):  # the node of a pod need not exist
                extra[f"{_EXTRA}{kind}-uid"] = (reference["uid"],)
    if token_id:
        extra[identities.CREDENTIAL_ID] = (f"JTI={token_id}",)
    name = identities.service_account_username(namespace, account["name"])
    return with_authenticated(User(name, account["uid"], identities.service_account_groups(namespace), extra))


# ---------------------------------------------------------------- where credentials are found


def _bearer_token(authorization: str) -> str:
    """The token of an Authorization header; "" if it holds none."""
    parts = authorization.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def _has_extra_space(authorization: str) -> bool:
    parts = authorization.strip().split(" ", 2)
    return len(parts) == 3 and parts[0].lower() == "bearer" and not parts[1]


def _web_socket_token(environment: Mapping[str, Any]) -> str:
    """The token among the subprotocols of a WebSocket request; "" if there is none."""
    offered = environment.get("HTTP_SEC_WEBSOCKET_PROTOCOL", "")
    if _WEB_SOCKET_PREFIX not in offered or environment.get("HTTP_UPGRADE", "").lower() != "websocket":
        return ""
    protocols = [protocol.strip() for protocol in offered.split(",")]
    tokens = [protocol for protocol in protocols if protocol.startswith(_WEB_SOCKET_PREFIX)]
    if len(tokens) > 1:
        raise BadCredentialsError("multiple base64.bearer.authorization tokens specified")
    if len(tokens) == len(protocols):
        raise BadCredentialsError("missing additional subprotocol")
    encoded = tokens[0][len(_WEB_SOCKET_PREFIX) :]
    try:
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        raise BadCredentialsError("invalid base64.bearer.authorization token encoding") from None


@lru_cache(_KEPT_TOKENS)
def _certificate_user(pem: str) -> User | None:
    """The user of a certificate: common name, organizations as groups; None without a common name."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    der = ssl.PEM_cert_to_DER_cert(pem)
    subject = x509.load_der_x509_certificate(der).subject
    names = [str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[-1]:
        return None
    groups = tuple(str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    extra = {identities.CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    return with_authenticated(User(names[-1], _certificate_uid(subject), groups, extra))


_UID_OID: Final = "1.3.6.1.4.1.57683.2"


def _certificate_uid(subject: Any) -> str:
    """The uid that a certificate's subject may have."""
    uids = [str(attribute.value) for attribute in subject if attribute.oid.dotted_string == _UID_OID]
    if len(uids) > 1 or uids == [""]:
        raise BadCredentialsError("one UID that is not empty was expected")
    return uids[0] if uids else ""


def _go_list(values: Sequence[str]) -> str:
    return f"[{' '.join(map(go_quote, values))}]"

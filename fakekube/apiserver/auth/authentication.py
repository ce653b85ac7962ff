"""Authenticates requests: determines the `User` from the credentials, or responds with 401.

Credentials are tried in the order of the real server: a front proxy's headers, the client's certificate, the bearer
token, the bearer token that a WebSocket client hides in a subprotocol. One valid credential is enough; if none is
valid and one is invalid, the request is rejected; without credentials the user is anonymous, if that is allowed for
the path. Tests often use no credentials, so a plain HTTP request without an Authorization header has the user
`nobody`, an administrator if only this machine can reach the server.

Invariant: a request that needs no secret (no credentials, or a well-known token) passes the guard against web pages.

Specified by: k8s.io/kubernetes/pkg/kubeapiserver/authenticator/config.go and
k8s.io/apiserver/pkg/authentication/request (bearertoken, websocket, anonymous, union).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apimachinery.errors import status
from fakekube.apiserver.auth.browsers import BrowserGuard
from fakekube.apiserver.auth.certificates import CertificateVerifier, RequestHeaders, certificates_of, user_of_certificate
from fakekube.apiserver.auth.identities import (
    ADMIN,
    ANONYMOUS,
    INVALID_TOKEN,
    AuthenticatedToken,
    BadCredentialsError,
    TokenAuthenticator,
    common_audiences,
    with_authenticated,
)
from fakekube.apiserver.endpoints.request import User
from fakekube.base.clock import Clock
from fakekube.base.golang.strings import aggregate_errors
from fakekube.net.wsgi import SHARED_VARIABLES

#: The default static tokens of a server that only this machine can reach. The reference server has them, too.
DEFAULT_TOKENS: Final[Mapping[str, User]] = {"admin-token": ADMIN, "user-token": User("alice", "alice", ("team-a",))}

#: The environment key for the user of an in-process request; requests from a socket never have it.
IN_PROCESS_USER: Final = "fakekube.user"

_WEB_SOCKET_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
#: The default tokens, which everybody knows, as the whole Authorization header.
_WELL_KNOWN: Final = frozenset(f"Bearer {token}" for token in DEFAULT_TOKENS)
_EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"


@dataclass(slots=True, frozen=True)
class Anonymous:
    """Whether anonymous requests are allowed, and for which paths (None: all)."""

    enabled: bool = True
    paths: Sequence[str] | None = None

    def admits(self, path: str) -> bool:
        """Reports whether anonymous requests for this path are allowed."""
        return self.enabled and (self.paths is None or path in self.paths)


class StaticTokens:
    """Authenticates static bearer tokens. They are valid for the API server, regardless of the requested audience."""

    def __init__(self, tokens: Mapping[str, User], audiences: Sequence[str]) -> None:
        self._audiences = tuple(audiences)
        self._users: dict[str, User] = {}
        self.by_header: dict[str, User] = {}
        """Users by the whole Authorization header that most clients send with their token."""
        for token, user in tokens.items():
            self.add(token, user)

    def add(self, token: str, user: User) -> None:
        """Adds a token."""
        self._users[token] = self.by_header[f"Bearer {token}"] = with_authenticated(user)

    def remove(self, token: str) -> None:
        """Removes a token, if it is there."""
        self._users.pop(token, None)
        self.by_header.pop(f"Bearer {token}", None)

    def authenticate(self, token: str, audiences: Sequence[str]) -> AuthenticatedToken | None:
        """See `identities.TokenAuthenticator`."""
        user = self._users.get(token)
        common = common_audiences(audiences, self._audiences)
        return AuthenticatedToken(user, common) if user is not None and common else None


@dataclass(slots=True)
class Authenticator:
    """Authenticates the requests of one cluster."""

    clock: Clock
    audiences: tuple[str, ...]
    """The audiences of the API server."""
    static: StaticTokens
    tokens: Sequence[TokenAuthenticator] = ()
    """Kinds of bearer tokens beside the static ones, in their order."""
    certificates: CertificateVerifier | None = None
    """Verifies client certificates; None: the TLS server has verified them."""
    request_headers: RequestHeaders | None = None
    anonymous: Anonymous = field(default_factory=Anonymous)
    nobody: User | None = ADMIN
    """The user of plain HTTP requests without an Authorization header; None: they are anonymous."""
    guard: BrowserGuard = field(default_factory=BrowserGuard)
    """Refuses web pages that send requests which need no secret."""

    def user_of(self, environment: MutableMapping[str, Any], warnings: list[str] | None = None) -> User:
        """Returns the user of a request; `warnings` collects the texts of Warning headers.

        A valid token is removed from the WebSocket subprotocols of the environment, as in the real server.

        Raises StatusError 401, or 403 if a web page may have sent a request that needs no secret.
        """
        authorization = environment.get("HTTP_AUTHORIZATION")
        if "SSL_CLIENT_CERT" not in environment:
            if authorization is None and _WEB_SOCKET_PREFIX not in environment.get("HTTP_SEC_WEBSOCKET_PROTOCOL", ""):
                return self._without_credentials(environment)
            user = self.static.by_header.get(authorization) if authorization else None
            if user is not None:
                if authorization in _WELL_KNOWN:
                    self.guard.require_own(environment)
                return user
        if authorization and warnings is not None and _has_extra_space(authorization):
            warnings.append(_EXTRA_SPACE)
        try:
            return self._first_good(environment, authorization or "")
        except BadCredentialsError:
            raise status.unauthorized() from None

    def authenticate_token(self, token: str, audiences: Sequence[str] = ()) -> AuthenticatedToken:
        """Returns the user of a bearer token for one of these audiences (none: this server).

        Raises BadCredentialsError with the reasons as a TokenReview reports them.
        """
        wanted = tuple(audiences) or self.audiences
        problems = [INVALID_TOKEN]
        for kind in (self.static, *self.tokens):
            try:
                found = kind.authenticate(token, wanted)
            except BadCredentialsError as problem:
                problems.append(str(problem))
                continue
            if found is not None:
                return found
        raise BadCredentialsError(aggregate_errors(problems))

    def authenticate_bearer(self, token: str, audiences: Sequence[str] = ()) -> AuthenticatedToken | None:
        """Returns the user of a request with only `Authorization: Bearer …`; None if it has no token.

        Raises BadCredentialsError.
        """
        seen = _bearer_token(f"Bearer {token}")
        if seen:
            return self.authenticate_token(seen, audiences)
        return AuthenticatedToken(ANONYMOUS, tuple(audiences) or self.audiences) if self.anonymous.enabled else None

    def _without_credentials(self, environment: Mapping[str, Any]) -> User:
        user: User | None = environment.get(IN_PROCESS_USER)
        if user is not None:
            return user
        if self.nobody is None or environment["wsgi.url_scheme"] != "http":
            return self._nameless(environment)
        self.guard.require_own(environment)
        return self.nobody

    def _nameless(self, environment: Mapping[str, Any]) -> User:
        if not self.anonymous.admits(environment.get("PATH_INFO", "")):
            raise status.unauthorized()
        return ANONYMOUS

    def _first_good(self, environment: MutableMapping[str, Any], authorization: str) -> User:
        certificates = certificates_of(environment)
        problem: BadCredentialsError | None = None
        ways: tuple[Callable[[], User | None], ...] = (
            lambda: self._proxied_user(environment, certificates),
            lambda: self._certificate_user(environment, certificates),
            lambda: self._token_user(_bearer_token(authorization), environment),
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
        return self._nameless(environment)

    def _proxied_user(self, environment: Mapping[str, Any], certificates: tuple[str, ...]) -> User | None:
        if self.request_headers is None:
            return None
        return self.request_headers.user_of(environment, certificates, self.clock.now())

    def _certificate_user(self, environment: Mapping[str, Any], certificates: tuple[str, ...]) -> User | None:
        if not certificates:
            return None
        if self.certificates is not None:
            self.certificates.check(certificates, self.clock.now())
        elif environment.get("SSL_CLIENT_VERIFY", "SUCCESS") != "SUCCESS":
            return None
        return user_of_certificate(certificates[0])

    def _token_user(self, token: str, environment: Mapping[str, Any]) -> User | None:
        if not token:
            return None
        user = self.authenticate_token(token).user
        if token in DEFAULT_TOKENS:
            self.guard.require_own(environment)
        return user

    def _web_socket_user(self, environment: MutableMapping[str, Any]) -> User | None:
        user = self._token_user(_web_socket_token(environment), environment)
        if user is not None:
            protocols = [protocol.strip() for protocol in environment["HTTP_SEC_WEBSOCKET_PROTOCOL"].split(",")]
            spoken = [protocol for protocol in protocols if not protocol.startswith(_WEB_SOCKET_PREFIX)]
            environment["HTTP_SEC_WEBSOCKET_PROTOCOL"] = ",".join(spoken)
            environment.pop(SHARED_VARIABLES, None)  # they have the token
        return user


# --- Credentials of a request -----------------------------------------------------------------------------------------


def _bearer_token(authorization: str) -> str:
    """Returns the bearer token of an Authorization header, or ""."""
    parts = authorization.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def _has_extra_space(authorization: str) -> bool:
    parts = authorization.strip().split(" ", 2)
    return len(parts) == 3 and parts[0].lower() == "bearer" and not parts[1]


def _web_socket_token(environment: Mapping[str, Any]) -> str:
    """Returns the bearer token among the subprotocols of a WebSocket request, or ""."""
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

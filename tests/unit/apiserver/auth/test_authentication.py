"""Authentication of requests, and the errors of rejected credentials."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.auth.authentication import DEFAULT_TOKENS, Authenticator, StaticTokens
from fakekube.apiserver.auth.identities import ADMIN, ANONYMOUS, BadCredentialsError
from fakekube.apiserver.auth.service_accounts import ServiceAccountTokens, Signer
from fakekube.apiserver.endpoints.request import User
from fakekube.net.wsgi import SHARED_VARIABLES
from fakekube.powers.requests import Recorder

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class _Clock:
    def __init__(self) -> None:
        self.moment = NOW

    def now(self) -> datetime:
        return self.moment


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def signer() -> Signer:
    return Signer()


@pytest.fixture
def authenticator(objects, signer: Signer, clock: _Clock) -> Authenticator:
    objects.put("", "serviceaccounts", {"metadata": {"namespace": "ns", "name": "robot", "uid": "u1"}})
    return _authenticator(objects, signer, clock)


def _authenticator(objects, signer: Signer, clock: _Clock, **more: Any) -> Authenticator:
    audiences = signer.issuers
    tokens = [ServiceAccountTokens(objects, signer, clock, audiences)]
    return Authenticator(clock, audiences, StaticTokens(DEFAULT_TOKENS, audiences), tokens, **more)


def _user(authenticator: Authenticator, scheme: str = "http", **environment: Any) -> User:
    return authenticator.user_of({"wsgi.url_scheme": scheme, **environment})


# ---------------------------------------------------------------- headers

ALICE = ("system:authenticated", "team-a")


def test_requests_without_credentials_are_admin_only_over_http(
    objects, signer: Signer, clock: _Clock, authenticator: Authenticator
) -> None:
    assert _user(authenticator) == ADMIN
    assert _user(authenticator, "https") == ANONYMOUS
    strict = _authenticator(objects, signer, clock, nobody=ANONYMOUS)
    assert _user(strict) == ANONYMOUS


@pytest.mark.parametrize(
    "header", ["Bearer user-token", "bearer user-token", "BEARER user-token", " Bearer user-token ", "Bearer user-token more"]
)
def test_bearer_tokens(authenticator: Authenticator, header: str) -> None:
    user = _user(authenticator, HTTP_AUTHORIZATION=header)
    assert (user.name, tuple(sorted(user.groups))) == ("alice", ALICE)


@pytest.mark.parametrize("header", ["", " ", "Bearer", "Bearer ", "Basic YTpi", "user-token", "Bearer  user-token"])
def test_authorization_headers_without_a_bearer_token_are_anonymous(authenticator: Authenticator, header: str) -> None:
    assert _user(authenticator, HTTP_AUTHORIZATION=header) == ANONYMOUS


@pytest.mark.parametrize("token", ["nope", "User-Token", "a.b.c", "ä"])
def test_unknown_tokens_return_401(authenticator: Authenticator, token: str) -> None:
    with pytest.raises(StatusError) as caught:
        _user(authenticator, HTTP_AUTHORIZATION=f"Bearer {token}")
    assert (caught.value.code, caught.value.message) == (401, "Unauthorized")


def _protocols(*tokens: str) -> str:
    return ", ".join(
        f"base64url.bearer.authorization.k8s.io.{urlsafe_b64encode(token.encode()).rstrip(b'=').decode()}" for token in tokens
    )


def test_websocket_subprotocol_carries_a_bearer_token(authenticator: Authenticator) -> None:
    offered = f"{_protocols('user-token')}, v4.channel.k8s.io"
    assert _user(authenticator, HTTP_SEC_WEBSOCKET_PROTOCOL=offered, HTTP_UPGRADE="WebSocket").name == "alice"
    assert _user(authenticator, HTTP_SEC_WEBSOCKET_PROTOCOL=offered) == ANONYMOUS


def test_what_is_kept_of_a_request_has_no_token_of_a_websocket_subprotocol(authenticator: Authenticator) -> None:
    headers = {"HTTP_SEC_WEBSOCKET_PROTOCOL": f"{_protocols('user-token')}, v4.channel.k8s.io", "HTTP_UPGRADE": "websocket"}
    environ = {"wsgi.url_scheme": "http", **headers, SHARED_VARIABLES: headers}
    authenticator.user_of(environ)
    assert Recorder(1, str).share_environ(environ)["HTTP_SEC_WEBSOCKET_PROTOCOL"] == "v4.channel.k8s.io"


def test_websocket_subprotocol_without_token_is_anonymous(authenticator: Authenticator) -> None:
    offered = {"HTTP_SEC_WEBSOCKET_PROTOCOL": "v4.channel.k8s.io", "HTTP_UPGRADE": "websocket"}
    assert _user(authenticator, **offered) == _user(authenticator)


@pytest.mark.parametrize(
    "offered",
    [
        _protocols("user-token"),
        f"{_protocols('user-token', 'admin-token')}, v4.channel.k8s.io",
        f"{_protocols('nope')}, v4.channel.k8s.io",
        "base64url.bearer.authorization.k8s.io.\x80, v4.channel.k8s.io",
    ],
)
def test_invalid_websocket_tokens_are_rejected(authenticator: Authenticator, offered: str) -> None:
    with pytest.raises(StatusError):
        _user(authenticator, HTTP_SEC_WEBSOCKET_PROTOCOL=offered, HTTP_UPGRADE="websocket")


# ---------------------------------------------------------------- certificates


def _certificate(*attributes: tuple[str, str]) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding

    subject = x509.Name([x509.NameAttribute(x509.ObjectIdentifier(oid), value) for oid, value in attributes])
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, NOW, NOW + timedelta(days=1))
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


NAME, ORGANIZATION, UID = "2.5.4.3", "2.5.4.10", "1.3.6.1.4.1.57683.2"


def test_client_certificate_gives_name_uid_and_groups(authenticator: Authenticator) -> None:
    pem = _certificate((NAME, "bob"), (ORGANIZATION, "a"), (ORGANIZATION, "b"), (UID, "7"))
    user = _user(authenticator, "https", SSL_CLIENT_CERT=pem)
    assert (user.name, user.uid, user.groups) == ("bob", "7", ("a", "b", "system:authenticated"))
    ((key, values),) = user.extra.items()
    assert key == "authentication.kubernetes.io/credential-id"
    assert values[0].startswith("X509SHA256=")
    assert len(values[0]) == len("X509SHA256=") + 64


def test_client_certificate_takes_precedence_over_token(authenticator: Authenticator) -> None:
    pem = _certificate((NAME, "bob"))
    assert _user(authenticator, "https", SSL_CLIENT_CERT=pem, HTTP_AUTHORIZATION="Bearer user-token").name == "bob"
    assert _user(authenticator, "https", SSL_CLIENT_CERT=pem, HTTP_AUTHORIZATION="Bearer nope").name == "bob"


def test_client_certificate_without_common_name_is_ignored(authenticator: Authenticator) -> None:
    pem = _certificate((ORGANIZATION, "a"))
    assert _user(authenticator, "https", SSL_CLIENT_CERT=pem, HTTP_AUTHORIZATION="Bearer user-token").name == "alice"
    assert _user(authenticator, "https", SSL_CLIENT_CERT=pem) == ANONYMOUS


# ---------------------------------------------------------------- service accounts


def _claims(**changes: Any) -> dict[str, Any]:
    private = {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "u1"}}
    claims = {
        "aud": ["https://kubernetes.default.svc"], "exp": int(NOW.timestamp()) + 3600, "iat": int(NOW.timestamp()),
        "nbf": int(NOW.timestamp()), "jti": "j", "kubernetes.io": private, "sub": "system:serviceaccount:ns:robot",
    }  # fmt: skip
    private |= changes.pop("private", {})
    return {name: value for name, value in (claims | changes).items() if value is not None}


def test_service_account_token(authenticator: Authenticator, signer: Signer) -> None:
    user = _user(authenticator, HTTP_AUTHORIZATION=f"Bearer {signer.sign(_claims())}")
    assert user == User(
        "system:serviceaccount:ns:robot", "u1",
        ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        {"authentication.kubernetes.io/credential-id": ("JTI=j",)},
    )  # fmt: skip


def _problem(authenticator: Authenticator, token: str, audiences: tuple[str, ...] = ()) -> str:
    with pytest.raises(BadCredentialsError) as caught:
        authenticator.authenticate_token(token, audiences)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"exp": int(NOW.timestamp()) - 61}, "service account token has expired"),
        ({"nbf": int(NOW.timestamp()) + 61}, "service account token is not valid yet"),
        ({"iat": int(NOW.timestamp()) + 61}, "service account token is issued in the future"),
        ({"private": {"serviceaccount": {"name": "gone", "uid": "u1"}}}, 'serviceaccounts "gone" not found'),
        ({"private": {"serviceaccount": {"name": "robot", "uid": "u0"}}}, "service account UID (u1) does not match claim (u0)"),
        ({"aud": ["a", "b"]}, 'token audiences ["a" "b"] is invalid for the target audiences ["https://kubernetes.default.svc"]'),
        ({"private": {"pod": {"name": "p", "uid": "1"}}}, "service account token has been invalidated"),
        ({"private": {"node": {"name": "n", "uid": "1"}}}, "service account token has been invalidated"),
    ],
)
def test_invalid_service_account_claims_are_rejected(
    authenticator: Authenticator, signer: Signer, changes: dict[str, Any], problem: str
) -> None:
    assert _problem(authenticator, signer.sign(_claims(**changes))) == f"[invalid bearer token, {problem}]"


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": int(NOW.timestamp()) - 60},
        {"nbf": int(NOW.timestamp()) + 60, "iat": int(NOW.timestamp()) + 60},
        {"exp": None, "nbf": None, "iat": None},
        {"aud": None},
        {"aud": "https://kubernetes.default.svc"},
    ],
)
def test_valid_variations_of_service_account_claims(
    authenticator: Authenticator, signer: Signer, changes: dict[str, Any]
) -> None:
    assert authenticator.authenticate_token(signer.sign(_claims(**changes))).user.uid == "u1"


def test_cached_tokens_expire(authenticator: Authenticator, signer: Signer, clock: _Clock) -> None:
    token = signer.sign(_claims())
    authenticator.authenticate_token(token)
    clock.moment += timedelta(seconds=3661)
    assert "expired" in _problem(authenticator, token)


def test_token_is_invalid_after_the_account_is_deleted(objects, authenticator: Authenticator, signer: Signer) -> None:
    token = signer.sign(_claims())
    account = {"namespace": "ns", "name": "robot", "uid": "u1"}
    objects.put("", "serviceaccounts", {"metadata": {**account, "deletionTimestamp": "2029-12-31T23:59:30Z"}})
    authenticator.authenticate_token(token)
    objects.put("", "serviceaccounts", {"metadata": {**account, "deletionTimestamp": "2029-12-31T23:58:30Z"}})
    assert "service account ns/robot has been deleted" in _problem(authenticator, token)


def test_pod_bound_token(objects, authenticator: Authenticator, signer: Signer) -> None:
    objects.put("", "pods", {"metadata": {"namespace": "ns", "name": "p", "uid": "1"}})
    private = {"pod": {"name": "p", "uid": "1"}, "node": {"name": "n", "uid": "2"}}
    token = signer.sign(_claims(private=private))
    assert authenticator.authenticate_token(token).user.extra == {
        "authentication.kubernetes.io/pod-name": ("p",), "authentication.kubernetes.io/pod-uid": ("1",),
        "authentication.kubernetes.io/node-name": ("n",), "authentication.kubernetes.io/node-uid": ("2",),
        "authentication.kubernetes.io/credential-id": ("JTI=j",),
    }  # fmt: skip
    objects.put("", "pods", {"metadata": {"namespace": "ns", "name": "p", "uid": "3"}})
    assert "pod UID (3) does not match service account pod ref claim (1)" in _problem(authenticator, token)


def test_token_audiences(authenticator: Authenticator, signer: Signer) -> None:
    token = signer.sign(_claims(aud=["a", "b", "c"]))
    assert authenticator.authenticate_token(token, ("c", "x", "a")).audiences == ("c", "a")
    assert authenticator.authenticate_token("user-token").audiences == ("https://kubernetes.default.svc",)
    assert _problem(authenticator, "user-token", ("other",)) == "invalid bearer token"
    assert _problem(authenticator, "nope") == "invalid bearer token"


def test_token_of_another_issuer_is_rejected(authenticator: Authenticator) -> None:
    assert _problem(authenticator, Signer(["https://elsewhere"]).sign(_claims())) == "invalid bearer token"

"""JWT authenticators: tokens of an issuer that runs beside the cluster, and configurations that are refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from fakekube import Cluster
from fakekube.apiserver.auth import jose
from fakekube.apiserver.auth.options import OptionError
from fakekube.base.clock import Clock
from fakekube.net import Server
from fakekube.net.certificates import credentials


class Issuer:
    """An OpenID Connect provider as far as kube-apiserver looks: a discovery document and keys, over HTTPS."""

    def __init__(self) -> None:
        self.key: Any = ec.generate_private_key(ec.SECP256R1())
        self.key_id = "one"
        self.fetched: list[str] = []
        self.more_keys: list[dict[str, Any]] = []
        self.clock = Clock()
        given = credentials()
        self.authority = given.ca_certificate
        self.server = Server(self.answer, clock=self.clock, tls=given.context)
        self.server.start()
        self.url = self.server.url

    def answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.fetched.append(path)
        documents = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/elsewhere": {"issuer": f"{self.url}/other", "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": [*self.more_keys, jose.json_web_key(self.key.public_key(), self.key_id)]},
        }
        body = json.dumps(documents.get(path)).encode()
        start(
            "200 OK" if path in documents else "404 Not Found",
            [("Content-Type", "application/json"), ("Content-Length", str(len(body)))],
        )
        return [body]

    def token(self, clock: Clock, **claims: Any) -> str:
        times = {"iat": int(clock.now().timestamp()), "exp": int((clock.now() + timedelta(hours=1)).timestamp())}
        values = {"iss": self.url, "aud": "app", "sub": "jane", **times, **claims}
        return jose.sign({"kid": self.key_id}, {key: value for key, value in values.items() if value is not None}, self.key)


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.server.stop()
    made.clock.close()


Start = Callable[..., Cluster]


@pytest.fixture
def start(issuer: Issuer, tmp_path: Path) -> Iterator[Start]:
    clusters = []

    def make(
        mappings: dict[str, Any] | None = None, *, issued: dict[str, Any] | None = None, anonymous: Any = None, **more: Any
    ) -> Cluster:
        authenticator = {
            "issuer": {"url": issuer.url, "audiences": ["app"], "certificateAuthority": issuer.authority, **(issued or {})},
            "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}, **(mappings or {})},
            **more,
        }
        config = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [authenticator]}
        path = tmp_path / "authentication.yaml"
        path.write_text(json.dumps({**config, **({"anonymous": anonymous} if anonymous else {})}))
        clusters.append(Cluster(profile="apiserver", authentication_config=path))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.stop()


def review(cluster: Cluster, token: str, **spec: Any) -> dict[str, Any]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, **spec}}
    status: dict[str, Any] = cluster.create(body)["status"]
    return status


def problem(cluster: Cluster, token: str) -> str:
    return str(review(cluster, token)["error"]).removeprefix("[invalid bearer token, ").removesuffix("]")


def test_claims_are_mapped_to_user_attributes(issuer: Issuer, start: Start) -> None:
    cluster = start({"groups": {"claim": "roles", "prefix": "g:"}, "uid": {"claim": "id"}})
    status = review(cluster, issuer.token(cluster.clock, roles=["a", "b"], id="7", jti="t1"))
    assert status["user"] == {
        "username": "oidc:jane",
        "uid": "7",
        "groups": ["g:a", "g:b", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=t1"]},
    }
    assert status["audiences"] == ["https://kubernetes.default.svc"]
    assert review(cluster, issuer.token(cluster.clock, roles="a", id="7"))["user"]["groups"] == ["g:a", "system:authenticated"]
    assert "authenticated" not in review(cluster, issuer.token(cluster.clock, id="7"), audiences=["other"])


def test_cel_expressions_are_mapped_to_user_attributes(issuer: Issuer, start: Start) -> None:
    cluster = start(
        {
            "username": {"expression": "claims.email_verified ? claims.email : 'nobody'"},
            "groups": {"expression": "claims.roles.split(',') + ['']"},
            "uid": {"expression": "string(claims.id)"},
            "extra": [
                {"key": "acme.com/all", "valueExpression": "claims.?things.orValue(['none'])"},
                {"key": "acme.com/none", "valueExpression": "''"},
            ],
        }
    )
    token = issuer.token(cluster.clock, email="j@x", email_verified=True, roles="a,b", id=7)
    assert review(cluster, token)["user"] == {
        "username": "j@x",
        "uid": "7",
        "groups": ["a", "b", "system:authenticated"],
        "extra": {"acme.com/all": ["none"]},
    }
    wrong = issuer.token(cluster.clock, email="j@x", email_verified=True, roles=3, id=7)
    assert problem(cluster, wrong).startswith("oidc: error evaluating group claim expression: expression 'claims.roles.split")


def test_claim_and_user_validation_rules(issuer: Issuer, start: Start) -> None:
    cluster = start(
        claimValidationRules=[
            {"claim": "tenant", "requiredValue": "acme"},
            {"expression": "claims.exp - claims.iat <= 86400", "message": "a day at most"},
        ],
        userValidationRules=[{"expression": "!user.username.endsWith(':root')", "message": "no root"}],
    )
    clock = cluster.clock
    assert review(cluster, issuer.token(clock, tenant="acme"))["authenticated"]
    for claims, text in (
        ({}, "oidc: required claim tenant not present in ID token"),
        ({"tenant": "x"}, "oidc: required claim tenant value does not match. Got = x, want = acme"),
        ({"tenant": 1}, "oidc: parse claim tenant: json: cannot unmarshal number into Go value of type string"),
        (
            {"tenant": "acme", "iat": 0},
            "oidc: error evaluating claim validation expression: "
            "validation expression 'claims.exp - claims.iat <= 86400' failed: a day at most",
        ),
        (
            {"tenant": "acme", "sub": "root"},
            "oidc: error evaluating user info validation rule: "
            "validation expression '!user.username.endsWith(':root')' failed: no root",
        ),
        ({"tenant": "acme", "sub": None}, 'oidc: parse username claims "sub": claim not present'),
    ):
        assert problem(cluster, issuer.token(clock, **claims)) == text


def test_tokens_expire_by_the_cluster_clock(issuer: Issuer, start: Start) -> None:
    cluster = start()
    clock = cluster.clock
    clock.hold()
    token, early = issuer.token(clock), issuer.token(clock, nbf=int((clock.now() + timedelta(minutes=2)).timestamp()))
    assert review(cluster, token)["authenticated"]
    assert "before the nbf (not before) time" in problem(cluster, early)
    assert "time: 31690708-07-05 01:46:40 +0000 UTC" in problem(cluster, issuer.token(clock, nbf=10**15))
    clock.advance(minutes=1, seconds=1)
    assert review(cluster, early)["authenticated"]
    clock.advance(minutes=59)
    assert problem(cluster, token).startswith("oidc: verify token: oidc: token is expired (Token Expiry: 20")


def test_invalid_tokens_are_rejected(issuer: Issuer, start: Start) -> None:
    cluster = start()
    token = issuer.token(cluster.clock)
    head, payload, signature = token.split(".")
    assert problem(cluster, issuer.token(cluster.clock, aud=["x", "y"])) == (
        'oidc: verify token: oidc: expected audience "app" got ["x" "y"]'
    )
    assert problem(cluster, f"{head}.{payload}.{signature[:-6]}AAAAAA") == (
        "oidc: verify token: failed to verify signature: failed to verify id token signature"
    )
    unsigned = jose.encode(b'{"alg":"none"}')
    assert "unsupported algorithm" in problem(cluster, f"{unsigned}.{payload}.")
    assert review(cluster, issuer.token(cluster.clock, iss="https://other"))["error"] == "invalid bearer token"


def test_issuer_keys_are_cached_and_refetched_for_unknown_key_ids(issuer: Issuer, start: Start) -> None:
    cluster = start()
    issuer.fetched.clear()
    for _ in range(3):
        assert review(cluster, issuer.token(cluster.clock))["authenticated"]
    assert issuer.fetched == ["/.well-known/openid-configuration", "/keys"]
    old = issuer.key, issuer.key_id
    issuer.key, issuer.key_id = rsa.generate_private_key(public_exponent=65537, key_size=2048), "two"
    assert review(cluster, issuer.token(cluster.clock))["authenticated"]
    assert issuer.fetched[2:] == ["/keys"]
    issuer.key, issuer.key_id = old
    issuer.more_keys.append({"kty": "nonsense"})
    assert problem(start(), issuer.token(cluster.clock)).startswith(
        "oidc: verify token: failed to verify signature: fetching keys oidc: failed to decode keys: "
        "got Content-Type = application/json, but could not unmarshal as JSON: "
        "go-jose/go-jose: unknown json web key type 'nonsense' {\"keys\""
    )
    issuer.more_keys.clear()


def test_unreachable_issuer_leaves_the_authenticator_uninitialized(issuer: Issuer, start: Start) -> None:
    for issued in (
        {"certificateAuthority": ""},
        {"discoveryURL": f"{issuer.url}/elsewhere"},
        {"discoveryURL": f"{issuer.url}/nowhere"},
    ):
        cluster = start(issued=issued)
        assert problem(cluster, issuer.token(cluster.clock)) == "oidc: authenticator not initialized"


def test_audience_match_policy_match_any(issuer: Issuer, start: Start) -> None:
    cluster = start(issued={"audiences": ["a", "b"], "audienceMatchPolicy": "MatchAny"})
    assert review(cluster, issuer.token(cluster.clock, aud="b"))["authenticated"]
    assert (
        problem(cluster, issuer.token(cluster.clock, aud="c"))
        == 'oidc: verify token: oidc: expected audience in ["a" "b"] got ["c"]'
    )


@pytest.mark.parametrize(
    ("anonymous", "admitted"),
    [
        ({"enabled": True, "conditions": [{"path": "/livez"}]}, {"/livez": 200, "/version": 401, "/api/v1/nodes": 401}),
        ({"enabled": False}, {"/livez": 401}),
        ({"enabled": True}, {"/livez": 200, "/version": 200, "/api/v1/nodes": 403}),
    ],
)
def test_anonymous_conditions(start: Start, anonymous: dict[str, Any], admitted: dict[str, int]) -> None:
    application = start(anonymous=anonymous).application
    for path, code in admitted.items():
        answers: list[str] = []
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": path,
            "QUERY_STRING": "",
            "wsgi.url_scheme": "https",
            "SERVER_NAME": "x",
            "SERVER_PORT": "443",
            "HTTP_ACCEPT": "*/*",
        }
        application(environ, lambda line, _headers, known=answers: known.append(line))
        assert answers[0].startswith(str(code)), path


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        (
            {"issuer": {"url": "http://x", "audiences": ["a"]}},
            'jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https',
        ),
        ({"issuer": {"audiences": ["a"]}}, "jwt[0].issuer.url: Required value"),
        (
            {"issuer": {"url": "https://kubernetes.default.svc", "audiences": ["a"]}},
            "URL must not overlap with disallowed issuers",
        ),
        ({"issuer": {"url": "https://x"}}, "at least one jwt[0].issuer.audiences is required"),
        (
            {"issuer": {"url": "https://x", "audiences": ["a", "b"]}},
            "audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        ({"issuer": {"url": "https://x", "audiences": ["a", "a"], "audienceMatchPolicy": "MatchAny"}}, "Duplicate value"),
        (
            {"issuer": {"url": "https://x/", "discoveryURL": "https://x", "audiences": ["a"]}},
            "discoveryURL must be different from URL",
        ),
        ({"claimMappings": {}}, "jwt[0].claimMappings.username: Required value: claim or expression is required"),
        ({"claimMappings": {"username": {"claim": "sub"}}}, "prefix is required when claim is set"),
        ({"claimMappings": {"username": {"claim": "a", "prefix": "", "expression": "claims.a"}}}, "can't both be set"),
        ({"claimMappings": {"username": {"expression": "claims.email"}}}, "claims.email_verified must be used"),
        ({"claimMappings": {"username": {"expression": "claim.x"}}}, "undeclared reference to 'claim'"),
        (
            {"claimMappings": {"username": {"claim": "a", "prefix": ""}, "extra": [{"key": "a", "valueExpression": "'x'"}]}},
            "must be a domain-prefixed path",
        ),
        (
            {
                "claimMappings": {
                    "username": {"claim": "a", "prefix": ""},
                    "extra": [{"key": "x.k8s.io/a", "valueExpression": "'x'"}],
                }
            },
            "are reserved for Kubernetes use",
        ),
        ({"claimValidationRules": [{}]}, "claim or expression is required"),
        ({"claimValidationRules": [{"expression": "claims.a"}]}, "must evaluate to bool"),
        ({"userValidationRules": [{"expression": "user.nope"}]}, "undefined field 'nope'"),
        ({"more": 1}, 'unknown field "jwt[0].more"'),
    ],
)
def test_invalid_authentication_configurations(tmp_path: Path, changes: dict[str, Any], wrong: str) -> None:
    authenticator = {
        "issuer": {"url": "https://x", "audiences": ["a"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    }
    path = tmp_path / "authentication.yaml"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "AuthenticationConfiguration",
                "jwt": [{**authenticator, **changes}],
            }
        )
    )
    with pytest.raises(OptionError) as caught:
        Cluster(profile="apiserver", authentication_config=path)
    assert wrong in str(caught.value)


@pytest.mark.parametrize(
    ("gate", "wrong"),
    [
        (
            "StructuredAuthenticationConfiguration",
            "set --feature-gates=StructuredAuthenticationConfiguration=true to use authentication-config file",
        ),
        (
            "AnonymousAuthConfigurableEndpoints",
            "anonymous: Forbidden: anonymous is not supported when AnonymousAuthConfigurableEnpoints feature gate is disabled",
        ),
    ],
)
def test_files_need_the_gates_of_1_33(tmp_path: Path, gate: str, wrong: str) -> None:
    path = tmp_path / "authentication.yaml"
    anonymous = {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True},
    }
    path.write_text(json.dumps(anonymous))
    with pytest.raises(OptionError) as caught:
        Cluster(profile="apiserver", version="1.33", feature_gates={gate: False}, authentication_config=path)
    assert wrong in str(caught.value)


def test_anonymous_cannot_be_set_by_flag_and_file(tmp_path: Path) -> None:
    path = tmp_path / "authentication.yaml"
    path.write_text(
        json.dumps(
            {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "anonymous": {"enabled": True}}
        )
    )
    with pytest.raises(OptionError, match="--anonymous-auth flag cannot be set"):
        Cluster(profile="apiserver", authentication_config=path, anonymous_auth=True)

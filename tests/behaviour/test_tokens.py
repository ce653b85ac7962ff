"""Service account tokens: claims, verification, audiences, and bound objects."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from tests.behaviour.conftest import Api, Reply

ISSUER = "https://kubernetes.default.svc"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
def account(api: Api) -> dict[str, Any]:
    meta: dict[str, Any] = api.post(api.path("serviceaccounts"), {"metadata": {"name": "robot"}}).at("metadata")
    return meta


def ask(api: Api, **spec: Any) -> Reply:
    return api.post(api.path("serviceaccounts", "robot", "token"), {"spec": spec})


def token_of(reply: Reply) -> str:
    assert reply.status == 201, reply.body
    return str(reply.at("status", "token"))


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def claims(token: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(decoded(token.split(".")[1]))
    return found


def review(api: Api, token: str, *audiences: str) -> Any:
    return api.post(REVIEWS, {"spec": {"token": token, "audiences": list(audiences)}}).at("status")


def verify(key: dict[str, str], token: str) -> None:
    """Raises InvalidSignature if the token was not signed with this JSON Web Key."""
    signed, _, signature = token.rpartition(".")
    if key["kty"] == "RSA":
        numbers = rsa.RSAPublicNumbers(*(int.from_bytes(decoded(key[name]), "big") for name in ("e", "n")))
        numbers.public_key().verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    else:
        x, y = (int.from_bytes(decoded(key[name]), "big") for name in ("x", "y"))
        public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        raw = decoded(signature)
        der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        public.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))


def test_token_signature_verifies_with_the_published_jwks(api: Api, account: dict[str, Any]) -> None:
    token = token_of(ask(api))
    header = json.loads(decoded(token.split(".")[0]))
    keys = api.get("/openid/v1/jwks", headers={"Accept": "application/jwk-set+json"}).at("keys")
    (key,) = [key for key in keys if key["kid"] == header["kid"]]
    assert key["alg"] == header["alg"]
    verify(key, token)


def test_claims_of_a_service_account_token(api: Api, account: dict[str, Any]) -> None:
    said = claims(token_of(ask(api, audiences=["a", "b"], expirationSeconds=1200)))
    assert said["exp"] - said["iat"] == 1200
    assert said["nbf"] == said["iat"]
    assert (said["iss"], said["aud"], said["sub"]) == (ISSUER, ["a", "b"], f"system:serviceaccount:{api.namespace}:robot")
    whose = {"name": "robot", "uid": account["uid"]}
    assert said["kubernetes.io"] == {"namespace": api.namespace, "serviceaccount": whose}
    by_default = claims(token_of(ask(api)))
    assert (by_default["aud"], by_default["exp"] - by_default["iat"]) == ([ISSUER], 3600)


def test_token_review_of_a_service_account_token(api: Api, account: dict[str, Any]) -> None:
    token = token_of(ask(api))
    status = review(api, token)
    assert (status["authenticated"], status["audiences"]) == (True, [ISSUER])
    assert status["user"]["username"] == f"system:serviceaccount:{api.namespace}:robot"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{api.namespace}", "system:authenticated"]
    assert (status["user"]["uid"], status["user"]["groups"]) == (account["uid"], groups)
    credential = f"JTI={claims(token)['jti']}"
    assert status["user"]["extra"] == {"authentication.kubernetes.io/credential-id": [credential]}


def test_token_review_audiences(api: Api, account: dict[str, Any]) -> None:
    token = token_of(ask(api, audiences=["a", "b", "c"]))
    assert review(api, token, "c", "x", "a")["audiences"] == ["c", "a"]
    stranger = review(api, token, "x")
    assert not stranger.get("authenticated")
    assert "is invalid for the target audiences" in stranger["error"]


@pytest.mark.parametrize(("seconds", "why"), [(599, "less than 10 minutes"), (2**32 + 1, "larger than 2^32 seconds")])
def test_expiration_seconds_out_of_range_are_rejected(api: Api, account: dict[str, Any], seconds: int, why: str) -> None:
    reply = ask(api, expirationSeconds=seconds)
    text = f"spec.expirationSeconds: Invalid value: {seconds}: may not specify a duration {why}"
    assert (reply.status, reply.at("message")) == (422, f'TokenRequest.authentication.k8s.io "" is invalid: {text}')


def test_bound_token_is_invalid_after_the_bound_object_is_deleted(api: Api, account: dict[str, Any]) -> None:
    secret = api.post(api.path("secrets"), {"metadata": {"name": "s"}}).at("metadata")
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
    token = token_of(ask(api, boundObjectRef=reference))
    assert claims(token)["kubernetes.io"]["secret"] == {"name": "s", "uid": secret["uid"]}
    assert review(api, token)["authenticated"]
    api.delete(api.path("secrets", "s"))
    fresh = "other audience"  # under which a real server has not kept its last answer
    assert not review(api, token, ISSUER, fresh).get("authenticated")
    gone = ask(api, boundObjectRef=reference)
    assert (gone.status, gone.at("message")) == (404, 'secrets "s" not found')


@pytest.mark.parametrize(
    ("reference", "status", "message"),
    [
        ({"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "x"}, 409, "the UID in the bound object reference (x) does not match"),
        ({"kind": "ConfigMap", "apiVersion": "v1", "name": "s"}, 400, "cannot bind token to object of type /v1, Kind=ConfigMap"),
        ({"kind": "Secret", "apiVersion": "v1", "name": ""}, 400, "Name parameter required."),
        ({"kind": "Secret", "apiVersion": "v1", "name": "absent"}, 404, 'secrets "absent" not found'),
    ],
)  # fmt: skip
def test_invalid_bound_object_references_are_rejected(
    api: Api, account: dict[str, Any], reference: dict[str, str], status: int, message: str
) -> None:
    api.post(api.path("secrets"), {"metadata": {"name": "s"}})
    reply = ask(api, boundObjectRef=reference)
    assert reply.status == status
    assert message in reply.at("message")


def test_token_request_for_a_missing_account_returns_404(api: Api) -> None:
    reply = ask(api)
    assert (reply.status, reply.at("message")) == (404, 'serviceaccounts "robot" not found')

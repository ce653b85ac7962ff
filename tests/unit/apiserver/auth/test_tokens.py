"""Signing and verification of tokens, and the public key set."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from fakekube.apiserver.auth.service_accounts import LEGACY_ISSUER, InvalidSignatureError, Signer, issuer_of


def _decoded(part: str) -> dict[str, object]:
    return json.loads(urlsafe_b64decode(part + "=="))


def _encoded(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_signed_tokens_can_be_verified() -> None:
    signer = Signer(["https://issuer"])
    token = signer.sign({"sub": "ä"})
    assert signer.verify(token) == {"sub": "ä", "iss": "https://issuer"}
    assert signer.verify(signer.sign({"iss": LEGACY_ISSUER})) == {"iss": LEGACY_ISSUER}
    assert issuer_of(token) == "https://issuer"
    assert _decoded(token.split(".")[0]) == {"alg": "ES256", "kid": signer.key_id}


def test_signers_share_a_key_per_process() -> None:
    assert Signer(["b"]).verify(Signer(["a"]).sign({}))["iss"] == "a"


def _with_claims(token: str) -> str:
    head, payload, signature = token.split(".")
    return ".".join([head, _encoded({**_decoded(payload), "sub": "admin"}), signature])


def _with_header(**changes: object):
    def change(token: str) -> str:
        head, payload, signature = token.split(".")
        return ".".join([_encoded({**_decoded(head), **changes}), payload, signature])

    return change


PRIMITIVE = "go-jose/go-jose: error in cryptographic primitive"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_with_claims, PRIMITIVE),
        (_with_header(alg="none"), PRIMITIVE),
        (_with_header(alg="HS256"), PRIMITIVE),
        (_with_header(kid="other"), "invalid signature, no keys found"),
        (_with_header(typ="JWT"), PRIMITIVE),
        (lambda token: token[:-4], PRIMITIVE),
        (lambda token: token.rpartition(".")[0] + ".", PRIMITIVE),
        (lambda token: "x" + token, "invalid bearer token"),
        (lambda token: token + "=", "invalid bearer token"),
        (lambda token: "", "invalid bearer token"),
        (lambda token: "..", "invalid bearer token"),
        (lambda token: f"{_encoded([])}.{_encoded({})}.AA", "invalid bearer token"),
    ],
)
def test_modified_tokens_are_rejected(change, problem: str) -> None:
    signer = Signer()
    with pytest.raises(InvalidSignatureError) as caught:
        signer.verify(change(signer.sign({"sub": "x"})))
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    "token", ["", "a", "a.b", "a.b.c", "a.e30.c.d", f"a.{_encoded([])}.c", f"a.{_encoded({'iss': 1})}.c", "a.e30.c"]
)
def test_issuer_of_malformed_tokens_is_none(token: str) -> None:
    assert issuer_of(token) is None


def test_key_set_verifies_tokens() -> None:
    """With what the keys say, and nothing else of ours."""
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    signer = Signer()
    (key,) = signer.key_set()["keys"]
    assert (key["kty"], key["crv"], key["alg"], key["use"], key["kid"]) == ("EC", "P-256", "ES256", "sig", signer.key_id)
    x, y = (int.from_bytes(urlsafe_b64decode(key[name] + "=")) for name in ("x", "y"))
    signed, _, signature = signer.sign({"a": 1}).rpartition(".")
    raw = urlsafe_b64decode(signature + "==")
    encoded = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key().verify(encoded, signed.encode(), ec.ECDSA(SHA256()))

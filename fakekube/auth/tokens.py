"""Service account tokens: JSON Web Tokens signed with the key of this process.

The key is ECDSA P-256 and made when it is first needed; clusters of one process share it, as a token names
the service account and its uid and so never fits another cluster's. Checking a token is in
`authentication`.

Specified by: k8s.io/kubernetes/pkg/serviceaccount/jwt.go (key ids, algorithms), RFC 7515, RFC 7517, RFC 7518.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

__all__ = ["ALGORITHM", "DEFAULT_ISSUER", "InvalidSignatureError", "Signer", "issuer_of"]

DEFAULT_ISSUER: Final = "https://kubernetes.default.svc"
ALGORITHM: Final = "ES256"
_CURVE: Final = "P-256"
_COORDINATE_BYTES: Final = 32


class InvalidSignatureError(Exception):
    """The token was not signed with this key; the text is the real server's."""


class Signer:
    """Signs claims, and verifies what was signed.

    Args:
        issuer: the URL that goes into `iss`.
        key: a P-256 key; by default the one of this process.
    """

    def __init__(self, issuer: str = DEFAULT_ISSUER, key: EllipticCurvePrivateKey | None = None) -> None:
        self.issuer = issuer
        self._given_key = key

    @property
    def _key(self) -> EllipticCurvePrivateKey:
        return self._given_key or _process_key()

    @property
    def key_id(self) -> str:
        """The `kid` of the key: the hash of its public part."""
        return _key_id(self._key)

    def sign(self, claims: dict[str, Any]) -> str:
        """A token with these claims and the issuer."""
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256

        header = {"alg": ALGORITHM, "kid": self.key_id}
        signed = f"{_encode_object(header)}.{_encode_object({**claims, 'iss': self.issuer})}"
        r, s = utils.decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(SHA256())))
        return f"{signed}.{_encode(_coordinate(r) + _coordinate(s))}"

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token of this issuer (see `issuer_of`).

        Raises InvalidSignatureError.
        """
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256

        signed, _, signature = token.rpartition(".")
        head, _, payload = signed.partition(".")
        try:
            header, claims, raw = _decode_object(head), _decode_object(payload), _decode(signature)
        except ValueError:
            raise InvalidSignatureError("invalid bearer token") from None
        if header.get("kid", self.key_id) != self.key_id:
            raise InvalidSignatureError("invalid signature, no keys found")
        refused = InvalidSignatureError("go-jose/go-jose: error in cryptographic primitive")
        if header.get("alg") != ALGORITHM or len(raw) != 2 * _COORDINATE_BYTES:
            raise refused
        r, s = (int.from_bytes(part) for part in (raw[:_COORDINATE_BYTES], raw[_COORDINATE_BYTES:]))
        try:
            self._key.public_key().verify(utils.encode_dss_signature(r, s), signed.encode(), ec.ECDSA(SHA256()))
        except InvalidSignature:
            raise refused from None
        return claims

    def key_set(self) -> dict[str, Any]:
        """The public key as a JSON Web Key Set, its members in the order of the real server."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "use": "sig",
            "kty": "EC",
            "kid": self.key_id,
            "crv": _CURVE,
            "alg": ALGORITHM,
            "x": _encode(_coordinate(numbers.x)),
            "y": _encode(_coordinate(numbers.y)),
        }
        return {"keys": [key]}


def issuer_of(token: str) -> str | None:
    """The `iss` of a token, not verified; None if it is no token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        issuer = _decode_object(parts[1]).get("iss")
    except ValueError:
        return None
    return issuer if isinstance(issuer, str) else None


@cache
def _process_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


@cache
def _key_id(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return _encode(hashlib.sha256(der).digest())


def _coordinate(number: int) -> bytes:
    return number.to_bytes(_COORDINATE_BYTES)


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _encode_object(value: dict[str, Any]) -> str:
    return _encode(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def _decode(text: str) -> bytes:
    """Raises ValueError."""
    if "=" in text:
        raise ValueError("padding is not allowed")
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except Base64Error as problem:
        raise ValueError(str(problem)) from None


def _decode_object(text: str) -> dict[str, Any]:
    """Raises ValueError."""
    value = orjson.loads(_decode(text))
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value

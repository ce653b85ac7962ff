"""Implements JSON Web Signatures (parsing, signing, verifying) and JSON Web Keys.

The package cryptography is imported when a key is first used: most clusters never sign a token.

Specified by: RFC 7515, RFC 7517, RFC 7518; github.com/go-jose/go-jose for the texts of errors.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    PrivateKey = EllipticCurvePrivateKey | RSAPrivateKey
    PublicKey = EllipticCurvePublicKey | RSAPublicKey

OPENID_CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"


#: Go skips line ends in base64.
_not_base64url: Final = re.compile(r"[^A-Za-z0-9_\-\r\n]").search
_CRYPTOGRAPHIC_ERROR: Final = "go-jose/go-jose: error in cryptographic primitive"

#: Algorithm → name of the hash, size of a coordinate in bytes (elliptic curves only).
_ALGORITHMS: Final = {
    "ES256": ("SHA256", 32), "ES384": ("SHA384", 48), "ES512": ("SHA512", 66),
    "RS256": ("SHA256", 0), "RS384": ("SHA384", 0), "RS512": ("SHA512", 0),
    "PS256": ("SHA256", 0), "PS384": ("SHA384", 0), "PS512": ("SHA512", 0),
}  # fmt: skip
#: Name of a curve in the library → algorithm and name in a JSON Web Key.
_CURVES: Final = {"secp256r1": ("ES256", "P-256"), "secp384r1": ("ES384", "P-384"), "secp521r1": ("ES512", "P-521")}


class InvalidSignatureError(Exception):
    """The token was not signed with this key; the text is the real server's."""


class MalformedTokenError(InvalidSignatureError):
    """The text is not a token."""


class Token(NamedTuple):
    """A parsed token, not verified."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes


def parse(token: str) -> Token | None:
    """Parses a compact token; None if it is malformed."""
    signed, _, signature = token.rpartition(".")
    head, dot, payload = signed.partition(".")
    if not dot or "." in payload:
        return None
    try:
        return Token(decode_object(head), decode_object(payload), signed.encode(), decode(signature))
    except ValueError:
        return None


def algorithm_of(key: PrivateKey | PublicKey) -> str:
    """Returns the algorithm of a key. Raises ValueError for unsupported curves."""
    curve = getattr(key, "curve", None)
    if curve is None:
        return "RS256"
    if curve.name not in _CURVES:
        raise ValueError("unknown private key curve, must be 256, 384, or 521")
    return _CURVES[curve.name][0]


def sign(header: dict[str, Any], claims: dict[str, Any], key: PrivateKey) -> str:
    """Signs a compact token; `alg` comes first in its header."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

    algorithm = algorithm_of(key)
    name, size = _ALGORITHMS[algorithm]
    digest = getattr(hashes, name)()
    signed = f"{_encode_object({'alg': algorithm, **header})}.{_encode_object(claims)}"
    if isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(signed.encode(), padding.PKCS1v15(), digest)
    else:
        r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(digest)))
        signature = r.to_bytes(size) + s.to_bytes(size)
    return f"{signed}.{encode(signature)}"


def verify(token: Token, key: PublicKey) -> None:
    """Raises InvalidSignatureError if the token was not signed with this key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

    algorithm = token.header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
        raise InvalidSignatureError(_CRYPTOGRAPHIC_ERROR)
    name, size = _ALGORITHMS[algorithm]
    digest = getattr(hashes, name)()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            if size:
                raise InvalidSignatureError(_CRYPTOGRAPHIC_ERROR)
            scheme = padding.PKCS1v15() if algorithm[0] == "R" else padding.PSS(padding.MGF1(digest), digest.digest_size)
            key.verify(token.signature, token.signed, scheme, digest)
        else:
            if not size or algorithm != algorithm_of(key) or len(token.signature) != 2 * size:
                raise InvalidSignatureError(_CRYPTOGRAPHIC_ERROR)
            r, s = (int.from_bytes(part) for part in (token.signature[:size], token.signature[size:]))
            key.verify(utils.encode_dss_signature(r, s), token.signed, ec.ECDSA(digest))
    except InvalidSignature:
        raise InvalidSignatureError(_CRYPTOGRAPHIC_ERROR) from None


# --- Keys -------------------------------------------------------------------------------------------------------------


def json_web_key(key: PublicKey, key_id: str) -> dict[str, Any]:
    """Returns a public key as a JSON Web Key, its fields in the order of the real server."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    algorithm = algorithm_of(key)
    if isinstance(key, rsa.RSAPublicKey):
        rsa_numbers = key.public_numbers()
        own = {"kty": "RSA", "kid": key_id, "alg": algorithm}
        own |= {"n": encode(_shortest(rsa_numbers.n)), "e": encode(_shortest(rsa_numbers.e))}
    else:
        numbers, size = key.public_numbers(), _ALGORITHMS[algorithm][1]
        own = {"kty": "EC", "kid": key_id, "crv": _CURVES[key.curve.name][1], "alg": algorithm}
        own |= {"x": encode(numbers.x.to_bytes(size)), "y": encode(numbers.y.to_bytes(size))}
    return {"use": "sig", **own}


def key_of(value: dict[str, Any]) -> PublicKey:
    """Returns the public key of a JSON Web Key. Raises ValueError for invalid keys."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        if value.get("kty") == "RSA":
            numbers = (int.from_bytes(decode(value[part])) for part in ("e", "n"))
            return rsa.RSAPublicNumbers(*numbers).public_key()
        curves = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
        x, y = (int.from_bytes(decode(value[part])) for part in ("x", "y"))
        return ec.EllipticCurvePublicNumbers(x, y, curves[value["crv"]]).public_key()
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"not a JSON Web Key: {problem}") from None


def _shortest(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)


# --- base64url --------------------------------------------------------------------------------------------------------


def encode(data: bytes) -> str:
    """Encodes base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Decodes base64url without padding. Raises ValueError."""
    if _not_base64url(text):
        raise ValueError("illegal base64 data")
    try:
        text = text.replace("\r", "").replace("\n", "")
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except Base64Error as problem:
        raise ValueError(str(problem)) from None


def _encode_object(value: dict[str, Any]) -> str:
    return encode(orjson.dumps(value))


def decode_object(text: str) -> dict[str, Any]:
    """Decodes a JSON object in base64url. Raises ValueError."""
    value = orjson.loads(decode(text))
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value

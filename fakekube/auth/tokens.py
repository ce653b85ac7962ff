"""Service account tokens: JSON Web Tokens signed with the cluster's key.

Without --service-account-signing-key-file the key is ECDSA P-256, made when it is first needed; clusters of one process
share it, as a token names the service account and its uid and so never fits another cluster's. Who may use a token is
checked in `service_accounts`.

Specified by: k8s.io/kubernetes/pkg/serviceaccount/jwt.go (key ids, algorithms).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from fakekube.auth import jose
from fakekube.auth.jose import InvalidSignatureError, MalformedTokenError

if TYPE_CHECKING:
    from fakekube.auth.jose import PrivateKey, PublicKey

__all__ = ["DEFAULT_ISSUER", "LEGACY_ISSUER", "InvalidSignatureError", "MalformedTokenError", "Signer", "issuer_of"]

DEFAULT_ISSUER: Final = "https://kubernetes.default.svc"
#: Of tokens in Secrets.
LEGACY_ISSUER: Final = "kubernetes/serviceaccount"


class Signer:
    """Signs claims, and verifies what was signed.

    Args:
        issuers: URLs that `iss` may have; tokens are signed with the first.
        key: what signs; by default the key of this process.
        keys: public keys that verify; by default that of `key`.
    """

    def __init__(
        self, issuers: Sequence[str] = (DEFAULT_ISSUER,), key: PrivateKey | None = None, keys: Sequence[PublicKey] = (),
    ) -> None:
        self.issuers = tuple(issuers)
        self._given_key = key
        self._given_keys = tuple(keys)

    @property
    def issuer(self) -> str:
        """The issuer of new tokens."""
        return self.issuers[0]

    @property
    def _key(self) -> PrivateKey:
        return self._given_key or _process_key()

    @cached_property
    def _keys(self) -> Sequence[tuple[str, PublicKey]]:
        return [(_key_id(key), key) for key in self._given_keys or (self._key.public_key(),)]

    @cached_property
    def key_id(self) -> str:
        """The `kid` of the key that signs: the hash of its public part."""
        return _key_id(self._key.public_key())

    @property
    def algorithms(self) -> list[str]:
        """Of the keys that verify, each once, sorted."""
        return sorted({jose.algorithm_of(key) for _, key in self._keys})

    def sign(self, claims: dict[str, Any]) -> str:
        """A service account token with these claims and, if they name none, the issuer."""
        signed = {"iss": self.issuer, **claims}
        return jose.sign({"kid": self.key_id}, dict(sorted(signed.items())), self._key)

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token of one of the issuers (see `issuer_of`).

        Raises InvalidSignatureError, MalformedTokenError.
        """
        parsed = jose.parse(token)
        if parsed is None:
            raise MalformedTokenError("invalid bearer token")
        key_id = parsed.header.get("kid")
        keys = [key for known, key in self._keys if not key_id or known == key_id]
        if not keys:
            raise InvalidSignatureError("invalid signature, no keys found")
        problems = []
        for key in keys:
            try:
                jose.verify(parsed, key)
            except InvalidSignatureError as problem:
                problems.append(str(problem))
            else:
                return parsed.claims
        texts = list(dict.fromkeys(problems))
        raise InvalidSignatureError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")

    def key_set(self) -> dict[str, Any]:
        """The public keys as a JSON Web Key Set."""
        return {"keys": [jose.json_web_key(key, key_id) for key_id, key in self._keys]}


def issuer_of(token: str) -> str | None:
    """The `iss` of a token, not verified; None if it is no token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        issuer = jose.decode_object(parts[1]).get("iss")
    except ValueError:
        return None
    return issuer if isinstance(issuer, str) else None


@cache
def _process_key() -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key_id(key: PublicKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return jose.encode(hashlib.sha256(der).digest())

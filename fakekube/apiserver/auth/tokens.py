"""Signs and verifies service account tokens: JSON Web Tokens with the cluster's key.

Without --service-account-signing-key-file the key is ECDSA P-256, generated on first use; the clusters of a process
share it, because a token contains the uid of its service account and so is not valid in another cluster.
`service_accounts` checks the claims.

Specified by: k8s.io/kubernetes/pkg/serviceaccount/jwt.go (key ids, algorithms).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from fakekube.apiserver.auth import jose
from fakekube.apiserver.auth.jose import InvalidSignatureError, MalformedTokenError

if TYPE_CHECKING:
    from fakekube.apiserver.auth.jose import PrivateKey, PublicKey

__all__ = ["DEFAULT_ISSUER", "LEGACY_ISSUER", "InvalidSignatureError", "MalformedTokenError", "Signer", "issuer_of"]

DEFAULT_ISSUER: Final = "https://kubernetes.default.svc"
#: The issuer of tokens in Secrets.
LEGACY_ISSUER: Final = "kubernetes/serviceaccount"


class Signer:
    """Signs and verifies tokens.

    Args:
        issuers: The accepted issuer URLs; tokens are signed with the first.
        key: The signing key; by default the key of this process.
        keys: The public keys for verification; by default that of `key`.
    """

    def __init__(
        self, issuers: Sequence[str] = (DEFAULT_ISSUER,), key: PrivateKey | None = None, keys: Sequence[PublicKey] = ()
    ) -> None:
        self.issuers = tuple(issuers)
        self._given_key = key
        self._given_keys = tuple(keys)

    @property
    def issuer(self) -> str:
        """Returns the issuer of new tokens."""
        return self.issuers[0]

    @property
    def _key(self) -> PrivateKey:
        return self._given_key or _process_key()

    @cached_property
    def _keys(self) -> Sequence[tuple[str, PublicKey]]:
        return [(_key_id(key), key) for key in self._given_keys or (self._key.public_key(),)]

    @cached_property
    def key_id(self) -> str:
        """Returns the `kid` of the signing key: the hash of its public key."""
        return _key_id(self._key.public_key())

    @property
    def algorithms(self) -> list[str]:
        """Returns the sorted algorithms of the verification keys."""
        return sorted({jose.algorithm_of(key) for _, key in self._keys})

    def sign(self, claims: dict[str, Any]) -> str:
        """Signs a service account token with these claims; the default `iss` is the issuer."""
        signed = {"iss": self.issuer, **claims}
        return jose.sign({"kid": self.key_id}, dict(sorted(signed.items())), self._key)

    def verify(self, token: str) -> dict[str, Any]:
        """Verifies a token of one of the issuers (see `issuer_of`) and returns its claims.

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
        """Returns the public keys as a JSON Web Key Set."""
        return {"keys": [jose.json_web_key(key, key_id) for key_id, key in self._keys]}


def issuer_of(token: str) -> str | None:
    """Returns the unverified `iss` of a token; None if it is malformed."""
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

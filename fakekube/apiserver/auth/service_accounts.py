"""Service account tokens: signing and verification, and the claims of those in Secrets.

`apis.core.serviceaccounts.token` makes the claims of the others.

Tokens are JSON Web Tokens. Without --service-account-signing-key-file the key is ECDSA P-256, generated on first use. The
clusters of a process share it, but for those that are isolated: forks have the same service accounts with the same uids.

A token is invalid when its service account or its bound object is deleted, or when it expires by the cluster's clock. The node
of a pod's token is added to the user's extra and not checked.

Specified by: k8s.io/kubernetes/pkg/serviceaccount (claims.go, legacy.go, jwt.go) and
k8s.io/apiserver/pkg/authentication/serviceaccount/util.go.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.errors import status
from fakekube.apis.well_known import INVALID_SINCE_LABEL_KEY, service_account_groups, service_account_username
from fakekube.apiserver.auth import identities, jose
from fakekube.apiserver.auth.identities import AuthenticatedToken, BadCredentialsError, Getter, common_audiences, go_list
from fakekube.apiserver.auth.jose import InvalidSignatureError, MalformedTokenError
from fakekube.apiserver.endpoints.request import User
from fakekube.base.clock import Clock
from fakekube.base.golang.strings import aggregate_errors

if TYPE_CHECKING:
    from fakekube.apiserver.auth.jose import PrivateKey, PublicKey


DEFAULT_ISSUER: Final = "https://kubernetes.default.svc"
#: The issuer of tokens in Secrets.
LEGACY_ISSUER: Final = "kubernetes/serviceaccount"


class Signer:
    """Signs and verifies tokens.

    Args:
        issuers: the accepted issuer URLs; tokens are signed with the first.
        key: the signing key; by default the key of this process.
        keys: the public keys for verification; by default that of `key`.
    """

    def __init__(
        self, issuers: Sequence[str] = (DEFAULT_ISSUER,), key: PrivateKey | None = None, keys: Sequence[PublicKey] = ()
    ) -> None:
        self.issuers = tuple(issuers)
        self._given_key = key
        self._given_keys = tuple(keys)
        self._isolated = False

    def isolate(self) -> None:
        """Signs with a key of this cluster's own, unless one was given. Tokens in Secrets that the key of the process has signed
        are still accepted: they are compared with the Secret."""
        self._isolated = self._given_key is None

    @property
    def issuer(self) -> str:
        """The issuer of new tokens."""
        return self.issuers[0]

    @property
    def _key(self) -> PrivateKey:
        return self._given_key or (self._own_key if self._isolated else _process_key())

    @cached_property
    def _own_key(self) -> PrivateKey:
        return _generate_key()

    @cached_property
    def _keys(self) -> Sequence[tuple[str, PublicKey]]:
        return [(_key_id(key), key) for key in self._given_keys or (self._key.public_key(),)]

    @cached_property
    def key_id(self) -> str:
        """The `kid` of the signing key: the hash of its public key."""
        return _key_id(self._key.public_key())

    @property
    def algorithms(self) -> list[str]:
        """The sorted algorithms of the verification keys."""
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
        if not keys and self._isolated and issuer_of(token) == LEGACY_ISSUER:
            keys = [_process_key().public_key()]
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
        raise InvalidSignatureError(aggregate_errors(problems))

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
    return _generate_key()


def _generate_key() -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key_id(key: PublicKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return jose.encode(hashlib.sha256(der).digest())


_EXTRA: Final = "authentication.kubernetes.io/"
_LEGACY: Final = "kubernetes.io/serviceaccount/"
#: The allowed clock skew between signer and verifier.
_LEEWAY: Final = timedelta(minutes=1)
_KEPT_TOKENS: Final = 1024


class ServiceAccountTokens:
    """Authenticates the service account tokens of one cluster.

    Args:
        objects: gets service accounts and the objects to which tokens are bound.
        signer: verifies tokens.
        clock: the clock for the expiration of tokens.
        audiences: the audiences of the API server, and of tokens without any.
    """

    def __init__(self, objects: Getter, signer: Signer, clock: Clock, audiences: Sequence[str]) -> None:
        self._objects = objects
        self._signer = signer
        self._clock = clock
        self._audiences = tuple(audiences)

    @cached_property
    def _verified(self) -> Callable[[str], dict[str, Any]]:
        """The claims of a token, as `Signer.verify`."""
        return lru_cache(_KEPT_TOKENS)(self._signer.verify)

    def authenticate(self, token: str, audiences: Sequence[str]) -> AuthenticatedToken | None:
        """See `identities.TokenAuthenticator`."""
        issuer = issuer_of(token)
        if issuer not in self._signer.issuers and issuer != LEGACY_ISSUER:
            return None
        try:
            claims = self._verified(token)
        except MalformedTokenError:
            return None
        except InvalidSignatureError as invalid:
            raise BadCredentialsError(str(invalid)) from None
        audience = claims.get("aud") or self._audiences
        given = (audience,) if isinstance(audience, str) else tuple(audience)
        common = common_audiences(audiences, given)
        if not common:
            problem = f"token audiences {go_list(given)} is invalid for the target audiences {go_list(audiences)}"
            raise BadCredentialsError(problem)
        user = self._legacy_user(token, claims) if issuer == LEGACY_ISSUER else self._bound_user(claims)
        return AuthenticatedToken(identities.with_authenticated(user), common)

    # --- Bound tokens -------------------------------------------------------------------------------------------------

    def _bound_user(self, claims: Mapping[str, Any]) -> User:
        _check_times(claims, self._clock.now())
        private = claims.get("kubernetes.io") or {}
        namespace = private.get("namespace", "")
        account = private.get("serviceaccount") or {}
        self._check_account(namespace, account.get("name", ""), account.get("uid", ""))
        self._check_bound_objects(namespace, private)
        return _user(namespace, account, private, claims.get("jti"))

    def _check_account(self, namespace: str, name: str, uid: str) -> None:
        found = self._objects.get("", "serviceaccounts", namespace, name)
        if found is None:
            raise BadCredentialsError(status.not_found("", "serviceaccounts", name).message)
        found_uid = found["metadata"]["uid"]
        if found_uid != uid:
            raise BadCredentialsError(f"service account UID ({found_uid}) does not match claim ({uid})")
        if self._is_past_deletion(found):
            raise BadCredentialsError(f"service account {namespace}/{name} has been deleted")

    def _check_bound_objects(self, namespace: str, private: Mapping[str, Any]) -> None:
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
            if self._is_past_deletion(found):
                raise BadCredentialsError("service account token has been invalidated")

    def _is_past_deletion(self, obj: Mapping[str, Any]) -> bool:
        """Reports whether the deletionTimestamp passed longer ago than the leeway."""
        deleted = obj["metadata"].get("deletionTimestamp")
        return deleted is not None and datetime.fromisoformat(deleted) < self._clock.now() - _LEEWAY

    # --- Tokens in Secrets --------------------------------------------------------------------------------------------

    def _legacy_user(self, token: str, claims: Mapping[str, Any]) -> User:
        namespace, secret, name, uid = (
            _claim(claims, key) for key in ("namespace", "secret.name", "service-account.name", "service-account.uid")
        )
        if claims.get("sub") != service_account_username(namespace, name):
            raise BadCredentialsError("sub claim is invalid")
        found = self._objects.get("", "secrets", namespace, secret)
        if found is None or "deletionTimestamp" in found["metadata"]:
            raise BadCredentialsError("Token has been invalidated")
        if (found.get("data") or {}).get("token") != base64.b64encode(token.encode()).decode():
            raise BadCredentialsError("Token does not match server's copy")
        account = self._objects.get("", "serviceaccounts", namespace, name)
        if account is None:
            raise BadCredentialsError(status.not_found("", "serviceaccounts", name).message)
        if "deletionTimestamp" in account["metadata"]:
            raise BadCredentialsError(f"ServiceAccount {namespace}/{name} has been deleted")
        if account["metadata"]["uid"] != uid:
            raise BadCredentialsError(f"ServiceAccount UID ({account['metadata']['uid']}) does not match claim ({uid})")
        if (found["metadata"].get("labels") or {}).get(INVALID_SINCE_LABEL_KEY):
            raise BadCredentialsError(
                f"the token in secret {namespace}/{secret} for service account {namespace}/{name} has been marked invalid. "
                "Use tokens from the TokenRequest API or manually created secret-based tokens, "
                f"or remove the '{INVALID_SINCE_LABEL_KEY}' label from the secret to temporarily allow use of this token"
            )
        return User(service_account_username(namespace, name), uid, service_account_groups(namespace))


_MISSING: Final = {
    "namespace": "namespace", "secret.name": "secretName", "service-account.name": "serviceAccountName",
    "service-account.uid": "serviceAccountUID",
}  # fmt: skip


def _claim(claims: Mapping[str, Any], key: str) -> str:
    value = claims.get(_LEGACY + key)
    if not isinstance(value, str) or not value:
        raise BadCredentialsError(f"{_MISSING[key]} claim is missing")
    return value


def _check_times(claims: Mapping[str, Any], now: datetime) -> None:
    moment, leeway = now.timestamp(), _LEEWAY.total_seconds()
    if moment - leeway > claims.get("exp", moment):
        raise BadCredentialsError("service account token has expired")
    if moment + leeway < claims.get("nbf", moment):
        raise BadCredentialsError("service account token is not valid yet")
    if moment + leeway < claims.get("iat", moment):
        raise BadCredentialsError("service account token is issued in the future")


def _user(namespace: str, account: Mapping[str, Any], private: Mapping[str, Any], token_id: str | None) -> User:
    extra: dict[str, Sequence[str]] = {}
    for kind in ("pod", "node"):
        reference = private.get(kind)
        if reference:
            extra[f"{_EXTRA}{kind}-name"] = (reference["name"],)
            if reference.get("uid"):  # the node of a pod need not exist
                extra[f"{_EXTRA}{kind}-uid"] = (reference["uid"],)
    if token_id:
        extra[identities.CREDENTIAL_ID] = (f"JTI={token_id}",)
    name = service_account_username(namespace, account["name"])
    return User(name, account["uid"], service_account_groups(namespace), extra)

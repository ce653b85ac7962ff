"""Authenticates JWTs of external issuers (OpenID Connect): maps claims to users, with prefixes or CEL expressions.

The keys of an issuer are fetched through its discovery document for its first token, and again when a token is signed
with an unknown key. Expiration follows the cluster's clock.

Specified by: k8s.io/apiserver/plugin/pkg/authenticator/token/oidc/oidc.go, github.com/coreos/go-oidc (verify.go, jwks.go),
OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import orjson

from fakekube.apimachinery.cel.cost.limits import PER_CALL_LIMIT
from fakekube.apimachinery.cel.errors import CostLimitExceeded, EvaluationError
from fakekube.apimachinery.cel.views import wrap_untyped
from fakekube.apis.rest.cluster_access import CallError
from fakekube.apiserver.auth import identities, jose
from fakekube.apiserver.auth.identities import AuthenticatedToken, BadCredentialsError, common_audiences, go_list
from fakekube.apiserver.auth.jose import OPENID_CONFIGURATION_PATH, InvalidSignatureError, Token
from fakekube.apiserver.auth.service_accounts import issuer_of
from fakekube.apiserver.endpoints.request import User
from fakekube.base.clock import Clock
from fakekube.base.golang.strconv import go_quote, json_kind, unmarshal_error
from fakekube.base.golang.timestamps import ZERO_TIME_STRING, print_unix_time

if TYPE_CHECKING:
    from fakekube.apimachinery.cel.evaluation import Program
    from fakekube.apiserver.auth.jose import PublicKey
    from fakekube.apiserver.webhooks.transport import Answer, Transport


_SIGNING_ALGORITHMS: Final = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
_TIMEOUT: Final = 30.0
#: Seconds of clock skew that `nbf` allows.
_NOT_BEFORE_LEEWAY: Final = 60
_KNOWN_CODES: Final = frozenset(status.value for status in HTTPStatus)
_LISTED: Final = "expression must return a string or a list of strings"


@dataclass(slots=True, frozen=True)
class Expression:
    """A compiled CEL expression."""

    source: str
    program: Program
    message: str = ""
    """The error message of a violated rule."""


@dataclass(slots=True, frozen=True)
class ClaimMapping:
    """The source of a value: a claim with a prefix, or an expression. Without both the value is not mapped."""

    claim: str = ""
    prefix: str = ""
    expression: Expression | None = None


@dataclass(slots=True, frozen=True)
class JWTConfiguration:
    """An issuer, and the mapping of its claims to users."""

    issuer: str
    audiences: tuple[str, ...]
    username: ClaimMapping
    discovery_url: str = ""
    """The URL of the discovery document, if it is not at the issuer."""
    certificate_authority: str = ""
    """The CA bundle in PEM; "" for the CAs of the system."""
    groups: ClaimMapping = field(default_factory=ClaimMapping)
    uid: ClaimMapping = field(default_factory=ClaimMapping)
    extra: Sequence[tuple[str, Expression]] = ()
    required_claims: Mapping[str, str] = field(default_factory=dict)
    claim_rules: Sequence[Expression] = ()
    user_rules: Sequence[Expression] = ()


class JWTAuthenticator:
    """Authenticates the tokens of one issuer.

    Args:
        configuration: the issuer and its claim mappings.
        clock: the clock for the expiration of tokens.
        audiences: the audiences of the API server: a token is valid for them, regardless of its own.
    """

    def __init__(self, configuration: JWTConfiguration, clock: Clock, audiences: Sequence[str]) -> None:
        self._configuration = configuration
        self._clock = clock
        self._audiences = tuple(audiences)
        self._keys = _RemoteKeys(configuration)

    def authenticate(self, token: str, audiences: Sequence[str]) -> AuthenticatedToken | None:
        """See `identities.TokenAuthenticator`."""
        common = common_audiences(audiences, self._audiences)
        if issuer_of(token) != self._configuration.issuer or not common:
            return None
        claims = self._verify(token)
        user = self._user(claims)
        return AuthenticatedToken(identities.with_authenticated(user), common)

    # --- The token ----------------------------------------------------------------------------------------------------

    def _verify(self, token: str) -> dict[str, Any]:
        """Verifies a token and returns its claims."""
        parsed = jose.parse(token)
        if parsed is None:
            raise BadCredentialsError("oidc: verify token: oidc: malformed jwt")
        algorithm = str(parsed.header.get("alg", ""))
        if algorithm not in _SIGNING_ALGORITHMS:
            text = (
                f"id token signed with unsupported algorithm, expected {go_list(_SIGNING_ALGORITHMS)} got {go_quote(algorithm)}"
            )
            raise BadCredentialsError(f"oidc: verify token: oidc: {text}")
        self._keys.verify(parsed)
        claims = parsed.claims
        _check_kinds(claims)
        several = len(self._configuration.audiences) > 1
        for check in (self._check_times, self._check_audience) if several else (self._check_audience, self._check_times):
            check(claims)
        return claims

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        audience = claims.get("aud") or []
        given: list[str] = [audience] if isinstance(audience, str) else list(audience)
        wanted = self._configuration.audiences
        if not any(audience in wanted for audience in given):
            shown = go_quote(wanted[0]) if len(wanted) == 1 else f"in {go_list(sorted(wanted))}"
            raise BadCredentialsError(f"oidc: verify token: oidc: expected audience {shown} got {go_list(given)}")

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now, expiry, begins = self._clock.now().timestamp(), claims.get("exp"), claims.get("nbf")
        if expiry is None or expiry < now:
            shown = ZERO_TIME_STRING if expiry is None else print_unix_time(expiry)
            raise BadCredentialsError(f"oidc: verify token: oidc: token is expired (Token Expiry: {shown})")
        if begins is not None and now + _NOT_BEFORE_LEEWAY < begins:
            text = f"oidc: current time {print_unix_time(now)} before the nbf (not before) time: {print_unix_time(begins)}"
            raise BadCredentialsError(f"oidc: verify token: {text}")

    # --- The user -----------------------------------------------------------------------------------------------------

    def _user(self, claims: dict[str, Any]) -> User:
        configuration, seen = self._configuration, {"claims": wrap_untyped(claims)}
        user = User(self._name(claims, seen), self._uid(claims, seen), self._groups(claims, seen), self._map_extra(claims, seen))
        for name, wanted in configuration.required_claims.items():
            if name not in claims:
                raise BadCredentialsError(f"oidc: required claim {name} not present in ID token")
            value = _text(claims, name, f"parse claim {name}")
            if value != wanted:
                text = f"required claim {name} value does not match. Got = {value}, want = {wanted}"
                raise BadCredentialsError(f"oidc: {text}")
        _check_rules(configuration.claim_rules, seen, "oidc: error evaluating claim validation expression")
        if configuration.user_rules:
            info = {
                "username": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {key: list(values) for key, values in user.extra.items()},
            }
            seen = {"user": wrap_untyped(info)}
            _check_rules(configuration.user_rules, seen, "oidc: error evaluating user info validation rule")
        return user

    def _name(self, claims: Mapping[str, Any], seen: Mapping[str, Any]) -> str:
        mapping = self._configuration.username
        if mapping.expression is not None:
            name = _evaluated_text(mapping.expression, seen, "username")
            if not name:
                raise BadCredentialsError("oidc: empty username via CEL expression is not allowed")
            return name
        name = _text(claims, mapping.claim, f"parse username claims {go_quote(mapping.claim)}")
        if mapping.claim == "email" and "email_verified" in claims:
            verified = claims["email_verified"]
            if not isinstance(verified, bool):
                raise BadCredentialsError(f"oidc: parse 'email_verified' claim: {_wrong_kind(verified, 'bool')}")
            if not verified:
                raise BadCredentialsError("oidc: email not verified")
        return mapping.prefix + name

    def _groups(self, claims: Mapping[str, Any], seen: Mapping[str, Any]) -> tuple[str, ...]:
        mapping = self._configuration.groups
        if mapping.claim and mapping.claim in claims:
            value = claims[mapping.claim]
            values = [value] if isinstance(value, str) else value or []
            if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
                problem = _wrong_kind(values, "string")
                raise BadCredentialsError(f"oidc: parse groups claim {go_quote(mapping.claim)}: {problem}")
            return tuple(mapping.prefix + one for one in values)
        return () if mapping.expression is None else _evaluated_texts(mapping.expression, seen, "group claim expression")

    def _uid(self, claims: Mapping[str, Any], seen: Mapping[str, Any]) -> str:
        mapping = self._configuration.uid
        if mapping.claim:
            return _text(claims, mapping.claim, f"parse uid claim {go_quote(mapping.claim)}")
        return "" if mapping.expression is None else _evaluated_text(mapping.expression, seen, "uid")

    def _map_extra(self, claims: Mapping[str, Any], seen: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
        extra: dict[str, Sequence[str]] = {}
        if isinstance(claims.get("jti"), str) and claims["jti"]:
            extra[identities.CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
        for key, expression in self._configuration.extra:
            values = _evaluated_texts(expression, seen, f"extra claim expression: {expression.source}", "")
            if values:
                extra[key] = values
        return extra


# --- Keys -------------------------------------------------------------------------------------------------------------


class _RemoteKeys:
    """The cached keys of an issuer."""

    def __init__(self, configuration: JWTConfiguration) -> None:
        self._configuration = configuration
        self._lock = threading.Lock()
        self._keys: Sequence[tuple[str, PublicKey]] = ()
        self._location = ""
        self._transport: Transport | None = None

    def verify(self, token: Token) -> None:
        """Raises BadCredentialsError if no key of the issuer matches the signature."""
        if self._verify_signature(token):
            return
        with self._lock:
            if self._verify_signature(token):  # another thread has fetched them meanwhile
                return
            try:
                if not self._location:
                    self._location = self._discover_url()
            except (CallError, ValueError):
                raise BadCredentialsError("oidc: authenticator not initialized") from None
            try:
                self._keys = self._fetch_keys()
            except (CallError, ValueError) as error:
                raise BadCredentialsError(f"oidc: verify token: failed to verify signature: fetching keys {error}") from None
        if not self._verify_signature(token):
            raise BadCredentialsError("oidc: verify token: failed to verify signature: failed to verify id token signature")

    def _verify_signature(self, token: Token) -> bool:
        key_id = token.header.get("kid")
        for known, key in self._keys:
            if key_id and known != key_id:
                continue
            try:
                jose.verify(token, key)
            except InvalidSignatureError:
                continue
            return True
        return False

    def _discover_url(self) -> str:
        """Returns the URL of the keys. Raises CallError, ValueError."""
        issuer = self._configuration.issuer
        document = self._document(self._configuration.discovery_url or issuer.rstrip("/") + OPENID_CONFIGURATION_PATH)
        if document.get("issuer") != issuer:
            found = go_quote(str(document.get("issuer", "")))
            text = f"issuer did not match the issuer returned by provider, expected {go_quote(issuer)} got {found}"
            raise ValueError(f"oidc: {text}")
        return str(document.get("jwks_uri") or "")

    def _fetch_keys(self) -> Sequence[tuple[str, PublicKey]]:
        """Raises CallError, ValueError."""
        answer = self._answer(self._location)
        if answer.status != 200:
            phrase = HTTPStatus(answer.status).phrase if answer.status in _KNOWN_CODES else ""
            raise ValueError(f"oidc: get keys failed: {answer.status} {phrase} {answer.body.decode(errors='replace')}")
        try:
            return _keys_in(orjson.loads(answer.body))
        except ValueError as error:
            content_type = answer.headers.get("content-type", "")
            is_json = content_type.partition(";")[0].strip().lower() == "application/json"
            said = f"expected Content-Type = application/json, got {go_quote(content_type)}"
            said = "got Content-Type = application/json, but could not unmarshal as JSON" if is_json else said
            raise ValueError(f"oidc: failed to decode keys: {said}: {error} {answer.body.decode(errors='replace')}") from None

    def _document(self, url: str) -> dict[str, Any]:
        """Fetches a JSON object from a URL. Raises CallError, ValueError."""
        answer = self._answer(url)
        if answer.status != 200:
            raise ValueError(f"{answer.status}: {answer.body[:200].decode(errors='replace')}")
        value = orjson.loads(answer.body)
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        return value

    def _answer(self, url: str) -> Answer:
        from fakekube.apiserver.webhooks.transport import Endpoint, Transport

        if self._transport is None:
            self._transport = Transport()
        return self._transport.get(Endpoint(url, None, self._configuration.certificate_authority.encode()), _TIMEOUT)


def _keys_in(value: Any) -> list[tuple[str, PublicKey]]:
    """Returns the keys of a JSON Web Key Set. Raises ValueError if one of them is not supported."""
    keys = (value if isinstance(value, dict) else {}).get("keys") or ()
    if not isinstance(keys, list | tuple):
        raise ValueError(unmarshal_error(json_kind(keys), "[]jose.JSONWebKey"))
    found = []
    for key in keys:
        kind = key.get("kty", "") if isinstance(key, dict) else ""
        if kind not in ("EC", "RSA"):
            raise ValueError(f"go-jose/go-jose: unknown json web key type '{kind}'")
        found.append((str(key.get("kid", "")), jose.key_of(key)))
    return found


# --- Claims and expressions -------------------------------------------------------------------------------------------


def _text(claims: Mapping[str, Any], name: str, what: str) -> str:
    if name not in claims:
        raise BadCredentialsError(f"oidc: {what}: claim not present")
    value = claims[name]
    if not isinstance(value, str):
        raise BadCredentialsError(f"oidc: {what}: {_wrong_kind(value, 'string')}")
    return value


def _wrong_kind(value: Any, wanted: str) -> str:
    return unmarshal_error(json_kind(value), wanted)


def _check_kinds(claims: Mapping[str, Any]) -> None:
    """Raises BadCredentialsError if a registered claim has the wrong type."""
    for name, kind in (("iss", "string"), ("sub", "string"), ("exp", "number"), ("nbf", "number")):
        value = claims.get(name)
        if value is not None and json_kind(value) != kind:
            shown = "string" if kind == "string" else "json.Number"
            problem = unmarshal_error(json_kind(value), shown, f"idToken.{name}")
            raise BadCredentialsError(f"oidc: verify token: oidc: failed to unmarshal claims: {problem}")
    audience = claims.get("aud")
    texts = audience if isinstance(audience, list) else [audience]
    if audience is not None and not all(isinstance(text, str) for text in texts):
        problem = unmarshal_error(json_kind(audience), "string", "idToken.aud")
        raise BadCredentialsError(f"oidc: verify token: oidc: failed to unmarshal claims: {problem}")


def _evaluate(expression: Expression, seen: Mapping[str, Any], what: str) -> Any:
    value: Any
    try:
        value, _ = expression.program.evaluate(seen, PER_CALL_LIMIT)
    except CostLimitExceeded as error:
        value = EvaluationError(str(error))
    if isinstance(value, EvaluationError):
        said = f"expression '{expression.source}' resulted in error: {value}"
        raise BadCredentialsError(f"{what}: {said}" if what else said)
    return value


def _evaluated_text(expression: Expression, seen: Mapping[str, Any], name: str) -> str:
    what = f"oidc: error evaluating {name} claim expression"
    value = _evaluate(expression, seen, what)
    if not isinstance(value, str):
        raise BadCredentialsError(f"{what}: {name} claim expression must return a string")
    return value


def _evaluated_texts(
    expression: Expression, seen: Mapping[str, Any], name: str, when_failing: str | None = None
) -> tuple[str, ...]:
    """Returns the non-empty strings that an expression evaluates to."""
    what = f"oidc: error evaluating {name}"
    value = _evaluate(expression, seen, what if when_failing is None else when_failing)
    values = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise BadCredentialsError(f"{what}: {_LISTED}")
    return tuple(one for one in values if one)


def _check_rules(rules: Sequence[Expression], seen: Mapping[str, Any], what: str) -> None:
    results = [(rule, _evaluate(rule, seen, what)) for rule in rules]
    for rule, value in results:
        if value is not True:
            problem = f"validation expression '{rule.source}' failed: {rule.message}"
            raise BadCredentialsError(f"{what}: {problem if value is False else 'validation expression must return a boolean'}")

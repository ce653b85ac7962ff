"""Subcommands of agnhost that are clients of the API server, with the token of their pod."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

from fakekube.nodes.images.agnhost.flags import flags, log
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import sleep

__all__ = ["COMMANDS"]

_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105


async def _in_cluster_client(program: Program) -> int:
    given, _ = flags(program, {"poll-interval": "30"})
    log(program, "started")
    while True:
        await sleep(float(given["poll-interval"]))
        log(program, "calling /healthz")
        header = f"Bearer {program.files.read(_TOKEN).decode()}"
        digest = urlsafe_b64encode(hashlib.sha256(f"salt|{header}".encode()).digest()).rstrip(b"=").decode()
        log(program, f"authz_header={digest}")
        code, body = program.host.call_api("/healthz", header.removeprefix("Bearer "))
        if code != 200:
            log(program, "status=failed")
            log(program, f"error checking /healthz: {code}\n{body.decode('utf-8', 'replace')}")


def _claims(token: str) -> dict[str, Any]:
    """Returns the claims of a token without a check of its signature. Raises ValueError."""
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("square/go-jose: compact JWS format must have three parts")
    found: dict[str, Any] = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    return found


async def _issuer_discovery(program: Program) -> int:
    """Checks a token with the keys that the discovery document of its issuer names."""
    import jwt

    given, _ = flags(program, {"token-path": "", "audience": ""})
    token = program.files.read(given["token-path"]).decode()
    log(program, "OK: Got token")
    log(program, "validating with in-cluster discovery")
    try:
        issuer = _claims(token)["iss"]
        log(program, f"OK: got issuer {issuer}")
        code, body = program.host.call_api("/.well-known/openid-configuration", token)
        if code != 200:
            raise ValueError(f"{code}: {body.decode('utf-8', 'replace')}")
        if json.loads(body)["issuer"] != issuer:
            raise ValueError(f"oidc: issuer did not match the issuer returned by provider, expected {issuer}")
        log(program, f"OK: Constructed OIDC provider for issuer {issuer}")
        _, keys = program.host.call_api("/openid/v1/jwks", token)
        known = {one.key_id: one for one in jwt.PyJWKSet.from_json(keys.decode()).keys}
        key = known[jwt.get_unverified_header(token)["kid"]]
        jwt.decode(token, key.key, algorithms=["RS256", "ES256"], audience=given["audience"], issuer=issuer)
    except (ValueError, KeyError, jwt.PyJWTError) as error:
        log(program, f"failed to validate with in-cluster discovery: {error}")
        return 1
    log(program, "OK: Validated signature on JWT")
    log(program, "OK: Got valid claims from token!")
    return 0


COMMANDS: Final[dict[str, Command]] = {
    "inclusterclient": _in_cluster_client,
    "test-service-account-issuer-discovery": _issuer_discovery,
}

"""Subcommands of agnhost that are clients: of any port, and of the API server with the token of their pod."""

from __future__ import annotations

import errno
import hashlib
import json
from base64 import urlsafe_b64encode
from typing import Final

from fakekube.apiserver.auth import jose
from fakekube.nodes.images.agnhost.flags import flags, log
from fakekube.nodes.runtime.network import NoSuchHost
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import sleep

_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"


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


async def _issuer_discovery(program: Program) -> int:
    """Checks a token with the keys that the discovery document of its issuer names."""
    given, _ = flags(program, {"token-path": "", "audience": ""})
    token, own = (program.files.read(path).decode() for path in (given["token-path"], _TOKEN))
    log(program, "OK: Got token")
    log(program, "validating with in-cluster discovery")
    try:
        parsed = jose.parse(token)
        if parsed is None:
            raise ValueError("oidc: malformed jwt")
        issuer = parsed.claims["iss"]
        log(program, f"OK: got issuer {issuer}")
        code, body = program.host.call_api("/.well-known/openid-configuration", own)
        if code != 200:
            raise ValueError(f"{code}: {body.decode('utf-8', 'replace')}")
        if json.loads(body)["issuer"] != issuer:
            raise ValueError(f"oidc: issuer did not match the issuer returned by provider, expected {issuer}")
        log(program, f"OK: Constructed OIDC provider for issuer {issuer}")
        _, keys = program.host.call_api("/openid/v1/jwks", own)
        known = {one["kid"]: one for one in json.loads(keys)["keys"]}
        jose.verify(parsed, jose.key_of(known[parsed.header["kid"]]))
        if given["audience"] not in parsed.claims["aud"]:
            raise ValueError(f"oidc: expected audience {given['audience']}")
    except (ValueError, KeyError, jose.InvalidSignatureError) as error:
        log(program, f"failed to validate with in-cluster discovery: {error}")
        return 1
    log(program, "OK: Validated signature on JWT")
    log(program, "OK: Got valid claims from token!")
    return 0


async def _connect(program: Program) -> int:
    given, operands = flags(program, {"timeout": "0", "protocol": "tcp", "udp-data": "hostname", "sctp-data": "hostname"})
    host, _, port = (operands[0] if operands else "").rpartition(":")
    if not port.isdigit():
        return await _fail(program, f"UNKNOWN: address {operands[0] if operands else ''}: missing port in address")
    network, protocol = program.host.network, given["protocol"] or "tcp"
    try:
        if protocol == "udp":
            if not network.send(host.strip("[]"), int(port), given["udp-data"].encode() + b"\n"):
                return await _fail(program, "TIMEOUT: read udp: i/o timeout")
        elif protocol == "tcp":
            connection = network.connect(host.strip("[]"), int(port))
            connection.from_client.close()
            connection.to_client.abandon()
        else:
            return await _fail(program, "OTHER: protocol not supported")
    except NoSuchHost:
        return await _fail(program, f"DNS: lookup {host}: no such host")
    except TimeoutError:
        return await _fail(program, "TIMEOUT")
    except OSError as error:
        kind = "REFUSED" if error.errno == errno.ECONNREFUSED else f"OTHER: {error.strerror}"
        return await _fail(program, "TIMEOUT" if error.errno == errno.ETIMEDOUT else kind)
    return 0


async def _fail(program: Program, text: str) -> int:
    await program.stderr.write(f"{text}\n".encode())
    return 1


COMMANDS: Final[dict[str, Command]] = {
    "connect": _connect,
    "inclusterclient": _in_cluster_client,
    "test-service-account-issuer-discovery": _issuer_discovery,
}

"""Subcommands of agnhost that serve nothing: tests look at what they print. Some are clients of ports, or of the API server."""

from __future__ import annotations

import errno
import hashlib
import json
import random
from base64 import urlsafe_b64encode
from typing import Final

from fakekube.apiserver.auth import jose
from fakekube.nodes.images.programs import SERVICE_ACCOUNT_TOKEN, duration, flags, log, nonewprivs, wait
from fakekube.nodes.runtime.network import NoSuchHost
from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.scheduling import SIGINT, Killed, sleep


async def _entrypoint_tester(program: Program) -> int:
    await program.write(f"[{' '.join([program.argv0, *program.args])}]\n")
    return 0


async def _pause(program: Program) -> int:
    await program.write("Paused\nSignals registered\n")
    try:
        return await wait(program)
    except Killed as killed:
        return 1 if killed.signal == SIGINT else 2


def _words(program: Program, keyword: str) -> list[str]:
    for line in program.files.read("/etc/resolv.conf").decode().split("\n"):
        if line.startswith(keyword):
            return line.split(" ")[1:]
    raise Usage("Could not find DNS search list!", 2)


async def _dns_suffix(program: Program) -> int:
    await program.write(",".join(_words(program, "search")) + "\n")
    return 0


async def _dns_server_list(program: Program) -> int:
    await program.write(",".join(_words(program, "nameserver")) + "\n")
    return 0


async def _etc_hosts(program: Program) -> int:
    await program.write(program.files.read("/etc/hosts") + b"\n")
    return 0


async def _logs_generator(program: Program) -> int:
    given, _ = flags(program, {"log-lines-total": "0", "run-duration": "0"}, {"t": "log-lines-total", "d": "run-duration"})
    total, seconds = int(given["log-lines-total"]), duration(given["run-duration"])
    if total <= 0 or seconds <= 0:
        raise Usage(f"Invalid total number of lines: {total}" if total <= 0 else f"Invalid duration: {seconds:g}s", 255)
    chosen = random.Random(program.host.hostname)
    for number in range(total):
        now = program.task.scheduler.now()
        head = f"I{now:%m%d %H:%M:%S.%f}       1 logs_generator.go:76]"
        name = "".join(chosen.choices("bcdfghjklmnpqrstvwxz2456789", k=chosen.randrange(3, 5)))
        namespace, method = chosen.choice(("kube-system", "default", "ns")), chosen.choice(("GET", "POST", "PUT"))
        line = f"{head} {number} {method} /api/v1/namespaces/{namespace}/pods/{name} {chosen.randrange(200, 600)}\n"
        await program.stderr.write(line.encode())
        await sleep(seconds / total)
    return 0


async def _in_cluster_client(program: Program) -> int:
    given, _ = flags(program, {"poll-interval": "30"})
    log(program, "started")
    while True:
        await sleep(float(given["poll-interval"]))
        log(program, "calling /healthz")
        header = f"Bearer {program.files.read(SERVICE_ACCOUNT_TOKEN).decode()}"
        digest = urlsafe_b64encode(hashlib.sha256(f"salt|{header}".encode()).digest()).rstrip(b"=").decode()
        log(program, f"authz_header={digest}")
        code, body = program.host.call_api("/healthz", header.removeprefix("Bearer "))
        if code != 200:
            log(program, "status=failed")
            log(program, f"error checking /healthz: {code}\n{body.decode('utf-8', 'replace')}")


async def _issuer_discovery(program: Program) -> int:
    """Checks a token with the keys that the discovery document of its issuer names."""
    given, _ = flags(program, {"token-path": "", "audience": ""})
    token, own = (program.files.read(path).decode() for path in (given["token-path"], SERVICE_ACCOUNT_TOKEN))
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
    "entrypoint-tester": _entrypoint_tester,
    "pause": _pause,
    "dns-suffix": _dns_suffix,
    "dns-server-list": _dns_server_list,
    "etc-hosts": _etc_hosts,
    "nonewprivs": nonewprivs,
    "logs-generator": _logs_generator,
    "connect": _connect,
    "inclusterclient": _in_cluster_client,
    "test-service-account-issuer-discovery": _issuer_discovery,
}

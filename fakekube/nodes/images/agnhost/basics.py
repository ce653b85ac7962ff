"""Subcommands of agnhost that serve nothing: tests look at what they print. Some are clients of ports, or of the API server.

`mounttest` writes files, and prints the type, mode, owner and content of files in volumes.

Specified by: test/images/agnhost of Kubernetes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import random
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from fakekube.apiserver.auth import jose
from fakekube.base.golang.strconv import go_quote
from fakekube.nodes.images.programs import SERVICE_ACCOUNT_TOKEN, duration, flags, is_true, log, nonewprivs, wait
from fakekube.nodes.runtime.filesystem import Directory, Node, Symlink
from fakekube.nodes.runtime.network import NoSuchHost
from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.scheduling import SIGINT, Killed, sleep

# --- `agnhost mounttest` ----------------------------------------------------------------------------------------------


_CONTENT: Final = b"mount-tester new file\n"
#: Seconds between two reads in a loop.
_PAUSE: Final = 2.0


def go_mode(node: Node) -> str:
    """Returns the mode of a file as Go prints it."""
    kind = "d" if isinstance(node, Directory) else "L" if isinstance(node, Symlink) else ""
    special = "".join(letter for letter, bit in (("u", 0o4000), ("g", 0o2000), ("t", 0o1000)) if node.mode & bit)
    return (kind + special or "-") + permissions(node)[1:]


def permissions(node: Node) -> str:
    """Returns the permissions of a file as Go prints them."""
    return "-" + "".join(letter if node.mode >> (8 - place) & 1 else "-" for place, letter in enumerate("rwxrwxrwx"))


async def _fs_type(program: Program, path: str) -> None:
    kind = program.files.kind_of(path, program.cwd)
    await program.write(f"mount type of {go_quote(path)}: {kind}\n")


def _writer(mode: int) -> Callable[[Program, str], Awaitable[None]]:
    async def write(program: Program, path: str) -> None:
        try:
            replace(program, umask=0).write_file(path, _CONTENT, mode=mode)  # it clears the umask first
        except OSError as error:
            await program.write(f"error writing new file {go_quote(path)}: open {path}: {_text(error)}\n")
            raise
        await _content(program, path)

    return write


async def _mode(program: Program, path: str) -> None:
    node = await _stat(program, path, "Stat")
    await program.write(f"mode of file {go_quote(path)}: {go_mode(node)}\n")


async def _perm(program: Program, path: str) -> None:
    node = await _stat(program, path, "Stat")
    await program.write(f"perms of file {go_quote(path)}: {permissions(node)}\n")


async def _owner(program: Program, path: str) -> None:
    node = await _stat(program, path, "stat")
    await program.write(f"owner UID of {go_quote(path)}: {node.uid}\nowner GID of {go_quote(path)}: {node.gid}\n")


async def _stat(program: Program, path: str, call: str) -> Node:
    try:
        return program.files.node(path, program.cwd)
    except OSError as error:
        await program.write(f"error from {call}({go_quote(path)}): stat {path}: {_text(error)}\n")
        raise


async def _content(program: Program, path: str) -> None:
    try:
        content = program.read_file(path)
    except OSError as error:
        await program.write(f"error reading file content for {go_quote(path)}: open {path}: {_text(error)}\n")
        raise
    await program.write(b"content of file " + go_quote(path).encode() + b": " + content + b"\n")


def _text(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


async def _loop(program: Program, path: str, seconds: float, *, ends: bool) -> None:
    """Reads a file every two seconds, for so long, or until it has the content that this program writes."""
    failure: OSError | None = None
    start = program.task.scheduler.time
    while program.task.scheduler.time - start < seconds:
        try:
            content = program.read_file(path)
        except OSError as error:
            failure = error
            await program.write(f"Error reading file {path}: open {path}: {_text(error)}, retrying\n")
        else:
            failure = None
            await program.write(b"content of file " + go_quote(path).encode() + b": " + content + b"\n")
            if ends and content == _CONTENT:
                return
            if ends:
                await program.write(f"Unexpected content. Expected: {_CONTENT.decode()}. Retrying\n")
        await sleep(_PAUSE)
    if failure is not None:
        raise failure


_ACTIONS: Final[dict[str, Callable[[Program, str], Awaitable[None]]]] = {
    "fs_type": _fs_type,
    "new_file_0644": _writer(0o644),
    "new_file_0666": _writer(0o666),
    "new_file_0660": _writer(0o660),
    "new_file_0777": _writer(0o777),
    "file_mode": _mode,
    "file_perm": _perm,
    "file_owner": _owner,
    "file_content": _content,
}


async def _mounttest(program: Program) -> int:
    defaults = dict.fromkeys([*_ACTIONS, "file_content_in_loop"], "")
    given, _ = flags(program, {**defaults, "retry_time": "180", "break_on_expected_content": "true"})
    failed = False
    for name, action in _ACTIONS.items():
        if given[name]:
            try:
                await action(program, given[name])
            except OSError:
                failed = True
    if given["file_content_in_loop"]:
        try:
            await _loop(
                program,
                given["file_content_in_loop"],
                float(given["retry_time"]),
                ends=is_true(given["break_on_expected_content"]),
            )
        except OSError:
            failed = True
    return int(failed)


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
    "mounttest": _mounttest,
}

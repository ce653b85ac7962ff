"""Network commands: `wget`, `curl`, `nc`, `ping`, `ip`; `nslookup`, `dig`, `host`, `getent`.

They reach what is inside the cluster: names of Services and pods, and their addresses.

Specified by: busybox networking (wget, nc, ping, nslookup.c); curl(1); BIND's dig(1) and host(1); getent(1).
"""

from __future__ import annotations

import contextlib
import errno
import posixpath
import ssl
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from fakekube.apis.validation.ip import parse_ip
from fakekube.net.http1 import BodyError
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, ResponseParser
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.net.streams import Notifier
from fakekube.nodes.runtime.descriptors import Descriptor, PipeReader, PipeWriter
from fakekube.nodes.runtime.dns import Record, reverse_name
from fakekube.nodes.runtime.filesystem import Socket, oserror
from fakekube.nodes.runtime.listeners import Peer
from fakekube.nodes.runtime.network import NoSuchHost
from fakekube.nodes.runtime.program import Command, Program, Usage, options
from fakekube.nodes.runtime.scheduling import sleep, wait_until

_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class _Answer:
    """An HTTP response."""

    def __init__(self, data: bytes, method: str) -> None:
        self.head = data.partition(b"\r\n\r\n")[0]
        self.line = self.head.partition(b"\r\n")[0].decode("latin-1")
        self.code, self.headers, self.body = 0, dict[str, str](), b""
        parser = ResponseParser()
        for part in (data, b"") if data else (b"",):
            parser.feed(part)
        try:
            response = parser.response(method)
        except (ConnectionEndedError, MalformedResponseError):
            return
        assert response is not None, "the connection has ended"
        self.code, self.headers = response.status, {name.lower(): value for name, value in response.headers}
        with contextlib.suppress(BodyError):  # what has arrived counts
            while piece := parser.body():
                self.body += piece


async def _send(connection: Connection, data: bytes) -> None:
    writer = PipeWriter(connection.from_client)
    await writer.write(data)


class _Request(NamedTuple):
    """An HTTP request."""

    method: str
    headers: list[str]
    body: bytes = b""
    authorities: str | None = None
    """The CA certificates that the certificate of a server is verified with; None accepts every certificate."""


async def _request(program: Program, url: str, request: _Request) -> _Answer:
    """Sends an HTTP request and returns the response. Raises OSError."""
    method, headers, body = request.method, request.headers, request.body
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in _PORTS:
        raise OSError(errno.ECONNREFUSED, "only http and https are supported", url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    connection = program.host.network.connect(host, port)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    agent = "curl/8.0" if program.name == "curl" else "Wget"
    lines = [f"{method} {target} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close", *headers]
    if not any(one.lower().startswith("user-agent:") for one in headers):
        lines.append(f"User-Agent: {agent}")
    if body or method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(body)}")
    data = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    try:
        if parts.scheme == "https":
            from fakekube.nodes.runtime.tls import Client

            return _Answer(await Client(connection, host, request.authorities).exchange(data), method)
        await _send(connection, data)
        return _Answer(await PipeReader(connection.to_client).read_all(), method)
    finally:
        connection.from_client.close()
        connection.to_client.abandon()


async def _wget(program: Program) -> int:
    flags, urls = options(
        program, "qO:ST:t:c", ["header=", "post-data=", "spider", "no-check-certificate", "timeout=", "tries=",
                               "output-document="],
        aliases={"timeout": "T", "tries": "t", "output-document": "O"},
    )  # fmt: skip
    if not urls:
        raise Usage("missing URL")
    url, body = urls[0], flags.get("post-data", "").encode()
    authorities = None if "no-check-certificate" in flags else ""
    for _ in range(5):
        host = urlsplit(url if "://" in url else f"http://{url}")
        try:
            if "q" not in flags:
                found = program.host.network.resolve(host.hostname or "")
                shown = f"{found[0] if found else '?'}:{host.port or 80}"
                await program.stderr.write(f"Connecting to {host.netloc} ({shown})\n".encode() if found else b"")
            answer = await _request(
                program,
                url,
                _Request("POST" if body else "GET", [flags["header"]] if "header" in flags else [], body, authorities),
            )
        except NoSuchHost:
            return await program.complain(f"bad address '{host.netloc}'")
        except ssl.SSLError as error:
            return await program.complain(f"note: TLS certificate validation failed: {error.reason}")
        except OSError as error:
            return await program.complain(f"can't connect to remote host: {error.strerror}")
        if answer.code in _REDIRECTS and "location" in answer.headers:
            url = (
                answer.headers["location"]
                if "://" in answer.headers["location"]
                else f"http://{host.netloc}{answer.headers['location']}"
            )
            continue
        break
    if answer.code >= 400 or not answer.code:
        return await program.complain(f"server returned error: {answer.line}")
    if "spider" in flags:
        return 0
    target = flags.get("O") or host.path.rpartition("/")[2] or "index.html"
    if target == "-":
        await program.stdout.write(answer.body)
        return 0
    try:
        program.write_file(target, answer.body)
    except OSError as error:
        return await program.complain(f"can't open '{target}': {error.strerror}")
    return 0


async def _curl(program: Program) -> int:
    flags, urls = options(
        program, "sSfLkivIqgN4o:X:H:d:m:w:A:O4", ["silent", "show-error", "fail", "location", "insecure", "include", "head",
        "output=", "request=", "header=", "data=", "max-time=", "connect-timeout=", "write-out=", "retry=", "json=",
        "data-raw=", "verbose", "globoff", "interface=", "cacert="],
        aliases={"silent": "s", "show-error": "S", "fail": "f", "location": "L", "insecure": "k", "include": "i", "head": "I",
                 "output": "o", "request": "X", "header": "H", "data": "d", "data-raw": "d", "max-time": "m", "write-out": "w"},
    )  # fmt: skip
    if not urls:
        await program.stderr.write(b"curl: (2) no URL specified\n")
        return 2
    headers = [value for flag, value in zip(program.args, program.args[1:], strict=False) if flag in ("-H", "--header")]
    data = flags.get("d", flags.get("json"))
    body = b"" if data is None else program.files.read(data[1:], program.cwd) if data.startswith("@") else data.encode()
    if data is not None and not any(one.lower().startswith("content-type:") for one in headers):
        headers.append(f"Content-Type: {'application/json' if 'json' in flags else 'application/x-www-form-urlencoded'}")
    method = flags.get("X") or ("HEAD" if "I" in flags else "POST" if data is not None else "GET")
    trusted = program.read_file(flags["cacert"]).decode() if "cacert" in flags else ""
    request, code = _Request(method, headers, body, None if "k" in flags else trusted), 0
    for url in urls:
        code = await _fetch(program, url, request, flags)
    return code


async def _fetch(program: Program, url: str, request: _Request, flags: dict[str, str]) -> int:
    quiet = "s" in flags and "S" not in flags
    for _ in range(20):
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            answer = await _request(program, url, request._replace(headers=["Accept: */*", *request.headers]))
        except NoSuchHost:
            return await _report_failure(program, 6, f"Could not resolve host: {parts.hostname}", quiet)
        except ssl.SSLError:
            return await _report_failure(program, 60, "SSL certificate problem: unable to get local issuer certificate", quiet)
        except OSError:
            text = f"Failed to connect to {parts.hostname} port {parts.port or 80} after 0 ms: Could not connect to server"
            return await _report_failure(program, 7, text, quiet)
        if not answer.code:
            return await _report_failure(program, 52, "Empty reply from server", quiet)
        if "L" not in flags or answer.code not in _REDIRECTS or "location" not in answer.headers:
            break
        where = answer.headers["location"]
        url = where if "://" in where else f"http://{parts.netloc}{where}"
    if "f" in flags and answer.code >= 400:
        return await _report_failure(program, 22, f"The requested URL returned error: {answer.code}", quiet)
    shown = answer.head + b"\r\n\r\n" if flags.keys() & {"i", "I"} else b""
    if "I" not in flags:
        shown += answer.body
    if "o" in flags and flags["o"] != "-":
        program.open(flags["o"], write=True, read=False).close()
        if flags["o"] != "/dev/null":
            program.write_file(flags["o"], shown)
    else:
        await program.stdout.write(shown)
    if "w" in flags:
        text = flags["w"].replace("%{http_code}", f"{answer.code:03}").replace("%{response_code}", f"{answer.code:03}")
        await program.write(text.replace("\\n", "\n"))
    return 0


async def _report_failure(program: Program, code: int, text: str, quiet: bool) -> int:
    if not quiet:
        await program.stderr.write(f"curl: ({code}) {text}\n".encode())
    return code


async def _netstat(program: Program) -> int:
    """Lists the ports at which programs listen: -a, -l, -n, -t, -u."""
    flags, _ = options(program, "alntup")
    wanted = {one for one in ("tcp", "udp") if one[0] in flags} or {"tcp", "udp"}
    scope = "(only servers)" if "l" in flags else "(servers and established)" if "a" in flags else "(w/o servers)"
    head = "Proto Recv-Q Send-Q Local Address           Foreign Address         State       "
    rows = [f"Active Internet connections {scope}", head]
    for protocol, port in program.host.network.listeners.ports():
        if protocol in wanted and flags.keys() & {"a", "l"}:
            local, state = f":::{port}", "LISTEN" if protocol == "tcp" else ""
            rows.append(f"{protocol:5} {0:6} {0:6} {local:23} {':::*':23} {state:11} ".rstrip(" ") + " ")
    await program.write("\n".join(rows) + "\n")
    return 0


class _Listener:
    """Listens at a port of the pod for one connection."""

    def __init__(self, program: Program, port: int) -> None:
        self._listeners, self._port = program.host.network.listeners, port
        self._notifier = Notifier()
        self._found: Connection | None = None

    def _accept_connection(self, peer: Peer) -> Connection:
        self._listeners.stop(self._port, self._accept_connection)
        found = self._found = Connection(Pipe(), Pipe())
        self._notifier.notify()  # `accept` may take it at once, in another thread
        return found

    async def accept(self) -> Connection:
        with self._listeners.tcp(self._port, self._accept_connection, shared=True):
            try:
                return await wait_until(lambda: self._found, self._notifier)
            finally:
                self._found = None


async def _nc(program: Program) -> int:
    args = list(program.args)
    command = []
    if "-e" in args:
        at = args.index("-e")
        command, args = args[at + 1 :], args[:at]
    program.args = args
    flags, operands = options(program, "lp:w:zvkn46uti:s:q:U")
    if "U" in flags:
        return await _use_socket(program, operands[-1:], listens="l" in flags)
    if "l" in flags:
        port = flags.get("p") or (operands[-1] if operands else "")
        if not port.isdigit():
            raise Usage("usage: nc -l -p PORT")
        return await _listen(program, int(port), command, again="k" in flags)
    if len(operands) < 2 or not operands[1].isdigit():
        raise Usage("usage: nc HOST PORT")
    host, port = operands[0], operands[1]
    if "u" in flags:
        return await _exchange(program, host, int(port), verbose="v" in flags)
    try:
        connection = program.host.network.connect(host, int(port))
    except NoSuchHost:
        return await program.complain(f"bad address '{host}'")
    except OSError as error:
        found = program.host.network.resolve(host)
        return await program.complain(f"can't connect to remote host ({found[0] if found else host}): {error.strerror}")
    if "v" in flags:
        await program.stderr.write(f"{host} ({program.host.network.resolve(host)[0]}:{port}) open\n".encode())
    if "z" in flags:
        connection.from_client.close()
        connection.to_client.abandon()
        return 0
    return await _converse(program, connection.to_client, connection.from_client)


async def _use_socket(program: Program, paths: list[str], *, listens: bool) -> int:
    """Connects to a socket of the domain UNIX, or makes one and listens for one connection."""
    if not paths:
        raise Usage("usage: nc [-l] -U PATH")
    path, files = posixpath.join(program.cwd, paths[0]), program.files
    try:
        if listens:
            if files.exists(path):
                raise oserror(errno.EADDRINUSE)
            socket = Socket(mtime=files.now())
            files.add(path, socket)
            made = await _SocketListener(socket).accept()
            return await _converse(program, made.from_client, made.to_client)
        node = files.node(path)
        if not isinstance(node, Socket) or node.accept is None:
            raise oserror(errno.ECONNREFUSED)
        connection = node.accept()
    except OSError as error:
        return await program.complain(f"{'bind' if listens else 'connect'}: {error.strerror}")
    return await _converse(program, connection.to_client, connection.from_client)


class _SocketListener:
    """Listens at a socket for one connection."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._notifier = Notifier()
        self._found: Connection | None = None

    def _accept_connection(self) -> Connection:
        self._socket.accept = None
        found = self._found = Connection(Pipe(), Pipe())
        self._notifier.notify()
        return found

    async def accept(self) -> Connection:
        self._socket.accept = self._accept_connection
        try:
            return await wait_until(lambda: self._found, self._notifier)
        finally:
            self._socket.accept = self._found = None


async def _exchange(program: Program, host: str, port: int, *, verbose: bool) -> int:
    """Sends what it reads from stdin as datagrams, and writes the answers to stdout."""
    network = program.host.network
    while data := await program.stdin.read():
        try:
            answer = network.send(host, port, data)
        except NoSuchHost:
            return await program.complain(f"bad address '{host}'")
        except OSError:
            return 1
        if verbose:
            await program.stderr.write(f"{host} ({network.resolve(host)[0]}:{port}) open\n".encode())
        await program.stdout.write(answer or b"")
    return 0


async def _listen(program: Program, port: int, command: list[str], *, again: bool) -> int:
    while True:
        connection = await _Listener(program, port).accept()
        if command:
            ends: dict[int, Descriptor] = {
                0: PipeReader(connection.from_client), 1: PipeWriter(connection.to_client), 2: program.stderr.hold()
            }  # fmt: skip
            code = await program.run(command, descriptors=ends)
            for one in ends.values():
                one.close()
        else:
            code = await _converse(program, connection.from_client, connection.to_client)
        if not again:
            return code


async def _converse(program: Program, source: Pipe, target: Pipe) -> int:
    """Sends stdin to a connection, and writes received data to stdout, until the other side closes it."""
    reader, writer = PipeReader(source), PipeWriter(target)

    async def upstream() -> int:
        while data := await program.stdin.read():
            await writer.write(data)
        target.close()
        return 0

    task = program.task.scheduler.start(upstream(), "nc", program.host.next_pid(), program.task)
    while data := await reader.read():
        await program.stdout.write(data)
    if task.exit_code is None:
        task.kill()
    target.close()
    return 0


async def _ping(program: Program) -> int:
    flags, hosts = options(program, "c:w:W:i:q46s:")
    if not hosts:
        raise Usage("usage: ping HOST")
    found = program.host.network.resolve(hosts[0])
    if not found:
        return await program.complain(f"bad address '{hosts[0]}'")
    await program.write(f"PING {hosts[0]} ({found[0]}): 56 data bytes\n")
    count, sent = int(flags.get("c", "0")), 0
    while not count or sent < count:
        await program.write(f"64 bytes from {found[0]}: seq={sent} ttl=64 time=0.050 ms\n")
        sent += 1
        if sent != count:
            await sleep(1.0)
    await program.write(
        f"\n--- {hosts[0]} ping statistics ---\n{sent} packets transmitted, {sent} packets received, 0% packet loss\n"
        "round-trip min/avg/max = 0.050/0.050/0.050 ms\n"
    )
    return 0


async def _ip(program: Program) -> int:
    security = program.host.spec.get("securityContext") or {}
    changes = any(one in ("add", "del", "delete", "set", "change") for one in program.args)
    if program.name == "ip" and changes and not security.get("privileged"):
        return await program.complain("RTNETLINK answers: Operation not permitted", 2)
    if changes:
        return 0
    address = program.host.network.own_address()
    await program.write(
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n    inet 127.0.0.1/8 scope host lo\n"
        "2: eth0@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\n"
        f"    inet {address}/24 scope global eth0\n"
    )
    return 0


_TYPES: Final = frozenset({"A", "AAAA", "CNAME", "SRV", "PTR", "ANY", "TXT", "MX", "NS", "SOA"})


def _server(program: Program) -> str:
    return next(iter(program.host.network.resolver().servers), "127.0.0.1")


async def _nslookup(program: Program) -> int:
    names = [arg for arg in program.args if not arg.startswith("-")]
    kind = next((arg.partition("=")[2].upper() for arg in program.args if arg.startswith(("-type=", "-q=", "-querytype="))), "A")
    if not names:
        raise Usage("usage: nslookup HOST")
    name, network = names[0], program.host.network
    server = names[1] if len(names) > 1 else _server(program)
    await program.write(f"Server:\t\t{server}\nAddress:\t{server}:53\n\n")
    if parse_ip(name) is not None:
        name, kind = reverse_name(name), "PTR"
    found = network.lookup(name, kind)
    if not found:
        await program.write(f"** server can't find {name}: NXDOMAIN\n\n")
        return 1
    for one in found:
        if one.type in ("A", "AAAA"):
            await program.write(f"Name:\t{one.name}\nAddress: {one.data}\n")
        else:
            words = {"CNAME": "canonical name", "PTR": "name", "SRV": "service"}
            await program.write(f"{one.name}\t{words[one.type]} = {one.data.rstrip('.')}\n")
    await program.write("\n")
    return 0


async def _dig(program: Program) -> int:
    flags = {arg[1:].partition("=")[0] for arg in program.args if arg.startswith("+")}
    words = [arg for arg in program.args if arg[:1] not in ("+", "@", "-")]
    kind = next((one.upper() for one in words if one.upper() in _TYPES), "A")
    names = [one for one in words if one.upper() not in _TYPES and one.upper() != "IN"]
    if "-x" in program.args and names:
        names, kind = [reverse_name(names[0])], "PTR"
    if not names:
        return 0
    found = program.host.network.lookup(names[0], kind, search="search" in flags)
    if "short" in flags:
        await program.write("".join(f"{one.data}\n" for one in found))
        return 0
    if "all" not in flags and "noall" not in flags:
        await program.write(_header(names[0], kind, found))
    elif "answer" not in flags:
        return 0
    await program.write("".join(f"{one}\n" for one in found))
    if "noall" not in flags:
        await program.write(f"\n;; Query time: 0 msec\n;; SERVER: {_server(program)}#53({_server(program)})\n\n")
    return 0


def _header(name: str, kind: str, found: list[Record]) -> str:
    status = "NOERROR" if found else "NXDOMAIN"
    return (
        f"\n; <<>> DiG 9.18 <<>> {name} {kind}\n;; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: {status}, id: 1\n"
        f";; flags: qr aa rd; QUERY: 1, ANSWER: {len(found)}, AUTHORITY: 0, ADDITIONAL: 0\n\n"
        f";; QUESTION SECTION:\n;{name}.\t\tIN\t{kind}\n\n" + (";; ANSWER SECTION:\n" if found else "")
    )


async def _host(program: Program) -> int:
    names = [arg for arg in program.args if not arg.startswith("-")]
    if not names:
        raise Usage("usage: host NAME")
    reverse = parse_ip(names[0]) is not None
    found = program.host.network.lookup(reverse_name(names[0]) if reverse else names[0], "PTR" if reverse else "A")
    for one in found:
        words = {"PTR": "domain name pointer", "CNAME": "is an alias for"}.get(one.type, "has address")
        await program.write(f"{one.name} {words} {one.data}\n")
    if not found:
        await program.write(f"Host {names[0]} not found: 3(NXDOMAIN)\n")
    return int(not found)


async def _getent(program: Program) -> int:
    if len(program.args) < 2:
        raise Usage("usage: getent DATABASE KEY")
    database, name = program.args[:2]
    if database in ("passwd", "group"):
        lines = program.read_file(f"/etc/{database}").decode().splitlines()
        found = [line for line in lines if name in (line.split(":")[0], line.split(":")[2])]
        await program.write("".join(f"{line}\n" for line in found))
        return 0 if found else 2
    addresses = program.host.network.resolve(name)
    hosts = program.read_file("/etc/hosts").decode().splitlines()
    names = next((line.split()[1:] for line in hosts if name in line.split()[1:]), [name])
    await program.write("".join(f"{address:<15} {'  '.join(names)}\n" for address in addresses))
    return 0 if addresses else 2


COMMANDS: Final[dict[str, Command]] = {
    "curl": _curl,
    "ifconfig": _ip,
    "ip": _ip,
    "nc": _nc,
    "ping": _ping,
    "wget": _wget,
    "dig": _dig,
    "getent": _getent,
    "host": _host,
    "netstat": _netstat,
    "nslookup": _nslookup,
}

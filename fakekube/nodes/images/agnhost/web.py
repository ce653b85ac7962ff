"""Subcommands of agnhost that serve something at a port.

The guestbook is a primary that stores values, replicas that it updates, and a front end that asks both.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final
from urllib.parse import urlencode

from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.net.streams import Notifier
from fakekube.nodes.images.programs import flags, is_true, log, wait
from fakekube.nodes.images.servers import Answer, Request, as_json, fetch, listen_http, redirect, tls_context
from fakekube.nodes.runtime.descriptors import PipeReader, PipeWriter
from fakekube.nodes.runtime.filesystem import Directory, File
from fakekube.nodes.runtime.listeners import Peer
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import sleep, wait_until


async def _test_webserver(program: Program) -> int:
    given, _ = flags(program, {"port": "80"})

    def handle(request: Request) -> Answer:
        path = posixpath.normpath("/" + request.path)
        try:
            node = program.files.node(path)
        except OSError:
            return Answer("404 page not found\n", 404)
        if isinstance(node, Directory):
            names = "".join(f'<a href="{name}">{name}</a>\n' for name in program.files.list(path))
            return Answer(f"<!doctype html>\n<pre>\n{names}</pre>\n", headers={"Content-Type": "text/html; charset=utf-8"})
        return Answer(bytes(node.content) if isinstance(node, File) else b"")

    with listen_http(program, int(given["port"]), handle):
        return await wait(program)


async def _serve_hostname(program: Program) -> int:
    given, _ = flags(program, {"tcp": "false", "udp": "false", "http": "true", "close": "false", "port": "9376"})
    port, hostname = int(given["port"]), program.host.hostname
    if is_true(given["http"]) and (is_true(given["tcp"]) or is_true(given["udp"])):
        return await program.complain("Can't server TCP/UDP mode and HTTP mode at the same time")
    headers = {"Connection": "close"} if is_true(given["close"]) else {}

    def accept(peer: Peer) -> Connection:
        connection = Connection(Pipe(), Pipe())
        connection.to_client.write(hostname.encode())
        connection.to_client.close()
        return connection

    with ExitStack() as stack:
        listeners = program.host.network.listeners
        if is_true(given["http"]):
            stack.enter_context(listen_http(program, port, lambda request: Answer(hostname, headers=headers)))
        if is_true(given["tcp"]):
            stack.enter_context(listeners.tcp(port, accept))
        if is_true(given["udp"]):
            stack.enter_context(listeners.udp(port, lambda data, peer: hostname.encode()))
        log(program, f"Serving on port {port}.")
        return await wait(program)


async def _liveness(program: Program) -> int:
    """Serves /healthz, which fails from ten seconds after the start on."""

    def handle(request: Request) -> Answer:
        seconds = program.host.started_seconds()
        if request.path == "/started":
            return Answer(f"{seconds:.9f}s")
        if request.path == "/redirect":
            return redirect(request.query.get("loc", ""))
        if request.path == "/healthz":
            return Answer(f"error: {seconds}", 500) if seconds > 10 else Answer("ok")
        return Answer("404 page not found\n", 404)

    with listen_http(program, 8080, handle):
        return await wait(program)


#: Variable → the file of a certificate, or of its key.
_CERTIFICATE: Final = {"CERT_FILE": "/localhost.crt", "KEY_FILE": "/localhost.key"}


async def _porter(program: Program) -> int:
    """Serves values at the ports that environment variables name: SERVE_PORT_80, SERVE_TLS_PORT_443, SERVE_UDP_PORT_53."""
    given, _ = flags(program, {"json-response": "false"})
    with ExitStack() as stack:
        for name, value in program.env.items():
            kind, _, port = name.removeprefix("SERVE_").rpartition("_")
            if not name.startswith("SERVE_") or not port.isdigit():
                continue

            def handle(request: Request, value: str = value) -> Answer:
                if is_true(given["json-response"]):
                    return Answer(
                        as_json({"Method": request.method, "Body": value}), headers={"Content-Type": "application/json"}
                    )
                return Answer(value)

            if kind in ("PORT", "TCP_PORT"):
                stack.enter_context(listen_http(program, int(port), handle))
            elif kind == "TLS_PORT":
                pair = (program.env.get(name) or default for name, default in _CERTIFICATE.items())
                context = tls_context(program, *pair)
                stack.enter_context(listen_http(program, int(port), handle, context))
            elif kind == "UDP_PORT":
                stack.enter_context(
                    program.host.network.listeners.udp(int(port), lambda data, peer, value=value: value.encode())  # type: ignore[misc]
                )
        return await wait(program)


async def _port_forward_tester(program: Program) -> int:
    """Accepts one connection, checks what it receives, and sends chunks of data."""
    changed, found = Notifier(), list[Connection]()

    def accept(peer: Peer) -> Connection:
        found.append(Connection(Pipe(), Pipe()))
        changed.notify()
        return found[-1]

    with program.host.network.listeners.tcp(int(program.env["BIND_PORT"]), accept):
        connection = await wait_until(lambda: found[0] if found else None, changed)
        await program.write("Accepted client connection\n")
        return await _check_and_answer(program, connection)


async def _check_and_answer(program: Program, connection: Connection) -> int:
    """Serves the connection of port-forward-tester. Returns the exit code."""
    env = program.env
    reader, writer = PipeReader(connection.from_client), PipeWriter(connection.to_client)
    expected = env.get("EXPECTED_CLIENT_DATA", "").encode()
    if expected:
        received = b""
        while len(received) < len(expected) and (part := await reader.read(len(expected) - len(received))):
            received += part
        if len(received) != len(expected):
            await program.write(f"Expected to read {len(expected)} bytes from client, but got {len(received)} instead. err=EOF\n")
            return 2
        if received != expected:
            await program.write(
                f'Expect to read "{expected.decode()}", but got "{received.decode("utf-8", "replace")}". err=<nil>\n'
            )
            return 3
        await program.write("Received expected client data\n")
    chunks = int(env["CHUNKS"])
    for number in range(chunks):
        await writer.write(b"x" * int(env["CHUNK_SIZE"]))
        if number + 1 < chunks:
            await sleep(int(env["CHUNK_INTERVAL"]) / 1000)
    await program.write("Shutting down connection\n")
    connection.to_client.close()
    await sleep(0.5)
    await program.write("Done\n")
    return 0


async def _grpc_health_checking(program: Program) -> int:
    """Serves grpc.health.v1.Health for probes; it is not healthy after --delay-unhealthy-sec seconds."""
    given, _ = flags(program, {"port": "5000", "http-port": "8080", "delay-unhealthy-sec": "-1", "service": ""})
    delay, state = float(given["delay-unhealthy-sec"]), dict[str, bool]()

    def is_healthy() -> bool:
        return state.get("healthy", not (0 <= delay <= program.host.started_seconds()))

    def handle(request: Request) -> Answer:
        if request.path in ("/make-serving", "/make-not-serving"):
            state["healthy"] = request.path == "/make-serving"
        return Answer("Http server: make-serving, make-not-serving\n")

    listeners, port = program.host.network.listeners, int(given["port"])
    with listeners.tcp(port, lambda peer: Connection(Pipe(), Pipe())), listen_http(program, int(given["http-port"]), handle):
        listeners.health[port] = lambda name: is_healthy() if name in ("", given["service"]) else None
        try:
            return await wait(program)
        finally:
            del listeners.health[port]


async def _tcp_reset(program: Program) -> int:
    given, _ = flags(program, {"port": "8080"})

    def accept(peer: Peer) -> Connection:
        connection = Connection(Pipe(), Pipe())
        connection.from_client.abandon()
        connection.to_client.close()
        return connection

    with program.host.network.listeners.tcp(int(given["port"]), accept):
        return await wait(program)


#: Seconds for which a replica tries to register.
_PATIENCE: Final = 15


class _Guestbook:
    def __init__(self, program: Program, backend_port: int) -> None:
        self._program, self._backend_port = program, backend_port
        self._values: dict[str, Any] = {}
        self._replicas: list[str] = []

    def handle(self, request: Request) -> Answer:
        """Responds to a request."""
        found: Mapping[str, Callable[[Request], Answer]] = {
            "/register": self._register,
            "/get": self._get,
            "/set": self._set,
            "/guestbook": self._forward,
        }
        handler = found.get(request.path)
        return Answer("404 page not found\n", 404) if handler is None else handler(request)

    def register_at(self, host: str) -> None:
        """Registers at the primary, and takes its values over. Raises OSError."""
        own = self._program.host.network.own_address()
        _, body = fetch(self._program, f"http://{host}:{self._backend_port}/register?host={own}")
        self._values = json.loads(body)["data"]

    def _register(self, request: Request) -> Answer:
        self._replicas.append(request.query.get("host", ""))
        log(self._program, f"Node '{self._replicas[-1]}' registered.")
        return Answer(as_json({"data": self._values}))

    def _get(self, request: Request) -> Answer:
        key = request.query.get("key", "")
        return Answer(as_json({"data": self._values.get(key, "") if key else self._values}))

    def _set(self, request: Request) -> Answer:
        key, value = request.query.get("key", ""), request.query.get("value", "")
        if not key:
            return Answer("cannot set with empty key.\n", 400)
        self._values[key] = value
        for replica in self._replicas:
            try:
                fetch(self._program, f"http://{replica}:{self._backend_port}/set?{urlencode({'key': key, 'value': value})}")
            except OSError as error:
                return Answer(f"encountered error while propagating to replica '{replica}': {error.strerror}\n", 417)
        return Answer(as_json({"message": "Updated"}))

    def _forward(self, request: Request) -> Answer:
        command = request.query.get("cmd", "").lower()
        if command not in ("get", "set"):
            return Answer(f"unsupported cmd: '{command}'\n", 400)
        if command == "set" and not request.query.get("key"):
            return Answer("cannot set with empty key.\n", 400)
        host = "agnhost-replica" if command == "get" else "agnhost-primary"
        query = urlencode({name: request.query.get(name, "") for name in ("key", "value")})
        try:
            return Answer(fetch(self._program, f"http://{host}:{self._backend_port}/{command}?{query}")[1])
        except OSError as error:
            return Answer(f"encountered error: {error.strerror}\n", 417)


async def _guestbook(program: Program) -> int:
    given, _ = flags(program, {"http-port": "80", "backend-port": "6379", "replicaof": ""})
    server = _Guestbook(program, int(given["backend-port"]))
    with ExitStack() as stack:
        stack.enter_context(listen_http(program, int(given["http-port"]), server.handle))
        if given["replicaof"]:
            for _ in range(_PATIENCE):
                try:
                    server.register_at(given["replicaof"])
                except (OSError, TimeoutError):
                    await sleep(1.0)
                else:
                    log(program, f"Registered to node: {given['replicaof']}")
                    break
            else:
                return await program.complain("Timed out while registering to primary.")
        return await wait(program)


COMMANDS: Final[dict[str, Command]] = {
    "test-webserver": _test_webserver,
    "serve-hostname": _serve_hostname,
    "liveness": _liveness,
    "porter": _porter,
    "port-forward-tester": _port_forward_tester,
    "grpc-health-checking": _grpc_health_checking,
    "tcp-reset": _tcp_reset,
    "guestbook": _guestbook,
}

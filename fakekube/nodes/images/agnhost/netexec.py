"""`agnhost netexec`: servers over HTTP and UDP that tell about themselves, dial others, run commands and end.

Specified by: test/images/agnhost/netexec/netexec.go.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from typing import Final
from urllib.parse import parse_qs, urlsplit

from fakekube.base.golang.strconv import go_quote
from fakekube.nodes.images.programs import duration, flags, log
from fakekube.nodes.images.servers import Answer, Exit, Request, as_json, fetch, listen_http, serve_until_end, tls_context
from fakekube.nodes.runtime.listeners import Peer
from fakekube.nodes.runtime.network import NoSuchHost
from fakekube.nodes.runtime.program import Command, Program

_DEFAULTS: Final = {
    "http-port": "8080",
    "udp-port": "8081",
    "sctp-port": "-1",
    "tls-cert-file": "",
    "tls-private-key-file": "",
    "http-override": "",
    "udp-listen-addresses": "",
    "delay-shutdown": "0",
}
#: The maximum seconds of a command of /shell.
_SHELL_LIMIT: Final = 600.0
#: The maximum number of requests of one /dial.
_MOST_TRIES: Final = 1000
#: The integers that are accepted (strconv.Atoi), here without a plus sign and with at most nine digits.
_INTEGER: Final = re.compile(r"-?[0-9]{1,9}")


class _NetExec:
    """The server of one container.

    Args:
        program: the program that serves.
        port: its HTTP port.
        override: the URL that it responds to whatever the request is; "" for none.
    """

    def __init__(self, program: Program, port: int, override: str) -> None:
        self._program, self._port, self._override = program, port, override
        self.end = Exit()
        self.is_ready = False
        self.is_stopping = False

    # --- HTTP ---------------------------------------------------------------------------------------------------------

    def begin_to_stop(self) -> None:
        """Makes the server say that it is not healthy any more."""
        self.is_stopping = True

    def handle(self, request: Request) -> Answer:
        """Responds to a request."""
        if self._override:
            parts = urlsplit(self._override)
            query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            request = Request("GET", parts.path or "/", query, request.headers, b"", request.peer)
        shown = "&".join(f"{name}={value}" for name, value in request.query.items())
        log(self._program, f"GET {request.path}{f'?{shown}' if shown else ''}")
        handler = _PATHS.get(request.path, _NetExec._root)
        return handler(self, request)

    def _root(self, request: Request) -> Answer:
        now: datetime = self._program.task_time()
        return Answer(f"NOW: {now:%Y-%m-%d %H:%M:%S.%f}000 +0000 UTC m=+{self._program.host.started_seconds():.9f}")

    def _client_ip(self, request: Request) -> Answer:
        return Answer(request.peer)

    def _server_port(self, request: Request) -> Answer:
        return Answer(str(self._port))

    def _header(self, request: Request) -> Answer:
        key = request.form.get("key", "")
        if key:
            return Answer(request.headers.get(f"HTTP_{key.upper().replace('-', '_')}", ""))
        named = {
            "-".join(part.capitalize() for part in name.removeprefix("HTTP_").split("_")): [value]
            for name, value in request.headers.items()
            if name != "HTTP_HOST"
        }
        return Answer(as_json(dict(sorted(named.items()))))

    def _hostname(self, request: Request) -> Answer:
        return Answer(self._program.host.hostname)

    def _healthz(self, request: Request) -> Answer:
        return Answer(code=200 if self.is_ready else 412)

    def _readyz(self, request: Request) -> Answer:
        if self.is_stopping:
            return Answer("shutting down", 503)
        return Answer("ok") if self.is_ready else Answer(code=412)

    def _echo(self, request: Request) -> Answer:
        message, code = request.form.get("msg", ""), request.form.get("code", "")
        if code and not _INTEGER.fullmatch(code):
            return Answer(f"argument 'code' must be an integer or empty, got {go_quote(code)}\n")
        return Answer(message, int(code) if code else 200)

    def _redirect(self, request: Request) -> Answer:
        location, code = request.form.get("location", ""), request.form.get("code", "")
        if code and not _INTEGER.fullmatch(code):
            return Answer(f"argument 'code' must be an integer or empty, got {go_quote(code)}\n")
        return Answer("", int(code) if code else 302, {"Location": location})

    def _shut_down(self, request: Request) -> Answer:
        self.end.set(0)
        return Answer()

    def _exit(self, request: Request) -> Answer:
        given = {name: request.form.get(name, "") for name in ("code", "timeout", "wait")}
        try:
            wait, _ = duration(given["wait"]), duration(given["timeout"])
            code = int(given["code"] or 0)
        except ValueError as error:
            return Answer(f"{error}\n")
        self._program.host.clock.call_at(self._program.host.clock.monotonic() + wait, lambda: self.end.set(code))
        return Answer()

    def _shell(self, request: Request) -> Answer:
        text = request.form.get("shellCommand") or request.form.get("cmd", "")
        found = self._program.host.run_to_end(["/bin/sh", "-c", text], _SHELL_LIMIT)
        output = {}
        if found.output:
            output["output"] = found.output.decode("utf-8", "replace")
        if found.code:
            output["error"] = f"exit status {found.code}"
        return Answer(as_json(dict(sorted(output.items(), reverse=True))))

    def _upload(self, request: Request) -> Answer:
        from email.parser import BytesParser
        from email.policy import HTTP

        kind = request.headers.get("CONTENT_TYPE", "")
        message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + request.body)
        for part in message.iter_parts() if message.is_multipart() else ():
            if part.get_param("name", header="content-disposition") == "file":
                name = f"/uploads/upload{time.monotonic_ns() % 10**9}"
                content = part.get_payload(decode=True)
                self._program.files.write(name, content if isinstance(content, bytes) else b"", mode=0o700)
                return Answer(as_json({"output": name}), 201)
        return Answer(as_json({"error": "Unable to upload file."}))

    # --- Dialling -----------------------------------------------------------------------------------------------------

    def _dial(self, request: Request) -> Answer:
        query = request.query
        host, port, wanted = query.get("host", ""), query.get("port", ""), query.get("request", "")
        tries = query.get("tries") or "1"
        if not _INTEGER.fullmatch(tries):
            return Answer(f"tries parameter is invalid. {tries}\n", 400)
        if not wanted:
            return Answer("request parameter not specified. <nil>\n", 400)
        dial = _DIALERS.get((query.get("protocol") or "http").lower())
        if dial is None:
            return Answer(f"unsupported protocol. {query['protocol']}\n", 400)
        if not _INTEGER.fullmatch(port):
            return Answer(f"host and/or port param are invalid. {port}\n", 400)
        responses, errors = list[str](), list[str]()
        for _ in range(min(int(tries), _MOST_TRIES)):
            try:
                responses.append(dial(self._program, host, int(port), wanted))
            except NoSuchHost:
                return Answer(f"host and/or port param are invalid. lookup {host}: no such host\n", 400)
            except (OSError, TimeoutError) as error:
                errors.append(f"dial {host}:{port}: {error.strerror or 'i/o timeout'}")
        output = {"errors": errors} if errors else {}
        return Answer(as_json({**output, "responses": responses} if responses else output))

    # --- UDP ----------------------------------------------------------------------------------------------------------

    def receive(self, data: bytes, peer: Peer) -> bytes | None:
        """Answers a datagram."""
        text = data.decode("utf-8", "replace").strip().lower()
        if text.startswith("echo "):
            return text.partition(" ")[2].encode()
        answers: Mapping[str, Callable[[], str]] = {
            "hostname": lambda: self._program.host.hostname,
            "clientip": lambda: str(peer),
            "serverport": lambda: str(self._port),
        }
        found = answers.get(text)
        return None if found is None else found().encode()


def _dial_udp(program: Program, host: str, port: int, request: str) -> str:
    """Sends a datagram, and returns the response. Raises OSError."""
    found = program.host.network.send(host, port, request.encode())
    if not found:
        raise TimeoutError("i/o timeout")
    return found.decode("utf-8", "replace")


_DIALERS: Final[dict[str, Callable[[Program, str, int, str], str]]] = {
    "http": lambda program, host, port, request: fetch(
        program, f"http://{f'[{host}]' if ':' in host else host}:{port}/{request}"
    )[1].decode("utf-8", "replace"),
    "udp": _dial_udp,
}

_PATHS: Final[dict[str, Callable[[_NetExec, Request], Answer]]] = {
    "/clientip": _NetExec._client_ip,
    "/serverport": _NetExec._server_port,
    "/header": _NetExec._header,
    "/dial": _NetExec._dial,
    "/echo": _NetExec._echo,
    "/exit": _NetExec._exit,
    "/healthz": _NetExec._healthz,
    "/readyz": _NetExec._readyz,
    "/hostname": _NetExec._hostname,
    "/hostName": _NetExec._hostname,
    "/redirect": _NetExec._redirect,
    "/shell": _NetExec._shell,
    "/shutdown": _NetExec._shut_down,
    "/upload": _NetExec._upload,
}


async def _netexec(program: Program) -> int:
    given, _ = flags(program, _DEFAULTS)
    port, udp_port = int(given["http-port"]), int(given["udp-port"])
    server = _NetExec(program, port, given["http-override"])
    context = None
    if given["tls-cert-file"]:
        context = tls_context(program, given["tls-cert-file"], given["tls-private-key-file"])
    if int(given["sctp-port"]) != -1:
        return await program.complain("SCTP: protocol not supported")
    with ExitStack() as stack:
        try:
            stack.enter_context(listen_http(program, port, server.handle, context))
        except OSError:
            return await program.complain(f"listen tcp :{port}: bind: address already in use")
        log(program, f"Started HTTP server on port {port}")
        if udp_port != -1:
            with contextlib.suppress(OSError):
                stack.enter_context(program.host.network.listeners.udp(udp_port, server.receive))
                log(program, f"Started UDP server on port  {udp_port}")
                server.is_ready = True
        return await serve_until_end(program, server.end, float(given["delay-shutdown"]), server.begin_to_stop)


COMMANDS: Final[dict[str, Command]] = {"netexec": _netexec}

"""What programs of known images have in common: flags of Go, small programs, and servers at ports of the pod.

Flags are `--port=80`, `--port 80`, `--http`, `-t 5`. Servers speak HTTP over TCP or TLS, and UDP. A program listens with
`listen_http` or the listeners of its pod, and waits in `serve_until_end`. Requests are handled in threads of the process, one for
each request, as those of a test's WSGI application.

Invariant: a port is free again when the program ends.

Specified by: net/http of Go, as far as agnhost uses it.
"""

from __future__ import annotations

import errno
import json
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from fakekube.apiserver.endpoints.negotiation import HTML
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, ResponseReader
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.net.streams import Notifier
from fakekube.nodes.runtime.commands import command
from fakekube.nodes.runtime.listeners import Peer
from fakekube.nodes.runtime.ports import serve
from fakekube.nodes.runtime.program import Program, Usage
from fakekube.nodes.runtime.scheduling import SIGTERM, Killed, sleep, wait_until

#: The token of the pod's service account.
SERVICE_ACCOUNT_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TERM: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def flags(
    program: Program, defaults: Mapping[str, str], short: Mapping[str, str] | None = None, *, first: int = 1
) -> tuple[dict[str, str], list[str]]:
    """Returns the flags of a subcommand, by name, and its operands.

    Args:
        program: the program.
        defaults: name → default; a flag whose default is `true` or `false` takes a value only after `=`.
        short: letter → name.
        first: the number of the argument from which on they stand; that of a subcommand comes before.

    Raises:
        Usage: a flag is unknown.
    """
    found, operands, rest = dict(defaults), list[str](), list(program.args[first:])
    while rest:
        word = rest.pop(0)
        if word == "--":
            return found, operands + rest
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = (short or {}).get(name, name)
        if name == "v":
            rest = rest if equals else rest[1:]
            continue
        if name in ("logtostderr", "alsologtostderr"):
            continue
        if name not in defaults:
            raise Usage(f"unknown flag: --{name}")
        if not equals:
            value = "true" if defaults[name] in ("true", "false") else _next(rest, name)
        found[name] = value
    return found, operands


def _next(rest: list[str], name: str) -> str:
    if not rest:
        raise Usage(f"expected argument for flag --{name}")
    return rest.pop(0)


def is_true(value: str) -> bool:
    """Parses a boolean flag."""
    return value.lower() in ("true", "1", "t")


def duration(text: str) -> float:
    """Parses a duration of Go, in seconds. Raises ValueError."""
    if text in ("", "0"):
        return 0.0
    terms: Sequence[tuple[str, str]] = _TERM.findall(text)
    if "".join(number + unit for number, unit in terms) != text:
        raise ValueError(f'time: invalid duration "{text}"')
    return sum(float(number) * _UNITS[unit] for number, unit in terms)


def log(program: Program, text: str) -> None:
    """Writes a line to the container's log, as Go's package log does."""
    program.host.write_log(f"{text}\n", "stderr")


_PI = re.compile(r"bpi\((\d+)\)")


async def wait(program: Program) -> int:
    """Waits until it is killed."""
    code: int = await wait_until(lambda: None)
    return code


async def nonewprivs(program: Program) -> int:
    """Prints its effective user: root if the program may gain privileges, as its file has the set-user-id bit."""
    security = program.host.spec.get("securityContext") or {}
    uid = program.host.uid if security.get("allowPrivilegeEscalation") is False else 0
    await program.write(f"Effective uid: {uid}\n")
    return 0


async def curl_entrypoint(program: Program) -> int:
    """Runs the program that the arguments name, or else curl with them."""
    words = program.args
    is_program = bool(words) and not words[0].startswith("-") and command(words[0].rpartition("/")[2]) is not None
    return await program.run_other(words if is_program else ["curl", *words], program)


async def perl(program: Program) -> int:
    """Prints digits of π, which is what the Job of Kubernetes' documentation asks for; other scripts do nothing."""
    found = _PI.search(" ".join(program.args))
    if found is not None:
        await program.write(f"{_pi(min(int(found[1]), 10_000))}\n")
    return 0


def _pi(digits: int) -> str:
    """Returns π with so many digits (Machin's formula)."""
    one: int = 10 ** (digits + 10)

    def arctan(inverse: int) -> int:
        term = total = one // inverse
        number, sign = 3, -1
        while term:
            term //= inverse * inverse
            total += sign * (term // number)
            number, sign = number + 2, -sign
        return total

    text = str((4 * (4 * arctan(5) - arctan(239))) // 10**10)
    return f"{text[0]}.{text[1:digits]}"


#: Path → (argument of the amount, resource of the container, unit).
_CONSUMED: Final = {"/ConsumeCPU": ("millicores", "cpu", 1), "/ConsumeMem": ("megabytes", "memory", 1024 * 1024)}


async def resource_consumer(program: Program) -> int:
    """Serves /ConsumeCPU and /ConsumeMem."""
    given, _ = flags(program, {"port": "8080"}, first=0)

    def handle(request: Request) -> Answer:
        if request.method != "POST":
            return Answer("Bad request. Not a POST request\n", 400)
        if request.path not in _CONSUMED:
            return Answer("unknown function\n", 404)
        name, resource, unit = _CONSUMED[request.path]
        try:
            amount, seconds = int(request.form[name]), float(request.form["durationSec"])
        except KeyError:
            return Answer("not given query\n", 400)
        except ValueError:
            return Answer("incorrect function argument\n", 400)
        program.host.use(resource, amount * unit, seconds)
        return Answer(f"{request.path[1:]}\n{amount} {name}\n{seconds:g} durationSec\n")

    with listen_http(program, int(given["port"]), handle):
        return await wait(program)


# --- Servers in programs of images ------------------------------------------------------------------------------------


#: How HTML begins (DetectContentType).
_HTML_START: Final = re.compile(
    rb"[\t\n\f\r ]*(?:<!--|<(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY|BR|P)[ >])",
    re.IGNORECASE,
)
#: The real seconds for which a server is waited for.
_PATIENCE: Final = 5.0


@dataclass(slots=True, frozen=True)
class Request:
    """An HTTP request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names are those of the CGI environment, such as HTTP_HOST."""
    body: bytes
    peer: str
    """Address and port of the client."""

    @property
    def form(self) -> Mapping[str, str]:
        """The values of the query and of a form in the body."""
        if self.headers.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
            return {**_first_values(self.body.decode("utf-8", "replace")), **self.query}
        return self.query


@dataclass(slots=True, frozen=True)
class Answer:
    """An HTTP response."""

    body: str | bytes = b""
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def redirect(location: str, code: int = 302) -> Answer:
    """Returns the answer of http.Redirect."""
    body = f'<a href="{escape(location)}">{HTTPStatus(code).phrase}</a>.\n\n'
    return Answer(body, code, {"Content-Type": HTML, "Location": location})


class Exit:
    """The end of a program, which a request may cause."""

    def __init__(self) -> None:
        self._notifier = Notifier()
        self._code: int | None = None

    def set(self, code: int) -> None:
        """Ends the program with this code; from any thread."""
        self._code = code
        self._notifier.notify()

    async def wait(self) -> int:
        """Waits for the end of the program. Returns its exit code."""
        return await wait_until(lambda: self._code, self._notifier)


async def serve_until_end(program: Program, end: Exit, delay: float, begin_to_stop: Callable[[], None] = lambda: None) -> int:
    """Waits for a request that ends the program, or for SIGTERM, after which it serves for some seconds if there is a delay.

    Args:
        program: the program.
        end: what the request sets.
        delay: the seconds.
        begin_to_stop: called before them.
    """
    program.task.caught = frozenset({SIGTERM}) if delay > 0 else frozenset()
    try:
        return await end.wait()
    except Killed as killed:
        if killed.signal != SIGTERM or not delay:
            raise
    begin_to_stop()
    await sleep(delay)
    return 0


def _first_values(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}


def application(handle: Callable[[Request], Answer]) -> Callable[..., Iterable[bytes]]:
    """Returns a WSGI application that calls a function."""

    def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(
            environ["REQUEST_METHOD"],
            environ["PATH_INFO"],
            _first_values(environ.get("QUERY_STRING", "")),
            {name: value for name, value in environ.items() if name.startswith("HTTP_") or name == "CONTENT_TYPE"},
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)),
            environ.get("REMOTE_ADDR", "127.0.0.1") + ":" + environ.get("REMOTE_PORT", "0"),
        )
        answer = handle(request)
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        headers = {
            "Content-Type": f"text/{'html' if _HTML_START.match(body) else 'plain'}; charset=utf-8",
            **answer.headers,
            "Content-Length": str(len(body)),
        }
        phrase = HTTPStatus(answer.code).phrase if answer.code in HTTPStatus._value2member_map_ else "status code"
        start_response(f"{answer.code} {phrase}", list(headers.items()))
        return [body]

    return respond


@contextmanager
def listen_http(
    program: Program, port: int, handle: Callable[[Request], Answer], context: ssl.SSLContext | None = None
) -> Iterator[None]:
    """Serves HTTP at a port of the pod; over TLS if a context is given. Raises OSError if the port is taken."""
    with listen(program, port, application(handle), context):
        yield


@contextmanager
def listen(
    program: Program, port: int, served: Callable[..., Iterable[bytes]], context: ssl.SSLContext | None = None
) -> Iterator[None]:
    """Serves a WSGI application at a port of the pod; see `listen_http`."""

    def accept(peer: Peer) -> Connection:
        if context is None:
            return serve(served, peer)
        from fakekube.nodes.runtime.tls import secure

        return secure(lambda _certificate: serve(served, peer), context)

    with program.host.network.listeners.tcp(port, accept, secure=context is not None):
        yield


def tls_context(program: Program, certificate: str, key: str) -> ssl.SSLContext:
    """Returns the context of a server with a certificate and a key in files of the container. Raises OSError, SSLError."""
    from fakekube.nodes.runtime.tls import load_credentials

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    load_credentials(context, program.read_file(certificate), program.read_file(key))
    return context


def fetch(program: Program, url: str, body: bytes | None = None, timeout: float = _PATIENCE) -> tuple[int, bytes]:
    """Sends a request from the pod, GET or POST of a JSON document, and blocks until it is answered. Returns status and body.

    Raises OSError.
    """
    parts = urlsplit(url)
    connection = program.host.network.connect(parts.hostname or "", parts.port or 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method = "GET" if body is None else "POST"
    head = f"{method} {target} HTTP/1.0\r\nHost: {parts.netloc}\r\nUser-Agent: Go-http-client/1.1\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    reader = ResponseReader(lambda: connection.to_client.read_blocking(timeout=timeout))
    try:
        connection.from_client.write_all(f"{head}\r\n".encode() + (body or b""))
        response = reader.read_response(method)
        return response.status, b"".join(reader.iterate_body())
    except (ConnectionEndedError, MalformedResponseError) as error:
        raise OSError(errno.ECONNRESET, str(error) or "EOF") from None
    finally:
        connection.from_client.close()
        connection.to_client.abandon()


def as_json(value: object) -> str:
    """Returns a value as Go's encoding/json prints it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character, escaped in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(character, escaped)
    return text

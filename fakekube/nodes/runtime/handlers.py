"""The handlers of probes and hooks of containers: commands, HTTP requests, gRPC calls, connections, sleeps.

Commands run to their end without waiting: their sleeps return at once, and count as time that has passed. HTTP requests and
connections go through the network of the cluster. gRPC asks a program of a known image, or calls the health service of a server
(`grpc_health`).

Invariant: a call ends within its limit, and reads at most `_MAX_BODY`.

Specified by: pkg/kubelet/prober/prober.go (runProbe), pkg/probe/{exec,http,tcp,grpc}, pkg/kubelet/lifecycle/handlers.go.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from fakekube.apiserver.webhooks.connections import HTTP_ANSWER
from fakekube.base.objects import StoredObject
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, ResponseReader
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.nodes.runtime.grpc_health import NoHTTP2Error, check_health

if TYPE_CHECKING:
    from fakekube.nodes.runtime.container import Container


#: The statuses of an HTTP response that are a success.
_SUCCEEDED: Final = range(200, 400)
_REDIRECTIONS: Final = range(300, 400)
#: The bytes of a response's body that a probe reads.
_MAX_BODY: Final = 10 * 1024
#: How many redirections to the same host are followed.
_MAX_REDIRECTS: Final = 10
#: The real seconds for which a server of a test is waited for.
_MAX_WAIT: Final = 5.0
#: The exit code of a command that the shell does not have, which does nothing.
_NOT_FOUND: Final = 127


class Result(NamedTuple):
    """The result of a probe or hook."""

    failure: str | None = None
    """Why it failed; None if it succeeded."""
    seconds: float = 0.0
    """The time that it took, by the clock of the cluster."""
    warning: str = ""
    """What an event tells of a probe that has succeeded; "" for nothing."""


class Caller(NamedTuple):
    """What calls a handler."""

    program: str
    """kube-probe or kube-lifecycle."""
    version: str
    """The version of the kubelet: major and minor."""

    @property
    def judges(self) -> bool:
        """Whether the status of a response decides: a hook only has to be answered."""
        return self.program == "kube-probe"


def run_handler(container: Container, handler: StoredObject, limit: float, caller: Caller) -> Result:
    """Runs the handler of a probe or of a hook.

    Args:
        container: the container.
        handler: `exec`, `httpGet`, `tcpSocket`, `grpc` or `sleep`.
        limit: the maximum time, in seconds.
        caller: what calls it.
    """
    if "exec" in handler:
        return _run_command(container, handler["exec"].get("command") or (), limit)
    if "sleep" in handler:
        return Result(None, min(float(handler["sleep"]["seconds"]), limit))
    # While the clock stands still, no time passes for a server, however busy the machine is.
    patience = _MAX_WAIT if container.clock.held else min(limit, _MAX_WAIT)
    if "grpc" in handler:
        return Result(_check_health(container, handler["grpc"], min(limit, _MAX_WAIT), patience, caller))
    if "httpGet" in handler:
        return _get(container, handler["httpGet"], patience, caller)
    if "tcpSocket" in handler:
        return Result(_connect(container, handler["tcpSocket"]))
    return Result()


def _run_command(container: Container, command: Sequence[str], limit: float) -> Result:
    ended = container.run_to_end(command, limit)
    if ended.code is None:
        return Result(f'command "{" ".join(command)}" timed out after {limit:g}s', limit)
    if ended.code in (0, _NOT_FOUND):
        return Result(None, ended.seconds)
    return Result(ended.output.decode("utf-8", "replace"), ended.seconds)


def _connect(container: Container, action: StoredObject) -> str | None:
    """Connects to a port. Returns why that failed."""
    host, port = action.get("host") or container.network.own_address(), _port(container, action["port"])
    try:
        connection = container.network.connect(host, port)
    except OSError as error:
        return _dial_error(host, port, error)
    _leave(connection)
    return None


def _dial_error(host: str, port: int, error: OSError) -> str:
    return f"dial tcp {host}:{port}: connect: {(error.strerror or str(error)).lower()}"


def _leave(connection: Connection) -> None:
    connection.from_client.close()
    connection.to_client.abandon()


def _get(container: Container, action: StoredObject, patience: float, caller: Caller) -> Result:
    """Sends the request of `httpGet`, and follows redirections to the same host; others are a success with a warning."""
    host, port = action.get("host") or container.network.own_address(), _port(container, action["port"])
    path = action.get("path") or "/"
    url = f"{(action.get('scheme') or 'HTTP').lower()}://{host}:{port}{path if path.startswith('/') else f'/{path}'}"
    given = {one["name"].title(): one["value"] for one in action.get("httpHeaders") or ()}
    fields = {"User-Agent": f"{caller.program}/{caller.version}", "Accept": "*/*", **given, "Connection": "close"}
    first = url
    for _ in range(_MAX_REDIRECTS):
        try:
            status, location, body = _send(container, urlsplit(url), fields, patience)
        except TimeoutError:
            return Result(f'Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)')
        except (BrokenPipeError, ConnectionEndedError):
            return Result(f'Get "{url}": EOF')
        except ssl.SSLError as error:
            plain = error.reason in _PLAIN_ANSWERS
            return Result(f'Get "{url}": {HTTP_ANSWER if plain else f"remote error: tls: {error.reason}"}')
        except (OSError, MalformedResponseError) as error:
            return Result(f'Get "{url}": {error}')
        url = urljoin(url, location)
        if status not in _REDIRECTIONS or not location or urlsplit(url).hostname != urlsplit(first).hostname:
            if not caller.judges or status not in _SUCCEEDED:
                return Result(f"HTTP probe failed with statuscode: {status}" if caller.judges else None)
            return Result(warning=f"Probe terminated redirects, Response body: {body}" if status in _REDIRECTIONS else "")
    return Result(f'Get "{url}": stopped after {_MAX_REDIRECTS} redirects')


#: OpenSSL's reasons if a server does not speak TLS.
_PLAIN_ANSWERS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST"})


def _send(container: Container, url: SplitResult, fields: Mapping[str, str], patience: float) -> tuple[int, str, str]:
    """Sends a GET request. Returns the status of the response, where it redirects to, and then its body.

    Raises what `_get` handles.
    """
    host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
    try:
        connection = container.network.connect(host, port)
    except OSError as error:
        raise OSError(_dial_error(host, port, error)) from None
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": url.netloc, **fields}.items())
    data = f"GET {target} HTTP/1.1\r\n{head}\r\n".encode()
    try:
        if url.scheme == "https":
            from fakekube.nodes.runtime.tls import BlockingClient

            client = BlockingClient(connection, patience)
            client.send(data)
            reader = ResponseReader(client.receive)
        else:
            connection.from_client.write_all(data)
            reader = ResponseReader(lambda: connection.to_client.read_blocking(timeout=patience))
        response = reader.read_response("GET")
        body = _read_body(reader) if response.status in _REDIRECTIONS else ""
    finally:
        _leave(connection)
    return response.status, next(iter(response.values("location")), ""), body


def _read_body(reader: ResponseReader) -> str:
    """Returns the body of a response up to the bytes of which a probe tells."""
    found = b""
    for piece in reader.iterate_body():
        found += piece
        if len(found) >= _MAX_BODY:
            break
    return found[:_MAX_BODY].decode("utf-8", "replace")


def _check_health(container: Container, action: StoredObject, limit: float, patience: float, caller: Caller) -> str | None:
    """Asks a gRPC server for its health. Returns why it is not healthy."""
    port, service = int(action["port"]), str(action.get("service") or "")
    check = container.network.listeners.health.get(port)
    if check is None:
        return _call_health(container, action, limit, patience, caller)
    healthy = check(service)
    if healthy is None:
        return "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"
    return None if healthy else 'service unhealthy (responded with "NOT_SERVING")'


def _call_health(container: Container, action: StoredObject, limit: float, patience: float, caller: Caller) -> str | None:
    """Calls the health service of the server at a port."""
    host, port, service = container.network.own_address(), int(action["port"]), str(action.get("service") or "")
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    late = f'timeout: failed to connect service "{authority}" within {limit:g}s: context deadline exceeded'
    agent = f"{caller.program}/{caller.version} grpc-go"
    try:
        connection = container.network.connect(host, port)
    except OSError:
        return late  # the client of gRPC tries again until then
    try:
        send, receive = _transport(connection, patience, action.get("mode") == "TLS")
        return check_health(send, receive, authority=authority, service=service, agent=agent, limit=limit, patience=patience)
    except (NoHTTP2Error, TimeoutError, ssl.SSLError):
        return late
    except (OSError, ConnectionEndedError) as error:
        return f"error: health rpc probe failed: rpc error: code = Unavailable desc = {error}"
    finally:
        _leave(connection)


def _transport(
    connection: Connection, patience: float, is_secure: bool
) -> tuple[Callable[[bytes], None], Callable[[float], bytes]]:
    """Returns functions that write to a server and read from it, through TLS if that is asked for."""
    if not is_secure:
        return connection.from_client.write_all, lambda seconds: connection.to_client.read_blocking(timeout=seconds)
    from fakekube.nodes.runtime.tls import BlockingClient

    client = BlockingClient(connection, patience, ["h2"])
    return client.send, lambda _seconds: client.receive()


def _port(container: Container, port: int | str) -> int:
    """Returns the number of a port of the container."""
    named = {one.get("name"): one["containerPort"] for one in container.spec.get("ports") or ()}
    return int(named.get(port, port))

"""Probes and hooks of containers: commands, HTTP requests, connections, sleeps.

Commands run to their end without waiting: their sleeps return at once, and count as time that has passed. HTTP requests and
connections go through the network of the cluster. HTTPS and gRPC only connect.

Specified by: pkg/kubelet/prober/prober.go (runProbe), pkg/probe/{exec,http,tcp}, pkg/kubelet/lifecycle/handlers.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from fakekube.controllers.objects import StoredObject
from fakekube.net.streaming.kubelet_api import Connection

if TYPE_CHECKING:
    from fakekube.nodes.runtime.container import Container


#: The statuses of an HTTP response that are a success.
_SUCCEEDED: Final = range(200, 400)
_AGENT: Final = "kube-probe/1.36"
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


def run_handler(container: Container, handler: StoredObject, limit: float) -> Result:
    """Runs the handler of a probe or of a hook.

    Args:
        container: The container.
        handler: `exec`, `httpGet`, `tcpSocket`, `grpc` or `sleep`.
        limit: The maximum time, in seconds.
    """
    if "exec" in handler:
        return _run_command(container, handler["exec"].get("command") or (), limit)
    if "sleep" in handler:
        return Result(None, min(float(handler["sleep"]["seconds"]), limit))
    if "grpc" in handler:
        return Result(_check_health(container, handler["grpc"]))
    for kind in ("httpGet", "tcpSocket"):
        if kind in handler:
            return Result(_connect(container, kind, handler[kind], limit))
    return Result()


def _run_command(container: Container, command: Sequence[str], limit: float) -> Result:
    ended = container.run_to_end(command, limit)
    if ended.code is None:
        return Result(f'command "{" ".join(command)}" timed out after {limit:g}s', limit)
    if ended.code in (0, _NOT_FOUND):
        return Result(None, ended.seconds)
    return Result(ended.output.decode("utf-8", "replace"), ended.seconds)


def _connect(container: Container, kind: str, action: StoredObject, limit: float) -> str | None:
    """Connects to a port, and sends the request of `httpGet`. Returns why that failed."""
    host = action.get("host") or container.network.own_address()
    port = _port(container, action["port"])
    scheme = (action.get("scheme") or "HTTP").lower()
    path = action.get("path") or "/"
    url = f'Get "{scheme}://{host}:{port}{path if path.startswith("/") else f"/{path}"}": ' if kind == "httpGet" else ""
    try:
        connection = container.network.connect(host, port)
    except OSError as error:
        return f"{url}dial tcp {host}:{port}: connect: {(error.strerror or str(error)).lower()}"
    try:
        if kind != "httpGet" or scheme != "http":
            return None
        status = _get(connection, f"{host}:{port}", path, action.get("httpHeaders") or (), min(limit, _MAX_WAIT))
    except TimeoutError:
        return f"{url}context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    except (BrokenPipeError, ValueError):
        return f"{url}EOF"
    finally:
        connection.from_client.close()
        connection.to_client.abandon()
    return None if status in _SUCCEEDED else f"HTTP probe failed with statuscode: {status}"


def _check_health(container: Container, action: StoredObject) -> str | None:
    """Asks a gRPC server for its health. Returns why it is not healthy."""
    port = int(action["port"])
    check = container.network.listeners.health.get(port)
    if check is None:
        return _connect(container, "tcpSocket", action, 1.0)
    healthy = check(action.get("service") or "")
    if healthy is None:
        return "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"
    return None if healthy else 'service unhealthy (responded with "NOT_SERVING")'


def _port(container: Container, port: int | str) -> int:
    """Returns the number of a port of the container."""
    named = {one.get("name"): one["containerPort"] for one in container.spec.get("ports") or ()}
    return int(named.get(port, port))


def _get(connection: Connection, host: str, path: str, headers: Iterable[StoredObject], limit: float) -> int:
    """Sends a GET request. Returns the status of the response. Raises TimeoutError, BrokenPipeError, ValueError."""
    given = {one["name"]: one["value"] for one in headers}
    fields = {"Host": host, "User-Agent": _AGENT, "Accept": "*/*", **given, "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    connection.from_client.write_all(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
    line = connection.to_client.readline(timeout=limit)
    return int(line.partition(b" ")[2][:3])

"""The replacement for etcd: accepts etcd's command line and serves /health, so that envtest considers etcd started.

The API server also reads from it the path of etcd's data folder, see `storage`.

This file runs as a script, with Python's `-I -S` and few modules of the standard library, because its start is part of each start
of a control plane. It stores no objects. One thread serves all connections, and the default action of SIGTERM ends the process.

Invariant: the process has no children and no files, so that nothing remains after SIGKILL.

Specified by: go.etcd.io/etcd/server/v3/etcdmain (config.go, help.go) and server/etcdserver/api/etcdhttp (health.go, version.go).
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time

_DEFAULT_URL = "http://localhost:2379"
_ADDRESSES = "listen-client-urls"
_DATA = "data-dir"

_BACKLOG = 128
_ORPHAN_SECONDS = 300.0
"""The process ends after this time without connections if its parent has ended."""
_LOOK_SECONDS = 10.0
_HEAD_BYTES = 16384
"""The maximum size of a request; a larger one ends its connection."""

#: Path → status code and body, as in the real server.
_ANSWERS = {
    "/health": (200, '{"health":"true","reason":""}'),
    "/livez": (200, "ok"),
    "/readyz": (200, "ok"),
    "/version": (200, '{"etcdserver":"3.6.8","etcdcluster":"3.6.0","storage":"3.6.0"}'),
}
_NOT_FOUND = (404, "404 page not found\n")


class UsageError(Exception):
    """The command line requires something that is not supported."""


def addresses(arguments: list[str]) -> list[tuple[str, int]]:
    """Returns hosts and ports of --listen-client-urls, in any spelling; later values replace earlier ones.

    Raises UsageError for URLs that are not plain HTTP.
    """
    urls = flag(arguments, _ADDRESSES) or _DEFAULT_URL
    return [_address(url.strip()) for url in urls.split(",")]


def flag(arguments: list[str], wanted: str) -> str:
    """Returns the last value of a flag, in any spelling; "" if it is not given."""
    found = ""
    for place, argument in enumerate(arguments):
        name, equals, value = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name == wanted:
            found = value if equals else "".join(arguments[place + 1 : place + 2])
    return found


def _address(url: str) -> tuple[str, int]:
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme != "http" or not port.isdigit() or int(port) > 65535:
        raise UsageError(f'--{_ADDRESSES}: "{url}" is not http://ADDRESS:PORT; this replacement of etcd serves plain HTTP only')
    return host.strip("[]"), int(port)


def serve(listeners: list[socket.socket]) -> None:
    """Serves all connections; returns after `_ORPHAN_SECONDS` without a parent and without connections."""
    poll = select.poll()
    listening = {listener.fileno(): listener for listener in listeners}
    connections: dict[int, tuple[socket.socket, bytes]] = {}
    for number in listening:
        poll.register(number, select.POLLIN)
    parent, last_use = os.getppid(), time.monotonic()
    while time.monotonic() - last_use < _ORPHAN_SECONDS:
        if connections or os.getppid() == parent:
            last_use = time.monotonic()
        for number, _ in poll.poll(_LOOK_SECONDS * 1000):
            if number in listening:
                _accept(listening[number], poll, connections)
                continue
            connected, before = connections.pop(number)
            rest = _answer_all(connected, before)
            if rest is None:
                poll.unregister(number)
                connected.close()
            else:
                connections[number] = (connected, rest)


def _accept(listener: socket.socket, poll: select.poll, connections: dict[int, tuple[socket.socket, bytes]]) -> None:
    try:
        connected, _ = listener.accept()
    except OSError:
        return
    connected.setblocking(False)
    connections[connected.fileno()] = (connected, b"")
    poll.register(connected, select.POLLIN)


def _answer_all(connected: socket.socket, before: bytes) -> bytes | None:
    """Reads from a connection and responds to every complete request. Returns the remaining bytes; None to close it."""
    try:
        data = connected.recv(_HEAD_BYTES)
        rest = before + data
        while b"\r\n\r\n" in rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            connected.sendall(_answer(head))
            if b"connection: close" in head.lower():
                return None
    except OSError:
        return None
    return rest if data and len(rest) < _HEAD_BYTES else None


def _answer(head: bytes) -> bytes:
    target = head.split(b" ", 2)[1:2]
    path = target[0].decode("latin-1").partition("?")[0] if target else ""
    code, body = _ANSWERS.get(path, _NOT_FOUND)
    reason = "OK" if code == 200 else "Not Found"
    return f"HTTP/1.1 {code} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def main(arguments: list[str]) -> int:
    """Serves until a signal ends the process. Returns 1 for an invalid command line, or a port that is in use."""
    try:
        listeners = [_listen(*address) for address in addresses(arguments)]
        data = flag(arguments, _DATA)
        if data:
            _ANSWERS["/fakekube/data-dir"] = (200, os.path.abspath(data))
    except (UsageError, OSError) as problem:
        print(f"etcd: {problem}", file=sys.stderr)
        return 1
    print(
        "etcd: the replacement of fakekube is ready to serve client requests; the API server keeps the objects", file=sys.stderr
    )
    serve(listeners)
    return 0


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = found[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise UsageError(f"listen tcp {host}:{port}: {error.strerror}") from None
    listener.listen(_BACKLOG)
    return listener


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

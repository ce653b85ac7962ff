"""Streams into pods: what exec and logs cost, for many clients at a time.

    python -m tests.benchmarks.streams_bench            # a kubelet that only echoes: the wire alone
    python -m tests.benchmarks.streams_bench --runtime  # the containers of fakekube.runtime

The server is a process of its own, whose memory and threads are printed. Targets: an exec round trip of 3 ms; 500
followers of one log and 100 exec sessions at a time.
"""

from __future__ import annotations

import os
import selectors
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fakekube import Cluster
from fakekube.net.streaming.kubelet_api import Connection, Destination, Execution, LogOptions, PortForwardError, Streams
from fakekube.net.streams import Notifier

POD = "/api/v1/namespaces/default/pods/web"
ROUNDS = 200
SESSIONS = 100
FOLLOWERS = 500
LINES = 20
LINE = "a line of the log"


class Follower:
    """A log that grows: a `streams.Stream` over lines that all followers share."""

    deadline: float | None = None
    ended = False

    def __init__(self, source: Notifier, lines: list[bytes]) -> None:
        self.source = source
        self._lines = lines
        self._next = len(lines)

    def take(self) -> list[bytes]:
        lines = self._lines[self._next :]
        self._next += len(lines)
        return lines

    def close(self) -> None:
        self.ended = True

    def __iter__(self) -> Any:
        return iter(self.take())


class EchoingKubelet:
    """See `kubelet_api.Kubelet`: a process echoes its input as it comes, in the thread that brings it."""

    def __init__(self) -> None:
        self.changed = Notifier()
        self.lines: list[bytes] = []

    def container_logs(self, pod: Any, container: str, options: LogOptions) -> Follower:
        return Follower(self.changed, self.lines)

    def write(self) -> None:
        """Writes a line to the log."""
        self.lines.append(LINE.encode() + b"\n")
        self.changed.notify()

    def exec(self, pod: Any, container: str, command: Sequence[str], streams: Streams) -> Execution:
        execution, stdin, stdout = Execution(), streams.stdin, streams.stdout
        assert stdout is not None
        if stdin is None:
            stdout.write(b"hello\n")
            stdout.close()
            execution.finish()
            return execution

        def echo() -> None:
            while data := stdin.read():
                stdout.write(data)
            if data == b"" and execution.exit is None:
                stdout.close()
                execution.finish()

        stdin.subscribe(echo)
        return execution

    attach = exec  # type: ignore[assignment]

    def port_forward(self, pod: Any, port: int) -> Connection:
        raise PortForwardError("nothing listens")

    def pod_destination(self, pod: Any, port: int) -> Destination | None:
        return None

    def node_destination(self, node: Any) -> Destination | None:
        return None


# ---------------------------------------------------------------- the server


def serve(runtime: bool) -> None:
    """Serves a pod until stdin ends. Writes a line to its log when told, and answers with the number of threads."""
    from tests.stub_kubelet import stubbed_cluster

    write: Callable[[], object]
    if runtime:
        cluster = Cluster()
        container = {"name": "c", "image": "nginx"}
        cluster.create({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"containers": [container]}})
        write = partial(cluster.pods.get("web").log, LINE)
        cluster.start()
        cluster.wait_for("pods", "web", until=lambda found: found["status"].get("phase") == "Running", timeout=5)
    else:
        kubelet = EchoingKubelet()
        cluster = stubbed_cluster(kubelet)  # type: ignore[arg-type]
        write = kubelet.write
        cluster.start()
    print(cluster.url.rpartition(":")[2], flush=True)
    for asked in sys.stdin:
        if asked == "write\n":
            write()
        print(threading.active_count(), flush=True)
    cluster.stop()


class Server:
    """The process that serves."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.streams_bench", "--serve", *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    @property
    def threads(self) -> int:
        return self.tell("threads")

    def tell(self, what: str) -> int:
        """Returns the number of threads, after what was told is done."""
        assert self._process.stdin is not None
        print(what, file=self._process.stdin, flush=True)
        return int(self._line())

    @property
    def memory(self) -> float:
        """MiB of resident memory."""
        with open(f"/proc/{self._process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


# ---------------------------------------------------------------- the clients

_UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
)
_STDIN = b"\x82\x86\0\0\0\0\0ping\n"
"""A message on channel 0, with a mask of zeros."""


def asked(port: int, path: str, headers: str = "") -> socket.socket:
    """A connection on which something has been asked."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(f"GET {POD}/{path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
    return connection


def read_until(connection: socket.socket, text: bytes) -> None:
    """Reads until a text has come."""
    data = b""
    while text not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece


def run(port: int, *command: str) -> float:
    """The milliseconds of one exec without input, connection and exit status included."""
    begun = time.perf_counter()
    words = "&".join(f"command={word}" for word in command)
    with asked(port, f"exec?{words}&stdout=1", _UPGRADE) as connection:
        read_until(connection, b'"Success"')
    return (time.perf_counter() - begun) * 1000


def gather(connections: Sequence[socket.socket], is_done: Callable[[bytes], bool]) -> float:
    """Reads from all connections until each has what it waits for; returns milliseconds."""
    begun = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        received = dict.fromkeys(connections, b"")
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while received:
            for key, _ in selector.select(30):
                connection: Any = key.fileobj
                received[connection] += connection.recv(65536)
                if is_done(received[connection]):
                    selector.unregister(connection)
                    del received[connection]
    return (time.perf_counter() - begun) * 1000


def quantiles(figures: Sequence[float]) -> str:
    ordered = sorted(figures)
    return f"median {statistics.median(ordered):.2f} ms, 99 % below {ordered[int(len(ordered) * 0.99) - 1]:.2f} ms"


def measure(server: Server) -> None:
    """Prints all figures."""
    port = server.port
    [run(port, "echo", "hello") for _ in range(20)]
    print(f"exec round trip                {quantiles([run(port, 'echo', 'hello') for _ in range(ROUNDS)])}")

    before, threads = server.memory, server.threads
    sessions = [asked(port, "exec?command=cat&stdin=1&stdout=1", _UPGRADE) for _ in range(SESSIONS)]
    for session in sessions:
        read_until(session, b"\x82\x01\x01")
    one = []
    for session in sessions:
        begun = time.perf_counter()
        session.sendall(_STDIN)
        read_until(session, b"ping\n")
        one.append((time.perf_counter() - begun) * 1000)
    print(f"a line to one of {SESSIONS} sessions   {quantiles(one)}")
    for session in sessions:
        session.sendall(_STDIN)
    together = gather(sessions, lambda data: b"ping\n" in data)
    grown = server.memory - before
    print(
        f"a line to all {SESSIONS} sessions      {together:.1f} ms in all; {grown:.1f} MiB and {server.threads - threads} threads more"
    )
    for session in sessions:
        session.close()

    before, threads = server.memory, server.threads
    followers = [asked(port, "log?follow=true&tailLines=0") for _ in range(FOLLOWERS)]
    for follower in followers:
        read_until(follower, b"\r\n\r\n")
    rounds = []
    for _ in range(LINES):
        begun = time.perf_counter()
        server.tell("write")
        gather(followers, lambda data: LINE.encode() in data)
        rounds.append((time.perf_counter() - begun) * 1000)
    grown = server.memory - before
    print(
        f"a line to {FOLLOWERS} followers       {quantiles(rounds)}; {grown:.1f} MiB and {server.threads - threads} threads more"
    )
    for follower in followers:
        follower.close()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve("--runtime" in sys.argv)
    else:
        measured = Server(*sys.argv[1:])
        try:
            measure(measured)
        finally:
            measured.stop()

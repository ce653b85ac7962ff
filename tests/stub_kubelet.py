"""A kubelet for tests of the wire: what containers do is a few Python functions, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from fakekube import Cluster
from fakekube.base.threads import WORKERS
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import (
    Connection,
    Destination,
    Execution,
    ExitStatus,
    KubeletError,
    LogOptions,
    PortForwardError,
    Streams,
)
from fakekube.net.streams import Stream

Object = dict[str, Any]


def _echo(streams: Streams, words: Sequence[str]) -> ExitStatus:
    assert streams.stdout is not None
    streams.stdout.write_all(" ".join(words).encode() + b"\n")
    return ExitStatus()


def _cat(streams: Streams, _words: Sequence[str]) -> ExitStatus:
    assert streams.stdin is not None
    assert streams.stdout is not None
    while data := streams.stdin.read_blocking():
        streams.stdout.write_all(data)
    return ExitStatus()


def _exit(streams: Streams, words: Sequence[str]) -> ExitStatus:
    if streams.stderr is not None:
        streams.stderr.write_all(b"it fails\n")
    return ExitStatus(int(words[0]))


def _sizes(streams: Streams, words: Sequence[str]) -> ExitStatus:
    """Prints the sizes of the terminal, so many as it is told."""
    assert streams.sizes is not None
    assert streams.stdout is not None
    changed = threading.Event()
    streams.sizes.subscribe(changed.set)
    left = int(words[0])
    while left:
        changed.clear()
        while (size := streams.sizes.next()) is not None:
            streams.stdout.write_all(b"%d %d\n" % size)
            left -= 1
        changed.wait(60)
    return ExitStatus()


def _flood(streams: Streams, words: Sequence[str]) -> ExitStatus:
    """Writes so many bytes."""
    assert streams.stdout is not None
    streams.stdout.write_all(b"x" * int(words[0]))
    return ExitStatus()


class StubKubelet:
    """See `kubelet_api.Kubelet`. Programs are looked up by the first word of the command."""

    def __init__(self) -> None:
        self.programs: dict[str, Callable[[Streams, Sequence[str]], ExitStatus]] = {
            "echo": _echo, "cat": _cat, "exit": _exit, "sizes": _sizes, "flood": _flood,
        }  # fmt: skip
        self.log: Stream | bytes = b"one\ntwo\n"
        self.log_options: LogOptions | None = None
        self.ports: dict[int, Callable[[Connection], None]] = {7: _echo_port}
        self.destinations: dict[int, Destination] = {}
        self.node: Destination | None = None
        self.cancelled = threading.Event()

    def container_logs(self, pod: Object, container: str, options: LogOptions) -> Stream | bytes:
        self.log_options = options
        return self.log

    def exec(self, pod: Object, container: str, command: Sequence[str], streams: Streams) -> Execution:
        program = self.programs.get(command[0] if command else "")
        if program is None:
            raise KubeletError(500, "no such program")
        return self._run(program, command[1:], streams)

    def attach(self, pod: Object, container: str, streams: Streams) -> Execution:
        return self._run(_cat if streams.stdin is not None else _echo, ["attached"], streams)

    def _run(self, program: Callable[[Streams, Sequence[str]], ExitStatus], words: Sequence[str], streams: Streams) -> Execution:
        execution = Execution(self.cancelled.set)

        def run() -> None:
            try:
                status = program(streams, words)
            except BrokenPipeError:
                status = ExitStatus(141)
            for pipe in (streams.stdout, streams.stderr):
                if pipe is not None:
                    pipe.close()
            execution.finish(status)

        WORKERS.run(run)
        return execution

    def port_forward(self, pod: Object, port: int) -> Connection:
        serve = self.ports.get(port)
        if serve is None:
            raise PortForwardError(f"dial tcp4 127.0.0.1:{port}: connect: connection refused")
        connection = Connection(Pipe(), Pipe())
        WORKERS.run(lambda: serve(connection))
        return connection

    def pod_destination(self, pod: Object, port: int) -> Destination | None:
        return self.destinations.get(port)

    def node_destination(self, node: Object) -> Destination | None:
        return self.node


def _echo_port(connection: Connection) -> None:
    try:
        while data := connection.from_client.read_blocking():
            connection.to_client.write_all(data)
    except BrokenPipeError:
        return
    finally:
        connection.to_client.close()


def stubbed_cluster(kubelet: StubKubelet, **options: Any) -> Cluster:
    """Returns a cluster with a node, on which this kubelet runs a pod `web` with the container `c`."""
    cluster = Cluster(profile="apiserver", **options)
    cluster._machinery.backend.kubelet_of = lambda _node: kubelet  # type: ignore[assignment, return-value]
    cluster.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}})
    addresses = [{"type": "InternalIP", "address": "10.1.0.1"}]
    cluster.patch("nodes", "n1", {"status": {"addresses": addresses}}, subresource="status")
    make_pod(cluster, "web")
    return cluster


def make_pod(cluster: Cluster, name: str, **spec: Any) -> None:
    """Makes a pod whose container `c` runs."""
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]} | spec
    made = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"nodeName": "n1", "containers": [container]}}
    cluster.create(made)
    status = {
        "phase": "Running",
        "podIP": "10.1.0.9",
        "podIPs": [{"ip": "10.1.0.9"}],
        "containerStatuses": [
            {
                "name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "containerID": "fake://1",
                "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
            }
        ],
    }  # fmt: skip
    cluster.patch("pods", name, {"status": status}, subresource="status")

"""exec and attach: terminals, handlers of tests, clients that go away; ports."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.net.pipes import Pipe, TerminalSize, TerminalSizeQueue
from fakekube.net.streaming.kubelet_api import Execution, PortForwardError, Streams
from fakekube.nodes.runtime.behaviour import Context


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        containers = [{"name": "main", "image": "nginx:1", "ports": [{"containerPort": 80}]}]
        made.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
                     "spec": {"containers": containers}})  # fmt: skip
        made.settle()
        yield made


def stored(cluster: Cluster, name: str = "web") -> dict[str, Any]:
    found = cluster._machinery.backend.services.get("", "pods", "default", name)
    assert found is not None
    return found


class Session:
    """A program that runs, and its streams."""

    def __init__(self, cluster: Cluster, command: list[str], *, tty: bool = False) -> None:
        self.streams = Streams(Pipe(), Pipe(), None if tty else Pipe(), tty, TerminalSizeQueue() if tty else None)
        self.execution: Execution = cluster._components.runtime.exec(stored(cluster), "main", command, self.streams)

    def type(self, data: bytes) -> None:
        assert self.streams.stdin is not None
        self.streams.stdin.write_all(data)

    def read_until(self, end: bytes) -> bytes:
        assert self.streams.stdout is not None
        seen = b""
        while not seen.endswith(end):
            part = self.streams.stdout.read_blocking(timeout=60)
            if not part:
                break
            seen += part
        return seen

    def code(self) -> int:
        ended = threading.Event()
        self.execution.subscribe(ended.set)
        while self.execution.exit is None:
            assert ended.wait(60)
        return self.execution.exit.code


def test_terminal_echo_line_editing_and_interrupt(cluster: Cluster) -> None:
    session = Session(cluster, ["sh"], tty=True)
    assert session.streams.sizes is not None
    session.streams.sizes.put(TerminalSize(100, 30))
    assert session.read_until(b"# ") == b"/ # "
    session.type(b"echo hex\x7fllo\r")
    assert session.read_until(b"# ") == b"echo hex\b \bllo\r\nhello\r\n/ # "
    session.type(b"stty size\r")
    assert session.read_until(b"# ") == b"stty size\r\n30 100\r\n/ # "
    session.type(b"sleep 1000\r")
    session.read_until(b"\r\n")
    session.type(b"\x03")
    assert session.read_until(b"# ") == b"^C\r\n/ # "
    session.type(b"echo $?\r")
    assert session.read_until(b"# ") == b"echo $?\r\n130\r\n/ # "
    session.type(b"dropped\x03")
    assert session.read_until(b"# ") == b"dropped^C\r\n/ # "
    session.type(b"(exit 3)\r")
    session.read_until(b"# ")
    session.type(b"\x04")
    assert session.code() == 3


def test_a_program_goes_on_when_its_client_leaves_and_its_input_ends(cluster: Cluster) -> None:
    session = Session(cluster, ["sh", "-c", "cat; echo lost; echo $? > /tmp/ended"])
    session.execution.cancel()
    assert session.code() == 0
    assert cluster.pods.get("web").files().read("/tmp/ended") == b"0\n"


def test_tar_writes_each_member_when_its_bytes_have_arrived(cluster: Cluster) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("x" * 120 + ".txt")
        info.size = 5
        archive.addfile(info, io.BytesIO(b"whole"))
    data = buffer.getvalue()
    member = data[: data.rindex(b"whole") // 512 * 512 + 512]
    session = Session(
        cluster, ["sh", "-c", "(while [ ! -s /tmp/x*.txt ]; do sleep 0.05; done; cat /tmp/x*.txt) & tar xmf - -C /tmp"]
    )
    session.type(member)
    assert session.read_until(b"whole") == b"whole"
    assert session.execution.exit is None
    session.type(bytes(1024))
    assert session.code() == 0


def test_unread_output_blocks_the_program(cluster: Cluster) -> None:
    session = Session(cluster, ["sh", "-c", "seq 20000; echo end"])
    assert session.streams.stdout is not None
    assert session.execution.exit is None
    assert session.read_until(b"end\n").count(b"\n") == 20_001
    assert session.code() == 0


def test_exec_handlers_replace_programs(cluster: Cluster) -> None:
    def dump(context: Context) -> int:
        context.write(f"{context.container} {list(context.command)} {context.read_all().decode()}")
        context.stderr.write_all(b"done\n")
        return 3

    rule = cluster.pods.on(image="nginx").exec(dump, command="pg_dump")
    inside = cluster.pods.get("web")
    assert inside.exec("echo in | pg_dump -x; echo $?").stdout == "main ['pg_dump', '-x'] in\n3\n"
    rule.exec(lambda context: f"all: {' '.join(context.command)}")
    assert inside.exec(["anything", "at all"]).stdout == "all: anything at all"
    rule.exec(None)
    assert inside.exec("echo shell").stdout == "shell\n"


def test_exception_in_an_exec_handler_returns_code_1_with_traceback(cluster: Cluster) -> None:
    def broken(context: Context) -> int:
        raise ValueError("odd")

    cluster.pods.on(name="web").exec(broken)
    found = cluster.pods.get("web").exec(["x"])
    assert found.code == 1 and "ValueError: odd" in found.stderr


def test_host_programs_run_only_if_enabled(cluster: Cluster) -> None:
    import sys

    inside = cluster.pods.get("web")
    command = [sys.executable, "-c", "import sys; print(sys.stdin.read().upper()); sys.exit(5)"]
    assert inside.exec(command, stdin="in").code == 127
    rule = cluster.pods.on(name="web").host_programs()
    assert (inside.exec(command, stdin="in").stdout, inside.exec(command, stdin="in").code) == ("IN\n", 5)
    rule.remove()
    assert inside.exec(command, stdin="in").code == 127


def test_pod_ports_serve_pages_applications_and_functions(cluster: Cluster) -> None:
    inside = cluster.pods.get("web")
    assert "Welcome to nginx" in inside.exec("curl -s http://localhost").stdout
    inside.files().write("/usr/share/nginx/html/a.txt", b"own\n")
    assert inside.exec("wget -qO- localhost/a.txt").stdout == "own\n"
    assert inside.exec("wget -qO- localhost/b.txt").stderr == "wget: server returned error: HTTP/1.1 404 Not Found\n"

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("201 Created", [("Content-Type", "text/plain")])
        return [environ["REQUEST_METHOD"].encode(), b" ", environ["wsgi.input"].read()]

    def shout(incoming: Pipe, outgoing: Pipe) -> None:
        for line in incoming:
            outgoing.write_all(line.upper())

    cluster.pods.on(name="web").serve(8080, application).serve(7, shout).refuse(80)
    assert inside.exec("curl -s -d data http://web:8080/x").stdout == "POST data"
    assert inside.exec("printf 'a\\nb\\n' | nc localhost 7").stdout == "A\nB\n"
    assert inside.exec("curl http://localhost:80").code == 7
    with pytest.raises(PortForwardError, match="connection refused"):
        cluster._components.runtime.port_forward(stored(cluster), 9999)


def test_service_dns_names_reach_pods(cluster: Cluster) -> None:
    cluster.patch("pods", "web", {"metadata": {"labels": {"served": "yes"}}})
    spec = {"selector": {"served": "yes"}, "ports": [{"port": 8000, "targetPort": 80}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"}, "spec": spec})
    cluster.settle()
    inside = cluster.pods.get("web")
    assert "nginx" in inside.exec("wget -qO- http://svc.default.svc.cluster.local:8000/").stdout
    assert inside.exec("nslookup nothing").code == 1
    assert inside.exec("wget -qO- http://nothing/").stderr == "wget: bad address 'nothing'\n"


def test_netcat_listens_on_forwarded_port(cluster: Cluster) -> None:
    script = "while true; do nc -l -p 5000 -e sed s/a/b/; done"
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "listener"}, "spec": {"containers": [container]}})
    cluster.settle()
    for _ in range(2):
        connection = cluster._components.runtime.port_forward(stored(cluster, "listener"), 5000)
        connection.from_client.write_all(b"a\n")
        connection.from_client.close()
        assert connection.to_client.read_blocking(timeout=60) == b"b\n"


@pytest.mark.parametrize("path", ["healthz", "pods", "runningpods/", "stats/summary", "metrics", "metrics/resource", "configz"])
def test_kubelet_endpoints_over_node_proxy(cluster: Cluster, path: str) -> None:
    assert cluster.request("GET", f"/api/v1/nodes/node-1/proxy/{path}").status == 200


def test_kubelet_container_logs_endpoint(cluster: Cluster) -> None:
    cluster.pods.get("web").log("hello")
    answer = cluster.request("GET", "/api/v1/nodes/node-1/proxy/containerLogs/default/web/main?tailLines=1")
    assert (answer.status, answer.body) == (200, b"hello\n")


@pytest.mark.parametrize("once", [True, False])
def test_the_end_of_the_input_detaches_the_client_or_ends_the_input_of_the_program(cluster: Cluster, once: bool) -> None:
    name = f"reader-{str(once).lower()}"
    command = ["sh", "-c", "cat && echo closed; sleep 1000"]
    container = {"name": "c", "image": "busybox", "stdin": True, "stdinOnce": once, "command": command}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}})
    cluster.settle()
    streams = Streams(Pipe(), Pipe(), Pipe(), False, None)
    assert streams.stdin is not None
    assert streams.stdout is not None
    execution = cluster._components.runtime.attach(stored(cluster, name), "c", streams)
    streams.stdin.write_all(b"typed\n")
    assert streams.stdout.readline(timeout=60) == b"typed\n"
    streams.stdin.close()
    assert streams.stdout.readline(timeout=60) == (b"closed\n" if once else b"")
    assert (execution.exit is None) is once
    assert "running" in cluster.get("pods", name)["status"]["containerStatuses"][0]["state"]

"""What a test with a cluster of its own costs: `python -m tests.benchmarks.pytest_bench [--tests N] [--workers N] [--beside FOLDER]`.

Whole runs of pytest, each of so many tests that create and get one object: in process, by a socket, by a socket with TLS. The client
by socket is `http.client` in the process of the test; what it needs itself is measured with a server that only sends prepared bytes
and runs in another process. Printed is what a test costs on top of an empty one, in milliseconds: CPU of all processes of the run,
time, and CPU of one of the tests 2 to 100 and of the last hundred, which are the same if nothing is left over.

With `--beside` the runs take turns with those of another state of the project, such as a checkout of an older commit.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fakekube.net.certificates import credentials

HEAD = """
import http.client, json, os, ssl
import pytest

CONTEXT = ssl._create_unverified_context()
BEARER = {"Authorization": "Bearer admin-token"}

def talk(connection, headers={}):
    body = json.dumps({"metadata": {"name": "a"}, "data": {"n": "1"}})
    connection.request("POST", "/api/v1/namespaces/default/configmaps", body, {"Content-Type": "application/json", **headers})
    assert connection.getresponse().read()
    connection.request("GET", "/api/v1/namespaces/default/configmaps/a", headers=headers)
    assert json.loads(connection.getresponse().read())["data"]["n"] == "1"
    connection.close()

"""
_IN_PROCESS = """def test(fakekube, n):
    fakekube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "1"}})
    assert fakekube.get("configmaps", "a")["data"]["n"] == "1"
"""
TESTS = {
    "empty": "def test(n): pass\n",
    "in process": _IN_PROCESS,
    "in process, TLS": f"@pytest.mark.fakekube(tls=True)\n{_IN_PROCESS}",
    "by socket": """def test(fakekube, n):
    talk(http.client.HTTPConnection("127.0.0.1", fakekube.port))
""",
    "by socket, TLS": """@pytest.mark.fakekube(tls=True)
def test(fakekube, n):
    talk(http.client.HTTPSConnection("127.0.0.1", fakekube.port, context=CONTEXT), BEARER)
""",
    "client alone": """def test(n):
    talk(http.client.HTTPConnection("127.0.0.1", int(os.environ["PREPARED"])))
""",
    "client alone, TLS": """def test(n):
    talk(http.client.HTTPSConnection("127.0.0.1", int(os.environ["PREPARED_TLS"]), context=CONTEXT), BEARER)
""",
}

#: Prints the CPU time of a test at the beginning and at the end of the run (without xdist).
CONFTEST = """
import time

ends = []

def pytest_runtest_logfinish(nodeid, location):
    ends.append(time.process_time())

def pytest_sessionfinish():
    first, last = ends[1:100], ends[-100:]
    if len(last) == 100:
        print("\\nparts", (first[-1] - first[0]) / (len(first) - 1), (last[-1] - last[0]) / (len(last) - 1))
"""
INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"

_BODY = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"n":"1"}}' + b" " * 400
_PREPARED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """What a run of pytest took, in seconds; `first` and `last` are CPU of one test."""

    cpu: float
    time: float
    first: float
    last: float

    def above(self, empty: Run, tests: int) -> tuple[float, float, float, float]:
        """What a test costs on top of an empty one, in seconds."""
        return (
            (self.cpu - empty.cpu) / tests,
            (self.time - empty.time) / tests,
            self.first - empty.first,
            self.last - empty.last,
        )


def run(folder: Path, name: str, count: int, project: Path, options: list[str], environment: dict[str, str]) -> Run:
    """Run pytest with the state of the project in a folder."""
    file = folder / f"test_{name.replace(' ', '_').replace(',', '')}.py"
    body = TESTS[name].replace("def test(", f'@pytest.mark.parametrize("n", range({count}))\ndef test(')
    file.write_text(HEAD + body)
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *options, str(file)],
        check=False,
        cwd=folder,
        env=variables | environment | {"PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
    )
    took, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert found.returncode == 0, found.stdout + found.stderr
    parts = [line.split()[1:] for line in found.stdout.splitlines() if line.startswith("parts ")]
    first, last = map(float, parts[0]) if parts else (0.0, 0.0)
    return Run(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took, first, last)


@contextmanager
def prepared(context: ssl.SSLContext | None) -> Iterator[int]:
    """A server that sends the same bytes for every request; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, context), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, context: ssl.SSLContext | None) -> None:
    while True:
        try:
            client = listener.accept()[0]
        except OSError:  # the end
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(client, server_side=True) if context else client as connected:
            received = b""
            while data := connected.recv(65536):
                received += data
                if received.startswith(b"GET") or b"\r\n\r\n{" in received:
                    connected.sendall(_PREPARED)
                    received = b""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2, help="runs of each kind, of which the cheapest counts")
    parser.add_argument("--workers", type=int, default=0, help="processes of pytest-xdist")
    parser.add_argument("--beside", type=Path, help="another state of the project")
    kinds = [name for name in TESTS if name != "empty"]
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds)
    options = parser.parse_args()
    sides = {"": Path(__file__).parents[2]} | ({"beside": options.beside.resolve()} if options.beside else {})
    flags = ["-n", str(options.workers)] if options.workers else ["-p", "no:xdist"]
    with tempfile.TemporaryDirectory() as name, prepared(None) as plain, prepared(credentials().context) as secure:
        folder = Path(name)
        (folder / "pytest.ini").write_text(INI)
        if not options.workers:
            (folder / "conftest.py").write_text(CONFTEST)
        environment = {"PREPARED": str(plain), "PREPARED_TLS": str(secure)}
        for project in sides.values():
            run(folder, "by socket, TLS", 1, project, flags, environment)  # what is compiled once
        print(f"{'':26} {'CPU':>6} {'time':>6} {'first':>6} {'last':>6}   ms")
        empty: dict[str, Run] = {}
        for kind in ["empty", *options.kinds]:
            turns = [
                [run(folder, kind, options.tests, project, flags, environment) for project in sides.values()]
                for _ in range(options.rounds)
            ]
            for side, found in zip(sides, map(min, zip(*turns, strict=True)), strict=True):
                if kind == "empty":
                    empty[side] = found
                else:
                    figures = " ".join(f"{figure * 1e3:6.2f}" for figure in found.above(empty[side], options.tests))
                    print(f"{kind:18} {side:7} {figures}", flush=True)


if __name__ == "__main__":
    main()

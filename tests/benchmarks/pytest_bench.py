"""What a test with a cluster of its own costs: `python tests/benchmarks/pytest_bench.py [--tests N]`.

Whole runs of pytest, each of so many tests that create and get one object: in process, by a socket, by a socket with TLS.
Printed is what a test costs on top of an empty one, in milliseconds: CPU of the whole process, and time.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAD = """
import http.client, json, ssl
import pytest

def talk(connection, headers={}):
    body = json.dumps({"metadata": {"name": "a"}, "data": {"n": "1"}})
    connection.request("POST", "/api/v1/namespaces/default/configmaps", body, {"Content-Type": "application/json", **headers})
    assert connection.getresponse().read()
    connection.request("GET", "/api/v1/namespaces/default/configmaps/a", headers=headers)
    assert json.loads(connection.getresponse().read())["data"]["n"] == "1"
    connection.close()

"""
TESTS = {
    "empty": "def test(n): pass\n",
    "in process": """def test(fakekube, n):
    fakekube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "1"}})
    assert fakekube.get("configmaps", "a")["data"]["n"] == "1"
""",
    "by socket": """def test(fakekube, n):
    talk(http.client.HTTPConnection("127.0.0.1", fakekube.port))
""",
    "by socket, TLS": """CONTEXT = ssl._create_unverified_context()

@pytest.mark.fakekube(tls=True)
def test(fakekube, n):
    talk(http.client.HTTPSConnection("127.0.0.1", fakekube.port, context=CONTEXT), {"Authorization": "Bearer admin-token"})
""",
}


def run(folder: Path, name: str, count: int) -> tuple[float, float]:
    """CPU and time of a run, in seconds."""
    file = folder / f"test_{name.replace(' ', '_').replace(',', '')}.py"
    body = TESTS[name].replace("def test(", f'@pytest.mark.parametrize("n", range({count}))\ndef test(')
    file.write_text(HEAD + body)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", str(file)],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    took, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert found.returncode == 0, found.stdout
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=1000)
    count = parser.parse_args().tests
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
        run(folder, "in process", 1)  # what is compiled once
        empty = min(run(folder, "empty", count) for _ in range(2))
        for kind in list(TESTS)[1:]:
            cpu, took = min(run(folder, kind, count) for _ in range(2))
            print(f"{kind:16} {(cpu - empty[0]) / count * 1e3:6.2f} ms of CPU {(took - empty[1]) / count * 1e3:6.2f} ms of time")


if __name__ == "__main__":
    main()

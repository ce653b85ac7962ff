"""The two sides of a comparison: `fakekube serve` in a process of its own, and the reference server.

A side that is started here is measured from the start of its process to the first `ok` of /readyz, and its memory is
known. A reference server that runs already is only talked to.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.wire import Connection, RequestFailed

__all__ = ["Side", "await_ready", "free_port", "ours", "running", "theirs"]

_POLL = 0.002
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Side:
    """A server under measurement."""

    name: str
    url: str
    token: str
    ready: float | None = None
    """Seconds from the start of the process to ready; None if it was not started here."""
    process: int | None = None

    def connect(self) -> Connection:
        return Connection(self.url, self.token)

    def cpu(self) -> float | None:
        """Seconds of CPU so far; None if the process was not started here."""
        return cpu_seconds(self.process)

    def resident(self) -> float | None:
        """Resident memory in MiB, where this can be known (Linux, and a process that was started here)."""
        try:
            status = Path(f"/proc/{self.process}/status").read_text(encoding="ascii")
        except OSError:
            return None
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def running(url: str, token: str) -> Side:
    """A reference server that runs already."""
    return Side("theirs", url, token)


def cpu_seconds(process: int | None) -> float | None:
    """Seconds of CPU that a process has used, all threads together; None where this cannot be known (Linux alone tells it)."""
    if process is None or sys.platform != "linux":
        return None
    return time.clock_gettime((~process << 3) | 2)  # the clock of clock_getcpuclockid(3)


@contextmanager
def ours(*flags: str) -> Iterator[Side]:
    """`fakekube serve` as the reference is run: HTTPS, no controllers; and further flags.

    A start that is not measured compiles it, as pip does.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        command = [sys.executable, "-m", "fakekube", "serve", "--tls", "--profile=apiserver", "--port={port}", *flags]
        command.append(f"--kubeconfig={folder}/kubeconfig")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        with _started("ours", command, "admin-token", environment):
            pass
        with _started("ours", command, "admin-token", environment) as side:
            yield side


@contextmanager
def theirs(command: str, token: str) -> Iterator[Side]:
    """The reference server, by a command that has {port} and {dir} where its port and its folder are to stand."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        words = [word.replace("{dir}", folder) for word in shlex.split(command)]
        with _started("theirs", words, token) as side:
            yield side


@contextmanager
def _started(name: str, command: list[str], token: str, environment: Mapping[str, str] = os.environ) -> Iterator[Side]:
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [word.replace("{port}", str(port)) for word in command], stdout=subprocess.DEVNULL, stderr=errors, env=environment
        )
        try:
            try:
                await_ready(url, token, process)
            except SystemExit as problem:
                errors.seek(0)
                raise SystemExit(f"{problem}: {errors.read()[-600:].decode(errors='replace')}") from None
            yield Side(name, url, token, time.perf_counter() - begin, process.pid)
        finally:
            process.terminate()
            process.wait(30)


def await_ready(url: str, token: str, process: subprocess.Popen[bytes], path: str = "/readyz") -> None:
    """Polls a path until it is answered with success. Raises SystemExit if the process ends before."""
    end = time.perf_counter() + _PATIENCE
    while time.perf_counter() < end:
        if process.poll() is not None:
            raise SystemExit(f"{process.args!r} ended with {process.returncode}")
        try:
            with Connection(url, token) as connection:
                connection.exchange(connection.prepare("GET", path))
                return
        except (OSError, RequestFailed):
            time.sleep(_POLL)
    raise SystemExit(f"{process.args!r} is not ready after {_PATIENCE} s")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port

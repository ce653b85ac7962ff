"""Runs programs of this machine in containers, if a rule enables it: `cluster.pods.on(…).host_programs()`.

They have the environment of the container, see the files of this machine and not those of the container, and run as the user
of the test.

Invariant: a program that a client has left is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from contextlib import suppress
from typing import IO

from fakekube.base.threads import WORKERS
from fakekube.net.pipes import Pipe
from fakekube.nodes.runtime.handlers import Context

__all__ = ["is_installed", "run_on_host"]


def is_installed(name: str) -> bool:
    """Reports whether this machine has a program."""
    return shutil.which(name) is not None


def run_on_host(context: Context) -> int:
    """Runs a program of this machine; a handler of exec."""
    environment = {**context.env, "PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/")}
    process = subprocess.Popen(
        list(context.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    with process:
        stdin, done = process.stdin, threading.Event()
        WORKERS.run(lambda: _carry_in(context.stdin, stdin))
        WORKERS.run(lambda: _carry_out(process, process.stderr, context.stderr, done))
        _carry_out(process, process.stdout, context.stdout, threading.Event())
        done.wait()
        code = process.wait()
        context.stdin.abandon()
    return code if code >= 0 else 128 - code


def _carry_in(source: Pipe, target: IO[bytes]) -> None:
    with suppress(OSError, ValueError):
        while data := source.read_blocking():
            target.write(data)
            target.flush()
        target.close()


def _carry_out(process: subprocess.Popen[bytes], source: IO[bytes] | None, target: Pipe, done: threading.Event) -> None:
    assert source is not None
    try:
        while data := os.read(source.fileno(), 65536):
            target.write_all(data)
    except BrokenPipeError:  # the client has disconnected
        process.kill()
    finally:
        done.set()

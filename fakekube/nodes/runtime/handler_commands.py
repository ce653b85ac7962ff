"""Commands of containers that are functions of a test, or programs of this machine.

`cluster.pods.on(…).exec(handler, command="pg_dump")` calls a handler, in a thread of its own; tasks transfer the data between its
pipes and the descriptors of the command. `cluster.pods.on(…).host_programs()` lets programs of this machine run: they have the
environment of the container, see the files of this machine and not those of the container, and run as the user of the test.

Invariant: a program that a client has left is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from fakekube.base.threads import WORKERS
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import ExitStatus
from fakekube.net.streams import Notifier
from fakekube.nodes.runtime.behaviour import Context, Handler, call
from fakekube.nodes.runtime.descriptors import Descriptor
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import Task, wait_until


def handler_command(handler: Handler) -> Command:
    """Returns a command that calls a handler."""

    async def run(program: Program) -> int:
        stdin, stdout, stderr = Pipe(), Pipe(), Pipe()
        host = program.host
        context = Context((program.name, *program.args), stdin, stdout, stderr, program.env, host.pod, host.name, program.files)
        ended, results = Notifier(), list[ExitStatus]()

        def work() -> None:
            results.append(call(handler, context))
            ended.notify()

        parent = program.task
        carriers = _carriers(program, parent, stdin, ((stdout, program.stdout), (stderr, program.stderr)))
        WORKERS.run(work)
        try:
            code = await wait_until(lambda: results[0].code if results else None, ended)
            for one in carriers[1:]:
                await one.join()
            return code
        finally:
            stdin.close()
            stdout.abandon()
            stderr.abandon()
            carriers[0].kill()

    return run


def _carriers(program: Program, parent: Task, stdin: Pipe, outputs: Sequence[tuple[Pipe, Descriptor]]) -> list[Task]:
    async def carry_in() -> int:
        try:
            while data := await program.stdin.read():
                rest = memoryview(data)
                while rest:
                    rest = rest[stdin.write(rest) :]
                    if rest:
                        await wait_until(lambda: (stdin.free > 0 or stdin.abandoned) or None, stdin)
        finally:
            stdin.close()
        return 0

    async def carry_out(pipe: Pipe, target: Descriptor) -> int:
        while data := await wait_until(pipe.read, pipe):
            await target.write(data)
        return 0

    start = parent.scheduler.start
    pid = program.host.next_pid
    return [start(carry_in(), "stdin", pid(), parent), *(start(carry_out(*one), "stdout", pid(), parent) for one in outputs)]


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

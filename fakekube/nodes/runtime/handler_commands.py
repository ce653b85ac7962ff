"""Commands of the shell that call a handler of a test: `cluster.pods.on(…).exec(handler, command="pg_dump")`.

The handler runs in a thread of its own; tasks transfer the data between its pipes and the descriptors of the command.
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.base.threads import WORKERS
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import ExitStatus
from fakekube.net.streams import Notifier
from fakekube.nodes.runtime.descriptors import Descriptor
from fakekube.nodes.runtime.handlers import Context, Handler, call
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import Task, until

__all__ = ["handler_command"]


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
            code = await until(lambda: results[0].code if results else None, ended)
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
                        await until(lambda: (stdin.free > 0 or stdin.abandoned) or None, stdin)
        finally:
            stdin.close()
        return 0

    async def carry_out(pipe: Pipe, target: Descriptor) -> int:
        while data := await until(pipe.read, pipe):
            await target.write(data)
        return 0

    start = parent.scheduler.start
    pid = program.host.next_pid
    return [start(carry_in(), "stdin", pid(), parent), *(start(carry_out(*one), "stdout", pid(), parent) for one in outputs)]

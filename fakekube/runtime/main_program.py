"""The main program of a container: what it logs, and what attach attaches to.

It is, in this order: the log that a test plans, what the container's command does, a few lines of well-known images. A command
that the shell does not know does nothing.

It is started when somebody first looks, and then has lived through all since the container started; it lives on as long as
somebody looks (see `scheduling`).

Specified by: pkg/kubelet/kuberuntime/kuberuntime_container.go (startContainer).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fakekube.kubelet_api import ExitStatus, Streams
from fakekube.pipes import Pipe, TerminalSizeQueue
from fakekube.runtime.behaviour import LogPlan
from fakekube.runtime.descriptors import Descriptor, Null, PipeReader
from fakekube.runtime.images import DEFAULT_COMMANDS, START_LINES, base_name
from fakekube.runtime.scheduling import SIGKILL, Scheduler, Task, sleep, until
from fakekube.runtime.shell.programs import ProgramNotFound
from fakekube.runtime.terminal import Terminal
from fakekube.streams import Notifier

if TYPE_CHECKING:
    from fakekube.runtime.container import Container, Run

__all__ = ["Attachment", "MainProgram"]

#: Seconds after which a program begins: statuses tell whole seconds, and nothing is logged before.
_START: Final = 0.001
#: Seconds that a container which ended well at once may have run in its log.
_AT_ONCE: Final = 60.0


class Attachment:
    """Somebody who sees what the main program writes."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.gone = False

    async def show(self, data: bytes, stream: str) -> None:
        """Writes to the client; one that has gone is forgotten, and one that does not read is waited for."""
        pipe = self.streams.stderr if stream == "stderr" and self.streams.stderr is not None else self.streams.stdout
        if stream == "stderr" and self.streams.stderr is None and not self.streams.tty:
            return
        if pipe is None or self.gone:
            return
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[pipe.write(rest) :]
                if rest:
                    await until(lambda: (pipe.free > 0 or pipe.abandoned or pipe.closed) or None, pipe)
        except BrokenPipeError:
            self.gone = True


class _Output(Descriptor):
    """What the main program writes goes to the log, and to those who are attached."""

    def __init__(self, main: MainProgram, stream: str) -> None:
        super().__init__()
        self._main, self._stream = main, stream

    async def write(self, data: bytes) -> None:
        main = self._main
        main.container.log.write(data, main.scheduler.now(), self._stream)
        for one in list(main.attachments):
            await one.show(data, self._stream)


class MainProgram:
    """The main program of one run of a container."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.attachments: list[Attachment] = []
        self.stdin = Pipe()
        """What those who are attached type."""
        self.sizes = TerminalSizeQueue()
        self.ended = Notifier()
        self.exit: ExitStatus | None = None
        self.scheduler = Scheduler(container.clock, started=container.monotonic(container.run.started) + _START, eager=False)
        self._followers = 0
        self._lock = threading.Lock()
        self._task: Task | None = None
        self._started = False
        self._driven = False
        """Runs whether somebody looks or not."""

    # ------------------------------------------------------------ running

    def start(self) -> None:
        """Starts the program, if it does not run yet."""
        with self._lock:
            if self._started:
                return
            self._started = True
        self._task = self.scheduler.start(self._body(), " ".join(self._argv()) or self.container.name, 1)
        self.container.register(self._task)
        if not self.container.is_running:
            self._live_to_the_end()

    def start_now(self) -> bool:
        """Starts the program, which runs on as time passes; False if that has been done."""
        with self._lock:
            if self._driven:
                return False
            self._driven = True
        self.start()
        self.scheduler.eager = True
        self.scheduler.run()
        return True

    def catch_up(self) -> None:
        """Lets it do what it would have done by now."""
        self.start()
        if self.container.is_running:
            self.scheduler.catch_up()

    def catch_up_to_end(self, run: Run) -> None:
        """Lets it do what it would have done before it ended."""
        if self._started and run.finished is not None:
            self.scheduler.catch_up(self.container.monotonic(run.finished))

    def _live_to_the_end(self) -> None:
        """The container has ended already: one that ended well has done all that it does."""
        run = self.container.run
        assert run.finished is not None and self._task is not None
        until_then = self.container.monotonic(run.finished)
        if run.exit_code == 0 and (run.finished - run.started).total_seconds() < 1:
            until_then += _AT_ONCE
        self.scheduler.catch_up(until_then)
        self._task.kill(SIGKILL)
        self.scheduler.catch_up(until_then)
        self.container.log.close(run.finished)

    def follow(self) -> None:
        """Somebody looks on: it runs as time passes."""
        with self._lock:
            self._followers += 1
        self.scheduler.eager = True

    def unfollow(self) -> None:
        """The same for the last time."""
        with self._lock:
            self._followers -= 1
            idle = not self._followers and not self._driven
        if idle:
            self.scheduler.eager = False

    # ------------------------------------------------------------ what it does

    def _argv(self) -> Sequence[str]:
        container, image = self.container, base_name(self.container.spec.get("image", ""))
        if not container.spec.get("command") and image in ENTRYPOINTS:
            return ()
        return container.arguments() or DEFAULT_COMMANDS.get(image, ())

    async def _body(self) -> int:
        code = 0
        try:
            code = await self._run()
        finally:
            self.exit = ExitStatus(code)
            for one in self.attachments:
                _close(one.streams)
            self.ended.notify()
        if self.container.is_running:
            self.container.exited(code)
        return code

    async def _run(self) -> int:
        plan = self.container.behaviour().logs
        if plan is not None:
            await _log(plan, _Output(self, plan.stream))
            return await _forever()
        for line in START_LINES.get(base_name(self.container.spec.get("image", "")), ()) if not self._argv() else ():
            await _Output(self, "stdout").write(f"{line}\n".encode())
        argv = self._argv()
        if not argv:
            return await _forever()
        stdin: Descriptor = PipeReader(self.stdin) if self.container.spec.get("stdin") else Null()
        descriptors: dict[int, Descriptor] = {0: stdin, 1: _Output(self, "stdout"), 2: _Output(self, "stderr")}
        if self.container.spec.get("tty"):
            terminal = Terminal(self.stdin if self.container.spec.get("stdin") else None, descriptors[1], self.sizes)
            descriptors = dict.fromkeys((0, 1, 2), terminal)
            if self.container.spec.get("stdin"):
                assert self._task is not None
                self.scheduler.start(terminal.pump(), "terminal", 0, self._task)
                terminal.set_foreground(self._task)
        program = self.container.program(argv, descriptors, tty=bool(self.container.spec.get("tty")))
        try:
            return await self.container.execute(argv, program)
        except ProgramNotFound:
            return await _forever()


#: Images whose arguments are those of a program that is not here.
ENTRYPOINTS: Final = frozenset({"nginx", "postgres", "mysql", "redis", "httpd", "pause"})


async def _forever() -> int:
    """Never ends by itself."""
    return await until(lambda: None)


async def _log(plan: LogPlan, output: Descriptor) -> None:
    if plan.file is not None:
        await output.write(plan.file.read_bytes())
    if plan.lines:
        await output.write("".join(f"{line}\n" for line in plan.lines).encode())
    number = 0
    while plan.line and (plan.times is None or number < plan.times):
        line = plan.line if isinstance(plan.line, str) else plan.line(number)
        await output.write(f"{line}\n".encode())
        number += 1
        if not plan.every:
            return
        await sleep(plan.every)


def _close(streams: Streams) -> None:
    for pipe in (streams.stdout, streams.stderr):
        if pipe is not None:
            pipe.close()

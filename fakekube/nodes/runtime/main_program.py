"""The main program of a container, which writes its log, and to which attach connects.

It is the first of: the log lines of a test's rule, the container's command, the start lines of well-known images. A command
that the shell does not know does nothing.

It is started when a client first reads the log or connects, and then runs everything since the start of the container; it
continues while a client follows (see `scheduling`).

Specified by: pkg/kubelet/kuberuntime/kuberuntime_container.go (startContainer).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fakekube.net.pipes import Pipe, TerminalSizeQueue
from fakekube.net.streaming.kubelet_api import ExitStatus, Streams
from fakekube.net.streams import Notifier
from fakekube.nodes.runtime.behaviour import LogPlan
from fakekube.nodes.runtime.descriptors import Descriptor, Null, PipeReader, Terminal
from fakekube.nodes.runtime.images import START_LINES, base_name
from fakekube.nodes.runtime.scheduling import SIGKILL, Scheduler, Task, sleep, until
from fakekube.nodes.runtime.shell.state import ProgramNotFound

if TYPE_CHECKING:
    from fakekube.nodes.runtime.container import Container, Run


#: Seconds after the start of the container at which the program starts, so that no line is older than the status' startedAt.
_START: Final = 0.001
#: The time, in seconds, that the program of a container may take which completed within a second.
_AT_ONCE: Final = 60.0


class Attachment:
    """A client that is attached to the output of the main program."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.gone = False

    async def show(self, data: bytes, stream: str) -> None:
        """Writes to the client; waits while its pipe is full; does nothing if it has disconnected."""
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
    """Writes the output of the main program to the log, and to attached clients."""

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
        """The input of attached clients."""
        self.sizes = TerminalSizeQueue()
        self.ended = Notifier()
        self.exit: ExitStatus | None = None
        self.scheduler = Scheduler(container.clock, started=container.monotonic(container.run.started) + _START, eager=False)
        self._followers = 0
        self._lock = threading.Lock()
        self._task: Task | None = None
        self._started = False
        self.absent = False
        """Whether the shell does not have the program."""
        self._driven = False
        """Whether the program runs without followers (`start_now`)."""

    # ------------------------------------------------------------ running

    def start(self) -> None:
        """Starts the program; does nothing if it is started."""
        with self._lock:
            if self._started:
                return
            self._started = True
        self._task = self.scheduler.start(self._body(), " ".join(self._argv()) or self.container.name, 1)
        self.container.register(self._task)
        if not self.container.is_running:
            self._run_to_end()

    def start_now(self) -> bool:
        """Starts the program and keeps it running as time passes; returns False if this was done before."""
        with self._lock:
            if self._driven:
                return False
            self._driven = True
        self.start()
        self.scheduler.eager = True
        self.scheduler.run()
        return True

    def catch_up(self) -> None:
        """Runs the program up to the present time."""
        self.start()
        if self.container.is_running:
            self.scheduler.catch_up()

    def catch_up_to_end(self, run: Run) -> None:
        """Runs the program up to the end of the container."""
        if self._started and run.finished is not None:
            self.scheduler.catch_up(self.container.monotonic(run.finished))

    def _run_to_end(self) -> None:
        """Runs the program of a container that has ended already, up to its end; completely if it was completed within a
        second."""
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
        """Called when a client starts to follow: the program runs as time passes."""
        with self._lock:
            self._followers += 1
        self.scheduler.eager = True

    def unfollow(self) -> None:
        """Called when a client stops to follow."""
        with self._lock:
            self._followers -= 1
            idle = not self._followers and not self._driven
        if idle:
            self.scheduler.eager = False

    # ------------------------------------------------------------ the program

    def _argv(self) -> Sequence[str]:
        container, image = self.container, base_name(self.container.spec.get("image", ""))
        if not container.spec.get("command") and not container.spec.get("args") and image in ENTRYPOINTS:
            return ()
        return container.arguments()

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
            if base_name(self.container.spec.get("image", "")) not in ENTRYPOINTS:
                self._tell_absent()
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
            self._tell_absent()
            return await _forever()

    def _tell_absent(self) -> None:
        """Reports to the log that the shell does not have the program."""
        self.absent = True
        if self.container.is_running:
            self.container.exited(None)


#: Images whose entry points are programs that the shell does not have.
ENTRYPOINTS: Final = frozenset({"nginx", "postgres", "mysql", "redis", "httpd", "pause"})


async def _forever() -> int:
    """Waits until the program is killed."""
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

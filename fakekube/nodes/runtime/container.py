"""One run of a container: its files, environment, processes, main program and log.

Everything is created on first use: the files for the first exec, the main program when a client first reads the log or
connects. It then runs everything since the start of the container, and continues while a client follows (see `scheduling`). The
main program writes the log, and attach connects to it. It is the first of: the log lines of a test's rule, the container's
command, the start lines of well-known images. A command that the shell does not know does nothing.

Invariant: processes and log end with the run; the next run has a `Container` of its own.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_container.go (startContainer,
convertToKubeContainerStatus), pkg/kubelet/container/runtime.go, pkg/kubelet/status/status_manager.go (normalizeStatus).
"""

from __future__ import annotations

import inspect
import posixpath
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.clock import Clock
from fakekube.base.objects import StoredObject
from fakekube.net.pipes import Pipe, TerminalSizeQueue
from fakekube.net.streaming.kubelet_api import ExitStatus, Streams
from fakekube.net.streams import Notifier
from fakekube.nodes.images.names import base_name
from fakekube.nodes.plans import OOM_KILLED
from fakekube.nodes.runtime.behaviour import Behaviour, LogPlan
from fakekube.nodes.runtime.commands import command as applet
from fakekube.nodes.runtime.descriptors import Capture, Descriptor, Null, PipeReader, Terminal
from fakekube.nodes.runtime.environment import expand_each, fits_a_process
from fakekube.nodes.runtime.filesystem import File, FileSystem
from fakekube.nodes.runtime.image_files import APPLET, PROGRAM, START_LINES, hostname_of
from fakekube.nodes.runtime.kernel import ProcessNamespace
from fakekube.nodes.runtime.logs import ContainerLog
from fakekube.nodes.runtime.program import Command, Ended, Program, Usage
from fakekube.nodes.runtime.resources import Consumption
from fakekube.nodes.runtime.scheduling import (
    DEFAULT_MEMORY,
    SIGKILL,
    SIGTERM,
    Killed,
    Memory,
    OutOfMemory,
    Scheduler,
    Task,
    code_of_failure,
    current,
    serve,
    sleep,
    wait_for_ever,
    wait_until,
)
from fakekube.nodes.runtime.shell.interpreter import Shell
from fakekube.nodes.runtime.shell.state import ProgramNotFound, find_program, shebang

if TYPE_CHECKING:
    from fakekube.nodes.images.image import Image
    from fakekube.nodes.runtime.network import Network


_MEMORY: Final = 2 * 1024**3
#: The maximum of `Container.memory_bound`, in bytes.
_MAX_BOUND: Final = 1024**3
#: The real seconds for which the handler of a test is waited for.
_MAX_WAIT: Final = 5.0


@dataclass(slots=True, frozen=True)
class Run:
    """The number of a run of a container, and its times by the cluster's clock."""

    attempt: int
    started: datetime
    finished: datetime | None = None
    exit_code: int = 0


@dataclass(slots=True, frozen=True)
class ContainerContext:
    """The functions of the pod that a container uses."""

    pod: Callable[[], StoredObject]
    """Returns the current Pod object."""
    clock: Clock
    behaviour: Callable[[], Behaviour]
    """Returns the behaviour that tests have set for the container."""
    make_files: Callable[[Container], FileSystem]
    make_environment: Callable[[], dict[str, str]]
    network: Network
    """The network of the pod."""
    image: Callable[[], Image | None]
    """Returns the image of the container; None if it is not known."""
    call_api: Callable[[str, str, bytes | None], tuple[int, bytes]]
    """Sends a request with a token, and the body of a POST, to the API server."""
    find_shared_processes: Callable[[], ProcessNamespace | None]
    """Returns the PID namespace that the container shares with others; None if it has its own."""
    on_exit: Callable[[Container, int | None], None]
    """Called with the exit code when the main program has ended; with None if the shell does not have it."""


class Container:
    """A run of a container.

    Args:
        spec: the container's item in the pod's spec.
        run: the run.
        context: the functions of its pod.
    """

    def __init__(self, spec: StoredObject, run: Run, context: ContainerContext) -> None:
        self.spec, self.run = spec, run
        self._context = context
        self.clock = context.clock
        self.behaviour = context.behaviour
        self.network = context.network
        self.log = ContainerLog()
        self.memory = Memory(self.memory_bound)
        self._own_processes = ProcessNamespace()
        self._seen_processes: ProcessNamespace | None = None
        self._files: FileSystem | None = None
        self._environment: dict[str, str] | None = None
        self._making = threading.RLock()
        self.consumption = Consumption(context.clock)
        self._main: MainProgram | None = None

    # --- Properties ---------------------------------------------------------------------------------------------------

    @property
    def pod(self) -> StoredObject:
        """The current Pod object."""
        return self._context.pod()

    @property
    def name(self) -> str:
        """The name of the container."""
        return str(self.spec["name"])

    @property
    def is_running(self) -> bool:
        """Whether the run has not ended."""
        return self.run.finished is None

    @property
    def hostname(self) -> str:
        """See `program.Host`."""
        return hostname_of(self.pod)

    @property
    def image(self) -> Image | None:
        """The image of the container; None if it is not known."""
        return self._context.image()

    @property
    def node_name(self) -> str:
        """See `program.Host`."""
        return str(self.pod["spec"].get("nodeName", ""))

    def _security(self, name: str) -> Any:
        own = (self.spec.get("securityContext") or {}).get(name)
        return own if own is not None else (self.pod["spec"].get("securityContext") or {}).get(name)

    @property
    def uid(self) -> int:
        """See `program.Host`."""
        given = self._security("runAsUser")
        return int(given) if given is not None else self._image_user()[0]

    @property
    def gid(self) -> int:
        """See `program.Host`."""
        given = self._security("runAsGroup")
        if given is None and self._security("runAsUser") is not None and self.image is not None:
            return self.image.groups_of(self.uid)[0]
        return int(given) if given is not None else self._image_user()[1]

    def _image_user(self) -> tuple[int, int]:
        """Returns user and group of the image."""
        return self.image.user_ids() if self.image is not None else (0, 0)

    @property
    def groups(self) -> list[int]:
        """See `program.Host`."""
        security = self.pod["spec"].get("securityContext") or {}
        own = self.image.groups_of(self.uid)[1] if self.image is not None else []
        found = [*(security.get("supplementalGroups") or ()), security.get("fsGroup")]
        found = [*own, *found] if security.get("supplementalGroupsPolicy") != "Strict" else found
        return list(dict.fromkeys([self.gid, *(int(one) for one in found if one is not None)]))

    @property
    def memory_limit(self) -> int:
        """See `program.Host`."""
        from fakekube.apimachinery.schema.quantity import parse

        limit = ((self.spec.get("resources") or {}).get("limits") or {}).get("memory")
        return int(parse(str(limit)).value()) if limit else _MEMORY

    @property
    def memory_bound(self) -> int:
        """The maximum bytes of the programs together, and of the files: the memory limit, up to `_MAX_BOUND`."""
        limit = self.memory_limit
        return DEFAULT_MEMORY if limit == _MEMORY else min(limit, _MAX_BOUND)

    @property
    def read_only_root(self) -> bool:
        """Whether the root file system is read-only."""
        return bool(self._security("readOnlyRootFilesystem"))

    def started_seconds(self) -> float:
        """See `program.Host`."""
        return max((self.clock.now() - self.run.started).total_seconds(), 0.0)

    def monotonic(self, moment: datetime) -> float:
        """Returns the time of the clock's `monotonic` at a past moment."""
        return self.clock.monotonic() - max((self.clock.now() - moment) / timedelta(seconds=1), 0.0)

    @property
    def files(self) -> FileSystem:
        """The files of the container; created on first use."""
        if self._files is None:
            with self._making:
                if self._files is None:
                    self._files = self._context.make_files(self)
        return self._files

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the container; computed on first use."""
        if self._environment is None:
            with self._making:
                if self._environment is None:
                    self._environment = self._context.make_environment()
        return self._environment

    @property
    def main(self) -> MainProgram:
        """The main program; created on first use."""
        if self._main is None:
            with self._making:
                if self._main is None:
                    self._main = MainProgram(self)
        return self._main

    def arguments(self) -> list[str]:
        """Returns the command and arguments in the container's spec, or those of its image; an empty list if there are none."""
        words = [*(self.spec.get("command") or ()), *(self.spec.get("args") or ())]
        image = self.image
        if image is not None:
            words = image.argv(self.spec)
        return expand_each(words, self.environment)

    def on_program_exit(self, code: int | None) -> None:
        """Called when the main program has ended, or with None if the shell does not have it."""
        self._context.on_exit(self, code)

    # --- Processes ----------------------------------------------------------------------------------------------------

    @property
    def processes(self) -> ProcessNamespace:
        """See `program.Host`."""
        with self._making:
            if self._seen_processes is None:
                self._seen_processes = self._context.find_shared_processes() or self._own_processes
            return self._seen_processes

    def next_pid(self) -> int:
        """See `program.Host`."""
        return self.processes.next_pid()

    def register(self, task: Task) -> None:
        """See `program.Host`."""
        for one in {self.processes, self._own_processes}:
            one.register(task)

    def main_pid(self) -> int:
        """Returns the process id of the main program, which is started once."""
        return 1 if self._own_processes is self.processes else self.next_pid()

    def write_log(self, text: str, stream: str = "stdout") -> None:
        """See `program.Host`."""
        self.log.write(text.encode(), self.clock.now(), stream)

    def call_api(self, path: str, token: str, body: bytes | None = None) -> tuple[int, bytes]:
        """See `program.Host`."""
        return self._context.call_api(path, token, body)

    def use(self, resource: str, amount: float, seconds: float) -> None:
        """See `program.Host`."""
        self.consumption.add(resource, amount, seconds)

    def command_for(self, name: str) -> Command | None:
        """See `program.Host`."""
        handler = self.behaviour().commands.get(posixpath.basename(name))
        if handler is None:
            return None
        from fakekube.nodes.runtime.handler_commands import handler_command

        return handler_command(handler)

    def program(self, argv: Sequence[str], descriptors: Mapping[int, Any], *, tty: bool = False) -> Program:
        """Returns a program that runs in the container."""
        self.memory.limit = self.memory_bound
        env = dict(self.environment)
        if tty:
            env.setdefault("TERM", "xterm")
        image = self.image
        cwd = str(self.spec.get("workingDir") or (image.working_directory if image is not None else "") or "/")
        if not self.files.exists(cwd):
            self.files.make_directories(cwd)
        return Program(argv[0], argv[1:], env, cwd, descriptors, self, self.execute)

    async def execute(self, argv: Sequence[str], program: Program) -> int:
        """Runs a command by its name or path, and returns its exit code. Raises ProgramNotFound."""
        program = replace(program, name=argv[0], argv0=argv[0], args=argv[1:], failed=False)
        implementation = self.command_for(argv[0])
        if implementation is None:
            implementation = self._found(argv[0], program)
        program.name = posixpath.basename(argv[0]) or argv[0]
        try:
            with current().another_program():
                return await implementation(program)
        except (ArithmeticError, LookupError, ValueError) as wrong:
            return await program.complain(f"invalid argument: {str(wrong)[:200]}")
        except Usage as wrong:
            return await program.complain(str(wrong), wrong.code)
        except (ProgramNotFound, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            text = str(error) if isinstance(error, ProgramNotFound) else f"{error.filename or ''}: {error.strerror}"
            return await program.complain(text, error.code if isinstance(error, ProgramNotFound) else 1)

    def _found(self, name: str, program: Program) -> Command:
        path = find_program(name, program.files, program.env.get("PATH", ""), program.cwd)
        if path is None and self.behaviour().host_programs:
            from fakekube.nodes.runtime.handler_commands import handler_command, is_installed, run_on_host

            if is_installed(name):
                return handler_command(run_on_host)
        if path is None:
            raise ProgramNotFound(f"{name}: not found", 127)
        node = program.files.node(path, program.cwd)
        content = bytes(node.content) if isinstance(node, File) else b""
        if content.startswith(PROGRAM) and self.image is not None:
            own = self.image.program(content.removeprefix(PROGRAM).strip().decode())
            if own is not None:
                return _command_of(own)
        if content.startswith(APPLET):
            found = applet(content.removeprefix(APPLET).strip().decode())
            if found is not None:
                return found
        if content.startswith(b"\x7fELF") or b"\0" in content[:64]:
            raise ProgramNotFound(f"{name}: Exec format error", 126)
        return _script(path, shebang(content))

    def run_hook(self, command: Sequence[str], failed: Callable[[], None]) -> None:
        """Starts a lifecycle hook beside the main program; calls `failed` if its exit code is not 0."""

        async def body() -> int:
            code = await self._run_quietly(command)
            if code:
                failed()
            return code

        scheduler = self.main.scheduler
        self.register(scheduler.start(body(), " ".join(command), self.next_pid()))
        scheduler.run()

    def run_to_end(self, command: Sequence[str], limit: float) -> Ended:
        """Runs a command to its end without waiting: its sleeps return at once. Only handlers of tests take real time.

        Args:
            command: the program and its arguments.
            limit: the maximum time of the command, in seconds; then it is killed.
        """
        start = self.clock.monotonic()
        scheduler = Scheduler(self.clock, started=start, eager=False, memory=self.memory)
        output = Capture()
        task = scheduler.start(self._run_quietly(command, output), " ".join(command), self.next_pid())
        scheduler.catch_up(start + limit)
        if task.exit_code is None and not scheduler.is_sleeping:
            ended = threading.Event()
            task.subscribe(ended.set)
            if task.exit_code is None:
                ended.wait(min(limit, _MAX_WAIT))
        if task.exit_code is None:
            task.kill(SIGKILL)
            scheduler.catch_up(start + limit)
            return Ended(None, limit, bytes(output.data))
        return Ended(task.exit_code, scheduler.time - start, bytes(output.data))

    async def _run_quietly(self, command: Sequence[str], output: Descriptor | None = None) -> int:
        written = output or Null()
        try:
            return await self.execute(command, self.program(command, {0: Null(), 1: written, 2: written})) if command else 0
        except ProgramNotFound as missing:
            return missing.code

    def stop(self) -> None:
        """Ends the programs, without a trace in the log or the API; called when the cluster stops.

        Those that wait are woken: else the garbage collector would end them, each of which wakes the next one, in any thread and
        with any lock held.
        """
        tasks = list(self._own_processes.tasks.values())
        for task in tasks:
            task.scheduler.stopped = True
        for task in tasks:
            task.wake()

    def end(self, run: Run) -> None:
        """Ends the run: kills its programs and closes its log."""
        if not self.is_running:
            return
        if self._main is not None and run.finished is not None:
            self._main.catch_up_to_end(run)
        self.run = run
        for task in list(self._own_processes.tasks.values()):
            task.kill(SIGKILL)
        self.log.close(run.finished or self.clock.now())


def _command_of(program: Any) -> Command:
    """Returns the command of a program of an image."""
    if inspect.iscoroutinefunction(program):
        command: Command = program
        return command
    from fakekube.nodes.runtime.handler_commands import handler_command

    return handler_command(program)


def _script(path: str, interpreter: list[str] | None) -> Command:
    """Returns a command that runs a script."""

    async def run(program: Program) -> int:
        words = interpreter or ["/bin/sh"]
        if words[0].rpartition("/")[2] == "env" and len(words) > 1:
            words = words[1].split()
        if words[0].rpartition("/")[2] in ("sh", "ash", "bash", "dash"):
            source = program.files.read(path, program.cwd).decode("utf-8", "surrogateescape")
            shell = Shell.for_program(program, path, program.args)
            return await shell.run_text(source)
        return await program.run_other([*words, path, *program.args], program)

    return run


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
                    await wait_until(lambda: (pipe.free > 0 or pipe.abandoned or pipe.closed) or None, pipe)
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
        self.reason = ""
        """The reason of the end, if it is neither Completed nor Error."""
        started = container.monotonic(container.run.started) + _START
        self.scheduler = Scheduler(container.clock, started=started, eager=False, memory=container.memory)
        self._followers = 0
        self._lock = threading.Lock()
        self._task: Task | None = None
        self._started = False
        self.absent = False
        """Whether the shell does not have the program."""
        self.is_server = False
        """Whether the program is the server that is the entry point of its image, which only a signal ends."""
        self._driven = False
        """Whether the program runs without followers (`start_now`)."""

    # --- Running ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the program; does nothing if it is started."""
        with self._lock:
            if self._started:
                return
            self._started = True
        name = " ".join(self._argv()) or self.container.name
        self._task = self.scheduler.start(self._body(), name, self.container.main_pid())
        self.container.register(self._task)
        if not self.container.is_running:
            self._run_to_end()

    def start_now(self, since: float | None = None) -> bool:
        """Starts the program and keeps it running as time passes; returns False if this was done before.

        Args:
            since: the exact time of the start, in seconds of the clock's `monotonic`; the status has whole seconds only.
        """
        with self._lock:
            if self._driven:
                return False
            self._driven = True
            if since is not None and not self._started:
                self.scheduler.time = since
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

    @property
    def catches_term(self) -> bool:
        """Whether the program handles SIGTERM."""
        return self._task is not None and self._task.exit_code is None and SIGTERM in self._task.caught

    def terminate(self) -> None:
        """Sends SIGTERM to the program, and to no other process of the container.

        The program has handled it on return, unless it is busy: the clock may move before a busy machine runs it in a worker.
        """
        if self._task is not None:
            self._task.deliver(SIGTERM)
            self.scheduler.catch_up()

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

    # --- The program --------------------------------------------------------------------------------------------------

    def _argv(self) -> Sequence[str]:
        container, image = self.container, base_name(self.container.spec.get("image", ""))
        if not container.spec.get("command") and not container.spec.get("args") and image in ENTRYPOINTS:
            return ()
        return container.arguments()

    async def _body(self) -> int:
        code = 0
        try:
            code = await self._run()
        except Killed as killed:
            code, self.reason = 128 + killed.signal, OOM_KILLED if isinstance(killed, OutOfMemory) else ""
        except Exception as failure:
            code = code_of_failure(failure, self.container.name)
        finally:
            self.exit = ExitStatus(code)
            for one in self.attachments:
                _close(one.streams)
            self.ended.notify()
        if self.container.is_running and not self.scheduler.stopped:
            self.container.on_program_exit(code)
        return code

    async def _run(self) -> int:
        plan = self.container.behaviour().logs
        if plan is not None:
            await _log(plan, _Output(self, plan.stream))
            return await wait_for_ever()
        argv = self._argv()
        if not argv:
            image = base_name(self.container.spec.get("image", ""))
            for line in START_LINES.get(image, ()):
                await _Output(self, "stdout").write(f"{line}\n".encode())
            if image in ENTRYPOINTS:
                self.is_server = True
                return await serve()
            self._tell_absent()
            return await wait_for_ever()
        stdin: Descriptor = PipeReader(self.stdin) if self.container.spec.get("stdin") else Null()
        descriptors: dict[int, Descriptor] = {0: stdin, 1: _Output(self, "stdout"), 2: _Output(self, "stderr")}
        if self.container.spec.get("tty"):
            terminal = Terminal(self.stdin if self.container.spec.get("stdin") else None, descriptors[1], self.sizes)
            descriptors = dict.fromkeys((0, 1, 2), terminal)
            if self.container.spec.get("stdin"):
                assert self._task is not None
                self.scheduler.start(terminal.pump(), "terminal", 0, self._task)
                terminal.set_foreground(self._task)
        if not fits_a_process(argv, self.container.environment):
            await descriptors[2].write(f"exec {argv[0]}: argument list too long\n".encode())
            return _NOT_STARTED
        program = self.container.program(argv, descriptors, tty=bool(self.container.spec.get("tty")))
        try:
            return await self.container.execute(argv, program)
        except ProgramNotFound:
            self._tell_absent()
            return await wait_for_ever()

    def _tell_absent(self) -> None:
        """Reports to the log that the shell does not have the program."""
        self.absent = True
        if self.container.is_running:
            self.container.on_program_exit(None)


#: The exit code of a program that the kernel refuses to start, as runc reports it.
_NOT_STARTED: Final = 255

#: Images whose entry points are programs that the shell does not have.
ENTRYPOINTS: Final = frozenset({"nginx", "postgres", "mysql", "redis", "httpd", "pause"})


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

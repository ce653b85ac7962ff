"""exec and attach: runs programs of clients in containers, and connects clients to the main program.

Invariant: an execution is finished exactly once, after its pipes are closed.

Specified by: k8s.io/cri-streaming/pkg/streaming/remotecommand, pkg/kubelet/cri/remote; the error texts of runc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fakekube.base.threads import WORKERS
from fakekube.net.pipes import Pipe, TerminalSizeQueue
from fakekube.net.streaming.kubelet_api import Execution, ExitStatus, Streams
from fakekube.nodes.images.missing_programs import exec_error
from fakekube.nodes.runtime.behaviour import Context, Handler, call
from fakekube.nodes.runtime.container import Attachment, Container
from fakekube.nodes.runtime.descriptors import Descriptor, Null, PipeReader, PipeWriter, Terminal
from fakekube.nodes.runtime.scheduling import SIGKILL, Killed, Scheduler, wait_until
from fakekube.nodes.runtime.shell.state import ProgramNotFound


def _close(streams: Streams) -> None:
    if streams.stdin is not None:
        streams.stdin.abandon()
    for pipe in (streams.stdout, streams.stderr):
        if pipe is not None:
            pipe.close()


class _Output(PipeWriter):
    """The output of a program for its client; what is written after the client has left is dropped."""

    async def write(self, data: bytes) -> None:
        if self.pipe.abandoned:
            return
        try:
            await super().write(data)
        except Killed:
            if not self.pipe.abandoned:
                raise


def exec_program(container: Container, command: Sequence[str], streams: Streams) -> Execution:
    """Runs a command in a container."""
    scheduler = Scheduler(container.clock, memory=container.memory)
    terminal: Terminal | None = None
    output = Null() if streams.stdout is None else _Output(streams.stdout)
    if streams.tty:
        terminal = Terminal(streams.stdin, output, streams.sizes)
        descriptors: dict[int, Descriptor] = dict.fromkeys((0, 1, 2), terminal)
    else:
        descriptors = {
            0: Null() if streams.stdin is None else PipeReader(streams.stdin),
            1: output,
            2: Null() if streams.stderr is None else _Output(streams.stderr),
        }

    def cancel() -> None:
        """The client has left: the program goes on, its input ends, and its output is dropped."""
        if streams.stdin is not None:
            streams.stdin.close()
        for pipe in (streams.stdout, streams.stderr):
            if pipe is not None:
                pipe.abandon()

    execution = Execution(cancel)

    async def body() -> int:
        code = 128 + SIGKILL
        try:
            code = await _run(container, command, descriptors, tty=streams.tty)
        except BrokenPipeError:
            code = 141
        finally:
            _close(streams)
            execution.finish(ExitStatus(code))
        return code

    root = scheduler.start(body(), " ".join(command), container.next_pid())
    container.register(root)
    if terminal is not None and streams.stdin is not None:
        terminal.set_foreground(root)
        scheduler.start(terminal.pump(), "terminal", 0)
    scheduler.run()
    return execution


async def _run(container: Container, command: Sequence[str], descriptors: dict[int, Descriptor], *, tty: bool) -> int:
    program = container.program(command, descriptors, tty=tty)
    try:
        return await container.execute(command, program)
    except ProgramNotFound as missing:
        await program.stderr.write(f"{refusal(command[0], missing.code)}\n".encode())
        return missing.code


def refusal(name: str, code: int) -> str:
    """Returns the error of runc for a program that cannot be started."""
    if code == 126:
        reason = "permission denied" if "/" in name else "exec format error"
        shown = f"exec {name}: {reason}"
    else:
        shown = exec_error(name)
    return f"OCI runtime exec failed: exec failed: unable to start container process: {shown}: unknown"


def exec_handler(handler: Handler, container: Container, command: Sequence[str], streams: Streams) -> Execution:
    """Calls a handler of a test in place of a program."""
    stdin, stdout = streams.stdin or _empty(), streams.stdout or _sink()
    stderr = streams.stderr or (stdout if streams.tty else _sink())

    def cancel() -> None:
        stdin.close()
        stdout.abandon()
        stderr.abandon()

    execution = Execution(cancel)
    context = Context(
        tuple(command), stdin, stdout, stderr, dict(container.environment), container.pod, container.name, container.files,
        streams.tty, streams.sizes or TerminalSizeQueue(),
    )  # fmt: skip

    def work() -> None:
        status = call(handler, context)
        _close(streams)
        execution.finish(status)

    WORKERS.run(work)
    return execution


def _empty() -> Pipe:
    pipe = Pipe()
    pipe.close()
    return pipe


def _sink() -> Pipe:
    """Returns a pipe with a large capacity, for output that the client did not request."""
    return Pipe(capacity=1 << 30)


def attach(container: Container, streams: Streams) -> Execution:
    """Connects a client to the output and the input of the main program."""
    main = container.main
    attachment = Attachment(streams)
    carriers: list[Callable[[], None]] = []

    def cancel() -> None:
        detach()

    execution = Execution(cancel)

    def detach() -> None:
        attachment.gone = True
        main.attachments = [one for one in main.attachments if one is not attachment]
        for stop in carriers:
            stop()
        carriers.clear()
        main.ended.unsubscribe(on_end)
        main.unfollow()
        if container.spec.get("stdinOnce") and streams.stdin is not None:
            main.stdin.close()

    def leave() -> None:
        if not attachment.gone:
            detach()
            _close(streams)
            execution.finish(ExitStatus(0))

    def on_end() -> None:
        if main.exit is not None:
            leave()

    main.attachments = [*main.attachments, attachment]
    main.ended.subscribe(on_end)
    main.follow()
    if streams.stdin is not None and container.spec.get("stdin"):
        closes = bool(container.spec.get("stdinOnce")) and not streams.tty
        body = _carry(streams.stdin, main.stdin, main.stdin.close if closes else leave)
        carriers.append(main.scheduler.start(body, "attach", 0).kill)
    if streams.sizes is not None:
        carriers.append(_carry_sizes(streams.sizes, main.sizes))
    main.catch_up()
    on_end()
    return execution


async def _carry(source: Pipe, target: Pipe, at_end: Callable[[], None]) -> int:
    """Transfers the data of a pipe to another one, and then calls a function: the client is detached if the input stays open."""
    writer = PipeWriter(target)
    while data := await wait_until(source.read, source):
        await writer.write(data)
    at_end()
    return 0


def _carry_sizes(source: TerminalSizeQueue, target: TerminalSizeQueue) -> Callable[[], None]:
    def pass_on() -> None:
        while (size := source.next()) is not None:
            target.put(size)

    source.subscribe(pass_on)
    pass_on()
    return lambda: source.unsubscribe(pass_on)

"""The inside of containers, for tests: the behaviour that `cluster.pods.on(…)` defines, and `cluster.pods.get(…)`.

Invariant: a `Behaviour` is immutable; each method of a rule replaces it, and the runtime reads it for each use.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import Streams
from fakekube.nodes.runtime.behaviour import NOTHING, Behaviour, LogPlan, Usage

if TYPE_CHECKING:
    from fakekube.net.streaming.kubelet_api import Connection, Destination
    from fakekube.nodes.runtime.behaviour import PortHandler
    from fakekube.nodes.runtime.container import Container
    from fakekube.nodes.runtime.filesystem import FileSystem
    from fakekube.nodes.runtime.handlers import Handler
    from fakekube.nodes.runtime.runtime import Runtime

__all__ = ["BehaviourRule", "PodInside", "Result"]

#: Real seconds for which `PodInside.exec` waits.
EXEC_TIMEOUT = 10.0


class BehaviourRule:
    """The methods of a rule that define what happens inside containers. Each returns the rule."""

    behaviour: Behaviour = NOTHING
    """The behaviour that was defined."""

    def _changed(self) -> None:
        """Called after each change."""

    def _behave(self, **changes: Any) -> Self:
        self.behaviour = replace(self.behaviour, **changes)
        self._changed()
        return self

    def logs(
        self,
        line: str | Callable[[int], str] = "",
        *,
        every: float = 0.0,
        times: int | None = None,
        lines: Sequence[str] = (),
        file: str | PathLike[str] | None = None,
        stream: str = "stdout",
    ) -> Self:
        """Defines the log of the containers, instead of the output of their command.

        Args:
            line: A line, or a function that returns the line for its number (from 0).
            every: Seconds of the clock between two lines; with 0 there is a single line.
            times: The number of lines; None for no end.
            lines: The content of the log at the start.
            file: A file of this machine whose content is in the log at the start.
            stream: stdout or stderr.
        """
        plan = LogPlan(line, every, times, tuple(lines), None if file is None else Path(file), stream)
        return self._behave(logs=plan)

    def exec(self, handler: Handler | None, *, command: str | None = None) -> Self:
        """Defines a function that runs instead of a program in the containers.

        Args:
            handler: Called with a `Context` (command, stdin, stdout, stderr, env, pod, container, files) in a thread of its
                own; returns the exit code, or a text for stdout. None restores the shell.
            command: The program that the function replaces, also within scripts; None for every exec.
        """
        if command is None:
            return self._behave(exec=handler)
        kept = {name: one for name, one in self.behaviour.commands.items() if name != command}
        return self._behave(commands=kept if handler is None else {**kept, command: handler})

    def attach(self, handler: Handler | None) -> Self:
        """Defines a function that serves attach requests; see `exec`."""
        return self._behave(attach=handler)

    def serve(self, port: int, what: Destination | PortHandler) -> Self:
        """Defines the server of a port, for port-forward, proxies, and containers that connect to it.

        Args:
            port: The port of the pod.
            what: A WSGI application; a function of two pipes, `handler(incoming, outgoing)`, which has a thread while
                a connection lasts; or `(host, port)` of this machine.
        """
        return self._behave(ports={**self.behaviour.ports, port: what})

    def refuse(self, port: int) -> Self:
        """Defines that nothing listens on a port."""
        return self._behave(ports={**self.behaviour.ports, port: None})

    def uses(self, cpu: Any = None, memory: Any = None) -> Self:
        """Defines the usage of containers: a quantity ("250m", "64Mi", a number), or a function of the Pod that returns one."""
        usage = self.behaviour.usage or Usage()
        return self._behave(usage=Usage(usage.cpu if cpu is None else cpu, usage.memory if memory is None else memory))

    def host_programs(self) -> Self:
        """Runs programs that the shell of the containers lacks on this machine, with its files and permissions."""
        return self._behave(host_programs=True)

    def runs_command(self) -> Self:
        """Runs the command and arguments of containers in the shell; they terminate with it, with its exit code."""
        return self._behave(follows_command=True)


@dataclass(slots=True, frozen=True)
class Result:
    """The result of a program."""

    code: int
    stdout: str
    stderr: str


class PodInside:
    """The inside of one pod: `cluster.pods.get("web-0")`.

    Args:
        pod: Returns the present pod. Raises LookupError.
        runtime: The container runtime of the cluster.
    """

    def __init__(self, pod: Callable[[], Mapping[str, Any]], runtime: Runtime) -> None:
        self._pod, self._runtime = pod, runtime

    def _container(self, name: str | None) -> Container:
        pod = self._pod()
        chosen = name or pod["metadata"].get("annotations", {}).get("kubectl.kubernetes.io/default-container")
        return self._runtime.container(pod, chosen or pod["spec"]["containers"][0]["name"])

    def log(self, *lines: str, container: str | None = None, stream: str = "stdout") -> None:
        """Writes lines to the log of a container; by default the first one. Raises KubeletError if it is not running."""
        found = self._container(container)
        found.main.catch_up()
        found.log.write("".join(f"{line}\n" for line in lines).encode(), self._runtime.clock.now(), stream)

    def logs(self, container: str | None = None) -> str:
        """Returns the log of a container."""
        found = self._container(container)
        found.main.catch_up()
        return b"".join(line.text for line in found.log.lines()).decode("utf-8", "replace")

    def exec(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = b"",
        container: str | None = None,
        timeout: float = EXEC_TIMEOUT,
    ) -> Result:
        """Runs a program, as kubectl exec does; a text is run by sh. Raises TimeoutError after so many real seconds."""
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        streams = Streams(Pipe(1 << 30), Pipe(1 << 30), Pipe(1 << 30))
        assert streams.stdin is not None and streams.stdout is not None and streams.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            streams.stdin.write_all(stdin.encode() if isinstance(stdin, str) else stdin)
        streams.stdin.close()
        execution = self._runtime.exec(self._pod(), self._container(container).name, words, streams)
        stdout, stderr = (_all_of(pipe, timeout) for pipe in (streams.stdout, streams.stderr))
        ended = threading.Event()
        execution.subscribe(ended.set)
        while execution.exit is None and ended.wait(timeout):
            pass
        if execution.exit is None:
            raise TimeoutError(f"{words[0]} did not end in {timeout} s")
        return Result(execution.exit.code, stdout, stderr)

    def files(self, container: str | None = None) -> FileSystem:
        """Returns the files of a container: `read(path)`, `write(path, data)`, `exists(path)`, `list(path)` …"""
        return self._container(container).files

    def connect(self, port: int) -> Connection:
        """Returns a connection to a port. Raises OSError if nothing listens there."""
        return self._runtime.connect(self._pod(), port)


def _all_of(pipe: Pipe, timeout: float) -> str:
    parts = []
    while part := pipe.read_blocking(timeout=timeout):
        parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")

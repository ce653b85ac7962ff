"""The behaviour of containers that rules of a test define: log lines, handlers for exec and attach, ports, resource usage.

A handler is a function of a test that replaces a program: `cluster.pods.on(image="postgres").exec(handler)`. It runs in a thread
of the process, reads and writes blocking pipes, and returns the exit code, or a string for stdout.

Invariant: a behaviour is immutable; changing a rule replaces it. If several match a container, later ones take precedence. An
exception of a handler ends the program with exit code 1, and its traceback is written to stderr.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakekube.net.pipes import Pipe, TerminalSizeQueue
from fakekube.net.streaming.kubelet_api import Destination, ExitStatus

if TYPE_CHECKING:
    from fakekube.nodes.runtime.filesystem import FileSystem


_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Context:
    """The argument of a handler."""

    command: Sequence[str]
    """The program and its arguments."""
    stdin: Pipe
    """The input of the client: `read_blocking()`, `readline()` or iteration over lines; empty if there is none."""
    stdout: Pipe
    """The output: `write_all(data)`."""
    stderr: Pipe
    """The error output; with a terminal it is `stdout`."""
    env: Mapping[str, str]
    """The environment of the container."""
    pod: Mapping[str, Any]
    """The Pod object."""
    container: str
    """The name of the container."""
    files: FileSystem
    """The files of the container: `read(path)`, `write(path, data)`, `exists(path)` …"""
    tty: bool = False
    """Whether the client has a terminal."""
    sizes: TerminalSizeQueue = field(default_factory=TerminalSizeQueue)
    """The sizes of the terminal."""

    def write(self, text: str | bytes) -> None:
        """Writes to stdout."""
        self.stdout.write_all(text.encode() if isinstance(text, str) else text)

    def read_all(self) -> bytes:
        """Reads the input to its end, and returns it."""
        parts = []
        while part := self.stdin.read_blocking():
            parts.append(part)
        return b"".join(parts)


Handler = Callable[[Context], int | str | bytes | None]
"""Returns the exit code (None is 0), or a string or bytes for stdout with exit code 0."""


def call(handler: Handler, context: Context) -> ExitStatus:
    """Calls a handler and closes its pipes."""
    try:
        code = _result(handler(context), context)
    except BrokenPipeError:  # the client has disconnected
        code = 1
    except Exception as error:
        _log.warning("%s: %s", " ".join(context.command), error, exc_info=True)
        code = 1
        with suppress(BrokenPipeError):
            context.stderr.write_all(traceback.format_exc().encode())
    finally:
        context.stdin.abandon()
    context.stdout.close()
    context.stderr.close()
    return ExitStatus(code)


def _result(found: int | str | bytes | None, context: Context) -> int:
    if isinstance(found, str | bytes):
        context.write(found)
        return 0
    return int(found or 0) & 0xFF


PortHandler = Callable[[Pipe, Pipe], None]
"""Serves one connection: reads the first pipe and writes the second one, in a thread of its own."""


@dataclass(slots=True, frozen=True)
class LogPlan:
    """The log lines of a container."""

    line: str | Callable[[int], str] = ""
    """A line, or a function that returns the line for a number, from 0 on."""
    every: float = 0.0
    """Seconds between two lines; 0 for a single line at the start."""
    times: int | None = None
    """The number of lines; None for no limit."""
    lines: tuple[str, ...] = ()
    """Lines that are logged at the start."""
    file: Path | None = None
    """A file of this machine, whose lines are logged at the start."""
    stream: str = "stdout"


@dataclass(slots=True, frozen=True)
class Usage:
    """The resource usage of a container: quantities, or functions of the pod that return one."""

    cpu: Any = None
    memory: Any = None


@dataclass(slots=True, frozen=True)
class Behaviour:
    """The behaviour of a container; None and empty mappings are the default behaviour."""

    logs: LogPlan | None = None
    exec: Handler | None = None
    """The handler of every exec."""
    commands: Mapping[str, Handler] = field(default_factory=dict)
    """The handlers of single programs, by name, also within scripts."""
    attach: Handler | None = None
    ports: Mapping[int, Destination | PortHandler | None] = field(default_factory=dict)
    """The servers by port; None refuses connections."""
    usage: Usage | None = None
    host_programs: bool = False
    """Whether programs that the shell does not have are run on this machine."""
    follows_command: bool | None = None
    """Whether the container terminates with its command, and its exit code; None if it is interactive (`stdin: true`)."""


NOTHING = Behaviour()


def merge_behaviours(found: Iterable[Behaviour]) -> Behaviour:
    """Merges behaviours; later ones take precedence."""
    made: dict[str, Any] = {}
    for one in found:
        for each in fields(Behaviour):
            value = getattr(one, each.name)
            if isinstance(value, Mapping):
                if value:
                    made[each.name] = {**made.get(each.name, {}), **value}
            elif value is not None and value is not False:
                made[each.name] = value
    return Behaviour(**made)

"""Handlers: functions of a test that replace programs in containers, `cluster.pods.on(image="postgres").exec(handler)`.

A handler runs in a thread of the process, reads and writes blocking pipes, and returns the exit code, or a string for stdout.

Invariant: an exception of a handler ends the program with exit code 1, and its traceback is written to stderr.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakekube.net.pipes import Pipe, TerminalSizeQueue
from fakekube.net.streaming.kubelet_api import ExitStatus

if TYPE_CHECKING:
    from fakekube.nodes.runtime.filesystem import FileSystem

__all__ = ["Context", "Handler", "call"]

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

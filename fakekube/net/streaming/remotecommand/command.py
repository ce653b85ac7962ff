"""One process of exec or attach, independent of the protocol: its pipes, terminal sizes and exit status.

Invariant: the exit status is sent after all output of the process.

Specified by: k8s.io/cri-streaming/pkg/streaming/remotecommand (exec.go, attach.go, httpstream.go).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fakekube.net.pipes import Pipe, TerminalSize, TerminalSizeQueue
from fakekube.net.streaming.inlet import Inlet
from fakekube.net.streaming.kubelet_api import Execution, ExitStatus, KubeletError, Streams
from fakekube.net.streams import Notifier

_log = logging.getLogger(__name__)

STDIN, STDOUT, STDERR = "stdin", "stdout", "stderr"

_PIECE = 32 * 1024
"""The maximum number of bytes in a message (the buffer of io.Copy)."""
_LARGEST_SIZE = 65535
_MAX_SIZES_TEXT = 4096
_BLANK = re.compile(r"\s*")


@dataclass(slots=True, frozen=True)
class Options:
    """The streams that a client requests."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


@dataclass(slots=True, frozen=True)
class Action:
    """The operation: runs a command, or attaches to a process."""

    begin: Callable[[Streams], Execution]
    """Starts the operation with the streams. May raise KubeletError."""
    failure: str
    """The beginning of the message of an error that is not an exit code."""
    description: str = ""
    """The command, for the message of an exit code."""


class RemoteCommand:
    """The process and its pipes.

    Args:
        options: the requested streams.
        action: the operation.
        source: notified when there may be data to send, or space for received data.
    """

    def __init__(self, options: Options, action: Action, source: Notifier) -> None:
        self._action = action
        self._source = source
        self._execution: Execution | None = None
        self._cancelled = False
        self._sizes_text = ""
        tty = options.tty
        self.streams = Streams(
            stdin=Pipe() if options.stdin else None,
            stdout=Pipe() if options.stdout else None,
            stderr=Pipe() if options.stderr and not tty else None,
            tty=tty,
            sizes=TerminalSizeQueue() if tty else None,
        )
        self.stdin = Inlet(self.streams.stdin) if self.streams.stdin is not None else None
        pipes = {STDOUT: self.streams.stdout, STDERR: self.streams.stderr}
        self.outputs: dict[str, Pipe] = {name: pipe for name, pipe in pipes.items() if pipe is not None}
        """The output pipes that have not ended, by stream name."""
        for pipe in self._pipes():
            pipe.subscribe(source.notify)

    def _pipes(self) -> list[Pipe]:
        streams = self.streams
        return [pipe for pipe in (streams.stdin, streams.stdout, streams.stderr) if pipe is not None]

    # ------------------------------------------------------------ the process

    def begin(self) -> None:
        """Starts the process, in any thread. Errors become its exit status. Never raises."""
        try:
            execution = self._action.begin(self.streams)
        except Exception as error:
            if not isinstance(error, KubeletError):
                _log.exception("A command could not be started")
            execution = Execution()
            execution.finish(ExitStatus(error=str(error) or type(error).__name__))
        self._execution = execution
        execution.subscribe(self._source.notify)
        if self._cancelled:
            execution.cancel()
        self._source.notify()

    @property
    def exit(self) -> ExitStatus | None:
        """The exit status; None while the process runs. Must be read before the output, so that no output is missed."""
        return self._execution.exit if self._execution is not None else None

    def cancel(self) -> None:
        """Ends the operation, because the client has disconnected."""
        self._cancelled = True
        if self.stdin is not None:
            self.stdin.abandon()
        for pipe in self._pipes():
            pipe.unsubscribe(self._source.notify)
        for output in (self.streams.stdout, self.streams.stderr):
            if output is not None:
                output.abandon()
        if self._execution is not None:
            self._execution.unsubscribe(self._source.notify)
            self._execution.cancel()

    # ------------------------------------------------------------ data from the client

    def receive(self, data: bytes) -> None:
        """Receives input."""
        if self.stdin is not None:
            self.stdin.put(data)

    def end_input(self) -> None:
        """Receives the end of the input."""
        if self.stdin is not None:
            self.stdin.close()

    def resize(self, data: bytes) -> None:
        """Receives sizes of the terminal, as consecutive JSON documents; after an invalid one all others are ignored."""
        if self.streams.sizes is None or len(self._sizes_text) > _MAX_SIZES_TEXT:
            return
        self._sizes_text += data.decode("utf-8", "replace")
        while (start := _end_of_blank(self._sizes_text)) < len(self._sizes_text):
            try:
                document, end = json.JSONDecoder().raw_decode(self._sizes_text, start)
            except ValueError:
                return  # incomplete or invalid
            self._sizes_text = self._sizes_text[end:]
            size = _terminal_size(document)
            if size is None:
                self._sizes_text = " " * (_MAX_SIZES_TEXT + 1)
                return
            self.streams.sizes.put(size)

    @property
    def blocked(self) -> bool:
        """Reports whether there is buffered input for the process."""
        return self.stdin is not None and self.stdin.blocked

    # ------------------------------------------------------------ data for the client

    def read_output(self) -> list[tuple[str, bytes]]:
        """Returns output of the process by the name of the stream; b"" is the end of a stream."""
        if self.stdin is not None:
            self.stdin.flush()
        found = []
        for name, pipe in list(self.outputs.items()):
            data = pipe.read(_PIECE)
            if data is None:
                continue
            if not data:
                del self.outputs[name]
            found.append((name, data))
        return found

    def status(self, exit_status: ExitStatus) -> Mapping[str, object]:
        """Returns the Status that the kubelet sends on the error stream (v4)."""
        if exit_status.error:
            message = f"Internal error occurred: {self._action.failure}: {exit_status.error}"
            return {"status": "Failure", "message": message, "reason": "InternalError", "code": 500}
        if not exit_status.code:
            return {"status": "Success"}
        code = exit_status.code
        message = f"command terminated with non-zero exit code: {self._action.description}exit code {code}"
        return {"status": "Failure", "message": message, "reason": "NonZeroExitCode", "details": _causes(code)}

    def translated_status(self, exit_status: ExitStatus) -> Mapping[str, object]:
        """Returns the Status that the API server's translator makes of that of the kubelet (v5)."""
        if exit_status.error:
            return internal_error(f"Internal error occurred: {self._action.failure}: {exit_status.error}")
        if not exit_status.code:
            return {"metadata": {}, "status": "Success"}
        code = exit_status.code
        message = f"command terminated with non-zero exit code: command terminated with exit code {code}"
        details = _causes(code)
        return {"metadata": {}, "status": "Failure", "message": message, "reason": "NonZeroExitCode", "details": details}


def internal_error(problem: str) -> Mapping[str, object]:
    """Returns the Status of an internal error, as the API server's translator writes it."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {problem}",
        "reason": "InternalError",
        "details": {"causes": [{"message": problem}]},
        "code": 500,
    }


def encode_status(status: Mapping[str, object], version: str) -> bytes:
    """Encodes a status for the error stream: JSON since v4; before, the message of an error, and b"" for success."""
    if version in ("v4", "v5"):
        text = json.dumps(status, separators=(",", ":"), ensure_ascii=False)
        for character in "<>&\u2028\u2029":
            text = text.replace(character, f"\\u{ord(character):04x}")
        return text.encode()
    return str(status.get("message", "")).encode()


def _causes(code: int) -> Mapping[str, object]:
    return {"causes": [{"reason": "ExitCode", "message": str(code)}]}


def _end_of_blank(text: str) -> int:
    found = _BLANK.match(text)
    return found.end() if found else 0


def _terminal_size(document: object) -> TerminalSize | None:
    """Decodes a size as Go does; returns None for an invalid one."""
    if not isinstance(document, dict):
        return None
    members = {str(name).lower(): value for name, value in document.items()}
    numbers = [members.get("width", 0), members.get("height", 0)]
    if any(type(number) is not int or not 0 <= number <= _LARGEST_SIZE for number in numbers):
        return None
    return TerminalSize(*numbers)

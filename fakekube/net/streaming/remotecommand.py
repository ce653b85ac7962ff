"""exec and attach: one process, its streams, and its exit status, over WebSocket channels or SPDY.

Invariant: the exit status is sent after all output of the process.

exec and attach over WebSocket channels: 0 stdin, 1 stdout, 2 stderr, 3 error, 4 resize.

exec and attach over SPDY: the client opens a stream for each of stdin, stdout, stderr, error and resize.

The process is started, in a worker thread, when all streams of the options are open.

Specified by: k8s.io/cri-streaming/pkg/streaming/remotecommand (exec.go, attach.go, httpstream.go);
k8s.io/cri-streaming/pkg/streaming/remotecommand/websocket.go (v4 and before); k8s.io/apiserver/pkg/util/proxy
(streamtranslator.go, websocket.go; v5); k8s.io/cri-streaming/pkg/streaming/remotecommand/httpstream.go.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakekube.base.threads import WORKERS
from fakekube.net import spdy, websocket
from fakekube.net.pipes import Inlet, Pipe, TerminalSize, TerminalSizeQueue
from fakekube.net.streaming.channels import V5_CHANNEL, ChannelConnection, ChannelTunnel
from fakekube.net.streaming.kubelet_api import Execution, ExitStatus, KubeletError, Streams
from fakekube.net.streams import Notifier, frames_of

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


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

    # --- The process --------------------------------------------------------------------------------------------------

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

    # --- Data from the client -----------------------------------------------------------------------------------------

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
        """Whether there is buffered input for the process."""
        return self.stdin is not None and self.stdin.blocked

    # --- Data for the client ------------------------------------------------------------------------------------------

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
            return _internal_error(f"Internal error occurred: {self._action.failure}: {exit_status.error}")
        if not exit_status.code:
            return {"metadata": {}, "status": "Success"}
        code = exit_status.code
        message = f"command terminated with non-zero exit code: command terminated with exit code {code}"
        details = _causes(code)
        return {"metadata": {}, "status": "Failure", "message": message, "reason": "NonZeroExitCode", "details": details}


def _internal_error(problem: str) -> Mapping[str, object]:
    """Returns the Status of an internal error, as the API server's translator writes it."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {problem}",
        "reason": "InternalError",
        "details": {"causes": [{"message": problem}]},
        "code": 500,
    }


def _encode_status(status: Mapping[str, object], version: str) -> bytes:
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


#: The subprotocols of the kubelet's server; "" is none.
KUBELET_PROTOCOLS = ("", "channel.k8s.io", "base64.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")

_STDIN, _STDOUT, _STDERR, _ERROR_CHANNEL, _RESIZE_CHANNEL = range(5)
_CHANNELS = {STDOUT: _STDOUT, STDERR: _STDERR}


def _confirmation_channel(options: Options) -> int:
    """Returns the channel on which an empty message shows that the connection is established."""
    return _STDOUT if options.stdout else _STDERR if options.stderr else _ERROR_CHANNEL


class WebSocketCommand(ChannelTunnel):
    """One process and its client: a `streams.Tunnel`. Starts the process at once."""

    def __init__(self, protocol: str, options: Options, action: Action, clock: Clock) -> None:
        super().__init__(protocol, 5, clock)
        self._protocol = protocol
        self._command = RemoteCommand(options, action, self.source)
        self._answers = [self._connection.message(_confirmation_channel(options), b"")]
        self._command.begin()

    @property
    def _blocked(self) -> bool:
        return self._command.blocked

    def take(self) -> list[bytes]:
        frames, self._answers = self._answers, []
        if self._ended:
            return frames
        exit_status = self._command.exit
        written = self._command.read_output()
        frames += [self._connection.message(_CHANNELS[name], data) for name, data in written if data]
        if self._connection.closed:
            self._end_tunnel(frames)
        elif exit_status is not None and not any(data for _, data in written):
            self._write_status(exit_status, frames)
            self._end_tunnel(frames)
        return frames

    def close(self) -> None:
        self._ended = True
        self._command.cancel()

    def _receive(self, channel: int, data: bytes) -> None:
        if channel == _STDIN:
            self._command.receive(data)
        elif channel == _RESIZE_CHANNEL:
            self._command.resize(data)

    def _close_channel(self, channel: int) -> None:
        if channel == _STDIN:
            self._command.end_input()

    def _write_status(self, exit_status: ExitStatus, frames: list[bytes]) -> None:
        status: Mapping[str, object]
        if self._protocol == V5_CHANNEL:
            version, status = "v5", self._command.translated_status(exit_status)
        else:
            version, status = self._protocol[:2], self._command.status(exit_status)
        text = _encode_status(status, version)
        if text:
            frames.append(self._connection.message(_ERROR_CHANNEL, text))


class RefusedCommand:
    """A WebSocket (v5) that only sends an error of the kubelet: a `streams.Tunnel`."""

    deadline: float | None = None
    full = False

    def __init__(self, options: Options, problem: str) -> None:
        self.source = Notifier()
        self.ended = False
        connection = ChannelConnection(V5_CHANNEL, 5, lambda _channel, _data: None)
        status = _encode_status(_internal_error(problem), "v5")
        confirmation = connection.message(_confirmation_channel(options), b"")
        self._frames = [confirmation, connection.message(_ERROR_CHANNEL, status), websocket.close()]

    def receive(self, data: bytes) -> None:
        """Ignores data of the client."""

    def take(self) -> list[bytes]:
        frames, self._frames = self._frames, []
        self.ended = True
        return frames

    def close(self) -> None:
        self.ended = True

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.take())


SPDY_PROTOCOLS = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")

_ERROR, _RESIZE = "error", "resize"
_TYPES = frozenset({STDIN, "stdout", "stderr", _ERROR, _RESIZE})
_CREATION_SECONDS = 30.0
"""DefaultStreamCreationTimeout."""
_MAX_OUTGOING = 256


class SPDYCommand:
    """One process and its client: a `streams.Tunnel`, and the `spdy.Handler` of its connection."""

    def __init__(self, protocol: str, options: Options, action: Action, clock: Clock) -> None:
        self.source = Notifier()
        self.deadline: float | None = clock.monotonic() + _CREATION_SECONDS
        self._clock = clock
        self._version = protocol[:2] if protocol.startswith("v") else "v1"
        self._command = RemoteCommand(options, action, self.source)
        self._connection = spdy.Connection(self)
        self._streams: dict[str, spdy.Stream] = {}
        resizes = options.tty and self._version in ("v4", "v3")
        stderr = options.stderr and not options.tty
        self._expected = 1 + options.stdin + options.stdout + stderr + resizes
        self._ended = False
        self._resets_error = False

    # --- streams.Tunnel -----------------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def full(self) -> bool:
        return self._command.blocked or len(self._connection.outgoing) > _MAX_OUTGOING

    def receive(self, data: bytes) -> None:
        self._connection.receive(data)
        if self._connection.outgoing or self._connection.closed:
            self.source.notify()

    def take(self) -> list[bytes]:
        if self._resets_error:
            self._end_as_v1()
        if not self._ended:
            exit_status = self._command.exit
            written = self._command.read_output()
            for name, data in written:
                self._write(name, data)
            if exit_status is not None and not any(data for _, data in written):
                self._write_status(exit_status)
                self._ended = True
            elif self._connection.closed or self._is_late():
                self._ended = True
            if self._ended:
                self._connection.close()
        frames, self._connection.outgoing = self._connection.outgoing, []
        return frames

    def close(self) -> None:
        self._ended = True
        self._command.cancel()

    def __iter__(self) -> Iterator[bytes]:
        return frames_of(self, self._clock)

    # --- spdy.Handler -------------------------------------------------------------------------------------------------

    def stream_opened(self, stream: spdy.Stream) -> bool:
        kind = stream.headers.get("streamtype", "")
        if kind not in _TYPES or self.deadline is None:
            return True  # accepted, and ignored
        self._streams[kind] = stream
        self._expected -= 1
        if not self._expected:
            self.deadline = None
            self._resets_error = self._version == "v1"
            WORKERS.run(self._command.begin)
        return True

    def stream_data(self, stream: spdy.Stream, data: bytes) -> None:
        if stream is self._streams.get(STDIN):
            self._command.receive(data)
        elif stream is self._streams.get(_RESIZE):
            self._command.resize(data)

    def stream_finished(self, stream: spdy.Stream, *, reset: bool) -> None:
        if stream is self._streams.get(STDIN):
            self._command.end_input()

    # --- Data for the client ------------------------------------------------------------------------------------------

    def _write(self, name: str, data: bytes) -> None:
        stream = self._streams.get(name)
        if stream is None:
            return
        if data:
            self._connection.write(stream, data)
        else:
            self._connection.finish(stream)

    def _end_as_v1(self) -> None:
        """Resets the error stream and closes stdin, as the first version of the protocol always does."""
        self._resets_error = False
        if _ERROR in self._streams:  # the client may have opened another stream twice instead
            self._connection.reset(self._streams[_ERROR])
        if STDIN in self._streams:
            self._connection.finish(self._streams[STDIN])

    def _write_status(self, exit_status: ExitStatus) -> None:
        error = self._streams.get(_ERROR)
        text = _encode_status(self._command.status(exit_status), self._version)
        if error is not None and text:
            self._connection.write(error, text)

    def _is_late(self) -> bool:
        return self.deadline is not None and self._clock.monotonic() >= self.deadline

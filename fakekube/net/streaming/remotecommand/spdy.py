"""exec and attach over SPDY: the client opens a stream for each of stdin, stdout, stderr, error and resize.

The process is started, in a worker thread, when all streams of the options are open.

Specified by: k8s.io/cri-streaming/pkg/streaming/remotecommand/httpstream.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fakekube.base.threads import WORKERS
from fakekube.net import spdy
from fakekube.net.streaming.kubelet_api import ExitStatus
from fakekube.net.streaming.remotecommand.command import STDIN, Action, Options, RemoteCommand, encode_status
from fakekube.net.streams import Notifier, frames_of

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


PROTOCOLS = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")

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

    # ------------------------------------------------------------ streams.Tunnel

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

    # ------------------------------------------------------------ spdy.Handler

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

    # ------------------------------------------------------------ data for the client

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
        text = encode_status(self._command.status(exit_status), self._version)
        if error is not None and text:
            self._connection.write(error, text)

    def _is_late(self) -> bool:
        return self.deadline is not None and self._clock.monotonic() >= self.deadline

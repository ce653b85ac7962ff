"""exec and attach over WebSocket channels: 0 stdin, 1 stdout, 2 stderr, 3 error, 4 resize.

Specified by: k8s.io/cri-streaming/pkg/streaming/remotecommand/websocket.go (v4 and before);
k8s.io/apiserver/pkg/util/proxy (streamtranslator.go, websocket.go; v5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fakekube.net import websocket
from fakekube.net.streaming.channels import ChannelConnection, ChannelTunnel
from fakekube.net.streaming.kubelet_api import ExitStatus
from fakekube.net.streaming.remotecommand.command import (
    STDERR,
    STDOUT,
    Action,
    Options,
    RemoteCommand,
    encode_status,
    internal_error,
)
from fakekube.net.streams import Notifier

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


V5 = "v5.channel.k8s.io"
#: The subprotocols of the kubelet's server; "" is none.
KUBELET_PROTOCOLS = ("", "channel.k8s.io", "base64.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE = range(5)
_CHANNELS = {STDOUT: _STDOUT, STDERR: _STDERR}


def _confirmation_channel(options: Options) -> int:
    """Returns the channel on which an empty message shows that the connection is established."""
    return _STDOUT if options.stdout else _STDERR if options.stderr else _ERROR


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
        elif channel == _RESIZE:
            self._command.resize(data)

    def _close_channel(self, channel: int) -> None:
        if channel == _STDIN:
            self._command.end_input()

    def _write_status(self, exit_status: ExitStatus, frames: list[bytes]) -> None:
        status: Mapping[str, object]
        if self._protocol == V5:
            version, status = "v5", self._command.translated_status(exit_status)
        else:
            version, status = self._protocol[:2], self._command.status(exit_status)
        text = encode_status(status, version)
        if text:
            frames.append(self._connection.message(_ERROR, text))


class RefusedCommand:
    """A WebSocket (v5) that only sends an error of the kubelet: a `streams.Tunnel`."""

    deadline: float | None = None
    full = False

    def __init__(self, options: Options, problem: str) -> None:
        self.source = Notifier()
        self.ended = False
        connection = ChannelConnection(V5, 5, lambda _channel, _data: None)
        status = encode_status(internal_error(problem), "v5")
        confirmation = connection.message(_confirmation_channel(options), b"")
        self._frames = [confirmation, connection.message(_ERROR, status), websocket.close()]

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

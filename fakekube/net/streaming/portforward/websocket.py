"""Port forwarding over WebSocket channels: for the n-th port, channel 2n has its data and 2n+1 its error.

The first message of each channel is the port, as two bytes, little-endian.

Specified by: k8s.io/cri-streaming/pkg/streaming/portforward/websocket.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fakekube.base.golang.strconv import parse_uint16
from fakekube.net.streaming.channels import ChannelTunnel
from fakekube.net.streaming.portforward.forward import Connect, Forward

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


#: "" is no subprotocol.
PROTOCOLS = ("", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")


def ports_of(values: Sequence[str]) -> list[int]:
    """Returns the ports in the query of a request. Raises ValueError with the text of the kubelet."""
    if not values:
        raise ValueError('query parameter "port" is required')
    ports = []
    for value in values:
        if not value:
            raise ValueError('query parameter "port" cannot be empty')
        for text in value.split(","):
            try:
                port = parse_uint16(text)
            except ValueError as error:
                raise ValueError(f'unable to parse "{value}" as a port: {error}') from None
            if port < 1:
                raise ValueError(f'port "{value}" must be > 0')
            ports.append(port)
    return ports


class WebSocketForward(ChannelTunnel):
    """A client's connections to ports of a pod, which are all opened at once: a `streams.Tunnel`."""

    def __init__(self, protocol: str, ports: Sequence[int], where: str, connect: Connect, clock: Clock) -> None:
        super().__init__(protocol, 2 * len(ports), clock)
        self._forwards = [Forward(port, where, connect, self.source) for port in ports]
        self._open = dict(enumerate(self._forwards))
        self._answers = [
            self._connection.message(2 * number + channel, port.to_bytes(2, "little"))
            for number, port in enumerate(ports)
            for channel in (0, 1)
        ]
        for forward in self._forwards:
            forward.begin()

    @property
    def _blocked(self) -> bool:
        return any(forward.blocked for forward in self._open.values())

    def take(self) -> list[bytes]:
        frames, self._answers = self._answers, []
        if self._ended:
            return frames
        for number, forward in list(self._open.items()):
            data = forward.read()
            if data:
                frames.append(self._connection.message(2 * number, data))
            if forward.ended:
                del self._open[number]
                if forward.error:
                    frames.append(self._connection.message(2 * number + 1, forward.error.encode()))
        if self._connection.closed or not self._open:
            self._end_tunnel(frames)
        return frames

    def close(self) -> None:
        self._ended = True
        for forward in self._forwards:
            forward.close()

    def _receive(self, channel: int, data: bytes) -> None:
        number, kind = divmod(channel, 2)
        if not kind and number in self._open:
            self._open[number].receive(data)

    def _close_channel(self, channel: int) -> None:
        """Does nothing: the subprotocols of port forwarding do not close single channels."""

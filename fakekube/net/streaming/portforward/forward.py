"""One forwarded connection, independent of the protocol: data in both directions, and an error if it fails.

Specified by: k8s.io/cri-streaming/pkg/streaming/portforward (portforward.go, httpstream.go).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from fakekube.net.streaming.inlet import Inlet
from fakekube.net.streaming.kubelet_api import Connection, KubeletError, PortForwardError
from fakekube.net.streams import Notifier

_log = logging.getLogger(__name__)


Connect = Callable[[int], Connection]
"""Connects to a port. Raises PortForwardError or KubeletError."""

_PIECE = 32 * 1024


class Forward:
    """A connection to a port. Data of the client is buffered until it is established.

    Args:
        port: the port of the pod.
        where: the pod, in error messages.
        connect: connects to the port.
        source: notified when there may be data to send, or space for received data.
    """

    def __init__(self, port: int, where: str, connect: Connect, source: Notifier) -> None:
        self.port = port
        self._where = where
        self._connect = connect
        self._source = source
        self._connection: Connection | None = None
        self._inlet: Inlet | None = None
        self._waiting = bytearray()
        self._input_ended = False
        self._gone = False
        self.error = ""
        """The error of the connection; "" if there is none."""
        self.ended = False
        """Whether the pod has sent all its data, or the connection failed."""

    @property
    def started(self) -> bool:
        """Reports whether `begin` has ended."""
        return self._connection is not None or bool(self.error)

    def begin(self) -> None:
        """Connects, in any thread. Never raises."""
        try:
            connection = self._connect(self.port)
        except Exception as error:
            if not isinstance(error, PortForwardError | KubeletError):
                _log.exception("A port could not be connected to")
            self.error = self._message(str(error) or type(error).__name__)
        else:
            connection.from_client.subscribe(self._source.notify)
            connection.to_client.subscribe(self._source.notify)
            self._connection = connection
            if self._gone:
                self._hang_up(connection)
        self._source.notify()

    def receive(self, data: bytes) -> None:
        """Receives data of the client."""
        if self._inlet is not None:
            self._inlet.put(data)
        else:
            self._waiting += data

    def end_input(self) -> None:
        """Receives the end of the client's data."""
        self._input_ended = True
        if self._inlet is not None:
            self._inlet.close()

    @property
    def blocked(self) -> bool:
        """Reports whether there is buffered data for the pod."""
        return self.waiting > 0

    @property
    def waiting(self) -> int:
        """The number of buffered bytes for the pod."""
        return len(self._waiting) + (self._inlet.waiting if self._inlet is not None else 0)

    def read(self) -> bytes:
        """Returns data for the client, possibly none; sets `ended` at its end."""
        if self.ended or not self.started:
            return b""
        connection = self._connection
        if connection is None:
            self.ended = True
            return b""
        if self._inlet is None:
            self._attach(connection)
        else:
            self._inlet.flush()
        data = connection.to_client.read(_PIECE)
        if data == b"":
            self.ended = True
            if connection.error:
                self.error = self._message(connection.error)
        return data or b""

    def _attach(self, connection: Connection) -> None:
        self._inlet = Inlet(connection.from_client)
        self._inlet.put(bytes(self._waiting))
        self._waiting.clear()
        if self._input_ended:
            self._inlet.close()

    def close(self) -> None:
        """Ends the connection, because the client has disconnected."""
        self._gone = True
        if self._connection is not None:
            self._hang_up(self._connection)

    def _hang_up(self, connection: Connection) -> None:
        connection.from_client.unsubscribe(self._source.notify)
        connection.to_client.unsubscribe(self._source.notify)
        connection.from_client.close()
        connection.to_client.abandon()

    def _message(self, problem: str) -> str:
        return f"error forwarding port {self.port} to pod {self._where}, uid : {problem}"

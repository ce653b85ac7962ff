"""Sends and receives bytes on the socket of a client: blocking in the connection's thread, non-blocking in the loop's thread.

`tls.TLSTransport` has the same interface. Errors of the network are raised as `Disconnected`, to distinguish them from an
`OSError` of the application.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from fakekube.net.busy_poll import busy_poll_if_allowed

if TYPE_CHECKING:
    from fakekube.net.loop import Loop


UNEXPECTED_ERROR = "Unexpected error on a connection"
"""What all versions of HTTP log about a connection that they end for an error of their own."""
RECEIVE_BYTES = 16384
"""As long as a record of TLS. A larger buffer for every request makes the allocator ask the system for memory and return it."""
_LINGER_SECONDS = 0.5
"""How long net/http waits before it closes the connection of a client that may still be sending (rstAvoidanceDelay)."""


_ACCEPTED_ARE_READY = sys.platform == "linux"
"""Whether accepted sockets are blocking although the listener is not, and have its TCP_NODELAY."""


class Disconnected(OSError):
    """The client has disconnected, or the connection broke."""


class Transport:
    """A plain TCP connection."""

    __slots__ = ("_busy_poll", "_look", "_socket")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._busy_poll = busy_poll_if_allowed()
        if self._busy_poll is not None:
            poller = select.poll()
            poller.register(connected, select.POLLIN)
            self._look = poller.poll

    def fileno(self) -> int:
        """Returns the descriptor; -1 after `close`."""
        return self._socket.fileno()

    def handshake(self, may_wait: bool = True) -> dict[str, str] | None:
        """Prepares the connection, with the TLS handshake if there is one. Returns variables for the environs of its requests.

        Returns None if the client's part has not arrived and the caller may not wait for it: then it is called again.

        Raises Disconnected if it fails.
        """
        if not _ACCEPTED_ARE_READY:
            try:
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket.setblocking(True)
            except OSError as error:
                raise Disconnected(*error.args) from error
        return {}

    @property
    def speaks_http2(self) -> bool:
        """Whether HTTP/2 was negotiated."""
        return False

    def set_blocking(self, blocking: bool) -> None:
        """Switches between the blocking methods and the methods that end in `_ready`."""
        self._socket.setblocking(blocking)

    def receive(self) -> bytes:
        """Receives data, `b""` at the end; blocks until there is some. Raises Disconnected."""
        busy_poll = self._busy_poll
        if busy_poll is None:
            return self._receive()
        found = busy_poll.look(self._look)
        data = self._receive()
        if not found:
            busy_poll.end_sleep()
        return data

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except OSError as error:
            raise Disconnected(*error.args) from error

    def send(self, data: bytes | memoryview) -> None:
        """Sends all data; blocks while the socket is full. Raises Disconnected."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Disconnected(*error.args) from error

    def receive_ready(self) -> bytes | None:
        """Receives available data, `b""` at the end, None if there is none yet. Raises Disconnected."""
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            raise Disconnected(*error.args) from error

    def receive_now(self) -> bytes | None:
        """Like `receive_ready`, with a socket that is blocking for all other methods."""
        try:
            return self._socket.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            raise Disconnected(*error.args) from error

    def send_ready(self, data: bytes | bytearray | memoryview) -> int:
        """Sends the part of the data that the socket accepts without blocking; returns its length. Raises Disconnected."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise Disconnected(*error.args) from error

    def watch(self, loop: Loop, events: int, happened: Callable[[int], None]) -> None:
        """Makes the loop call `happened` with those of `events` that occur; 0 ends this. Called in the loop's thread only."""
        if events:
            loop.watch(self.fileno(), events, happened)
        else:
            loop.forget(self.fileno())

    def finish(self, last: bytes) -> None:
        """Ends a streaming response early: sends its last bytes if the socket accepts them without blocking."""
        self.send_ready(last)

    def linger(self) -> None:
        """Closes the sending direction, and reads for a moment what the client still sends.

        Closing a socket with unread bytes resets the connection, and the client may lose the response.
        """
        end = time.monotonic() + _LINGER_SECONDS
        raw = socket.socket
        try:
            raw.shutdown(self._socket, socket.SHUT_WR)
            while (left := end - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not raw.recv(self._socket, RECEIVE_BYTES):
                    break
        except OSError:
            pass

    def abort(self) -> None:
        """Shuts the connection down from any thread; the thread that serves it must still close it."""
        with suppress(OSError):
            # The method of the plain socket: SSLSocket.shutdown would remove the TLS state that the other thread uses.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def reset(self) -> None:
        """Makes `close` reset the connection, so that data in transit may be lost."""
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

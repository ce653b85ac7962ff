"""Sends and receives bytes on a client's socket: blocking for its own thread, non-blocking for the selector thread.

The rest of the server does not know whether there is TLS in between: `tls.TLSTransport` is this with other
insides. Whatever the network does wrong comes out as `Disconnected`, so that an `OSError` of the
application's own is never mistaken for it.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.server.loop import Loop

__all__ = ["RECEIVE_BYTES", "Disconnected", "Transport"]

RECEIVE_BYTES = 65536
_LINGER_SECONDS = 0.5
"""How long net/http waits before it closes on a client that may still be sending (rstAvoidanceDelay)."""


_ACCEPTED_BLOCK = sys.platform == "linux"
"""Accepted sockets do not inherit from the listener that nobody waits for it."""


class Disconnected(OSError):
    """The client is gone."""


class Transport:
    """A plain TCP connection."""

    __slots__ = ("_socket",)

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def fileno(self) -> int:
        """The descriptor; -1 once closed."""
        return self._socket.fileno()

    def handshake(self) -> dict[str, str]:
        """What must be agreed upon before HTTP, and what the application is told of it in every environ.

        Raises:
            Disconnected: no agreement was reached
        """
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not _ACCEPTED_BLOCK:
                self._socket.setblocking(True)
        except OSError as error:
            raise Disconnected(*error.args) from error
        return {}

    @property
    def speaks_http2(self) -> bool:
        """Both sides have agreed to HTTP/2."""
        return False

    def set_blocking(self, blocking: bool) -> None:
        """Choose between the blocking methods and those that end in `_ready`."""
        self._socket.setblocking(blocking)

    def receive(self) -> bytes:
        """What the client sent, `b""` when it has sent all; waits for it."""
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except OSError as error:
            raise Disconnected(*error.args) from error

    def send(self, data: bytes | memoryview) -> None:
        """Send all of it; waits for the client to take it."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Disconnected(*error.args) from error

    def receive_ready(self) -> bytes | None:
        """What is there, `b""` when the client has sent all, None when there is nothing yet."""
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            raise Disconnected(*error.args) from error

    def send_ready(self, data: bytes | bytearray | memoryview) -> int:
        """Send what the socket takes without waiting; how many bytes that were."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise Disconnected(*error.args) from error

    def attend(self, loop: Loop, events: int, happened: Callable[[int], None]) -> None:
        """Have the loop's thread call `happened` with what happens of `events`; only in that thread."""
        if events:
            loop.watch(self.fileno(), events, happened)
        else:
            loop.forget(self.fileno())

    def finish(self, last: bytes) -> None:
        """End an answer early: send what follows it, if the socket takes it without waiting."""
        self.send_ready(last)

    def linger(self) -> None:
        """Say that nothing more will be sent, and hear the client out for a moment.

        A socket that is closed with bytes unread resets the connection, and the client may lose what it was
        sent.
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
        """End the connection under whatever thread waits for it; that one must still close it."""
        with suppress(OSError):
            # The plain socket's: SSLSocket.shutdown would take TLS away from under the other thread.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def reset(self) -> None:
        """Have the connection end with a reset when it is closed: nothing that is on its way arrives for certain."""
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        """Free the socket."""
        self._socket.close()

"""A server whose end is also that of its connections: idle ones of clients would stay open until the process has too many."""

from __future__ import annotations

import http.server
import socket
from contextlib import suppress
from typing import Any

__all__ = ["ClosableServer"]


class ClosableServer(http.server.ThreadingHTTPServer):
    """A server of HTTP/1.1 for one test; what goes wrong with a connection is of no interest."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def handle_error(self, *_: Any) -> None:
        pass

    def server_close(self) -> None:
        """Ends the server, which serves no more (see `shutdown`), and its connections."""
        super().server_close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

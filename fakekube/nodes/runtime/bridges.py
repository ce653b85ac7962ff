"""Ports of this machine, on loopback, that lead to ports of pods: for clients of the API server that need a socket, such as the
callers of webhooks and of aggregated API servers.

A bridge is made when it is first needed, and ends with its pod.

Invariant: the threads and sockets of a bridge end with the pod, or with its connection.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from fakekube.base.threads import WORKERS
from fakekube.net.streaming.kubelet_api import Connection


class Bridge:
    """A port of this machine that leads to a port of a pod.

    Args:
        connect: returns a new connection to the port of the pod. Raises OSError.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = ("127.0.0.1", self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        WORKERS.run(self._accept)

    def close(self) -> None:
        """Ends the bridge and its connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            found = list(self._open)
        for one in found:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                connection = self._connect()
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open.add(client)
            WORKERS.run(lambda client=client, connection=connection: self._upstream(client, connection))  # type: ignore[misc]
            WORKERS.run(lambda client=client, connection=connection: self._downstream(client, connection))  # type: ignore[misc]

    @staticmethod
    def _upstream(client: socket.socket, connection: Connection) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                connection.from_client.write_all(data)
        connection.from_client.close()

    def _downstream(self, client: socket.socket, connection: Connection) -> None:
        with suppress(OSError):
            while data := connection.to_client.read_blocking():
                client.sendall(data)
        connection.to_client.abandon()
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(client)
        client.close()

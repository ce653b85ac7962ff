"""The ports of a pod at which programs of its containers listen, and ports of this machine that lead to them.

A listener of TCP makes a connection when it is called; a listener of UDP returns the datagram that answers another one. A
`Bridge` is a port on loopback for clients of the API server that need a socket, such as the callers of webhooks and of aggregated
API servers. It is made when it is first needed.

Invariant: a port is free again when its program ends, and its connections end; the threads and sockets of a bridge end with its
pod, or its connection.

Specified by: listen(2), udp(7).
"""

from __future__ import annotations

import errno
import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from fakekube.base.threads import WORKERS
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.nodes.runtime.filesystem import oserror


class Peer(NamedTuple):
    """The other side of a connection."""

    address: str = "127.0.0.1"
    port: int = 0
    is_front_proxy: bool = False
    """Whether it is the API server, which says in X-Remote headers for whom it asks."""

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


Accept = Callable[[Peer], Connection]
"""Returns a new connection."""
Receive = Callable[[bytes, Peer], bytes | None]
"""Returns the answer to a datagram; None if there is none."""


class Listeners:
    """The listeners of one pod. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._tcp: dict[int, list[Accept]] = {}
        self._udp: dict[int, Receive] = {}
        self._open: dict[Accept, weakref.WeakSet[Connection]] = {}
        """The connections of each listener, which end with its program."""
        self.secure: set[int] = set()
        """The TCP ports whose programs expect TLS."""
        self.health: dict[int, Callable[[str], bool | None]] = {}
        """Port → whether the gRPC service with a name is healthy; None if there is no such service."""

    @contextmanager
    def tcp(self, port: int, accept: Accept, *, shared: bool = False, secure: bool = False) -> Iterator[None]:
        """Listens at a TCP port.

        Args:
            port: the port.
            accept: returns a new connection.
            shared: whether other programs may wait for a connection at the port as well; its connections outlive the listener.
            secure: whether its connections begin with a TLS handshake.

        Raises:
            OSError: another program listens at the port.
        """
        found = self._tcp.setdefault(port, [])
        if found and not shared:
            raise oserror(errno.EADDRINUSE)
        found.append(accept)
        if secure:
            self.secure.add(port)
        try:
            yield
        finally:
            self.stop(port, accept)
            self.secure.discard(port)
            for connection in list(self._open.pop(accept, ())):
                if not shared:
                    connection.disconnect()

    def stop(self, port: int, accept: Accept) -> None:
        """Ends a listener of TCP; unknown ones are ignored."""
        found = self._tcp.get(port, [])
        if accept in found:
            found.remove(accept)

    @contextmanager
    def udp(self, port: int, receive: Receive) -> Iterator[None]:
        """Listens at a UDP port. Raises OSError if another program listens there."""
        if port in self._udp:
            raise oserror(errno.EADDRINUSE)
        self._udp[port] = receive
        try:
            yield
        finally:
            del self._udp[port]

    def has(self, port: int, protocol: str = "TCP") -> bool:
        """Reports whether a program listens at a port."""
        return port in self._udp if protocol == "UDP" else bool(self._tcp.get(port))

    def ports(self) -> Iterator[tuple[str, int]]:
        """Yields the protocols and the ports at which programs listen."""
        yield from (("tcp", port) for port, found in sorted(self._tcp.items()) if found)
        yield from (("udp", port) for port in sorted(self._udp))

    def connect(self, port: int, peer: Peer) -> Connection:
        """Returns a connection to the program at a TCP port. Raises OSError if there is none."""
        for accept in list(self._tcp.get(port, ())):
            connection = accept(peer)
            self._open.setdefault(accept, weakref.WeakSet()).add(connection)
            return connection
        raise oserror(errno.ECONNREFUSED)

    def send(self, port: int, data: bytes, peer: Peer) -> bytes | None:
        """Sends a datagram. Returns the answer; None if there is none. Raises OSError if no program listens at the port."""
        receive = self._udp.get(port)
        if receive is None:
            raise oserror(errno.ECONNREFUSED)
        return receive(data, peer)


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

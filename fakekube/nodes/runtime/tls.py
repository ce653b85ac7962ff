"""TLS on connections inside the cluster, by the state machines of the ssl module.

The bytes of the client are decrypted for an inner connection, and those of its server encrypted. Nothing here has a thread: a
change of a pipe makes a worker move what can be moved.

Invariant: one thread at a time uses the state machine of a connection.

Specified by: RFC 8446; ssl.SSLObject.
"""

from __future__ import annotations

import ssl
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from fakekube.base.threads import WORKERS
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.nodes.runtime.descriptors import PipeReader, PipeWriter
from fakekube.nodes.runtime.scheduling import check_memory

T = TypeVar("T")


def load_credentials(context: ssl.SSLContext, certificates: bytes, key: bytes) -> None:
    """Gives a context a chain of certificates and a private key, in PEM. Raises SSLError."""
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads keys from files only
        paths = [Path(folder) / "crt", Path(folder) / "key"]
        for path, content in zip(paths, (certificates, key), strict=True):
            path.touch(0o600)
            path.write_bytes(content)
        context.load_cert_chain(paths[0], paths[1])


def secure(connect: Callable[[bytes | None], Connection], context: ssl.SSLContext) -> Connection:
    """Returns the outer side of a connection whose inner side is plain.

    Args:
        connect: returns the inner connection; called after the handshake with the certificate of the client in DER, or None.
        context: of the server.
    """
    made = _Secured(connect, context)
    return made.outer


class _Secured:
    def __init__(self, connect: Callable[[bytes | None], Connection], context: ssl.SSLContext) -> None:
        self.outer = Connection(Pipe(), Pipe(1 << 20))
        self._connect = connect
        self._inner: Connection | None = None
        self._received, self._sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._received, self._sent, server_side=True)
        self._pending = b""
        self._lock = threading.Lock()
        self._busy = self._again = self._over = False
        self.outer.from_client.subscribe(self._on_change)
        self.outer.to_client.subscribe(self._on_change)

    def _on_change(self) -> None:
        with self._lock:
            if self._over:
                return
            if self._busy:
                self._again = True
                return
            self._busy = True
        WORKERS.run(self._work)

    def _work(self) -> None:
        while True:
            try:
                self._move()
            except (ssl.SSLError, BrokenPipeError):
                self._close()
            with self._lock:
                if not self._again or self._over:
                    self._busy = False
                    return
                self._again = False

    def _move(self) -> None:
        """Moves the bytes that can be moved. Raises SSLError, BrokenPipeError."""
        while data := self.outer.from_client.read():
            self._received.write(data)
        closed = data == b""
        try:
            if self._inner is None:
                self._object.do_handshake()
                self._begin()
            self._receive()
            self._send()
        except ssl.SSLWantReadError:
            pass
        finally:
            self._flush()
        if closed and not self._received.pending:
            self._close()

    def _begin(self) -> None:
        self._inner = inner = self._connect(self._object.getpeercert(binary_form=True))
        inner.to_client.subscribe(self._on_change)
        inner.from_client.subscribe(self._on_change)

    def _receive(self) -> None:
        assert self._inner is not None
        while True:
            if not self._pending:
                try:
                    self._pending = self._object.read(65536)
                except ssl.SSLWantReadError:
                    return
                except ssl.SSLZeroReturnError:
                    self._pending = b""
                if not self._pending:
                    self._inner.from_client.close()
                    return
            written = self._inner.from_client.write(self._pending)
            self._pending = self._pending[written:]
            if not written:
                return

    def _send(self) -> None:
        assert self._inner is not None
        while self.outer.to_client.free > 65536 + 4096:
            data = self._inner.to_client.read()
            if data is None:
                return
            if not data:
                self._flush()
                self._close()
                return
            self._object.write(data)
            self._flush()

    def _flush(self) -> None:
        if self._sent.pending and not self.outer.to_client.closed:
            self.outer.to_client.write_all(self._sent.read())

    def _close(self) -> None:
        with self._lock:
            self._over = True
        self.outer.from_client.unsubscribe(self._on_change)
        self.outer.to_client.unsubscribe(self._on_change)
        self.outer.from_client.abandon()
        self.outer.to_client.close()
        if self._inner is not None:
            self._inner.to_client.unsubscribe(self._on_change)
            self._inner.from_client.unsubscribe(self._on_change)
            self._inner.from_client.close()
            self._inner.to_client.abandon()


class Client:
    """The client's side of TLS on a connection, for programs of containers.

    Args:
        connection: the connection.
        name: the name that the certificate must have.
        authorities: the CA certificates in PEM; None accepts every certificate.
        credentials: the key and the certificates of the client in PEM; it has none by default.
    """

    def __init__(self, connection: Connection, name: str, authorities: str | None, credentials: bytes = b"") -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = authorities is not None
        context.verify_mode = ssl.CERT_NONE if authorities is None else ssl.CERT_REQUIRED
        if authorities:
            context.load_verify_locations(cadata=authorities)
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as curl, and Go
        if credentials:
            load_credentials(context, credentials, credentials)
        self._received, self._sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._received, self._sent, server_hostname=name)
        self._reader, self._writer = PipeReader(connection.to_client), PipeWriter(connection.from_client)

    async def exchange(self, data: bytes) -> bytes:
        """Sends data and returns the answer up to its end. Raises SSLError."""
        await self._repeat(self._object.do_handshake)
        await self._repeat(lambda: self._object.write(data))
        parts = list[bytes]()
        while part := await self._repeat(self._read):
            parts.append(part)
            check_memory(sum(map(len, parts)))
        return b"".join(parts)

    def _read(self) -> bytes:
        try:
            return self._object.read(65536)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def _repeat(self, act: Callable[[], T]) -> T:
        """Does something that may need bytes of the server first."""
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._reader.read()
                if data:
                    self._received.write(data)
                else:
                    self._received.write_eof()
            finally:
                await self._flush()

    async def _flush(self) -> None:
        data = self._sent.read()
        if data and not self._writer.pipe.abandoned:
            await self._writer.write(data)


class BlockingClient:
    """The client's side of TLS for probes, which accept every certificate. It blocks a thread.

    Args:
        connection: the connection.
        timeout: the maximum real seconds for which the server is waited for.
        protocols: those that ALPN offers.
    """

    def __init__(self, connection: Connection, timeout: float, protocols: Sequence[str] = ()) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_alpn_protocols(list(protocols))
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._received, self._sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._received, self._sent)
        self._connection, self._timeout = connection, timeout

    def send(self, data: bytes) -> None:
        """Sends data, after the handshake. Raises SSLError, TimeoutError, BrokenPipeError."""
        self._repeat(self._object.do_handshake)
        self._repeat(lambda: self._object.write(data))

    def receive(self) -> bytes:
        """Returns the next bytes; b"" at the end. Raises SSLError, TimeoutError."""
        try:
            return self._repeat(lambda: self._object.read(65536))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _repeat(self, act: Callable[[], T]) -> T:
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                self._flush()
                data = self._connection.to_client.read_blocking(timeout=self._timeout)
                if data:
                    self._received.write(data)
                else:
                    self._received.write_eof()
            finally:
                self._flush()

    def _flush(self) -> None:
        if data := self._sent.read():
            self._connection.from_client.write_all(data)

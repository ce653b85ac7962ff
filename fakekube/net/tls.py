"""TLS: the context of a server, and the transport of its connections.

Clients may present a certificate, as with kube-apiserver. It is not verified here but in authentication, so that a client with an
invalid certificate gets a 401 and not a failed handshake: every certificate is put into the environ. OpenSSL verifies client
certificates unless a callback is set with a function that the ssl module does not offer; it is called through ctypes. If that is
not possible (an interpreter without the symbol), the handshake fails for certificates that the CA has not signed.
Only servers with TLS import this module.
"""

from __future__ import annotations

import functools
import itertools
import os
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, cast

from fakekube.net.transport import RECEIVE_BYTES, Disconnected, Transport

_NOT_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
"""The response of net/http to a client that sends plain HTTP."""

_DER = 2
"""The argument for DER of `public_bytes` of the certificates of the ssl module."""

_HOLD: Any = getattr(socket, "TCP_CORK", None)
"""The option of Linux that holds back what does not fill a segment; None on other systems.

OpenSSL writes each record by itself. Of several ones a segment is made, which the system delivers at once.
"""

_ATTRIBUTES = {"commonName": "CN", "organizationName": "O"}


def server_context(certificate: str, key: str, client_ca: str, *, http2: bool = False) -> ssl.SSLContext:
    """Returns a context that serves HTTP/1.1; certificates and keys are PEM.

    Args:
        certificate: the server's, with those between it and the CA.
        key: the certificate's private key.
        client_ca: the CA whose clients complete the handshake where others cannot.
        http2: whether clients are offered HTTP/2, which is preferred, if the package for it is installed.

    Raises:
        ssl.SSLError: they do not fit together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 and find_spec("hpack") is not None else ["http/1.1"])
    context.verify_mode = ssl.CERT_OPTIONAL
    context.num_tickets = 1  # as Go's server
    if not _accept_any_certificate(context):
        # Not loaded otherwise, because OpenSSL would then verify the server's own certificate in every handshake.
        context.load_verify_locations(cadata=client_ca)
    # The ssl module reads keys from files only; this one is private and deleted at once.
    descriptor, path = tempfile.mkstemp()
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(key + "\n" + certificate)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
    return context


@functools.cache
def _openssl() -> Callable[[ssl.SSLContext], bool] | None:
    """Returns a function that makes a context accept every client certificate; None if OpenSSL is not accessible."""
    import _ssl
    import ctypes

    try:
        library = ctypes.CDLL(getattr(_ssl, "__file__", None))
        get_mode, set_callback = library.SSL_CTX_get_verify_mode, library.SSL_CTX_set_cert_verify_callback
    except (OSError, AttributeError):
        return None
    get_mode.argtypes = [ctypes.c_void_p]
    set_callback.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    set_callback.restype = None
    accept = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda store, argument: 1)

    def accept_any(context: ssl.SSLContext) -> bool:
        # The first member of the C struct, after those of every object, is the pointer to OpenSSL's context.
        pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
        if pointer and get_mode(pointer) == context.verify_mode:
            set_callback(pointer, ctypes.cast(accept, ctypes.c_void_p), None)
            return True
        return False

    accept_any.accept = accept  # type: ignore[attr-defined]  # keeps the callback alive as long as contexts call it
    return accept_any


def _accept_any_certificate(context: ssl.SSLContext) -> bool:
    """Makes a context accept every client certificate; returns False if that is not possible."""
    accept_any = _openssl() if sys.implementation.name == "cpython" else None
    return accept_any is not None and accept_any(context)


class TLSTransport(Transport):
    """A connection with TLS. The handshake is performed in the thread of the connection.

    The socket stays non-blocking after `receive_now`, since changing that costs a system call; the others wait nevertheless.
    """

    __slots__ = ("_aborted", "_context", "_is_blocking", "_tls")

    def __init__(self, connected: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(connected)
        self._context = context
        self._aborted = False
        self._is_blocking = True
        self._tls: ssl.SSLSocket | None = None

    def handshake(self, may_wait: bool = True) -> dict[str, str] | None:
        if self._tls is None:
            super().handshake()
        try:
            if self._tls is None:
                tls = self._context.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
                self._socket = self._tls = tls
            if self._aborted:
                raise Disconnected("aborted before the handshake")
            self.set_blocking(may_wait)
            self._tls.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError as error:
            with suppress(OSError):
                if getattr(error, "reason", None) == "HTTP_REQUEST":
                    socket.socket.sendall(self._socket, _NOT_TLS)
            # Gives the client time to read this response, or the alert of OpenSSL.
            super().linger()
            raise Disconnected(*error.args) from error
        return _client_variables(self._tls)

    @property
    def speaks_http2(self) -> bool:
        return self._tls is not None and self._tls.selected_alpn_protocol() == "h2"

    def receive_ready(self) -> bytes | None:
        assert self._tls is not None
        # A whole record, so that nothing decrypted is left of which the selector would not know. `read` is `recv` without its
        # check whether the socket speaks TLS.
        try:
            return self._tls.read(RECEIVE_BYTES)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError as error:
            raise Disconnected(*error.args) from error

    def set_blocking(self, blocking: bool) -> None:
        if blocking is not self._is_blocking:
            self._is_blocking = blocking
            super().set_blocking(blocking)

    def _receive(self) -> bytes:
        self.set_blocking(True)
        assert self._tls is not None
        try:
            return self._tls.read(RECEIVE_BYTES)
        except OSError as error:
            raise Disconnected(*error.args) from error

    def send(self, data: bytes | memoryview) -> None:
        sent = self.send_ready(data)  # all of it, if the socket is blocking
        if sent < len(data):
            self.set_blocking(True)
            super().send(memoryview(data)[sent:])  # if OpenSSL has begun to send it, it goes on with the same data

    def receive_now(self) -> bytes | None:
        if self._is_blocking:
            self.set_blocking(False)
        return self.receive_ready()

    def send_ready(self, data: bytes | bytearray | memoryview) -> int:
        holds = _HOLD is not None and len(data) > RECEIVE_BYTES
        if holds:
            self._hold(1)
        try:
            return self._socket.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise Disconnected(*error.args) from error
        finally:
            if holds:
                self._hold(0)

    def _hold(self, value: int) -> None:
        """Sets the option `_HOLD`, if the system knows it and the socket is open: data are sent without it, too."""
        with suppress(OSError):
            self._socket.setsockopt(socket.IPPROTO_TCP, _HOLD, value)

    def linger(self) -> None:
        self._send_close_notify()
        super().linger()

    def abort(self) -> None:
        self._aborted = True
        super().abort()

    def close(self) -> None:
        self._send_close_notify()
        super().close()

    def _send_close_notify(self) -> None:
        """Sends close_notify, and does not wait for that of the client."""
        if self._tls is None:
            return
        with suppress(OSError, ValueError):  # ValueError if the TLS state is gone
            self._tls.setblocking(False)
            self._tls.unwrap()
        self._tls = None


def _intermediates(connected: ssl.SSLSocket) -> list[bytes]:
    """Returns the certificates that a client sent after its own, in DER."""
    if hasattr(connected, "get_unverified_chain"):  # since Python 3.13
        return list(connected.get_unverified_chain()[1:])
    own: Any = getattr(connected, "_sslobj", None)
    chain = own.get_unverified_chain() if hasattr(own, "get_unverified_chain") else None
    return [certificate.public_bytes(_DER) for certificate in chain[1:]] if chain else []


def _client_variables(connected: ssl.SSLSocket) -> dict[str, str]:
    """Returns the variables of Apache's mod_ssl about the client; repeated values are numbered."""
    variables = {"HTTPS": "on", "SSL_PROTOCOL": connected.version() or "", "SSL_CLIENT_VERIFY": "NONE"}
    certificate = connected.getpeercert(binary_form=True)
    if not certificate:
        return variables
    variables["SSL_CLIENT_VERIFY"] = "GENEROUS"  # mod_ssl's value for a certificate that was not verified
    variables["SSL_CLIENT_CERT"] = ssl.DER_cert_to_PEM_cert(certificate)
    for number, other in enumerate(_intermediates(connected)):
        variables[f"SSL_CLIENT_CERT_CHAIN_{number}"] = ssl.DER_cert_to_PEM_cert(other)
    counts: dict[str, int] = {}
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", (connected.getpeercert() or {})["subject"])
    for attribute, value in itertools.chain.from_iterable(subject):
        if short := _ATTRIBUTES.get(attribute):
            number = counts.get(short, 0)
            counts[short] = number + 1
            variables[f"SSL_CLIENT_S_DN_{short}_{number}"] = value
            variables.setdefault(f"SSL_CLIENT_S_DN_{short}", value)
    return variables

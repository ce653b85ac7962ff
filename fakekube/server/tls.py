"""TLS for connections: the server's context, and a transport that speaks it.

Clients may show a certificate, as kube-apiserver allows. Whether it is believed is not decided here, so that a bad one is
answered with a 401 and not with a broken handshake: any certificate becomes part of the environ. OpenSSL verifies what
clients show unless it is told otherwise by a function that the ssl module does not offer; it is called through ctypes.
Where that cannot be done (an interpreter without the symbol), a certificate that the CA did not sign fails the handshake.
Imported only by servers that speak TLS.
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

from fakekube.server.transport import RECEIVE_BYTES, Disconnected, Transport

__all__ = ["TLSTransport", "server_context"]

_NOT_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
"""As net/http answers a client that speaks plain HTTP."""

_DER = 2
"""How a certificate of the ssl module is told to give its bytes."""

_ATTRIBUTES = {"commonName": "CN", "organizationName": "O"}


def server_context(certificate: str, key: str, client_ca: str, *, http2: bool = False) -> ssl.SSLContext:
    """A context that serves HTTP/1.1; certificates and keys are PEM.

    Args:
        certificate: the server's, with those between it and the CA
        key: the certificate's private key
        client_ca: whose clients complete the handshake where others cannot
        http2: whether clients are offered HTTP/2, which is preferred, if the package for it is installed

    Raises:
        ssl.SSLError: they do not fit together
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 and find_spec("hpack") is not None else ["http/1.1"])
    context.verify_mode = ssl.CERT_OPTIONAL
    context.num_tickets = 1  # as Go's server
    if not _believe_everybody(context):
        # Only then: OpenSSL would verify the server's own certificate by what it finds here, in every handshake.
        context.load_verify_locations(cadata=client_ca)
    # The ssl module reads keys from files only; this one is private and gone at once.
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
    """What has a context accept every certificate of a client; None where OpenSSL cannot be reached."""
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

    def believe(context: ssl.SSLContext) -> bool:
        # The first member of the object, after those that every object has, is OpenSSL's own context.
        pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
        if pointer and get_mode(pointer) == context.verify_mode:
            set_callback(pointer, ctypes.cast(accept, ctypes.c_void_p), None)
            return True
        return False

    believe.accept = accept  # type: ignore[attr-defined]  # it must live as long as contexts call it
    return believe


def _believe_everybody(context: ssl.SSLContext) -> bool:
    """Has a context accept every certificate of a client; reports whether that can be done."""
    believe = _openssl() if sys.implementation.name == "cpython" else None
    return believe is not None and believe(context)


class TLSTransport(Transport):
    """A connection with TLS on it. The handshake happens in the connection's own thread."""

    __slots__ = ("_aborted", "_context", "_tls")

    def __init__(self, connected: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(connected)
        self._context = context
        self._aborted = False
        self._tls: ssl.SSLSocket | None = None

    def handshake(self) -> dict[str, str]:
        super().handshake()
        try:
            self._socket = self._tls = self._context.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
            if self._aborted:
                raise Disconnected("aborted before the handshake")
            self._tls.do_handshake()
        except OSError as error:
            with suppress(OSError):
                if getattr(error, "reason", None) == "HTTP_REQUEST":
                    socket.socket.sendall(self._socket, _NOT_TLS)
            # So that the client sees that, or OpenSSL's alert.
            super().linger()
            raise Disconnected(*error.args) from error
        return _client_variables(self._tls)

    @property
    def speaks_http2(self) -> bool:
        return self._tls is not None and self._tls.selected_alpn_protocol() == "h2"

    def receive_ready(self) -> bytes | None:
        assert self._tls is not None
        # What is decrypted and not fetched stays unseen: the selector knows of the socket only.
        try:
            data = self._tls.recv(RECEIVE_BYTES)
            while pending := self._tls.pending():
                data += self._tls.recv(pending)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError as error:
            raise Disconnected(*error.args) from error
        return data

    def send_ready(self, data: bytes | bytearray | memoryview) -> int:
        try:
            return self._socket.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise Disconnected(*error.args) from error

    def linger(self) -> None:
        self._say_goodbye()
        super().linger()

    def abort(self) -> None:
        self._aborted = True
        super().abort()

    def close(self) -> None:
        self._say_goodbye()
        super().close()

    def _say_goodbye(self) -> None:
        """Send close_notify, without waiting for the client's."""
        if self._tls is None:
            return
        with suppress(OSError, ValueError):  # the latter when there is no TLS any more
            self._tls.setblocking(False)
            self._tls.unwrap()
        self._tls = None


def _sent_along(connected: ssl.SSLSocket) -> list[bytes]:
    """The certificates that a client sent after its own, DER."""
    if hasattr(connected, "get_unverified_chain"):  # since Python 3.13
        return list(connected.get_unverified_chain()[1:])
    own: Any = getattr(connected, "_sslobj", None)
    chain = own.get_unverified_chain() if hasattr(own, "get_unverified_chain") else None
    return [certificate.public_bytes(_DER) for certificate in chain[1:]] if chain else []


def _client_variables(connected: ssl.SSLSocket) -> dict[str, str]:
    """What is known of the client, in the variables of Apache's mod_ssl (several values are numbered)."""
    variables = {"HTTPS": "on", "SSL_PROTOCOL": connected.version() or "", "SSL_CLIENT_VERIFY": "NONE"}
    certificate = connected.getpeercert(binary_form=True)
    if not certificate:
        return variables
    variables["SSL_CLIENT_VERIFY"] = "GENEROUS"  # as mod_ssl says where any certificate will do
    variables["SSL_CLIENT_CERT"] = ssl.DER_cert_to_PEM_cert(certificate)
    for number, other in enumerate(_sent_along(connected)):
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

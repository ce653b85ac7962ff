"""Connections to webhooks: dialing, TLS with the errors of Go's crypto/tls, a pool of idle connections, and kubeconfig files.

Reads and writes have a deadline and the size of a response is limited, so that a webhook that sends slowly or endlessly takes
no more time and memory than one that sends nothing. As in net/http, a connection is kept for reuse after a complete response.

OpenSSL verifies the chain of a server's certificates; the name is verified here by Go's rules. When verification fails, the
certificate is fetched once more without verification, to find the error message of Go. A kubeconfig file of a flag names the
endpoint of its webhook as for kube-apiserver.

Invariant: a connection is used by one call at a time, and is in the pool only between calls.

Specified by: net/http (Transport: idle connections), net (Dialer), crypto/x509 (Certificate.Verify, VerifyHostname) and
crypto/tls of Go, for the errors that clients see; k8s.io/client-go/transport and tools/clientcmd;
k8s.io/apiserver/pkg/util/webhook/webhook.go (LoadKubeconfig).
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import ssl
import tempfile
import threading
import time
from collections import defaultdict
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from fakekube.base.golang.timestamps import print_time
from fakekube.net.leader_followers import REQUEST_THREADS

_FAILED = "tls: failed to verify certificate: x509: "
_NO_TLS = "tls: first record does not look like a TLS handshake"
HTTP_ANSWER = "http: server gave HTTP response to HTTPS client"


class UntrustedError(Exception):
    """The TLS connection failed; has Go's error message."""


def shake_hands(plain: socket.socket, name: str, authorities: bytes, *, verified: bool = True, own: str = "") -> ssl.SSLSocket:
    """Performs the TLS handshake on a connected socket, which the returned one replaces. The timeout is that of the socket.

    Args:
        name: the DNS name or IP address of the server.
        authorities: the CA bundle in PEM; empty for the CAs of the system.
        verified: False accepts any certificate (insecureSkipTLSVerify).
        own: the client certificate and its key in PEM, or "".

    Raises:
        UntrustedError: the handshake failed, or the certificate of the server is not trusted.
        OSError: the connection broke, or the timeout passed.
    """
    peer = plain.getpeername()
    try:
        secure = _context(authorities, verifies=verified, own=own).wrap_socket(plain, server_hostname=name)
    except ssl.SSLCertVerificationError:
        raise UntrustedError(_certificate_error(peer, plain.gettimeout(), name, authorities)) from None
    except ssl.SSLEOFError:
        raise ConnectionAbortedError from None
    except ssl.SSLError as error:
        raise UntrustedError(_handshake_error(peer, plain.gettimeout(), error)) from None
    try:
        problem = _wrong_name(_leaf(secure), name) if verified else ""
        if problem:
            raise UntrustedError(_FAILED + problem)
    except BaseException:
        secure.close()
        raise
    return secure


class _ClientSocket(ssl.SSLSocket):
    """Closes itself if the peer has reset the connection before the handshake.

    The standard library leaves such a socket open, since it expects it to be connected later.
    """

    def getpeername(self) -> Any:
        try:
            return super().getpeername()
        except OSError as error:
            if error.errno != errno.ENOTCONN or self.version() is not None:
                raise
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from None


@lru_cache(maxsize=64)
def _context(authorities: bytes, *, verifies: bool = True, own: str = "") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = _ClientSocket
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not verifies:
        context.verify_mode = ssl.CERT_NONE
    elif authorities:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # for Go every certificate of the bundle is a root
        context.load_verify_locations(cadata=authorities.decode("ascii", errors="replace"))
    else:
        context.load_default_certs()
    if own:
        _load_client_certificate(context, own)
    return context


def _load_client_certificate(context: ssl.SSLContext, own: str) -> None:
    """Loads a client certificate into a context. The ssl module only reads files: it is in a private temporary file meanwhile."""
    descriptor, path = tempfile.mkstemp()
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(own)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)


def _leaf(secure: ssl.SSLSocket) -> x509.Certificate:
    der = secure.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


# --- Error messages ---------------------------------------------------------------------------------------------------


def _certificate_error(peer: tuple[str, int], timeout: float | None, name: str, authorities: bytes) -> str:
    """Returns Go's error message for the certificate of a server; Go checks the dates, then the names, then the issuer."""
    with (
        socket.create_connection(peer[:2], timeout) as plain,
        _context(b"", verifies=False).wrap_socket(plain, server_hostname=name) as secure,
    ):
        leaf = _leaf(secure)
    return _FAILED + (_wrong_time(leaf) or _wrong_name(leaf, name) or _unknown_issuer(leaf, authorities))


def _wrong_time(leaf: x509.Certificate) -> str:
    now, begins, ends = datetime.now(UTC), leaf.not_valid_before_utc, leaf.not_valid_after_utc
    problem = f"certificate has expired or is not yet valid: current time {print_time(now)} is "
    if now < begins:
        return f"{problem}before {print_time(begins)}"
    return f"{problem}after {print_time(ends)}" if now > ends else ""


def _wrong_name(leaf: x509.Certificate, name: str) -> str:
    """Returns the error message if the certificate is not valid for the name, else "". Go only checks the SANs."""
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = None
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return _wrong_dns_name(leaf, names, name)
    addresses = names.get_values_for_type(x509.IPAddress) if names else []
    if address in addresses:
        return ""
    if not addresses:
        return f"cannot validate certificate for {name} because it doesn't contain any IP SANs"
    return f"certificate is valid for {', '.join(map(str, addresses))}, not {name}"


def _wrong_dns_name(leaf: x509.Certificate, names: x509.SubjectAlternativeName | None, name: str) -> str:
    valid = names.get_values_for_type(x509.DNSName) if names else []
    if any(_matches(pattern, name) for pattern in valid):
        return ""
    common = leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if names is None and common and _matches(str(common[0].value), name):
        return "certificate relies on legacy Common Name field, use SANs instead"
    if not valid:
        return f"certificate is not valid for any names, but wanted to match {name}"
    return f"certificate is valid for {', '.join(valid)}, not {name}"


def _matches(pattern: str, name: str) -> bool:
    """Reports whether a name matches a DNS name of a certificate, whose first label may be a wildcard."""
    wanted, labels = pattern.lower().split("."), name.lower().rstrip(".").split(".")
    if len(wanted) != len(labels):
        return False
    return wanted[1:] == labels[1:] and (wanted[0] == labels[0] or (wanted[0] == "*" and len(labels) > 1))


def _unknown_issuer(leaf: x509.Certificate, authorities: bytes) -> str:
    """Returns the error message; it names a CA that has the name of the issuer but not its key."""
    problem = "certificate signed by unknown authority"
    for authority in x509.load_pem_x509_certificates(authorities) if authorities else ():
        if authority.subject != leaf.issuer:
            continue
        try:
            leaf.verify_directly_issued_by(authority)
        except (InvalidSignature, ValueError, TypeError):
            is_rsa = isinstance(authority.public_key(), rsa.RSAPublicKey)
            hint = "crypto/rsa: verification error" if is_rsa else "x509: ECDSA verification failure"
            common = authority.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            name = str(common[0].value) if common else f"serial:{authority.serial_number}"
            return f'{problem} (possibly because of "{hint}" while trying to verify candidate authority certificate "{name}")'
    return problem


def _handshake_error(peer: tuple[str, int], timeout: float | None, error: ssl.SSLError) -> str:
    """Returns Go's error message for a failed handshake: a TLS alert, an HTTP response, or other bytes."""
    if error.reason and "ALERT" in error.reason:
        alert = error.reason.rpartition("ALERT_")[2].replace("_", " ").lower()
        return f"remote error: tls: {alert}"
    sent = ssl.MemoryBIO()
    hello = _context(b"", verifies=False).wrap_bio(ssl.MemoryBIO(), sent)
    with contextlib.suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    with socket.create_connection(peer[:2], timeout) as plain:
        plain.sendall(sent.read())
        return HTTP_ANSWER if plain.recv(5) == b"HTTP/" else _NO_TLS


#: The maximum size of a response in bytes, including headers and chunk framing.
MAX_RESPONSE_BYTES = 32 * 1024 * 1024

#: The time in seconds after which an idle connection is dropped, and the maximum number of them for a server
#: (IdleConnTimeout, MaxIdleConnsPerHost).
_IDLE_TIMEOUT, _IDLE_CONNECTIONS = 90.0, 25

#: The time in seconds for a response that is read after its deadline, because the caller has waited for others.
_LATE_SECONDS = 1.0


class ConnectionFailedError(Exception):
    """A connection could not be established; has Go's error message."""


class TooLargeError(Exception):
    """A response exceeds the size limit."""


class BrokenError(Exception):
    """A connection broke; has Go's error message."""


class Target(NamedTuple):
    """The target of a connection. Connections to equal targets are interchangeable."""

    host: str
    port: int
    name: str
    """The server name that the certificate must be valid for."""
    authorities: bytes
    """The CA bundle in PEM; empty for the CAs of the system."""
    secure: bool = True
    verified: bool = True
    """False accepts any certificate (insecureSkipTLSVerify)."""
    certificate: str = ""
    """The client certificate and its key in PEM, or ""."""


class Connection:
    """A connection to a server; it sends one request after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._deadline = self._end = 0.0
        self._left = 0
        self.used = False
        """Whether a request has been sent on the connection before."""
        self.answered = False
        """Whether the server has sent any bytes for the current request."""

    def send(self, data: bytes, deadline: float) -> None:
        """Sends a request; its response must be read before `deadline`. Raises TimeoutError, BrokenError."""
        REQUEST_THREADS.yield_lead()  # the webhook may use the API
        self._deadline, self._left, self.answered = deadline, MAX_RESPONSE_BYTES, False
        self._socket.settimeout(_remaining_seconds(deadline))
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise BrokenError(_error_message(self._socket, error, "write")) from None
        self._acknowledge_at_once()

    def receive(self) -> bytes:
        """Returns the next bytes of the response, b"" at the end. Raises TimeoutError, TooLargeError, BrokenError."""
        now = time.monotonic()
        if not self.answered:
            # Bytes that arrived before the deadline can be read after it, since the caller may have waited for other webhooks.
            self._end = self._deadline if now < self._deadline else now + _LATE_SECONDS
        elif now >= self._end:  # a server that never stops sending never makes the socket wait
            raise TimeoutError
        self._socket.settimeout(max(self._deadline - now, 0))
        try:
            data = self._socket.recv(65536)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            raise TimeoutError from None
        except OSError as error:
            raise BrokenError(_error_message(self._socket, error, "read")) from None
        self._left -= len(data)
        self.answered = self.answered or bool(data)
        if self._left < 0:
            raise TooLargeError
        return data

    def _acknowledge_at_once(self) -> None:
        """Disables delayed acknowledgements, which cost 40 ms with servers that write headers and body separately."""
        if hasattr(socket, "TCP_QUICKACK"):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    @property
    def alive(self) -> bool:
        """Whether an idle connection is still open at the server."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Closes the connection without reading the rest."""
        self._socket.close()


def _error_message(connection: socket.socket, error: OSError, what: str) -> str:
    """Returns Go's error message for a connection that broke during `what`, "read" or "write"."""
    if isinstance(error, ConnectionAbortedError) or not error.errno:
        return "EOF"
    try:
        places = f" tcp {_place(connection.getsockname())}->{_place(connection.getpeername())}"
    except OSError:
        places = " tcp"
    return f"{what}{places}: {what}: {os.strerror(error.errno).lower()}"


def _place(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class IdleConnections:
    """A pool of idle connections. May be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[Target, list[tuple[float, Connection]]] = defaultdict(list)

    def take(self, target: Target) -> Connection | None:
        """Removes and returns the most recently used connection that is still open; None if there is none."""
        while True:
            with self._lock:
                waiting = self._idle.get(target)
                if not waiting:
                    return None
                since, connection = waiting.pop()
            if time.monotonic() - since < _IDLE_TIMEOUT and connection.alive:
                connection.used = True
                return connection
            connection.close()

    def keep(self, target: Target, connection: Connection) -> None:
        """Adds a connection whose response has been read completely."""
        with self._lock:
            waiting = self._idle[target]
            waiting.append((time.monotonic(), connection))
            surplus = waiting.pop(0)[1] if len(waiting) > _IDLE_CONNECTIONS else None
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        """Closes all connections of the pool."""
        with self._lock:
            idle = [connection for waiting in self._idle.values() for _, connection in waiting]
            self._idle.clear()
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        self.close()  # must not need names of modules, which are None when the interpreter ends


# --- Dialing ----------------------------------------------------------------------------------------------------------


def dial(target: Target, deadline: float) -> socket.socket:
    """Establishes a connection, with TLS if the target has it, before `deadline` of `time.monotonic()`.

    Raises:
        ConnectionFailedError: the connection was refused, the TLS handshake failed, or the certificate is not trusted.
        TimeoutError: the deadline has passed.
    """
    plain = _dial_host(target.host, target.port, deadline)
    if not target.secure:
        return plain
    try:
        plain.settimeout(_remaining_seconds(deadline))
        return shake_hands(plain, target.name, target.authorities, verified=target.verified, own=target.certificate)
    except TimeoutError:
        plain.close()
        raise
    except UntrustedError as error:
        plain.close()
        raise ConnectionFailedError(str(error)) from None
    except OSError as error:
        problem = _error_message(plain, error, "read")
        plain.close()
        raise ConnectionFailedError(problem) from None
    except BaseException:
        plain.close()
        raise


def _dial_host(host: str, port: int, deadline: float) -> socket.socket:
    """Connects to the first address of a host that accepts. Raises the error of the first address if none does."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConnectionFailedError(f"dial tcp: lookup {host}: no such host") from None
    problem = ""
    for family, kind, protocol, _, (ip, *rest) in sorted(found, key=lambda entry: entry[0] != socket.AF_INET):
        plain = socket.socket(family, kind, protocol)
        try:
            plain.settimeout(_remaining_seconds(deadline))
            plain.connect((ip, *rest))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except TimeoutError:
            plain.close()
            raise
        except OSError as error:
            plain.close()
            problem = problem or f"dial tcp {_place((str(ip), port))}: connect: {os.strerror(error.errno or 0).lower()}"
        else:
            return plain
    raise ConnectionFailedError(problem)


def _remaining_seconds(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left

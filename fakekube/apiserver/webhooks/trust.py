"""Verifies TLS servers as Go's crypto/tls does, with its error messages.

OpenSSL verifies the chain; the name is verified here by Go's rules. When verification fails, the certificate is fetched once
more without verification, to find the error message of Go.

Specified by: crypto/x509 (Certificate.Verify, VerifyHostname) and crypto/tls of Go; k8s.io/client-go/transport.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import ssl
import tempfile
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

# ---------------------------------------------------------------------------------------------------------------------
# Loads the endpoint of a webhook from a kubeconfig file, as kube-apiserver does for its flags.
#
# Specified by: k8s.io/apiserver/pkg/util/webhook/webhook.go (LoadKubeconfig), k8s.io/client-go/tools/clientcmd.


_FAILED = "tls: failed to verify certificate: x509: "
_NO_TLS = "tls: first record does not look like a TLS handshake"
HTTP_ANSWER = "http: server gave HTTP response to HTTPS client"


class UntrustedError(Exception):
    """The TLS connection failed; has Go's error message."""


def connected(plain: socket.socket, name: str, authorities: bytes, *, verified: bool = True, own: str = "") -> ssl.SSLSocket:
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


# ---------------------------------------------------------------- error messages


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
    problem = f"certificate has expired or is not yet valid: current time {_time(now)} is "
    if now < begins:
        return f"{problem}before {_time(begins)}"
    return f"{problem}after {_time(ends)}" if now > ends else ""


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


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

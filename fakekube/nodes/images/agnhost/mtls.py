"""Subcommands of agnhost that authenticate each other by certificates: a server that tells a client who it is, and the client.

The server asks for a certificate. The real one verifies it when it answers a request, this one in the handshake, so that a client
with a certificate of another CA gets an alert instead of 401.

Specified by: test/images/agnhost/mtlsserver, test/images/agnhost/mtlsclient of Kubernetes.
"""

from __future__ import annotations

import errno
import ssl
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, ResponseReader
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.nodes.images.programs import flags, log, wait
from fakekube.nodes.images.servers import Answer, Request, application, tls_context
from fakekube.nodes.runtime.listeners import Peer
from fakekube.nodes.runtime.ports import serve
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import sleep
from fakekube.nodes.runtime.tls import Client, secure

#: Seconds between two requests of the client.
_POLL: Final = 10.0


async def _mtls_server(program: Program) -> int:
    given, _ = flags(program, {"listen": "", "server-creds": "", "spiffe-trust-bundle": ""})
    if not all(given.values()):
        return await program.complain("missing required flags")
    try:
        anchors = _read_anchors(program, given["spiffe-trust-bundle"], given["server-creds"])
        context = tls_context(program, given["server-creds"], given["server-creds"])
        context.load_verify_locations(cadata=anchors)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    except (OSError, ssl.SSLError) as error:
        return await program.complain(f"error while serving: {error.strerror}")
    context.verify_mode = ssl.CERT_OPTIONAL

    def accept(peer: Peer) -> Connection:
        return secure(lambda certificate: serve(application(partial(_echo_identity, program, certificate)), peer), context)

    with program.host.network.listeners.tcp(int(given["listen"].rpartition(":")[2]), accept, secure=True):
        return await wait(program)


def _read_anchors(program: Program, anchors: str, credentials: str) -> str:
    """Returns the certificates to trust, in PEM.

    OpenSSL finds the issuer of a certificate by its name, and takes the wrong one if all CAs have the same empty name, as those
    of the conformance suite. Hence own intermediate certificates replace the trusted one that has their name and has signed them.

    Args:
        program: reads the files.
        anchors: the path of the trusted certificates.
        credentials: the path of the own certificate, which is followed by intermediate ones.

    Raises:
        OSError: a file cannot be read, or contains no certificates.
    """
    try:
        trusted = x509.load_pem_x509_certificates(program.read_file(anchors))
        own = x509.load_pem_x509_certificates(program.read_file(credentials))[1:]
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None
    intermediate = [one for one in own if any(_is_signed(one, anchor) for anchor in trusted)]
    names = {one.subject for one in intermediate}
    found = [*intermediate, *(one for one in trusted if one.subject not in names)]
    return "".join(one.public_bytes(serialization.Encoding.PEM).decode() for one in found)


def _is_signed(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Reports whether a certificate is signed by an issuer."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, TypeError, ValueError):
        return False
    return certificate != issuer


def _echo_identity(program: Program, certificate: bytes | None, request: Request) -> Answer:
    """Answers a request of a client with this certificate in DER."""
    if request.path != "/spiffe-echo":
        return Answer("404 page not found\n", 404)
    if certificate is None:
        return Answer("SPIFFE client certificate authentication required\n", 401)
    try:
        names = x509.load_der_x509_certificate(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        identities = names.get_values_for_type(x509.UniformResourceIdentifier)
    except (ValueError, x509.ExtensionNotFound):
        identities = []
    if len(identities) != 1:
        log(program, f"SPIFFE client certificate did not have 1 URI SAN, count: {len(identities)}")
        return Answer("Malformed SPIFFE certificate\n", 401)
    return Answer(f"Client Identity: {identities[0]}")


async def _mtls_client(program: Program) -> int:
    given, _ = flags(program, {"fetch-url": "", "server-trust-bundle": "", "client-cred-bundle": ""})
    if not all(given.values()):
        return await program.complain("missing required flags")
    while True:
        await sleep(_POLL)
        try:
            answer = await _poll(program, given["fetch-url"], given["server-trust-bundle"], given["client-cred-bundle"])
            log(program, f"Got response body: {answer}")
        except (OSError, ConnectionEndedError, MalformedResponseError) as error:
            log(program, f"while sending requests to the server: while getting URL: {error}")


async def _poll(program: Program, url: str, anchors: str, credentials: str) -> str:
    """Sends a request, and returns the body of the answer. Raises OSError, ConnectionEndedError, MalformedResponseError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    authorities, bundle = _read_anchors(program, anchors, credentials), program.read_file(credentials)
    connection = program.host.network.connect(host, parts.port or 443)
    try:
        client = Client(connection, host, authorities, bundle)
        head = f"GET {parts.path or '/'} HTTP/1.0\r\nHost: {parts.netloc}\r\nUser-Agent: Go-http-client/1.1\r\n\r\n"
        rest = iter([await client.exchange(head.encode()), b""])
        reader = ResponseReader(lambda: next(rest))
        response = reader.read_response("GET")
        body = b"".join(reader.iterate_body()).decode("utf-8", "replace")
    finally:
        connection.from_client.close()
        connection.to_client.abandon()
    if not 200 <= response.status < 300:
        raise OSError(f"non-2xx status {response.status}")
    return body


#: Subcommand → program.
COMMANDS: Final[dict[str, Command]] = {"mtlsclient": _mtls_client, "mtlsserver": _mtls_server}

"""A webhook for behaviour tests: a server with a certificate of its own authority, which remembers what it was sent."""

from __future__ import annotations

import base64
import http.server
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.behaviour.closable_server import ClosableServer

__all__ = ["JSON", "LOCAL", "TEXT", "Authority", "Reply", "Webhook"]

JSON = {"Content-Type": "application/json"}
TEXT = {"Content-Type": "text/plain"}

Reply = tuple[int, dict[str, str], bytes]
"""Status, headers and body of an answer."""


@dataclass
class Authority:
    """Signs the certificates of webhooks."""

    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    name: str = "webhooks"

    def __post_init__(self) -> None:
        self.certificate = self.sign(self.name, self.key.public_key(), is_authority=True)

    @property
    def bundle(self) -> str:
        return base64.b64encode(self.certificate.public_bytes(Encoding.PEM)).decode()

    def sign(
        self,
        name: str,
        key: Any,
        names: tuple[x509.GeneralName, ...] = (),
        *,
        is_authority: bool = False,
        begins: timedelta = timedelta(days=-1),
        ends: timedelta = timedelta(days=1),
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, self.name))
        builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), now + begins, now + ends)
        builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, SHA256())


LOCAL = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


class Webhook:
    """Answers reviews as `behave` says; keeps what it was sent."""

    def __init__(
        self,
        folder: Path,
        authority: Authority,
        names: tuple[x509.GeneralName, ...],
        behave: Callable[[dict[str, Any]], Reply],
        **dates: timedelta,
    ) -> None:
        self.behave = behave
        self.seen: list[dict[str, Any]] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                webhook.requests.append((self.path, dict(self.headers)))
                webhook.seen.append(review)
                status, headers, body = webhook.behave(review)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        key = ec.generate_private_key(ec.SECP256R1())
        certificate = authority.sign("webhook", key.public_key(), names, **dates)
        chain, secret = folder / "certificate.pem", folder / "key.pem"
        chain.write_bytes(certificate.public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, secret)
        self._server = ClosableServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.client_config = {"url": f"https://127.0.0.1:{self.port}/convert", "caBundle": authority.bundle}
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it, with its connections."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

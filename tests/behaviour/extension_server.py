"""An extension API server for behaviour tests: it serves one group version over TLS with configurable responses."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.behaviour.closable_server import ClosableServer
from tests.behaviour.webhook_server import JSON, LOCAL, TEXT, Authority, Reply

__all__ = ["ExtensionServer", "Received"]


@dataclass
class Received:
    """A received request."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    """Names in lower case."""
    body: bytes

    def header(self, name: str) -> list[str]:
        """All values of a header."""
        return [value for key, value in self.headers if key == name]


Behave = Callable[[Received, socket.socket], "Reply | None"]
"""What to answer; None: it has written what it wanted to the socket itself, which is closed then."""


class ExtensionServer:
    """Answers discovery by itself, all else as `behave` says; keeps what it was sent."""

    def __init__(self, folder: Path, authority: Authority, group: str, version: str = "v1", *names: str) -> None:
        self.group, self.version = group, version
        self.resources = [
            {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get", "list"]}
        ]
        self.failing = 0
        """A status with which discovery is answered instead."""
        self.documents: dict[str, Any] = {}
        """What is served beside the group version, by path."""
        self.behave: Behave = lambda request, _: (200, JSON, json.dumps({"path": request.path}).encode())
        self.seen: list[Received] = []
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = (*LOCAL, *(x509.DNSName(name) for name in names))
        certificate = authority.sign("extension", key.public_key(), alternatives)
        chain, secret = folder / "extension.pem", folder / "extension-key.pem"
        chain.write_bytes(certificate.public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, secret)
        self._server = self._listen(context)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)
        self._thread.start()

    def _listen(self, context: ssl.SSLContext) -> ClosableServer:
        extension = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = [(name.lower(), value) for name, value in self.headers.items()]
                request = Received(self.command, self.path, headers, body)
                extension.seen.append(request)
                reply = extension._discovery(request) or extension.behave(request, self.connection)
                if reply is None:
                    self.close_connection = True
                    return
                status, more, content = reply
                self.send_response(status)
                for name, value in {**more, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

            def log_message(self, *_: Any) -> None:
                pass

        server = ClosableServer(("127.0.0.1", 0), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        return server

    def _discovery(self, request: Received) -> Reply | None:
        path, root = request.path.partition("?")[0], f"/apis/{self.group}/{self.version}"
        if path in self.documents:
            return 200, JSON, json.dumps(self.documents[path]).encode()
        if path == "/apis" or path.startswith("/openapi"):
            return 404, TEXT, b"404 page not found\n"
        if path != root or request.header("upgrade"):
            return None
        if self.failing:
            return self.failing, TEXT, b"out of order"
        document = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": root[6:], "resources": self.resources}
        return 200, JSON, json.dumps(document).encode()

    def close(self) -> None:
        """End it, with its connections."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

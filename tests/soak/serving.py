"""A `fakekube serve` in a process of its own, for the soak scripts."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def untrusting_context() -> ssl.SSLContext:
    """Returns a context for HTTP/2 that accepts the certificate of any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


class ServedCluster:
    """A context manager that runs `fakekube serve` with the profile apiserver.

    Attributes:
        host, port, pid: where it listens, and its process.
        output: what it has written to stderr, known at the end of the block.
    """

    def __init__(self, *flags: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        ready = Path(self._folder.name) / "ready"
        self._errors = Path(self._folder.name) / "errors"
        command = [sys.executable, "-m", "fakekube", "serve", "--profile", "apiserver", "--ready-file", str(ready), *flags]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        while not ready.exists():
            if self._process.poll() is not None:
                raise SystemExit(f"fakekube serve has ended: {self._errors.read_text()}")
            time.sleep(0.01)
        self.url = ready.read_text().strip()
        parts = urlsplit(self.url)
        self.host, self.port, self.pid = parts.hostname or "", parts.port or 0, self._process.pid
        self.output = ""

    def __enter__(self) -> ServedCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self.output = self._errors.read_text()
        self._folder.cleanup()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None


class JsonConnection:
    """One HTTP/1.1 connection that sends and receives JSON."""

    def __init__(self, server: ServedCluster, *, timeout: float = 120) -> None:
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=timeout)

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        """Returns the status and the body: decoded if it is JSON, else as bytes."""
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, {"Content-Type": content_type} if data else {})
        response = self._connection.getresponse()
        text = response.read()
        is_json = "json" in response.headers.get("Content-Type", "")
        return response.status, json.loads(text) if text and is_json else text

    def close(self) -> None:
        self._connection.close()

"""The application of a fresh cluster, called without a socket."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fakekube.apiserver import server as assembly
from fakekube.apiserver.registry.scope import Settings
from fakekube.base.clock import Clock


@dataclass(slots=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Call = Callable[..., Answer]


def caller(application: Any) -> Call:
    """A function (method, path, query, body, **headers) → Answer; header names with underscores."""

    def call(method: str, path: str, query: str = "", body: bytes = b"", **headers: str) -> Answer:
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "wsgi.url_scheme": "http",
            "HTTP_HOST": "127.0.0.1:6443", "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)),
        }  # fmt: skip
        for name, value in headers.items():
            environ["CONTENT_TYPE" if name == "content_type" else f"HTTP_{name.upper()}"] = value
        seen: list[Any] = []
        chunks = application(environ, lambda status, fields: seen.extend((status, fields)))
        return Answer(int(seen[0][:3]), seen[1], b"".join(chunks))

    return call


@pytest.fixture(scope="session")
def machinery() -> assembly.Machinery:
    """A cluster that no test writes to."""
    return assembly.build(clock=Clock(), settings=Settings(), profile="apiserver")


@pytest.fixture(scope="session")
def call(machinery: assembly.Machinery) -> Call:
    return caller(machinery.application)


@pytest.fixture(scope="session")
def caller_of() -> Callable[[Any], Call]:
    return caller

"""Builds the WSGI environ of a request (PEP 3333).

In addition to the variables of the PEP there are `REQUEST_URI` (path and query as sent, because PATH_INFO does not distinguish
`%2F` from `/`), `REMOTE_PORT`, `wsgi.input_terminated` (a body without a length can be read to its end), and with TLS the
variables of Apache's mod_ssl. Fields with an underscore in their names are omitted, because they would be confused with others.
"""

from __future__ import annotations

import re
import sys
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from fakekube.net.http1 import Fields, Request
from fakekube.net.wsgi import environ_key

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?://([^/?]*))?")

_ONCE = frozenset({"accept", "accept-encoding", "authorization", "content-type", "if-none-match", "user-agent"})
"""Fields of which only the first value is used, as by Go's Header.Get; the values of others are joined (RFC 9110, 5.3)."""


def base_environ(server_name: str, server_port: int, scheme: str) -> dict[str, Any]:
    """Returns the variables that are the same for all requests to a server."""
    return {
        "SCRIPT_NAME": "",
        "SERVER_NAME": server_name,
        "SERVER_PORT": str(server_port),
        "SERVER_SOFTWARE": "fakekube",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }


def make_environ(base: dict[str, Any], request: Request, body: IO[bytes]) -> dict[str, Any]:
    """Returns the environ of a request.

    Args:
        base: the variables of its connection.
        request: the request.
        body: the value of `wsgi.input`.
    """
    target = request.target
    authority, uri = (None, target) if target.startswith("/") else _split_target(target)
    path, _, query = uri.partition("?")
    if "%" in path:
        path = unquote_to_bytes(path.encode("latin-1")).decode("latin-1")
    major, minor = request.version
    environ = {
        **base,
        **_variables(request.fields),
        "REQUEST_METHOD": request.method,
        "REQUEST_URI": uri,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": f"HTTP/{major}.{minor}",
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
    }
    if authority is not None:
        environ["HTTP_HOST"] = authority
    return environ


def _variables(fields: Fields) -> dict[str, str]:
    """Returns the variables for a header block; computed once for each block."""
    if not fields.variables:
        fields.variables.update(_make_variables(fields))
    return fields.variables


def _make_variables(fields: Fields) -> dict[str, str]:
    variables: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for name, value in fields.pairs:
        if "_" in name:
            continue
        key = environ_key(name)
        if key not in variables:
            variables[key] = value
        elif name not in _ONCE:
            repeated.setdefault(key, [variables[key]]).append(value)
    for key, values in repeated.items():
        variables[key] = ("; " if key == "HTTP_COOKIE" else ",").join(values)
    if fields.length is None:
        variables.pop("CONTENT_LENGTH", None)
    elif "CONTENT_LENGTH" in variables:
        variables["CONTENT_LENGTH"] = str(fields.length)
    return variables


def _split_target(target: str) -> tuple[str | None, str]:
    """Splits a target that is not a path into its authority, if it has one, and its path with the query."""
    absolute = _ABSOLUTE.match(target)
    if absolute is None:
        return None, target if target == "*" else ""
    uri = target[absolute.end() :]
    return absolute[1], uri if uri.startswith(("/", "?")) else ""

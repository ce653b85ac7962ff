"""What the command line writes to stderr: warnings and errors of the package, and, with `-v`, a line for each request.

    fakekube: warning: the client 127.0.0.1 has broken the protocol (fakekube.net.connection)
    23:04:05.123 GET /api/v1/pods?watch=true 200 kubectl/v1.36.3 1.2 ms

The package itself is quiet: its loggers, which are all below `fakekube`, have no handler that writes. A program that owns its
process calls `log_to_stderr` once. The line of a watch, or of another stream, is written when its response begins.

Invariant: a request gets one line, whether it is answered or fails.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TextIO

from fakekube.net.wsgi import Application


class _LineFormatter(logging.Formatter):
    """Formats a record as the command line writes its other messages; a traceback follows its line."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return f"fakekube: {record.levelname.lower()}: {record.message} ({record.name})"


def log_to_stderr() -> None:
    """Writes warnings and errors of the package to stderr."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_LineFormatter())
    logging.getLogger("fakekube").addHandler(handler)


def with_access_log(application: Application, output: TextIO | None = None) -> Application:
    """Returns an application that writes a line for each request.

    Args:
        application: the API.
        output: where the lines go; by default stderr.
    """

    def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        begun, lines = time.perf_counter(), list[str]()

        def start(line: str, headers: Any, error: Any = None) -> Any:
            lines.append(line)
            return start_response(line, headers, error) if error is not None else start_response(line, headers)

        try:
            return application(environ, start)
        finally:
            query = f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
            code = lines[0].partition(" ")[0] if lines else "-"
            agent = (environ.get("HTTP_USER_AGENT") or "-").partition(" ")[0]
            took = (time.perf_counter() - begun) * 1000
            moment = f"{datetime.now():%H:%M:%S.%f}"[:-3]
            path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
            text = f"{moment} {environ['REQUEST_METHOD']} {path}{query} {code} {agent} {took:.1f} ms"
            print(text.encode("unicode_escape").decode(), file=output or sys.stderr, flush=True)

    return respond

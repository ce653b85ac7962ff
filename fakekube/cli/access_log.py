"""`serve -v`: a line on stderr for each request.

    23:04:05.123 GET /api/v1/pods?watch=true 200 kubectl/v1.36.3 1.2 ms

A watch or another stream is written when its response begins.

Invariant: a request gets one line, whether it is answered or fails.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TextIO

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def with_access_log(application: Application, output: TextIO | None = None) -> Application:
    """Returns an application that writes a line for each request.

    Args:
        application: The API.
        output: Where the lines go; by default stderr.
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

"""Reads the status line of a response as Go's HTTP client does, with its error messages.

Specified by: net/http (ReadResponse, ParseHTTPVersion) of Go.
"""

from __future__ import annotations

import re

from fakekube.base.golang.quoting import go_quote

__all__ = ["parse_status_line", "quoted_line"]

_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")


def parse_status_line(line: bytes) -> tuple[bytes, int]:
    """Returns the protocol version and the status code of a status line without its line end.

    Raises:
        ValueError: the line is malformed; with the message of net/http.
    """
    version, space, rest = line.partition(b" ")
    if not space:
        raise ValueError(f"malformed HTTP response {quoted_line(line)}")
    code = rest.lstrip(b" ").partition(b" ")[0]
    if len(code) != 3 or not code.isdigit():
        raise ValueError(f"malformed HTTP status code {quoted_line(code)}")
    if not _VERSION.fullmatch(version):
        raise ValueError(f"malformed HTTP version {quoted_line(version)}")
    return version, int(code)


def quoted_line(line: bytes) -> str:
    """Returns a line of a response, without its line end, as Go's %q prints them."""
    return go_quote(line.rstrip(b"\r\n").decode("utf-8", "surrogateescape"))

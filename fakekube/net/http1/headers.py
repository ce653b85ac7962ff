"""Parses header blocks of HTTP/1.1, of requests, of responses and of trailers.

Invariant: the result is that of net/textproto, and so is the text of an error.

Specified by: net/textproto of Go (ReadMIMEHeader, readContinuedLineSlice, canonicalMIMEHeaderKey), net/http (transfer.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from fakekube.base.golang.strconv import go_quote

END_OF_HEADER: Final = re.compile(rb"\n\r?\n")
"""The empty line after a header block, with the end of the line before it."""

TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
"""The pattern of one character of a token."""

_LENGTH_DIGITS: Final = 19
CONTENT_LENGTH: Final = re.compile(rf"0*[0-9]{{1,{_LENGTH_DIGITS}}}")
"""The pattern of a Content-Length that may fit into 63 bits."""

_PLAIN_BLOCK: Final = re.compile(rf"(?:{TOKEN}++:[\t -~\x80-\xff]*+\r\n)*+")
_NAME: Final = re.compile(rf"(?:{TOKEN}| )+")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*")


class MIMEHeaderError(ValueError):
    """A malformed header block; has the text of net/textproto."""


def parse_mime_header(block: str) -> list[tuple[str, str]]:
    """Returns the names, as sent, and the values of a header block.

    Args:
        block: the lines of the block, each with its line end, and the empty line at its end. Latin-1.

    Raises:
        MIMEHeaderError: The block is malformed.
    """
    if block.endswith("\r\n") and _PLAIN_BLOCK.fullmatch(block, 0, len(block) - 2):
        lines = block.split("\r\n")
        del lines[-2:]
    else:
        lines = _continued_lines(block)
    pairs = [line.partition(":") for line in lines]
    return [(name, value.strip(" \t")) for name, _, value in pairs]


def _continued_lines(block: str) -> list[str]:
    """Returns the lines of a block that has bare LFs, continued lines, or faults."""
    parts: list[list[str]] = []  # joined at the end, because a line may be continued often
    for raw in block.split("\n")[:-2]:
        line = raw.removesuffix("\r")
        if line.startswith((" ", "\t")):
            if not parts:
                raise MIMEHeaderError(f"malformed MIME header initial line: {quote_line(line)}")
            parts[-1].append(line.strip(" \t"))
        elif ":" not in line:
            raise MIMEHeaderError(f"malformed MIME header: missing colon: {quote_line(line)}")
        else:
            parts.append([line.rstrip(" \t")])
    lines = [" ".join(line) for line in parts]
    for line in lines:
        name, _, value = line.partition(":")
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise MIMEHeaderError(f"malformed MIME header line: {quote_line(line)}")
    return lines


def quote_line(line: str) -> str:
    """Returns a Latin-1 line as Go's %q prints its bytes."""
    return go_quote(line.encode("latin-1").decode("utf-8", "surrogateescape"))


def parse_content_length(values: Iterable[str]) -> int | None:
    """Returns the value of the fields Content-Length, of which equal ones count once; None if there are none.

    Raises:
        ValueError: The values differ, or one is not a number below 2^63; with the text of net/http.
    """
    distinct = list(dict.fromkeys(values))
    if not distinct:
        return None
    if len(distinct) > 1:
        got = " ".join(go_quote(value) for value in values)
        raise ValueError(f"http: message cannot contain multiple Content-Length headers; got [{got}]")
    text = distinct[0]
    if not text:
        raise ValueError('invalid empty Content-Length ""')
    if not CONTENT_LENGTH.fullmatch(text) or (length := int(text[-_LENGTH_DIGITS:])) >= 1 << 63:
        raise ValueError(f"bad Content-Length {go_quote(text)}")
    return length


def header_tokens(values: Iterable[str]) -> set[str]:
    """Returns the tokens of comma-separated values in lower case."""
    return {token.strip(" \t").lower() for value in values for token in value.split(",")}

"""Reads and writes PEM like Go's encoding/pem: text around blocks is skipped, and so are blocks that are not complete.

Invariant: the time is proportional to the length of the text, whatever it contains. Each byte is searched by one END line only.

Specified by: Go's encoding/pem (pem.go: Decode, getLine).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Final, NamedTuple

from fakekube.base.golang.base64 import Base64Error, canonical

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"


class Block(NamedTuple):
    """A block: the type in its BEGIN line, whether it has headers, and its content."""

    type: str
    has_headers: bool
    content: bytes


def blocks(data: bytes) -> Iterator[Block]:
    """Yields the blocks of a text."""
    block, rest = decode(data)
    while block is not None:
        yield block
        block, rest = decode(data, rest)


def decode(data: bytes, at: int = 0) -> tuple[Block | None, int]:
    """Returns the next block and the index of the line after it; None and `at` if there is none.

    Args:
        data: the text.
        at: the index at which a line begins.
    """
    start = at
    while (end := data.find(_END, start)) >= 0:
        after_end = end + len(_END)
        begin = data.rfind(_BEGIN, start, end)  # the last one: others before it have no end
        if begin >= 0 and (begin == start or data[begin - 1 : begin] == b"\n"):
            type_, body = _read_line(data, begin + len(_BEGIN))
            if type_.endswith(_DASHES):
                content, has_headers = _skip_headers(data, body)
                if content > after_end or content == len(data):  # the END line is a header
                    return None, at
                if (not has_headers or content <= end) and (rest := _read_end(data, after_end, type_)):
                    decoded = _decode_base64(data[content:end])
                    if decoded is not None:
                        return Block(type_.removesuffix(_DASHES).decode("utf-8", "replace"), has_headers, decoded), rest
        start = after_end
    return None, at


def _read_line(data: bytes, at: int) -> tuple[bytes, int]:
    """Returns the line at an index, without spaces at its end, and the index of the next one."""
    end = data.find(b"\n", at)
    if end < 0:
        return data[at:].rstrip(b" \t"), len(data)
    return data[at:end].removesuffix(b"\r").rstrip(b" \t"), end + 1


def _skip_headers(data: bytes, at: int) -> tuple[int, bool]:
    """Returns the index of the first line without a colon, and whether lines with one were skipped."""
    start = at
    while at < len(data):
        line, rest = _read_line(data, at)
        if b":" not in line:
            break
        at = rest
    return at, at > start


def _read_end(data: bytes, at: int, type_: bytes) -> int:
    """Returns the index of the line after an END line of a type; 0 if the line is of another one. `at`: where its type begins."""
    line, rest = _read_line(data, at)
    return rest if line == type_ else 0


def _decode_base64(data: bytes) -> bytes | None:
    try:
        return b64decode(canonical(data.translate(None, b" \t").decode("latin-1")))
    except Base64Error:
        return None


def encode(type_: str, content: bytes) -> bytes:
    """Returns a block without headers (EncodeToMemory)."""
    text = b64encode(content)
    lines = b"".join(text[at : at + 64] + b"\n" for at in range(0, len(text), 64))
    return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (type_.encode(), lines, type_.encode())

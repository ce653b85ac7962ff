"""Texts that may hold bytes which are no UTF-8, as Go's strings may.

A body in Protobuf or CBOR can bring such bytes. Here each of them is a lone surrogate (PEP 383), so that
Protobuf and CBOR write it again as it came, Go's %q prints it as `\\xff`, and JSON, which cannot hold it, has
U+FFFD in its place. Bodies in JSON and YAML never bring any.

Specified by: Go's encoding/json (encode.go, appendString), strconv.Quote.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from fakekube.golang.json_writer import written

__all__ = ["byte_of", "bytes_of", "json_text", "readable", "text_of"]

_BYTE: Final = re.compile("[\udc80-\udcff]")


def text_of(data: bytes) -> str:
    """The text of these bytes, whatever they are."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The bytes of a text."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")


def byte_of(character: str) -> int | None:
    """The byte that a character stands for, if it is not UTF-8."""
    code = ord(character) - 0xDC00
    return code if 0x80 <= code <= 0xFF else None


def readable(text: str) -> str:
    """The text with U+FFFD for each byte that is not UTF-8."""
    return _BYTE.sub("\ufffd", text)


def json_text(value: Any, *, sort_keys: bool = False) -> str:
    """Compact JSON of plain data; what is not UTF-8 is `\\ufffd`.

    Raises:
        TypeError: there is something in it that JSON does not know.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else None).decode()
    except orjson.JSONEncodeError:
        return written(value, _scalar, sort_keys=sort_keys).decode()


def _scalar(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _BYTE.sub(r"\\ufffd", text).encode("utf-8", "surrogatepass")

"""Strings that may contain invalid UTF-8, like Go's strings, and the texts of Kubernetes' own libraries that any room prints.

Bodies in Protobuf or CBOR can contain such bytes. Each of them is stored as a lone surrogate (PEP 383): Protobuf
and CBOR encode it as the original byte, %q formats it as `\\xff`, and JSON, which has no form for it, contains
U+FFFD instead. Bodies in JSON and YAML never produce such strings.

Specified by: Go's encoding/json (encode.go, appendString), strconv.Quote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from fakekube.base.golang.json_writer import plain_form, write_json

_BYTE: Final = re.compile("[\udc80-\udcff]")


def text_of(data: bytes) -> str:
    """Decodes bytes, which may be invalid UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def text_of_native(native: str) -> str:
    """Decodes a WSGI native string (one character per byte) as UTF-8, which may be invalid."""
    return native if native.isascii() else text_of(native.encode("latin-1"))


def bytes_of(text: str) -> bytes:
    """Encodes a text; the inverse of `text_of`."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")


def byte_of(character: str) -> int | None:
    """Returns the invalid byte that a lone surrogate represents; None for any other character."""
    code = ord(character) - 0xDC00
    return code if 0x80 <= code <= 0xFF else None


def readable(text: str) -> str:
    """Replaces each invalid byte by U+FFFD."""
    return _BYTE.sub("\ufffd", text)


def json_text(value: Any, *, sort_keys: bool = False) -> str:
    """Encodes plain data as compact JSON; invalid UTF-8 becomes `\\ufffd`.

    Raises:
        TypeError: a value has no JSON form.
    """
    try:
        option = orjson.OPT_PASSTHROUGH_SUBCLASS | (orjson.OPT_SORT_KEYS if sort_keys else 0)
        return orjson.dumps(value, plain_form, option).decode()
    except orjson.JSONEncodeError:
        return write_json(value, _scalar, sort_keys=sort_keys).decode()


def _scalar(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _BYTE.sub(r"\\ufffd", text).encode("utf-8", "surrogatepass")


def label_selector_string(selector: Mapping[str, Any] | None) -> str:
    """Formats a LabelSelector as its generated method String in Go does."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    parts = f"MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},"
    return f"&LabelSelector{{{parts}}}"


def aggregate_errors(messages: Iterable[str]) -> str:
    """Returns the message of several errors: a single one as it is, several in brackets, each text once; "" without any.

    Specified by: k8s.io/apimachinery/pkg/util/errors (aggregate.Error).
    """
    distinct = list(dict.fromkeys(messages))
    return f"[{', '.join(distinct)}]" if len(distinct) > 1 else "".join(distinct)

"""Encodes and decodes YAML like sigs.k8s.io/yaml.

The real server converts YAML to JSON, so keys are sorted and whole floats become integers. A body that is JSON is
decoded as JSON, which is many times faster, unless YAML gives another result (duplicate members, escaped
surrogates). Reader and emitter are imported on first use.

Specified by: sigs.k8s.io/yaml (yaml.go).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import orjson

from fakekube.apimachinery.codecs import DecodeError, EncodeError, json
from fakekube.base.objects import StoredObject

#: The prefix of a strict decoding error; the messages follow, one per line.
STRICT_ERROR: Final = "yaml: unmarshal errors:\n  "

#: Escapes of JSON that YAML does not support: of surrogates, and of the slash.
_OTHER_ESCAPES: Final = (b"\\ud", b"\\uD", b"\\/")
#: Patterns for the end and the start of a number in compact JSON that may not be a Go integer. A match within a string
#: (`since 3.0, that is`) is rare, and only costs time.
_ODD_END: Final = re.compile(rb"[0-9](?:[.eE][-+]?[0-9]++|(?<![0-9][0-9])[0-9]{17,}+)[,}\]]")
_BEGINNING: Final = re.compile(rb"[:,\[]-?[0-9]+(?:\.[0-9]+)?\Z")
_LONGEST: Final = 32


#: Control characters in JSON (the ASCII one is checked separately), and keys that are too long.
_DELETE: Final = b"\x7f"
_CONTROL: Final = re.compile(rb"\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]").search
_LONG: Final = 1000
_LONG_KEY: Final = re.compile(rb'[{,]"(?:[^"\\]|\\.){1022,}+":').search


def loads(body: bytes) -> tuple[Any, list[str]]:
    """Decodes the first document of a body.

    Returns:
        The value as JSON data (None if there is no document), and the strict decoding errors, one per line:
        `line 6: key "a" already set in map`. Of duplicate keys the last value is kept.

    Raises:
        DecodeError: the body is not valid YAML; with go-yaml's message.
    """
    if body[:1] == b"{" and not (
        _has_control_characters(body) or (_has_other_escapes(body) and _has_other_escapes(body.replace(rb"\\", b"")))
    ):
        try:
            value = orjson.loads(body)
            text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
            if text.count(b":") == body.count(b":"):
                return _as_json(value) if _holds_odd_number(text) else orjson.loads(text), []
        except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
            pass  # not JSON
    from fakekube.apimachinery.codecs.yaml import reader

    return reader.read(body)


def _as_json(value: Any) -> Any:
    from fakekube.apimachinery.codecs.yaml import reader

    return reader.as_json(value)


def _has_other_escapes(body: bytes) -> bool:
    """Reports whether there may be such an escape. False positives are possible: in `\\\\/` the slash is not escaped."""
    return b"\\" in body and any(escape in body for escape in _OTHER_ESCAPES)


def _has_control_characters(text: bytes) -> bool:
    """Reports whether JSON has characters that YAML does not allow."""
    return _DELETE in text or (not text.isascii() and _CONTROL(text) is not None)


def _holds_odd_number(text: bytes) -> bool:
    ends = (found.start() + 1 for found in _ODD_END.finditer(text))
    return any(_BEGINNING.search(text[max(end - _LONGEST, 0) : end]) for end in ends)


def strict_error(problems: Sequence[str]) -> str:
    """Returns the error of YAMLToJSONStrict for the strict decoding errors of `loads`."""
    return STRICT_ERROR + "\n  ".join(problems)


def dumps(value: Any) -> bytes:
    """Encodes one document, with a trailing newline.

    Raises:
        EncodeError: the value contains NaN, or a text that YAML cannot represent.
    """
    from fakekube.apimachinery.codecs.yaml.emitter import emit

    return emit(_as_read(value)).encode()


def item(value: StoredObject) -> bytes:
    """Encodes an object as an item of a list.

    Raises:
        EncodeError: like `dumps`.
    """
    from fakekube.apimachinery.codecs.yaml.emitter import emit_item

    return emit_item(_as_read(value)).encode()


def _as_read(value: Any) -> Any:
    """Returns the value that go-yaml decodes from the value's JSON. go-yaml rejects control characters (JSON escapes
    only some of them) and long keys, and may break a line at U+0085.
    """
    text = json.dumps(value)
    if not _has_control_characters(text) and (max(map(len, text.split(b'"'))) < _LONG or not _LONG_KEY(text)):
        return value
    from fakekube.apimachinery.codecs.yaml import reader

    try:
        return reader.read(text)[0]
    except DecodeError as error:
        raise EncodeError(str(error)) from None

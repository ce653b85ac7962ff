"""YAML as sigs.k8s.io/yaml reads and writes it.

Since the real server passes on what it has read as JSON, keys are sorted and whole floats are integers. A body that
is JSON is read as JSON, which is many times faster; where YAML would read it in another way (members given twice,
escaped surrogates) it is read as YAML (`reader`). Reader and emitter are imported when they are first needed.

Specified by: sigs.k8s.io/yaml (yaml.go).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import orjson

from fakekube.codecs import json
from fakekube.codecs.errors import DecodeError, EncodeError

__all__ = ["STRICT_ERROR", "dumps", "item", "loads", "strict_error"]

#: How the error of a strict reader begins; its complaints follow, a line each.
STRICT_ERROR: Final = "yaml: unmarshal errors:\n  "

#: Escapes that JSON knows and YAML does not: of surrogates, and of the slash.
_OTHER_ESCAPES: Final = (b"\\ud", b"\\uD", b"\\/")
#: How a number in compact JSON ends that is none of Go's integers, or may be none, and how it begins before that. In a
#: string (`since 3.0, that is`) the two seldom stand together, and do no harm.
_ODD_END: Final = re.compile(rb"[0-9](?:[.eE][-+]?[0-9]++|(?<![0-9][0-9])[0-9]{17,}+)[,}\]]")
_BEGINNING: Final = re.compile(rb"[:,\[]-?[0-9]+(?:\.[0-9]+)?\Z")
_LONGEST: Final = 32


#: Control characters as they stand in JSON (the one in ASCII is looked for by itself), and keys that are too long.
_DELETE: Final = b"\x7f"
_CONTROL: Final = re.compile(rb"\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]").search
_LONG: Final = 1000
_LONG_KEY: Final = re.compile(rb'[{,]"(?:[^"\\]|\\.){1022,}+":').search


def loads(body: bytes) -> tuple[Any, list[str]]:
    """Read the first document of a body.

    Returns:
        The value as JSON data (None if there is no document), and what a strict reader complains of, a line
        each: `line 6: key "a" already set in map`. Of keys given twice the last one counts.

    Raises:
        DecodeError: in go-yaml's words.
    """
    from fakekube.codecs.yaml import reader

    if body[:1] == b"{" and not (_has_other_escapes(body) and _has_other_escapes(body.replace(rb"\\", b""))):
        try:
            value = orjson.loads(body)
            text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
            if text.count(b":") == body.count(b":"):
                return reader.as_json(value) if _holds_odd_number(text) else orjson.loads(text), []
        except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
            pass  # no JSON, then
    return reader.read(body)


def _has_other_escapes(body: bytes) -> bool:
    """May there be one? A backslash may also be the second half of an escaped one: `\\\\/`."""
    return b"\\" in body and any(escape in body for escape in _OTHER_ESCAPES)


def _holds_odd_number(text: bytes) -> bool:
    ends = (found.start() + 1 for found in _ODD_END.finditer(text))
    return any(_BEGINNING.search(text[max(end - _LONGEST, 0) : end]) for end in ends)


def strict_error(problems: Sequence[str]) -> str:
    """The error that YAMLToJSONStrict makes of the complaints of `loads`."""
    return STRICT_ERROR + "\n  ".join(problems)


def dumps(value: Any) -> bytes:
    """One document, with a newline at the end.

    Raises:
        EncodeError: not a number, or a text that YAML has no form for.
    """
    from fakekube.codecs.yaml.emitter import emit

    return emit(_as_read(value)).encode()


def item(value: dict[str, Any]) -> bytes:
    """An object as it stands in the items of a list.

    Raises:
        EncodeError: as `dumps`.
    """
    from fakekube.codecs.yaml.emitter import emit_item

    return emit_item(_as_read(value)).encode()


def _as_read(value: Any) -> Any:
    """What is written is what go-yaml reads in the value's JSON: it takes no control characters (JSON escapes but some
    of them) and no long keys, and a line may break where U+0085 stands.
    """
    text = json.dumps(value)
    odd = _DELETE in text or (not text.isascii() and _CONTROL(text))
    if not odd and (max(map(len, text.split(b'"'))) < _LONG or not _LONG_KEY(text)):
        return value
    from fakekube.codecs.yaml import reader

    try:
        return reader.read(text)[0]
    except DecodeError as error:
        raise EncodeError(str(error)) from None

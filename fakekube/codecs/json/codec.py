"""JSON as Go's encoding/json reads and writes it.

Reading: orjson does the work. What it refuses is read a second time by `golang.json_reader`, which either takes it,
because Go is more lenient (broken UTF-8, lone surrogates, 1e999, depth up to 10,000), or knows Go's words
for what is wrong. The same reader finds the paths of members that are given twice; that there are none is
proved cheaply: writing the value again yields as many colons as the body has.

Writing: orjson's compact form, with the characters escaped that Go escapes for HTML, and numbers as Go
prints them. Neither `dumps` nor `dumps_pretty` ends with a newline: the real server's compact answers do,
its indented ones do not, and watch events are framed; all that is the business of `codecs.formats` and
`codecs.framing`.

Specified by: Go's encoding/json (scanner.go, decode.go, encode.go) and sigs.k8s.io/json.
"""

from __future__ import annotations

import json as stdlib_json
import re
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite, isnan
from typing import Any, Final

import orjson

from fakekube.codecs.errors import DecodeError, EncodeError
from fakekube.golang.json_reader import JSONSyntaxError, Overflow, Reader, utf8
from fakekube.golang.json_writer import written

__all__ = [
    "Overflow", "dumps", "dumps_pretty", "first_values", "float_text", "literals", "loads", "members", "reread", "untyped",
    "utf8",
]

_INT64 = range(-(2**63), 2**63)


def _read(body: bytes, merge: bool, *, keep_first: bool = False) -> tuple[Any, list[str]]:
    """Read with Go's rules and words. Raises DecodeError."""
    try:
        return Reader(body, merge, keep_first=keep_first).read()
    except JSONSyntaxError as error:
        raise DecodeError(str(error)) from None


def loads(body: bytes, *, merge: bool = True) -> tuple[Any, list[str]]:
    """Read one JSON document.

    Integers stay integers whatever their size; what Go makes of them depends on the field (see `untyped`).

    Args:
        body: the bytes; broken UTF-8 becomes U+FFFD, byte by byte.
        merge: what becomes of a member that is given twice: as Go decodes into structs, two objects are
            merged; as Go decodes into untyped values (False), the last one counts.

    Returns:
        The value, and the paths of members given twice (`spec.containers[0].name`), in the order in which the
        second ones occur, each once and no more than 100.

    Raises:
        DecodeError: in Go's words.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _read(body, merge)
    try:
        again = orjson.dumps(value)
    except orjson.JSONEncodeError:  # nested too deep for orjson
        return _read(body, merge)
    if again == body:
        return value, []
    lost = again.count(b":") != body.count(b":")
    if lost or b"\\u003a" in body or b"\\u003A" in body or _LARGE.search(again):
        return _read(body, merge)
    return value, []


def first_values(body: bytes, *, merge: bool) -> Any:
    """What `loads` has read, of members given twice the first value: Go reads that one, too, and may refuse it."""
    return _read(body, merge, keep_first=True)[0]


def reread(text: bytes) -> Any:
    """Read what `dumps` has written, however deep it is; not for bodies.

    Raises:
        DecodeError: it is no JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _read(text, merge=False)[0]


def literals(body: bytes) -> Any:
    """Read once more what `loads` has read, numbers that are no integers as the text that stands there."""
    try:
        return stdlib_json.loads(utf8(body), parse_float=str)
    except (RecursionError, ValueError):  # nested too deep for that reader
        return None


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, those given twice included."""


def members(body: bytes) -> Iterator[str]:
    """The paths of all members (`spec.containers[0].name`) in their order, as often as they are given."""
    try:
        todo = [("", stdlib_json.loads(utf8(body), object_pairs_hook=_Pairs), False)]
    except (RecursionError, ValueError):  # nested too deep for that reader
        return
    while todo:
        path, value, is_member = todo.pop()
        if is_member:
            yield path
        if isinstance(value, _Pairs):
            todo.extend((f"{path}.{name}" if path else name, item, True) for name, item in reversed(value))
        elif isinstance(value, list):
            todo.extend((f"{path}[{index}]", item, False) for index, item in reversed(list(enumerate(value))))


def untyped(value: Any) -> Any:
    """Make of a value that was just read what Go holds without a type: integers beyond int64 become floats.

    Changes the tree in place, and returns it.

    Raises:
        DecodeError: a number is beyond float64.
    """
    root = [value]
    todo: list[Any] = [root]
    while todo:
        container = todo.pop()
        for key, item in container.items() if type(container) is dict else enumerate(container):
            kind = type(item)
            if kind is dict or kind is list:
                todo.append(item)
            elif kind is int and item not in _INT64:
                container[key] = float(item)
            elif kind is Overflow:
                what = f"number {item.literal} into Go value of type float64"
                raise DecodeError(f"json: cannot unmarshal {what}")
    return root[0]


def dumps(value: Any, *, floats: bool = True) -> bytes:
    """The compact form, as Go's json.Marshal prints it; no newline at the end.

    Args:
        value: plain JSON data.
        floats: there may be floats in it. False saves looking for those that Go prints in another way.

    Raises:
        EncodeError: a number is infinite or NaN, or there is something that JSON does not know.
    """
    return _dumps(value, 0, floats)


def dumps_pretty(value: Any) -> bytes:
    """The form indented by two spaces, as Go's json.MarshalIndent prints it; no newline at the end.

    Raises:
        EncodeError: a number is infinite or NaN, or the text would be longer than any document is.
    """
    try:
        return _dumps(value, orjson.OPT_INDENT_2, True)
    except OverflowError as error:
        raise EncodeError(f"json: {error}") from None


def _dumps(value: Any, option: int, floats: bool) -> bytes:
    try:
        text = orjson.dumps(value, option=option)
    except orjson.JSONEncodeError:  # nested too deep for orjson, an integer beyond 64 bits, an Overflow
        text = written(value, _scalar, pretty=bool(option))
    else:
        if floats and (_ends_number(text, _WHOLE) or _ends_number(text, _LARGE) or _ends_number(text, _SMALL)):
            text = written(value, _scalar, pretty=bool(option))
    if b"<" in text:
        text = text.replace(b"<", b"\\u003c")
    if b">" in text:
        text = text.replace(b">", b"\\u003e")
    if b"&" in text:
        text = text.replace(b"&", b"\\u0026")
    if not text.isascii():
        text = text.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return text


def _ending(pattern: bytes) -> re.Pattern[bytes]:
    """Finds where a number may end so. Patterns begin with a literal, for which a search is quick."""
    return re.compile(pattern + rb"(?:[,}\]\n]|\Z)")


#: What may be a float without a fraction, or with an exponent that Go does not need (1e+16, 1e-6).
_LARGE: Final = _ending(rb"e\+[0-9]+")
_WHOLE: Final = _ending(rb"\.0")
_SMALL: Final = _ending(rb"e-6")
#: The rest of a number before such an end; in a string (`since 1.0, that is`) it seldom looks so.
_BEGINNING: Final = re.compile(rb'(?:\A|[:,\[]|": |\n *)-?[0-9]+(?:\.[0-9]+)?\Z').search
_LONGEST: Final = 32


def _ends_number(text: bytes, ending: re.Pattern[bytes]) -> bool:
    """Is there an end of this kind that may be one of a number?"""
    if ending.search(text) is None:
        return False
    return any(_BEGINNING(text[max(found.start() - _LONGEST, 0) : found.start()]) for found in ending.finditer(text))


def float_text(number: float) -> str:
    """A float as Go's encoding/json prints it: shortest digits, an exponent only below 1e-6 and from 1e21.

    Raises:
        EncodeError: JSON has no infinity and no NaN.
    """
    if not isfinite(number):
        word = "NaN" if isnan(number) else "+Inf" if number > 0 else "-Inf"
        raise EncodeError(f"json: unsupported value: {word}")
    if number == 0 or 1e-6 <= abs(number) < 1e21:
        return format(Decimal(repr(number)), "f").removesuffix(".0")
    return repr(float(number)).replace("e-0", "e-")


def _scalar(value: Any) -> bytes:
    if isinstance(value, float):
        return float_text(value).encode()
    if type(value) is int:
        return b"%d" % value
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        if isinstance(value, str):  # surrogates, which are no characters
            return b'"%b"' % b"\\ufffd".join(orjson.dumps(text)[1:-1] for text in _SURROGATES(value))
        raise EncodeError(f"json: {error}") from None


_SURROGATES: Final = re.compile("[\ud800-\udfff]").split

"""Encodes and decodes JSON like Go's encoding/json.

Decoding uses orjson. If orjson rejects a body, `base.golang.json_reader` parses it again: either Go is more lenient
(invalid UTF-8, lone surrogates, 1e999, depth up to 10,000), or the reader returns Go's error. The same reader finds
the paths of duplicate members. Cheap checks prove that there are none: encoded again, the value gives the same text; or the text
names as many members as the value has.

Encoding uses orjson's compact form, escapes the characters that Go escapes for HTML, and prints numbers like Go.
Neither `dumps` nor `dumps_pretty` ends with a newline; `apimachinery.codecs.formats` and `apimachinery.codecs.formats` add it.

Specified by: Go's encoding/json (scanner.go, decode.go, encode.go) and sigs.k8s.io/json.
"""

from __future__ import annotations

import json as stdlib_json
import re
from collections.abc import Iterator
from math import isfinite, isnan
from typing import Any, Final

import orjson

from fakekube.apimachinery.codecs import DecodeError, EncodeError
from fakekube.base.golang.json_reader import JSONSyntaxError, Overflow, Reader, utf8
from fakekube.base.golang.json_writer import RawObject, plain_form, write_json
from fakekube.base.golang.strconv import INT64, json_float, unmarshal_error

__all__ = [
    "Overflow",
    "check_numbers",
    "dumps",
    "dumps_pretty",
    "dumps_with_texts",
    "first_values",
    "float_text",
    "is_canonical",
    "literals",
    "loads",
    "members",
    "reread",
    "to_untyped",
    "utf8",
]

_EXACT = 2.0**63


def _read(body: bytes, merge: bool, *, keep_first: bool = False) -> tuple[Any, list[str]]:
    """Parses with Go's rules and messages. Raises DecodeError."""
    try:
        return Reader(body, merge, keep_first=keep_first).read()
    except JSONSyntaxError as error:
        raise DecodeError(str(error)) from None


def loads(body: bytes, *, merge: bool = True) -> tuple[Any, list[str]]:
    """Decodes one JSON document.

    Integers of any size stay integers; their conversion depends on the field (see `to_untyped`).

    Args:
        body: the bytes; each invalid UTF-8 byte becomes U+FFFD.
        merge: how duplicate members are resolved: True merges two objects, as Go decodes into structs; False keeps
            the last value, as Go decodes into untyped values.

    Returns:
        The value, and the paths of duplicate members (`spec.containers[0].name`) in the order of the second
        occurrences, each once, at most 100.

    Raises:
        DecodeError: the body is not valid JSON.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _read(body, merge)
    if not _is_encoded_as(value, body) and _is_careful_reading_required(body, value):
        return _read(body, merge)
    return value, []


def _is_encoded_as(value: Any, body: bytes) -> bool:
    """Reports whether a body is the text of its value, compact or with spaces after colons and commas, as encoders write it.

    Only spaces are left out of both texts, so that they have the same members and numbers if what remains is equal.
    """
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:  # nested too deep
        return False
    found = body.rstrip(b"\n")  # with which Go's encoder ends
    return text == found or (len(text) < len(found) and _without_spaces(text) == _without_spaces(found))


def _without_spaces(text: bytes) -> bytes:
    return text.replace(b'": ', b'":').replace(b", ", b",")


#: White space between the name of a member and its colon, which no usual encoder writes; also matches in strings.
_SPACED_COLONS: Final = (b" :", b"\n:", b"\t:", b"\r:")
#: A string, and the colon that makes it the name of a member.
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"(\s*+:)?')


def _is_careful_reading_required(body: bytes, value: Any) -> bool:
    """Reports whether a JSON text may have duplicate members, or integers beyond 64 bits, which orjson rounds.

    The first counts of the members in the text may be too high, because of strings that contain JSON, but are never too low.
    """
    members, containers = 0, [value]
    for container in containers:
        if container.__class__ is dict:
            members += len(container)
        elif container.__class__ is not list:
            return container.__class__ is float and not -_EXACT < container < _EXACT
        for item in container.values() if container.__class__ is dict else container:
            kind = item.__class__
            if kind is str:
                continue
            if kind is dict or kind is list:
                containers.append(item)
            elif kind is float and not -_EXACT < item < _EXACT:
                return True
    spaces = [text for text in _SPACED_COLONS if text in body]
    if not spaces:
        names = body.count(b'":')
        # A quote after one backslash is in a string, as in managedFields ("k:{\"name\":…}"); after two it may end a name.
        if names == members or names - body.count(b'\\":') + body.count(b'\\\\":') == members:
            return False
    return sum(map(bool, _STRING.findall(body))) != members


def first_values(body: bytes, *, merge: bool) -> Any:
    """Decodes a body again, keeping the first of duplicate members: Go decodes that value, too, and may reject it."""
    return _read(body, merge, keep_first=True)[0]


def reread(text: bytes) -> Any:
    """Decodes the output of `dumps`, of any depth. Use `loads` for bodies.

    Raises:
        DecodeError: the text is not valid JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _read(text, merge=False)[0]


def literals(body: bytes) -> Any:
    """Decodes a body again, with numbers that are not integers as their literal text."""
    try:
        return stdlib_json.loads(utf8(body), parse_float=str)
    except (RecursionError, ValueError):  # nested too deep for that reader
        return None


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, duplicates included."""


def members(body: bytes) -> Iterator[str]:
    """Yields the paths of all members (`spec.containers[0].name`) in the order of the document, duplicates included."""
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


def to_untyped(value: Any) -> Any:
    """Converts a decoded value to what Go decodes without a type: integers beyond int64 become floats.

    Changes the tree in place, and returns it.

    Raises:
        DecodeError: a number is beyond float64.
    """
    try:
        orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
        return value
    except orjson.JSONEncodeError:  # an integer beyond 53 bits, an Overflow, invalid UTF-8, deep nesting
        return _to_untyped(value)


def _to_untyped(value: Any) -> Any:
    """Does the same by visiting each value."""
    root = [value]
    todo: list[Any] = [root]
    while todo:
        container = todo.pop()
        for key, item in container.items() if type(container) is dict else enumerate(container):
            kind = type(item)
            if kind is dict or kind is list:
                todo.append(item)
            elif kind is int and item not in INT64:
                container[key] = float(item)
            elif kind is Overflow:
                check_numbers(value)  # another may come before it in the document
    return root[0]


def check_numbers(value: Any) -> None:
    """Checks that Go can decode a value without a type.

    Raises:
        DecodeError: a number is beyond float64; the first one is told.
    """
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            todo.extend(reversed(item.values()))
        elif type(item) is list:
            todo.extend(reversed(item))
        elif type(item) is Overflow:
            raise DecodeError(unmarshal_error(f"number {item.literal}", "float64"))


def dumps(value: Any, *, floats: bool = True) -> bytes:
    """Encodes compact JSON like Go's json.Marshal, without a trailing newline.

    Args:
        value: plain JSON data.
        floats: the value may contain floats. False skips the search for floats that Go prints differently.

    Raises:
        EncodeError: a number is infinite or NaN, or a value has no JSON form.
    """
    return _dumps(value, 0, floats)


def dumps_with_texts(value: Any) -> bytes:
    """Encodes JSON in which values of any form have their own texts, as Protobuf has them (`dumps` removes spaces).

    Raises:
        EncodeError: see `dumps`.
    """
    try:
        return orjson.dumps(value, _with_text, orjson.OPT_PASSTHROUGH_SUBCLASS)
    except orjson.JSONEncodeError:  # an integer beyond 64 bits, deep nesting
        return dumps(value)


def _with_text(value: Any) -> Any:
    return orjson.Fragment(value.text) if isinstance(value, RawObject) else plain_form(value)


def dumps_pretty(value: Any) -> bytes:
    """Encodes JSON indented by two spaces like Go's json.MarshalIndent, without a trailing newline.

    Raises:
        EncodeError: a number is infinite or NaN, or the text exceeds the maximum length.
    """
    try:
        return _dumps(value, orjson.OPT_INDENT_2, True)
    except OverflowError as error:
        raise EncodeError(f"json: {error}") from None


def _dumps(value: Any, option: int, floats: bool) -> bytes:
    try:
        text = orjson.dumps(value, _indentable if option else plain_form, option | orjson.OPT_PASSTHROUGH_SUBCLASS)
    except orjson.JSONEncodeError:  # an Overflow, a RawObject to be indented, an integer beyond 64 bits, deep nesting
        text = write_json(value, _scalar, pretty=bool(option))
    else:
        if floats and _holds_number_to_rewrite(text):
            text = write_json(value, _scalar, pretty=bool(option))
    text = text.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
    if not text.isascii():
        text = text.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return text


#: What Go escapes, as numbers: to look for bytes, CPython raises an exception first.
_LESS, _GREATER, _AMPERSAND = b"<>&"


def is_canonical(text: bytes, *, floats: bool = True) -> bool:
    """Reports whether `dumps` certainly makes this text from the value that it has; `text` is the output of orjson."""
    if not text.isascii() or _LESS in text or _GREATER in text or _AMPERSAND in text:
        return False
    return not (floats and _holds_number_to_rewrite(text))


def _indentable(value: Any) -> Any:
    if isinstance(value, RawObject):  # orjson would not indent its text
        raise TypeError("not by orjson")
    return plain_form(value)


def _ending(pattern: bytes) -> re.Pattern[bytes]:
    """Compiles a pattern for the end of a number. Patterns begin with a literal, so that the search is fast."""
    return re.compile(pattern + rb"(?:[,}\]\n]|\Z)")


#: What may be an integer beyond 64 bits.
_LARGE: Final = _ending(rb"e\+[0-9]+")
#: What may be a float without a fraction, or with an exponent that Go does not need (1e+16, 1e-6): a byte of its end, and the
#: pattern. To look for several bytes takes longer than the pattern does.
_ENDS: Final = ((b".", _ending(rb"\.0")), (b"+", _LARGE), (b"-", _ending(rb"e-6")))
#: The rest of a number before such an end; in a string (`since 1.0, that is`) it seldom looks so.
_BEGINNING: Final = re.compile(rb'(?:\A|[:,\[]|": |\n *)-?[0-9]+(?:\.[0-9]+)?\Z').search
_LONGEST: Final = 32


def _holds_number_to_rewrite(text: bytes) -> bool:
    """Reports whether the output of orjson may hold a number that Go prints in another form."""
    for byte, ending in _ENDS:  # noqa: SIM110 - in each encoding; a generator costs more
        if byte in text and ending.search(text) and _ends_number(text, ending):
            return True
    return False


def _ends_number(text: bytes, ending: re.Pattern[bytes]) -> bool:
    """Reports whether a match of the pattern may be the end of a number."""
    return any(_BEGINNING(text[max(found.start() - _LONGEST, 0) : found.start()]) for found in ending.finditer(text))


def float_text(number: float) -> str:
    """Prints a float like Go's encoding/json.

    Raises:
        EncodeError: the number is infinite or NaN.
    """
    if not isfinite(number):
        word = "NaN" if isnan(number) else "+Inf" if number > 0 else "-Inf"
        raise EncodeError(f"json: unsupported value: {word}")
    return json_float(number)


def _scalar(value: Any) -> bytes:
    if isinstance(value, float):
        return float_text(value).encode()
    if type(value) is int:
        return b"%d" % value
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        if isinstance(value, str):  # surrogates, which orjson rejects
            return b'"%b"' % b"\\ufffd".join(orjson.dumps(text)[1:-1] for text in _SURROGATES(value))
        raise EncodeError(f"json: {error}") from None


_SURROGATES: Final = re.compile("[\ud800-\udfff]").split

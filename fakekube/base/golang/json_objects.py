"""Parses strings within objects that must contain JSON, with the error messages of Go's encoding/json.

Package `codecs` decodes the bodies of requests.

Specified by: encoding/json (scanner.go, decode.go) of Go.
"""

from __future__ import annotations

import json
from typing import Any

from fakekube.base.golang.json_reader import JSONSyntaxError, Reader
from fakekube.base.golang.strconv import json_kind


class JSONError(ValueError):
    """A text is not valid JSON, or is JSON of another type than expected. The message is Go's."""


class Fraction(str):
    """The text of a number with a fraction or an exponent."""

    __slots__ = ()


def parse(text: bytes) -> Any:
    """Parses a JSON text; numbers with a fraction or an exponent become `Fraction`s.

    Raises:
        JSONError: the text is not valid JSON.
        RecursionError: the nesting is too deep.
    """
    try:
        return json.loads(text.decode("utf-8", "replace"), parse_constant=_refuse, parse_float=Fraction)
    except ValueError:
        raise JSONError(_syntax_error(text)) from None


def object_error(text: bytes) -> str:
    """Returns Go's error for decoding this text into a map[string]interface{}; "" if there is none."""
    try:
        value = parse(text)
    except RecursionError:
        return ""
    except JSONError as problem:
        return str(problem)
    if value is None or isinstance(value, dict):
        return ""
    return f"json: cannot unmarshal {json_kind(value)} into Go value of type map[string]interface {{}}"


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _syntax_error(text: bytes) -> str:
    try:
        Reader(text, merge=False).read()
    except JSONSyntaxError as error:
        return str(error)
    return ""

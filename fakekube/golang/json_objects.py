"""Texts within objects that should be JSON: read, and told wrong in the words of Go's encoding/json.

Bodies of requests are read elsewhere (`codecs`).

Specified by: encoding/json (scanner.go, decode.go) of Go.
"""

from __future__ import annotations

import json
from typing import Any

from fakekube.golang.json_reader import JSONSyntaxError, Reader
from fakekube.golang.quoting import json_kind

__all__ = ["Fraction", "JSONProblem", "object_problem", "parsed"]

class JSONProblem(ValueError):
    """A text is no JSON, or not the JSON that it should be; the words are Go's."""


class Fraction(str):
    """A number that was not written as an integer."""

    __slots__ = ()


def parsed(text: bytes) -> Any:
    """The value of a text; numbers with a fraction or an exponent are `Fraction`s.

    Raises:
        JSONProblem: it is no JSON.
        RecursionError: it is too deep.
    """
    try:
        return json.loads(text.decode("utf-8", "replace"), parse_constant=_refuse, parse_float=Fraction)
    except ValueError:
        raise JSONProblem(_syntax_error(text)) from None


def object_problem(text: bytes) -> str:
    """What Go says when it is to read an object from this text; "" if it can."""
    try:
        value = parsed(text)
    except RecursionError:
        return ""
    except JSONProblem as problem:
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

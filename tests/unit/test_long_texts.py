"""Texts of a million characters are parsed in linear time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from fakekube.apimachinery.cel.checker import check
from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.evaluation import program
from fakekube.apimachinery.cel.parser import parse
from fakekube.apimachinery.cel.types import STRING
from fakekube.apimachinery.codecs import EncodeError, json, yaml
from fakekube.apimachinery.schema import quantity
from fakekube.apiserver.endpoints import negotiation
from fakekube.base.depth import call_with_deep_stack
from fakekube.base.golang import timestamps

MANY = 1_000_000


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (quantity.parse, "1" * MANY + "!"),
        (quantity.parse, "0" * MANY + "!"),
        (quantity.parse, "1." + "1" * MANY + "!"),
        (timestamps.parse_duration, "0" * MANY + "!"),
        (timestamps.parse_spelled_duration, "1" * MANY + "!"),
    ],
    ids=["digits", "zeros", "fraction", "duration", "spelled"],
)
def test_long_invalid_texts_are_rejected_in_linear_time(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r"(?s).{10}"):
        read(text)


@pytest.mark.parametrize("text", ["1" * MANY + "!", "0x" + "1" * MANY + "!", "." * MANY])
def test_long_numbers_in_cel_expressions(text: str) -> None:
    value, _ = program(check("double(x)", parse("double(x)"), {"x": STRING})).evaluate({"x": text})
    assert isinstance(value, EvaluationError)


def test_long_weights_of_media_types() -> None:
    assert negotiation.clauses("a/b;q=" + "1" * MANY + "!")


@pytest.mark.parametrize("text", ["1" * MANY, "1." * (MANY // 2), "e+" * (MANY // 2)])
def test_long_digit_strings_in_yaml(text: str) -> None:
    assert yaml.loads(f'{{"a":"{text}"}}'.encode()) == ({"a": text}, [])


@pytest.mark.parametrize("text", ['"' * MANY, "\\" * MANY, ', "' * (MANY // 3), "a: " * (MANY // 3)])
def test_long_texts_round_trip_through_yaml(text: str) -> None:
    assert yaml.loads(yaml.dumps({"a": text})) == ({"a": text}, [])


def test_indented_output_too_large_for_memory_is_rejected() -> None:
    value: object = [1] * 200_000
    for _ in range(9_000):
        value = [value]
    for write in (json.dumps_pretty, yaml.dumps):
        with pytest.raises(EncodeError, match="too long"):
            call_with_deep_stack(partial(write, value))
    assert len(json.dumps(value)) == 18_000 + 400_001

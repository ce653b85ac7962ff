"""Repeated values are encoded once and never confused with others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs.document import cached_encoder
from tests.unit.apimachinery.schema.values import json_values


def counted() -> tuple[list[Any], Any]:
    made: list[Any] = []

    def encode(value: Any) -> bytes:
        made.append(value)
        return repr(value).encode()

    return made, cached_encoder(encode)


def test_equal_items_are_encoded_once() -> None:
    made, encode = counted()
    for _ in range(3):
        assert encode({"name": "a", "ports": [80]}) == b"{'name': 'a', 'ports': [80]}"
    assert len(made) == 1


@given(st.lists(json_values))
def test_cached_result_equals_the_function_result(values: list[Any]) -> None:
    _, encode = counted()
    for value in [*values, *values]:
        assert encode(value) == repr(value).encode()


@pytest.mark.parametrize(
    ("one", "other"), [(0.0, -0.0), (1, 1.0), (1, True), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (None, "null")]
)
def test_similar_values_of_different_types_are_distinguished(one: Any, other: Any) -> None:
    _, encode = counted()
    assert (encode([one]), encode([other])) == (repr([one]).encode(), repr([other]).encode())


@pytest.mark.parametrize("value", [2**64, b"bytes", "\udcff", {1: 2}, "a" * 5000])
def test_long_or_ambiguous_values_are_not_cached(value: Any) -> None:
    made, encode = counted()
    assert encode([value]) == encode([value]) == repr([value]).encode()
    assert len(made) == 2


def test_a_full_cache_is_cleared() -> None:
    made, encode = counted()
    for number in range(1, 1000):
        encode(0)
        encode(-1)  # the last one that was found is remembered
        encode(number)
    assert 2 <= made.count(0) <= 10
    assert len(made) == 999 + made.count(0) + made.count(-1)


def test_values_that_all_differ_are_seldom_looked_up_until_one_is_found_again() -> None:
    made, encode = counted()
    for number in range(10_000):
        encode(number)
    assert len(made) == 10_000
    made.clear()
    for _ in range(100):
        encode("same")
    assert 2 <= len(made) <= 40
    made.clear()
    for _ in range(100):
        encode("same")
    assert made == []

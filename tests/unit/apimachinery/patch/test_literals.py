from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.patch import literals

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_json, st.booleans(), st.sampled_from([None, 1]))
def test_values_are_equal_when_read_with_literals(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert literals.without_literals(literals.loads_with_literals(text.encode())) == value


def test_literals_keep_their_source_text() -> None:
    read = literals.loads_with_literals(rb'{"a": "\u0041,}", "b": [1.50, -0]}')
    assert literals.literal_text(read["a"]) == r'"\u0041,}"'
    assert [literals.literal_text(item) for item in read["b"]] == ["1.50", "-0"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [(b'{"a":"b"}', False), (b'{"a":1}', False), (b'{"a":1.0}', True), (rb'{"a":"\n"}', True), (b'{"a":"<"}', True)],
)
def test_bodies_with_ambiguous_literals_are_detected(body: bytes, expected: bool) -> None:
    assert literals.has_ambiguous_literals(body) is expected


@pytest.mark.parametrize(
    ("value", "text"),
    [("é<&>", '"é\\u003c\\u0026\\u003e"'), (1.0, "1"), (1.5, "1.5"), (True, "true"), (None, "null"), (10**20, "1" + "0" * 20)],
)
def test_literal_text_of_scalars_is_that_of_go(value: Any, text: str) -> None:
    assert literals.literal_text(value) == text


def test_go_json_sorts_members() -> None:
    assert literals.go_json({"b": [1.0, {"d": "<", "c": 2}], "a": None}) == '{"a":null,"b":[1,{"c":2,"d":"\\u003c"}]}'


def test_values_without_literals_are_shared() -> None:
    value = {"a": [1, {"b": "c"}]}
    assert literals.without_literals(value) is value


def test_as_written_reproduces_the_source_text() -> None:
    text = r'{"a":"\u00e9","b":[1.0,1e3,null,true,{"c":"\u003c"}]}'
    assert literals.as_written(literals.loads_with_literals(text.encode())) == text
    assert literals.as_written({"a": "<é>", "b": [2.0, 3]}) == r'{"a":"\u003cé\u003e","b":[2,3]}'

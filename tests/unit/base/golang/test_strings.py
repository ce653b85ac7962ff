"""Strings with bytes that are not valid UTF-8, and messages of several errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import json, yaml
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import aggregate_errors, bytes_of, json_text, readable, text_of


@given(st.binary(max_size=20))
def test_arbitrary_bytes_round_trip(data: bytes) -> None:
    assert bytes_of(text_of(data)) == data


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_valid_utf8_is_unchanged(text: str) -> None:
    assert text_of(text.encode()) == text == readable(text)


def test_invalid_utf8_in_json_yaml_and_quoted_text() -> None:
    text = text_of(b"a\xff\xc3(\xed\xa0\x80")
    assert readable(text) == "a\ufffd\ufffd(\ufffd\ufffd\ufffd"
    assert go_quote(text) == r'"a\xff\xc3(\xed\xa0\x80"'
    assert json.dumps({text: [text]}) == rb'{"a\ufffd\ufffd(\ufffd\ufffd\ufffd":["a\ufffd\ufffd(\ufffd\ufffd\ufffd"]}'
    assert yaml.dumps({"k": text_of(b"a\xff")}) == "k: a\ufffd\n".encode()


@pytest.mark.parametrize(
    ("value", "text"), [({"b": "x", "a": [1, None]}, '{"b":"x","a":[1,null]}'), ({"b": "ü\udcff"}, '{"b":"ü\\ufffd"}')]
)
def test_json_text_of_invalid_utf8(value: object, text: str) -> None:
    assert json_text(value) == text


def test_json_text_with_sorted_keys() -> None:
    assert json_text({"b": "\udcff", "a": 1}, sort_keys=True) == '{"a":1,"b":"\\ufffd"}'


@pytest.mark.parametrize(
    ("messages", "expected"), [([], ""), (["a"], "a"), (["a", "b"], "[a, b]"), (["a", "a"], "a"), (["a", "b", "a"], "[a, b]")]
)
def test_aggregated_errors_are_in_brackets_if_they_differ(messages: list[str], expected: str) -> None:
    assert aggregate_errors(messages) == expected

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import json as codec
from fakekube.base.golang.json_writer import RawObject

_texts = st.text(st.sampled_from('ab "\\{}[],:é'), max_size=6)
_values = st.recursive(
    _texts | st.integers(-3, 3) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(_texts, _values, max_size=4)


@given(_objects, st.sampled_from([None, 1, 3]))
def test_raw_object_is_printed_compact_or_indented(value: dict[str, Any], indent: int | None) -> None:
    raw = RawObject(value, json.dumps(value, ensure_ascii=False, indent=indent).encode())
    assert raw.compact.decode() == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert raw.indent(0).decode() == json.dumps(value, ensure_ascii=False, indent=2)


@pytest.mark.parametrize(
    ("encode", "expected"),
    [
        (codec.dumps, b'{"x":{"a":1.0,"b":[1e2]}}'),
        (codec.dumps_pretty, b'{\n  "x": {\n    "a": 1.0,\n    "b": [\n      1e2\n    ]\n  }\n}'),
    ],
)
def test_raw_object_text_is_embedded_in_documents(encode: Any, expected: bytes) -> None:
    assert encode({"x": RawObject({"a": 1.0, "b": [100.0]}, b'{ "a": 1.0, "b": [1e2] }')}) == expected


def test_raw_objects_are_compared_by_text() -> None:
    raw = RawObject({"a": 1}, b'{"a": 1}')
    assert raw == RawObject({"a": 1}, b'{"a": 1}')
    assert raw != RawObject({"a": 1}, b'{"a":1}')
    assert raw != {"a": 1}


def test_html_characters_are_escaped_as_in_go() -> None:
    text = '{ "<": "&>\u2028" }'
    assert RawObject(json.loads(text), text.encode()).compact == b'{"\\u003c":"\\u0026\\u003e\\u2028"}'

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.patch.apply import fieldpath


@pytest.mark.parametrize(
    ("element", "text", "printed"),
    [
        (fieldpath.field("a.b/c"), "f:a.b/c", ".a.b/c"),
        (fieldpath.key("name", "x"), 'k:{"name":"x"}', '[name="x"]'),
        (fieldpath.key("port", 80, "protocol", "TCP"), 'k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]'),
        (fieldpath.key("port", {"b": 1, "a": [None]}), 'k:{"port":{"a":[null],"b":1}}', "[port=a=[null]b=1]"),
        (fieldpath.value("x"), 'v:"x"', '[="x"]'),
        (fieldpath.value("a<b\n\b"), 'v:"a\\u003cb\\n\\u0008"', '[="a<b\\n\\b"]'),
        (fieldpath.value(1), "v:1", "[=1]"),
        (fieldpath.value(1.0), "v:1", "[=1]"),
        (fieldpath.value(1.5), "v:1.5", "[=1.5]"),
        (fieldpath.value(True), "v:true", "[=true]"),
        ("i:3", "i:3", "[3]"),
    ],
)
def test_path_elements_and_their_printed_form(element: str, text: str, printed: str) -> None:
    assert element == text
    assert fieldpath.print_element(element) == printed
    assert fieldpath.canonical(element) == element


def test_equal_values_of_different_types_are_different_elements() -> None:
    assert len({fieldpath.key("k", 1), fieldpath.key("k", True), fieldpath.key("k", "1")}) == 3
    assert fieldpath.key("k", 1) == fieldpath.key("k", 1.0)


def test_printed_path() -> None:
    path = (fieldpath.field("spec"), fieldpath.key("name", "x"), fieldpath.value("y"))
    assert fieldpath.print_path(path) == '.spec[name="x"][="y"]'


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ('k:{"b": 2, "a": "x"}', 'k:{"a":"x","b":2}'),
        ("v: 1.0", "v:1"),
        ('v:"\\u00e9"', 'v:"é"'),
        ("i:01", "i:1"),
        ("f:", "f:"),
        ("x:anything", None),
    ],
)
def test_noncanonical_elements_are_normalized(text: str, element: str | None) -> None:
    assert fieldpath.canonical(text) == element


@pytest.mark.parametrize("text", ["", "f", "name", "k:x", "k:[]", "v:", "v:{", "i:x", "i:"])
def test_invalid_path_elements_are_rejected(text: str) -> None:
    with pytest.raises(fieldpath.ElementError):
        fieldpath.canonical(text)


def test_order_of_path_elements() -> None:
    in_order = [
        fieldpath.SELF,
        "f:a",
        "f:b",
        'k:{"a":2}',
        'k:{"a":10}',
        'k:{"a":10,"b":1}',
        'k:{"a":"1"}',
        'k:{"b":1}',
        "v:-1",
        "v:1.5",
        "v:2",
        'v:"10"',
        'v:"9"',
        "v:false",
        "v:true",
        "v:null",
        "i:2",
        "i:10",
    ]
    assert sorted(set(in_order), key=fieldpath.order) == in_order


_scalars = (
    st.text(max_size=5) | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.dictionaries(st.text(max_size=3), _scalars, min_size=1, max_size=3))
def test_printed_keys_can_be_parsed(keys: dict[str, Any]) -> None:
    pairs = [part for name in sorted(keys) for part in (name, keys[name])]
    element = fieldpath.key(*pairs)
    assert fieldpath.canonical(element) == element
    fieldpath.order(element)
    assert fieldpath.print_element(element).startswith("[")

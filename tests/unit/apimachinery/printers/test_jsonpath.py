"""Paths as client-go walks them; the real server filled the cells of a table with the same values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.printers import jsonpath

OBJECT: dict[str, Any] = {
    "a": "x", "z": None, "l": [1, 2, 3, 4], "e": [], "m": {"k.d": "dot", "k": {"v": 1}},
    "parts": [{"id": "p", "on": True, "n": 3, "s": [1]}, {"id": "q", "n": 7}, {"id": "r", "on": False}], "labels": {"a/b": "slash"},
}  # fmt: skip

FOUND: list[tuple[str, list[Any]]] = [
    (".a", ["x"]), ("$.a", ["x"]), ("@.a", ["x"]), (".missing", []), (".z", [None]), (".['a']", []), ("['a']", ["x"]),
    (".l[0]", [1]), (".l[-1]", [4]), (".l[9]", []), (".l[-9]", []), (".l[1:3]", [2, 3]), (".l[::2]", [1, 3]), (".l[3:1]", []),
    (".l[0:9]", []), (".l[*]", [1, 2, 3, 4]), (".l[0,2]", [1, 3]), (".e[0]", []), (".a[0]", []), (".z[0]", []),
    (".parts[*].id", ["p", "q", "r"]), (".parts[-1:].id", ["r"]), (".parts[:2].id", ["p", "q"]), (".parts[::-1].id", []),
    (".parts[?(@.on)].id", ["p", "r"]), (".parts[?(@.on==true)].id", ["p"]), (".parts[?(@.on==false)].id", ["r"]),
    (".parts[?(@.id=='q')].n", [7]), ('.parts[?(@.id=="q")].n', [7]), (".parts[?(@.id!='q')].id", ["p", "r"]),
    (".parts[?(@.n>3)].id", ["q"]), (".parts[?(@.n<=3)].id", ["p"]), (".parts[?(@.n>='a')].id", []), (".parts[?(@.s[0]==1)].id", ["p"]),
    (".m['k\\.d']", ["dot"]), (".m.k\\.d", ["dot"]), (".labels['a/b']", ["slash"]), (".labels.a/b", ["slash"]), (".labels.*", ["slash"]),
    ("..id", ["p", "q", "r"]), (".parts[0]..s", [[1]]), ("", [OBJECT]), (".", []), ("'text'", ["text"]), ("5", [5]), ("-5.5", [-5.5]),
    ("true", [True]), ("foo", []),
]  # fmt: skip

BROKEN = [
    ("{.a}", "unrecognized character in action: U+007B '{'"),
    (".a]", "unrecognized character in action: U+005D ']'"),
    (".l[", "unterminated array"),
    (".l[a]", "invalid array index a"),
    (".l[-]", "array index - is not a number"),
    (".parts[?(@.id", "unterminated filter"),
    (".parts[?(@.id=='q')", "unclosed array expect ]"),
    ("....", "invalid multiple recursive descent"),
    ("1.2.3", "cannot parse number 1.2.3"),
    ('"x', "unterminated quoted string"),
    ("\n", "unclosed action"),
]


@pytest.mark.parametrize(("path", "values"), FOUND)
def test_values_found_by_paths(path: str, values: list[Any]) -> None:
    assert jsonpath.parse(path).find(OBJECT) == values


@pytest.mark.parametrize(("path", "message"), BROKEN)
def test_invalid_paths(path: str, message: str) -> None:
    with pytest.raises(jsonpath.PathError) as caught:
        jsonpath.parse(path)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("<x>", "<x>"), (None, "<no value>"), (True, "true"), (5, "5"), (2.0, "2"), (0.5, "0.5"), (1e300, "1e+300"),
        ({"b": 1, "a": ["<"]}, '{"a":["\\u003c"],"b":1}'), ([], "[]"),
    ],
)  # fmt: skip
def test_values_formatted_as_text(value: Any, text: str) -> None:
    assert jsonpath.text(value) == text


@given(st.lists(st.sampled_from([*".[]*?(@)'\"\\,:-0159 \n=<>!{}$é", "..", "a", "parts", "id", "l"]), max_size=15).map("".join))
def test_arbitrary_text_parses_or_raises_path_error(path: str) -> None:
    try:
        parsed = jsonpath.parse(path)
    except jsonpath.PathError:
        return
    assert isinstance(parsed.find(OBJECT), list)

"""Path elements: the names of fields, list items and set members in a field set.

An element is a string of FieldsV1:

* `f:NAME`, a field of an object;
* `k:{"KEY":VALUE,…}`, the item of a keyed list (keys sorted);
* `v:VALUE`, the item of a set;
* `i:INDEX`, a position (only in sets of clients).

Invariant: equal elements are equal strings, since this module has one canonical form; elements from clients are
converted by `canonical`. Paths are tuples of elements.

Specified by: sigs.k8s.io/structured-merge-diff/fieldpath (element.go, serialize-pe.go) and value (value.go,
fields.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from fakekube.base.golang.fmt import plain
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import json_text

Path = tuple[str, ...]

#: In a tree of elements: the parent itself is a member of the set.
SELF: Final = "."

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\b": "\\u0008", "\f": "\\u000c"}
_ESCAPES |= {"\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPED = re.compile("[<>&\b\f\u2028\u2029]")
_BACKSPACE_OR_FEED = re.compile(r"(?<!\\)((?:\\\\)*)\\([bf])")


class ElementError(ValueError):
    """A string is not a valid path element."""


def field(name: str) -> str:
    return f"f:{name}"


def value(item: Any) -> str:
    """Returns the path element of an item of a set, a scalar."""
    return _string_value(item) if isinstance(item, str) else f"v:{_json(item)}"


@lru_cache(maxsize=4096)
def _string_value(item: str) -> str:
    return f"v:{_json(item)}"


def key(*names_and_values: Any) -> str:
    """Returns the path element of an item of an associative list; `names` (sorted) and values alternate in the arguments."""
    try:
        return _known_key(*names_and_values)
    except TypeError:
        return _key(*names_and_values)


def _key(*names_and_values: Any) -> str:
    pairs = zip(names_and_values[::2], names_and_values[1::2], strict=True)
    return "k:{" + ",".join(f"{_json(name)}:{_json(item)}" for name, item in pairs) + "}"


# `typed` distinguishes 1 from True and 1.0; unhashable values raise a TypeError.
_known_key = lru_cache(maxsize=8192, typed=True)(_key)


def _json(item: Any) -> str:
    """Encodes a value as JSON as in path elements."""
    if isinstance(item, str):
        text = json_text(item)
        if "\\" in text:
            text = _BACKSPACE_OR_FEED.sub(lambda m: m[1] + _ESCAPES["\b" if m[2] == "b" else "\f"], text)
        return _ESCAPED.sub(lambda m: _ESCAPES[m[0]], text)
    if isinstance(item, float) and item.is_integer() and abs(item) < 1e21:
        return str(int(item))
    if isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    if isinstance(item, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(item[name])}" for name in sorted(item)) + "}"
    if isinstance(item, list):
        return f"[{','.join(map(_json, item))}]"
    return json_text(item)


@lru_cache(maxsize=8192)
def canonical(text: str) -> str | None:
    """Parses a path element of a client and returns its canonical form; None for an unknown prefix, which sets
    ignore.

    Raises:
        ElementError: the string is not a valid path element.
    """
    kind, content = text[:2], text[2:]
    if len(kind) < 2 or kind[1] != ":":
        raise ElementError(text)
    if kind == "f:":
        return text
    if kind == "v:":
        return f"v:{_json(_loads(content))}"
    if kind == "k:":
        keys = _loads(content)
        if not isinstance(keys, dict):
            raise ElementError(text)
        return _key(*_flat(keys))
    if kind == "i:":
        if not re.fullmatch(r"[+-]?[0-9]+", content):
            raise ElementError(text)
        return f"i:{int(content)}"
    return None


def _flat(keys: Mapping[str, Any]) -> Iterable[Any]:
    for name in sorted(keys):
        yield name
        yield keys[name]


def _loads(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        raise ElementError(text) from None


@lru_cache(maxsize=8192)
def order(element: str) -> tuple[Any, ...]:
    """Returns the sort key of path elements: fields, keys, values, indexes."""
    kind, content = element[:2], element[2:]
    if kind == "f:":
        return 1, content
    if kind == "k:":
        return 2, tuple((name, _rank(item)) for name, item in orjson.loads(content).items())
    if kind == "v:":
        return 3, _rank(orjson.loads(content))
    return (4, int(content)) if kind == "i:" else (0,)


def _rank(item: Any) -> tuple[Any, ...]:
    """Returns a sort key that is a total order of JSON values: numbers, strings, booleans, lists, objects, null."""
    if isinstance(item, bool):
        return 2, item
    if isinstance(item, int | float):
        return 0, item
    if isinstance(item, str):
        return 1, item
    if isinstance(item, list):
        return 3, tuple(map(_rank, item))
    if isinstance(item, dict):
        return 4, tuple((name, _rank(item[name])) for name in sorted(item))
    return (5,)


def printed(element: str) -> str:
    """Prints a path element as in error messages: `.name`, `[key="x"]`, `[="x"]`, `[0]`."""
    kind, content = element[:2], element[2:]
    if kind == "f:":
        return f".{content}"
    if kind == "k:":
        keys = orjson.loads(content)
        return "[" + ",".join(f"{name}={_printed_value(item)}" for name, item in keys.items()) + "]"
    if kind == "v:":
        return f"[={_printed_value(orjson.loads(content))}]"
    return f"[{content}]"


def printed_path(path: Path) -> str:
    return "".join(map(printed, path))


def _printed_value(item: Any) -> str:
    if isinstance(item, str):
        return go_quote(item)
    if isinstance(item, list):
        return f"[{','.join(map(_printed_value, item))}]"
    if isinstance(item, dict):
        return "".join(f"{name}={_printed_value(entry)}" for name, entry in item.items())
    return "null" if item is None else plain(item)

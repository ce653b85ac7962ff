"""jq, as far as stages use it: paths, indexes, iteration, pipes, select, comparisons.

A query returns a list of values. Errors of jq and nulls give no values, as in kwok, which ignores failed queries.

Specified by: the jq manual (Basic filters, Conditionals and Comparisons); sigs.k8s.io/kwok/pkg/utils/expression/query.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from fakekube.nodes.stages import StageError

#: Returns the values that a query finds in a value, without nulls.
Query = Callable[[Any], list[Any]]

_Filter = Callable[[Any], Iterator[Any]]

_TOKEN: Final = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?)|([A-Za-z_]\w*)|(==|!=|<=|>=|\.\.|//|[.|\[\](),<>?]))')

_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: (type(a) is type(b) and a == b) or (_is_number(a) and _is_number(b) and a == b),
    "!=": lambda a, b: not _COMPARISONS["=="](a, b),
    "<": lambda a, b: _comparable(a, b) and a < b,
    ">": lambda a, b: _comparable(a, b) and a > b,
    "<=": lambda a, b: _comparable(a, b) and a <= b,
    ">=": lambda a, b: _comparable(a, b) and a >= b,
}


class _Failed(Exception):
    """An error of jq."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _comparable(one: Any, other: Any) -> bool:
    return (_is_number(one) and _is_number(other)) or (isinstance(one, str) and isinstance(other, str))


@lru_cache(maxsize=512)
def compile_query(text: str) -> Query:
    """Compiles a query. Raises StageError if it is malformed or uses something unsupported."""
    filter_ = _Parser(text).parse_query()

    def run(value: Any) -> list[Any]:
        try:
            return [one for one in filter_(value) if one is not None]
        except _Failed:
            return []

    return run


class _Parser:
    """A recursive descent parser."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        place = 0
        while place < len(text) and text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                raise StageError(f"jq: {text[place:].strip()[:20]!r} is not supported in {text!r}")
            self._tokens.append(next(group for group in found.groups() if group is not None))
            place = found.end()
        self._place = 0

    def _look(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, wanted: str = "") -> str:
        token = self._look()
        if not token or (wanted and token != wanted):
            raise StageError(f"jq: {self._text!r} ends too early, or {token!r} is not supported there")
        self._place += 1
        return token

    def parse_query(self) -> _Filter:
        made = self._pipe()
        if self._look():
            raise StageError(f"jq: {self._look()!r} is not supported in {self._text!r}")
        return made

    def _pipe(self) -> _Filter:
        left = self._alternative()
        while self._look() == "|":
            self._take()
            left = _pipe_filters(left, self._alternative())
        return left

    def _alternative(self) -> _Filter:
        left = self._logic("or", lambda: self._logic("and", self._comparison))
        while self._look() == "//":
            self._take()
            left = _first_of(left, self._comparison())
        return left

    def _logic(self, word: str, below: Callable[[], _Filter]) -> _Filter:
        left = below()
        while self._look() == word:
            self._take()
            left = _logical(word, left, below())
        return left

    def _comparison(self) -> _Filter:
        left = self._term()
        if self._look() in _COMPARISONS:
            return _compare_filter(self._take(), left, self._term())
        return left

    def _term(self) -> _Filter:
        token = self._take()
        if token == ".":
            return self._suffixes(self._after_dot(_identity))
        if token == "(":
            inner = self._pipe()
            self._take(")")
            return self._suffixes(inner)
        if token in ("select", "map", "has"):
            self._take("(")
            inner = self._pipe()
            self._take(")")
            return self._suffixes({"select": _select, "map": _map, "has": _has}[token](inner))
        if token in ("length", "not", "keys", "tostring", "tonumber"):
            return self._suffixes(_function_filter(token))
        if token[0] == '"' or token[0] in "-0123456789" or token in ("true", "false", "null"):
            return _constant(json.loads(token))
        raise StageError(f"jq: {token!r} is not supported in {self._text!r}")

    def _after_dot(self, base: _Filter) -> _Filter:
        """Parses what follows a dot: a name, a quoted name, or nothing."""
        token = self._look()
        if token and (token[0].isalpha() or token[0] == "_"):
            return _pipe_filters(base, _index(self._take()))
        if token and token[0] == '"':
            return _pipe_filters(base, _index(json.loads(self._take())))
        return base

    def _suffixes(self, base: _Filter) -> _Filter:
        while True:
            token = self._look()
            if token == ".":
                self._take()
                if self._look() == "[":
                    continue
                base = self._after_dot(base)
            elif token == "[":
                self._take()
                if self._look() == "]":
                    base = _pipe_filters(base, _iterate)
                else:
                    base = _index_filter(base, self._pipe())
                self._take("]")
            elif token == "?":
                self._take()
                base = _quiet(base)
            else:
                return base


def _identity(value: Any) -> Iterator[Any]:
    yield value


def _constant(constant: Any) -> _Filter:
    return lambda value: iter((constant,))


def _pipe_filters(left: _Filter, right: _Filter) -> _Filter:
    return lambda value: (found for one in left(value) for found in right(one))


def _index(key: Any) -> _Filter:
    return lambda value: iter((_value_at(value, key),))


def _index_filter(base: _Filter, key: _Filter) -> _Filter:
    return lambda value: (_value_at(one, found) for one in base(value) for found in key(value))


def _value_at(value: Any, key: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool):
        return value[key] if -len(value) <= key < len(value) else None
    raise _Failed


def _iterate(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(value.values())
    if isinstance(value, list):
        return iter(value)
    raise _Failed


def _quiet(base: _Filter) -> _Filter:
    def run(value: Any) -> Iterator[Any]:
        try:
            yield from base(value)
        except _Failed:
            return

    return run


def _select(condition: _Filter) -> _Filter:
    return lambda value: (value for found in condition(value) if found not in (None, False))


def _map(inner: _Filter) -> _Filter:
    return lambda value: iter(([found for one in _iterate(value) for found in inner(one)],))


def _has(key: _Filter) -> _Filter:
    def run(value: Any) -> Iterator[Any]:
        for one in key(value):
            if isinstance(value, dict):
                yield one in value
            elif isinstance(value, list) and isinstance(one, int):
                yield 0 <= one < len(value)
            else:
                raise _Failed

    return run


def _function_filter(name: str) -> _Filter:
    def run(value: Any) -> Iterator[Any]:
        if name == "not":
            yield value in (None, False)
        elif name == "length" and (value is None or isinstance(value, str | list | dict)):
            yield len(value or ())
        elif name == "keys" and isinstance(value, dict):
            yield sorted(value)
        elif name == "tostring":
            yield value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        elif name == "tonumber":
            try:
                yield json.loads(value) if isinstance(value, str) else value
            except ValueError:
                raise _Failed from None
        else:
            raise _Failed

    return run


def _compare_filter(operator: str, left: _Filter, right: _Filter) -> _Filter:
    compare = _COMPARISONS[operator]
    return lambda value: (compare(one, other) for other in right(value) for one in left(value))


def _logical(word: str, left: _Filter, right: _Filter) -> _Filter:
    def run(value: Any) -> Iterator[Any]:
        for one in left(value):
            true = one not in (None, False)
            if true is (word == "or"):
                yield true
            else:
                yield from (other not in (None, False) for other in right(value))

    return run


def _first_of(left: _Filter, right: _Filter) -> _Filter:
    def run(value: Any) -> Iterator[Any]:
        found = [one for one in _quiet(left)(value) if one not in (None, False)]
        yield from found or right(value)

    return run

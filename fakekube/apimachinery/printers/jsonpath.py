"""JSONPath in the dialect of client-go, as the columns and the scale subresource of custom resources use it.

A path is parsed once into steps; each is a function from a list of values to a list of values. A missing member has no
values. An index out of bounds, and a filter on a value that is not a list, is an error; the path has no values then.

Specified by: k8s.io/client-go/util/jsonpath (parser.go, jsonpath.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.trees import in_order
from fakekube.base.golang.strconv import go_quote, parse_int


class PathError(ValueError):
    """An invalid JSONPath; has the message of client-go."""


class _NothingError(Exception):
    """The path has no value in this object."""


Values = list[Any]
Step = Callable[[Values], Values]


@dataclass(slots=True, frozen=True)
class Path:
    """A parsed JSONPath."""

    steps: tuple[Step, ...]

    def find(self, obj: Any) -> Values:
        """Returns the values of the path: none, one, or many."""
        try:
            return _walk(self.steps, [obj])
        except _NothingError:
            return []


def parse(path: str) -> Path:
    """Parses a path (`.spec.parts[0].id`).

    Raises:
        PathError: the path is invalid.
    """
    return Path(tuple(_Parser(path).steps()))


def text(value: Any) -> str:
    """Formats a value as a cell of type string."""
    if isinstance(value, dict | list):
        return json.dumps(in_order(value)).decode()
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        from fakekube.apimachinery.codecs.yaml.reader import float_text  # imports PyYAML

        return str(int(value)) if value.is_integer() and abs(value) < 2**63 else float_text(value)
    return str(value)


def _walk(steps: tuple[Step, ...], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


# --- Steps ------------------------------------------------------------------------------------------------------------


def _constant(value: Any) -> Step:
    return lambda values: [value] * len(values)


def _text(value: str) -> Step:
    return lambda _: [value]


def _field(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _members(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _wildcard(values: Values) -> Values:
    return [member for value in values for member in _members(value)]


def _recursive(values: Values) -> Values:
    """Yields all non-empty objects and lists, each before those within it."""
    return [found for value in values for found in _containers(value)]


def _containers(value: Any) -> Iterator[Any]:
    members = _members(value)
    if members:
        yield value
        for member in members:
            yield from _containers(member)


def _slice(start: int | None, stop: int | None, step: int | None, *, single: bool) -> Step:
    """Evaluates a slice; an index is a slice with `single`."""

    def take(values: Values) -> Values:
        result: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise _NothingError
            length = len(value)
            begin = _from_end(start or 0, length)
            end = length if stop is None else stop
            if end < 0 or (end == 0 and single):
                end += length
            if begin == end:
                return result
            within = 0 <= begin < length and begin <= end <= length
            if not within or (step is not None and step <= 0):
                raise _NothingError
            result += value[begin : end : step or 1]
        return result

    return take


def _from_end(index: int, length: int) -> int:
    return index + length if index < 0 else index


def _union(parts: list[tuple[Step, ...]]) -> Step:
    return lambda values: [found for part in parts for found in _walk(part, values)]


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}
_COMPARABLE: Final = (str, bool, int, float)


def _filter(left: tuple[Step, ...], operator: str, right: tuple[Step, ...]) -> Step:
    """Evaluates a filter: the items for which the comparison is true; without an operator, those that have the member."""

    def passes(item: Any) -> bool:
        if not operator:
            try:
                return bool(_walk(left, [item]))
            except _NothingError:
                return False
        one, other = _walk(left, [item]), _walk(right, [item])
        if not one or not other:
            return False
        if len(one) > 1 or len(other) > 1:
            raise _NothingError
        return _compare(one[0], operator, other[0])

    def take(values: Values) -> Values:
        if not all(isinstance(value, list) for value in values):
            raise _NothingError
        return [item for value in values for item in value if passes(item)]

    return take


def _compare(left: Any, operator: str, right: Any) -> bool:
    compare = _OPERATORS.get(operator)
    ordered = operator not in ("==", "!=")
    if compare is None or type(left) is not type(right) or type(left) not in _COMPARABLE:
        raise _NothingError
    if ordered and isinstance(left, bool):
        raise _NothingError
    return compare(left, right)


def _nowhere(_: Values) -> Values:
    raise _NothingError


# --- Reading ----------------------------------------------------------------------------------------------------------

_FIELD: Final = re.compile(r"(?:\\.?|[^ \t\r\n.,\[\]$@{}\\])*+", re.DOTALL)
_IDENTIFIER: Final = re.compile(r"[^ \t\r\n.,\[\]$@{}]*")
_NUMBER: Final = re.compile(r"[+-]?[0-9.]*")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_KEY: Final = re.compile(r"'([^']*)'")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)


class _Parser:
    """Parses the part of a template between braces."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._at = 0

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        after_recursive = False
        while self._at < len(self._path):
            rest, character = self._path[self._at :], self._path[self._at]
            if rest.startswith("}"):
                return steps  # the rest is text outside of the braces
            if rest.startswith("[?("):
                steps.append(self._filter())
            elif rest.startswith(".."):
                if after_recursive:
                    raise PathError("invalid multiple recursive descent")
                steps.append(self._recursive())
                if self._at < len(self._path) and _is_word(self._path[self._at]):
                    steps.append(self._field())
                else:
                    after_recursive = True
                    continue
            elif character in "\r\n":
                break
            else:
                self._at += 1
                steps += self._step(character)
            after_recursive = False
        if self._at < len(self._path):
            raise PathError("unclosed action")
        return steps

    def _step(self, character: str) -> list[Step]:
        if character in " @$":
            return []
        if character == "[":
            return self._array()
        if character in "\"'":
            return [_text(self._read_quoted(character))]
        if character == ".":
            return [self._field()]
        self._at -= 1
        if character in "+-" or character.isdigit():
            return [_constant(self._number())]
        if _is_word(character):
            return [self._identifier()]
        raise PathError(f"unrecognized character in action: U+{ord(character):04X} {_rune(character)}")

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._path, self._at)
        assert match is not None
        self._at = match.end()
        return match[0]

    def _field(self) -> Step:
        name = self._match(_FIELD)
        return _wildcard if name == "*" else _field(name.replace("\\", ""))

    def _recursive(self) -> Step:
        self._at += 2
        return _recursive

    def _identifier(self) -> Step:
        word = self._match(_IDENTIFIER)
        return _constant(word == "true") if word in ("true", "false") else _nowhere

    def _number(self) -> int | float:
        digits = self._match(_NUMBER)
        for convert in (int, float):
            try:
                return convert(digits)
            except ValueError:
                continue
        raise PathError(f"cannot parse number {digits}")

    def _read_quoted(self, quote: str) -> str:
        begin = self._at
        while self._at < len(self._path) and self._path[self._at] != "\n":
            self._at += 1
            if self._path[self._at - 1] == quote and self._path[self._at - 2] != "\\":
                return self._path[begin : self._at - 1].replace(f"\\{quote}", quote).replace("\\\\", "\\")
        raise PathError("unterminated quoted string")

    def _array(self) -> list[Step]:
        end = self._path.find("]", self._at)
        if end < 0 or "\n" in self._path[self._at : end]:
            raise PathError("unterminated array")
        inside = self._path[self._at : end]
        self._at = end + 1
        if "," in inside:
            return [_union([tuple(_Parser(f"[{part.strip(' ')}]").steps()) for part in inside.split(",")])]
        key = _KEY.fullmatch(inside)
        if key is not None:
            return _Parser(f".{key[1]}").steps()
        return [_index(inside)]

    def _filter(self) -> Step:
        self._at += len("[?(")
        condition = self._condition()
        if self._path[self._at : self._at + 1] != "]":
            raise PathError("unclosed array expect ]")
        self._at += 1
        comparison = _COMPARISON.fullmatch(condition)
        if comparison is None:
            return _filter(tuple(_Parser(condition).steps()), "", ())
        left, operator, right = comparison.groups()
        return _filter(tuple(_Parser(left).steps()), operator, tuple(_Parser(right).steps()))

    def _condition(self) -> str:
        """Returns the text up to the closing parenthesis; parentheses in quotes are ignored."""
        begin, quote, closed = self._at, "", False
        while self._at < len(self._path) and self._path[self._at] != "\n":
            character = self._path[self._at]
            self._at += 1
            if character in "\"'":
                if not quote:
                    quote = character
                elif character == quote and self._path[self._at - 2] != "\\":
                    closed = True
            elif character == ")" and bool(quote) == closed:
                return self._path[begin : self._at - 1]
        raise PathError("unterminated filter")


def _index(inside: str) -> Step:
    match = _SLICE.fullmatch(":" if inside == "*" else inside)
    if match is None:
        raise PathError(f"invalid array index {inside}")
    start, stop, step = (_parse_integer(part) for part in match.groups())
    single = match[2] is None
    return _slice(start, (start or 0) + 1 if single else stop, step, single=single)


def _parse_integer(part: str | None) -> int | None:
    digits = (part or "").removeprefix(":")
    try:
        return parse_int(digits) if digits else None
    except ValueError:
        raise PathError(f"array index {digits} is not a number") from None


def _is_word(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdigit()


def _rune(character: str) -> str:
    """Formats a character like Go's %#U."""
    return f"'{go_quote(character)[1:-1]}'" if character.isprintable() else ""

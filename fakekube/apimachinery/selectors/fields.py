"""Field selectors: `metadata.name=a,status.phase!=Running`, equality of the few fields that a kind supports.

The parser does not know the fields: callers that know the kind rename or reject them with `transform`. In values a
backslash escapes a backslash, a comma and an equals sign; empty clauses are skipped. Clauses are parsed in the order
of the text, and the first error is returned.

Specified by: k8s.io/apimachinery/pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from fakekube.apimachinery.errors.field import aggregate
from fakekube.apimachinery.selectors.labels import (
    LabelRequirement,
    LabelSelector,
    Operator,
    SelectorError,
    key_errors,
    requirement,
)
from fakekube.base.caches import cache_by_text

# --- The text form of label selectors: `a=1,b in (x,y),!c,d>4` -------------------------------------------------------
#     selector    := [requirement ("," requirement)*]
#     requirement := ["!"] KEY
#                  | KEY ("=" | "==" | "!=" | ">" | "<") [VALUE]
#                  | KEY ("in" | "notin") "(" values ")"
#     values      := [VALUE] ("," [VALUE])*
#
# A token is an operator, or any text between operators and white space; `in` and `notin` are operators only where one is
# expected. The error of an invalid text names the unexpected token, and depends on how far the recursive descent of the
# real parser looks ahead: the functions here follow it step by step.
#
# Specified by: k8s.io/apimachinery/pkg/labels/selector.go (Lexer, Parser).


#: Operators, the longest first, and words. A NUL ends a token; where a token should start, it ends the text.
_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>\0]+)\0?")

_SPECIAL = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})

#: The end of the text, as a token.
_END = ""

_BINARY = {
    operator.value: operator
    for operator in (
        Operator.EQUALS,
        Operator.DOUBLE_EQUALS,
        Operator.NOT_EQUALS,
        Operator.IN,
        Operator.NOT_IN,
        Operator.GREATER_THAN,
        Operator.LESS_THAN,
    )
}
_BINARY_NAMES = "in, notin, =, ==, !=, gt, lt"


@cache_by_text(1024)
def parse_labels(text: str) -> LabelSelector:
    """Parses the text of a selector; "" matches everything. Raises SelectorError."""
    return LabelSelector(tuple(_Parser(text).selector()))


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while (match := _TOKEN.match(text, position)) is not None:
        tokens.append(match[1])
        position = match.end()
    return [*tokens, _END]


def _is_word(token: str) -> bool:
    return token != _END and token not in _SPECIAL


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def _look(self) -> str:
        return self._tokens[self._position]

    def _next(self) -> str:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def selector(self) -> list[LabelRequirement]:
        requirements: list[LabelRequirement] = []
        token = self._look()
        if token == _END:
            return requirements
        if not _starts_requirement(token):
            raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                requirements.append(self._requirement())
            except SelectorError as problem:
                raise SelectorError(f"unable to parse requirement: {problem}") from None
            token = self._next()
            if token == _END:
                return requirements
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            if not _starts_requirement(self._look()):
                raise SelectorError(f"found '{self._look()}', expected: identifier after ','")

    def _requirement(self) -> LabelRequirement:
        token = self._next()
        negated = token == "!"
        key = self._next() if negated else token
        if not _is_word(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        errors = key_errors(key, "")
        if errors:
            raise SelectorError(aggregate(errors))
        if negated:
            return requirement(key, Operator.DOES_NOT_EXIST)
        if self._look() in (_END, ","):
            return requirement(key, Operator.EXISTS)
        operator = self._operator()
        values = self._set() if operator in (Operator.IN, Operator.NOT_IN) else [self._value()]
        return requirement(key, operator, sorted(values))

    def _operator(self) -> Operator:
        token = self._next()
        if token not in _BINARY:
            raise SelectorError(f"found '{token}', expected: {_BINARY_NAMES}")
        return _BINARY[token]

    def _value(self) -> str:
        """Parses one value; an absent one is the empty value."""
        if self._look() in (_END, ","):
            return ""
        token = self._next()
        if not _is_word(token):
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _set(self) -> set[str]:
        token = self._next()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        token = self._look()
        if token == ")":
            self._next()
            return {""}
        if token != "," and not _is_word(token):
            raise SelectorError(f"found '{token}', expected: ',', ')' or identifier")
        values = self._members()
        self._next()
        return values

    def _members(self) -> set[str]:
        """Parses the values before the closing parenthesis; an absent value beside a comma is the empty value."""
        values: set[str] = set()
        while True:
            token = self._next()
            following = self._look() if token != _END else _END
            if token == ",":
                if not values or following in (")", ","):
                    values.add("")
                if following == ")":
                    return values
            elif _is_word(token):
                values.add(token)
                if following == ")":
                    return values
                if following != ",":
                    raise SelectorError(f"found '{following}', expected: ',' or ')'")
            else:
                raise SelectorError(f"found '{token}', expected: ',', or identifier")


def _starts_requirement(token: str) -> bool:
    return token == "!" or _is_word(token)


_CLAUSE = re.compile(r"(?:[^\\,]|\\.|\\\Z)+", re.DOTALL)
_OPERATOR = re.compile("!=|==|=")
_ESCAPED = frozenset("\\,=")
_ESCAPES = str.maketrans({character: f"\\{character}" for character in _ESCAPED})


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A field and the value that it must have, or must not have."""

    field: str
    operator: Literal["=", "!="]
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{self.value.translate(_ESCAPES)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A conjunction of requirements; without any requirement it matches everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the selector matches everything."""
        return not self.requirements

    def matches(self, get: Callable[[str], str]) -> bool:
        """Reports whether an object meets every requirement; `get` returns the value of a field, "" if it is absent."""
        for one in self.requirements:  # noqa: SIM110 - twice as fast as all() over a generator
            if (get(one.field) == one.value) is not (one.operator == "="):
                return False
        return True

    def exact(self, field: str) -> str | None:
        """Returns the value that the field must have, if a requirement demands one (the first one if there are
        several).
        """
        for one in self.requirements:
            if one.field == field and one.operator == "=":
                return one.value
        return None

    def transform(self, rename: Callable[[str], str]) -> FieldSelector:
        """Returns the selector with renamed fields; an error that `rename` raises is passed on."""
        if not self.requirements:
            return self
        return _selector(replace(one, field=rename(one.field)) for one in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def field_equals(field: str, value: str) -> FieldSelector:
    """Returns the selector that demands one value of one field."""
    return FieldSelector((FieldRequirement(field, "=", value),))


@cache_by_text(1024)
def parse_fields(text: str) -> FieldSelector:
    """Parses the text of a selector; "" matches everything. Raises SelectorError."""
    return _selector(_requirement(text, clause) for clause in sorted(_CLAUSE.findall(text)))


def _selector(requirements: Iterable[FieldRequirement]) -> FieldSelector:
    """Returns the selector of some requirements; one with an empty field and an empty value is ignored."""
    return FieldSelector(tuple(one for one in requirements if one.field or one.value))


def _requirement(text: str, clause: str) -> FieldRequirement:
    operator = _OPERATOR.search(clause)
    if operator is None:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{clause}'")
    value = _unescape(clause[operator.end() :])
    return FieldRequirement(clause[: operator.start()], "!=" if operator[0] == "!=" else "=", value)


def _unescape(value: str) -> str:
    if _ESCAPED.isdisjoint(value):
        return value
    characters = []
    rest = iter(value)
    for character in rest:
        if character == "\\":
            escaped = next(rest, "")
            if escaped not in _ESCAPED:
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            characters.append(escaped)
        elif character in _ESCAPED:
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            characters.append(character)
    return "".join(characters)

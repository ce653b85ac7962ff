"""The text form of label selectors: `a=1,b in (x,y),!c,d>4`.

    selector    := [requirement ("," requirement)*]
    requirement := ["!"] KEY
                 | KEY ("=" | "==" | "!=" | ">" | "<") [VALUE]
                 | KEY ("in" | "notin") "(" values ")"
    values      := [VALUE] ("," [VALUE])*

A token is an operator, or any text between operators and white space; `in` and `notin` are operators only where one is
expected. The error of an invalid text names the unexpected token, and depends on how far the recursive descent of the
real parser looks ahead: the functions here follow it step by step.

Specified by: k8s.io/apimachinery/pkg/labels/selector.go (Lexer, Parser).
"""

from __future__ import annotations

import re
from functools import lru_cache

from fakekube.apimachinery.errors.field import aggregate
from fakekube.apimachinery.selectors.errors import SelectorError
from fakekube.apimachinery.selectors.labels import LabelRequirement, LabelSelector, Operator, key_errors, requirement

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


@lru_cache(maxsize=1024)
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

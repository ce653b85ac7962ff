"""Evaluates arithmetic expressions of the shell: integers, variables, the operators of C.

Specified by: POSIX.1-2017, Shell & Utilities, 2.6.4 (Arithmetic Expansion).
"""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping
from typing import Final

__all__ = ["ExpressionError", "evaluate"]


class ExpressionError(ValueError):
    """An expression cannot be evaluated."""


_TOKEN: Final = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|<<=|>>=|\*\*|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%<>=!~&|^?:()])"
)
#: Binary operators from the lowest to the highest precedence.
_LEVELS: Final = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
                  ("*", "/", "%"))  # fmt: skip
_ASSIGNMENTS: Final = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_WRAP: Final = 1 << 64


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("divide by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "||": lambda left, right: int(bool(left or right)),
    "&&": lambda left, right: int(bool(left and right)),
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "&": lambda left, right: left & right,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    "<=": lambda left, right: int(left <= right),
    ">": lambda left, right: int(left > right),
    ">=": lambda left, right: int(left >= right),
    "<<": lambda left, right: left << (right & 63),
    ">>": lambda left, right: left >> (right & 63),
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "%": lambda left, right: left - _divide(left, right) * right,
}


def evaluate(text: str, variables: MutableMapping[str, str]) -> int:
    """Returns the value of an expression; assignments change the variables. Raises ExpressionError."""
    tokens, place = [], 0
    while place < len(text.rstrip()):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ExpressionError("arithmetic syntax error")
        tokens.append(found[1])
        place = found.end()
    if not tokens:
        return 0
    reader = _Reader(tokens, variables)
    value = reader.assignment()
    if reader.tokens:
        raise ExpressionError("arithmetic syntax error")
    return value


def _wrapped(value: int) -> int:
    value %= _WRAP
    return value - _WRAP if value >= _WRAP // 2 else value


class _Reader:
    """Parses and evaluates tokens."""

    def __init__(self, tokens: list[str], variables: MutableMapping[str, str]) -> None:
        self.tokens = tokens
        self._variables = variables

    def _peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def _value(self, name: str) -> int:
        text = self._variables.get(name, "").strip() or "0"
        try:
            return int(text, 0) if not re.fullmatch(r"-?0\d+", text) else int(text, 8)
        except ValueError:
            raise ExpressionError(f"bad number: {text}") from None

    def assignment(self) -> int:
        if len(self.tokens) > 1 and self.tokens[1] in _ASSIGNMENTS and re.match(r"[A-Za-z_]", self.tokens[0]):
            name, operator = self.tokens.pop(0), self.tokens.pop(0)
            value = self.assignment()
            if operator != "=":
                value = _wrapped(_OPERATIONS[operator[:-1]](self._value(name), value))
            self._variables[name] = str(value)
            return value
        return self._conditional()

    def _conditional(self) -> int:
        value = self._binary(0)
        if self._peek() != "?":
            return value
        self.tokens.pop(0)
        yes = self.assignment()
        if self._peek() != ":":
            raise ExpressionError("arithmetic syntax error")
        self.tokens.pop(0)
        no = self._conditional()
        return yes if value else no

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while self._peek() in _LEVELS[level]:
            operator = self.tokens.pop(0)
            value = _wrapped(_OPERATIONS[operator](value, self._binary(level + 1)))
        return value

    def _unary(self) -> int:
        token = self._peek()
        if not token:
            raise ExpressionError("arithmetic syntax error")
        self.tokens.pop(0)
        if token in ("-", "+", "!", "~"):
            value = self._unary()
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[token]
        if token in ("++", "--"):
            return self._step(self.tokens.pop(0) if self.tokens else "", 1 if token == "++" else -1)
        if token == "(":
            value = self.assignment()
            if self._peek() != ")":
                raise ExpressionError("arithmetic syntax error")
            self.tokens.pop(0)
            return value
        if token[0].isdigit():
            return int(token, 16) if token[:2] in ("0x", "0X") else int(token, 8 if token[0] == "0" and token.isdigit() else 10)
        if re.match(r"[A-Za-z_]", token):
            value = self._value(token)
            if self._peek() in ("++", "--"):
                self._step(token, 1 if self.tokens.pop(0) == "++" else -1)
            return value
        raise ExpressionError("arithmetic syntax error")

    def _step(self, name: str, by: int) -> int:
        value = self._value(name) + by
        self._variables[name] = str(value)
        return value

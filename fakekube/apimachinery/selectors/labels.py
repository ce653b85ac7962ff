"""Label selectors: a conjunction of requirements, each on one key; their text form, and that of the objects that have one.

A selector compiles its requirements into closures when it is made. An absent label meets `!`, `!=` and `notin`.

Specified by: k8s.io/apimachinery/pkg/labels (Requirement, NewRequirement, Selector, Lexer, Parser).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from fakekube.apimachinery.errors.field import FieldError, aggregate, invalid
from fakekube.apimachinery.schema.dns import fits, long_name
from fakekube.base.caches import cache_by_text, forgettable
from fakekube.base.golang.strconv import go_quote, parse_int


class SelectorError(ValueError):
    """A selector is invalid; `str` of the error is the message of the real server."""


# --- The syntax of the keys and values of labels ---------------------------------------------------------------------
# Each check returns the texts of what is wrong, in order.
#
# The results are cached, as many objects share the same labels.
#
# Specified by: k8s.io/apimachinery/pkg/api/validate/content (kube.go, dns.go).


_NAME_LENGTH = 63

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"

_is_name = re.compile(_NAME).fullmatch
_is_value = re.compile(_VALUE).fullmatch

_ENDS = "and must start and end with an alphanumeric character"
_NAME_TEXT = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_TEXT = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)


@cache_by_text(4096)
def label_key(value: str) -> tuple[str, ...]:
    """Validates a qualified name: an optional subdomain and a slash, then a name (keys of labels, finalizers …)."""
    prefix, slash, name = value.rpartition("/")
    if not slash and len(name) <= _NAME_LENGTH and _is_name(name):
        return ()
    if "/" in prefix:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_NAME_TEXT}{optional}",)
    errors = []
    if slash:
        errors += [f"prefix part {problem}" for problem in _prefix_problems(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif not fits(name, _NAME_LENGTH):
        errors.append(f"name part {_too_long(_NAME_LENGTH)}")
    if not _is_name(name):
        errors.append(f"name part {_NAME_TEXT}")
    return tuple(errors)


def _prefix_problems(prefix: str) -> list[str]:
    return long_name(prefix) if prefix else ["must be non-empty"]


@cache_by_text(4096)
def label_value(value: str) -> tuple[str, ...]:
    """Validates the value of a label; it may be empty."""
    if len(value) <= _NAME_LENGTH and _is_value(value):
        return ()
    errors = (_too_long(_NAME_LENGTH),) if not fits(value, _NAME_LENGTH) else ()
    return errors if _is_value(value) else (*errors, _VALUE_TEXT)


def _too_long(maximum: int) -> str:
    return f"must be no more than {maximum} bytes"


Labels = Mapping[str, str]


class Operator(StrEnum):
    """The operator of a requirement, as the text form writes it."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


_EQUALITY = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN})
_SETS = frozenset({Operator.IN, Operator.NOT_IN})
_UNARY = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
_ORDERS = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """A key, an operator and values; use `requirement` to make one."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @property
    def allowed_values(self) -> frozenset[str]:
        """The values of which the label must have one; empty for operators other than `=`, `==` and `in`."""
        return frozenset(self.values) if self.operator in _EQUALITY else frozenset()

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator in _SETS:
            return f"{self.key} {self.operator} ({values})"
        return f"{self.key}{self.operator}{values}"


def requirement(key: str, operator: Operator, values: Iterable[str] = ()) -> LabelRequirement:
    """Returns a validated requirement. Raises SelectorError."""
    made = LabelRequirement(key, operator, tuple(values))
    errors = [*_key_errors(key, "key"), *_count_errors(made), *_value_errors(made)]
    if errors:
        raise SelectorError(aggregate(errors))
    return made


def _key_errors(key: str, path: str) -> list[FieldError]:
    """Validates the key of a requirement."""
    problems = label_key(key)
    return [invalid(path, key, "; ".join(problems))] if problems else []


def _count_errors(made: LabelRequirement) -> list[FieldError]:
    operator, count = made.operator, len(made.values)
    shown = list(made.values) or None
    if operator in _SETS:
        fits, problem = count > 0, "for 'in', 'notin' operators, values set can't be empty"
    elif operator in _UNARY:
        fits, problem = count == 0, "values set must be empty for exists and does not exist"
    elif operator in _ORDERS:
        fits, problem = count == 1, "for 'Gt', 'Lt' operators, exactly one value is required"
    else:
        fits, problem = count == 1, "exact-match compatibility requires one single value"
    return [] if fits else [invalid("values", shown, problem)]


def _value_errors(made: LabelRequirement) -> list[FieldError]:
    errors = []
    if made.operator in _ORDERS:
        problem = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors += [
            invalid(f"values[{index}]", value, problem) for index, value in enumerate(made.values) if _integer(value) is None
        ]
    for index, value in enumerate(made.values):
        problems = label_value(value)
        if problems:
            errors.append(invalid(f"values[{index}][{made.key}]", value, "; ".join(problems)))
    return errors


def _integer(text: str) -> int | None:
    """Parses a decimal number of 64 bits; returns None if it is not one."""
    try:
        return parse_int(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction of requirements; without any it matches everything, or nothing if it is made so."""

    requirements: tuple[LabelRequirement, ...] = ()
    """The requirements, in the order of their keys."""
    nothing: bool = False
    matches: Callable[[Labels | None], bool] = field(init=False, repr=False, compare=False)
    """Reports whether these labels (None for no labels) meet all requirements."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", tuple(sorted(self.requirements, key=lambda one: one.key)))
        object.__setattr__(self, "matches", _compile(self))

    @property
    def empty(self) -> bool:
        """Whether the selector matches everything."""
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _compile(selector: LabelSelector) -> Callable[[Labels | None], bool]:
    if selector.nothing:
        return lambda labels: False
    tests = [_TESTS[one.operator](one.key, one.values) for one in selector.requirements]
    if not tests:
        return lambda labels: True
    test = tests[0] if len(tests) == 1 else _all(tests)
    without_labels = test({})
    return lambda labels: test(labels) if labels else without_labels


_Test = Callable[[Labels], bool]


def _all(tests: list[_Test]) -> _Test:
    def test(labels: Labels) -> bool:
        for one in tests:  # noqa: SIM110 - twice as fast as all() over a generator
            if not one(labels):
                return False
        return True

    return test


def _test_in(key: str, values: tuple[str, ...]) -> _Test:
    if len(values) == 1:
        expected = values[0]
        return lambda labels: labels.get(key) == expected
    several = frozenset(values)
    return lambda labels: labels.get(key) in several


def _not_in(key: str, values: tuple[str, ...]) -> _Test:
    matches = _test_in(key, values)
    return lambda labels: not matches(labels)


def _exists(key: str, values: tuple[str, ...]) -> _Test:
    return lambda labels: key in labels


def _does_not_exist(key: str, values: tuple[str, ...]) -> _Test:
    return lambda labels: key not in labels


def _greater_than(key: str, values: tuple[str, ...]) -> _Test:
    bound = int(values[0])
    return lambda labels: (number := _integer(labels.get(key, ""))) is not None and number > bound


def _less_than(key: str, values: tuple[str, ...]) -> _Test:
    bound = int(values[0])
    return lambda labels: (number := _integer(labels.get(key, ""))) is not None and number < bound


_TESTS: Final[Mapping[Operator, Callable[[str, tuple[str, ...]], _Test]]] = {
    Operator.EQUALS: _test_in,
    Operator.DOUBLE_EQUALS: _test_in,
    Operator.NOT_EQUALS: _not_in,
    Operator.IN: _test_in,
    Operator.NOT_IN: _not_in,
    Operator.EXISTS: _exists,
    Operator.DOES_NOT_EXIST: _does_not_exist,
    Operator.GREATER_THAN: _greater_than,
    Operator.LESS_THAN: _less_than,
}

EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(nothing=True)


# --- Selectors of objects: a metav1.LabelSelector with matchLabels and matchExpressions ------------------------------
# Specified by: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector).


_OPERATORS = {"In": Operator.IN, "NotIn": Operator.NOT_IN, "Exists": Operator.EXISTS, "DoesNotExist": Operator.DOES_NOT_EXIST}


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Compiles a metav1.LabelSelector: an absent one matches nothing, an empty one everything.

    Raises SelectorError.
    """
    if selector is None:
        return NOTHING
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    if not labels and not expressions:
        return EVERYTHING
    of_labels = _of_labels(tuple(sorted(labels.items())))
    if not expressions:
        return of_labels
    return LabelSelector((*of_labels.requirements, *map(_from_expression, expressions)))


@forgettable
@lru_cache(maxsize=1024)
def _of_labels(labels: tuple[tuple[str, str], ...]) -> LabelSelector:
    """Returns the selector of labels that must be equal; it is cached, as many objects share the same labels."""
    return LabelSelector(tuple(requirement(key, Operator.EQUALS, (value,)) for key, value in labels))


def _from_expression(expression: Mapping[str, Any]) -> LabelRequirement:
    name = expression.get("operator", "")
    operator = _OPERATORS.get(name)
    if operator is None:
        raise SelectorError(f"{go_quote(name)} is not a valid label selector operator")
    return requirement(expression.get("key", ""), operator, expression.get("values") or ())


# --- The text form of label selectors: `a=1,b in (x,y),!c,d>4` -------------------------------------------------------
#
#     selector    := [requirement ("," requirement)*]
#     requirement := ["!"] KEY
#                  | KEY ("=" | "==" | "!=" | ">" | "<") [VALUE]
#                  | KEY ("in" | "notin") "(" values ")"
#     values      := [VALUE] ("," [VALUE])*
#
# A token is an operator, or any text between operators and white space; `in` and `notin` are operators only where one is
# expected. The error of an invalid text names the unexpected token, and depends on how far the recursive descent of the
# real parser looks ahead: the functions here follow it step by step.


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
        errors = _key_errors(key, "")
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

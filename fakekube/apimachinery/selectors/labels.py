"""Label selectors: a conjunction of requirements, each on one key.

A selector compiles its requirements into closures when it is made. An absent label meets `!`, `!=` and `notin`.

Specified by: k8s.io/apimachinery/pkg/labels (Requirement, NewRequirement, Selector).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fakekube.apimachinery.errors.field import FieldError, aggregate, invalid
from fakekube.apimachinery.selectors.errors import SelectorError
from fakekube.apimachinery.selectors.syntax import label_key, label_value
from fakekube.base.golang.integers import parse_int

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
    errors = [*key_errors(key, "key"), *_count_errors(made), *_value_errors(made)]
    if errors:
        raise SelectorError(aggregate(errors))
    return made


def key_errors(key: str, path: str) -> list[FieldError]:
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
        object.__setattr__(self, "matches", _compiled(self))

    @property
    def empty(self) -> bool:
        """Reports whether the selector matches everything."""
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _compiled(selector: LabelSelector) -> Callable[[Labels | None], bool]:
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


def _in(key: str, values: tuple[str, ...]) -> _Test:
    if len(values) == 1:
        expected = values[0]
        return lambda labels: labels.get(key) == expected
    several = frozenset(values)
    return lambda labels: labels.get(key) in several


def _not_in(key: str, values: tuple[str, ...]) -> _Test:
    matches = _in(key, values)
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
    Operator.EQUALS: _in,
    Operator.DOUBLE_EQUALS: _in,
    Operator.NOT_EQUALS: _not_in,
    Operator.IN: _in,
    Operator.NOT_IN: _not_in,
    Operator.EXISTS: _exists,
    Operator.DOES_NOT_EXIST: _does_not_exist,
    Operator.GREATER_THAN: _greater_than,
    Operator.LESS_THAN: _less_than,
}

EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(nothing=True)

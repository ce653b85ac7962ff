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

from fakekube.apimachinery.selectors.labels import SelectorError
from fakekube.base.caches import cache_by_text

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
        """Returns the value that the field must have, if a requirement demands one (the first one if there are several)."""
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

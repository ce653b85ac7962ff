"""The types of expressions, and their assignability.

Specified by: cel-spec, doc/langdef.md (Gradual type checking); cel-go/common/types/types.go, cel-go/checker/types.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Final

_DYNAMIC: Final = frozenset({"dyn", "any", "!error!"})


@dataclass(frozen=True, slots=True)
class Type:
    """A type: `int`, `list(A)` … Object types have fields; `A` and `_var1` are type variables."""

    name: str
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False, repr=False)
    is_variable: bool = field(init=False, compare=False, repr=False)
    is_dynamic: bool = field(init=False, compare=False, repr=False)
    """Whether it accepts any type: dyn, any and error."""
    is_generic: bool = field(init=False, compare=False, repr=False)
    """Whether it has a type variable."""

    def __post_init__(self) -> None:
        variable = self.name[:1] == "_" or (len(self.name) == 1 and self.name.isupper())
        object.__setattr__(self, "is_variable", variable)
        object.__setattr__(self, "is_dynamic", self.name in _DYNAMIC)
        object.__setattr__(self, "is_generic", variable or any(part.is_generic for part in self.parameters))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name

    @property
    def is_struct(self) -> bool:
        """Whether it is an object type."""
        return self.fields is not None or self.name.startswith("kubernetes.")


DYN: Final = Type("dyn")
ANY: Final = Type("any")
ERROR: Final = Type("!error!")
BOOL: Final = Type("bool")
INT: Final = Type("int")
STRING: Final = Type("string")

_SCALARS: Final = frozenset({"bool", "bytes", "double", "int", "string", "uint"})
#: Types with whose values null cannot be confused.
_NEVER_NULL: Final = _SCALARS | {"list", "map", "type"}


def list_of(items: Type) -> Type:
    return Type("list", (items,))


def map_of(keys: Type, values: Type) -> Type:
    return Type("map", (keys, values))


def optional_of(content: Type) -> Type:
    return Type("optional_type", (content,))


def read(text: str) -> Type:
    """Parses a type."""
    match = re.fullmatch(r"\s*([\w.]+)(?:\((.*)\))?\s*", text)
    assert match is not None, text
    return Type(match[1], tuple(map(read, _split(match[2]))) if match[2] else ())


def _split(text: str) -> list[str]:
    """Splits at the commas outside of brackets."""
    return re.findall(r"(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+", text)


def equivalent(one: Type, other: Type) -> bool:
    """Reports whether types are equal up to the names of type variables."""
    if one.is_variable or other.is_variable:
        return one.is_variable and other.is_variable
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return all(map(equivalent, one.parameters, other.parameters))


Bindings = dict[str, Type]


class Unification:
    """The bindings of type variables, which grow during type checking."""

    def __init__(self) -> None:
        self._bindings: Bindings = {}
        self._count = 0

    def fresh(self) -> Type:
        """Returns a new type variable."""
        self._count += 1
        return Type(f"_var{self._count - 1}")

    def instance(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Returns the types of a signature with new type variables."""
        own: Bindings = {}

        def renew(each: Type) -> Type:
            if each.is_variable:
                if each.name not in own:
                    own[each.name] = self.fresh()
                return own[each.name]
            return Type(each.name, tuple(map(renew, each.parameters)), each.fields) if each.is_generic else each

        return tuple(map(renew, types))

    def substituted(self, wanted: Type, *, to_dyn: bool = False) -> Type:
        """Replaces type variables by their bindings; with `to_dyn`, unbound ones by dyn."""
        if not wanted.is_generic:
            return wanted
        bound = self._bindings.get(wanted.name) if not wanted.parameters else None
        if bound is not None:
            return self.substituted(bound, to_dyn=to_dyn)
        if wanted.parameters:
            parts = tuple(self.substituted(part, to_dyn=to_dyn) for part in wanted.parameters)
            return wanted if all(map(is_, parts, wanted.parameters)) else Type(wanted.name, parts, wanted.fields)
        return DYN if to_dyn and wanted.is_variable else wanted

    def fits(self, wanted: Type, given: Type) -> bool:
        """Reports whether `given` is assignable to `wanted`; if so, binds type variables."""
        return self.all_fit((wanted,), (given,))

    def all_fit(self, wanted: tuple[Type, ...], given: tuple[Type, ...]) -> bool:
        """Reports whether all types are assignable; binds type variables only if all are."""
        if len(wanted) != len(given):
            return False
        if not any(each.is_generic for each in (*wanted, *given)):
            return all(map(self._fits, wanted, given))
        before = self._bindings
        self._bindings = dict(before)
        if all(map(self._fits, wanted, given)):
            return True
        self._bindings = before
        return False

    def _fits(self, one: Type, other: Type) -> bool:
        if one is other:
            return True
        if other.is_variable:
            valid, known = self._bind(one, other)
            if valid or known:
                return valid
        if one.is_variable:
            return self._bind(other, one)[0]
        if one.is_dynamic or other.is_dynamic:
            return True
        if one.name == "null" or other.name == "null":
            return one.name == other.name or (other if one.name == "null" else one).name not in _NEVER_NULL
        if one.name == "type":
            return other.name == "type"
        if one.name != other.name or len(one.parameters) != len(other.parameters):
            return False
        return all(map(self._fits, one.parameters, other.parameters))

    def _bind(self, content: Type, variable: Type) -> tuple[bool, bool]:
        """Binds a variable. Returns whether the type is valid for it, and whether the variable was bound before."""
        if content == variable:
            return True, True
        bound = self._bindings.get(variable.name)
        if bound is None:
            if self._is_free_of(variable, content):
                self._bindings[variable.name] = content
                return True, False
            return False, False
        if content == bound:
            return True, True
        if not self._fits(content, bound):
            return False, True
        general = self.more_general(content, bound)
        if self._is_free_of(variable, general):
            self._bindings[variable.name] = general
        return True, True

    @staticmethod
    def more_general(one: Type, other: Type) -> Type:
        """Returns the more general of two types that are assignable to each other."""
        return one if _is_as_general(one, other) else other

    def _is_free_of(self, variable: Type, content: Type) -> bool:
        if content == variable:
            return False
        if content.is_variable:
            bound = self._bindings.get(content.name)
            return bound is None or self._is_free_of(variable, bound)
        return all(self._is_free_of(variable, part) for part in content.parameters)


def _is_as_general(one: Type, other: Type) -> bool:
    if one in (DYN, ANY) or one.is_variable:
        return True
    if other in (DYN, ANY) or other.is_variable or one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return one.name == "type" or all(map(_is_as_general, one.parameters, other.parameters))

"""Finds the overload of a function for the types of its arguments.

Each library gives a table: (name, is it a method, types of the arguments …) → function. `object` stands for any type.

Specified by: k8s.io/apiserver/pkg/cel/environment/base.go (which libraries there are, at 1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

from fakekube.cel.errors import EvaluationError, no_such_overload
from fakekube.cel.libraries import (
    addresses,
    authorization,
    formats,
    lists,
    optionals,
    quantities,
    regex,
    semver,
    standard,
    strings,
    urls,
)
from fakekube.cel.values import RECEIVERS, kind_of, type_of

__all__ = ["FUNCTIONS", "call"]

Function = Callable[..., Any]

FUNCTIONS: Final[dict[tuple[Any, ...], Function]] = {
    key: function
    for library in (standard, strings, lists, regex, optionals, urls, addresses, quantities, semver, formats, authorization)
    for key, function in library.FUNCTIONS.items()
}

_found: dict[tuple[Any, ...], Function | None] = {}


def call(name: str, member: bool, arguments: list[Any]) -> Any:
    """Call a function (or method) with evaluated arguments. Raises EvaluationError."""
    key = (name, member, *map(kind_of, arguments))
    try:
        function = _found[key]
    except KeyError:
        function = _found[key] = next((FUNCTIONS[k] for k in _candidates(key) if k in FUNCTIONS), None)
    if function is None:
        raise _misfit(name, arguments)
    return function(*arguments)


#: Functions of texts that look at their arguments themselves.
_UNTOLD: Final = frozenset({"contains", "startsWith", "endsWith"})
#: Functions that ask the first argument what it can do.
_ASKING: Final = frozenset({"matches", "size", "sort", "@sortByAssociatedKeys"})


def _misfit(name: str, arguments: list[Any]) -> EvaluationError:
    """Arguments for which a function is not made."""
    if name in _UNTOLD or (name in _ASKING and kind_of(arguments[0]) in RECEIVERS):
        return no_such_overload()
    if name in _ASKING:
        return no_such_overload(name)
    names = [type_of(argument).name for argument in arguments]
    if name == "flatten":
        shown = [_PARAMETERISED.get(each, each) for each in names]
        return no_such_overload(f"{shown[0]}.flatten({', '.join(shown[1:])})")
    return no_such_overload(f"{name}({', '.join(names)})")


_PARAMETERISED: Final = {"list": "list(dyn)", "map": "map(dyn, dyn)"}


def _candidates(key: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The key, and those in which any type stands for some of the types."""
    name, member, *kinds = key
    for choice in product(*((kind, object) for kind in kinds)):
        yield (name, member, *choice)

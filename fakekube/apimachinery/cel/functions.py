"""Finds the overload of a function for the types of its arguments.

Each library provides a table: (name, whether it is a method, argument types …) → function. `object` matches any type.

Specified by: k8s.io/apiserver/pkg/cel/environment/base.go (the libraries of 1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.libraries import (
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
from fakekube.apimachinery.cel.values import RECEIVERS, kind_of, type_of

Function = Callable[..., Any]

FUNCTIONS: Final[dict[tuple[Any, ...], Function]] = {
    key: function
    for library in (standard, strings, lists, regex, optionals, urls, addresses, quantities, semver, formats, authorization)
    for key, function in library.FUNCTIONS.items()
}

_found: dict[tuple[Any, ...], Function | None] = {}


def call(name: str, member: bool, arguments: list[Any]) -> Any:
    """Calls a function (or method) with evaluated arguments. Raises EvaluationError."""
    key = (name, member, *map(kind_of, arguments))
    try:
        function = _found[key]
    except KeyError:
        function = _found[key] = next((FUNCTIONS[k] for k in _candidates(key) if k in FUNCTIONS), None)
    if function is None:
        raise _overload_error(name, arguments)
    return function(*arguments)


#: String functions that check the types of their arguments themselves.
_UNNAMED: Final = frozenset({"contains", "startsWith", "endsWith"})
#: Functions that dispatch on a trait of the first argument.
_RECEIVER_FUNCTIONS: Final = frozenset({"matches", "size", "sort", "@sortByAssociatedKeys"})


def _overload_error(name: str, arguments: list[Any]) -> EvaluationError:
    """Returns the error for arguments without a matching overload."""
    if name in _UNNAMED or (name in _RECEIVER_FUNCTIONS and kind_of(arguments[0]) in RECEIVERS):
        return no_such_overload()
    if name in _RECEIVER_FUNCTIONS:
        return no_such_overload(name)
    names = [type_of(argument).name for argument in arguments]
    if name == "flatten":
        shown = [_PARAMETERISED.get(each, each) for each in names]
        return no_such_overload(f"{shown[0]}.flatten({', '.join(shown[1:])})")
    return no_such_overload(f"{name}({', '.join(names)})")


_PARAMETERISED: Final = {"list": "list(dyn)", "map": "map(dyn, dyn)"}


def _candidates(key: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yields the key, and the keys with `object` in place of some types."""
    name, member, *kinds = key
    for choice in product(*((kind, object) for kind in kinds)):
        yield (name, member, *choice)

"""Finds the overload of a function for the types of its arguments.

Each library gives a table: (name, is it a method, types of the arguments …) → function. `object` stands for any type.

Specified by: k8s.io/apiserver/pkg/cel/environment/base.go (which libraries there are, at 1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

from fakekube.cel.errors import no_such_overload
from fakekube.cel.libraries import (
    addresses,
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
from fakekube.cel.values import kind_of

__all__ = ["FUNCTIONS", "call"]

Function = Callable[..., Any]

FUNCTIONS: Final[dict[tuple[Any, ...], Function]] = {
    key: function
    for library in (standard, strings, lists, regex, optionals, urls, addresses, quantities, semver, formats)
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
        raise no_such_overload()
    return function(*arguments)


def _candidates(key: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The key, and those in which any type stands for some of the types."""
    name, member, *kinds = key
    for choice in product(*((kind, object) for kind in kinds)):
        yield (name, member, *choice)

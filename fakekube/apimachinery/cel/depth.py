"""Raises the recursion limit for deeply nested expressions.

An expression may nest 250 levels deep, and a recursive walk makes a few calls for each level, more than Python's default
recursion limit.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final

from fakekube.base.depth import allowance

_OPENING: Final = "([{?"
#: The number of levels that the default limit always allows.
_SHALLOW: Final = 20
_CALLS: Final = 12_000
_AS_IT_IS: Final = nullcontext()


def is_deep(source: str) -> bool:
    """Reports whether a walk over an expression may exceed the recursion limit."""
    return sum(map(source.count, _OPENING)) + source.count(".") // 4 > _SHALLOW


def room(deep: bool) -> AbstractContextManager[None]:
    """Returns the context manager for walks over an expression; `deep` is the result of `is_deep`."""
    return allowance(_CALLS) if deep else _AS_IT_IS

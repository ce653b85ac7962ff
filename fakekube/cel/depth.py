"""Raises the recursion limit for deeply nested expressions.

An expression may nest 250 levels deep, and whatever walks over it takes a few calls for each level: more than Python
allows at first, of which the caller has used some.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final

from fakekube.depth import allowance

__all__ = ["is_deep", "room"]

_OPENING: Final = "([{?"
#: So many levels fit into what there is.
_SHALLOW: Final = 20
_CALLS: Final = 12_000
_AS_IT_IS: Final = nullcontext()


def is_deep(source: str) -> bool:
    """Does an expression need more room than there is?"""
    return sum(map(source.count, _OPENING)) + source.count(".") // 4 > _SHALLOW


def room(deep: bool) -> AbstractContextManager[None]:
    """For a walk over an expression, deep or not."""
    return allowance(_CALLS) if deep else _AS_IT_IS

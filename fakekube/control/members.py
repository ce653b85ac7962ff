"""The bodies of the control prefix: JSON objects, each member of a kind that its endpoint names.

Everything that is wrong with a body is a `BadMembers`, whose text says which member and why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["BadMembers", "Member", "anything", "count", "read", "seconds", "string", "text"]

Member = Callable[[Any], Any]
"""Reads the value of a member. Raises ValueError with what it must be."""


class BadMembers(ValueError):
    """A body is not what the endpoint takes."""


def read(body: bytes, members: Mapping[str, Member], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """The members of a body that are there; an empty body has none.

    Raises BadMembers if it is no JSON object, has a member that is not known, lacks one or has a wrong value.
    """
    try:
        value = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as problem:
        raise BadMembers(f"the body is not JSON: {problem}") from None
    if not isinstance(value, dict):
        raise BadMembers("the body must be a JSON object")
    unknown = sorted(set(value) - set(members))
    if unknown:
        raise BadMembers(f"unknown member {unknown[0]!r}; known are {', '.join(sorted(members)) or 'none'}")
    missing = [name for name in required if name not in value]
    if missing:
        raise BadMembers(f"member {missing[0]!r} is required")
    found = {}
    for name, given in value.items():
        try:
            found[name] = members[name](given)
        except ValueError as problem:
            raise BadMembers(f"member {name!r} must be {problem}") from None
    return found


def seconds(value: Any) -> float:
    """A number of seconds that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS or math.isnan(value):
        raise ValueError(f"a number of seconds from 0 to {MAX_SECONDS}")
    return float(value)


def string(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError("a text")
    return value


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("a text that is not empty")
    return value


def count(value: Any) -> int:
    """A whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a whole number from 0 on")
    return value


def anything(value: Any) -> Any:
    """A value that the endpoint reads by itself."""
    return value


#: Thirty years: every time that is left to a clock has room for it.
MAX_SECONDS = 1_000_000_000

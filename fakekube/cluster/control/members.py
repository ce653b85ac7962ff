"""Parses the request bodies of the control API, whose paths are below `PREFIX`: JSON objects whose members functions check.

Every error is a `BadMembers`, whose text has the name of the member and the reason. Invariant: nothing but the standard library
is imported, because `cluster.serving` compares the path of each request with `PREFIX`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

Member = Callable[[Any], Any]
"""Checks and converts the value of a member. Raises ValueError, whose text completes "the member must be …"."""

Members = Mapping[str, Any]
"""The members of a body, the parameters of the query and the parts of the path, by name."""
Answer = tuple[int, Any]
"""The status code and the body of a response, which is sent as JSON."""


class BadMembers(ValueError):
    """A request body is invalid."""


def read(body: bytes, members: Mapping[str, Member], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns the members of a body; an empty body has none.

    Raises BadMembers for a body that is not a JSON object, an unknown or missing member, and an invalid value.
    """
    try:
        value = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as problem:
        raise BadMembers(f"the body is not JSON: {str(problem).partition(';')[0]}") from None  # without Python's advice
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


def boolean_member(members: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    """Returns a member that is true or false. Raises BadMembers."""
    value = members.get(name, default)
    if not isinstance(value, bool):
        raise BadMembers(f"member {name!r} must be true or false")
    return value


def seconds(value: Any) -> float:
    """Checks a number of seconds that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS or math.isnan(value):
        raise ValueError(f"a number of seconds from 0 to {MAX_SECONDS}")
    return float(value)


def string(value: Any) -> str:
    """Checks a string."""
    if not isinstance(value, str):
        raise ValueError("a string")
    return value


def text(value: Any) -> str:
    """Checks a string that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("a string that is not empty")
    return value


def any_value(value: Any) -> Any:
    """Accepts any value; the endpoint checks it."""
    return value


#: The maximum number of seconds, about thirty years, which a clock can always add.
MAX_SECONDS = 1_000_000_000


PREFIX = "/fakekube/"

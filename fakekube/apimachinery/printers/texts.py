"""Formats the contents of cells: ages, selectors, shortened lists.

Specified by: k8s.io/apimachinery/pkg/util/duration, labels, apis/meta/v1 (helpers.go); printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from fakekube.base.caches import forgettable
from fakekube.base.objects import StoredObject

Ages = Callable[[datetime], str]
"""The age of a time, as a cell shows it."""
Cells = Callable[[StoredObject, Ages], list[Any]]
"""(object, ages) → the cells of its row."""

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
UNSET: Final = "<unset>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def human_duration(seconds: float) -> str:
    """Formats a duration (HumanDuration): `90s`, `5m30s`, `3h20m`, `2d4h`, `1y100d`."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    for limit, unit, letter, rest, rest_letter in _STEPS:
        if whole < limit:
            amount, remainder = divmod(whole, unit)
            smaller = remainder // rest if rest else 0
            return f"{amount}{letter}{smaller}{rest_letter}" if smaller else f"{amount}{letter}"
    return f"{whole // (365 * _DAY)}y"


#: (limit in seconds, unit, smaller unit or 0): the unit is used below the limit.
_STEPS: Final = (
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (48 * _HOUR, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * 365 * _DAY, _DAY, "d", 0, ""),
    (8 * 365 * _DAY, 365 * _DAY, "y", _DAY, "d"),
)


@forgettable
@lru_cache(maxsize=4096)
def parse_moment(text: str) -> datetime:
    """Returns the time of a timestamp."""
    return datetime.fromisoformat(text)


def since(timestamp: str | None, ages: Ages) -> str:
    """Returns the age of a time."""
    return ages(parse_moment(timestamp)) if timestamp else UNKNOWN


def ages_at(now: datetime) -> Ages:
    """Returns the function that formats ages at this time."""
    return lambda moment: human_duration((now - moment).total_seconds())


def duration_between(start: str, end: str) -> str:
    """Returns the duration between two times."""
    return human_duration((parse_moment(end) - parse_moment(start)).total_seconds())


def age(obj: StoredObject, ages: Ages) -> str:
    """Returns the age of an object."""
    return since(obj["metadata"].get("creationTimestamp"), ages)


def name(obj: StoredObject) -> str:
    text: str = obj["metadata"].get("name", "")
    return text


def labels(mapping: Mapping[str, str] | None) -> str:
    """`a=b,c=d`, or `<none>`."""
    return ",".join(f"{key}={value}" for key, value in sorted((mapping or {}).items())) or NONE


_OPERATORS: Final[dict[str, Callable[[str, str], str]]] = {
    "In": lambda key, values: f"{key} in ({values})",
    "NotIn": lambda key, values: f"{key} notin ({values})",
    "Exists": lambda key, _: key,
    "DoesNotExist": lambda key, _: f"!{key}",
}


def selector(label_selector: StoredObject | None) -> str:
    """Returns a label selector as text, sorted by key; "" if it selects everything, or nothing."""
    chosen = label_selector or {}
    parts = [(key, f"{key}={value}") for key, value in (chosen.get("matchLabels") or {}).items()]
    for expression in chosen.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        write = _OPERATORS.get(expression.get("operator", ""))
        if write is None:
            return "<error>"
        parts.append((key, write(key, values)))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def containers(pod_spec: StoredObject | None) -> list[str]:
    """Returns two cells: the names and the images of the containers."""
    found = (pod_spec or {}).get("containers") or ()
    return [",".join(c.get("name", "") for c in found), ",".join(c.get("image", "") for c in found)]


def shorten_list(items: Iterable[str], empty: str = UNSET) -> str:
    """Returns the first three of a list, and the number of the others."""
    every = list(items)
    text = ",".join(every[:3])
    if len(every) > 3:
        return f"{text} + {len(every) - 3} more..."
    return text or empty


def condition(conditions: Sequence[StoredObject] | None, type_: str) -> StoredObject | None:
    """Returns the first condition of a type."""
    return next((found for found in conditions or () if found.get("type") == type_), None)


def quantity(quantities: Mapping[str, str] | None, resource: str) -> str:
    """Returns the amount of a resource; "0" if there is none."""
    return (quantities or {}).get(resource, "0")

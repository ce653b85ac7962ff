"""Schedules of cron jobs: is this one, and if not, why not?

Specified by: github.com/robfig/cron (parser.go), Go's time.LoadLocation.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from typing import NamedTuple

from fakekube.golang.durations import parse_duration
from fakekube.golang.integers import parse_int

__all__ = ["schedule_problem", "time_zone_problem"]


class _Bounds(NamedTuple):
    minimum: int
    maximum: int
    names: Mapping[str, int]


def _named(names: str, first: int) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


#: The fields of a schedule: minute, hour, day of the month, month, day of the week.
_FIELDS = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, _named("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Bounds(0, 6, _named("sun mon tue wed thu fri sat", 0)),
)

_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})


class _WrongError(ValueError):
    """What is wrong, in words."""


def schedule_problem(text: str) -> str:
    """What the parser says against a schedule; "" if nothing."""
    try:
        _parse(text)
    except _WrongError as wrong:
        return str(wrong)
    return ""


def _parse(text: str) -> None:
    if not text:
        raise _WrongError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = _without_zone(text)
    if text.startswith("@"):
        return _check_descriptor(text)
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise _WrongError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, field.split(",")):
            _check_range(expression, bounds)
    return None


def _without_zone(text: str) -> str:
    head, space, rest = text.partition(" ")
    if not space:
        raise _WrongError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    zone = head.partition("=")[2]
    problem = time_zone_problem(zone)
    if problem:
        raise _WrongError(f"provided bad location {zone}: {problem}")
    return rest.strip()


def _check_range(expression: str, bounds: _Bounds) -> None:
    """One of the ranges between commas: `*`, `5`, `1-5`, `mon-fri/2`."""
    extent, *steps = expression.split("/")
    low, *high = extent.split("-")
    if low in ("*", "?"):
        start, end = bounds.minimum, bounds.maximum
    else:
        start = end = _number_or_name(low, bounds)
        if len(high) > 1:
            raise _WrongError(f"too many hyphens: {expression}")
        if high:
            end = _number_or_name(high[0], bounds)
    if len(steps) > 1:
        raise _WrongError(f"too many slashes: {expression}")
    step = 1
    if steps:
        step = _number(steps[0])
        end = end if high else bounds.maximum
    if start < bounds.minimum:
        raise _WrongError(f"beginning of range ({start}) below minimum ({bounds.minimum}): {expression}")
    if end > bounds.maximum:
        raise _WrongError(f"end of range ({end}) above maximum ({bounds.maximum}): {expression}")
    if start > end:
        raise _WrongError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if not step:
        raise _WrongError(f"step of range should be a positive number: {expression}")


def _number_or_name(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    try:
        number = parse_int(text, "Atoi")
    except ValueError as problem:
        raise _WrongError(f"failed to parse int from {text}: {problem}") from None
    if number < 0:
        raise _WrongError(f"negative number ({number}) not allowed: {text}")
    return number


def _check_descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith("@every "):
        raise _WrongError(f"unrecognized descriptor: {text}")
    try:
        parse_duration(text.removeprefix("@every "))
    except ValueError as problem:
        raise _WrongError(f"failed to parse duration {text}: {problem}") from None


def time_zone_problem(name: str) -> str:
    """What Go says against the name of a time zone; "" if there is such a zone."""
    if name in ("", "UTC", "Local"):
        return ""
    if ".." in name or name[0] in "/\\":
        return "time: invalid location name"
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {name}"
    return ""

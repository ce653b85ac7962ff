"""The schedules of CronJobs: parsing, with the errors of the real parser, time zones, and the computation of the next time.

A schedule is five sets of numbers, or an interval (`@every 90s`). The next time is searched field by field in the wall time
of a zone, where hours may be missing or occur twice: the search makes the steps of the real one, so that it finds the same
times.

Specified by: github.com/robfig/cron (parser.go, spec.go, constantdelay.go), Go's time.LoadLocation and time.Date.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from fakekube.base.golang.strconv import parse_int
from fakekube.base.golang.timestamps import INVALID_LOCATION, parse_duration


class _Bounds(NamedTuple):
    minimum: int
    maximum: int
    names: Mapping[str, int]


def _number_names(names: str, first: int) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(names.split(","), first)}


#: The fields of a schedule: minute, hour, day of the month, month, day of the week.
_FIELDS = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, _number_names("jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec", 1)),
    _Bounds(0, 6, _number_names("sun,mon,tue,wed,thu,fri,sat", 0)),
)

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

#: The number of years after which the search for the next time stops.
_YEARS = 5


class ScheduleError(ValueError):
    """A schedule is invalid; the text is that of the real parser."""


@dataclass(slots=True, frozen=True)
class Schedule:
    """A parsed schedule."""

    fields: tuple[frozenset[int], ...] = ()
    """Minutes, hours, days of the month, months, days of the week (Sunday is 0); empty for an interval."""
    any_day: bool = False
    """Whether the days of the month or of the week are a star: then both must match, else one is enough."""
    zone: tzinfo = UTC
    interval: timedelta = timedelta()

    def next(self, after: datetime) -> datetime | None:
        """Returns the first time after a moment (with a zone), in UTC; None if there is none within five years."""
        moment = after.astimezone(UTC)
        if self.interval:
            return moment + self.interval - timedelta(microseconds=moment.microsecond)
        return _Search(self, moment + timedelta(seconds=1) - timedelta(microseconds=moment.microsecond)).run()


def schedule_problem(text: str) -> str:
    """Returns the error text of the parser; "" if the schedule is valid."""
    try:
        parse_schedule(text)
    except ScheduleError as wrong:
        return str(wrong)
    return ""


def parse_schedule(text: str) -> Schedule:
    """Parses a schedule.

    Args:
        text: five fields, or a descriptor such as `@daily`, with an optional prefix `TZ=…`; without it the time zone is UTC.

    Raises:
        ScheduleError: with the text of the real parser.
    """
    zone: tzinfo = UTC
    if text.startswith(("TZ=", "CRON_TZ=")):
        text, zone = _without_zone(text)
    if text.startswith("@every "):
        return Schedule(interval=_interval(text))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    fields, stars = [], []
    for part, bounds in zip(parts, _FIELDS, strict=True):
        ranges = [_range(expression, bounds) for expression in filter(None, part.split(","))]
        fields.append(frozenset(number for numbers, _ in ranges for number in numbers))
        stars.append(any(star for _, star in ranges))
    return Schedule(tuple(fields), stars[2] or stars[4], zone)


def _without_zone(text: str) -> tuple[str, tzinfo]:
    head, space, rest = text.partition(" ")
    if not space:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    zone = head.partition("=")[2]
    problem = time_zone_problem(zone)
    if problem:
        raise ScheduleError(f"provided bad location {zone}: {problem}")
    return rest.strip(), time_zone(zone)


def _range(expression: str, bounds: _Bounds) -> tuple[range, bool]:
    """Parses one of the ranges between commas: `*`, `5`, `1-5`, `mon-fri/2`; also returns whether it is a star."""
    extent, *steps = expression.split("/")
    low, *high = extent.split("-")
    star = low in ("*", "?")
    if star:
        start, end = bounds.minimum, bounds.maximum
    else:
        start = end = _number_or_name(low, bounds)
        if len(high) > 1:
            raise ScheduleError(f"too many hyphens: {expression}")
        if high:
            end = _number_or_name(high[0], bounds)
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {expression}")
    step = 1
    if steps:
        step = _number(steps[0])
        end = end if high else bounds.maximum
    if start < bounds.minimum:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.minimum}): {expression}")
    if end > bounds.maximum:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.maximum}): {expression}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if not step:
        raise ScheduleError(f"step of range should be a positive number: {expression}")
    return range(start, end + 1, step), star and step == 1


def _number_or_name(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    try:
        number = parse_int(text, "Atoi")
    except ValueError as problem:
        raise ScheduleError(f"failed to parse int from {text}: {problem}") from None
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number


def _interval(text: str) -> timedelta:
    """Parses an interval; returns whole seconds, at least one."""
    try:
        nanoseconds = parse_duration(text.removeprefix("@every "))
    except ValueError as problem:
        raise ScheduleError(f"failed to parse duration {text}: {problem}") from None
    return timedelta(seconds=max(nanoseconds // 1_000_000_000, 1))


def time_zone(name: str) -> tzinfo:
    """Returns the time zone of a valid name."""
    return UTC if name in ("", "UTC", "Local") else zoneinfo.ZoneInfo(name)


def time_zone_problem(name: str) -> str:
    """Returns the error text of Go about the name of a time zone; "" if the zone exists."""
    if name in ("", "UTC", "Local"):
        return ""
    if ".." in name or name[0] in "/\\":
        return INVALID_LOCATION
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {name}"
    return ""


# --- The search for the next time -------------------------------------------------------------------------------------

_Fields = tuple[int, ...]


def _instant(zone: tzinfo, wall: datetime) -> datetime:
    """Returns the moment at which clocks of a zone show this time.

    For a time that does not exist or occurs twice, it returns the moment that Go's time.Date returns.
    """
    guess = wall.replace(tzinfo=UTC)
    first = guess - _offset(zone, guess)
    return guess - _offset(zone, first)


def _offset(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


class _Search:
    """Moves a moment forward, field by field, until all fields match; after a carry, the search starts again.

    Args:
        schedule: with fields.
        moment: the first one that can be found.
    """

    def __init__(self, schedule: Schedule, moment: datetime) -> None:
        self._minutes, self._hours, self._days, self._months, self._weekdays = schedule.fields
        self._any_day = schedule.any_day
        self._zone = schedule.zone
        self._moment = moment
        self._moved = False

    def run(self) -> datetime | None:
        last_year = self._wall().year + _YEARS
        while self._wall().year <= last_year:
            if self._to_month() and self._to_day() and self._to_hour() and self._to_minute() and self._to_second():
                return self._moment
        return None

    def _wall(self) -> datetime:
        return self._moment.astimezone(self._zone).replace(tzinfo=None)

    def _start_at(self, **parts: int) -> None:
        """Truncates the moment to the start of the month, day … before the first step."""
        if not self._moved:
            self._moved = True
            self._moment = _instant(self._zone, self._wall().replace(microsecond=0, **parts))  # type: ignore[arg-type]

    def _to_month(self) -> bool:
        while self._wall().month not in self._months:
            self._start_at(day=1, hour=0, minute=0, second=0)
            wall = self._wall()
            year, month = divmod(wall.year * 12 + wall.month, 12)
            self._moment = _instant(self._zone, wall.replace(year=year, month=month + 1))
            if self._wall().month == 1:
                return False
        return True

    def _day_fits(self) -> bool:
        wall = self._wall()
        of_month, of_week = wall.day in self._days, wall.isoweekday() % 7 in self._weekdays
        return (of_month and of_week) if self._any_day else (of_month or of_week)

    def _to_day(self) -> bool:
        while not self._day_fits():
            self._start_at(hour=0, minute=0, second=0)
            before = self._moment
            self._moment = _instant(self._zone, self._wall() + timedelta(days=1))
            hour = self._wall().hour
            if hour:  # the zone skips midnight on this day
                self._moment += timedelta(hours=24 - hour if hour > 12 else -hour)
            if self._moment <= before:  # there is no such day: the real server loops forever here
                self._moment = before + timedelta(days=1)
            if self._wall().day == 1:
                return False
        return True

    def _to_hour(self) -> bool:
        while self._wall().hour not in self._hours:
            self._start_at(minute=0, second=0)
            self._moment += timedelta(hours=1)
            if self._wall().hour == 0:
                return False
        return True

    def _to_minute(self) -> bool:
        while self._wall().minute not in self._minutes:
            if not self._moved:
                self._moved = True
                self._moment = self._moment.replace(second=0)
            self._moment += timedelta(minutes=1)
            if self._wall().minute == 0:
                return False
        return True

    def _to_second(self) -> bool:
        if self._wall().second:
            self._moved = True
            self._moment += timedelta(seconds=60 - self._wall().second)
            return False
        return True

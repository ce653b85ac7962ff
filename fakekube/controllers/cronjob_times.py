"""Which start of a CronJob is due, and when the next one is.

Specified by: pkg/controller/cronjob/utils.go.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from fakekube.apis.batch.schedules import Schedule
from fakekube.controllers.pods import moment

__all__ = ["MANY", "Recent", "TooFrequent", "most_recent", "next_in"]

Object = dict[str, Any]

MANY = 100
"""More missed starts than so many are told."""
NEXT_DELTA = 0.1
"""Seconds after a start at which it is looked for."""


class TooFrequent(ValueError):
    """The schedule names no times that are at least a second apart."""

    def __init__(self) -> None:
        super().__init__("time difference between two schedules is less than 1 second")


class Recent(NamedTuple):
    """The last start that was due."""

    earliest: datetime
    """What starts were looked for after."""
    time: datetime | None
    """None: none was due."""
    missed: int


def most_recent(cron_job: Object, now: datetime, schedule: Schedule, *, deadline: bool) -> Recent:
    """The last start before now, and how many have been missed.

    Args:
        cron_job: whose last start, or creation, is what starts are looked for after.
        now: of the clock.
        schedule: of the CronJob.
        deadline: starts longer ago than startingDeadlineSeconds do not count.

    Raises:
        TooFrequent: see there.
    """
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    earliest = moment(last or cron_job["metadata"]["creationTimestamp"])
    seconds = cron_job["spec"].get("startingDeadlineSeconds")
    if deadline and seconds is not None:
        earliest = max(earliest, _before(now, seconds))
    first = schedule.next(earliest)
    second = schedule.next(first) if first is not None else None
    if first is not None and now < first:
        return Recent(earliest, None, 0)
    if first is not None and second is not None and now < second:
        return Recent(earliest, first, 0)
    if first is None or second is None or second - first < timedelta(seconds=1):
        raise TooFrequent
    interval = second - first
    missed = int((now - first).total_seconds()) // int(interval.total_seconds()) + 1
    time, found = schedule.next(first + (missed - 2) * interval), None
    while time is not None and time <= now:
        time, found = schedule.next(time), time
    return Recent(earliest, found, missed)


def _before(now: datetime, seconds: int) -> datetime:
    """So many seconds ago, however many."""
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def next_in(cron_job: Object, now: datetime, schedule: Schedule) -> float:
    """Seconds until the CronJob is to be looked at for its next start."""
    try:
        recent = most_recent(cron_job, now, schedule, deadline=False)
    except TooFrequent:
        base = now
    else:
        base = recent.time or (now if recent.missed else recent.earliest)
    time = schedule.next(base)
    return max((time - now).total_seconds() + NEXT_DELTA, 0.0) if time is not None else NEXT_DELTA

"""Calculates the scheduled time of a CronJob that is due, and the time until the next sync.

Specified by: pkg/controller/cronjob/utils.go.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from fakekube.apis.batch.schedules import Schedule
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.objects import Object

__all__ = ["MANY", "MostRecent", "TooFrequent", "most_recent_schedule_time", "next_requeue_duration"]


#: The number of missed starts above which an event is recorded.
MANY = 100
#: Seconds between a scheduled time and the sync (nextScheduleDelta).
NEXT_DELTA = 0.1


class TooFrequent(ValueError):
    """The times of the schedule are less than a second apart."""

    def __init__(self) -> None:
        super().__init__("time difference between two schedules is less than 1 second")


class MostRecent(NamedTuple):
    """The most recent scheduled time."""

    earliest: datetime
    """The time after which scheduled times were searched."""
    time: datetime | None
    """The most recent scheduled time; None if none is due."""
    missed: int

    """The number of missed scheduled times."""


def most_recent_schedule_time(cron_job: Object, now: datetime, schedule: Schedule, *, include_deadline: bool) -> MostRecent:
    """Returns the last scheduled time before now, and the number of missed ones (mostRecentScheduleTime).

    Args:
        cron_job: Times are searched after its lastScheduleTime or, if that is absent, its creation.
        now: The time of the clock.
        schedule: The schedule of the CronJob.
        include_deadline: Times that are longer ago than startingDeadlineSeconds are ignored.

    Raises:
        TooFrequent: The times of the schedule are less than a second apart.
    """
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    earliest = parse_time(last or cron_job["metadata"]["creationTimestamp"])
    seconds = cron_job["spec"].get("startingDeadlineSeconds")
    if include_deadline and seconds is not None:
        earliest = max(earliest, _subtract(now, seconds))
    first = schedule.next(earliest)
    second = schedule.next(first) if first is not None else None
    if first is not None and now < first:
        return MostRecent(earliest, None, 0)
    if first is not None and second is not None and now < second:
        return MostRecent(earliest, first, 0)
    if first is None or second is None or second - first < timedelta(seconds=1):
        raise TooFrequent
    interval = second - first
    missed = int((now - first).total_seconds()) // int(interval.total_seconds()) + 1
    time, found = schedule.next(first + (missed - 2) * interval), None
    while time is not None and time <= now:
        time, found = schedule.next(time), time
    return MostRecent(earliest, found, missed)


def _subtract(now: datetime, seconds: int) -> datetime:
    """Returns the time so many seconds ago; the earliest representable one on overflow."""
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def next_requeue_duration(cron_job: Object, now: datetime, schedule: Schedule) -> float:
    """Returns the seconds until the CronJob is to be synced for its next scheduled time (nextScheduleTimeDuration)."""
    try:
        recent = most_recent_schedule_time(cron_job, now, schedule, include_deadline=False)
    except TooFrequent:
        base = now
    else:
        base = recent.time or (now if recent.missed else recent.earliest)
    time = schedule.next(base)
    return max((time - now).total_seconds() + NEXT_DELTA, 0.0) if time is not None else NEXT_DELTA

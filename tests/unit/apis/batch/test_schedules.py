"""Next run times of CronJob schedules, equal to those of the Go library robfig/cron."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apis.batch.schedules import ScheduleError, parse_schedule


def times(text: str, after: str, count: int = 3) -> list[str]:
    schedule, moment, found = parse_schedule(text), datetime.fromisoformat(after), []
    for _ in range(count):
        following = schedule.next(moment)
        if following is None:
            break
        moment = following
        found.append(f"{moment:%m-%dT%H:%M:%S}")
    return found


@pytest.mark.parametrize(
    ("text", "after", "found"),
    [
        ("* * * * *", "2026-01-01T00:00:00Z", ["01-01T00:01:00", "01-01T00:02:00", "01-01T00:03:00"]),
        ("*/20 3 * * *", "2026-01-01T03:30:59Z", ["01-01T03:40:00", "01-02T03:00:00", "01-02T03:20:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", ["02-29T00:00:00", "02-29T00:00:00", "02-29T00:00:00"]),
        ("0 12 1 * mon", "2026-01-01T12:00:00Z", ["01-05T12:00:00", "01-12T12:00:00", "01-19T12:00:00"]),
        ("0 12 1-7 * */7", "2026-01-02T00:00:00Z", ["01-02T12:00:00", "01-03T12:00:00", "01-04T12:00:00"]),
        ("@weekly", "2026-01-01T00:00:00Z", ["01-04T00:00:00", "01-11T00:00:00", "01-18T00:00:00"]),
        ("@every 90s", "2026-01-01T00:00:00.5Z", ["01-01T00:01:30", "01-01T00:03:00", "01-01T00:04:30"]),
        ("@every 10ms", "2026-01-01T00:00:00Z", ["01-01T00:00:01", "01-01T00:00:02", "01-01T00:00:03"]),
        ("0 0 30 2 *", "2026-01-01T00:00:00Z", []),
        # An hour that is missing, one that comes twice, a midnight that is missing, and a day that is.
        ("TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00Z", ["03-30T00:30:00", "03-31T00:30:00", "04-01T00:30:00"]),
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00:00Z", ["10-25T00:30:00", "10-25T01:30:00", "10-26T01:30:00"]),
        ("TZ=America/Sao_Paulo 0 3 5 * *", "2018-11-03T10:00:00Z", ["11-05T05:00:00", "12-05T05:00:00", "01-05T05:00:00"]),
        ("TZ=Pacific/Apia 0 3 * * *", "2011-12-29T20:00:00Z", ["12-30T13:00:00", "12-31T13:00:00", "01-01T13:00:00"]),
    ],
)
def test_next_schedule_times(text: str, after: str, found: list[str]) -> None:
    assert times(text, after) == found


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "@never", "@every x", "TZ=No/Where * * * * *", "*/0 * * * *"])
def test_invalid_schedules_are_rejected(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(text)


@given(
    st.sets(st.integers(0, 59), min_size=1, max_size=4),
    st.sets(st.integers(0, 23), min_size=1, max_size=4),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
)
def test_next_finds_exactly_the_matching_minutes(minutes: set[int], hours: set[int], start: datetime) -> None:
    schedule = parse_schedule(f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *")
    moment = start.replace(tzinfo=UTC, microsecond=0)
    found = [moment]
    while found[-1] - moment < timedelta(days=1):
        following = schedule.next(found[-1])
        assert following is not None and following.second == 0
        found.append(following)
    assert all(one < other for one, other in pairwise(found))
    wanted = {(hour, minute) for hour in hours for minute in minutes}
    assert {(one.hour, one.minute) for one in found[1:]} == wanted

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.base.golang.timestamps import TimeError, parse_micro_time, parse_time, print_micro_time, print_time, print_unix_time

#: Written, printed: as Go does.
TIMES = [
    ("2024-02-29T12:34:56Z", "2024-02-29T12:34:56Z"),
    ("2024-02-29T12:34:56+02:00", "2024-02-29T10:34:56Z"),
    ("2024-02-29T12:34:56.999999999Z", "2024-02-29T12:34:56Z"),
    ("2024-02-29T12:34:56,5Z", "2024-02-29T12:34:56Z"),
    ("2024-01-01T3:04:05Z", "2024-01-01T03:04:05Z"),
    ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"),
    ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
    ("2023-01-02T23:00:59+24:60", "2023-01-01T22:00:59Z"),
]

LAYOUT = "2006-01-02T15:04:05Z07:00"

#: Written, what is wrong after `parsing time "…"`.
WRONG_TIMES = [
    ("yesterday", f' as "{LAYOUT}": cannot parse "yesterday" as "2006"'),
    ("", f' as "{LAYOUT}": cannot parse "" as "2006"'),
    ("2024-01-01", f' as "{LAYOUT}": cannot parse "" as "T"'),
    ("2024-01-01 00:00:00Z", f' as "{LAYOUT}": cannot parse " 00:00:00Z" as "T"'),
    ("2024-1-01T00:00:00Z", f' as "{LAYOUT}": cannot parse "1-01T00:00:00Z" as "01"'),
    ("2024-01-01T00:00:00", f' as "{LAYOUT}": cannot parse "" as "Z07:00"'),
    ("2024-13-01T00:00:00Z", ": month out of range"),
    ("2023-02-29T00:00:00Z", ": day out of range"),
    ("2024-01-01T24:00:00Z", ": hour out of range"),
    ("2024-01-01T00:60:00Z", ": minute out of range"),
    ("2024-01-01T00:00:60Z", ": second out of range"),
    ("2024-01-01T00:00:00+25:00", ": time zone offset hour out of range"),
    ("2024-01-01T00:00:00Zz", ': extra text: "z"'),
]


@pytest.mark.parametrize(("written", "printed"), TIMES)
def test_timestamps_are_normalised(written: str, printed: str) -> None:
    assert parse_time(written) == printed


@pytest.mark.parametrize(("text", "problem"), WRONG_TIMES)
def test_invalid_times_are_rejected(text: str, problem: str) -> None:
    with pytest.raises(TimeError) as caught:
        parse_time(text)
    assert str(caught.value) == f'parsing time "{text}"{problem}'


def test_error_message_quotes_text_as_go_does() -> None:
    with pytest.raises(TimeError) as caught:
        parse_time('é\t"\\')
    assert r'parsing time "\xc3\xa9\x09\"\\" as' in str(caught.value)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "0001-01-01T01:00:00+01:00"])
def test_zero_time_is_null(text: str) -> None:
    assert parse_time(text) is None


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2024-01-01T00:00:00.000001Z", "2024-01-01T00:00:00.000001Z"),
        ("2024-01-01T00:00:00.500000-01:00", "2024-01-01T01:00:00.500000Z"),
        ("2024-01-01T00:00:00.+12345Z", "2024-01-01T00:00:00.012345Z"),
        ("0001-01-01T00:00:00.000000Z", None),
    ],
)
def test_parse_micro_time(text: str, printed: str | None) -> None:
    assert parse_micro_time(text) == printed


@pytest.mark.parametrize("text", ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5Z", "2024-01-01T00:00:00.0000001Z"])
def test_micro_time_requires_six_fractional_digits(text: str) -> None:
    with pytest.raises(TimeError, match=r"2006-01-02T15:04:05\.000000Z07:00"):
        parse_micro_time(text)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)), st.integers(-24 * 60, 24 * 60))
def test_timestamps_equal_those_of_datetime_in_utc(moment: datetime, minutes: int) -> None:
    zone = timezone(timedelta(minutes=min(max(minutes, -1439), 1439)))
    text = moment.replace(tzinfo=zone).isoformat(timespec="microseconds")
    in_utc = moment.replace(tzinfo=zone).astimezone(UTC)
    expected = in_utc.isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert parse_micro_time(text) == expected
    assert parse_time(text) == expected[:19] + "Z"


@given(st.text(alphabet="0123456789-:TZ.+ x", max_size=30))
def test_arbitrary_text_is_parsed_or_rejected(text: str) -> None:
    for read in (parse_time, parse_micro_time):
        try:
            read(text)
        except TimeError as error:
            assert str(error).startswith("parsing time ")


def test_times_are_printed_as_in_objects() -> None:
    moment = datetime(2024, 1, 2, 3, 4, 5, 60, tzinfo=UTC)
    assert (print_time(moment), print_micro_time(moment)) == ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05.000060Z")
    assert print_micro_time(moment.replace(microsecond=0)) == "2024-01-02T03:04:05.000000Z"


@pytest.mark.parametrize(
    ("seconds", "printed"),
    [
        (1.5, "1970-01-01 00:00:01.5 +0000 UTC"),
        (-62135596801, "0000-12-31 23:59:59 +0000 UTC"),
        (-100_000_000_000, "-1199-02-15 14:13:20 +0000 UTC"),
        (10**15, "31690708-07-05 01:46:40 +0000 UTC"),
    ],
)
def test_times_of_any_year_are_printed_like_time_string(seconds: float, printed: str) -> None:
    assert print_unix_time(seconds) == printed


@given(st.lists(st.datetimes() | st.datetimes(timezones=st.just(UTC)), min_size=2, max_size=4), st.integers(0, 1_999_999))
def test_times_are_printed_in_whole_seconds(moments: list[datetime], later: int) -> None:
    moments += [moment + timedelta(microseconds=later) for moment in moments if moment.year < 9999]
    for moment in moments:
        assert print_time(moment) == moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"

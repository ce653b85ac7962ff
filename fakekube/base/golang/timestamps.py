"""Parses and prints times and durations like Go's time package, with the same error messages.

Objects contain times in the form that the real server prints: in UTC, with whole seconds (`Time`) or with
microseconds (`MicroTime`).

Specified by: Go's time package (format.go: Parse, RFC3339, ParseDuration, Time.String; time.go: Duration.String) and
k8s.io/apimachinery/pkg/apis/meta/v1 (time.go, micro_time.go).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from fakekube.base.caches import cache_by_text
from fakekube.base.golang.strconv import parse_int
from fakekube.base.golang.strings import bytes_of

_RFC3339: Final = "2006-01-02T15:04:05Z07:00"
_RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
_LOCAL: Final = "2006-01-02T15:04:05"
_ZERO: Final = "0001-01-01T00:00:00"
#: The zero time, as Go writes it.
ZERO_TIME: Final = f"{_ZERO}Z"
#: The same as the method String of time.Time prints it.
ZERO_TIME_STRING: Final = "0001-01-01 00:00:00 +0000 UTC"
#: The error of time.LoadLocation for a name that leaves the folder of time zones.
INVALID_LOCATION: Final = "time: invalid location name"
#: The length of the date and time of an ISO 8601 text, to the second.
_SECONDS: Final = len(_ZERO)
#: The calendar repeats itself after so many years, which last so many seconds.
CALENDAR_YEARS: Final = 400
CALENDAR_SECONDS: Final = 146_097 * 86_400

#: Times that are printed as they are, if `datetime` reads them, which takes hour 24 since Python 3.14.
_USUAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_USUAL_MICRO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
_FRACTION = re.compile(r"[.,][0-9]+")
_PARTS = re.compile(r"([^T]+T)([0-9]+)(:[0-9]+:[0-9]+)(?:[.,]([0-9]+))?(.+)")


class TimeError(ValueError):
    """A text is not a valid time. The message is Go's."""


#: The second that was printed last, and its text: a write prints its time several times, and many writes share a second.
_last_second: Final[list[tuple[datetime, str]]] = [(datetime.min.replace(tzinfo=UTC), ZERO_TIME)]
_NO_TIME, _ONE_SECOND = timedelta(), timedelta(seconds=1)


def print_time(moment: datetime) -> str:
    """Prints a UTC time like metav1.Time, in whole seconds."""
    second, text = _last_second[0]
    is_utc = moment.tzinfo is UTC
    if is_utc and _NO_TIME <= moment - second < _ONE_SECOND:
        return text
    text = f"{moment.isoformat(timespec='seconds')[:_SECONDS]}Z"
    if is_utc:
        _last_second[0] = moment.replace(microsecond=0), text
    return text


def print_micro_time(moment: datetime) -> str:
    """Prints a UTC time like metav1.MicroTime."""
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def print_unix_time(seconds: float) -> str:
    """Prints a time in UTC like Go's Time.String, without a monotonic clock.

    Args:
        seconds: since 1970; of any year, unlike those of `datetime`.
    """
    periods, rest = divmod(seconds, CALENDAR_SECONDS)
    moment = datetime.fromtimestamp(rest, UTC)
    year = moment.year + int(periods) * CALENDAR_YEARS
    fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
    return f"{year:0{4 if year >= 0 else 5}}-{moment:%m-%d %H:%M:%S}{fraction} +0000 UTC"


@cache_by_text(1024)
def parse_time(text: str) -> str | None:
    """Returns the printed form of a `Time`; None for Go's zero time, which prints as null.

    Raises:
        TimeError: the text is not a valid time.
    """
    if _USUAL.fullmatch(text) and _is_date(text) and not text.startswith(_ZERO):
        return text
    return _Parser(text, _RFC3339).print_in_utc(0)


@cache_by_text(1024)
def parse_micro_time(text: str) -> str | None:
    """Returns the printed form of a `MicroTime`; None for Go's zero time, which prints as null.

    Raises:
        TimeError: the text is not a valid time.
    """
    if _USUAL_MICRO.fullmatch(text) and _is_date(text) and not text.startswith(_ZERO):
        return text
    return _Parser(text, _RFC3339_MICRO).print_in_utc(6)


def parse_nanosecond_time(text: str) -> str:
    """Parses an RFC 3339 time and prints it like Go's MarshalText: in its own zone, with at most nanoseconds.

    Raises:
        TimeError: the text is not a valid time.
    """
    _Parser(text, _RFC3339).print_in_utc(0)
    parts = _PARTS.fullmatch(text)
    assert parts is not None
    date, hour, rest, fraction, zone = parts.groups()
    fraction = (fraction or "")[:9].rstrip("0")
    return f"{date}{hour:0>2}{rest}{'.' if fraction else ''}{fraction}{'Z' if zone[1:] == '00:00' else zone}"


def local_time_problem(text: str) -> str:
    """Returns Go's error for parsing a text as a time without a zone; "" if there is none."""
    try:
        _Parser(text, _LOCAL).print_in_utc(0)
    except TimeError as problem:
        return str(problem)
    return ""


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text[:_SECONDS])
    except ValueError:
        return False
    return True


class _Parser:
    """Parses one text along a layout, element by element."""

    def __init__(self, text: str, layout: str) -> None:
        self.text = text
        self.rest = text
        self.layout = layout

    def print_in_utc(self, digits: int) -> str | None:
        """Parses the whole text and prints the time in UTC with `digits` fractional digits."""
        year = self._number("2006", "-")
        month = self._number("01", "-", range(1, 13), "month")
        day = self._number("02", "T")
        hour = self._hour()
        minute = self._number("04", ":", range(60), "minute")
        second = self._number("05", "", range(60), "second")
        nanoseconds = self._fraction()
        offset = timedelta() if self.layout == _LOCAL else self._zone()
        if self.rest:
            raise TimeError(f"parsing time {quote(self.text)}: extra text: {quote(self.rest)}")
        if not 1 <= day <= _days(year, month):
            raise self._out_of_range("day")
        # Years outside of the range of `datetime` are shifted by the period of the calendar.
        shift = CALENDAR_YEARS if year < 2 else -CALENDAR_YEARS if year > 9998 else 0
        moment = datetime(year + shift, month, day, hour, minute, second) - offset
        text = f"{moment.year - shift:04d}{moment.strftime('-%m-%dT%H:%M:%S')}"
        if text == _ZERO and not nanoseconds:
            return None
        fraction = f".{nanoseconds // 1000:06d}" if digits else ""
        return f"{text}{fraction}Z"

    def _number(self, element: str, then: str, allowed: range | None = None, name: str = "") -> int:
        """Parses a number with as many digits as its layout element, then a literal."""
        held = self.rest
        digits = held[: len(element)]
        if len(digits) < len(element) or not _is_decimal(digits):
            raise self._cannot_parse(held, element)
        number = int(digits)
        if allowed is not None and number not in allowed:
            raise self._out_of_range(name)
        self.rest = held[len(element) :]
        self._literal(then)
        return number

    def _hour(self) -> int:
        """Parses the hour, the only number that may have a single digit."""
        held = self.rest
        length = 2 if _is_decimal(held[:2]) and len(held) > 1 else 1
        if not _is_decimal(held[:length]):
            raise self._cannot_parse(held, "15")
        hour = int(held[:length])
        if hour >= 24:
            raise self._out_of_range("hour")
        self.rest = held[length:]
        self._literal(":")
        return hour

    def _literal(self, literal: str) -> None:
        if not self.rest.startswith(literal):
            raise self._cannot_parse(self.rest, literal)
        self.rest = self.rest[len(literal) :]

    def _fraction(self) -> int:
        """Parses the fraction of the seconds into nanoseconds. If the layout has none, Go accepts one of any length."""
        if self.layout == _RFC3339_MICRO:
            digits = self.rest[1:7]
            unsigned = digits[1:] if digits[:1] in ("+", "-") else digits
            if len(digits) < 6 or self.rest[0] not in ".," or not _is_decimal(unsigned):
                raise self._cannot_parse(self.rest, ".000000")
            if int(digits) < 0:
                raise self._out_of_range("fractional second")
            self.rest = self.rest[7:]
            return int(digits) * 1000
        match = _FRACTION.match(self.rest)
        if match is None:
            return 0
        self.rest = self.rest[match.end() :]
        return int(match[0][1:10].ljust(9, "0"))

    def _zone(self) -> timedelta:
        if self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            return timedelta()
        held = self.rest
        zone = held[:6]
        if len(zone) < 6 or zone[3] != ":":
            raise self._cannot_parse(held, "Z07:00")
        # Go reports a number out of range before any other error, and the minutes before the hours.
        hours = int(zone[1:3]) if _is_decimal(zone[1:3]) else -1
        minutes = int(zone[4:6]) if hours >= 0 and _is_decimal(zone[4:6]) else -1
        if hours > 24 or minutes > 60:
            raise self._out_of_range("time zone offset " + ("minute" if minutes > 60 else "hour"))
        if minutes < 0 or zone[0] not in "+-":
            raise self._cannot_parse(held, "Z07:00")
        self.rest = held[6:]
        offset = timedelta(hours=hours, minutes=minutes)
        return -offset if zone[0] == "-" else offset

    def _cannot_parse(self, value: str, element: str) -> TimeError:
        words = f"parsing time {quote(self.text)} as {quote(self.layout)}: "
        return TimeError(f"{words}cannot parse {quote(value)} as {quote(element)}")

    def _out_of_range(self, what: str) -> TimeError:
        return TimeError(f"parsing time {quote(self.text)}: {what} out of range")


def quote(text: str) -> str:
    """Quotes a text like Go's time package: characters other than printable ASCII are escaped byte by byte."""
    if text.isascii() and text.isprintable():
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(map(_escape, bytes_of(text))) + '"'


def _escape(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


# --- Durations such as `1h30m` or `-1.5s` ----------------------------------------------------------------------------
# The OpenAPI format `duration` also accepts unit names in full, days and weeks (`parse_spelled_duration`).
# Specified by: k8s.io/kube-openapi/pkg/validation/strfmt (duration.go).


_NANOSECONDS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_LIMIT: Final = 1 << 63
_LIMIT_DIGITS: Final = 19
_NUMBER: Final = re.compile(r"0*+([0-9]*)(?:\.([0-9]*))?")
_UNIT: Final = re.compile(r"[^0-9.]*")

_NUMBER_AND_WORD: Final = re.compile(r"(?<![0-9])([0-9]++)[\t\n\f\r ]*([A-Za-zµ]+)")
#: The unit names, the prefix that identifies each, and the length of the unit in nanoseconds.
_SPELLED: Final = (
    (frozenset({"ns"}), "nano", 1), (frozenset({"us", "µs"}), "micro", 10**3), (frozenset({"ms"}), "milli", 10**6),
    (frozenset({"s"}), "sec", 10**9), (frozenset({"m"}), "min", 60 * 10**9), (frozenset({"h", "hr"}), "hour", 3600 * 10**9),
    (frozenset({"d"}), "day", 86_400 * 10**9), (frozenset({"w", "wk"}), "week", 604_800 * 10**9),
)  # fmt: skip


def parse_duration(text: str) -> int:
    """Returns the duration in nanoseconds (int64). Raises ValueError with Go's message."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest) or not at:
        number = _NUMBER.match(rest, at)
        assert number is not None  # it matches nothing, too
        if not number[0].strip(".") or len(number[1]) > _LIMIT_DIGITS:
            raise _invalid(text)
        unit = _UNIT.match(rest, number.end())
        assert unit is not None
        if not unit[0]:
            raise ValueError(f"time: missing unit in duration {quote(text)}")
        if unit[0] not in _NANOSECONDS:
            raise ValueError(f"time: unknown unit {quote(unit[0])} in duration {quote(text)}")
        total += _nanoseconds(number[1], number[2] or "", _NANOSECONDS[unit[0]])
        if total > _LIMIT:
            raise _invalid(text)
        at = unit.end()
    if total == _LIMIT and not negative:
        raise _invalid(text)
    return -total if negative else total


def print_duration(nanoseconds: int) -> str:
    """Prints a duration like Go's Duration.String: `1h0m0s`, `1.5s`, `20ms`."""
    sign, rest = "-" if nanoseconds < 0 else "", abs(nanoseconds)
    if rest < 10**9:
        unit = next((unit for unit in ("ms", "µs") if rest >= _NANOSECONDS[unit]), "ns") if rest else "s"
        return f"{sign}{_format_fraction(rest, _NANOSECONDS[unit])}{unit}"
    seconds, fraction = divmod(rest, 10**9)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    opening = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{opening}{_format_fraction(seconds * 10**9 + fraction, 10**9)}s"


def _format_fraction(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    fraction = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)


def parse_spelled_duration(text: str) -> int:
    """Parses a duration whose units may be spelled out.

    Returns:
        Nanoseconds: of a Go duration, or else the sum of all numbers that precede a unit anywhere in the text.

    Raises:
        ValueError: the text contains no duration.
    """
    try:
        return parse_duration(text)
    except ValueError:
        found = [(parse_int(number, "Atoi"), word.lower()) for number, word in _NUMBER_AND_WORD.findall(text)]
    spans = [number * span for number, word in found for short, long, span in _SPELLED if word in short or word.startswith(long)]
    if not spans:
        raise ValueError(f"unable to parse {text} as duration")
    return (sum(spans) + _LIMIT) % (2 * _LIMIT) - _LIMIT  # int64 wraps around


def _nanoseconds(whole: str, fraction: str, unit: int) -> int:
    """Go computes the fraction with floats, from as many digits as 63 bits hold."""
    digits = fraction[:_LIMIT_DIGITS]
    if int(digits or "0") >= _LIMIT:
        digits = digits[:-1]
    return int(whole or "0") * unit + int(int(digits or "0") * (unit / float(10 ** len(digits))))


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {quote(text)}")

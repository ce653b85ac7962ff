"""Standard functions: sizes, conversions, parts of strings, parts of times.

Specified by: cel-spec, doc/langdef.md (List of Standard Definitions); cel-go/common/stdlib, cel-go/common/types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.values import (
    NANOSECONDS,
    Duration,
    Mapping,
    Timestamp,
    UInt,
    checked_int,
    checked_timestamp,
    checked_uint,
    double_text,
    type_of,
)
from fakekube.base.golang import timestamps
from fakekube.base.golang.strconv import parse_int, parse_uint
from fakekube.base.golang.timestamps import CALENDAR_SECONDS, CALENDAR_YEARS, INVALID_LOCATION

_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _unconvertible(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def _parse_duration(text: str) -> Duration:
    """Parses a duration like Go. Raises EvaluationError."""
    try:
        return Duration(timestamps.parse_duration(text))
    except ValueError:
        raise _unconvertible("string", "google.protobuf.Duration") from None


def parse_timestamp(text: str) -> Timestamp:
    """Parses a time (RFC 3339). Raises EvaluationError."""
    try:
        return checked_timestamp(*read_timestamp(text))
    except ValueError:
        raise _unconvertible("string", "google.protobuf.Timestamp") from None


def read_timestamp(text: str) -> tuple[int, int]:
    """Returns the nanoseconds since 1970, and the UTC offset in minutes. Raises ValueError."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    if sign and (int(hours) > 24 or int(minutes) > 60):
        raise ValueError(text)
    offset = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1) if sign else 0
    calendar = int(year) or CALENDAR_YEARS  # `datetime` does not have the year 0
    moment = datetime(calendar, int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    seconds = round((moment - _EPOCH).total_seconds()) - offset * 60 - (0 if int(year) else CALENDAR_SECONDS)
    return seconds * NANOSECONDS + int((fraction or "")[:9].ljust(9, "0")), offset


def _string_to_int(text: str) -> int:
    try:
        return parse_int(text)
    except ValueError:
        raise _unconvertible("string", "int") from None


def _string_to_uint(text: str) -> UInt:
    try:
        return UInt(parse_uint(text))
    except ValueError:
        raise _unconvertible("string", "uint") from None


_SEPARATED = re.compile(r"(?<=[0-9])_(?=[0-9])")
_SEPARATED_HEX = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
_HEX_FLOAT = re.compile(r"[-+]?0[xX](?:[0-9a-fA-F]++\.?[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP][-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:(?:[0-9]++\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf(?:inity)?)|nan", re.IGNORECASE)


def _string_to_double(text: str) -> float:
    """Parses a number like strconv.ParseFloat. Raises EvaluationError, also for one that is too large."""
    if text.lstrip("+-")[:2] in ("0x", "0X"):
        text = _SEPARATED_HEX.sub("", _SEPARATED.sub("", text))
        try:
            if _HEX_FLOAT.fullmatch(text):
                return float.fromhex(text)
        except OverflowError:
            pass
        raise _unconvertible("string", "double")
    text = _SEPARATED.sub("", text)
    if not _FLOAT.fullmatch(text) or (math.isinf(float(text)) and "i" not in text.lower()):
        raise _unconvertible("string", "double")
    return float(text)


def _string_to_bool(text: str) -> bool:
    try:
        return _BOOLEANS[text]
    except KeyError:
        raise _unconvertible("string", "bool") from None


def _double_to_int(number: float) -> int:
    if not -(2.0**63) < number < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(number)


def _double_to_uint(number: float) -> UInt:
    if not 0 <= number < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(number)


def _bytes_to_string(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


# --- Times ------------------------------------------------------------------------------------------------------------


def _offset(name: str) -> timedelta:
    """Parses an offset from UTC, `hours:minutes`. Raises EvaluationError."""
    try:
        hours, minutes = (parse_int(part, "Atoi") for part in name.split(":", 1))
    except ValueError as problem:
        raise EvaluationError(str(problem)) from None
    return timedelta(minutes=hours * 60 + (-minutes if name[0] == "-" else minutes))


def _local(stamp: Timestamp, zone: str) -> datetime:
    """Returns the time in a zone. Raises EvaluationError."""
    if zone.startswith(("/", "\\")) or ".." in zone:
        raise EvaluationError(INVALID_LOCATION)
    try:
        if ":" in zone:
            return stamp.moment() + _offset(zone)
        return stamp.moment(UTC if zone in ("", "UTC", "Local") else ZoneInfo(zone))
    except (KeyError, ValueError, OSError, OverflowError):
        raise EvaluationError(f"unknown time zone {zone}") from None


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
}


def _part_of(part: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda stamp, zone="": part(_local(stamp, zone))


def _milliseconds(stamp: Timestamp, zone: str = "") -> int:
    _local(stamp, zone)
    return stamp.nanoseconds % NANOSECONDS // 1_000_000


def _span_in(unit: int) -> Callable[[Duration], int]:
    return lambda span: -(-span.nanoseconds // unit) if span.nanoseconds < 0 else span.nanoseconds // unit


_TIME_FUNCTIONS: dict[tuple[Any, ...], Callable[..., Any]] = {
    **{(name, True, Timestamp): _part_of(part) for name, part in _PARTS.items()},
    **{(name, True, Timestamp, str): _part_of(part) for name, part in _PARTS.items()},
    ("getMilliseconds", True, Timestamp): _milliseconds,
    ("getMilliseconds", True, Timestamp, str): _milliseconds,
    ("getHours", True, Duration): _span_in(3600 * NANOSECONDS),
    ("getMinutes", True, Duration): _span_in(60 * NANOSECONDS),
    ("getSeconds", True, Duration): _span_in(NANOSECONDS),
    ("getMilliseconds", True, Duration): _span_in(1_000_000),
}


def _no_duration(number: int) -> Duration:
    """Raises EvaluationError: the real library declares this conversion, but does not implement it."""
    raise _unconvertible("int", "google.protobuf.Duration")


def _size(value: Any) -> int:
    return len(value)


_CONVERSIONS: dict[tuple[Any, ...], Callable[..., Any]] = {
    ("int", False, int): lambda value: value,
    ("int", False, UInt): lambda value: checked_int(int(value)),
    ("int", False, float): _double_to_int,
    ("int", False, str): _string_to_int,
    ("int", False, Timestamp): lambda value: value.nanoseconds // NANOSECONDS,
    ("int", False, Duration): lambda value: value.nanoseconds,
    ("uint", False, UInt): lambda value: value,
    ("uint", False, int): checked_uint,
    ("uint", False, float): _double_to_uint,
    ("uint", False, str): _string_to_uint,
    ("double", False, float): lambda value: value,
    ("double", False, int): float,
    ("double", False, UInt): float,
    ("double", False, str): _string_to_double,
    ("bool", False, bool): lambda value: value,
    ("bool", False, str): _string_to_bool,
    ("string", False, str): lambda value: value,
    ("string", False, bool): lambda value: "true" if value else "false",
    ("string", False, int): str,
    ("string", False, UInt): lambda value: str(int(value)),
    ("string", False, float): double_text,
    ("string", False, bytes): _bytes_to_string,
    ("string", False, Timestamp): str,
    ("string", False, Duration): str,
    ("bytes", False, bytes): lambda value: value,
    ("bytes", False, str): str.encode,
    ("timestamp", False, Timestamp): lambda value: value,
    ("timestamp", False, str): parse_timestamp,
    ("timestamp", False, int): lambda value: checked_timestamp(value * NANOSECONDS),
    ("duration", False, Duration): lambda value: value,
    ("duration", False, str): _parse_duration,
    ("duration", False, int): _no_duration,
    ("dyn", False, object): lambda value: value,
    ("type", False, object): type_of,
}

FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    **_CONVERSIONS,
    **_TIME_FUNCTIONS,
    **{("size", member, kind): _size for member in (False, True) for kind in (str, bytes, list, Mapping)},
    ("contains", True, str, str): lambda text, part: part in text,
    ("startsWith", True, str, str): str.startswith,
    ("endsWith", True, str, str): str.endswith,
}

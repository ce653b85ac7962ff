"""Durations, as Go reads them: values at the 64-bit limits, and error messages."""

from __future__ import annotations

import pytest

from fakekube.base.golang.timestamps import parse_duration, print_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0), ("-0", 0), ("+0", 0), ("0s", 0), ("1ns", 1), ("1us", 1000), ("1µs", 1000), ("1μs", 1000),
        ("1.5h", 5_400_000_000_000), (".5m", 30_000_000_000), ("1.s", 10**9), ("1h1m1s1ms", 3_661_001_000_000),
        ("-2s", -(2 * 10**9)), ("1s1s", 2 * 10**9), ("00000000000000000000001s", 10**9),
        ("0.3333333333333333333h", 1_200_000_000_000), ("0." + "1" * 5000 + "s", 111_111_111),
        ("9223372036854775807ns", 2**63 - 1), ("-9223372036854775808ns", -(2**63)), ("2562047h47m16.854775807s", 2**63 - 1),
    ],
)  # fmt: skip
def test_parse_duration(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "+",
        "s",
        ".s",
        "-.s",
        "x1s",
        "+-1s",
        " 1s",
        "9223372036854775808ns",
        "-9223372036854775809ns",
        "2562048h",
        "1" * 5000 + "s",
    ],
)
def test_invalid_durations_are_rejected(text: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_duration(text)
    assert str(raised.value) == f'time: invalid duration "{text}"'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("3", 'missing unit in duration "3"'),
        ("1s1", 'missing unit in duration "1s1"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        ("1ø", 'unknown unit "\\xc3\\xb8" in duration "1\\xc3\\xb8"'),
        ("1s 1s", 'unknown unit "s " in duration "1s 1s"'),
        ('1"', 'unknown unit "\\"" in duration "1\\""'),
    ],
)
def test_unknown_or_missing_units_are_rejected(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_duration(text)
    assert str(raised.value) == f"time: {problem}"


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1500, "1.5µs"),
        (20 * 10**6, "20ms"),
        (1500 * 10**6, "1.5s"),
        (90 * 10**9, "1m30s"),
        (3600 * 10**9, "1h0m0s"),
        (-5 * 10**9, "-5s"),
        (3661 * 10**9 + 5, "1h1m1.000000005s"),
    ],
)
def test_durations_are_formatted_as_in_go(nanoseconds: int, text: str) -> None:
    assert print_duration(nanoseconds) == text

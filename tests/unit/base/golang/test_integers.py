"""Integers, parsed as by strconv: error messages, and bounded work for long texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.base.golang.strconv import INT64, UINT64, parse_int, parse_uint


@given(st.integers(INT64.start, INT64.stop - 1), st.sampled_from(["", "000"]))
def test_parse_int(number: int, zeros: str) -> None:
    sign = "-" if number < 0 else "+"
    assert parse_int(f"{sign}{zeros}{abs(number)}") == number


@given(st.integers(0, UINT64.stop - 1))
def test_parse_uint(number: int) -> None:
    assert parse_uint(str(number)) == number


@pytest.mark.parametrize(
    "text", ["", "+", "-", "+-1", "1.0", "1e3", " 1", "1 ", "1_000", "0x10", "١", "9223372036854775808x", "1\n"]
)
def test_parse_int_invalid_syntax(text: str) -> None:
    with pytest.raises(ValueError, match=r"^strconv\.ParseInt: parsing \".*\": invalid syntax$"):
        parse_int(text)


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "-9223372036854775809", "18446744073709551616x", "1" * 100_000, "-" + "9" * 5000]
)
def test_parse_int_out_of_range(text: str) -> None:
    """Too many digits are seen before what follows them."""
    with pytest.raises(ValueError, match=r"^strconv\.Atoi: parsing \".*\": value out of range$"):
        parse_int(text, "Atoi")


@pytest.mark.parametrize(
    ("text", "problem"), [("-1", "invalid syntax"), ("+1", "invalid syntax"), ("18446744073709551616", "value out of range")]
)
def test_parse_uint_errors(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_uint(text)
    assert str(raised.value) == f'strconv.ParseUint: parsing "{text}": {problem}'

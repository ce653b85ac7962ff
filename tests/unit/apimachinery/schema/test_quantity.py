from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.schema.quantity import Format, Quantity, QuantityError, canonical, parse, round_up_to_milli

#: Written, printed: as the reference does.
PRINTED = [
    ("0", "0"), ("00", "0"), ("0.0", "0"), ("-0", "0"), ("0Gi", "0"), ("0e5", "0"),
    ("1", "1"), ("1000", "1k"), ("1500", "1500"), ("0.5", "500m"), (".5", "500m"), ("5.", "5."), ("100m", "100m"),
    ("1000m", "1"), ("1e3", "1e3"), ("1E3", "1E3"), ("12e1", "120"), ("1e4", "10e3"), ("1e-3", "1e-3"),
    ("1024Mi", "1Gi"), ("1536Mi", "1536Mi"), ("0.5Gi", "512Mi"), ("1.5Ki", "1536"), ("1023", "1023"),
    ("0.1Mi", "104857600m"), ("1.500", "1.500"), ("+5", "+5"), ("1e03", "1e03"), ("1000E", "1"),
    ("0.0000000001", "1n"), ("1234567890123456789012345678", "1234567890123456789012345678"),
    ("9223372036854775808Ei", "9223372036854775807"), ("-1Ki", "-1Ki"), ("-0.0000000001", "-1n"), (".", "0"), ("+", "0"), ("Ki", "0"), (".m", "0"),
]  # fmt: skip

WRONG_FORMAT = ["", " ", "x", "1x", "1.2.3", "1 ", "1é", "{", "1e5e5 "]
WRONG_SUFFIX = ["--1", "1Kii", "1mm", "1ki", "1K", "1e", "1E+", "1e1234567890123456789012"]

suffixes = st.sampled_from(["", "m", "u", "n", "k", "M", "G", "T", "Ki", "Mi", "Gi"])
numbers = st.decimals(min_value=-(10**6), max_value=10**6, places=3)  # with T no more than 10**18: E ends there
texts = st.builds(lambda number, suffix: f"{number:f}{suffix}", numbers, suffixes)


def exact(text: str) -> Fraction:
    number = text.rstrip("munkMGTKi")
    suffix = text[len(number) :]
    powers = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12}
    if suffix.endswith("i"):
        return Fraction(number) * (1 << 10 * ("KMG".index(suffix[0]) + 1))
    power = powers[suffix]
    return Fraction(number) * (Fraction(10**power) if power >= 0 else Fraction(1, 10**-power))


def at_nano(amount: Fraction) -> Fraction:
    scaled = abs(amount) * 10**9
    rounded = Fraction(-(-scaled.numerator // scaled.denominator), 10**9)
    return rounded if amount >= 0 else -rounded


@pytest.mark.parametrize(("written", "printed"), PRINTED)
def test_canonical_form(written: str, printed: str) -> None:
    assert canonical(written) == printed


@pytest.mark.parametrize("text", WRONG_FORMAT)
def test_malformed_quantities_are_rejected(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse(text)


@pytest.mark.parametrize("text", WRONG_SUFFIX)
def test_unknown_suffixes_are_rejected(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        parse(text)


@pytest.mark.parametrize("text", ["e-20", "9" * 2000])
def test_malformed_numbers_are_rejected(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse numeric part of quantity"):
        parse(text)


@given(texts)
def test_amounts_are_exact_to_nano(text: str) -> None:
    assert parse(text).amount == at_nano(exact(text))


@given(texts)
def test_formatting_preserves_the_amount(text: str) -> None:
    quantity = parse(text)
    assert parse(str(quantity)) == quantity
    assert canonical(str(quantity)) == str(quantity)


@given(texts, texts)
def test_comparison_and_arithmetic_match_fractions(one: str, other: str) -> None:
    first, second = parse(one), parse(other)
    assert (first < second) == (first.amount < second.amount)
    assert (first == second) == (first.amount == second.amount)
    assert (first + second).amount == first.amount + second.amount
    assert (first - second).amount == first.amount - second.amount
    assert (first == second) <= (hash(first) == hash(second))


@given(texts, st.integers(-12, 12))
def test_rounding_is_away_from_zero(text: str, scale: int) -> None:
    quantity = parse(text)
    rounded = quantity.round_up(scale)
    unit = Fraction(10) ** scale
    assert abs(rounded.amount) >= abs(quantity.amount)
    assert abs(rounded.amount) - abs(quantity.amount) < unit
    assert rounded.amount % unit == 0


def test_value_and_milli_value_round_up() -> None:
    assert parse("1500m").value() == 2
    assert parse("-1500m").value() == -2
    assert parse("1u").milli_value() == 1
    assert parse("2Ki").milli_value() == 2048_000


@pytest.mark.parametrize(
    ("text", "value"),
    [("9223372036854775807", 2**63 - 1), ("9223372036854775808", -(2**63)), ("18446744073709551616", 0), ("1e30", 0)],
)
def test_values_beyond_64_bits_overflow_as_in_go(text: str, value: int) -> None:
    assert parse(text).value() == value


def test_sum_has_the_format_of_the_first_nonzero_operand() -> None:
    assert str(parse("1Gi") + parse("1G")) == str(Quantity(2**30 + 10**9, 0, Format.BINARY_SI))
    assert (parse("0") + parse("1Gi")).format is Format.BINARY_SI


def test_rounded_up_to_milli() -> None:
    assert round_up_to_milli("1n") == "1m"
    assert round_up_to_milli("1.500") == "1.500"


@pytest.mark.parametrize("text", ["1e9999999999", "-1E2000000000", "1e-2000000000", "9" * 900 + "e999999999"])
def test_large_exponents_are_handled(text: str) -> None:
    quantity = parse(text)
    assert str(quantity)
    assert quantity == parse(text)
    assert isinstance((quantity + parse("1Gi")).value(), int)

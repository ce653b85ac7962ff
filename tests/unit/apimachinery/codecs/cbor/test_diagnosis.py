"""CBOR in diagnostic notation."""

from __future__ import annotations

import pytest
from hypothesis import given

from fakekube.apimachinery.codecs import cbor
from tests.unit.apimachinery.codecs.values import VALUES


@pytest.mark.parametrize(
    ("body", "notation"),
    [
        ("00", "0"),
        ("3903e7", "-1000"),
        ("3bffffffffffffffff", "-18446744073709551616"),
        ("f4", "false"),
        ("f6", "null"),
        ("f7", "undefined"),
        ("f8ff", "simple(255)"),
        ("f93c00", "1.0"),
        ("fb7e37e43c8800759c", "1.0e+300"),
        ("fb3e112e0be826d695", "1.0e-9"),
        ("f93e00", "1.5"),
        ("40", "h''"),
        ("42fffe", "h'fffe'"),
        ("4161", "'a'"),
        ("6161", '"a"'),
        ("43270a22", "'\\'\\n\"'"),
        ("6322270a", '"\\"\'\\n"'),
        ("62c3bc", '"\\u00fc"'),
        ("64f09f9880", '"\\ud83d\\ude00"'),
        ("6101", '"\\u0001"'),
        ("5f41614162ff", "(_ 'a', 'b')"),
        ("5fff", "''_"),
        ("7fff", '""_'),
        ("820102", "[1, 2]"),
        ("9f01ff", "[_ 1]"),
        ("a26161016162a0", '{"a": 1, "b": {}}'),
        ("bf616101ff", '{_ "a": 1}'),
        ("d9d9f7a0", "55799({})"),
        ("61ff", "61ff"),
    ],
)
def test_diagnostic_notation(body: str, notation: str) -> None:
    assert cbor.diagnosis(bytes.fromhex(body)) == notation


@given(VALUES)
def test_every_encoded_value_has_a_diagnostic_notation(value: object) -> None:
    assert cbor.diagnosis(cbor.dumps(value)).startswith("55799(")

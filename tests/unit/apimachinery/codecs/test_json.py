"""JSON as Go reads and writes it."""

from __future__ import annotations

import copy
import json as python_json
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import DecodeError, EncodeError, json
from tests.unit.apimachinery.codecs.values import OBJECTS, VALUES

SYNTAX = [
    (b"", "unexpected end of JSON input"),
    (b"  \n", "unexpected end of JSON input"),
    (b"{", "unexpected end of JSON input"),
    (b'{"a"', "unexpected end of JSON input"),
    (b'{"a":', "unexpected end of JSON input"),
    (b'{"a":1', "unexpected end of JSON input"),
    (b'"abc', "unexpected end of JSON input"),
    (b'"\\', "invalid character ' ' in string escape code"),
    (b'"\\u12', r"invalid character ' ' in \u hexadecimal character escape"),
    (b"nul", "invalid character ' ' in literal null (expecting 'l')"),
    (b"-", "invalid character ' ' in numeric literal"),
    (b"[1.", "invalid character ' ' after decimal point in numeric literal"),
    (b"1e+", "invalid character ' ' in exponent of numeric literal"),
    (b"x", "invalid character 'x' looking for beginning of value"),
    (b"'a'", r"invalid character '\'' looking for beginning of value"),
    (b"<html>", "invalid character '<' looking for beginning of value"),
    (b"NaN", "invalid character 'N' looking for beginning of value"),
    (b"+1", "invalid character '+' looking for beginning of value"),
    (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
    (b"\xff", "invalid character 'ÿ' looking for beginning of value"),
    (b"\0", r"invalid character '\x00' looking for beginning of value"),
    (b"[1,]", "invalid character ']' looking for beginning of value"),
    (b"[,1]", "invalid character ',' looking for beginning of value"),
    (b"{1:2}", "invalid character '1' looking for beginning of object key string"),
    (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
    (b'{"a" 1}', "invalid character '1' after object key"),
    (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
    (b'{"a":1]', "invalid character ']' after object key:value pair"),
    (b"[1 2]", "invalid character '2' after array element"),
    (b"{}}", "invalid character '}' after top-level value"),
    (b"{} {}", "invalid character '{' after top-level value"),
    (b"01", "invalid character '1' after top-level value"),
    (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
    (b"1ex", "invalid character 'x' in exponent of numeric literal"),
    (b"1e+x", "invalid character 'x' in exponent of numeric literal"),
    (b"-x", "invalid character 'x' in numeric literal"),
    (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
    (b"fAlse", "invalid character 'A' in literal false (expecting 'a')"),
    (b'"a\nb"', r"invalid character '\n' in string literal"),
    (b'"\\x"', "invalid character 'x' in string escape code"),
    (b'"\\u12g4"', r"invalid character 'g' in \u hexadecimal character escape"),
    (b"[" * 10_001, "invalid character '[' exceeded max depth"),
    (b'{"a":' * 10_001, "invalid character '{' exceeded max depth"),
]


@pytest.mark.parametrize(("body", "message"), SYNTAX, ids=[str(body[:12]) for body, _ in SYNTAX])
def test_invalid_json_error_messages(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        json.loads(body)
    assert str(caught.value) == message


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_decodes_output_of_python_json(value: Any, indent: int | None, ascii_only: bool) -> None:
    body = python_json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert json.loads(body) == (value, [])


@given(VALUES)
@example([1.0, -0.0, 1e15, 1e21, 1e-6, 1e-7, 5e-324])
def test_python_json_decodes_the_output(value: Any) -> None:
    assert python_json.loads(json.dumps(value)) == value
    assert python_json.loads(json.dumps_pretty(value)) == value


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0aenultrfs1.-+ ', max_size=30).map(str.encode))
def test_arbitrary_bytes_decode_or_raise_decode_error(body: bytes) -> None:
    try:
        value, _ = json.loads(body)
    except DecodeError:
        with pytest.raises(ValueError):
            python_json.loads(body.decode(), parse_constant=_refused)
    else:
        json.dumps(value)


def _refused(word: str) -> None:
    raise ValueError(word)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'"\xff\xe2\x82"', "\ufffd\ufffd\ufffd"),
        (rb'"\ud800"', "\ufffd"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\udc00\ud800x"', "\ufffd\ufffdx"),
        (b"18446744073709551616", 2**64),
        (b"-9223372036854775809", -(2**63) - 1),
        (b" [1 , 2 ] ", [1, 2]),
        (b"1E2", 100.0),
        (rb'"\/\b\f\n\r\t\"\\"', '/\b\f\n\r\t"\\'),
    ],
)
def test_lenient_inputs_accepted_by_go(body: bytes, value: Any) -> None:
    assert json.loads(body) == (value, [])


def test_maximum_depth_is_ten_thousand() -> None:
    value, _ = json.loads(b"[" * 10_000 + b"]" * 10_000)
    assert json.dumps(value) == b"[" * 10_000 + b"]" * 10_000


# ---------------------------------------------------------------- duplicate members


@pytest.mark.parametrize(
    ("body", "value", "duplicates"),
    [
        (b'{"a":1,"a":2}', {"a": 2}, ["a"]),
        (b'{"a":1,"a":2,"a":3}', {"a": 3}, ["a"]),
        (b'{"s":{"x":1},"s":{"y":2}}', {"s": {"x": 1, "y": 2}}, ["s"]),
        (b'{"s":[{"x":1,"x":1}]}', {"s": [{"x": 1}]}, ["s[0].x"]),
        (b'{"a":{"b":1,"b":2},"c":3,"c":4}', {"a": {"b": 2}, "c": 4}, ["a.b", "c"]),
        (rb'{"a":":","a":"\u003a"}', {"a": ":"}, ["a"]),
        (rb'{"a:b":1,"\u0061\u003Ab":2}', {"a:b": 2}, ["a:b"]),
    ],
)
def test_duplicate_members(body: bytes, value: Any, duplicates: list[str]) -> None:
    assert json.loads(body) == (value, duplicates)


def test_untyped_duplicate_objects_are_not_merged() -> None:
    assert json.loads(b'{"s":{"x":1},"s":{"y":2}}', merge=False) == ({"s": {"y": 2}}, ["s"])


def test_duplicate_reports_are_limited_to_a_hundred() -> None:
    body = b"{" + b",".join(b'"k%d":0,"k%d":0' % (number, number) for number in range(150)) + b"}"
    assert len(json.loads(body)[1]) == 100


@given(st.lists(st.sampled_from(["a", "b", ":", '"', "\\", "\u00e9", '":', "a\\", '\\"']), min_size=1, max_size=5), st.booleans())
def test_duplicates_are_found_regardless_of_escapes(keys: list[str], ascii_only: bool) -> None:
    body = "{" + ",".join(f"{python_json.dumps(key, ensure_ascii=ascii_only)}:1" for key in keys) + "}"
    expected = list(dict.fromkeys(key for at, key in enumerate(keys) if key in keys[:at]))
    assert json.loads(body.encode())[1] == expected


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"), (-0.0, "-0"), (0.1, "0.1"), (1e20, "100000000000000000000"), (1e21, "1e+21"), (1e-6, "0.000001"),
        (1e-7, "1e-7"), (1.5e-10, "1.5e-10"), (123456789.125, "123456789.125"), (1.7976931348623157e308, "1.7976931348623157e+308"),
        (2.0**63, "9223372036854776000"), (5e-324, "5e-324"),
    ],
)  # fmt: skip
def test_floats_are_formatted_as_in_go(number: float, text: str) -> None:
    assert json.float_text(number) == text
    assert json.dumps({"a": [number]}) == f'{{"a":[{text}]}}'.encode()
    assert json.dumps(number) == text.encode()


@pytest.mark.parametrize(("number", "word"), [(float("nan"), "NaN"), (float("inf"), "+Inf"), (-float("inf"), "-Inf")])
def test_nan_and_infinity_cannot_be_encoded(number: float, word: str) -> None:
    with pytest.raises(EncodeError, match=f"unsupported value: {word}".replace("+", r"\+")):
        json.float_text(number)


def test_integers_beyond_64_bits_are_written() -> None:
    assert json.dumps([2**64, -(2**70)]) == b"[18446744073709551616,-1180591620717411303424]"


def test_overflowing_numbers_keep_their_literal() -> None:
    value, _ = json.loads(b'{"a":1e999,"b":[-1E400]}')
    assert isinstance(value["a"], json.Overflow)
    assert value["a"].literal == "1e999"
    assert value["b"][0].literal == "-1E400"
    with pytest.raises(DecodeError, match="json: cannot unmarshal number 1e999 into Go value of type float64"):
        json.to_untyped(value)


def test_untyped_large_integers_become_floats() -> None:
    value = json.to_untyped({"a": [2**63, 2**63 - 1, -(2**63) - 1], "b": {"c": 10**30}})
    assert value == {"a": [float(2**63), 2**63 - 1, -float(2**63)], "b": {"c": 1e30}}
    assert [type(item) for item in value["a"]] == [float, int, float]


@given(
    st.recursive(st.integers(-(2**65), 2**65) | st.text() | st.floats(allow_nan=False), lambda inner: st.lists(inner, max_size=3))
)
def test_untyped_values_are_those_that_a_visit_of_each_makes(value: Any) -> None:
    assert repr(json.to_untyped(copy.deepcopy(value))) == repr(json._to_untyped(copy.deepcopy(value)))


# ---------------------------------------------------------------- encoding


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("<a href='x'>&", rb'''"\u003ca href='x'\u003e\u0026"'''),
        ("\u2028\u2029\u00e9", b'"\\u2028\\u2029\xc3\xa9"'),
        ("\0\x1f\x7f\t\n\\", b'"\\u0000\\u001f\x7f\\t\\n\\\\"'),
        ({"<": 1}, rb'{"\u003c":1}'),
        ({}, b"{}"),
        ([], b"[]"),
        ({"b": None, "a": True}, b'{"b":null,"a":true}'),
    ],
)
def test_escaped_characters(value: Any, text: bytes) -> None:
    assert json.dumps(value) == text


def test_surrogates_are_replaced() -> None:
    assert json.dumps({"a\udcff": ["\ud800", 1.0]}) == rb'{"a\ufffd":["\ufffd",1]}'


def test_unsupported_types_cannot_be_encoded() -> None:
    with pytest.raises(EncodeError):
        json.dumps({"a": {1}})


@pytest.mark.parametrize("text", ["a-e-6", "1e-6", "x.0", "1e+16", "node+e+5"])
def test_strings_resembling_numbers_are_kept(text: str) -> None:
    assert json.loads(json.dumps([text, {text: text}]))[0] == [text, {text: text}]


def test_pretty_indentation() -> None:
    value = {"a": {"b": [1, {"c": 2.0}], "d": {}, "e": []}}
    assert json.dumps_pretty(value) == (
        b'{\n  "a": {\n    "b": [\n      1,\n      {\n        "c": 2\n      }\n    ],\n    "d": {},\n    "e": []\n  }\n}'
    )


@given(OBJECTS)
def test_fast_and_general_encoder_agree(value: dict[str, Any]) -> None:
    """A float selects the general encoder, without an effect on other values."""
    alone, beside = json.dumps(value), json.dumps({"x": 1.0, "value": value})
    assert beside == b'{"x":1,"value":' + alone + b"}"


ODD = st.sampled_from([1.0, -1.0, 0.0, 1e16, 2.5e20, -1.25e-6, 1e-6, 1.5, 10, "1.0", "a:1.0,", "since 2.0, [1e+16,", "e-6,"])


@given(
    st.recursive(
        ODD, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["a", "1.0"]), below), max_leaves=5
    )
)
def test_floats_among_strings_resembling_floats(value: Any) -> None:
    assert json.dumps([1.0, value]) == b"[1," + json.dumps([value])[1:]
    assert json.dumps_pretty([1.0, value]) == b"[\n  1," + json.dumps_pretty([value])[1:]


# ---------------------------------------------------------------- helpers of strict decoding


def test_members_are_listed_in_order() -> None:
    body = b'{"b":{"x":[{"y":1},2]},"a":1,"b":2}'
    assert list(json.members(body)) == ["b", "b.x", "b.x[0].y", "a", "b"]


def test_number_literals() -> None:
    assert json.literals(b'{"a":[1.50,2,1e5]}') == {"a": ["1.50", 2, "1e5"]}


@pytest.mark.parametrize("space", ["", " ", "  ", "\n", "\t ", "\r\n"])
@pytest.mark.parametrize("text", ["", '":', '{"a":1}', " :", '\\":'])
def test_duplicates_are_found_regardless_of_spaces_and_of_strings_that_contain_json(space: str, text: str) -> None:
    quoted = python_json.dumps(text)
    unique, double = f'{{"a"{space}:{quoted},"b"{space}:1}}', f'{{"a"{space}:{quoted},"a":1}}'
    assert json.loads(unique.encode()) == ({"a": text, "b": 1}, [])
    assert json.loads(double.encode())[1] == ["a"]


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_text_as_encoders_write_it_is_not_searched_for_duplicates(
    separators: tuple[str, str], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json, "_is_careful_reading_required", lambda body, value: pytest.fail("it was searched"))
    value = {"a": {"b": 1}, "c": ["d", {}]}
    assert json.loads((python_json.dumps(value, separators=separators) + end).encode()) == (value, [])


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 10**25])
def test_integers_beyond_64_bits_are_not_rounded(number: int) -> None:
    for body in (b"%d" % number, b'{"a":[%d]}' % number, b'[{"a":{"b": %d}}]' % number):
        assert str(number) in str(json.loads(body)[0])


@given(VALUES)
@example(1.0)
@example(1e22)
@example(1e-6)
@example("<&>")
@example("\u2028")
def test_canonical_text_is_what_is_encoded(value: Any) -> None:
    text = orjson.dumps(value)
    assert not json.is_canonical(text) or json.dumps(value) == text


@pytest.mark.parametrize(("value", "canonical"), [({"a": [1, 1.5, "x", None]}, True), (1.0, False), ("<", False), ("é", False)])
def test_texts_that_may_be_written_in_another_form_are_not_canonical(value: Any, canonical: bool) -> None:
    assert json.is_canonical(orjson.dumps(value)) is canonical

"""YAML as go-yaml v2 and sigs.k8s.io/yaml read and write it; the expected texts are theirs."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import DecodeError, EncodeError, json, yaml
from tests.unit.apimachinery.codecs.values import TEXTS, VALUES

READ = [
    (b"", "null"),
    (b"# nothing\n", "null"),
    (b"null", "null"),
    (b"- a\n", '["a"]'),
    (b"a: &x {b: 1}\nc: *x\n", '{"a":{"b":1},"c":{"b":1}}'),
    (b"<<: {a: 1}\nb: 2", '{"a":1,"b":2}'),
    (b'1: a\n"1": b\n', '{"1":"b"}'),
    (b"true: a\n1.5: b", '{"1.5":"b","true":"a"}'),
    (b'a: !!int "5"', '{"a":5}'),
    (b"a: !!float 5", '{"a":5}'),
    (b"a: !!str 5", '{"a":"5"}'),
    (b"a: ! 5", '{"a":"5"}'),
    (b"a: !foo 5", '{"a":"5"}'),
    (b"a: !!bool y", '{"a":true}'),
    (b"!!map {a: b}", '{"a":"b"}'),
    (b"a: |\n  x\n  y\n", '{"a":"x\\ny\\n"}'),
    (b"a: >-\n  x\n  y\n", '{"a":"x y"}'),
    (b'a: "\\x41\\u00e9\\U0001F600"', '{"a":"Aé😀"}'),
    (b"a:\n- b\n c", '{"a":["b c"]}'),
    (b"\xef\xbb\xbfa: b", '{"a":"b"}'),
    (b"? a\n? b", '{"a":null,"b":null}'),
    (b'{"a": 1.0, "b": 100000000000000000000, "c": 1e5}', '{"a":1,"b":100000000000000000000,"c":100000}'),
    (b"1.5: a\n100000.5: b\n1e20: c", '{"1.5":"a","100000.5":"b","1e+20":"c"}'),
    (b"a: !!binary aGVsbG8=", '{"a":"hello"}'),
    (b"a: !!binary gIGC", '{"a":"\ufffd\ufffd\ufffd"}'),
    (b"a: !!timestamp 2001-01-01", '{"a":"2001-01-01"}'),
    (b'a: "x\n  y\n\n  z"', '{"a":"x y\\nz"}'),
    # Of several documents the first one counts.
    (b"a: b\n---\n[", '{"a":"b"}'),
    (b"---\n---\na: b", "null"),
]

SCALARS = {
    "y": "true", "Y": "true", "yes": "true", "On": "true", "true": "true", "TRUE": "true", "tRUE": '"tRUE"', "n": "false",
    "No": "false", "off": "false", "FALSE": "false", "~": "null", "null": "null", "Null": "null", "nULL": '"nULL"',
    "-0": "0", "0": "0", "+5": "5", "010": "8", "08": "8", "0o17": "15", "0x1F": "31", "0b11": "3", "-0b11": "-3", "-0x10": "-16",
    "1_000": "1000", "_1": '"_1"', "1__0": "10", "1:30": '"1:30"', "1.0": "1", ".5": "0.5", "5.": "5", "1e3": "1000",
    "1.5e-7": "1.5e-7", "1e400": '"1e400"', "0x": '"0x"', "0b": '"0b"', "1.2.3": '"1.2.3"',
    "18446744073709551615": "18446744073709551615", "18446744073709551616": "18446744073709552000",
    "-9223372036854775808": "-9223372036854775808", "-9223372036854775809": "-9223372036854776000",
    "2001-01-01": '"2001-01-01"', "2001-01-01T00:00:00Z": '"2001-01-01T00:00:00Z"', "=": '"="', "<<": '"\\u003c\\u003c"',
}  # fmt: skip

STRICT = [
    (b"x: &x {a: 1}\nz:\n  <<: *x\n  a: 3\n", '{"x":{"a":1},"z":{"a":3}}', ['line 4: key "a" already set in map']),
    (b"x: &x {a: 1}\nz:\n  a: 3\n  <<: *x\n", '{"x":{"a":1},"z":{"a":1}}', ['line 1: key "a" already set in map']),
    (b"<<: [{a: 1},{a: 2, b: 3}]", '{"a":1,"b":3}', ['line 1: key "a" already set in map']),
    (b"a: 1\na: 2\n", '{"a":2}', ['line 2: key "a" already set in map']),
    (
        b"a: 1\nb:\n  c: 2\n  c: 3\na: 4",
        '{"a":4,"b":{"c":3}}',
        ['line 4: key "c" already set in map', 'line 5: key "a" already set in map'],
    ),
    (b'{"a":"b","a":"c"}', '{"a":"c"}', ['line 1: key "a" already set in map']),
    (b"y: 1\nyes: 2\n", '{"true":2}', ["line 2: key true already set in map"]),
]

BROKEN = [
    (b"metadata: [", "yaml: line 1: did not find expected node content"),
    (b"metadata:\n\tname: x\n", "yaml: line 2: found character that cannot start any token"),
    (b"{", "yaml: line 1: did not find expected node content"),
    (b"\t", "yaml: found character that cannot start any token"),
    (b"a: *y", "yaml: unknown anchor 'y' referenced"),
    (b"a: &a [*a]", "yaml: anchor 'a' value contains itself"),
    (b"<<: 5", "yaml: map merge requires map or sequence of maps as the value"),
    (b"~: c", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "c"'),
    (b": c", "yaml: did not find expected key"),
    (b"? [a]\n: b", 'yaml: invalid map key: []interface {}{"a"}'),
    (b"18446744073709551615: x", 'unsupported map key of type: uint64, key: 0xffffffffffffffff, value: "x"'),
    (b"a: .nan", "json: unsupported value: NaN"),
    (b"a: .inf", "json: unsupported value: +Inf"),
    (b"a: -.inf", "json: unsupported value: -Inf"),
    (b"a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
    (b"a: !!bool 5", "yaml: cannot decode !!int `5` as a !!bool"),
    (b"a: !!timestamp x", "yaml: cannot decode !!str `x` as a !!timestamp"),
    (b"a: !!binary x", "yaml: !!binary value contains invalid base64 data"),
    (b"%YAML 1.2\n---\na: b", "yaml: found incompatible YAML document"),
    (b"%FOO\n---\na: b", "yaml: found unknown directive name"),
    (b"a\nb: c", "yaml: line 2: mapping values are not allowed in this context"),
    (b"a: b: c", "yaml: mapping values are not allowed in this context"),
    (b'"abc', "yaml: found unexpected end of stream"),
    (b"- a\nb: c", "yaml: line 1: did not find expected '-' indicator"),
    (b"\xff", "yaml: invalid leading UTF-8 octet"),
    (b"a: \x01", "yaml: control characters are not allowed"),
    (b"a: [1,2,3", "yaml: line 1: did not find expected ',' or ']'"),
    (b"a: {b: c", "yaml: line 1: did not find expected ',' or '}'"),
    (b"a: @x", "yaml: found character that cannot start any token"),
    (b"}", "yaml: did not find expected node content"),
    (b"a: b\n  c: d", "yaml: line 2: mapping values are not allowed in this context"),
    (b"[" * 20_000, "yaml: exceeded max depth of 10000"),
    (rb'k: "a\/b"', "yaml: found unknown escape character"),
    (b'\xef\xbb\xbf\xc3\xa9: "\\\\/"\r\nb: "x\r\n  y\\/"', "yaml: line 3: found unknown escape character"),
    (b"~: 1000", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1000"),
    (b"~: [1e3, 1.5e9]", "unsupported map key of type: %!s(<nil>), key: <nil>, value: []interface {}{1000, 1.5e+09}"),
]


@pytest.mark.parametrize(("body", "expected"), READ)
def test_decoded_values(body: bytes, expected: str) -> None:
    value, problems = yaml.loads(body)
    assert (json.dumps(value).decode(), problems) == (expected, [])


@pytest.mark.parametrize(("scalar", "expected"), SCALARS.items())
def test_plain_scalar_resolution(scalar: str, expected: str) -> None:
    assert json.dumps(yaml.loads(f"a: {scalar}".encode())[0]["a"]).decode() == expected


@pytest.mark.parametrize(("body", "expected", "problems"), STRICT)
def test_duplicate_keys(body: bytes, expected: str, problems: list[str]) -> None:
    value, found = yaml.loads(body)
    assert (json.dumps(value).decode(), found) == (expected, problems)


def test_strict_error_message_for_duplicate_keys() -> None:
    assert yaml.strict_error(yaml.loads(b"a: 1\na: 2\na: 3")[1]) == (
        'yaml: unmarshal errors:\n  line 2: key "a" already set in map\n  line 3: key "a" already set in map'
    )


@pytest.mark.parametrize(("body", "message"), BROKEN, ids=[str(body[:20]) for body, _ in BROKEN])
def test_invalid_yaml_error_messages(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        yaml.loads(body)
    assert str(caught.value) == message


def test_excessive_aliasing_is_rejected() -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)]
    with pytest.raises(DecodeError, match="yaml: document contains excessive aliasing"):
        yaml.loads("\n".join(lines).encode())


@given(st.binary(max_size=60) | st.text("ab :-[]{},&*!|>'\"%@`#?~<\n\t01.", max_size=40).map(str.encode))
def test_arbitrary_bytes_decode_or_raise_decode_error(body: bytes) -> None:
    try:
        value, _ = yaml.loads(body)
    except DecodeError:
        return
    json.dumps(value)


# ---------------------------------------------------------------- encoding

_LONG_KEY = "x" * 130

WRITTEN: list[tuple[Any, str]] = [
    ("\ufeffa 'b\n", r'"\uFEFF\x61\x20\x27\x62\n"'),
    ({"\ufeff+": "a\ufeff+"}, r'"\uFEFF\x2B": "a\uFEFF+"'),
    ("", '""'), ("y", '"y"'), ("null", '"null"'), ("~", '"~"'), ("a: b", "'a: b'"), ("a #b", "'a #b'"), (" x ", "' x '"),
    ("it's", "it's"), ('"q"', "'\"q\"'"), ("2001-01-01", '"2001-01-01"'), ("12:30:45", '"12:30:45"'), ("1e3", '"1e3"'),
    ("0x1f", '"0x1f"'), ("-", "'-'"), ("- a", "'- a'"), ("?", "'?'"), ("a?", "a?"), ("-a", "-a"), (":a", ":a"),
    ("a:", "'a:'"), ("a:b", "a:b"), ("#", "'#'"), ("---", "'---'"), ("{a}", "'{a}'"), ("&a", "'&a'"), ("%a", "'%a'"),
    ("@a", "'@a'"), ("`a", "'`a'"), ("=", "="), ("<<", "<<"), ("a\nb", "|-\n  a\n  b"), ("a\nb\n", "|\n  a\n  b"),
    ("a\n\n", "|+\n  a\n"), ("\n", "|2+\n"), (" a\nb", "|2-\n   a\n  b"), ("a \nb", '"a \\nb"'), ("a\tb", '"a\\tb"'), ("é", "é"),
    ("🙂", '"\\U0001F642"'), ("\ufeff", '"\\uFEFF"'), ("\u2028", "'\u2028'"), ("\0", '"\\0"'), ("1_000", '"1_000"'), ("+1", '"+1"'), ("08", '"08"'),
    ("nope", "nope"), ("a,b", "a,b"), ("word " * 20 + "x", f"{'word ' * 16}word\n  word word word x"),
    ("it's " * 18 + "x", f"{chr(32).join(['it' + chr(39) + 's'] * 17)}\n  it's x"),
    ("x" * 100 + " y", "x" * 100 + "\n  y"),
    ("\x07 " + "w " * 45 + "x", f'"\\a {" ".join("w" * 39)}\n  {" ".join("w" * 6)} x"'),
    ("line1\n  line2\n\nend", "|-\n  line1\n    line2\n\n  end"),
    (1, "1"), (1.5, "1.5"), (1.0, "1"), (None, "null"), (True, "true"), (False, "false"), (1e20, "1e+20"), (0.0001, "0.0001"),
    (1e-7, "1e-07"), (2**63, "9223372036854775808"), (2**64, "1.8446744073709552e+19"), (-(2**63) - 1, "-9.223372036854776e+18"), (-0.0, "0"),
    (9.3e18, "9300000000000000000"), (-1e19, "-1e+19"), ({}, "{}"), ([], "[]"),
    ({"k": {"a": [{"b": 1, "c": [2, [3]]}], "d": {}, "e": []}}, "k:\n  a:\n  - b: 1\n    c:\n    - 2\n    - - 3\n  d: {}\n  e: []"),
    ([[1, 2], [{"a": [1]}]], "- - 1\n  - 2\n- - a:\n    - 1"),
    ({_LONG_KEY: {"a": 1}}, f"? {_LONG_KEY}\n: a: 1"),
    ({"a\nb": [1]}, "? |-\n  a\n  b\n: - 1"),
    ({"<<": 1}, "<<: 1"),
    (
        dict.fromkeys(["a10", "a2", "A", "_", "b", "a", "10", "9", "09", "é"], 1),
        '_: 1\n"9": 1\n"09": 1\n"10": 1\nA: 1\na: 1\na2: 1\na10: 1\nb: 1\né: 1',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), WRITTEN)
def test_encoded_values(value: Any, expected: str) -> None:
    assert yaml.dumps(value).decode() == expected + "\n"


@pytest.mark.parametrize(("text", "read"), [("a\x85b", "a b"), ("a\x85\x85b", "a\nb"), ("\x85", " "), ("\xa0", "\xa0")])
def test_next_line_and_nbsp_are_encoded_as_yaml_reads_them(text: str, read: str) -> None:
    assert yaml.loads(yaml.dumps({"a": text})) == ({"a": read}, [])
    assert yaml.loads(b"items:\n" + yaml.item({"a": text})) == ({"items": [{"a": read}]}, [])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("\x7f", "yaml: control characters are not allowed"),
        ("\x80", "yaml: control characters are not allowed"),
        ("\ufffe", "yaml: control characters are not allowed"),
        ({"a\x85b": 1}, "yaml: line 1: did not find expected ',' or '}'"),
        ({"x" * 1100: 1}, "yaml: did not find expected ',' or '}'"),
    ],
)
def test_unrepresentable_strings_cannot_be_encoded(value: Any, problem: str) -> None:
    with pytest.raises(EncodeError, match=f"^{re.escape(problem)}$"):
        yaml.dumps({"k": value})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_nan_and_infinity_cannot_be_encoded(number: float) -> None:
    with pytest.raises(EncodeError):
        yaml.dumps({"a": number})


@given(VALUES)
def test_encoded_values_can_be_decoded(value: Any) -> None:
    assert yaml.loads(yaml.dumps(value)) == (value, [])


@given(st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=8))
def test_pyyaml_decodes_the_output(value: Any) -> None:
    assert pyyaml.load(yaml.dumps(value), pyyaml.CBaseLoader) == value


@pytest.mark.parametrize("text", [r"\\/", r"\\\\/", r"\"\\/", r"\\ud83d", r"\n\\/\\"])
def test_unknown_escapes_in_json_bodies(text: str) -> None:
    body = f'{{"pattern":"^a{text}$"}}'
    assert yaml.loads(body.encode()) == (json.loads(body.encode())[0], [])


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("3.0", 3),
        ("-3.0", -3),
        ("1.5", 1.5),
        ("2e3", 2000),
        ("-1.5e3", -1500),
        ("12345678901234567890123", 12345678901234567890123.0),
        ("7", 7),
    ],
)
def test_json_numbers_among_strings_resembling_numbers(number: str, expected: float) -> None:
    body = f'{{"text":"since 3.0, or [1e3,2.0] or 1:4.0,","one":{number},"list":[{number},"2.0"]}}'
    value, problems = yaml.loads(body.encode())
    assert (value["one"], value["list"], problems) == (expected, [expected, "2.0"], [])
    assert type(value["one"]) is type(value["list"][0]) is type(expected)

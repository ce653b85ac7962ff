"""Values and errors of expressions, equal to those of the reference server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.cel.checker import check
from fakekube.apimachinery.cel.errors import CompileError, EvaluationError
from fakekube.apimachinery.cel.evaluation import program
from fakekube.apimachinery.cel.parser import parse
from fakekube.apimachinery.cel.types import DYN


def value_of(expression: str, **variables: Any) -> Any:
    checked = check(expression, parse(expression), dict.fromkeys(variables, DYN))
    value, _ = program(checked).evaluate(variables)
    if isinstance(value, EvaluationError):
        raise value
    return value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("string(1 + 2 * 3)", "7"),
        ("string(-5 % 3)", "-2"),
        ("string(-7 / 2)", "-3"),
        ("string(int(-4.7))", "-4"),
        ("string(1.0)", "1"),
        ("string(1e21)", "1e+21"),
        ("string(0.1 + 0.2)", "0.30000000000000004"),
        ("string(double('0x_1.8p1_0'))", "1536"),
        ("string(1e-7)", "1e-07"),
        ("string(b'abc')", "abc"),
        ("string(bytes('é').size())", "2"),
        ("string('é'.size())", "1"),
        ("string(duration('1h30m'))", "5400s"),
        ("string(timestamp('2024-01-02T03:04:05.5+02:00'))", "2024-01-02T03:04:05.5+02:00"),
        ("string(timestamp('2024-03-02T03:04:05Z').getDayOfYear('Europe/Berlin'))", "61"),
        ("string(timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T12:00:00Z'))", "43200s"),
        ("string(dyn(1) == dyn('1'))", "false"),
        ("string(dyn(1) == dyn(1.0))", "true"),
        ("string(dyn(1) == dyn(true))", "false"),
        ("string(type(1) == int)", "true"),
        ("'Hello World'.split('l', 2)[1]", "lo World"),
        ("string('Hello World'.indexOf('o', 5))", "7"),
        ("'  x '.trim() + '.'", "x."),
        ("strings.quote('a\\n\"')", '"a\\n\\""'),
        (
            "'%s is %d, %.2f, %x, %b, %e, %o, %%'.format(['x', 42, 1.5, 255, 5, 1234.5, 8])",
            "x is 42, 1.50, ff, 101, 1.234500×10⁰³, 10, %",
        ),
        ("'%s'.format([[1, 'a', true, null, {'k': 1.5}]])", '[1, "a", true, null, {"k":1.500000}]'),
        ("'%X'.format(['Hello'])", "48656C6C6F"),
        ("string([3, 1, 2].sort()[0])", "1"),
        ("string([1, 1, 2].distinct().size())", "2"),
        ("string([[1], [2, 3]].flatten().size())", "3"),
        ("string(lists.range(3).sum())", "3"),
        ("string([3, 1].exists(i, v, i == v))", "true"),
        ("string([3, 1, 2, 3].transformList(i, v, i * v)[3])", "9"),
        ("string({'a': 1}.transformMap(k, v, v + 1).a)", "2"),
        ("string({'a': 1}[?'zz'].orValue(9))", "9"),
        ("['a', 'b'][?1].optFlatMap(v, v == 'b' ? optional.of('got b') : optional.none()).orValue('other')", "got b"),
        ("string([?['a'][?0], ?['a'][?7]].size())", "1"),
        ("string(sets.equivalent(['a', 'b'], ['b', 'a', 'a']))", "true"),
        ("url('https://user@example.com:8080/a/b%20c?x=1&x=2#frag').getHost()", "example.com:8080"),
        ("url('https://example.com/a/b%20c?x=1&x=2#frag').getEscapedPath()", "/a/b%20c"),
        ("url('https://example.com/?x=1&x=2').getQuery()['x'][1]", "2"),
        ("url('https://[::1]:80/').getHostname()", "::1"),
        ("string(isURL('../rel'))", "false"),
        ("string(cidr('192.168.0.0/16').containsCIDR('192.168.1.0/24'))", "true"),
        ("string(cidr('192.168.1.5/24').masked())", "192.168.1.0/24"),
        ("string(isIP('1.2.3'))", "false"),
        ("string(quantity('1500m').compareTo(quantity('1.5')))", "0"),
        ("string(quantity('1Gi').asInteger())", "1073741824"),
        ("string(semver('1.2.3-alpha.1').isLessThan(semver('1.2.3')))", "true"),
        ("string(semver('v1.2', true).patch())", "0"),
        ("string(format.dns1123Label().validate('ok').hasValue())", "false"),
        ("format.date().validate('x').value()[0]", "invalid date"),
        ("'ab12cd34'.findAll('[0-9]+')[1]", "34"),
        ("r'\\d' + '\\x41\\u00e9'", "\\dAé"),
    ],
)
def test_expressions_evaluate_to_values(expression: str, text: str) -> None:
    assert value_of(expression) == text


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("[1, 2][5]", "index out of bounds: 5"),
        ("{'a': 1}['b']", "no such key: b"),
        ("{'a': 1}.b", "no such key: b"),
        ("duration(string('1d'))", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("timestamp(string('x'))", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        ("'('.matches(string('('))", "error parsing regexp: missing closing ): `(`"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("dyn('x') > 1", "no such overload"),
        ("int(1e30)", "integer overflow"),
        ("uint('-1')", "type conversion error from 'string' to 'uint'"),
        ("double('0x1p9999')", "type conversion error from 'string' to 'double'"),
        ("double('0x.p1')", "type conversion error from 'string' to 'double'"),
        ("double('+nan')", "type conversion error from 'string' to 'double'"),
        ("'abc'.charAt(99)", "index out of range: 99"),
        ("'abc'.substring(3, 1)", "invalid substring range. start: 3, end: 1"),
        ("optional.none().value()", "optional.none() dereference"),
        ("quantity('1500m').asInteger()", "cannot convert value to integer"),
        ("semver('1.0')", "No Major.Minor.Patch elements found"),
        ("url('not a url')", 'URL parse error during conversion from string: parse "not a url": invalid URI for request'),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        (
            "ip('01.2.3.4')",
            'IP Address "01.2.3.4" parse error during conversion from string: '
            'ParseAddr("01.2.3.4"): IPv4 field has octet with leading zero',
        ),
        (
            "cidr('10.0.0.0')",
            "network address parse error during conversion from string: network address parse error "
            "during conversion from string: netip.ParsePrefix(\"10.0.0.0\"): no '/'",
        ),
    ],
)
def test_expressions_evaluate_to_errors(expression: str, problem: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        value_of(expression)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 / 0 > 1 || true", True),
        ("true || 1 / 0 > 1", True),
        ("1 / 0 > 1 && false", False),
        ("false && 1 / 0 > 1", False),
        ("[0, 1].all(x, 1 / x > 2)", False),
        ("[0, 1].exists(x, 1 / x == 1)", True),
    ],
)
def test_logical_operators_absorb_errors(expression: str, value: bool) -> None:
    assert value_of(expression) is value


@pytest.mark.parametrize("expression", ["1 +", "a.b(", "(1", "'x", "1 2", "{1}", "if", "9223372036854775808", "a ? b", "[1, 2"])
def test_invalid_expressions_do_not_parse(expression: str) -> None:
    with pytest.raises(CompileError) as raised:
        parse(expression)
    assert str(raised.value).startswith("ERROR: <input>:1:")


_INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(_INT64, _INT64)
def test_division_truncates(one: int, other: int) -> None:
    if other == 0 or (one, other) == (-(1 << 63), -1):
        return
    quotient, remainder = value_of("a / b", a=one, b=other), value_of("a % b", a=one, b=other)
    assert quotient * other + remainder == one
    assert abs(remainder) < abs(other)
    assert remainder == 0 or (remainder < 0) == (one < 0)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_double_to_string_round_trip(number: float) -> None:
    assert value_of("double(string(x))", x=number) == number


@given(st.text(), st.text(min_size=1), st.text())
def test_split_and_join_are_inverse(text: str, separator: str, other: str) -> None:
    assert value_of("a.split(b).join(b)", a=text, b=separator) == text
    assert value_of("a.split(b).join(c) == a.replace(b, c)", a=text, b=separator, c=other) is True

"""Parsing of label selectors: error messages equal those of the reference server; the canonical
text of right ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.selectors import LabelSelector, Operator, SelectorError, parse_labels

OPERATORS = "in, notin, =, ==, !=, gt, lt"
KEY_FORM = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_FORM = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN_FORM = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"
BAD = "unable to parse requirement: "

WRONG = {
    "tier,": "found '', expected: identifier after ','",
    ",tier": "found ',', expected: !, identifier, or 'end of string'",
    "=": "found '=', expected: !, identifier, or 'end of string'",
    "()": "found '(', expected: !, identifier, or 'end of string'",
    "(a=b)": "found '(', expected: !, identifier, or 'end of string'",
    "a=b=c": "found '=', expected: ',' or 'end of string'",
    "a=b c": "found 'c', expected: ',' or 'end of string'",
    "!a=b": "found '=', expected: ',' or 'end of string'",
    "a,b,,c": "found ',', expected: identifier after ','",
    "a in (b) c": "found 'c', expected: ',' or 'end of string'",
    "a b": f"{BAD}found 'b', expected: {OPERATORS}",
    "a!": f"{BAD}found '!', expected: {OPERATORS}",
    "a gt 1": f"{BAD}found 'gt', expected: {OPERATORS}",
    "a in": f"{BAD}found '' expected: '('",
    "a notin": f"{BAD}found '' expected: '('",
    "a in b": f"{BAD}found 'b' expected: '('",
    "a in b)": f"{BAD}found 'b' expected: '('",
    "a in (": f"{BAD}found '', expected: ',', ')' or identifier",
    "a in (=)": f"{BAD}found '=', expected: ',', ')' or identifier",
    "a in (b": f"{BAD}found '', expected: ',' or ')'",
    "a in (b=c)": f"{BAD}found '=', expected: ',' or ')'",
    "a in (b,": f"{BAD}found '', expected: ',', or identifier",
    "a in (b,=": f"{BAD}found '=', expected: ',', or identifier",
    "!": f"{BAD}found '', expected: identifier",
    "!!a": f"{BAD}found '!', expected: identifier",
    "a===b": f"{BAD}found '=', expected: identifier",
    "a=>b": f"{BAD}found '>', expected: identifier",
    "a=(b)": f"{BAD}found '(', expected: identifier",
    "a=!": f"{BAD}found '!', expected: identifier",
    "a>": f'{BAD}values[0]: Invalid value: "": {INTEGER}',
    "a>b": f'{BAD}values[0]: Invalid value: "b": {INTEGER}',
    "a<1.5": f'{BAD}values[0]: Invalid value: "1.5": {INTEGER}',
    "a>9223372036854775808": f'{BAD}values[0]: Invalid value: "9223372036854775808": {INTEGER}',
    "a>1_0": f'{BAD}values[0]: Invalid value: "1_0": {INTEGER}',
    "a>-b": f'{BAD}[values[0]: Invalid value: "-b": {INTEGER}, values[0][a]: Invalid value: "-b": {VALUE_FORM}]',
    "a>-1": f'{BAD}values[0][a]: Invalid value: "-1": {VALUE_FORM}',
    "a=-b": f'{BAD}values[0][a]: Invalid value: "-b": {VALUE_FORM}',
    "a=\u00e9": f'{BAD}values[0][a]: Invalid value: "\u00e9": {VALUE_FORM}',
    'a="b"': f'{BAD}values[0][a]: Invalid value: "\\"b\\"": {VALUE_FORM}',
    "a=b;c=d": f'{BAD}values[0][a]: Invalid value: "b;c": {VALUE_FORM}',
    "a in (z,-b,-c)": (
        f'{BAD}[values[0][a]: Invalid value: "-b": {VALUE_FORM}, values[1][a]: Invalid value: "-c": {VALUE_FORM}]'
    ),
    "a=" + "x" * 64: f'{BAD}values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
    "-a=b": f'{BAD}<nil>: Invalid value: "-a": name part {KEY_FORM}',
    "a:b": f'{BAD}<nil>: Invalid value: "a:b": name part {KEY_FORM}',
    "\u00e9=x": f'{BAD}<nil>: Invalid value: "\u00e9": name part {KEY_FORM}',
    "A.B/c=d": f'{BAD}<nil>: Invalid value: "A.B/c": prefix part {SUBDOMAIN_FORM}',
    "a/=b": f'{BAD}<nil>: Invalid value: "a/": name part must be non-empty; name part {KEY_FORM}',
    "a/b/c=d": (
        f'{BAD}<nil>: Invalid value: "a/b/c": a valid label key {KEY_FORM} with an optional DNS subdomain prefix '
        "and '/' (e.g. 'example.com/MyName')"
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_invalid_label_selector_has_the_message_of_kube_apiserver(text: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_labels(text)
    assert str(refused.value) == WRONG[text]


RIGHT = {
    "": "",
    "  ": "",
    "a": "a",
    "!a": "!a",
    "! a": "!a",
    "a=b": "a=b",
    " a\t=\r\nb ": "a=b",
    "a==": "a==",
    "a=,b": "a=,b",
    "a!=b": "a!=b",
    "a>1": "a>1",
    "a<+1": None,
    "a  in  ( c , b ,c)": "a in (b,c)",
    "a in ()": "a in ()",
    "a in (,)": "a in ()",
    "a in (,b)": "a in (,b)",
    "a in (b,,c)": "a in (,b,c)",
    "a notin (b)": "a notin (b)",
    "z,a=1,m": "a=1,m,z",
    "in=x": "in=x",
    "notin": "notin",
    "in in (in,notin)": "in in (in,notin)",
    "a=in": "a=in",
    "example.com/a=b": "example.com/a=b",
    "a=b,a=c": "a=b,a=c",
    "a\0=b": "a=b",
    "a=\0b": "a=b",
    "a=b,\0c": "a=b,c",
    "\0nonsense=": "",
}


@pytest.mark.parametrize("text", RIGHT)
def test_selector_canonical_text(text: str) -> None:
    canonical = RIGHT[text]
    if canonical is None:
        with pytest.raises(SelectorError):
            parse_labels(text)
    else:
        assert str(parse_labels(text)) == canonical
        assert parse_labels(canonical) == parse_labels(text)


def test_parsed_selectors_are_cached() -> None:
    assert parse_labels("a=b,c") is parse_labels("a=b,c")


KEYS = st.sampled_from(["a", "b", "in", "notin", "x.y/z"])
VALUES = st.sampled_from(["", "x", "in", "notin", "7", "y-z"])


@st.composite
def requirements(draw: st.DrawFn) -> str:
    key, space = draw(KEYS), draw(st.sampled_from(["", " ", "\t"]))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.sampled_from(["", "!"])) + space + key
    if kind == 1:
        return space.join([key, draw(st.sampled_from(["=", "==", "!="])), draw(VALUES)])
    if kind == 2:
        return space.join([key, draw(st.sampled_from("<>")), str(draw(st.integers(0, 99)))])
    members = ",".join(draw(st.lists(VALUES, max_size=3)))
    return f"{key} {draw(st.sampled_from(['in', 'notin']))}{space}({members})"


@given(st.lists(requirements(), max_size=4))
def test_canonical_text_parses_to_the_same_selector(texts: list[str]) -> None:
    selector = parse_labels(",".join(texts))
    assert parse_labels(str(selector)) == selector
    assert len(selector.requirements) == len(texts)


@given(st.text(alphabet="ab!=<>(), \tin\0-\u00e9", max_size=12))
def test_arbitrary_text_is_a_selector_or_rejected(text: str) -> None:
    try:
        selector = parse_labels(text)
    except SelectorError:
        return
    assert isinstance(selector, LabelSelector)
    assert all(isinstance(one.operator, Operator) for one in selector.requirements)
    assert parse_labels(str(selector)) == selector

"""Field selectors: error messages, matching, and renaming of fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.selectors import FieldRequirement, FieldSelector, SelectorError, field_equals, parse_fields

WRONG = {
    "name": "invalid selector: 'name'; can't understand 'name'",
    "a=b,name": "invalid selector: 'a=b,name'; can't understand 'name'",
    "z=\\x,name": "invalid selector: 'z=\\x,name'; can't understand 'name'",
    "name in (a)": "invalid selector: 'name in (a)'; can't understand 'name in (a)'",
    "name>a": "invalid selector: 'name>a'; can't understand 'name>a'",
    "!name": "invalid selector: '!name'; can't understand '!name'",
    "a\\,b": "invalid selector: 'a\\,b'; can't understand 'a\\,b'",
    "name=a=b": "invalid field selector: unescaped character in value: 61",
    "name===a": "invalid field selector: unescaped character in value: 61",
    "name=\\": "invalid field selector: invalid escape sequence: \\",
    "name=a\\": "invalid field selector: invalid escape sequence: \\",
    "name=\\x": "invalid field selector: invalid escape sequence: \\x",
    "name=\\\u00e9": "invalid field selector: invalid escape sequence: \\\u00e9",
}


@pytest.mark.parametrize("text", WRONG)
def test_invalid_field_selector_has_the_message_of_kube_apiserver(text: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_fields(text)
    assert str(refused.value) == WRONG[text]


RIGHT: dict[str, list[tuple[str, str, str]]] = {
    "": [],
    ",": [],
    "name=a": [("name", "=", "a")],
    "name==a": [("name", "=", "a")],
    "name!=a": [("name", "!=", "a")],
    "name=a,": [("name", "=", "a")],
    ",,name=a,,": [("name", "=", "a")],
    "name=": [("name", "=", "")],
    " name = a ": [(" name ", "=", " a ")],
    "b=2,a=1": [("a", "=", "1"), ("b", "=", "2")],
    "a=1,a=1": [("a", "=", "1"), ("a", "=", "1")],
    "name=a\\,b\\=c\\\\d": [("name", "=", "a,b=c\\d")],
    "na\\,me=a": [("na\\,me", "=", "a")],
    "=a": [("", "=", "a")],
    "=": [],
    "!=": [],
    "a!b=c": [("a!b", "=", "c")],
    "name=!": [("name", "=", "!")],
}


@pytest.mark.parametrize("text", RIGHT)
def test_field_selector_requirements(text: str) -> None:
    found = parse_fields(text)
    assert [(one.field, one.operator, one.value) for one in found.requirements] == RIGHT[text]
    assert found.empty is (not RIGHT[text])


def test_parsed_selectors_are_cached() -> None:
    assert parse_fields("a=b") is parse_fields("a=b")


FIELDS = st.sampled_from(["metadata.name", "status.phase", "x"])
VALUES = st.text(alphabet="ab,=\\ \u00e9", max_size=3)
SELECTORS = st.lists(st.builds(FieldRequirement, FIELDS, st.sampled_from(["=", "!="]), VALUES), max_size=3)


@given(SELECTORS, st.dictionaries(FIELDS, VALUES))
def test_selector_matches_if_all_requirements_match(wanted: list[FieldRequirement], fields: dict[str, str]) -> None:
    expected = all((fields.get(one.field, "") == one.value) == (one.operator == "=") for one in wanted)
    selector = FieldSelector(tuple(wanted))
    assert selector.matches(lambda field: fields.get(field, "")) is expected
    parsed = parse_fields(str(selector))
    assert sorted(parsed.requirements, key=str) == sorted(selector.requirements, key=str)
    assert parsed.matches(lambda field: fields.get(field, "")) is expected


@given(st.text(alphabet="ab!=\\, ", max_size=10))
def test_arbitrary_text_is_a_selector_or_rejected(text: str) -> None:
    try:
        selector = parse_fields(text)
    except SelectorError:
        return
    assert parse_fields(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "name"),
    [("name=a", "a"), ("name==a,x=1", "a"), ("name=", ""), ("name!=a", None), ("x=a", None), ("name=b,name=a", "a")],
)
def test_exact_value_of_a_field(text: str, name: str | None) -> None:
    assert parse_fields(text).exact("name") == name


def test_transform_renames_or_rejects_fields() -> None:
    def rename(field: str) -> str:
        return {"old": "new"}[field]

    assert str(parse_fields("old=a,old!=b").transform(rename)) == "new!=b,new=a"
    with pytest.raises(KeyError):
        parse_fields("other=a").transform(rename)
    assert parse_fields("").transform(rename).empty
    assert parse_fields("old=").transform(lambda field: "").empty


def test_field_equals_builds_an_escaped_selector() -> None:
    assert field_equals("metadata.name", "a,b") == parse_fields("metadata.name=a\\,b")

"""Field selectors: the exact words for wrong ones, what right ones match, and how they are renamed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.selectors import FieldRequirement, FieldSelector, SelectorError, field_equals, parse_fields

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
def test_a_wrong_selector_is_refused_in_the_words_of_the_real_server(text: str) -> None:
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
def test_a_selector_is_the_list_of_its_requirements(text: str) -> None:
    found = parse_fields(text)
    assert [(one.field, one.operator, one.value) for one in found.requirements] == RIGHT[text]
    assert found.empty is (not RIGHT[text])


def test_a_text_is_parsed_once() -> None:
    assert parse_fields("a=b") is parse_fields("a=b")


FIELDS = st.sampled_from(["metadata.name", "status.phase", "x"])
VALUES = st.text(alphabet="ab,=\\ \u00e9", max_size=3)
SELECTORS = st.lists(st.builds(FieldRequirement, FIELDS, st.sampled_from(["=", "!="]), VALUES), max_size=3)


@given(SELECTORS, st.dictionaries(FIELDS, VALUES))
def test_a_selector_matches_what_meets_all_its_requirements(wanted: list[FieldRequirement], fields: dict[str, str]) -> None:
    expected = all((fields.get(one.field, "") == one.value) == (one.operator == "=") for one in wanted)
    selector = FieldSelector(tuple(wanted))
    assert selector.matches(lambda field: fields.get(field, "")) is expected
    parsed = parse_fields(str(selector))
    assert sorted(parsed.requirements, key=str) == sorted(selector.requirements, key=str)
    assert parsed.matches(lambda field: fields.get(field, "")) is expected


@given(st.text(alphabet="ab!=\\, ", max_size=10))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    try:
        selector = parse_fields(text)
    except SelectorError:
        return
    assert parse_fields(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "name"),
    [("name=a", "a"), ("name==a,x=1", "a"), ("name=", ""), ("name!=a", None), ("x=a", None), ("name=b,name=a", "a")],
)
def test_a_value_that_a_field_must_have_is_known(text: str, name: str | None) -> None:
    assert parse_fields(text).exact("name") == name


def test_fields_are_renamed_and_refused_by_who_knows_them() -> None:
    def rename(field: str) -> str:
        return {"old": "new"}[field]

    assert str(parse_fields("old=a,old!=b").transform(rename)) == "new!=b,new=a"
    with pytest.raises(KeyError):
        parse_fields("other=a").transform(rename)
    assert parse_fields("").transform(rename).empty
    assert parse_fields("old=").transform(lambda field: "").empty


def test_one_field_can_be_asked_for_without_a_text() -> None:
    assert field_equals("metadata.name", "a,b") == parse_fields("metadata.name=a\\,b")

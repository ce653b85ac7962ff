"""Validation rules of schemas: field paths and messages of errors, and transition rules."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.cel import compile_rules
from fakekube.apimachinery.cel.syntax import escape, unescape

STRING = {"type": "string"}


def ruled(schema: dict[str, Any], *rules: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [r if isinstance(r, dict) else {"rule": r} for r in rules]}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def messages(schema: dict[str, Any], value: Any, old: Any = None, warnings: list[str] | None = None) -> list[str]:
    rules = compile_rules(schema)
    assert rules is not None
    return [error.message for error in rules.validate(value, old, (warnings if warnings is not None else []).append)]


def test_schema_without_rules_compiles_to_none() -> None:
    assert compile_rules(obj(spec=obj(a=STRING))) is None


def test_rule_errors_have_field_paths_in_order() -> None:
    schema = obj(
        spec=ruled(
            obj(
                a=ruled(STRING, {"rule": "self != 'bad'", "message": " bad a "}),
                l={"type": "array", "items": ruled(obj(n={"type": "integer"}), "!has(self.n) || self.n > 0")},
                m={"type": "object", "additionalProperties": ruled(STRING, "self.startsWith('x')")},
            ),
            "!has(self.a) || !has(self.l)",
        )
    )
    value = {"spec": {"a": "bad", "l": [{}, {"n": 0}], "m": {"a.b": "y"}}}
    assert messages(schema, value) == [
        "spec: Invalid value: failed rule: !has(self.a) || !has(self.l)",
        'spec.a: Invalid value: "bad": bad a',
        "spec.l[1]: Invalid value: failed rule: !has(self.n) || self.n > 0",
        "spec.m[a.b]: Invalid value: \"y\": failed rule: self.startsWith('x')",
    ]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"reason": "FieldValueForbidden"}, "f: Forbidden: failed rule: false"),
        ({"reason": "FieldValueRequired", "message": "told"}, "f: Required value: told"),
        ({"reason": "FieldValueDuplicate"}, 'f: Duplicate value: "x"'),
        ({"messageExpression": "'got ' + self"}, 'f: Invalid value: "x": got x'),
        ({"message": "told", "messageExpression": "''"}, 'f: Invalid value: "x": told'),
        ({"messageExpression": "'a\\nb'"}, 'f: Invalid value: "x": failed rule: false'),
        ({"messageExpression": "string(1 / 0)", "message": "told"}, 'f: Invalid value: "x": told'),
    ],
)
def test_reason_and_message_of_a_failed_rule(rule: dict[str, Any], message: str) -> None:
    assert messages(obj(f=ruled(STRING, {"rule": "false", **rule})), {"f": "x"}) == [message]


@pytest.mark.parametrize(
    ("path", "shown"),
    [(".a", "f.a"), (".a.b", "f.a.b"), (".a['odd-key']", "f.a.odd-key"), (".m.key", "f.m[key]"), (".m['a.b']", "f.m[a.b]")],
)
def test_field_path_of_a_rule(path: str, shown: str) -> None:
    inner = obj(a=obj(b=STRING, **{"odd-key": STRING}), m={"type": "object", "additionalProperties": STRING})
    assert messages(obj(f=ruled(inner, {"rule": "false", "fieldPath": path})), {"f": {}}) == [
        f"{shown}: Invalid value: failed rule: false"
    ]


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        (
            "int(self) > 0",
            "x",
            "f: Invalid value: \"string\": type conversion error from 'string' to 'int' evaluating rule: int(self) > 0",
        ),
        (
            "dyn(self) > 1",
            "x",
            "f: Invalid value: \"string\": 'no such overload': call arguments did not match a supported "
            "operator, function or macro signature for rule: dyn(self) > 1",
        ),
    ],
)
def test_evaluation_errors_of_rules(rule: str, value: str, message: str) -> None:
    assert messages(obj(f=ruled(STRING, rule)), {"f": value}) == [message]


def test_transition_rules_are_skipped_without_an_old_value() -> None:
    schema = obj(f=ruled(STRING, "self == oldSelf"))
    assert messages(schema, {"f": "a"}) == []
    assert messages(schema, {"f": "a"}, {}) == []
    assert messages(schema, {"f": "a"}, {"f": "b"}) == ['f: Invalid value: "a": failed rule: self == oldSelf']


def test_optional_old_self() -> None:
    schema = obj(f=ruled(STRING, {"rule": "oldSelf.hasValue() || self == 'start'", "optionalOldSelf": True}))
    assert messages(schema, {"f": "start"}) == []
    assert len(messages(schema, {"f": "else"})) == 1
    assert messages(schema, {"f": "else"}, {"f": "start"}) == []


def test_map_list_items_are_correlated_by_key() -> None:
    item = ruled(obj(k=STRING, v={"type": "integer"}), "self.v >= oldSelf.v")
    schema = obj(l={"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
    old = {"l": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}
    assert messages(schema, {"l": [{"k": "b", "v": 1}, {"k": "c", "v": 0}]}, old) == [
        "l[0]: Invalid value: failed rule: self.v >= oldSelf.v"
    ]


def test_ratcheting_turns_errors_of_unchanged_values_into_warnings() -> None:
    schema = obj(a=ruled(STRING, "self != 'bad'"), b=STRING)
    warnings: list[str] = []
    assert messages(schema, {"a": "bad", "b": "new"}, {"a": "bad", "b": "old"}, warnings) == []
    assert warnings == ["a: Invalid value: \"bad\": failed rule: self != 'bad'"]
    assert len(messages(schema, {"a": "bad"}, {"a": "good"})) == 1


def test_schema_formats_determine_cel_types() -> None:
    schema = obj(
        d=ruled({"type": "string", "format": "date"}, "self.getFullYear() == 2024"),
        u=ruled({"type": "string", "format": "duration"}, "self < duration('1h')"),
        b=ruled({"type": "string", "format": "byte"}, "size(self) < 3"),
        n=ruled({"type": "number"}, "self == 3.0"),
        s=ruled({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}, "self == ['a', 'b']"),
        o=ruled(obj(x={**STRING, "nullable": True}), "!has(self.x)"),
    )
    good = {"d": "2024-05-05", "u": "30m", "b": "aGk=", "n": 3, "s": ["b", "a"], "o": {"x": None}}
    assert messages(schema, good) == []
    bad = {"d": "2023-05-05", "u": "1 day", "b": "aGVsbG8=", "n": 4, "s": ["b", "c"], "o": {"x": "1"}}
    assert len(messages(schema, bad)) == len(bad)


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("in", "__in__"),
        ("namespace", "__namespace__"),
        ("my-key", "my__dash__key"),
        ("my.key", "my__dot__key"),
        ("my/key", "my__slash__key"),
        ("under__score", "under__underscores__score"),
        ("x_y", "x_y"),
        ("self", "self"),
    ],
)
def test_escaped_property_names(name: str, identifier: str) -> None:
    assert escape(name) == identifier
    assert unescape(identifier) == name


@pytest.mark.parametrize("name", ["", "1st", "a b", "ü"])
def test_names_that_cannot_be_escaped(name: str) -> None:
    assert escape(name) is None


@pytest.mark.parametrize(
    ("items", "value", "go_type"),
    [(obj(a=STRING), [{"a": "x"}, {"a": "y"}], "map[string]interface {}"), ({"type": "array", "items": STRING}, [["x"], ["y"]], "[]interface {}")],
)  # fmt: skip
@pytest.mark.parametrize(
    ("rule", "fails"),
    [
        ("self == self", True),
        ("self == self || true", True),
        ("(self + []).size() == 2", True),
        ("[self].indexOf(self) == 0", True),
        ("self != []", False),
        ("[self[0], self[1]] == self", False),
        ("self.exists(x, x in self)", False),
    ],
)
def test_sets_of_containers_cannot_be_compared(items: dict[str, Any], value: Any, go_type: str, rule: str, fails: bool) -> None:
    """Go cannot hash them: these are the answers of 1.36.3."""
    found = messages(obj(s=ruled({"type": "array", "items": items, "x-kubernetes-list-type": "set"}, rule)), {"s": value})
    problem = f"internal error: runtime error: hash of unhashable type {go_type} evaluating rule: {rule}"
    assert [text.partition('array": ')[2] for text in found] == ([problem] if fails else [])

"""JSON results of expressions in MutatingAdmissionPolicies."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.cel.compilation import admission
from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.mutation import JSONPatch, NotJSONError, json_value, native, type_mismatches
from fakekube.apimachinery.cel.views import wrap_untyped

OBJECT = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "ports": [1, 2]}]}}


def evaluated(source: str) -> Any:
    return admission(patches=True).compile(source).program.evaluate({"object": wrap_untyped(OBJECT)})[0]


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("Object{}", {}),
        (
            "Object{spec: Object.spec{replicas: 1 + 1, ?paused: optional.none(), ?more: optional.of(true)}}",
            {"spec": {"replicas": 2, "more": True}},
        ),
        (
            "Object{metadata: Object.metadata{labels: {'a': string(object.metadata.name), 'b': 'c'}}}",
            {"metadata": {"labels": {"a": "x", "b": "c"}}},
        ),
        (
            "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, own: c})}}",
            {"spec": {"containers": [{"name": "a", "own": {"name": "a", "ports": [1, 2]}}]}},
        ),
        (
            "Object{b: 3, c: 1.5, d: [[1], [2]], e: type(1), f: optional.of('x')}",
            {"b": 3, "c": 1.5, "d": [[1], [2]], "e": "int", "f": "x"},
        ),
    ],
)
def test_apply_configuration_object_literals(source: str, made: Any) -> None:
    assert native(evaluated(source)) == made


def test_json_patch_operation_literals() -> None:
    assert evaluated("[JSONPatch{op: 'move', from: '/a', path: '/b'}]") == [JSONPatch("move", "/b", "/a")]
    assert json_value(evaluated("JSONPatch{op: 'add', path: '/', value: {'a': [1]}}").value) == {"a": [1]}


def test_json_patch_field_of_wrong_type_is_an_evaluation_error() -> None:
    made = evaluated("JSONPatch{op: dyn(1)}")
    assert isinstance(made, EvaluationError)
    assert str(made) == "unexpected type int64 for JSONPatchType 'op' field"


@pytest.mark.parametrize(
    ("source", "text", "syntax"),
    [
        ("null", "NULL_VALUE", "0"),
        ("uint(12)", "12", "0xc"),
        ("b'abc'", "[97 98 99]", "[]uint8{0x61, 0x62, 0x63}"),
        ("duration('90s')", "1m30s", "90000000000"),
        ("timestamp('2026-01-02T03:04:05.5Z')", "2026-01-02 03:04:05.5 +0000 UTC", "2026-01-02 03:04:05.5 +0000 UTC"),
        ("quantity('1Gi')", "1Gi", "1Gi"),
    ],
)
def test_non_json_values_are_kept_in_an_apply_configuration(source: str, text: str, syntax: str) -> None:
    made = native(evaluated(f"Object{{a: {source}}}"))["a"]
    assert (made.text, made.syntax) == (text, syntax)


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("9007199254740991", 9007199254740991),
        ("-9007199254740993", "-9007199254740993"),
        ("2.0", 2),
        ("1.5", 1.5),
        ("7u", 7),
        ("null", None),
        ("b'abc'", "YWJj"),
        ("duration('90s')", "90s"),
        ("timestamp('2026-01-02T03:04:05.5Z')", "2026-01-02T03:04:05.5Z"),
        ("optional.of('x')", "x"),
        ("[1, 2]", [1, 2]),
        ("Object.a{b: [Object.a.b{c: 1u}], d: b'a'}", {"b": [{"c": 1}], "d": "YQ=="}),
    ],
)
def test_json_patch_values_as_json(source: str, made: Any) -> None:
    assert json_value(evaluated(source)) == made


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{1: 2}", "unsupported type conversion from 'int' to string"),
        ("type(1)", "type conversion not supported for 'type'"),
        ("quantity('1')", "type conversion error from 'Quantity' to '*structpb.Value'"),
        ("ip('1.2.3.4')", "type conversion error from 'IP' to '*structpb.Value'"),
        ("Object.a{b: null}", "proto: invalid type: structpb.NullValue"),
    ],
)
def test_values_without_json_form_are_rejected(source: str, problem: str) -> None:
    with pytest.raises(NotJSONError) as raised:
        json_value(evaluated(source))
    assert str(raised.value) == problem


def test_object_keys_must_be_strings() -> None:
    with pytest.raises(NotJSONError, match="invalid return type"):
        native(evaluated("Object{a: {1: 2}}"))


def test_object_type_names_must_match_field_paths() -> None:
    fine = "Object{spec: Object.spec{list: [Object.spec.list{}], map: {'k': Object.spec.map{}}}}"
    assert list(type_mismatches(evaluated(fine))) == []
    assert list(type_mismatches(evaluated("Object{spec: Object.wrong{a: Object.spec.b{}}}"))) == [
        'unexpected type name "Object.wrong", expected "Object.spec", which matches field name path from root Object type',
        'unexpected type name "Object.spec.b", expected "Object.spec.a", which matches field name path from root Object type',
    ]

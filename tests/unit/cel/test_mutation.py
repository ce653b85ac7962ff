"""What expressions of mutating policies make, as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.cel.environments import admission
from fakekube.cel.errors import EvaluationError
from fakekube.cel.mutation import JSONPatch, native, type_mismatches
from fakekube.cel.views import untyped

OBJECT = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "ports": [1, 2]}]}}


def evaluated(source: str) -> Any:
    return admission(patches=True).compile(source).program.evaluate({"object": untyped(OBJECT)})[0]


@pytest.mark.parametrize(("source", "made"), [
    ("Object{}", {}),
    ("Object{spec: Object.spec{replicas: 1 + 1, ?paused: optional.none(), ?more: optional.of(true)}}",
     {"spec": {"replicas": 2, "more": True}}),
    ("Object{metadata: Object.metadata{labels: {'a': string(object.metadata.name), 'b': 'c'}}}",
     {"metadata": {"labels": {"a": "x", "b": "c"}}}),
    ("Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, own: c})}}",
     {"spec": {"containers": [{"name": "a", "own": {"name": "a", "ports": [1, 2]}}]}}),
    ("Object{a: null, b: uint(3), c: 1.5, d: [[1], [2]]}", {"a": None, "b": 3, "c": 1.5, "d": [[1], [2]]}),
])
def test_objects(source: str, made: Any) -> None:
    assert native(evaluated(source)) == made


def test_operations_of_a_patch() -> None:
    assert evaluated("[JSONPatch{op: 'move', from: '/a', path: '/b'}]") == [JSONPatch("move", "/b", "/a")]
    assert native(evaluated("JSONPatch{op: 'add', path: '/', value: {'a': [1]}}").value) == {"a": [1]}


def test_a_field_of_another_type_is_found_when_it_is_made() -> None:
    made = evaluated("JSONPatch{op: dyn(1)}")
    assert isinstance(made, EvaluationError)
    assert str(made) == "unexpected type int64 for JSONPatchType 'op' field"


def test_keys_of_objects_are_texts() -> None:
    with pytest.raises(EvaluationError, match="not string"):
        native(evaluated("Object{a: {1: 2}}"))


def test_types_are_named_after_the_fields_that_they_stand_in() -> None:
    fine = "Object{spec: Object.spec{list: [Object.spec.list{}], map: {'k': Object.spec.map{}}}}"
    assert list(type_mismatches(evaluated(fine))) == []
    assert list(type_mismatches(evaluated("Object{spec: Object.wrong{a: Object.spec.b{}}}"))) == [
        'unexpected type name "Object.wrong", expected "Object.spec", which matches field name path from root Object type',
        'unexpected type name "Object.spec.b", expected "Object.spec.a", which matches field name path from root Object type',
    ]

from __future__ import annotations

import json
from typing import Any

import pytest

from fakekube.apimachinery.patch.apply import updater
from fakekube.apimachinery.patch.apply.fieldpath import FieldSet
from fakekube.apimachinery.patch.apply.schema import atom_of
from fakekube.apimachinery.patch.apply.updater import Typed
from tests.unit.apimachinery.patch.shapes import THING

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def thing(last: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "t", "annotations": {ANNOTATION: last}}, "spec": spec}


def taken_over(obj: dict[str, Any]) -> FieldSet | None:
    return updater.fields_taken_over(Typed(obj, "v1", atom_of(THING)), "Thing")


def test_unchanged_last_applied_fields_are_taken_over() -> None:
    last = {"apiVersion": "v1", "kind": "Thing", "spec": {"text": "a", "number": 1, "flag": True}}
    fields = taken_over(thing(json.dumps(last), text="a", number=2))
    assert fields is not None
    assert set(fields) == {("f:spec", "f:text")}


@pytest.mark.parametrize(
    "last",
    [
        "",
        "{",
        "[]",
        '{"spec":{}}',
        '{"apiVersion":"v2","kind":"Thing"}',
        '{"apiVersion":"v1","kind":"Other"}',
        '{"apiVersion":"v1","kind":"Thing","spec":{"text":5}}',
        '{"apiVersion":"v1","kind":"Thing","unknown":5}',
    ],
)
def test_unusable_last_applied_annotations_are_ignored(last: str) -> None:
    assert taken_over(thing(last, text="a")) is None


def test_missing_annotation_is_not_added() -> None:
    assert taken_over({"metadata": {"name": "t"}}) is None
    obj = {"metadata": {"name": "t", "annotations": {ANNOTATION: ""}}}
    assert updater.with_annotation(obj, {"kind": "Thing"}) is obj


def test_last_applied_annotation_is_updated() -> None:
    applied = {"kind": "Thing", "apiVersion": "v1", "metadata": {"annotations": {"b": "<", "a": "1", ANNOTATION: "old"}}}
    obj = thing("old")
    result = updater.with_annotation(obj, applied)
    assert result["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"v1","kind":"Thing","metadata":{"annotations":{"a":"1","b":"\\u003c"}}}\n'
    )
    assert obj["metadata"]["annotations"][ANNOTATION] == "old"
    assert updater.with_annotation(result, applied) is result


def test_null_annotations_are_omitted() -> None:
    result = updater.with_annotation(thing("old"), {"kind": "Thing", "metadata": {"annotations": None}})
    assert result["metadata"]["annotations"][ANNOTATION] == '{"kind":"Thing","metadata":{}}\n'


def test_too_large_last_applied_annotation_is_removed() -> None:
    result = updater.with_annotation(thing("old"), {"kind": "Thing", "spec": {"text": "x" * 300_000}})
    assert ANNOTATION not in result["metadata"]["annotations"]

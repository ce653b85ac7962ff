from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apimachinery.schema.decode import DecodeError, decode
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.printing import normalise
from fakekube.apimachinery.schema.unstructured import from_unstructured
from tests.unit.apimachinery.schema.values import mistaken_values, typed_values

POD = type_of("k8s.io/api/core/v1.Pod")
SECRET = type_of("k8s.io/api/core/v1.Secret")

#: As the reference's converter says it.
MISTAKES: list[tuple[Type, dict[str, Any], str]] = [
    (POD, {"spec": "x"}, "cannot restore struct from: string"),
    (POD, {"spec": [1]}, "cannot restore struct from: slice"),
    (POD, {"spec": 1.5}, "cannot restore struct from: float64"),
    (POD, {"spec": {"containers": {}}}, "cannot restore slice from map"),
    (POD, {"spec": {"nodeSelector": True}}, "cannot restore map from bool"),
    (POD, {"spec": {"nodeName": 5}}, "cannot convert int64 to string"),
    (POD, {"spec": {"restartPolicy": 5}}, "cannot convert int64 to v1.RestartPolicy"),
    (POD, {"spec": {"nodeName": 1.5}}, "unrecognized type: string"),
    (POD, {"spec": {"priority": "1"}}, "unrecognized type: int32"),
    (POD, {"spec": {"priority": 1.5}}, "cannot convert float64 to int32"),
    (POD, {"spec": {"hostNetwork": "x"}}, "unrecognized type: bool"),
    (POD, {"metadata": {"creationTimestamp": 5}}, "json: cannot unmarshal number into Go value of type string"),
    (SECRET, {"data": {"a": "!"}}, "error decoding from json: illegal base64 data at input byte 0"),
    (SECRET, {"data": {"a": ["x"]}}, "unrecognized type: uint8"),
]


@pytest.mark.parametrize(("type_", "value", "problem"), MISTAKES)
def test_conversion_errors_match_the_reference(type_: Type, value: dict[str, Any], problem: str) -> None:
    with pytest.raises(DecodeError) as caught:
        from_unstructured(type_, value)
    assert str(caught.value) == problem


def test_numbers_are_converted_to_the_field_type() -> None:
    assert from_unstructured(POD, {"spec": {"priority": 2.0}})["spec"]["priority"] == 2
    assert from_unstructured(POD, {"spec": {"priority": 2**31}})["spec"]["priority"] == -(2**31)
    assert from_unstructured(POD, {"spec": {"priority": 1e30}})["spec"].get("priority", 0) == 0
    assert from_unstructured(POD, {"spec": {"activeDeadlineSeconds": 1e30}})["spec"]["activeDeadlineSeconds"] == -(2**63)
    assert from_unstructured(SECRET, {"data": {"a": [116, -1, None]}})["data"] == {"a": "dP8A"}


def test_unknown_fields_are_sorted_and_omit_map_keys() -> None:
    unknown: list[str] = []
    slice_ = type_of("k8s.io/api/resource/v1.ResourceSlice")
    devices = [{"capacity": {"key": {"nope": 1}}, "also": 1}]
    from_unstructured(slice_, {"zzz": 1, "spec": {"devices": devices}}, unknown)
    assert unknown == [
        'unknown field "spec.devices[0].also"',
        'unknown field "spec.devices[0].capacity.nope"',
        'unknown field "zzz"',
    ]


def test_members_of_raw_values_are_sorted() -> None:
    revision = type_of("k8s.io/api/apps/v1.ControllerRevision")
    tree = from_unstructured(revision, {"data": {"b": [{"d": 1, "c": 2}], "a": 1}, "revision": 1})
    assert json.dumps(tree["data"]) == b'{"a":1,"b":[{"c":2,"d":1}]}'


@given(typed_values())
def test_conversion_of_valid_values_equals_decoding(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    assert normalise(type_, from_unstructured(type_, value)) == normalise(type_, decode(type_, value))


@given(mistaken_values())
def test_mutated_values_convert_or_raise_decode_error(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    try:
        assert normalise(type_, from_unstructured(type_, value)) is not None
    except DecodeError as error:
        assert str(error)


def test_parts_shared_with_a_decoded_object_are_copied() -> None:
    pod = type_of("k8s.io/api/core/v1.Pod")
    live = from_unstructured(pod, {"metadata": {"name": "p", "labels": {"a": "1"}}, "spec": {"nodeName": "n"}})
    value = {**live, "spec": {"nodeName": "m"}}
    tree = from_unstructured(pod, value, decoded=live)
    assert tree == from_unstructured(pod, value)
    assert tree["metadata"] == live["metadata"]
    assert tree["metadata"] is not live["metadata"]
    assert tree["metadata"]["labels"] is not live["metadata"]["labels"]


def test_shared_raw_values_are_sorted() -> None:
    revision = type_of("k8s.io/api/apps/v1.ControllerRevision")
    live = {"metadata": {"name": "r"}, "data": {"b": 1, "a": 2}, "revision": 1}
    tree = from_unstructured(revision, {**live, "revision": 2}, decoded=live)
    assert list(tree["data"]) == ["a", "b"]

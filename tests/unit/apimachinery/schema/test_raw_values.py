from __future__ import annotations

import json

import pytest

from fakekube.apimachinery.schema import trees
from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.model import Type
from fakekube.base.golang.json_writer import RawObject


def type_of(group: str, kind: str) -> Type:
    found = builtins().kind_type(group, "v1", kind)
    assert found is not None
    return found


REVISION = type_of("apps", "ControllerRevision")


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a":1.0}', '{"a":"1","b":[-0]}', '{"a":"\\u0041"}', '{"a":"<"}', "{\n}"])
def test_non_canonical_raw_json_keeps_its_text(text: str) -> None:
    source = f'{{ "metadata": {{"data": {{"x": 1}}}}, "data" :{text} , "revision":1}}'.encode()
    tree = trees.keep_texts(REVISION, json.loads(source), source)
    assert isinstance(tree["data"], RawObject)
    assert tree["data"].text == text.encode()
    assert type(tree["metadata"]["data"]) is dict


@pytest.mark.parametrize("text", ['{"a":[1,"b"]}', '{"image":"app:1.27","range":"1e3","a-0":true}'])
def test_canonical_raw_json_is_stored_as_a_dict(text: str) -> None:
    source = f'{{"data":{text}}}'.encode()
    assert type(trees.keep_texts(REVISION, json.loads(source), source)["data"]) is dict


def test_raw_values_within_lists_are_found() -> None:
    config = '{"opaque":{"driver":"d","parameters":%s}}'
    source = f'{{"spec":{{"config":[{config % "{}"}, {config % "{ }"}]}}}}'.encode()
    tree = trees.keep_texts(type_of("resource.k8s.io", "DeviceClass"), json.loads(source), source)
    found = [entry["opaque"]["parameters"] for entry in tree["spec"]["config"]]
    assert [type(value) for value in found] == [dict, RawObject]


def test_compact_canonical_texts_become_dicts() -> None:
    tree = {"data": RawObject({"a": 1}, b'{ "a": 1 }')}
    assert type(trees.compact(REVISION, tree)["data"]) is dict
    tree = {"data": RawObject({"a": 1.0}, b'{ "a": 1.0 }')}
    assert trees.compact(REVISION, tree)["data"].text == b'{"a":1.0}'  # type: ignore[attr-defined]


def test_holds_raw_values_only_for_types_with_raw_fields() -> None:
    assert trees.holds_raw_values(REVISION)
    assert not trees.holds_raw_values(type_of("", "ConfigMap"))

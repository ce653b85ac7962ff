from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apimachinery.schema.decode import decode
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.printing import normalise, surely_differ
from tests.unit.apimachinery.schema.values import typed_values

POD = type_of("k8s.io/api/core/v1.Pod")


@given(typed_values())
def test_normalise_is_idempotent(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    once = normalise(type_, decode(type_, value))
    assert json.dumps(normalise(type_, once)) == json.dumps(once)


def test_fields_are_ordered_as_in_the_go_type() -> None:
    tree = normalise(POD, {"status": {}, "spec": {"nodeName": "n", "containers": [{"name": "c"}]}, "metadata": {"name": "p"}})
    assert list(tree) == ["metadata", "spec", "status"]
    assert list(tree["spec"]) == ["containers", "nodeName"]
    assert tree["spec"]["containers"] == [{"name": "c", "resources": {}}]


def test_zero_values_and_empty_containers_are_dropped() -> None:
    spec = {"nodeName": "", "hostNetwork": False, "priority": 0, "volumes": [], "nodeSelector": {}, "affinity": {}}
    tree = normalise(POD, {"metadata": {"labels": {}, "generation": 0}, "spec": spec})
    # A pointer to a zero value is not nil.
    assert tree == {"metadata": {}, "spec": {"containers": None, "priority": 0, "affinity": {}}, "status": {}}


def test_map_keys_are_sorted() -> None:
    tree = normalise(POD, {"metadata": {"labels": {"b": "1", "a": "2"}}})
    assert list(tree["metadata"]["labels"]) == ["a", "b"]


def test_normalise_does_not_modify_its_argument() -> None:
    pod = {"spec": {"volumes": [], "containers": []}, "metadata": {"name": "p"}}
    normalise(POD, pod)
    assert pod == {"spec": {"volumes": [], "containers": []}, "metadata": {"name": "p"}}
    assert list(pod) == ["spec", "metadata"]


def test_unknown_fields_raise_key_error() -> None:
    with pytest.raises(KeyError):
        normalise(POD, {"unheard": 1})


def test_empty_values_in_atomic_lists_are_kept_before_storage() -> None:
    endpoints = type_of("k8s.io/api/core/v1.Endpoints")
    tree = {"metadata": {"labels": {}}, "subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": []}]}
    assert normalise(endpoints, tree, stored=False)["subsets"] == tree["subsets"]
    assert normalise(endpoints, tree, stored=False)["metadata"] == {}
    assert normalise(endpoints, tree)["subsets"] == [{"addresses": [{"ip": "1.2.3.4"}]}]


def test_already_normalised_parts_are_reused() -> None:
    old = normalise(POD, {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"phase": "Pending"}})
    new = {"status": {"phase": "Running", "conditions": []}, "spec": old["spec"]}
    tree = normalise(POD, new, parts={"spec": old["spec"]})
    assert json.dumps(tree) == json.dumps(normalise(POD, new))
    assert tree["spec"] is old["spec"]


@given(typed_values())
def test_normalise_leaves_its_input_unchanged(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    tree = decode(type_, value)
    before = json.dumps(tree)
    once = normalise(type_, tree)
    assert json.dumps(tree) == before
    assert normalise(type_, once) == once


def test_normalised_tree_is_returned_itself() -> None:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}], "nodeName": "n"}
    tree = {"metadata": {"name": "p", "labels": {"a": "1", "b": "2"}}, "spec": spec, "status": {"phase": "Running"}}
    assert normalise(POD, tree) is tree
    spec["nodeSelector"] = {"b": "1", "a": "2"}
    changed = normalise(POD, tree)
    assert list(changed["spec"]) == ["containers", "nodeSelector", "nodeName"]
    assert changed["metadata"] is tree["metadata"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"a": 1}, {"a": 1}, False),
        ({"a": 1}, {"a": 2}, True),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, True),
        ({"a": [1]}, {"a": [1, 2]}, True),
        ({"a": {"b": True}}, {"a": "b"}, True),
        ({"a": 1, "b": []}, {"a": 1}, False),
        ({"a": 1}, {"a": 1, "b": "0"}, False),
    ],
)
def test_surely_differ_ignores_normalisation_differences(one: Any, other: Any, expected: bool) -> None:
    assert surely_differ(one, other) is expected
    assert surely_differ(other, one) is expected


@given(typed_values())
def test_tree_does_not_surely_differ_from_its_normalised_form(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    tree = decode(type_, value)
    assert not surely_differ(tree, normalise(type_, tree))

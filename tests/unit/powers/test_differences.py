"""Differences, paths and owners of fields."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.powers.differences import ABSENT, Difference, differences, item_names, member, paths
from fakekube.powers.history import field_owners


def found(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    return [(one.path, one.old, one.new) for one in differences(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"spec": {"replicas": 3}}, {"spec": {"replicas": 5}}, [("spec.replicas", 3, 5)]),
        ({"a": None}, {}, [("a", None, ABSENT)]),
        ({}, {"a": None}, [("a", ABSENT, None)]),
        ({"a": 1}, {"a": True}, [("a", 1, True)]),
        ({"a.b/c": "1"}, {"a.b/c": "2"}, [('["a.b/c"]', "1", "2")]),
        ([1, 2], [1, 3], [("[1]", 2, 3)]),
        ([1, 2], [1], [("", [1, 2], [1])]),
        (
            [{"name": "a", "x": 1}],
            [{"name": "b"}, {"name": "a", "x": 2}],
            [("[name=a].x", 1, 2), ("[name=b]", ABSENT, {"name": "b"})],
        ),
        (
            [{"name": "a"}, {"name": "b"}],
            [{"name": "b"}, {"name": "a"}],
            [("", [{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}])],
        ),
        (
            [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
            [{"containerPort": 80, "protocol": "TCP", "name": "x"}, {"containerPort": 80, "protocol": "UDP"}],
            [("[containerPort=80,protocol=TCP].name", ABSENT, "x")],
        ),
        ([{"name": "a b"}], [{"name": "a b", "x": 1}], [('[name="a b"].x', ABSENT, 1)]),
        ({"a": 1}, {"a": 1}, []),
    ],
)
def test_differences(old: Any, new: Any, expected: list[tuple[str, Any, Any]]) -> None:
    assert found(old, new) == expected


def test_data_leaves_out_a_missing_value() -> None:
    assert Difference("a", ABSENT, None).data() == {"path": "a", "new": None}
    assert Difference("a", 1, ABSENT).data() == {"path": "a", "old": 1}


def test_paths_leave_out_what_every_write_changes() -> None:
    old = {"metadata": {"resourceVersion": "1", "generation": 1, "managedFields": [1], "name": "a"}, "spec": 1}
    new = {"metadata": {"resourceVersion": "2", "generation": 2, "managedFields": [2], "name": "a"}, "spec": 2}
    assert paths(old, new) == ["spec"]
    assert paths(None, new) == []


_KEYS = st.sampled_from(["a", "b", "c.d", "name"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(_KEYS, _VALUES.filter(lambda value: not isinstance(value, list)), max_size=3), st.data())
def test_no_difference_means_equal(old: dict[str, Any], data: Any) -> None:
    new = data.draw(st.just(copy.deepcopy(old)) | st.dictionaries(_KEYS, _VALUES, max_size=3))
    assert (not list(differences(old, new))) == _equal(old, new)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and bool(one == other)


def test_owners_of_associative_lists_and_co_owners() -> None:
    """The two cases that kubectl-blame's users reported: several owners of a field, and items found by their keys."""
    spec = {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}}}, "f:replicas": {}}}
    obj = {
        "metadata": {
            "finalizers": ["a/b", "c/d"],
            "managedFields": [
                {"manager": "one", "operation": "Apply", "time": "t", "fieldsV1": spec},
                {"manager": "two", "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                {
                    "manager": "three",
                    "operation": "Update",
                    "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"c/d"': {}}}, "f:gone": {}},
                },
            ],
        },
        "spec": {"replicas": 2, "containers": [{"name": "side", "image": "x"}, {"name": "web", "image": "y"}]},
    }
    owners = field_owners(obj)
    assert {path: [one["manager"] for one in names] for path, names in owners.items()} == {
        "spec.containers[name=web]": ["one"],
        "spec.containers[name=web].image": ["one"],
        "spec.replicas": ["one", "two"],
        "metadata.finalizers[1]": ["three"],
    }
    assert owners["spec.replicas"][1] == {"manager": "two", "operation": "Update", "subresource": "scale", "time": ""}


@pytest.mark.parametrize("fields", [{"k:{": {}}, {"i:9": {}}, {"i:x": {}}, {"q:1": {}}, {"f:a": 3}])
def test_owners_of_invalid_fields(fields: dict[str, Any]) -> None:
    obj = {"metadata": {"managedFields": [None, {"fieldsV1": 3}, {"manager": "m", "fieldsV1": {"f:list": fields}}]}, "list": [1]}
    assert field_owners(obj) == {}


def test_members_with_other_characters_are_quoted() -> None:
    assert member("metadata.labels", "app.kubernetes.io/name") == 'metadata.labels["app.kubernetes.io/name"]'
    assert member("", "spec") == "spec"
    assert item_names([{"type": "Ready"}, {"type": "Available"}]) == ["[type=Ready]", "[type=Available]"]
    assert item_names([{"name": "a"}, {"name": "a"}]) == ["[0]", "[1]"]

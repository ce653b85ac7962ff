"""Other values for what an object contains."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fakekube.checker.alterations import (
    changes_of_all,
    changes_of_amounts,
    changes_of_texts,
    choices_of,
    containers_of,
    is_amount,
    keep_added,
    leaves_to_change,
    other_values,
    patch_of,
    with_value,
)

BYTES = base64.b64encode(b"bytes").decode()
MORE_BYTES = base64.b64encode(b"bytesnew").decode()


def test_each_string_of_an_object_may_be_changed() -> None:
    found = changes_of_texts(
        {
            "spec": {"image": "a", "replicas": 1, "items": [{"name": "b"}, 2]},
            "metadata": {"name": "x", "annotations": {"c": "d"}},
        },
        "new",
    )
    assert found == [
        {"spec": {"image": "a-new"}},
        {"metadata": {"annotations": {"c": "d-new"}}},
        {"spec": {"items": [{"name": "b-new"}, 2]}},
    ]


def test_changed_data_of_a_secret_is_encoded() -> None:
    assert changes_of_texts({"kind": "Secret", "data": {"key": "dmFsdWU="}}, "new") == [{"data": {"key": "bmV3"}}]


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (3, [5, 1]),
        (1.5, [3.5, -0.5]),
        (True, [False]),
        (False, [True]),
        ("yes", ["no"]),
        ("False", ["True"]),
        ("disabled", ["enabled"]),
        ("640Mi", ["642Mi", "640Mi-new"]),
        ("1.5", ["3.5", "1.5-new"]),
        ("50%", ["52%", "50%-new"]),
        ("2026-11-27T00:00:00Z", ["2028-11-27T00:00:00Z", "2026-11-27T00:00:00Z-new"]),
        ("green", ["green-new"]),
        (BYTES, [f"{BYTES}-new", MORE_BYTES]),
        (None, []),
    ],
)
def test_another_value_has_the_same_type_and_form(value: Any, others: list[Any]) -> None:
    assert other_values(value, "new", 2) == others


@pytest.mark.parametrize(
    ("value", "found"), [(3, True), ("3", True), ("64Mi", True), (True, False), ("a3", False), (None, False)]
)
def test_an_amount_may_be_in_a_string(value: Any, found: bool) -> None:
    assert is_amount(value) is found


def test_numbers_grow_with_each_change_and_come_after_all_texts() -> None:
    obj = {"spec": {"replicas": 1, "image": "a", "on": True, "ports": [{"port": 80}, {"port": 90}]}}
    assert changes_of_amounts(obj, 2) == [
        {"spec": {"replicas": 3}},
        {"spec": {"ports": [{"port": 82}, {"port": 90}]}},
        {"spec": {"ports": [{"port": 80}, {"port": 92}]}},
    ]
    config = {"data": {"key": "value"}}
    assert [(number, next(iter(change))) for number, change in changes_of_all([obj, config], "x", 1)] == [
        (0, "spec"),
        (1, "data"),
        (0, "spec"),
        (0, "spec"),
        (0, "spec"),
    ]


def test_a_number_in_an_annotation_grows_too() -> None:
    obj = {"metadata": {"name": "team", "annotations": {"pods": "30", "note": "first"}, "labels": {"rack": "3"}}}
    assert changes_of_amounts(obj, 2) == [{"metadata": {"annotations": {"pods": "32"}}}]


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"spec": {"image": "b"}, "data": None}, {"spec": {"image": "b"}, "data": None}),
        (
            {"spec": {"containers": [{"name": "a", "image": "b"}]}},
            {"spec": {"containers": [{"name": "a", "image": "b", "volumeMounts": [{"name": "token"}]}]}},
        ),
        ({"spec": {"args": ["y"]}}, {"spec": {"args": ["y"]}}),
        ({"spec": {"containers": []}}, {"spec": {"containers": []}}),
    ],
)
def test_items_of_lists_keep_what_the_server_has_added(change: Any, kept: Any) -> None:
    container = {"name": "a", "image": "a", "volumeMounts": [{"name": "token"}]}
    assert keep_added({"spec": {"containers": [container], "args": ["x"]}}, change) == kept


def test_a_patch_has_the_list_as_a_whole() -> None:
    obj = {"spec": {"a": {"items": [{"b": 1}, 2]}, "c": 3}}
    path = ("spec", "a", "items", 0, "b")
    assert patch_of(obj, path, 7) == {"spec": {"a": {"items": [{"b": 7}, 2]}}}
    assert with_value(obj, path, 7) == {"spec": {"a": {"items": [{"b": 7}, 2]}, "c": 3}}
    assert obj["spec"]["a"] == {"items": [{"b": 1}, 2]}


def test_bytes_are_changed_as_other_values() -> None:
    obj = {"binaryData": {"k": BYTES}, "data": {"t": "x"}, "status": {"n": 1}, "spec": None}
    assert list(leaves_to_change(obj)) == [(("data", "t"), "x"), (("binaryData", "k"), BYTES)]


def test_the_choices_are_read_from_the_refusal() -> None:
    refusal = 'Gauge "a" is invalid: spec.scale: Unsupported value: "x": supported values: "linear", "logarithmic", <nil>: wrong'
    assert choices_of(refusal) == ["linear", "logarithmic"]
    assert choices_of("Forbidden") == []


def test_all_but_metadata_and_status_is_content() -> None:
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": "x"},
        "subjects": [{"name": "alice"}],
        "status": {"phase": "on"},
        "spec": {"n": 1},
    }
    assert list(leaves_to_change(binding)) == [(("spec", "n"), 1), (("subjects", 0, "name"), "alice")]
    assert list(containers_of(binding)) == [("subjects",), ("subjects", 0)]

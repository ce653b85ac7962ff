"""When two objects mean the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fakekube.schema.builtin import type_of
from fakekube.validation.semantic_equality import contains_empty, same
from tests.unit.codecs.values import VALUES


@pytest.mark.parametrize(
    ("left", "right"),
    [({}, {"a": None}), ({"a": []}, {}), ({"a": {"b": {}}}, {"a": {}}), (None, {}), ([], None), ([{"a": None}], [{}])],
)
def test_nothing_is_nothing(left: Any, right: Any) -> None:
    assert same(left, right)
    assert same(right, left)


@pytest.mark.parametrize(
    ("left", "right"), [(0, None), ("", None), (False, None), ([1], [1, 2]), ({"a": 1}, {"a": 2}), ([{}], [])]
)
def test_something_is_not_nothing(left: Any, right: Any) -> None:
    assert not same(left, right)


@given(VALUES)
def test_everything_is_the_same_as_itself(value: Any) -> None:
    assert same(value, value)


SPEC = type_of("k8s.io/api/networking/v1.NetworkPolicySpec")


@pytest.mark.parametrize(
    "spec",
    [{"ingress": []}, {"podSelector": {"matchLabels": {}}}, {"egress": [{"to": [{"ipBlock": {"cidr": "::/0", "except": []}}]}]}],
)
def test_empty_lists_and_maps_are_found(spec: Any) -> None:
    assert contains_empty(SPEC, spec)


@pytest.mark.parametrize("spec", [{}, {"podSelector": {}, "ingress": [{}]}, {"egress": None, "policyTypes": ["Egress"]}])
def test_structs_without_content_are_not_empty(spec: Any) -> None:
    assert not contains_empty(SPEC, spec)

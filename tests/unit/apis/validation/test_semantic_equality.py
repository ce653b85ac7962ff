"""Semantic equality of objects (apiequality.Semantic.DeepEqual)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apis.validation.to_internal import contains_empty, semantic_deep_equal
from tests.unit.apimachinery.codecs.values import VALUES


@pytest.mark.parametrize(
    ("left", "right"),
    [({}, {"a": None}), ({"a": []}, {}), ({"a": {"b": {}}}, {"a": {}}), (None, {}), ([], None), ([{"a": None}], [{}])],
)
def test_empty_and_absent_values_are_equal(left: Any, right: Any) -> None:
    assert semantic_deep_equal(left, right)
    assert semantic_deep_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right"), [(0, None), ("", None), (False, None), ([1], [1, 2]), ({"a": 1}, {"a": 2}), ([{}], [])]
)
def test_zero_and_non_zero_values_differ(left: Any, right: Any) -> None:
    assert not semantic_deep_equal(left, right)


@given(VALUES)
def test_equality_is_reflexive(value: Any) -> None:
    assert semantic_deep_equal(value, value)


SPEC = type_of("k8s.io/api/networking/v1.NetworkPolicySpec")


@pytest.mark.parametrize(
    "spec",
    [{"ingress": []}, {"podSelector": {"matchLabels": {}}}, {"egress": [{"to": [{"ipBlock": {"cidr": "::/0", "except": []}}]}]}],
)
def test_empty_lists_and_maps_are_detected(spec: Any) -> None:
    assert contains_empty(SPEC, spec)


@pytest.mark.parametrize("spec", [{}, {"podSelector": {}, "ingress": [{}]}, {"egress": None, "policyTypes": ["Egress"]}])
def test_empty_structs_are_not_detected_as_empty(spec: Any) -> None:
    assert not contains_empty(SPEC, spec)

"""Kube-aware order of API versions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apis.validation.names import preference

IN_ORDER = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v01", "v1beta0"]


def test_versions_have_kube_aware_order() -> None:
    shuffled = random.Random(1).sample(IN_ORDER, len(IN_ORDER))
    assert sorted(shuffled, key=preference) == IN_ORDER


@pytest.mark.parametrize("odd", ["v0", "v1beta", "V1", "v1gamma1", "1", "v"])
def test_non_kube_versions_sort_last(odd: str) -> None:
    assert preference("v1alpha1") < preference(odd)


@given(st.lists(st.from_regex(r"v[1-9][0-9]?((alpha|beta)[1-9])?", fullmatch=True), max_size=6))
def test_version_order_is_total(versions: list[str]) -> None:
    keys = [preference(version) for version in sorted(versions, key=preference)]
    assert keys == sorted(keys)

"""Privilege escalation checks: which RBAC rules cover which."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apis.rbac import covers, only_garbage_collection

WORDS = st.lists(st.sampled_from(["a", "b", "*", "a/scale", "*/scale"]), min_size=1, max_size=3, unique=True)
RULES = st.fixed_dictionaries(
    {"verbs": WORDS, "apiGroups": WORDS, "resources": WORDS},
    optional={"resourceNames": st.lists(st.sampled_from("xy"), max_size=2)},
)


def rule(resources: str = "pods", verbs: str = "get", groups: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(), "apiGroups": [groups], "resources": resources.split(), **more}


@pytest.mark.parametrize(
    ("owned", "part", "covered"),
    [
        (rule(), rule(), True),
        (rule(verbs="*"), rule(), True),
        (rule(), rule(verbs="list"), False),
        (rule(groups="*"), rule(groups="apps"), True),
        (rule("*"), rule("pods/log"), True),
        (rule("*/scale"), rule("deployments/scale"), True),
        (rule("*/scale"), rule("deployments"), False),
        (rule("pods"), rule("pods/log"), False),
        (rule(resourceNames=["a", "b"]), rule(resourceNames=["a"]), True),
        (rule(resourceNames=["a"]), rule(), False),
        (rule(), rule(resourceNames=["a"]), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}, {"verbs": ["get"], "nonResourceURLs": ["/a/b"]}, True),
        ({"verbs": ["get"], "nonResourceURLs": ["/a"]}, {"verbs": ["get"], "nonResourceURLs": ["/a/*"]}, False),
        ({"verbs": ["get"], "nonResourceURLs": ["*"]}, {"verbs": ["get"], "nonResourceURLs": ["/x"]}, True),
    ],
)
def test_rule_covers_rule(owned: dict[str, Any], part: dict[str, Any], covered: bool) -> None:
    assert covers(owned, part) is covered


@given(RULES)
def test_rule_coverage_is_reflexive(value: dict[str, Any]) -> None:
    assert covers(value, value)


@given(RULES, RULES, RULES)
def test_rule_coverage_is_transitive(first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]) -> None:
    if covers(first, second) and covers(second, third):
        assert covers(first, third)


def test_update_of_finalizers_and_managed_fields_is_garbage_collection_only() -> None:
    old = {"metadata": {"name": "a", "resourceVersion": "1"}, "rules": []}
    assert only_garbage_collection({"metadata": {**old["metadata"], "finalizers": ["a/b"], "managedFields": []}}, old)
    assert not only_garbage_collection({"metadata": {**old["metadata"], "labels": {"a": "b"}}}, old)

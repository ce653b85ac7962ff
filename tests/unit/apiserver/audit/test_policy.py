"""Audit policies: rule matching, and rejection of invalid files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fakekube.apiserver.audit.policy import Level, Policy, read_policy
from fakekube.apiserver.auth.authorization import Attributes
from fakekube.apiserver.auth.options import OptionError
from fakekube.apiserver.endpoints.request import User

ALICE = User("alice", groups=("team-a", "system:authenticated"))


def write(folder: Path, *rules: dict[str, Any], **more: Any) -> Path:
    path = folder / "policy.yaml"
    path.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more}))
    return path


def policy(folder: Path, *rules: dict[str, Any], **more: Any) -> Policy:
    return read_policy(str(write(folder, *rules, **more)))


def pods(verb: str = "get", subresource: str = "", name: str = "p", namespace: str = "ns", group: str = "") -> Attributes:
    return Attributes(ALICE, verb, namespace, group, "pods", subresource, name)


VERSION = Attributes(ALICE, "get", path="/version", is_resource_request=False)


@pytest.mark.parametrize(
    ("rule", "attributes", "matches"),
    [
        ({}, pods(), True),
        ({}, VERSION, True),
        ({"users": ["bob"]}, pods(), False),
        ({"users": ["bob", "alice"]}, pods(), True),
        ({"userGroups": ["team-a"]}, pods(), True),
        ({"userGroups": ["team-b"]}, pods(), False),
        ({"verbs": ["list"]}, pods(), False),
        ({"namespaces": ["ns"]}, pods(), True),
        ({"namespaces": [""]}, pods(), False),
        ({"namespaces": [""]}, pods(namespace=""), True),
        ({"namespaces": ["ns"]}, VERSION, False),
        ({"nonResourceURLs": ["/ver*"]}, VERSION, True),
        ({"nonResourceURLs": ["/version/*"]}, VERSION, False),
        ({"nonResourceURLs": ["*"]}, pods(), False),
        ({"resources": [{"group": ""}]}, pods(), True),
        ({"resources": [{"group": "apps"}]}, pods(), False),
        ({"resources": [{"group": "*", "resources": ["pods"]}]}, pods(group="x"), True),
        ({"resources": [{"resources": ["pods"]}]}, pods(subresource="log"), False),
        ({"resources": [{"resources": ["pods/log"]}]}, pods(subresource="log"), True),
        ({"resources": [{"resources": ["pods/*"]}]}, pods(), True),
        ({"resources": [{"resources": ["*/log"]}]}, pods(subresource="log"), True),
        ({"resources": [{"resources": ["*/log"]}]}, pods(), False),
        ({"resources": [{"resources": ["*"]}]}, pods(subresource="log"), True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["q"]}]}, pods(), False),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["p"]}]}, pods(), True),
    ],
)
def test_policy_rule_matching(tmp_path: Path, rule: dict[str, Any], attributes: Attributes, matches: bool) -> None:
    found = policy(tmp_path, {"level": "Metadata", **rule}).evaluate(attributes)
    assert found.level is (Level.METADATA if matches else Level.NONE)


def test_first_matching_rule_applies(tmp_path: Path) -> None:
    made = policy(
        tmp_path,
        {"level": "Request", "verbs": ["get"], "omitStages": ["RequestReceived"], "omitManagedFields": False},
        {"level": "RequestResponse"},
        omitStages=["Panic"],
        omitManagedFields=True,
    )
    first, second = made.evaluate(pods()), made.evaluate(pods("list"))
    assert (first.level, set(first.omit_stages), first.omit_managed_fields) == (
        Level.REQUEST,
        {"Panic", "RequestReceived"},
        False,
    )
    assert (second.level, set(second.omit_stages), second.omit_managed_fields) == (Level.REQUEST_RESPONSE, {"Panic"}, True)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"level": "Everything"}, "rules[0].level: Unsupported value"),
        ({}, "rules[0].level: Required value"),
        ({"level": "None", "nonResourceURLs": ["x"]}, "must begin with a '/' character"),
        ({"level": "None", "nonResourceURLs": ["/x*y"]}, "must be the final character of the rule"),
        ({"level": "None", "nonResourceURLs": ["/x"], "namespaces": ["a"]}, "cannot apply to both regular resources"),
        ({"level": "None", "resources": [{"group": "A_"}]}, "rules[0].resources[0].group: Invalid value"),
        ({"level": "None", "resources": [{"resourceNames": ["a"]}]}, "using resourceNames requires at least one resource"),
        ({"level": "None", "omitStages": ["Nope"]}, "rules[0].omitStages[0]: Invalid value"),
        ({"level": "None", "more": 1}, 'unknown field "rules[0].more"'),
        ({"level": 1}, "rules[0].level is not a string"),
    ],
)
def test_invalid_policy_rules_are_rejected(tmp_path: Path, rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        policy(tmp_path, rule)
    assert problem in str(caught.value)


def test_invalid_policy_files_are_rejected(tmp_path: Path) -> None:
    for text, problem in (
        ("", 'no kind "" is registered'),
        ("kind: Policy\napiVersion: audit.k8s.io/v1beta1", "audit.k8s.io/v1beta1"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1", "no policy rules"),
        ("[", "--audit-policy-file"),
        ("a: [", "--audit-policy-file"),
    ):
        path = tmp_path / "policy.yaml"
        path.write_text(text)
        with pytest.raises(OptionError) as caught:
            read_policy(str(path))
        assert problem in str(caught.value)

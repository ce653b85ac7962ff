"""The specs and statuses of the review kinds."""

from __future__ import annotations

import pytest

from fakekube.apiserver.auth import access
from fakekube.apiserver.auth.authentication import DEFAULT_TOKENS, Authenticator, StaticTokens
from fakekube.apiserver.auth.authorization import Observed
from fakekube.apiserver.auth.rbac import RBACAuthorizer
from fakekube.apiserver.auth.service_accounts import ServiceAccountTokens, Signer
from fakekube.apiserver.endpoints.request import User
from fakekube.base.clock import Clock


def test_user_info_of_users() -> None:
    assert access.user_info(User("a")) == {"username": "a"}
    full = User("a", "1", ("g",), {"z": ("1",), "b": ["2", "3"]})
    info = access.user_info(full)
    assert info == {"username": "a", "uid": "1", "groups": ["g"], "extra": {"b": ["2", "3"], "z": ["1"]}}
    assert list(info["extra"]) == ["b", "z"]


@pytest.fixture
def authenticator(objects) -> Authenticator:
    signer, clock = Signer(), Clock()
    tokens = [ServiceAccountTokens(objects, signer, clock, signer.issuers)]
    return Authenticator(clock, signer.issuers, StaticTokens(DEFAULT_TOKENS, signer.issuers), tokens)


def test_token_review_of_a_valid_token(authenticator: Authenticator) -> None:
    assert access.token_review_status(authenticator, "user-token") == {
        "authenticated": True,
        "user": {"username": "alice", "uid": "alice", "groups": ["team-a", "system:authenticated"]},
        "audiences": ["https://kubernetes.default.svc"],
    }


def test_token_review_of_an_invalid_token(authenticator: Authenticator) -> None:
    assert access.token_review_status(authenticator, "nope") == {"user": {}, "error": "invalid bearer token"}


def test_access_review_of_resource_attributes() -> None:
    asked = access.attributes_of_spec(
        {"user": "a", "groups": ["g"], "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "ns", "name": "p"}}
    )
    assert (asked.user.name, asked.user.groups, asked.verb, asked.namespace) == ("a", ("g",), "get", "ns")
    assert (asked.resource, asked.name, asked.is_resource_request) == ("pods", "p", True)


def test_access_review_of_non_resource_attributes() -> None:
    asked = access.attributes_of_spec({"user": "a", "nonResourceAttributes": {"verb": "get", "path": "/version"}})
    assert (asked.verb, asked.path, asked.is_resource_request) == ("get", "/version", False)
    assert not access.attributes_of_spec({"nonResourceAttributes": None}).is_resource_request


def test_rules_review_separates_resource_and_non_resource_rules(objects) -> None:
    objects.role(
        "mixed",
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"], "nonResourceURLs": []},
        {"verbs": ["get"], "nonResourceURLs": ["/version"]},
    )
    objects.bind("b", "mixed", "User:alice")
    rbac = RBACAuthorizer(Observed(objects, [objects]))
    assert access.rules_review_status(rbac, User("alice"), "ns") == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version"]}],
        "incomplete": False,
    }
    objects.bind("c", "gone", "User:alice")
    problem = 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert access.rules_review_status(rbac, User("alice"), "ns")["evaluationError"] == problem

"""RBAC: rules, bindings, and decisions after writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fakekube.apiserver.auth.authorization import Attributes, Observed, PrivilegedGroup, UnionAuthorizer, attributes_of, forbidden
from fakekube.apiserver.auth.identities import ADMIN
from fakekube.apiserver.auth.rbac import RBACAuthorizer, rule_allows
from fakekube.apiserver.endpoints.request import RequestInfo, User

ALICE = User("alice", groups=("team-a", "system:authenticated"))
READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
LIST = Attributes(ALICE, "list", "ns", "", "pods")


@pytest.fixture
def rbac(objects) -> RBACAuthorizer:
    return RBACAuthorizer(Observed(objects, [objects]))


# ---------------------------------------------------------------- rules

ASKED = Attributes(ALICE, "get", "ns", "apps", "deployments", "", "web")


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ({}, True),
        ({"verbs": ["*"]}, True),
        ({"verbs": ["list"]}, False),
        ({"verbs": []}, False),
        ({"verbs": ["GET"]}, False),
        ({"apiGroups": ["*"]}, True),
        ({"apiGroups": [""]}, False),
        ({"apiGroups": []}, False),
        ({"resources": ["*"]}, True),
        ({"resources": ["deployments/scale"]}, False),
        ({"resources": ["*/scale"]}, False),
        ({"resources": ["pods", "deployments"]}, True),
        ({"resourceNames": []}, True),
        ({"resourceNames": ["web"]}, True),
        ({"resourceNames": ["*"]}, False),
        ({"resourceNames": ["other"]}, False),
    ],
)
def test_rule_allows(rule: dict[str, Any], allowed: bool) -> None:
    full = {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"]} | rule
    assert rule_allows(full, ASKED) is allowed


@pytest.mark.parametrize(
    ("resource", "allowed"),
    [
        ("deployments/scale", True),
        ("*/scale", True),
        ("*", True),
        ("deployments", False),
        ("deployments/*", False),
        ("*/*", False),
    ],
)
def test_subresources_in_rules(resource: str, allowed: bool) -> None:
    rule = {"verbs": ["get"], "apiGroups": ["apps"], "resources": [resource]}
    assert rule_allows(rule, replace(ASKED, subresource="scale")) is allowed


@pytest.mark.parametrize(
    ("pattern", "path", "allowed"),
    [
        ("*", "/anything", True),
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/", False),
        ("/healthz/*", "/healthz/ping", True),
        ("/healthz/*", "/healthz", False),
        ("/health*", "/healthz/ping", True),
        ("/*/ping", "/healthz/ping", False),
    ],
)
def test_non_resource_urls(pattern: str, path: str, allowed: bool) -> None:
    rule = {"verbs": ["get"], "nonResourceURLs": [pattern]}
    assert rule_allows(rule, Attributes(ALICE, "get", path=path, is_resource_request=False)) is allowed


def test_resource_rules_do_not_allow_non_resource_paths() -> None:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert not rule_allows(everything, Attributes(ALICE, "get", path="/version", is_resource_request=False))
    assert not rule_allows({"verbs": ["*"], "nonResourceURLs": ["*"]}, ASKED)


# ---------------------------------------------------------------- bindings


def test_requests_are_denied_by_default(rbac) -> None:
    decision = rbac.authorize(LIST)
    assert (decision.allowed, decision.reason) == (False, "")


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("User:alice", 'User "alice"'),
        ("Group:team-a", 'Group "team-a"'),
        ("User:bob", None),
        ("Group:alice", None),
        ("ServiceAccount:ns/alice", None),
    ],
)
def test_binding_subjects(objects, rbac, subject: str, words: str | None) -> None:
    objects.role("reader", READ_PODS)
    objects.bind("readers", "reader", subject)
    decision = rbac.authorize(LIST)
    assert decision.allowed is (words is not None)
    if words:
        assert decision.reason == f'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to {words}'


def test_service_account_subjects(objects, rbac) -> None:
    robot = User("system:serviceaccount:ns:robot", groups=("system:serviceaccounts",))
    objects.role("reader", READ_PODS, namespace="ns")
    objects.bind("robots", "reader", "ServiceAccount:robot", namespace="ns", kind="Role")
    decision = rbac.authorize(replace(LIST, user=robot))
    assert decision.reason == 'RBAC: allowed by RoleBinding "robots/ns" of Role "reader" to ServiceAccount "robot/ns"'


def test_service_account_subject_without_namespace_matches_no_user(objects, rbac) -> None:
    objects.role("reader", READ_PODS)
    objects.bind("robots", "reader", "ServiceAccount:robot")
    assert not rbac.authorize(replace(LIST, user=User("system:serviceaccount::robot"))).allowed
    assert not rbac.authorize(replace(LIST, user=User(""))).allowed


def test_role_bindings_apply_only_in_their_namespace(objects, rbac) -> None:
    objects.role("reader", READ_PODS)
    objects.bind("readers", "reader", "User:alice", namespace="ns")
    assert rbac.authorize(LIST).allowed
    assert not rbac.authorize(replace(LIST, namespace="other")).allowed
    assert not rbac.authorize(replace(LIST, namespace="")).allowed


def test_reason_names_the_first_matching_binding(objects, rbac) -> None:
    objects.role("reader", READ_PODS)
    objects.bind("b", "reader", "User:alice")
    objects.bind("a", "reader", "Group:team-a", "User:alice")
    assert '"a" of ClusterRole "reader" to Group "team-a"' in rbac.authorize(LIST).reason


def test_missing_roles_are_reported_in_the_reason(objects, rbac) -> None:
    objects.bind("a", "gone", "User:alice")
    objects.bind("b", "lost", "User:alice", namespace="ns", kind="Role")
    missing = 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert rbac.authorize(replace(LIST, namespace="")).reason == f"RBAC: {missing}"
    both = f'RBAC: [{missing}, role.rbac.authorization.k8s.io "lost" not found]'
    assert rbac.authorize(LIST).reason == both
    objects.role("reader", READ_PODS)
    objects.bind("c", "reader", "User:alice")
    assert rbac.authorize(LIST).allowed


# ---------------------------------------------------------------- cache invalidation


def test_decisions_follow_every_write(objects, rbac) -> None:
    assert not rbac.authorize(LIST).allowed
    objects.bind("readers", "reader", "User:alice")
    assert not rbac.authorize(LIST).allowed
    objects.role("reader", READ_PODS)
    assert rbac.authorize(LIST).allowed
    objects.role("reader", {**READ_PODS, "verbs": ["get"]})
    assert not rbac.authorize(LIST).allowed
    objects.role("reader", READ_PODS)
    assert rbac.authorize(LIST).allowed
    objects.drop("rbac.authorization.k8s.io", "clusterrolebindings", "", "readers")
    assert not rbac.authorize(LIST).allowed


def test_decisions_are_cached_between_writes(objects, rbac) -> None:
    objects.role("reader", READ_PODS)
    objects.bind("readers", "reader", "User:alice")
    rbac.authorize(LIST)
    listed = objects.listed
    for name in ("a", "b", "a"):
        assert rbac.authorize(replace(LIST, name=name)).allowed
    assert objects.listed == listed


def test_rules_for_a_user(objects, rbac) -> None:
    objects.role("reader", READ_PODS)
    objects.role("writer", {**READ_PODS, "verbs": ["update"]}, namespace="ns")
    objects.bind("a", "reader", "User:alice", "Group:team-a")
    objects.bind("b", "writer", "Group:team-a", namespace="ns", kind="Role")
    objects.bind("c", "gone", "User:alice")
    found = rbac.rules_for(ALICE, "ns")
    rules, problem = found.rules, found.problem
    assert [rule["verbs"] for rule in rules] == [["get", "list"], ["update"]]
    assert problem == 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert len(rbac.rules_for(ALICE, "").rules) == 1


# ---------------------------------------------------------------- other authorizers and requests


def test_system_masters_group_is_privileged(rbac) -> None:
    union = UnionAuthorizer({"group": PrivilegedGroup(), "rbac": rbac})
    assert union.authorize(replace(LIST, user=ADMIN)).allowed
    assert not union.authorize(LIST).allowed


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (LIST, 'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "ns"'),
        (
            replace(LIST, namespace=""),
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" at the cluster scope',
        ),
        (
            replace(ASKED, subresource="scale"),
            'deployments.apps "web" is forbidden: User "alice" cannot get resource "deployments/scale" in API group "apps"'
            ' in the namespace "ns"',
        ),
        (
            Attributes(ALICE, "get", path="/<b>&", is_resource_request=False),
            'forbidden: User "alice" cannot get path "/&lt;b&gt;&amp;"',
        ),
    ],
)
def test_forbidden_message(attributes: Attributes, message: str) -> None:
    assert forbidden(attributes).message == message
    assert forbidden(attributes, "because").message == f"{message}: because"
    assert forbidden(attributes).code == 403


def test_attributes_of_a_request() -> None:
    info = RequestInfo(
        is_resource_request=True, path="/api/v1/namespaces/ns/pods/p/log", verb="get", api_prefix="api", group="", version="v1",
        namespace="ns", resource="pods", subresource="log", name="p", parts=("pods", "p", "log"),
    )  # fmt: skip
    asked = attributes_of(info, ALICE)
    assert (asked.verb, asked.namespace, asked.resource, asked.subresource, asked.name) == ("get", "ns", "pods", "log", "p")
    assert asked.is_resource_request

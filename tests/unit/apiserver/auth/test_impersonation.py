"""Impersonation: legacy and constrained modes, their permissions, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.errors import StatusError
from fakekube.apis.rest.cluster_access import Decision
from fakekube.apiserver.auth.authorization import Attributes, attributes_of
from fakekube.apiserver.auth.impersonation import Impersonation
from fakekube.apiserver.endpoints.request import RequestInfo, User
from fakekube.net.wsgi import Headers

CALLER = User("boss", groups=("system:authenticated",))
INFO = RequestInfo(
    is_resource_request=True, path="/api/v1/namespaces/ns/pods", verb="list", api_prefix="api", version="v1",
    namespace="ns", resource="pods", parts=("pods",),
)  # fmt: skip


class _Rules:
    """Allows what is named, as "verb resource[/subresource] name"; None: everything."""

    def __init__(self, *allowed: str, everything: bool = False) -> None:
        self.allowed, self.everything = allowed, everything
        self.asked: list[str] = []

    def authorize(self, attributes: Attributes) -> Decision:
        resource = "/".join(filter(None, (attributes.group, attributes.resource, attributes.subresource)))
        question = f"{attributes.verb} {resource} {attributes.name}".strip()
        self.asked.append(question)
        return Decision(self.everything or question in self.allowed)


def _headers(**headers: str) -> Headers:
    return Headers({f"HTTP_IMPERSONATE_{name.upper()}": value for name, value in headers.items()})


def _as(rules: _Rules, caller: User = CALLER, **headers: str) -> User:
    found = Impersonation(rules).impersonate(_headers(**headers), attributes_of(INFO, caller))
    return caller if found is None else found.user


def _refusal(rules: _Rules, **headers: str) -> StatusError:
    with pytest.raises(StatusError) as caught:
        _as(rules, **headers)
    return caught.value


def test_request_without_impersonation_headers() -> None:
    rules = _Rules()
    assert _as(rules) is CALLER
    assert rules.asked == []


def test_legacy_impersonate_verb() -> None:
    rules = _Rules("impersonate users bob", "impersonate groups a", "impersonate groups b")
    assert _as(rules, user="bob", group="a,b") == User("bob", "", ("a", "b", "system:authenticated"), {})


def test_impersonating_uid_and_extra() -> None:
    rules = _Rules(
        "impersonate users bob", "impersonate authentication.k8s.io/uids 7",
        "impersonate authentication.k8s.io/userextras/acme.io/x one", "impersonate authentication.k8s.io/userextras/acme.io/x two",
    )  # fmt: skip
    user = _as(rules, user="bob", uid="7", **{"extra_acme.io%2fx": "one,two"})
    assert (user.uid, user.extra) == ("7", {"acme.io/x": ["one", "two"]})


def test_constrained_impersonation_requires_both_permissions() -> None:
    both = ("impersonate-on:user-info:list pods", "impersonate:user-info authentication.k8s.io/users bob")
    assert _as(_Rules(*both), user="bob").name == "bob"
    for one in both:
        assert _refusal(_Rules(one), user="bob").code == 403


def test_refusal_names_the_missing_permission() -> None:
    refusal = _refusal(_Rules(), user="bob")
    assert refusal.message == (
        'pods is forbidden: User "boss" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"'
    )
    refusal = _refusal(_Rules("impersonate-on:user-info:list pods"), user="bob")
    assert refusal.message == (
        'users.authentication.k8s.io "bob" is forbidden: User "boss" cannot impersonate:user-info resource "users"'
        ' in API group "authentication.k8s.io" at the cluster scope'
    )


def test_impersonated_service_account_groups() -> None:
    user = _as(_Rules("impersonate serviceaccounts robot"), user="system:serviceaccount:ns:robot")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    rules = _Rules(
        "impersonate-on:serviceaccount:list pods", "impersonate:serviceaccount authentication.k8s.io/serviceaccounts robot"
    )
    assert _as(rules, user="system:serviceaccount:ns:robot").groups == user.groups


def test_node_impersonation() -> None:
    rules = _Rules("impersonate-on:arbitrary-node:list pods", "impersonate:arbitrary-node authentication.k8s.io/nodes n")
    assert _as(rules, user="system:node:n").groups == ("system:nodes", "system:authenticated")
    robot = User("system:serviceaccount:ns:robot", extra={"authentication.kubernetes.io/node-name": ("n",)})
    rules = _Rules("impersonate-on:associated-node:list pods", "impersonate:associated-node authentication.k8s.io/nodes *")
    assert _as(rules, robot, user="system:node:n").name == "system:node:n"
    with pytest.raises(StatusError):
        _as(rules, robot, user="system:node:other")


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        ({"user": "system:anonymous"}, ("system:unauthenticated",)),
        ({"user": "bob", "group": "system:unauthenticated"}, ("system:unauthenticated",)),
        ({"user": "bob", "group": "system:authenticated"}, ("system:authenticated",)),
        ({"user": "bob"}, ("system:authenticated",)),
    ],
)
def test_authenticated_group_of_impersonated_users(headers: dict[str, str], groups: tuple[str, ...]) -> None:
    assert _as(_Rules(everything=True), **headers).groups == groups


@pytest.mark.parametrize(
    ("headers", "requested"),
    [
        ({"group": "a"}, 'Name:"", UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)'),
        ({"uid": "7"}, 'Name:"", UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        ({"extra_b": "1"}, 'Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"b":[]string{"1"}}'),
    ],
)
def test_impersonation_without_user_name_returns_400(headers: dict[str, str], requested: str) -> None:
    refusal = _refusal(_Rules(everything=True), **headers)
    assert refusal.code == 400
    assert refusal.message == f"requested &user.DefaultInfo{{{requested}}} without impersonating a user name"


def test_system_masters_requires_the_legacy_verb() -> None:
    legacy = ("impersonate users bob", "impersonate groups system:masters")
    assert "system:masters" in _as(_Rules(*legacy), user="bob", group="system:masters").groups
    constrained = (
        "impersonate-on:user-info:list pods", "impersonate:user-info authentication.k8s.io/users bob",
        "impersonate:user-info authentication.k8s.io/groups system:masters",
    )  # fmt: skip
    refusal = _refusal(_Rules(*constrained), user="bob", group="system:masters")
    assert refusal.message.endswith(": impersonating the system:masters group is not allowed")


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"extra_": "1"}, "impersonating the empty string key in extra is not allowed"),
        ({"extra_plain": "1"}, "impersonating an invalid key in extra is not allowed: extra.key: Invalid value"),
        ({"extra_acme.io%2fx": ""}, "impersonating the empty string value in extra is not allowed"),
        ({"group": ""}, "impersonating the empty string group is not allowed"),
    ],
)
def test_invalid_groups_and_extra_are_rejected_by_constrained_impersonation(headers: dict[str, str], words: str) -> None:
    refusal = _refusal(
        _Rules("impersonate-on:user-info:list pods", "impersonate:user-info authentication.k8s.io/users bob"),
        user="bob", **headers,
    )  # fmt: skip
    assert words in refusal.message


def test_many_groups_are_authorized_by_a_wildcard() -> None:
    rules = _Rules(
        "impersonate-on:user-info:list pods", "impersonate:user-info authentication.k8s.io/users bob",
        "impersonate:user-info authentication.k8s.io/groups *",
    )  # fmt: skip
    assert _as(rules, user="bob", group="a,b,c,d").groups[:4] == ("a", "b", "c", "d")
    with pytest.raises(StatusError):
        _as(rules, user="bob", group="a,b,c")


@pytest.mark.parametrize(("written", "name"), [("A%ZZ", "a%zz"), ("A%FF", "a\udcff")], ids=["no escape", "no utf-8"])
def test_percent_encoded_extra_keys(written: str, name: str) -> None:
    environment: dict[str, Any] = {"HTTP_IMPERSONATE_USER": "bob", f"HTTP_IMPERSONATE_EXTRA_{written}": "1"}
    found = Impersonation(_Rules(everything=True)).impersonate(Headers(environment), attributes_of(INFO, CALLER))
    assert found is not None
    user = found.user
    assert list(user.extra) == [name]

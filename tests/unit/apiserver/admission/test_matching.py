"""Matching of requests by webhooks and policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakekube.apimachinery.errors import StatusError
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.admission.chain import Attributes, Operation
from fakekube.apiserver.admission.matching import Criteria, is_exempt, namespace_of
from fakekube.apiserver.registry import builtin

REGISTRY = Registry(builtin.resources())
ANYTHING = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}


@dataclass
class ClusterAccess:
    """A cluster with some namespaces."""

    namespaces: dict[str, dict[str, str]] = field(default_factory=lambda: {"n": {"env": "test"}, "m": {}})

    def get(self, group: str, plural: str, namespace: str, name: str) -> Any:
        labels = self.namespaces.get(name)
        return None if labels is None else {"metadata": {"name": name, "labels": labels}}

    def equivalents(self, resource: Resource, subresource: str) -> Sequence[Resource]:
        return REGISTRY.sharing_bucket(resource)


@dataclass
class Context:
    services: ClusterAccess = field(default_factory=ClusterAccess)


def request(
    resource: str = "v1/pods",
    *,
    operation: Operation = Operation.CREATE,
    namespace: str = "n",
    name: str = "x",
    subresource: str = "",
    labels: dict[str, str] | None = None,
    old: dict[str, str] | None = None,
) -> Attributes:
    group, version, plural = ["", *resource.split("/")][-3:]
    found = REGISTRY.get(group, version, plural)
    assert found is not None
    context: Any = Context()
    objects = [None if given is None else {"metadata": {"labels": given}} for given in (labels or {}, old)]
    if operation is Operation.DELETE:
        objects[0] = None
    return Attributes(found, subresource, namespace if found.namespaced else "", name, operation, objects[0], objects[1], context)


def hook(policy: str = "Equivalent", **rule: Any) -> Criteria:
    return Criteria.of_webhook({"rules": [{**ANYTHING, **rule}], "matchPolicy": policy})


@pytest.mark.parametrize(
    ("rule", "attributes", "expected"),
    [
        ({}, request(), True),
        ({"operations": ["UPDATE"]}, request(), False),
        ({"operations": ["UPDATE", "CREATE"]}, request(), True),
        ({"apiGroups": ["apps"]}, request(), False),
        ({"apiGroups": [""]}, request(), True),
        ({"apiVersions": ["v2"]}, request(), False),
        ({"resources": ["services"]}, request(), False),
        ({"resources": ["*"]}, request(subresource="status"), False),
        ({"resources": ["*/*"]}, request(subresource="status"), True),
        ({"resources": ["*/*"]}, request(), True),
        ({"resources": ["pods/*"]}, request(), True),
        ({"resources": ["pods/status"]}, request(), False),
        ({"resources": ["*/status"]}, request(subresource="status"), True),
        ({"scope": "Namespaced"}, request(), True),
        ({"scope": "Cluster"}, request(), False),
        ({"scope": "Cluster"}, request("v1/nodes"), True),
        ({"scope": "Namespaced"}, request("v1/nodes"), False),
        ({"scope": "Cluster"}, request("v1/namespaces"), True),
        ({"scope": "Namespaced"}, request("v1/namespaces"), False),
    ],
)
def test_rules_match(rule: dict[str, Any], attributes: Attributes, expected: bool) -> None:
    assert (hook("Exact", **rule).match(attributes) is not None) is expected


def test_missing_rules_match_nothing_for_webhooks_and_everything_for_policies() -> None:
    assert Criteria.of_webhook({}).match(request()) is None
    assert Criteria.of_match_resources(None).match(request()) is not None


def test_matched_kind_is_that_of_the_request_body() -> None:
    match = hook(resources=["*/*"]).match(request("apps/v1/deployments", subresource="scale"))
    assert match is not None
    assert (match.kind.api_version, match.kind.kind, match.resource.plural) == ("autoscaling/v1", "Scale", "deployments")


@pytest.mark.parametrize(
    ("resource", "rule", "expected"),
    [
        ("autoscaling/v1/horizontalpodautoscalers", {"apiVersions": ["v2"]}, "autoscaling/v2"),
        ("v1/events", {"apiGroups": ["events.k8s.io"]}, "events.k8s.io/v1"),
        ("events.k8s.io/v1/events", {"apiGroups": [""]}, "v1"),
    ],
)
def test_match_policy_equivalent_matches_other_versions(resource: str, rule: dict[str, Any], expected: str) -> None:
    match = hook("Equivalent", **rule).match(request(resource))
    assert match is not None and match.resource.api_version == expected == match.kind.api_version
    assert hook("Exact", **rule).match(request(resource)) is None


def test_request_version_is_preferred_over_equivalent_ones() -> None:
    rules = [{**ANYTHING, "apiVersions": ["v2"]}, {**ANYTHING, "apiVersions": ["v1"]}]
    match = Criteria.of_webhook({"rules": rules, "matchPolicy": "Equivalent"}).match(
        request("autoscaling/v1/horizontalpodautoscalers")
    )
    assert match is not None and match.resource.version == "v1"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (request(), True),
        (request(namespace="m"), False),
        (request("v1/nodes"), True),
        (request("v1/namespaces", labels={"env": "test"}, name="new"), True),
        (request("v1/namespaces", labels={}, name="n"), False),
        (request("v1/namespaces", labels={}, name="n", operation=Operation.UPDATE, subresource="status"), True),
        (request("v1/namespaces", name="n", operation=Operation.DELETE), True),
    ],
)
def test_namespace_selectors(attributes: Attributes, expected: bool) -> None:
    criteria = Criteria.of_match_resources({"namespaceSelector": {"matchLabels": {"env": "test"}}})
    assert (criteria.match(attributes) is not None) is expected


def test_object_selector_matches_new_or_old_object() -> None:
    criteria = Criteria.of_match_resources({"objectSelector": {"matchLabels": {"a": "b"}}})
    assert criteria.match(request(labels={"a": "b"}))
    assert criteria.match(request(labels={}, old={"a": "b"}))
    assert not criteria.match(request(labels={}, old={"a": "c"}))
    assert criteria.match(request(operation=Operation.DELETE, old={"a": "b"}))
    assert not criteria.match(request(labels={"a": "b"}, operation=Operation.CONNECT))


def test_selector_errors_count_only_if_rules_match() -> None:
    selector = {"matchLabels": {"env": "test"}}
    here = Criteria.of_match_resources({"namespaceSelector": selector, "resourceRules": [ANYTHING]})
    with pytest.raises(StatusError, match='namespaces "gone" not found') as caught:
        here.match(request(namespace="gone"))
    assert caught.value.code == 404
    elsewhere = {"namespaceSelector": selector, "resourceRules": [{**ANYTHING, "resources": ["services"]}]}
    assert Criteria.of_match_resources(elsewhere).match(request(namespace="gone")) is None
    broken = {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}
    with pytest.raises(StatusError, match='"Is" is not a valid label selector operator') as caught:
        Criteria.of_match_resources(broken).match(request())
    assert caught.value.code == 500


def test_resource_names_and_excluded_rules() -> None:
    named = Criteria.of_match_resources({"resourceRules": [{**ANYTHING, "resourceNames": ["x"]}]})
    assert named.match(request(name="x")) and not named.match(request(name="y"))
    without = Criteria.of_match_resources({"excludeResourceRules": [{**ANYTHING, "resourceNames": ["x"]}]})
    assert without.match(request(name="y")) and not without.match(request(name="x"))


def test_excluded_rules_match_equivalent_versions() -> None:
    excluded = [{**ANYTHING, "apiVersions": ["v2"]}]
    attributes = request("autoscaling/v1/horizontalpodautoscalers")
    assert Criteria.of_match_resources({"excludeResourceRules": excluded, "matchPolicy": "Exact"}).match(attributes)
    assert not Criteria.of_match_resources({"excludeResourceRules": excluded, "matchPolicy": "Equivalent"}).match(attributes)


def test_admission_configuration_resources_are_exempt() -> None:
    group = "admissionregistration.k8s.io/v1"
    assert is_exempt(request(f"{group}/validatingwebhookconfigurations"))
    assert is_exempt(request(f"{group}/mutatingadmissionpolicybindings"))
    assert not is_exempt(request())


def test_namespace_of_a_namespace_request_is_its_name() -> None:
    assert namespace_of(request("v1/namespaces", name="n")) == "n"
    assert namespace_of(request(namespace="m")) == "m"
    assert namespace_of(request("v1/nodes")) == ""

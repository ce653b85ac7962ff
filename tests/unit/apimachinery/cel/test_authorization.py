"""The CEL authorizer library: which SubjectAccessReview attributes an expression checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fakekube.apimachinery.cel.compilation import admission
from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.libraries.authorization import Authorizer, Decision, ResourceCheck

NO = Decision(False)


def account(namespace: str, name: str) -> Mapping[str, Any]:
    return {"user": f"account {namespace}/{name}"}


def evaluated(source: str, decision: Decision = NO) -> tuple[Any, list[Mapping[str, Any]]]:
    """The value of an expression, and what was asked."""
    asked: list[Mapping[str, Any]] = []

    def ask(spec: Mapping[str, Any]) -> Decision:
        asked.append(spec)
        return decision

    authorizer = Authorizer({"user": "alice", "groups": ["team-a"]}, ask, account)
    own = ResourceCheck.for_resource(authorizer, "apps", "deployments", subresource="scale", namespace="n", name="web")
    values = {"authorizer": authorizer, "authorizer.requestResource": own}
    return admission().compile(source).program.evaluate(values)[0], asked


@pytest.mark.parametrize(
    ("source", "attributes"),
    [
        (
            "authorizer.group('apps').resource('deployments').check('list').allowed()",
            {"group": "apps", "version": "*", "verb": "list", "resource": "deployments"},
        ),
        (
            "authorizer.group('').resource('pods').subresource('log').namespace('n').name('p').check('get').allowed()",
            {"group": "", "version": "*", "verb": "get", "resource": "pods", "subresource": "log", "namespace": "n", "name": "p"},
        ),
        (
            "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c in (d').check('list').allowed()",
            {"group": "", "version": "*", "verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "a=b"}},
        ),
        (
            "authorizer.requestResource.check('patch').allowed()",
            {
                "group": "apps",
                "version": "*",
                "verb": "patch",
                "resource": "deployments",
                "subresource": "scale",
                "namespace": "n",
                "name": "web",
            },
        ),
    ],
)
def test_authorizer_checks_of_resources(source: str, attributes: dict[str, Any]) -> None:
    value, asked = evaluated(source)
    assert value is False
    assert asked == [{"user": "alice", "groups": ["team-a"], "resourceAttributes": attributes}]


def test_authorizer_checks_of_paths_as_service_account() -> None:
    _, asked = evaluated("authorizer.serviceAccount('n', 'robot').path('/healthz').check('get').allowed()")
    assert asked == [{"user": "account n/robot", "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}]


def test_authorizer_decision_has_reason_and_error() -> None:
    source = "[d.allowed(), d.errored()] == [true, true] ? d.reason() + d.error() : ''".replace(
        "d.", "authorizer.path('/').check('get')."
    )
    assert evaluated(source, Decision(True, "because ", "of this"))[0] == "because of this"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("authorizer.path('  ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        ("authorizer.serviceAccount('n', 'A B').path('/').check('get').allowed()", "Invalid service account name"),
        ("authorizer.serviceAccount('A B', 'n').path('/').check('get').allowed()", "Invalid service account namespace"),
    ],
)
def test_invalid_authorizer_checks_are_evaluation_errors(source: str, problem: str) -> None:
    value, asked = evaluated(source)
    assert isinstance(value, EvaluationError)
    assert str(value) == problem
    assert not asked

"""Which expressions of a policy name fields that the kinds do not have that it matches."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apiserver.admission.policy.typechecking import expression_warnings
from fakekube.apiserver.registry import builtin


def warnings(resources: str, *expressions: str, group: str = "", version: str = "v1", **spec: Any) -> list[dict[str, str]]:
    rule = {"apiGroups": [group], "apiVersions": [version], "resources": resources.split(), "operations": ["CREATE"]}
    validations = [{"expression": expression} for expression in expressions]
    return expression_warnings(
        {"matchConstraints": {"resourceRules": [rule]}, "validations": validations, **spec}, builtin.resources()
    )


def problem(resources: str, expression: str, **options: Any) -> str:
    """The first line of the only warning, without the kind; empty if there is none."""
    found = warnings(resources, expression, **options)
    return found[0]["warning"].partition("ERROR: <input>:1:")[2].partition("\n")[0] if found else ""


def test_warning_names_kind_and_position() -> None:
    assert warnings("deployments", "object.spec.replicas < 5", "object.spec.replcas < 5", group="apps") == [
        {
            "fieldRef": "spec.validations[1].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replcas'\n"
            " | object.spec.replcas < 5\n | ...........^\n",
        }
    ]


def test_every_matched_kind_is_type_checked() -> None:
    (warning,) = warnings("events", "object.involvedObject.name == 'x' && object.x == 1")
    kinds = [text.partition(": ERROR")[0] for text in warning["warning"].split("\n\n")]
    assert kinds == ["/v1, Kind=Event", "events.k8s.io/v1, Kind=Event"], "the core group is taken for any"


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("object.spec.containers[0].livenessProbe.httpGet.port == 1.5", ""),
        ("object.metadata.creationTimestamp == 1", "found no matching overload for '_==_' applied to '(timestamp, int)'"),
        ("object.metadata.labels['a'] == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("object.spec.containers[0].resources.limits['cpu'] == 'x'", "undefined field 'limits'"),
        ("has(object.spec.nothing)", "undefined field 'nothing'"),
        ("oldObject.spec.x == 1", "undefined field 'x'"),
        (
            "authorizer.requestResource.check('get').allowed()",
            "unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
        ),
    ],
)
def test_field_types_follow_openapi(expression: str, told: str) -> None:
    assert problem("pods", expression).partition(": ")[2] == told


def test_recursive_types_are_cut_at_the_first_recursion() -> None:
    path = "object.spec.versions[0].schema.openAPIV3Schema"
    for expression, told in ((f"{path}.type == 'x'", ""), (f"{path}.properties['x'].type == 'x'", "undefined field 'type'")):
        found = problem("customresourcedefinitions", expression, group="apiextensions.k8s.io")
        assert found.partition(": ")[2] == told


def test_variables_and_params_are_typed() -> None:
    variables = [{"name": "data", "expression": "object.data"}, {"name": "wrong", "expression": "object.dta"}]
    assert problem("configmaps", "variables.data.x == 1", variables=variables).endswith("'(string, int)'")
    assert not problem("configmaps", "variables.wrong == 1", variables=variables)
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert problem("pods", "params.x == 1", paramKind=kind).endswith("undefined field 'x'")
    assert not problem("pods", "params.x == 1", paramKind={"apiVersion": "example.com/v1", "kind": "Nothing"})


@pytest.mark.parametrize(
    ("resources", "options"),
    [
        ("*", {"group": "apps"}),
        ("deployments/scale", {"group": "apps"}),
        ("deployments", {"group": "*"}),
        ("deployments", {"group": "apps", "version": "*"}),
        ("deployments", {"group": "apps", "version": "v9"}),
        ("things", {"group": "nosuch.example.com"}),
    ],
)
def test_unknown_types_are_not_checked(resources: str, options: dict[str, str]) -> None:
    assert warnings(resources, "object.nothing == 1", **options) == []


def test_at_most_ten_kinds_are_checked() -> None:
    many = "pods secrets configmaps services nodes namespaces endpoints events limitranges podtemplates resourcequotas"
    (warning,) = warnings(many, "object.nothing == 1")
    assert warning["warning"].count("ERROR") == 10


def test_controller_writes_type_checking_warnings() -> None:
    cluster = Cluster()
    try:
        policy = cluster.create(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": "p"},
                "spec": {
                    "matchConstraints": {
                        "resourceRules": [
                            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
                        ]
                    },
                    "validations": [{"expression": "object.dta == 1"}],
                },
            }
        )
        cluster.settle()
        status = cluster.get("validatingadmissionpolicies", "p")["status"]
        assert status["observedGeneration"] == policy["metadata"]["generation"]
        assert [warning["fieldRef"] for warning in status["typeChecking"]["expressionWarnings"]] == [
            "spec.validations[0].expression"
        ]
        cluster.patch("validatingadmissionpolicies", "p", {"spec": {"validations": [{"expression": "object.data.a == '1'"}]}})
        cluster.settle()
        status = cluster.get("validatingadmissionpolicies", "p")["status"]
        assert status["observedGeneration"] == 2
        assert not status.get("typeChecking")
    finally:
        cluster.stop()

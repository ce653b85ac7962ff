"""Bad values in Go's syntax, as the recorded answers of 1.33 show them (tests/differential)."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.data import minor
from fakekube.apimachinery.errors.field import FieldError, invalid
from fakekube.apimachinery.errors.go_syntax import with_go_values

RULE = {"Rule": "self", "Message": "", "MessageExpression": "", "Reason": None, "FieldPath": "", "OptionalOldSelf": None}


def body_of(group: str, kind: str, error: FieldError) -> str:
    (printed,) = with_go_values(minor("1.33"), group, kind, [error])
    return printed.body


@pytest.mark.parametrize(
    ("group", "kind", "path", "value", "printed"),
    [
        ("apps", "Deployment", "spec.template.metadata.labels", {"a": "b"}, 'map[string]string{"a":"b"}'),
        ("apps", "Deployment", "spec.template.metadata.labels", None, "map[string]string(nil)"),
        (
            "apps",
            "Deployment",
            "spec.selector",
            {"matchLabels": {"a": "b"}},
            'v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}',
        ),
        (
            "apps",
            "Deployment",
            "spec.strategy",
            {"Type": "recreate", "RollingUpdate": None},
            'apps.DeploymentStrategy{Type:"recreate", RollingUpdate:(*apps.RollingUpdateDeployment)(nil)}',
        ),
        (
            "apps",
            "Deployment",
            "spec.strategy.rollingUpdate.maxSurge",
            "-1%",
            'intstr.IntOrString{Type:1, IntVal:0, StrVal:"-1%"}',
        ),
        ("networking.k8s.io", "Ingress", "spec", None, "[]networking.IngressRule(nil)"),
        ("networking.k8s.io", "NetworkPolicy", "spec.policyTypes", ["A", "B"], '[]networking.PolicyType{"A", "B"}'),
        ("", "Service", "spec.clusterIPs[0]", ["10.0.0.98"], '[]string{"10.0.0.98"}'),
        ("", "ConfigMap", "metadata.resourceVersion", 0, "0x0"),
        ("example.com", "Widget", "spec.a", {"b": 1}, 'map[string]interface {}{"b":1}'),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule",
            RULE,
            'apiextensions.ValidationRule{Rule:"self", Message:"", MessageExpression:"", '
            'Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:"", OptionalOldSelf:(*bool)(nil)}',
        ),
    ],
)
def test_values_have_the_type_of_their_field(group: str, kind: str, path: str, value: Any, printed: str) -> None:
    assert body_of(group, kind, invalid(path, value, "is wrong")) == f"Invalid value: {printed}: is wrong"


def test_a_quantity_is_shown_whole() -> None:
    amount = "i:resource.int64Amount{value:2, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}"
    shown = f'resource.Quantity{{{amount}, s:"2", Format:"DecimalSI"}}'
    assert body_of("", "LimitRange", invalid("spec.limits[0].min[cpu]", "2", "is wrong")) == f"Invalid value: {shown}: is wrong"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema import defaults
from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.decode import decode
from fakekube.apimachinery.schema.printing import normalise
from tests.unit.apimachinery.schema.recorded import CASES, Case

#: Kinds of which some defaults depend on other fields; their modules apply those.
CONDITIONAL = {
    "CronJob", "CustomResourceDefinition", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "LimitRange",
    "Namespace", "NetworkPolicy", "Node", "Pod", "PodList", "PodTemplate", "ReplicaSet", "ReplicationController",
    "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "Service", "StatefulSet", "ClusterRoleBinding",
    "RoleBinding",
}  # fmt: skip


def defaulted(case: Case) -> Any:
    tree = decode(case.type, json.loads(case.body)[0])
    defaults.apply(builtins("1.36"), case.group, case.version, case.kind, tree)
    return normalise(case.type, tree)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, value


READ = [case for case in CASES if case.error is None]


@pytest.mark.parametrize("case", [case for case in READ if case.kind not in CONDITIONAL], ids=str)
def test_constant_defaults_match_the_reference(case: Case) -> None:
    assert json.dumps(defaulted(case)).decode() == case.defaulted


@pytest.mark.parametrize("case", [case for case in READ if case.kind in CONDITIONAL], ids=str)
def test_defaults_are_a_subset_of_the_reference_defaults(case: Case) -> None:
    stored = dict(leaves(json.loads(case.stored.encode())[0]))
    reference = dict(leaves(json.loads(case.defaulted.encode())[0]))
    for path, value in leaves(defaulted(case)):
        if path not in stored and (value or path in reference):
            assert reference[path] == value, path


def test_nested_default_requires_the_parent_struct() -> None:
    containers = [{"name": "a", "livenessProbe": {"httpGet": {"port": 80}}}, {"name": "b"}]
    probe: dict[str, Any] = {"spec": {"containers": containers}}
    defaults.apply(builtins("1.36"), "", "v1", "Pod", probe)
    first, second = probe["spec"]["containers"]
    assert first["livenessProbe"]["periodSeconds"] == 10
    assert first["livenessProbe"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert "livenessProbe" not in second


def test_given_values_are_not_overwritten() -> None:
    service: dict[str, Any] = {"spec": {"type": "NodePort", "ports": [{"protocol": "UDP"}]}}
    defaults.apply(builtins("1.36"), "", "v1", "Service", service)
    assert service["spec"]["type"] == "NodePort"
    assert service["spec"]["ports"] == [{"protocol": "UDP"}]
    assert service["spec"]["sessionAffinity"] == "None"


def test_defaults_of_pods_do_not_apply_to_pod_templates() -> None:
    pod: dict[str, Any] = {"spec": {}}
    template: dict[str, Any] = {"template": {"spec": {}}}
    defaults.apply(builtins("1.36"), "", "v1", "Pod", pod)
    defaults.apply(builtins("1.36"), "", "v1", "PodTemplate", template)
    assert pod["spec"]["enableServiceLinks"] is True
    assert "enableServiceLinks" not in template["template"]["spec"]


def test_default_structs_are_not_shared() -> None:
    first: dict[str, Any] = {"spec": {}}
    second: dict[str, Any] = {"spec": {}}
    defaults.apply(builtins("1.36"), "", "v1", "Pod", first)
    defaults.apply(builtins("1.36"), "", "v1", "Pod", second)
    assert first["spec"]["securityContext"] == {}
    assert first["spec"]["securityContext"] is not second["spec"]["securityContext"]


def test_resource_lists_are_rounded_up_to_milli() -> None:
    quota = {"spec": {"hard": {"cpu": "1u", "memory": "1500m", "pods": "1.1234"}}}
    defaults.apply(builtins("1.36"), "", "v1", "ResourceQuota", quota)
    assert quota["spec"]["hard"] == {"cpu": "1m", "memory": "1500m", "pods": "1124m"}


def test_unknown_kinds_have_no_defaults() -> None:
    thing: dict[str, Any] = {"spec": {}}
    defaults.apply(builtins("1.36"), "example.com", "v1", "Thing", thing)
    assert thing == {"spec": {}}

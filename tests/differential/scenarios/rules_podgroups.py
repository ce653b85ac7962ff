"""What the declared rules of pod groups and workloads say, in the version that a minor serves."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.rule_tables import State, tell

# fmt: off

tell_of = functools.partial(tell, module="rules_podgroups")

Edit = dict[str, Any]
GROUP: Edit = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
TEMPLATE: Edit = {"name": "t", "schedulingPolicy": {"basic": {}}}
WORKLOAD: Edit = {"spec": {"podGroupTemplates": [TEMPLATE]}}
FIRST = "spec.podGroupTemplates[0]"


def each(path: str, *values: Any) -> list[Edit]:
    return [{path: value} for value in values]


def of_group(path: str) -> list[Edit]:
    """Edits of what a group and a template have in common."""
    return [
        *each(f"{path}.schedulingPolicy", None, {}, {"basic": {}, "gang": {"minCount": 1}}, {"gang": {}}, {"gang": {"minCount": 0}}, {"gang": {"minCount": -1}}),
        *each(f"{path}.schedulingConstraints", {}, {"topology": [{}]}, {"topology": [{"key": "a/b/c"}]}, {"topology": [{"key": "a"}, {"key": "b"}]}),
        *each(f"{path}.resourceClaims", [{}], [{"name": "A_"}], [{"name": "a", "resourceClaimName": "A_"}], [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "B_"}], [{"name": "a", "resourceClaimName": "b"}] * 2, [{"name": f"a{n}", "resourceClaimName": "b"} for n in range(5)]),
        *each(f"{path}.priorityClassName", "A_"),
    ]


for version in ("v1alpha2", "v1beta1"):
    modes: tuple[Any, ...] = ("PodGroup", "Pod", "pod", "") if version == "v1alpha2" else ({}, {"single": {}, "all": {}}, {"all": {}})
    tell_of(f"{version}_groups", f"scheduling.k8s.io/{version}/podgroups", GROUP, create=[
        *of_group("spec"), *each("spec.disruptionMode", *modes), *each("spec.preemptionPolicy", "Never", "Nope", "PreemptLowerPriority"),
        *each("spec.workloadRef", {}, {"workloadName": "A_", "templateName": "B.c"}), *each("spec.podGroupTemplateRef", {}, {"workload": {}}),
        *each("spec.parentCompositePodGroupName", "a", "A_"), *each("metadata.name", "a.b", "A_"), *each("status", {"conditions": []}),
    ], states=[State(update=[
        *each("spec.schedulingPolicy", {"basic": {}}, {"gang": {"minCount": 3}}, {"gang": {"minCount": 0}}), {"spec.priority": 7}, {"spec.priority": None}, {"spec.schedulingConstraints": {"topology": [{"key": "a"}]}},
        {"spec.resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}, *each("spec.disruptionMode", *modes), {"spec.preemptionPolicy": "Never"}, {"metadata.labels": {"a": "b"}},
    ])])
    tell_of(f"{version}_workloads", f"scheduling.k8s.io/{version}/workloads", WORKLOAD, create=[
        *of_group(FIRST), *each(f"{FIRST}.name", None, "A_", "a.b"), *each(f"{FIRST}.disruptionMode", *modes), *each(f"{FIRST}.priority", 1, 1000000001),
        *each("spec.podGroupTemplates", None, [], [TEMPLATE] * 2, [{**TEMPLATE, "name": f"t{n}"} for n in range(9)]),
        *each("spec.controllerRef", {}, {"kind": "a/b", "name": "c%d"}, {"apiGroup": "A_", "kind": "A", "name": "b"}),
    ], states=[State(update=[
        {f"{FIRST}.name": "x"}, {"spec.podGroupTemplates[1]": {**TEMPLATE, "name": "u"}}, {f"{FIRST}.schedulingPolicy": {"gang": {"minCount": 3}}}, {"spec.controllerRef": {"kind": "a", "name": "c"}}, {f"{FIRST}.priority": 7}, {"metadata.labels": {"a": "b"}},
    ])])

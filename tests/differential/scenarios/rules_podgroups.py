"""What the declared rules of pod groups and workloads say, in the version that a minor serves."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.rule_tables import State, each, tell

# fmt: off

tell_of = functools.partial(tell, module="rules_podgroups")

Edit = dict[str, Any]
GROUP: Edit = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
TEMPLATE: Edit = {"name": "t", "schedulingPolicy": {"basic": {}}}
WORKLOAD: Edit = {"spec": {"podGroupTemplates": [TEMPLATE]}}
FIRST = "spec.podGroupTemplates[0]"


def of_group(path: str) -> list[Edit]:
    """Edits of what a group and a template have in common."""
    return [
        *each(f"{path}.schedulingPolicy", None, {}, {"basic": {}, "gang": {"minCount": 1}}, {"gang": {}}, {"gang": {"minCount": 0}}, {"gang": {"minCount": -1}}),
        *each(f"{path}.schedulingConstraints", {}, {"topology": [{}]}, {"topology": [{"key": "a/b/c"}]}, {"topology": [{"key": "a"}, {"key": "b"}]}),
        *each(f"{path}.resourceClaims", [{}], [{"name": "a", "resourceClaimName": ""}], [{"name": "A_"}], [{"name": "a", "resourceClaimName": "A_"}], [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "B_"}], [{"name": "a", "resourceClaimName": "b"}] * 2, [{"name": f"a{n}", "resourceClaimName": "b"} for n in range(5)]),
        *each(f"{path}.priorityClassName", "A_"),
    ]


for version in ("v1alpha2", "v1beta1"):
    modes: tuple[Any, ...] = ("PodGroup", "Pod", "pod", "") if version == "v1alpha2" else ({}, {"single": {}, "all": {}}, {"all": {}})
    tell_of(f"{version}_groups", f"scheduling.k8s.io/{version}/podgroups", GROUP, create=[
        *of_group("spec"), *each("spec.disruptionMode", *modes), *each("spec.preemptionPolicy", "Never", "Nope", "PreemptLowerPriority"),
        *each("spec.workloadRef", {}, {"workloadName": "A_", "templateName": "B.c"}), *each("spec.podGroupTemplateRef", {}, {"workload": {}}),
        *each("spec.parentCompositePodGroupName", "a", "A_"), {"spec.resourceClaims": [{"name": "a" * 64, "resourceClaimName": "a" * 254}]}, *each("metadata.name", "a.b", "A_"), *each("status", {"conditions": []}),
    ], states=[State(update=[
        *each("spec.schedulingPolicy", {"basic": {}}, {"gang": {"minCount": 3}}, {"gang": {"minCount": 0}}), {"spec.priority": 7}, {"spec.priority": None}, {"spec.schedulingConstraints": {"topology": [{"key": "a"}]}},
        {"spec.resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}, *each("spec.disruptionMode", *modes), {"spec.preemptionPolicy": "Never"}, {"metadata.labels": {"a": "b"}}, {"status": {"conditions": [{}]}},
    ])])
    tell_of(f"{version}_statuses", f"scheduling.k8s.io/{version}/podgroups", GROUP, states=[
        State(base={"spec.resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}, status_update=each(
            "status.resourceClaimStatuses", *([{"name": name} for name in names] for names in ("c", "d", "cc", "dd", "abdef")),
            *([{"name": "c", "resourceClaimName": name}] for name in ("a.b", "A_", "", "a" * 254)), [{}, {"name": "c", "resourceClaimName": "a"}, {"name": "c", "resourceClaimName": "B_"}],
        )),
    ])
    tell_of(f"{version}_workloads", f"scheduling.k8s.io/{version}/workloads", WORKLOAD, create=[
        *of_group(FIRST), *each(f"{FIRST}.name", None, "A_", "a.b"), *each(f"{FIRST}.disruptionMode", *modes), *each(f"{FIRST}.priority", 1, 1000000001),
        *each("spec.podGroupTemplates", None, [], [TEMPLATE] * 2, [{**TEMPLATE, "name": f"t{n}"} for n in range(9)]),
        *each("spec.controllerRef", {}, {"kind": "a/b", "name": "c%d"}, {"apiGroup": "A_", "kind": "A", "name": "b"}),
    ], states=[State(update=[
        {f"{FIRST}.name": "x"}, {"spec.podGroupTemplates[1]": {**TEMPLATE, "name": "u"}}, {f"{FIRST}.schedulingPolicy": {"gang": {"minCount": 3}}}, {"spec.controllerRef": {"kind": "a", "name": "c"}}, {f"{FIRST}.priority": 7}, {"metadata.labels": {"a": "b"}},
    ])])

COMPOSITE: Edit = {"spec": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "workloadRef": {"workloadName": "w", "templateName": "t"}}}
NODE: Edit = {"name": "n", "schedulingPolicy": {"basic": {}}, "podGroupTemplates": [TEMPLATE]}
TREE: Edit = {"spec": {"compositePodGroupTemplates": [NODE]}}
ROOT = "spec.compositePodGroupTemplates[0]"


def of_composite(path: str) -> list[Edit]:
    """Edits of what a composite group and its template have in common."""
    return [
        *each(f"{path}.schedulingPolicy", None, {}, {"basic": {}, "gang": {"minGroupCount": 1}}, {"gang": {}}, {"gang": {"minGroupCount": 0}}, {"gang": {"minGroupCount": -1}}, {"gang": {"minGroupCount": 1}}),
        *each(f"{path}.schedulingConstraints", {}, {"topology": [{}]}, {"topology": [{"key": "a/b/c"}]}, {"topology": [{"key": "a"}, {"key": "b"}]}),
        *each(f"{path}.disruptionMode", {}, {"single": {}, "all": {}}, {"all": {}}), *each(f"{path}.preemptionPolicy", "Never", "Nope"), *each(f"{path}.priorityClassName", "A_", "nobody", "system-node-critical"),
    ]


def chain(length: int, **last: Any) -> Edit:
    """A template whose composite children are so many levels deep."""
    node = {**NODE, "name": f"n{length}", **last}
    for level in range(length - 1, 0, -1):
        node = {"name": f"n{level}", "schedulingPolicy": {"basic": {}}, "compositePodGroupTemplates": [node]}
    return node


tell_of("v1alpha3_composites", "scheduling.k8s.io/v1alpha3/compositepodgroups", COMPOSITE, create=[
    *of_composite("spec"), *each("spec.workloadRef", None, {}, {"workloadName": "A_", "templateName": "B.c"}), *each("spec.parentCompositePodGroupName", "a", "a.b", "A_", ""),
    *each("spec.priority", 0, 1, 1000000001), *each("metadata.name", "a.b", "A_"), *each("metadata.finalizers", ["a.b/c"]), *each("status", {"conditions": []}),
], states=[State(update=[
    *each("spec.schedulingPolicy", {"basic": {}}, {"gang": {"minGroupCount": 3}}, {"gang": {"minGroupCount": 0}}), *each("spec.priority", 7, None), *each("spec.priorityClassName", "a", "A_"),
    {"spec.schedulingConstraints": {"topology": [{"key": "a"}]}}, *each("spec.disruptionMode", {}, {"all": {}}, None), *each("spec.preemptionPolicy", "Never", None), *each("spec.workloadRef", None, {"workloadName": "w", "templateName": "u"}),
    {"spec.parentCompositePodGroupName": "a"}, {"metadata.labels": {"a": "b"}}, {"metadata.resourceVersion": None}, {"status.conditions": [{}]},
], status_update=[
    {"metadata.labels": {"a": "b"}, "spec.priority": 7}, *each("status.conditions", [{}], [{"type": "A", "status": "True", "reason": "B", "lastTransitionTime": "2026-01-01T00:00:00Z"}] * 2, [{"type": "A", "status": "Maybe", "reason": "B c"}]),
])])

tell_of("v1alpha3_trees", "scheduling.k8s.io/v1alpha3/workloads", TREE, create=[
    *of_composite(ROOT), *each(f"{ROOT}.name", None, "A_", "a.b", "t"), *each(f"{ROOT}.priority", 0, 1, 1000000001), *each(f"{ROOT}.podGroupTemplates", None, [], [TEMPLATE] * 2, [{}], [{**TEMPLATE, "name": f"t{n}"} for n in range(9)], [{**TEMPLATE, "priority": 1}], [{**TEMPLATE, "priorityClassName": "a"}]),
    *each("spec.compositePodGroupTemplates", None, [], [NODE] * 2, [NODE, {**NODE, "name": "m"}], [{**NODE, "name": f"n{n}", "podGroupTemplates": [{**TEMPLATE, "name": f"t{n}"}]} for n in range(9)],
          *([chain(length)] for length in (2, 3, 4, 5)), [chain(3, podGroupTemplates=[])], [chain(2, name="n1")], [chain(2, name="t")], [chain(2, priority=1)], [chain(2, podGroupTemplates=[{**TEMPLATE, "priority": 1}])],
          [NODE, {**NODE, "name": "m", "priorityClassName": "a", "podGroupTemplates": [{**TEMPLATE, "name": "u"}]}], [{**NODE, "priorityClassName": "a"}], [{**NODE, "compositePodGroupTemplates": [chain(1)] * 2}], [{**NODE, "compositePodGroupTemplates": [{**NODE, "name": f"n{n}", "podGroupTemplates": [{**TEMPLATE, "name": f"u{n}"}]} for n in range(9)]}]),
    *each("spec.podGroupTemplates", [TEMPLATE], [{**TEMPLATE, "name": "n"}], [{**TEMPLATE, "priority": 1}]),
], states=[State(base={f"{ROOT}.compositePodGroupTemplates": [{**NODE, "name": "m", "podGroupTemplates": [{**TEMPLATE, "name": "u"}]}]}, update=[
    {f"{ROOT}.name": "x"}, {"spec.compositePodGroupTemplates[1]": {**NODE, "name": "o", "podGroupTemplates": [{**TEMPLATE, "name": "v"}]}}, *of_composite(ROOT), {f"{ROOT}.priority": 7},
    {f"{ROOT}.podGroupTemplates[0].name": "x"}, {f"{ROOT}.podGroupTemplates[0].schedulingPolicy": {"gang": {"minCount": 2}}}, {f"{ROOT}.podGroupTemplates[0].priority": 7}, {f"{ROOT}.podGroupTemplates": []},
    {f"{ROOT}.compositePodGroupTemplates[0].name": "x"}, {f"{ROOT}.compositePodGroupTemplates": []}, {f"{ROOT}.compositePodGroupTemplates[0].schedulingPolicy": {"gang": {"minGroupCount": 3}}},
    {f"{ROOT}.compositePodGroupTemplates[0].podGroupTemplates[1]": {**TEMPLATE, "name": "v"}}, {"spec.compositePodGroupTemplates": []}, {"spec.podGroupTemplates": [{**TEMPLATE, "name": "w"}]}, {"metadata.labels": {"a": "b"}},
]), State(base={f"{ROOT}.schedulingPolicy": {"gang": {"minGroupCount": 2}}, f"{ROOT}.podGroupTemplates[0].schedulingPolicy": {"gang": {"minCount": 2}}}, update=[
    *each(f"{ROOT}.schedulingPolicy", {"basic": {}}, {"gang": {"minGroupCount": 3}}, {"gang": {"minGroupCount": 0}}), *each(f"{ROOT}.podGroupTemplates[0].schedulingPolicy.gang.minCount", 3, 0),
])])

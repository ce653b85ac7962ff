"""kwok's stages: their two languages, which of them holds, and what they do to a cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fakekube import Cluster, ManifestError
from fakekube.nodes.stages import StageError, go_templates, jq
from fakekube.nodes.stages.go_templates import PLAIN
from fakekube.nodes.stages.stage import Stage, match_stage, new_stage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "annotations": {"a.b/c": "7"}, "ownerReferences": [{"kind": "Job"}, {"kind": "X"}]},
    "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}], "n": 3},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (".metadata.name", ["p"]),
        (".metadata.absent", []),
        (".metadata.absent.more", []),
        (".metadata.name.more", []),
        ('.metadata.annotations["a.b/c"]', ["7"]),
        (".metadata.ownerReferences.[].kind", ["Job", "X"]),
        (".metadata.ownerReferences[0].kind", ["Job"]),
        (".spec.containers[-1].name", ["d"]),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status', ["True"]),
        ('.status.conditions[] | select(.type == "Ready" and .status == "False")', []),
        (".spec.containers | length", [2]),
        (".spec.n > 2", [True]),
        ('.absent // "x"', ["x"]),
        ('.metadata | has("name")', [True]),
        (".absent[]?", []),
        (".spec.containers | map(.name)", [["c", "d"]]),
        ('."metadata".name', ["p"]),
        ("(.spec.n | not)", [False]),
    ],
)
def test_queries(query: str, found: list[Any]) -> None:
    assert jq.compile_query(query)(POD) == found


@pytest.mark.parametrize("query", ["reduce .[] as $x (0; . + $x)", ".a as $x | $x", ".a | splits(1)", ".a |", "@base64"])
def test_invalid_queries(query: str) -> None:
    with pytest.raises(StageError, match="jq"):
        jq.compile_query(query)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ .metadata.name }}", "p"),
        ('{{ .spec.n | printf "%d!" }}', "3!"),
        ("{{ .absent }}", "<no value>"),
        ("{{ range .spec.containers }}[{{ .name }}]{{ end }}", "[c][d]"),
        ("{{ range $i, $c := .spec.containers }}{{ $i }}{{ $c.name }}{{ $.metadata.name }} {{ end }}", "0cp 1dp "),
        ("{{ range .absent }}x{{ else }}none{{ end }}", "none"),
        ("{{ if eq .spec.n 4 }}a{{ else if eq .spec.n 3 }}b{{ else }}c{{ end }}", "b"),
        ("{{ with .absent }}x{{ else }}y{{ end }}", "y"),
        ('{{ $x := or .absent "z" }}{{ $x }}{{ $x = 1 }}{{ $x }}', "z1"),
        ("a {{- /* not shown */ -}} b", "ab"),
        ("a {{- 1 -}} b", "a1b"),
        ("a {{-  `}} {{`  -}} b", "a}} {{b"),
        ("{{ index .spec.containers 1 `name` }}", "d"),
        ("{{ (index .spec.containers 0).image | Quote }}", '"i"'),
        ("{{ not .absent }}{{ and 1 0 }}{{ or 0 2 }}", "true02"),
        ('{{ default "d" .absent }}{{ len .spec.containers }}', "d2"),
        ("k:{{ YAML .spec.containers 1 }}", "k:\n  - image: i\n    name: c\n  - image: j\n    name: d\n  "),
    ],
)
def test_templates(template: str, text: str) -> None:
    assert go_templates.compile_template(template).render(POD, PLAIN) == text


@pytest.mark.parametrize(
    "template", ["{{ if .a }}", "{{ end }}", '{{ template "x" }}', "{{ .a | }}", "{{ ( .a }}", "{{ 1 + 2 }}", "{{ .a", '{{ "a }}']
)
def test_invalid_templates(template: str) -> None:
    with pytest.raises(StageError, match="template"):
        go_templates.compile_template(template)


@pytest.mark.parametrize("piece", ['"a" ', '"{{ ', "/* {{ ", "` "])
def test_a_template_is_read_in_one_pass(piece: str) -> None:
    """Thirty of these pieces would take hours if the strings of an action were tried in other ways as well."""
    with pytest.raises(StageError, match="no end"):
        go_templates.compile_template("{{ " + piece * 100_001)


def stage(name: str = "s", *, selector: Any = None, kind: str = "Pod", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": selector or {"matchLabels": {}}, **spec},
    }


def made(**spec: Any) -> Stage:
    found = new_stage(stage(**spec))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ({"key": ".status.phase", "operator": "In", "values": ["Running"]}, True),
        ({"key": ".status.phase", "operator": "NotIn", "values": ["Running"]}, False),
        ({"key": ".absent", "operator": "NotIn", "values": ["x"]}, True),
        ({"key": ".absent", "operator": "DoesNotExist"}, True),
        ({"jq": {"key": ".spec.n", "operator": "In", "values": ["3"]}}, True),
        ({"key": ".status", "operator": "Exists"}, True),
        ({"cel": {"expression": "self.status.phase in ['Running'] && !has(self.metadata.deletionTimestamp)"}}, True),
        ({"cel": {"expression": "self.spec.absent == 1"}}, False),
    ],
)
def test_selectors(expression: dict[str, Any], holds: bool) -> None:
    assert made(selector={"matchExpressions": [expression]}).matches(POD) is holds


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"impersonation": {}}, "impersonation is not supported"),
        ({"steps": [{"exec": {}}]}, "steps.exec is not supported"),
        ({"next": {"statusTemplate": "{{ genCA }}"}}, "the function genCA is not supported"),
        ({"selector": {"matchExpressions": [{"key": ".a", "operator": "Near"}]}}, "operator Near is not supported"),
        ({"selector": {"matchExpressions": [{"cel": {"expression": "self +"}}]}}, "cel: "),
        ({"steps": [{"patch": {"template": "", "impersonation": {}}}]}, "steps.patch.impersonation is not supported"),
    ],
)
def test_unsupported_fields_are_errors(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(StageError, match=f"Stage s: .*{message}"):
        new_stage(stage(**spec))


def test_delays_and_jitter() -> None:
    chance = random.Random(1)
    assert made(delay={"durationMilliseconds": 2000}).delay_for(POD, NOW, chance) == 2
    assert made(delay={"durationMilliseconds": 2000, "jitterDurationMilliseconds": 500}).delay_for(POD, NOW, chance) == 0.5
    assert 2 <= made(delay={"durationMilliseconds": 2000, "jitterDurationMilliseconds": 5000}).delay_for(POD, NOW, chance) <= 5
    by_annotation = made(delay={"durationFrom": {"expressionFrom": '.metadata.annotations["a.b/c"] | tostring'}})
    assert by_annotation.delay_for(POD, NOW, chance) == 7
    until = made(delay={"durationFrom": {"jq": {"expression": ".until"}}})
    assert until.delay_for({**POD, "until": "2026-01-01T00:01:00Z"}, NOW, chance) == 60


def test_weights_select_the_stage() -> None:
    chance = random.Random(1)
    heavy, light = made(name="heavy", weight=100), made(name="light", weight=0)
    assert {found.name for _ in range(20) if (found := match_stage([heavy, light], POD, chance))} == {"heavy"}
    assert match_stage([made(selector={"matchLabels": {"a": "b"}})], POD, chance) is None


def test_actions() -> None:
    found = made(
        steps=[
            {"event": {"reason": "R"}},
            {"finalizers": {"add": [{"value": "f"}]}},
            {"patch": {"root": "status", "subresource": "status", "template": "phase: {{ .status.phase }}2"}},
            {"patch": {"type": "json", "root": "spec", "template": "- {op: add, path: /a, value: 1}"}},
            {"delete": True},
            {"patch": {"template": "never: 1"}},
        ]
    ).actions(POD, {})
    assert [action.kind for action in found] == ["event", "finalizers", "patch", "patch", "delete"]
    assert (found[2].data, found[2].type) == ({"status": {"phase": "Running2"}}, "application/strategic-merge-patch+json")
    assert found[3].data == [{"op": "add", "path": "/spec/a", "value": 1}]


# ---------------------------------------------------------------- in a cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    made.clock.hold()
    yield made
    made.stop()


def pod(name: str) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


STARTS = stage(
    "starts",
    selector={"matchExpressions": [{"key": ".status.phase", "operator": "In", "values": ["Pending"]}]},
    delay={"durationMilliseconds": 5000},
    next={
        "event": {"type": "Normal", "reason": "Woken", "message": "it wakes"},
        "statusTemplate": "phase: Running\nhostIP: {{ NodeIPWith .spec.nodeName | Quote }}\n"
        "podIP: {{ PodIPWith .spec.nodeName (or .spec.hostNetwork false) .metadata.uid .metadata.name .metadata.namespace }}",
    },
)
GOES = stage(
    "goes", selector={"matchExpressions": [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}]}, next={"delete": True}
)


def test_stages_replace_the_kubelets_for_pods(cluster: Cluster) -> None:
    assert cluster.stages.load(STARTS, GOES) == ["starts", "goes"]
    cluster.create(pod("p"))
    cluster.settle()
    assert cluster.get("pods", "p")["status"]["phase"] == "Pending"
    cluster.clock.advance(seconds=5)
    cluster.settle()
    status = cluster.get("pods", "p")["status"]
    assert (status["phase"], status["hostIP"], status["podIP"]) == ("Running", "172.18.0.2", "10.244.0.2")
    assert "containerStatuses" not in status
    assert "Woken" in [event["reason"] for event in cluster.list("events")]
    cluster.delete("pods", "p")
    cluster.settle()
    assert not cluster.list("pods")
    cluster.stages.clear()
    cluster.create(pod("q"))
    cluster.settle()
    assert cluster.get("pods", "q")["status"]["containerStatuses"][0]["ready"]


def definition(group: str, version: str, plural: str, kind: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


STAGE_DEFINITION = definition("kwok.x-k8s.io", "v1alpha1", "stages", "Stage")


def test_stages_of_other_kinds_and_stages_as_objects(cluster: Cluster) -> None:
    cluster.load(STAGE_DEFINITION)
    template = "apiVersion: v1\nkind: Secret\nmetadata: {name: of-{{ .metadata.name }}}\n"
    cluster.create(
        stage("copies", kind="ConfigMap", selector={"matchLabels": {"copy": "yes"}}, steps=[{"apply": {"template": template}}])
    )
    cluster.create(stage("wrong", steps=[{"exec": {}}]))
    cluster.create({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m", "labels": {"copy": "yes"}}})
    cluster.settle()
    assert cluster.get("secrets", "of-m")
    said = [event["message"] for event in cluster.list("events") if event["reason"] == "StageNotSupported"]
    assert said == ["Stage wrong: steps.exec is not supported"]


def test_a_stage_needs_a_name(cluster: Cluster) -> None:
    with pytest.raises(ManifestError, match="a Stage has no name"):
        cluster.stages.load({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "spec": {}})


def test_definitions_may_come_after_the_stages(cluster: Cluster) -> None:
    labels = {"patch": {"root": "metadata", "template": "labels: {staged: here}"}}
    absent = {"matchExpressions": [{"key": ".metadata.labels.staged", "operator": "DoesNotExist"}]}
    widgets = stage("widgets", kind="Widget", selector=absent, steps=[labels])
    widgets["spec"]["resourceRef"]["apiGroup"] = "example.com/v1"
    cluster.stages.load(widgets)
    cluster.settle()
    cluster.load(definition("example.com", "v1", "widgets", "Widget"), STAGE_DEFINITION)
    cluster.create(stage("maps", kind="ConfigMap", selector=absent, steps=[labels]))
    cluster.create({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}})
    cluster.create({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}})
    cluster.settle()
    assert "staged" in cluster.get("widgets", "w")["metadata"]["labels"]
    assert "staged" in cluster.get("configmaps", "m")["metadata"]["labels"]

from __future__ import annotations

import pytest

from fakekube.apimachinery import data

FACTS = data.minor()


def test_resources_have_the_order_of_discovery() -> None:
    names = [row.name for row in FACTS.resources if (row.group, row.version) == ("apps", "v1")]
    assert names == [
        "controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale",
        "deployments/status", "replicasets", "replicasets/scale", "replicasets/status", "statefulsets",
        "statefulsets/scale", "statefulsets/status",
    ]  # fmt: skip


def test_resource_row_has_the_fields_of_discovery() -> None:
    [row] = [row for row in FACTS.resources if row.path == "/apis/apps/v1/deployments"]
    assert (row.kind, row.kind_group, row.kind_version, row.foreign) == ("Deployment", "apps", "v1", False)
    assert (row.singular, row.short_names, row.categories) == ("deployment", ("deploy",), ("all",))
    assert row.namespaced
    assert "deletecollection" in row.verbs
    assert row.storage_version_hash


def test_subresource_can_have_a_kind_of_another_group() -> None:
    [scale] = [row for row in FACTS.resources if row.path == "/apis/apps/v1/deployments/scale"]
    assert (scale.kind_group, scale.kind_version, scale.kind, scale.foreign) == ("autoscaling", "v1", "Scale", True)


def test_group_has_its_preferred_version() -> None:
    [autoscaling] = [group for group in FACTS.groups if group.name == "autoscaling"]
    assert (autoscaling.versions, autoscaling.preferred) == (("v2", "v1"), "v2")


def test_kind_has_type_field_labels_and_defaults() -> None:
    pod = FACTS.kind("", "v1", "Pod")
    assert pod is not None
    assert pod.type == "k8s.io/api/core/v1.Pod"
    assert "spec.nodeName" in pod.field_labels
    assert pod.defaults == {".spec.enableServiceLinks": True}
    assert FACTS.kind("", "v1", "Unheard") is None
    old = FACTS.kind("apps", "v1beta1", "Deployment")
    assert old is not None
    assert old.type == ""
    assert "DeleteOptions" in FACTS.kinds("apps", "v1")


def test_every_served_kind_has_a_type() -> None:
    for row in FACTS.resources:
        kind = FACTS.kind(row.kind_group, row.kind_version, row.kind)
        assert kind is not None, row
        assert FACTS.type(kind.type)["fields"], row


def test_every_type_name_in_a_row_resolves() -> None:
    scalars = {"string", "bool", "int32", "int64", "float64", "bytes"}

    def named(type_name: str) -> list[str]:
        if type_name.startswith("map["):
            key, _, value = type_name[4:].partition("]")
            return [*named(key), *named(value)]
        return named(type_name[2:]) if type_name.startswith("[]") else [type_name]

    for go_name in FACTS.type_names():
        row = FACTS.type(go_name)
        fields = [field["t"].removeprefix("*") for field in row.get("fields", {}).values()]
        for inner in [name for type_name in [*fields, row.get("alias", "string")] for name in named(type_name)]:
            assert inner in scalars or FACTS.type(inner) is not None


def test_printer_columns_and_bootstrap_objects() -> None:
    assert [column["name"] for column in FACTS.columns("/api/v1/configmaps")] == ["Name", "Data", "Age"]
    assert FACTS.columns("/api/v1/unheard") == ()
    names = {obj["metadata"]["name"] for obj in FACTS.bootstrap["/api/v1/namespaces"]}
    assert names == {"default", "kube-system", "kube-public", "kube-node-lease"}
    for objects in FACTS.bootstrap.values():
        for obj in objects:
            assert not obj["metadata"].keys() & {"uid", "resourceVersion", "creationTimestamp"}


@pytest.mark.parametrize(
    ("place", "name", "uses", "expected"),
    [
        ("query", "watch", ("get", "v1/pods"), "XNNPZGbK"),
        ("query", "fieldManager", ("patch", "v1/pods"), "7c6nTn1T"),
        ("query", "fieldManager", ("put", "v1/pods"), "Qy4HdaTW"),
        ("query", "container", ("get", "pods/exec"), "i5dOmRiM"),
        ("path", "path", ("parameters", "pods/proxy"), "z6Ciiujn"),
        ("query", "path", ("parameters", "services/proxy"), "QCf0eosM"),
        ("query", "unheard", ("get", "v1/pods"), ""),
    ],
)
def test_parameter_hashes(place: str, name: str, uses: tuple[str, str], expected: str) -> None:
    assert FACTS.parameter_hash(place, name, *uses) == expected


def test_unknown_minor_raises_lookup_error() -> None:
    with pytest.raises(LookupError, match=r"Kubernetes 1\.2 is not known; known: .*1\.36"):
        data.minor("1.2")


def test_unknown_type_raises_key_error() -> None:
    with pytest.raises(KeyError):
        FACTS.type("k8s.io/api/unheard/v1.Of")
    assert FACTS.row("string") == {}

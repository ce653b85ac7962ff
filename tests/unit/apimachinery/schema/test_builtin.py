from __future__ import annotations

import pytest

from fakekube.apimachinery import data
from fakekube.apimachinery.schema.builtin import Builtins, builtins, kind_type, type_of
from fakekube.apimachinery.schema.model import ListType, MapType, Shape, Type


def test_field_attributes_from_go_and_openapi() -> None:
    containers = type_of("k8s.io/api/core/v1.PodSpec").fields["containers"]
    assert containers.required
    assert not containers.omit_empty
    assert (containers.number, containers.wire) == (2, "bytes")
    assert (containers.patch_strategy, containers.patch_merge_key) == (("merge",), "name")
    assert containers.type.go == "[]v1.Container"
    assert (containers.type.list_type, containers.type.list_map_keys) == (ListType.MAP, ("name",))


def test_inlined_structs_are_flattened() -> None:
    host_path = type_of("k8s.io/api/core/v1.Volume").fields["hostPath"]
    assert (host_path.inlined, host_path.embedded) == ((2,), ("VolumeSource",))
    assert list(type_of("k8s.io/api/core/v1.Pod").fields) == ["kind", "apiVersion", "metadata", "spec", "status"]


def test_field_enum_and_default_do_not_change_the_shared_type() -> None:
    protocol = type_of("k8s.io/api/core/v1.ContainerPort").fields["protocol"]
    assert protocol.type.enum == ("SCTP", "TCP", "UDP")
    assert protocol.default == "TCP"
    assert type_of("k8s.io/api/core/v1.Protocol").enum == ()


def test_types_are_cached_by_name() -> None:
    assert type_of("k8s.io/api/core/v1.Pod") is kind_type("", "v1", "Pod")
    assert type_of("[]string") is type_of("[]string")


@pytest.mark.parametrize(
    ("name", "shape", "go"),
    [
        ("k8s.io/api/core/v1.ResourceList", Shape.MAP, "v1.ResourceList"),
        ("k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime", Shape.MICRO_TIME, "v1.MicroTime"),
        ("bytes", Shape.BYTES, "[]uint8"),
        ("map[string]bytes", Shape.MAP, "map[string][]uint8"),
        ("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON", Shape.ANY, "v1.JSON"),
        (
            "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool",
            Shape.UNION,
            "v1.JSONSchemaPropsOrBool",
        ),
    ],
)
def test_shape_and_go_name_of_types(name: str, shape: Shape, go: str) -> None:
    type_ = type_of(name)
    assert (type_.shape, type_.go) == (shape, go)


def test_atomic_structs_and_maps() -> None:
    assert type_of("k8s.io/apimachinery/pkg/apis/meta/v1.LabelSelector").map_type is MapType.ATOMIC
    assert type_of("k8s.io/api/core/v1.PodSpec").fields["nodeSelector"].type.map_type is MapType.ATOMIC


def test_unserved_kinds_have_no_type() -> None:
    assert kind_type("apps", "v1beta1", "Deployment") is None
    assert kind_type("example.com", "v1", "Widget") is None
    with pytest.raises(KeyError):
        type_of("k8s.io/api/apps/v1beta1.Deployment")


def test_all_types_can_be_traversed() -> None:
    types = builtins()
    seen: set[int] = set()

    def walk(type_: Type) -> None:
        if id(type_) in seen:
            return
        seen.add(id(type_))
        for inner in (type_.items, type_.alternative, *(field.type for field in type_.fields.values())):
            if inner is not None:
                walk(inner)

    for group_version in types.facts.group_versions:
        group, _, version = group_version.rpartition("/")
        for kind in types.facts.kinds(group, version):
            type_ = types.kind_type(group, version, kind)
            if type_ is not None:
                walk(type_)
    assert len(seen) > 1000


def test_unused_types_are_not_loaded() -> None:
    class Watched(data.Facts):
        files: list[str] = []  # noqa: RUF012
        types: list[str] = []  # noqa: RUF012

        def _read(self, name: str) -> object:
            self.files.append(name)
            return super()._read(name)

        def type(self, go_name: str) -> data.Row:
            row = super().type(go_name)
            self.types.append(go_name)
            return row

    lease = Builtins(Watched(data.minor(data.NEWEST).folder)).kind_type("coordination.k8s.io", "v1", "Lease")
    assert lease is not None
    assert lease.fields["spec"].type.fields
    assert Watched.files == ["kinds.json"]
    assert {name.rpartition(".")[0] for name in Watched.types} == {
        "k8s.io/api/coordination/v1",
        "k8s.io/apimachinery/pkg/apis/meta/v1",
    }

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.patch.apply.atoms import Typing
from fakekube.apimachinery.patch.apply.fieldpath import LEAF, FieldSet
from fakekube.apimachinery.patch.apply.schema import atom_of, custom_atom_of
from fakekube.apimachinery.schema import builtin
from fakekube.apimachinery.schema.model import Field, ListType, MapType, Shape, Type


def fields(group: str, version: str, kind: str, value: Any) -> FieldSet:
    type = builtin.kind_type(group, version, kind)
    assert type is not None
    atom = atom_of(type)
    typing = Typing()
    atom.check(value, None, typing)
    typing.raise_if_any()
    return FieldSet(atom.field_set(value) or LEAF)


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("value", "tree"),
    [
        (
            pod(containers=[{"name": "c", "image": "i"}]),
            {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}},
        ),
        (
            pod(containers=[{"name": "c", "ports": [{"containerPort": 80}]}]),
            {
                "f:containers": {
                    'k:{"name":"c"}': {
                        ".": {},
                        "f:name": {},
                        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                    }
                }
            },
        ),
        (pod(containers=[{"image": "i"}]), {"f:containers": {'k:{"name":""}': {".": {}, "f:image": {}}}}),
        (pod(imagePullSecrets=[{}]), {"f:imagePullSecrets": {'k:{"name":""}': {}}}),
        (pod(nodeSelector={"a": "b"}), {"f:nodeSelector": {}}),
        (pod(tolerations=[{"key": "a"}]), {"f:tolerations": {}}),
        (
            pod(containers=[{"name": "c", "resources": {"limits": {"cpu": 1}}}]),
            {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}}},
        ),
        (
            pod(containers=[{"name": "c", "livenessProbe": {"httpGet": {"port": "http"}}}]),
            {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:livenessProbe": {"f:httpGet": {"f:port": {}}}}}},
        ),
        (
            pod(volumes=[{"name": "v", "emptyDir": {}}]),
            {"f:volumes": {'k:{"name":"v"}': {".": {}, "f:emptyDir": {}, "f:name": {}}}},
        ),
    ],
)
def test_field_sets_of_pods(value: Any, tree: Any) -> None:
    assert fields("", "v1", "Pod", value) == FieldSet({"f:spec": FieldSet(tree).tree})


def test_field_set_of_built_in_metadata() -> None:
    metadata = {"finalizers": ["a/b"], "labels": {"l": "1"}, "ownerReferences": [{"uid": "u", "name": "n"}]}
    assert fields("", "v1", "ConfigMap", {"metadata": metadata}).tree == {
        "f:metadata": {"f:finalizers": {'v:"a/b"': {}}, "f:labels": {"f:l": {}}, "f:ownerReferences": {'k:{"uid":"u"}': {}}}
    }


def test_map_type_of_a_field_overrides_that_of_its_type() -> None:
    claim = {"spec": {"claimRef": {"name": "c"}}}
    assert fields("", "v1", "PersistentVolume", claim).tree == {"f:spec": {"f:claimRef": {"f:name": {}}}}
    event = {"involvedObject": {"name": "c"}}
    assert fields("", "v1", "Event", event).tree == {"f:involvedObject": {}}


def test_raw_extensions_are_atomic_and_json_is_granular() -> None:
    revision = {"data": {"spec": {"a": 1}}, "revision": 1}
    assert fields("apps", "v1", "ControllerRevision", revision).tree == {"f:data": {}, "f:revision": {}}
    schema = {
        "openAPIV3Schema": {"default": {"a": {"b": 1}}, "items": {"type": "string"}, "properties": {"x": {"type": "object"}}}
    }
    definition = {"spec": {"versions": [{"schema": schema}]}}
    assert fields("apiextensions.k8s.io", "v1", "CustomResourceDefinition", definition).tree == {"f:spec": {"f:versions": {}}}


# ---------------------------------------------------------------- custom resources


def schema_struct(**properties: Type) -> Type:
    made = {name: Field(name, type) for name, type in properties.items()}
    return Type(Shape.STRUCT, resolve=lambda: made)


STRING = Type(Shape.STRING)


def custom(spec: Type, value: Any) -> Any:
    atom = custom_atom_of(schema_struct(spec=spec))
    typing = Typing()
    atom.check({"spec": value}, None, typing)
    typing.raise_if_any()
    return (atom.field_set({"spec": value}) or {}).get("f:spec")


def test_custom_resource_metadata_is_type_checked() -> None:
    atom = custom_atom_of(schema_struct(spec=STRING))
    typing = Typing()
    atom.check({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "odd": 1}, "spec": "s"}, None, typing)
    assert typing.problems == [".metadata.odd: field not declared in schema"]


def test_schema_extensions_determine_field_sets() -> None:
    key = Type(Shape.STRING, default="TCP")
    ports = Type(
        Shape.LIST,
        items=schema_struct(port=Type(Shape.INTEGER), protocol=key),
        list_type=ListType.MAP,
        list_map_keys=("port", "protocol"),
    )
    spec = schema_struct(
        ports=ports,
        set=Type(Shape.LIST, items=STRING, list_type=ListType.SET),
        atoms=Type(Shape.LIST, items=STRING),
        atomic=Type(Shape.MAP, items=STRING, map_type=MapType.ATOMIC),
        when=Type(Shape.STRING, format="date-time"),
        either=Type(Shape.INT_OR_STRING),
        free=Type(Shape.STRUCT, preserve_unknown_fields=True, takes_unknown_fields=True),
        any=Type(Shape.ANY),
        empty=Type(Shape.STRUCT),
        embedded=Type(Shape.STRUCT, embedded_resource=True, preserve_unknown_fields=True, takes_unknown_fields=True),
    )
    value = {
        "ports": [{"port": 80}],
        "set": ["a"],
        "atoms": ["a"],
        "atomic": {"a": "1"},
        "when": 5,
        "either": 5,
        "free": {"x": {"y": 1}},
        "any": {"x": [1]},
        "empty": {"x": 1},
        "embedded": {"metadata": {"finalizers": ["f"]}, "spec": {"a": 1}},
    }
    assert custom(spec, value) == {
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
        "f:set": {'v:"a"': {}},
        "f:atoms": {},
        "f:atomic": {},
        "f:when": {},
        "f:either": {},
        "f:free": {"f:x": {".": {}, "f:y": {}}},
        "f:any": {"f:x": {}},
        "f:empty": {"f:x": {}},
        "f:embedded": {"f:metadata": {"f:finalizers": {'v:"f"': {}}}, "f:spec": {".": {}, "f:a": {}}},
    }


def test_atoms_of_built_in_types_are_cached() -> None:
    type = builtin.kind_type("", "v1", "Pod")
    assert type is not None
    assert atom_of(type) is atom_of(type)

"""The generator of fakekube/apimachinery/data, on the facts of a very small server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fakekube.apimachinery import data
from fakekube.apimachinery.data import Facts
from fakekube.apimachinery.schema import defaults
from fakekube.apimachinery.schema.builtin import Builtins
from tests.reference import generate
from tests.reference.generate import Collected

FACTS = Path(__file__).parents[4] / "fixtures" / "facts"
DATA = Path(data.__file__).parent

META = "k8s.io/apimachinery/pkg/apis/meta/v1."
TYPES: dict[str, Any] = {
    META + "TypeMeta": {"fields": [{"json": "kind", "type": "string", "omitempty": True}]},
    META + "ObjectMeta": {"fields": [{"json": "name", "type": "string", "omitempty": True}]},
    META + "ListMeta": {"fields": []},
    "k8s.io/api/x/v1.Color": {"alias": "string"},
    "k8s.io/api/x/v1.Unused": {"alias": "string"},
    "k8s.io/api/x/v1.Part": {
        "fields": [
            {"json": "size", "type": "int32", "pointer": True, "protobuf": "varint,3,opt"},
            {"json": "color", "type": "k8s.io/api/x/v1.Color", "omitempty": True},
        ]
    },
    "k8s.io/api/x/v1.Thing": {
        "fields": [
            {"json": "", "type": META + "TypeMeta", "inline": True},
            {"json": "metadata", "type": META + "ObjectMeta", "omitempty": True, "protobuf": "bytes,1,opt"},
            {"json": "parts", "type": "[]k8s.io/api/x/v1.Part", "patchStrategy": "merge", "patchMergeKey": "size"},
            {"json": "mode", "type": "string", "omitempty": True},
        ]
    },
    "k8s.io/api/x/v1.Other": {"fields": [{"json": "part", "type": "k8s.io/api/x/v1.Part"}]},
    "k8s.io/api/x/v0.Thing": {"fields": []},
}
KINDS = {
    "x.io/v1, Thing": {
        "type": "k8s.io/api/x/v1.Thing",
        "defaults": {".parts[].color": "red", ".mode": "loud"},
        "fieldLabels": ["metadata.name"],
    },
    "x.io/v1, Other": {"type": "k8s.io/api/x/v1.Other", "defaults": {".part.color": "red", ".part.size": 1}},
    "x.io/v0, Thing": {"type": "k8s.io/api/x/v0.Thing"},
}
SCHEMAS = {
    "io.k8s.api.x.v1.Part": {
        "type": "object",
        "required": ["size"],
        "properties": {
            "color": {"type": "string", "enum": ["red"], "default": "red"},
            "size": {"type": "integer", "format": "int32"},
        },
    },
    "io.k8s.unnamed.Patch": {"type": "object"},
}
RESOURCE: dict[str, Any] = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get"]}
DISCOVERY = {
    "legacy": {
        "/api": {"versions": []},
        "/apis": {
            "groups": [
                {
                    "name": "x.io",
                    "versions": [{"groupVersion": "x.io/v1", "version": "v1"}],
                    "preferredVersion": {"groupVersion": "x.io/v1", "version": "v1"},
                }
            ]
        },
        "/apis/x.io/v1": {
            "resources": [RESOURCE, {**RESOURCE, "name": "things/scale", "group": "y.io", "version": "v2", "kind": "Scale"}]
        },
    }
}
OBJECT = {
    "metadata": {
        "name": "a", "uid": "u", "resourceVersion": "1", "creationTimestamp": "t",
        "managedFields": [{"manager": "m", "time": "t"}],
    }
}  # fmt: skip


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    folder = tmp_path / "v9.9"
    (folder / "openapi").mkdir(parents=True)
    files = {
        "types.json": {"types": TYPES, "kinds": KINDS},
        "discovery.json": DISCOVERY,
        "columns.json": {"/apis/x.io/v1/things": [{"name": "Name"}]},
        "bootstrap.json": {"/apis/x.io/v1/things": [OBJECT]},
        "features.json": {"Some": ["ALPHA", False], "More": ["", True]},
        "openapi/x.json": {"components": {"schemas": SCHEMAS}},
        "parameters.json": {},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    (folder / "features.txt").write_text("More: 22a 27b+ 34g+!\n")
    generate.generate(Collected(folder), tmp_path / "out")
    return Facts(tmp_path / "out")


def test_unreachable_types_are_left_out(facts: Facts) -> None:
    assert "k8s.io/api/x/v1.Thing" in facts.type_names()
    assert not {"k8s.io/api/x/v1.Unused", "k8s.io/api/x/v0.Thing"} & set(facts.type_names())
    unserved = facts.kind("x.io", "v0", "Thing")
    assert unserved is not None
    assert unserved.type == ""


def test_field_combines_go_type_and_openapi_facts(facts: Facts) -> None:
    thing = Builtins(facts).kind_type("x.io", "v1", "Thing")
    assert thing is not None
    parts = thing.fields["parts"]
    assert (parts.patch_strategy, parts.patch_merge_key, parts.omit_empty) == (("merge",), "size", False)
    assert parts.type.items is not None
    size, color = parts.type.items.fields.values()
    assert (size.pointer, size.required, size.number, size.wire) == (True, True, 3, "varint")
    assert color.type.enum == ("red",)


def test_defaults_common_to_all_uses_belong_to_the_field(facts: Facts) -> None:
    fields = facts.type("k8s.io/api/x/v1.Part")["fields"]
    assert fields["color"]["d"] == "red"
    assert "d" not in fields["size"]  # the Parts of a Thing have none
    other = facts.kind("x.io", "v1", "Other")
    assert other is not None
    assert other.defaults == {".part.size": 1}
    assert facts.type("k8s.io/api/x/v1.Thing")["fields"]["mode"]["d"] == "loud"


def test_schemas_without_a_type_are_kept(facts: Facts) -> None:
    assert facts.schemas == {"io.k8s.unnamed.Patch": {"type": "object"}}


def test_generated_resources_groups_columns_and_bootstrap_objects(facts: Facts) -> None:
    things, scale = facts.resources
    assert (things.path, things.namespaced, things.foreign) == ("/apis/x.io/v1/things", True, False)
    assert (scale.kind_group, scale.kind_version, scale.foreign) == ("y.io", "v2", True)
    assert [(group.name, group.preferred) for group in facts.groups] == [("x.io", "v1")]
    assert facts.columns("/apis/x.io/v1/things") == [{"name": "Name"}]
    [made] = facts.bootstrap["/apis/x.io/v1/things"]
    assert made == {"metadata": {"name": "a", "managedFields": [{"manager": "m"}]}}


def test_feature_gates_of_the_minor(facts: Facts) -> None:
    assert facts.features == {"Some": "0a", "More": "22a 27b+ 34g+!"}


def test_generated_json_has_one_entry_per_line(facts: Facts) -> None:
    text = (facts.folder / "types.json").read_text()
    assert len(text.splitlines()) == len(json.loads(text)) + 2


def test_usage_is_printed_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main([]) == 2
    assert "python -m tests.reference.generate" in capsys.readouterr().err


def test_default_below_a_list_of_one_kind(tmp_path: Path) -> None:
    folder = tmp_path / "v9.9"
    (folder / "openapi").mkdir(parents=True)
    kinds = {
        "x.io/v1, Thing": {"type": "k8s.io/api/x/v1.Thing", "defaults": {".parts[].size": 1}},
        "x.io/v1, Other": {"type": "k8s.io/api/x/v1.Other", "defaults": {".part.color": "red"}},
    }
    files = {
        "types.json": {"types": TYPES, "kinds": kinds},
        "discovery.json": DISCOVERY,
        "columns.json": {},
        "bootstrap.json": {},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    generate.generate(Collected(folder), tmp_path / "out")
    thing = {"parts": [{"size": None}, {"size": 2}, {}]}
    defaults.apply(Builtins(Facts(tmp_path / "out")), "x.io", "v1", "Thing", thing)
    assert thing == {"parts": [{"size": 1}, {"size": 2}, {"size": 1}]}


def test_generated_data_equal_the_committed_files(tmp_path: Path) -> None:
    generate.generate_all(FACTS, tmp_path)
    assert _contents(tmp_path) == {name: data for name, data in _contents(DATA).items() if name.startswith("v1_")}


def test_a_minor_has_what_differs_from_the_newest(tmp_path: Path) -> None:
    base, other = tmp_path / "base", tmp_path / "other"
    for folder, kinds, rows in ((base, {"a": 1, "b": 2, "d": 4}, [1.5, 2.5]), (other, {"a": 1, "b": 3, "c": 4}, [2.5, 3.5])):
        generate.write_lines(folder / "kinds.json", kinds)
        generate.write_lines(folder / "schemas.json", {"same": 1})
        generate.write_rows(folder / "rows.json", rows)
    generate.keep_differences(other, base)
    assert {name: json.loads(data) for name, data in _contents(other).items()} == {
        "kinds.json": {"b": 3, "c": 4, "d": None},
        "rows.json": [1, 3.5],
    }
    facts = Facts(other, base)
    assert [facts._read(name) for name in ("kinds.json", "schemas.json", "rows.json")] == [
        {"a": 1, "b": 3, "c": 4},
        {"same": 1},
        [2.5, 3.5],
    ]


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

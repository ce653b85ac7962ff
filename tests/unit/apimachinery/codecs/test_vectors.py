"""The published vectors of every kind: what k8s.io/api keeps in `testdata/HEAD`, in all its formats.

    FAKEKUBE_VECTORS=…/k8s.io/api/testdata/HEAD pytest tests/unit/apimachinery/codecs/test_vectors.py

The files are `group.version.Kind.{json,pb,yaml}`. Each is read and written; every way from one to another, through CBOR
too, must give the published bytes. Kinds that no server of the minor serves are passed over. Without the folder there is
nothing to test; the folders of older minors can be given as well: of what the minor has dropped since, only the reading
of what is left is compared.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fakekube.apimachinery.codecs import cbor, json, protobuf, yaml
from fakekube.apimachinery.schema import decode
from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.model import Type

FOLDER = os.environ.get("FAKEKUBE_VECTORS", "")

pytestmark = pytest.mark.skipif(not FOLDER, reason="FAKEKUBE_VECTORS names no folder of vectors")


def vectors() -> list[str]:
    """The names of those whose kind is known."""
    names = sorted(path.name.removesuffix(".pb") for path in Path(FOLDER).glob("*.pb")) if FOLDER else []
    return [name for name in names if ".after_roundtrip" not in name and kind_of(name)[2] is not None]


def kind_of(name: str) -> tuple[str, str, Type | None]:
    """apiVersion, kind and type of a vector."""
    *group, version, kind = name.split(".")
    found = "" if group == ["core"] else ".".join(group)
    return f"{found}/{version}" if found else version, kind, builtins().kind_type(found, version, kind)


def published(name: str, suffix: str) -> bytes:
    """The bytes of a file: as an older minor's would be after a round trip through this one, if that differs."""
    folder = Path(FOLDER)
    later = folder / f"{name}.after_roundtrip.{suffix}"
    return (later if later.exists() else folder / f"{name}.{suffix}").read_bytes()


@pytest.mark.parametrize("name", vectors())
def test_vectors_convert_between_all_formats(name: str) -> None:
    api_version, kind, type_ = kind_of(name)
    assert type_ is not None
    said = (api_version, kind) if "kind" in type_.fields else ("", "")
    head = {"kind": kind, "apiVersion": api_version} if all(said) else {}

    def typed(value: Any) -> dict[str, Any]:
        obj = decode.decode(type_, value, None)
        return head | {key: member for key, member in obj.items() if key not in head}

    folder = Path(FOLDER)
    read = {
        "json": typed(json.loads((folder / f"{name}.json").read_bytes())[0]),
        "yaml": typed(yaml.loads((folder / f"{name}.yaml").read_bytes())[0]),
        "pb": typed(protobuf.loads((folder / f"{name}.pb").read_bytes(), api_version, kind)),
    }
    read["cbor"] = typed(cbor.loads(cbor.dumps(read["json"], type_)))
    for source, obj in read.items():
        content = {key: value for key, value in obj.items() if key not in head}
        assert json.dumps_pretty(obj) == published(name, "json").rstrip(b"\n"), source
        assert yaml.dumps(obj) == published(name, "yaml"), source
        assert protobuf.document(*said, protobuf.encode_item(type_, content)) == published(name, "pb"), source

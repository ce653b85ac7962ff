"""OpenAPI documents as Protobuf."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from fakekube.apiserver.http.openapi import gnostic


def _fields(content: bytes) -> list[tuple[int, Any]]:
    """Numbers with their contents, however deep they go is not told."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(content):
        tag = varint()
        if tag & 7 == 2:
            length = varint()
            found.append((tag >> 3, content[at : at + length]))
            at += length
        elif tag & 7 == 0:
            found.append((tag >> 3, varint()))
        else:
            assert tag & 7 == 1
            found.append((tag >> 3, content[at : at + 8]))
            at += 8
    assert at == len(content)
    return found


def _v3(**schemas: Any) -> list[tuple[int, Any]]:
    document = {"openapi": "3.0.0", "info": {"title": "K", "version": "v"}, "paths": {}, "components": {"schemas": schemas}}
    fields = dict(_fields(gnostic.v3(orjson.dumps(document))))
    assert fields[1] == b"3.0.0"
    assert _fields(fields[2]) == [(1, b"K"), (6, b"v")]
    ((_, named),) = _fields(dict(_fields(fields[5]))[1])
    (name, (_, either)) = _fields(named)
    assert name == (1, next(iter(schemas)).encode())
    return _fields(either)


def test_schema_message() -> None:
    ((number, schema),) = _v3(A={"type": "object", "description": "é", "required": ["b", "a"], "x-thing": {"k": [1]}})
    assert number == 1
    found = _fields(schema)
    assert [number for number, _ in found] == sorted(number for number, _ in found)
    assert "é".encode() in dict(found).values()
    assert [content for _, content in found if content in (b"a", b"b")] == [b"b", b"a"]


def test_reference_message() -> None:
    ((number, reference),) = _v3(A={"$ref": "#/components/schemas/B"})
    assert (number, _fields(reference)) == (2, [(1, b"#/components/schemas/B")])


def test_extensions_are_encoded_as_yaml() -> None:
    ((_, schema),) = _v3(A={"x-thing": {"k": [1]}})
    ((_, named),) = _fields(schema)
    assert _fields(named)[0] == (1, b"x-thing")
    assert dict(_fields(dict(_fields(named))[2]))[2] == b"k:\n- 1\n"


@pytest.mark.parametrize("version", [2, 3])
def test_complete_documents_are_well_formed(call, version: int) -> None:
    """Every message can be read to its end, and names are found again."""
    path = "/openapi/v2" if version == 2 else "/openapi/v3/apis/apps/v1"
    document = call("GET", path).body
    content = (gnostic.v2 if version == 2 else gnostic.v3)(document)
    assert _fields(content)
    for name in json.loads(document)["paths"]:
        assert name.encode() in content
    assert b"x-kubernetes-group-version-kind" in content

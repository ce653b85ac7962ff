"""The kinds of a minor with their schemas, as its OpenAPI documents in `fixtures/facts` describe them."""

from __future__ import annotations

import functools
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.reference.facts import archive_of

Schema = dict[str, Any]
Place = tuple[Any, Any, Schema, tuple[Any, ...]]
"""A container, a key of it (that may be absent), the schema of what belongs there, and the path of the container."""

#: Kinds that are no stored objects: they only answer a POST.
_REVIEWS = ("Review", "Binding", "Eviction", "TokenRequest")
#: Of metadata, what a server or a story sets.
_OWN_METADATA = frozenset(
    ("managedFields", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid", "name", "namespace", "resourceVersion", "selfLink", "generateName", "generation")
)  # fmt: skip
NEW = "<new>"
"""Stands for a key of a map that is not there yet."""


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """A stored kind in one version."""

    name: str
    group: str
    version: str
    collection: str
    """A path with `{namespace}` in it, if the kind has one."""
    schema: str
    subresources: tuple[str, ...]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}".lstrip("/")

    @property
    def namespaced(self) -> bool:
        return "{namespace}" in self.collection


@dataclass(frozen=True, slots=True)
class Api:
    """What a server of one minor serves."""

    schemas: dict[str, Schema]
    kinds: tuple[Kind, ...]

    def of(self, kind: Kind) -> Schema:
        return self.schemas[kind.schema]

    def resolved(self, schema: Schema) -> Schema:
        """The schema that a reference means."""
        while True:
            if "$ref" in schema:
                schema = self.schemas[schema["$ref"].rpartition("/")[2]]
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            else:
                return schema

    def places(self, value: Any, schema: Schema, path: tuple[Any, ...] = ()) -> Iterator[Place]:
        """Yields every place of a value that is set, or that its schema knows."""
        schema = self.resolved(schema)
        if isinstance(value, dict) and "properties" in schema:
            for key, inner in sorted(schema["properties"].items()):
                if (not path and key in ("apiVersion", "kind")) or (path[-1:] == ("metadata",) and key in _OWN_METADATA):
                    continue
                yield value, key, inner, path
                if key in value:
                    yield from self.places(value[key], inner, (*path, key))
        elif isinstance(value, dict) and "additionalProperties" in schema:
            inner = schema["additionalProperties"]
            for key in sorted(value):
                yield value, key, inner, path
                yield from self.places(value[key], inner, (*path, key))
            yield value, NEW, inner, path
        elif isinstance(value, list):
            inner = schema.get("items", {})
            for index, item in enumerate(value):
                yield value, index, inner, path
                yield from self.places(item, inner, (*path, index))
            yield value, len(value), inner, path


@functools.cache
def api_of(minor: str, everything: bool = False) -> Api:
    """The API of a fresh server of a minor, or of one with all gates and APIs."""
    schemas: dict[str, Schema] = {}
    paths: dict[str, Any] = {}
    folder = "all/openapi/api" if everything else "openapi/api"
    with tarfile.open(archive_of(minor)) as archive:
        for member in archive:
            if member.name.startswith(folder) and (file := archive.extractfile(member)):
                document = json.load(file)
                schemas |= document.get("components", {}).get("schemas", {})
                paths |= document.get("paths", {})
    return Api(schemas, tuple(sorted(_kinds(schemas, paths))))


def _kinds(schemas: dict[str, Schema], paths: dict[str, Any]) -> Iterator[Kind]:
    names = {
        (one["group"], one["version"], one["kind"]): name
        for name, schema in schemas.items()
        if "properties" in schema
        for one in schema.get("x-kubernetes-group-version-kind", ())
    }
    for path, methods in paths.items():
        kind = methods.get("post", {}).get("x-kubernetes-group-version-kind")
        if (
            not kind
            or "{name}" in path
            or (kind["kind"].endswith(_REVIEWS) and not kind["kind"].endswith(("RoleBinding", "PolicyBinding")))
        ):
            continue
        own = f"{path}/{{name}}/"
        subresources = tuple(sorted(one.removeprefix(own) for one in paths if one.startswith(own)))
        schema = names[kind["group"], kind["version"], kind["kind"]]
        yield Kind(kind["kind"], kind["group"], kind["version"], path, schema, subresources)

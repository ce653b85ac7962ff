"""The schemas of built-in types in the form of OpenAPI v3.

Specified by: k8s.io/kube-openapi/pkg/generators and pkg/openapiconv, pkg/handler/default_pruning.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, Final

from fakekube.apimachinery import data
from fakekube.apimachinery.data.shapes import schema_name, type_schema
from fakekube.apiserver.http.openapi.descriptions import described

Schema = dict[str, Any]

REFERENCE_PREFIX: Final = "#/components/schemas/"


#: The schemas of types that are not among the facts.
_WITHOUT_TYPE: Final[Mapping[str, Schema]] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": {"type": "object"},
    "io.k8s.apimachinery.pkg.version.Info": {
        "type": "object",
        "required": [
            "major",
            "minor",
            "gitVersion",
            "gitCommit",
            "gitTreeState",
            "buildDate",
            "goVersion",
            "compiler",
            "platform",
        ],
        "properties": {
            "buildDate": {"type": "string", "default": ""},
            "compiler": {"type": "string", "default": ""},
            "emulationMajor": {"type": "string"},
            "emulationMinor": {"type": "string"},
            "gitCommit": {"type": "string", "default": ""},
            "gitTreeState": {"type": "string", "default": ""},
            "gitVersion": {"type": "string", "default": ""},
            "goVersion": {"type": "string", "default": ""},
            "major": {"type": "string", "default": ""},
            "minCompatibilityMajor": {"type": "string"},
            "minCompatibilityMinor": {"type": "string"},
            "minor": {"type": "string", "default": ""},
            "platform": {"type": "string", "default": ""},
        },
    },
}


class Definitions:
    """The schemas of all built-in types of one minor, by their OpenAPI names. They must not be changed."""

    def __init__(self, facts: data.Facts, version: str) -> None:
        self._facts = facts
        self._version = version
        self._made: dict[str, Schema] = {}

    def schema(self, name: str) -> Schema:
        """Returns the schema of a name. Raises KeyError."""
        schema = self._made.get(name)
        if schema is None:
            plain = _WITHOUT_TYPE.get(name) or type_schema(self._go_names[name], self._row)
            schema = self._made[name] = described(self._version, name, plain)
        return schema

    def closure(self, names: Iterable[str]) -> list[str]:
        """Returns the names of these schemas and of all that they refer to, sorted."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += references(self.schema(name))
        return sorted(found)

    @cached_property
    def _go_names(self) -> Mapping[str, str]:
        return {schema_name(go_name): go_name for go_name in self._facts.type_names()}

    def _row(self, go_name: str) -> Mapping[str, Any]:
        try:
            return self._facts.type(go_name)
        except KeyError:
            return {}


@cache
def definitions(version: str) -> Definitions:
    """Returns the definitions of a minor, built once per process."""
    return Definitions(data.minor(version), version)


def references(schema: Any) -> Iterator[str]:
    """Yields the names of the schemas that JSON data refers to at any depth."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.rpartition("/")[2]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)

"""Reads the descriptions of schemas from another installed package; without one, there are no descriptions.

Such a package has an entry point in the group `fakekube.descriptions`. Its name is the minor ("1.36"), its
value a function without arguments that returns the OpenAPI v2 document of that minor as Kubernetes publishes
it (`api/openapi-spec/swagger.json`, parsed). What it says of definitions, properties, operations and parameters
is taken from it, and nothing else; `kubectl explain` shows it. Without one, the package kubernetes-validate is asked,
which has the definitions of each minor.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import orjson

_GROUP: Final = "fakekube.descriptions"


@cache
def published(version: str) -> Mapping[str, Any]:
    """The published document of a minor; empty if there is none."""
    from importlib.metadata import entry_points

    for point in entry_points(group=_GROUP, name=version):
        document: Mapping[str, Any] = point.load()()
        return document
    return _of_kubernetes_validate(version)


def _of_kubernetes_validate(version: str) -> Mapping[str, Any]:
    """The definitions that the package kubernetes-validate has of a minor; empty if it is not installed, or has none."""
    package = find_spec("kubernetes_validate")
    if package is None or package.origin is None:
        return {}
    file = Path(package.origin).parent / "kubernetes-json-schema" / f"v{version}.0-local" / "_definitions.json"
    if not file.is_file():
        return {}
    document = orjson.loads(file.read_bytes())
    return {"definitions": document.get("$defs") or document.get("definitions", {})}


def field_text(version: str, schema: str, field: str) -> str:
    """Returns the description of a field of a schema, such as `io.k8s.api.core.v1.Pod`; "" if there is none."""
    found = published(version).get("definitions", {}).get(schema, {}).get("properties", {}).get(field, {})
    text: str = found.get("description", "")
    return text
